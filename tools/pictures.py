"""Make the pictures of the README and the results anew, from shipped weights and shipped glyphs."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from PIL import Image

from saccade.commands.data import make
from saccade.families.question.scenes import SceneData, SceneDataConfig
from saccade.predict import load
from saccade.show.filmstrip import contact_sheet
from saccade.show.overlay import Mask
from saccade.zoo.folders import example

IMAGES = Path(__file__).parent.parent / "docs" / "images"


def beside_soft() -> Image.Image:
    """Two scenes with a question each: SOFT looks once; the gates of HAttNet-CTX close in on the digit."""
    soft, gates = (load(name, device="cpu") for name in ("soft-mref", "hattnet-ctx-sparse-mref"))
    data = SceneData(SceneDataConfig(glyphs="pack"), "test")
    batch = data.take(data.one_per_scene(64))
    sure = [
        predictor.model(batch.images, batch.query).logits.softmax(-1).gather(1, batch.label[:, None]).squeeze(1)
        for predictor in (soft, gates)
    ]
    # Scenes that both read, with a digit larger than a speck; the tour and Figure 6 show mistakes too.
    chosen = (sure[0] * sure[1] * (batch.scale > 0.9)).argsort(descending=True)[:2].tolist()
    pictures: list[Image.Image] = []
    captions: list[str] = []
    for row in chosen:
        query = int(batch.query[row])
        outline = Mask(batch.layout[row : row + 1].mask_of(batch.object[row : row + 1])[0])
        for predictor in (soft, gates):
            seen = predictor.look(batch.images[row], ask=query)
            if predictor is soft:
                pictures.append(seen.picture.image)
                captions.append(f"colour of the {query}?")
            looks = [look.name for look in seen.trace.looks] if predictor is gates else []
            pictures += [seen.overlay(look, outline=outline) for look in (*looks, "total")]
            captions += [*looks, f"{predictor.facts.architecture}: {seen.answer}"]
    return contact_sheet(pictures, captions, columns=len(pictures) // len(chosen), panel=200)


def bird() -> Image.Image:
    """One photograph, three questions: ``saccade look --example bird --ask PART --model crown-cub``."""
    predictor = load("crown-cub", device="cpu")
    encoded = predictor.encode(example("bird"))
    seen = [predictor.ask(encoded, part) for part in ("crown", "bill", "belly")]
    captions = [f"{each.question}: {each.answer} {each.confidence:.0%}" for each in seen]
    overlays = [each.overlay() for each in seen]
    shown = [seen[0].picture.image.resize(overlays[0].size), *overlays]
    return contact_sheet(shown, ["what colour is its …?", *captions], columns=4, panel=260)


def twins() -> Image.Image:
    """A scene of ``saccade data make causal`` and three of its twins: do the answer and the map follow the change?"""
    predictor = load("hattnet-ctx-sparse-mref", device="cpu")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "causal"
        make("causal", folder, count=1)
        scene = json.loads((folder / "truth.jsonl").read_text(encoding="utf-8"))
        query = scene["questions"][0]["query"]
        other = scene["objects"][scene["other"]]["class"]
        names = {
            "": f"asked for the {query}",
            "-target_moved": f"the {query} moved",
            "-target_recoloured": f"the {query} recoloured",
            "-other_recoloured": f"the {other} recoloured",
        }
        seen = [predictor.look(folder / "images" / f"{scene['id']}{suffix}.png", ask=query) for suffix in names]
        pictures = [picture for each in seen for picture in (each.picture.image.resize((260, 260)), each.overlay())]
        captions = [text for name, each in zip(names.values(), seen) for text in (name, each.answer)]
    return contact_sheet([*pictures[::2], *pictures[1::2]], [*captions[::2], *captions[1::2]], columns=4, panel=200)


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    image = beside_soft().convert("RGB")
    image.save(IMAGES / "hattnet-ctx-beside-soft.webp", lossless=True, quality=100, method=6)
    bird().quantize(256).save(IMAGES / "crown-cub.png", optimize=True)
    twins().convert("RGB").quantize(256).save(IMAGES / "twins.png", optimize=True)


if __name__ == "__main__":
    main()
