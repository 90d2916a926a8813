"""Predictor and Sighting: questions, batches, maps on the right pixels, files, and what is not imported."""

import html.parser
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import saccade
from saccade.config import to_dict
from saccade.data.pictures.reading import read_picture
from saccade.errors import DataError
from saccade.models.facts import Preprocessing
from saccade.models.folder import save_model
from saccade.models.soft import SoftModel
from saccade.predict import Predictor
from saccade.record import read_record
from tiny_models import ANSWERS, QUERIES, OneHotModel, save_tiny, tiny_config, tiny_facts


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Predictor:
    return saccade.load(save_tiny(tmp_path_factory.mktemp("models") / "tiny"), "cpu")


def one_hot() -> Predictor:
    """A model that looks at cell number ask, on an input of 50×70."""
    facts = tiny_facts(
        queries=tuple(str(n) for n in range(35)), answers=("light", "dark"), preprocessing=Preprocessing((50, 70))
    )
    return Predictor(OneHotModel(), facts, name="one-hot")


def noise(height: int, width: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def test_a_sighting_agrees_with_the_model(tiny: Predictor) -> None:
    picture = noise(31, 34)
    seen = tiny.look(picture, ask=2)
    images = torch.from_numpy(picture).permute(2, 0, 1)[None].float() / 255
    output = tiny.model(images, torch.tensor([2]))
    shares = output.logits.softmax(-1)[0]
    assert seen.answer == ANSWERS[int(shares.argmax())]
    assert seen.confidence == pytest.approx(float(shares.max()))
    assert {seen.answer, *(word for word, _ in seen.alternatives)} == set(ANSWERS)
    assert [share for _, share in seen.alternatives] == sorted((share for _, share in seen.alternatives), reverse=True)
    assert seen.confidence + sum(share for _, share in seen.alternatives) == pytest.approx(1)
    torch.testing.assert_close(seen.trace.looks[-1].weights, output.trace.looks[-1].weights)
    assert not seen.trace.looks[-1].weights.requires_grad
    seen.trace.validate()


def test_a_map_without_a_peak_is_even(tiny: Predictor) -> None:
    for values, is_even in ((torch.ones(31, 34), True), (torch.eye(34)[:31], False)):
        seen = tiny.look(noise(31, 34), ask=2)
        vars(seen)["total_map"] = values
        assert seen.is_even == is_even


def test_labels_that_may_hold_together_have_each_its_own_probability(tmp_path: Path) -> None:
    settings = tiny_config(SoftModel, multi_label=True)
    model = SoftModel(settings)
    with torch.no_grad():
        model.head.classify.weight.zero_()
        model.head.classify.bias.copy_(torch.tensor([1.0, 9.0, 3.0]).log())  # odds, so 1/2, 9/10 and 3/4
    save_model(model, tmp_path / "labels", tiny_facts(model=to_dict(settings)))
    seen = saccade.load(tmp_path / "labels", "cpu").look(noise(31, 34), ask=0)
    assert (seen.answer, seen.confidence) == ("green", pytest.approx(0.9))
    assert seen.alternatives == (("blue", pytest.approx(0.75)), ("red", pytest.approx(0.5)))
    found = seen.to_json()
    assert (found["answer"], found["confidence"]) == ("green", 0.9)
    assert found["alternatives"] == [["blue", 0.75], ["red", 0.5]]


@pytest.mark.parametrize("ask", [9, "nroth", -1, True, 2.0, [2], ""])
def test_an_unknown_question_lists_what_can_be_asked(tiny: Predictor, ask) -> None:
    with pytest.raises(DataError, match="north") as caught:
        tiny.look("no-such-picture.png", ask=ask)  # the question is checked before the picture is read
    assert all(word in str(caught.value) for word in QUERIES)


@pytest.mark.parametrize(("name", "kind"), [("x.png", "PNG"), ("X.JPG", "JPEG"), ("x.webp", "WEBP")])
def test_a_sighting_is_saved_as_one_picture_file(tiny: Predictor, tmp_path: Path, name: str, kind: str) -> None:
    seen = tiny.look(noise(31, 34), ask=1)
    (written,) = seen.save(tmp_path / "new" / name)
    assert Image.open(written).format == kind
    assert Image.open(written).size == seen.overlay().size
    assert [path.name for path in (tmp_path / "new").iterdir()] == [name]
    (tmp_path / "out.png").mkdir()
    assert len(seen.save(tmp_path / "out.png")) == 3  # a folder is a folder, whatever it is called


def test_encode_once_ask_many() -> None:
    predictor = one_hot()
    encoded = predictor.encode(noise(50, 70))
    peaks = {predictor.ask(encoded, n).peak for n in (0, 8, 34)}
    everything = predictor.ask_all(encoded)
    assert predictor.model.encoded == 1
    assert [seen.question for seen in everything] == [str(n) for n in range(35)]
    assert len(peaks) == 3
    assert everything[8].peak == predictor.ask(encoded, 8).peak
    with pytest.raises(DataError, match="found 2"):
        predictor.ask(predictor.encode(noise(5, 5), noise(5, 5)), 1)
    with pytest.raises(DataError, match="at least one"):
        predictor.encode()


@pytest.mark.parametrize(("height", "width"), [(50, 70), (101, 37), (33, 211), (350, 490), (1, 1), (3, 1000)])
def test_a_cells_map_peaks_on_its_own_pixels(height: int, width: int) -> None:
    """By hand: the input is 50×70; the picture is laid in at scale r = min(50/H, 70/W), centred."""
    predictor = one_hot()
    seen = predictor.look(noise(height, width), ask=17)  # row 2, column 3: its centre is x = 35, y = 25 of the input
    total = seen.trace.image_map()
    assert total.shape == (1, height, width)
    shown_h, shown_w = (
        max(1, round(height * min(50 / height, 70 / width))),
        max(1, round(width * min(50 / height, 70 / width))),
    )
    left, top = (70 - shown_w) // 2, (50 - shown_h) // 2
    x, y = (35 - left) * width / shown_w, (25 - top) * height / shown_h
    found_x, found_y = seen.peak
    assert abs(found_x + 0.5 - x) <= 0.5 * max(1, width / shown_w) + 0.51
    assert abs(found_y + 0.5 - y) <= 0.5 * max(1, height / shown_h) + 0.51


def test_saved_files_read_back(tiny: Predictor, tmp_path: Path) -> None:
    source = tmp_path / "my scene.png"
    Image.fromarray(noise(40, 60)).save(source)
    before = source.read_bytes()
    seen = tiny.look(source, ask="north")
    paths = seen.save(tmp_path)
    assert [path.name for path in paths] == [f"my_scene-ask-north.{end}" for end in ("png", "json", "safetensors")]
    assert source.read_bytes() == before  # an overlay never lands on its own picture
    record = read_record(paths[1])
    assert record.info == seen.to_json()
    assert torch.equal(record.trace.image_map(), seen.trace.image_map())
    assert record.picture.size == (60, 40)
    strip = seen.save(tmp_path / "strips", "x", filmstrip=True)[0]
    assert strip.name == "x.png"
    assert Image.open(strip).size != Image.open(paths[0]).size


@pytest.mark.parametrize("name", ["../../etc/passwd", "..", "/", "a/b\\c:d*?.png", "", "x" * 20])
def test_a_hostile_name_stays_inside_the_folder(tiny: Predictor, tmp_path: Path, name: str) -> None:
    seen = tiny.look(read_picture(noise(8, 8), name=name), ask=0)
    for path in seen.save(tmp_path / "out"):
        assert path.resolve().parent == (tmp_path / "out").resolve()
        assert path.is_file()


def test_the_notebook_view_escapes_words_and_embeds_the_picture() -> None:
    facts = tiny_facts(
        queries=("<script>alert(1)</script>",), answers=("<b>&", '"x"'), preprocessing=Preprocessing((50, 70))
    )
    seen = Predictor(OneHotModel(), facts, name='"><img src=x>').look(noise(8, 8), ask="<script>alert(1)</script>")
    page = seen._repr_html_()
    tags: list[str] = []
    parser = html.parser.HTMLParser()
    parser.handle_starttag = lambda tag, attrs: tags.append(tag)  # type: ignore[method-assign]
    parser.feed(page)
    assert tags == ["figure", "img", "figcaption", "b", "small"]
    assert "data:image/png;base64," in page
    assert repr(seen).count("\n") == 0


def test_given_attention_may_be_an_array_and_must_be_finite(tiny: Predictor) -> None:
    picture = noise(31, 34)
    own = tiny.look(picture, ask=1)
    (look,) = own.trace.looks
    again = tiny.look(picture, ask=1, attention={look.name: look.weights.numpy()})
    assert (again.answer, again.confidence) == (own.answer, pytest.approx(own.confidence, abs=1e-6))
    assert again.trace.meta["given"] == [look.name]
    assert again.stem == f"{own.stem}-edited"  # neither overwrites the other
    with pytest.raises(DataError, match="NaN"):
        tiny.look(picture, ask=1, attention={look.name: look.weights * float("nan")})
    with pytest.raises(DataError, match="attention"):
        tiny.look(picture, ask=1, attention={look.name: "all of it"})
