"""Make the pictures of the README and the docs anew, from shipped weights and shipped glyphs."""

from __future__ import annotations

from pathlib import Path

from PIL import Image

from saccade.data.attributes import AttributeData, AttributeDataConfig
from saccade.predict import load
from saccade.show.marks import Mask

IMAGES = Path(__file__).parent.parent / "docs" / "images"
PAPER = (255, 255, 255)


def stacked(images: list[Image.Image], gap: int = 12) -> Image.Image:
    """Pictures side by side on white."""
    sheet = Image.new(
        "RGB", (sum(i.width for i in images) + gap * (len(images) - 1), max(i.height for i in images)), PAPER
    )
    left = 0
    for image in images:
        sheet.paste(image, (left, 0))
        left += image.width + gap
    return sheet


def soft_mref() -> Image.Image:
    """One scene, two questions: the attention of SOFT moves with the question."""
    predictor = load("soft-mref", device="cpu")
    data = AttributeData(AttributeDataConfig(glyphs="pack"), "test")
    batch = data.take(data.one_per_scene(64))
    scores = predictor.model(batch.images, batch.query).logits.softmax(-1).gather(1, batch.label[:, None]).squeeze(1)
    sure, other = predictor.model(batch.images, batch.other_query()).logits.softmax(-1).max(-1)
    # A scene on which it is sure of two different answers; the tour shows a mistake too.
    row = int((scores * sure * (other != batch.label)).argmax())
    scene = batch.layout[row : row + 1]
    strips = []
    for query in (int(batch.query[row]), int(batch.other_query()[row])):
        mask = Mask(scene.mask_of(scene.classes.eq(query).long().argmax(1))[0])
        seen = predictor.look(batch.images[row], ask=query)
        strips.append(seen.filmstrip(question=f"colour of the {query}?", outline=mask, panel=200))
    return stacked(strips)


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    soft_mref().save(IMAGES / "soft-mref.png", optimize=True)


if __name__ == "__main__":
    main()
