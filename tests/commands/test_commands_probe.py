"""``saccade probe`` on tiny pictures: model, page and results; and what it says of bad data."""

import json
import shlex
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from safetensors import safe_open

import saccade
from saccade.probing.probe import Probe
from small_tables import write_squares, write_table
from typed import typed

QUICK = shlex.split("--backbone compact --through layer2 --size 32 --splits 3 --seeds 1 --steps 6")
CLASSES = ("blue", "green", "red")


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SACCADE_HOME", str(tmp_path_factory.mktemp("home")))
    for switch in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.setenv(switch, "")  # --offline sets them, and they are put back


def write_pictures(folder: Path, count: int, classes: tuple[str, ...] = CLASSES) -> Path:
    """Noise with a square of the colour that the class is called by; picture i is CLASS/i.png."""
    generator = np.random.default_rng(0)
    for number in range(count):
        kind = number % len(classes)
        pixels = (generator.random((32, 32, 3)) * 90).astype(np.uint8)
        top, left = generator.integers(0, 20, 2)
        pixels[top : top + 12, left : left + 12, 2 - kind % 3] = 230
        place = folder / classes[kind]
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(place / f"{number}.png")
    return folder


run = partial(typed, "probe")


def test_the_whole_command(tmp_path: Path) -> None:
    photos, out = write_pictures(tmp_path / "photos", 40), tmp_path / "out"
    shutil.copy(photos / "red" / "2.png", photos / "red" / "copy.png")
    (photos / "red" / "broken.png").write_bytes(b"no picture")
    (photos / "lone").mkdir()
    shutil.copy(photos / "blue" / "0.png", photos / "lone" / "mine.jpg")
    Image.new("RGB", (32, 32), (9, 200, 40)).save(photos / "lone" / "mine.jpg")
    done = run("--data", photos, "--out", out, "--heads", "soft,queries", *QUICK)
    assert done.exit_code == 0, done.output
    result = json.loads((out / "results.json").read_text("utf-8"))
    assert result["verdict"] in " ".join(done.output.split())
    assert result["pictures"] == 41
    assert list(result["classes"]) == [*CLASSES]
    said = " ".join(result["remarks"])
    assert "1 picture cannot be read: broken.png" in said
    assert "1 class left out with fewer than 3 different pictures: lone" in said
    assert result["copies"] == [["copy.png", "2.png"]]
    assert set(result["rivals"]) == {"majority", "knn", "linear", "soft", "queries"}

    page = (out / "report.html").read_text("utf-8")
    for heading in ("Rivals", "Confusion matrix", "Scores of classes", "Worst mistakes", "Calibration", "The pictures"):
        assert f"{heading}</h2>" in page
    assert page.count("<img") == len(result["mistakes"])

    seen = saccade.load(out).look(photos / "red" / "2.png")  # the folder is a model like any other
    assert seen.answer in CLASSES
    assert len(seen.trace.looks) == (4 if result["kept"]["head"] == "queries" else 1)


def test_maps_of_a_folder_take_the_place_of_a_network(tmp_path: Path) -> None:
    """The cell that each map marks is the class; the head finds it without any weights of ours."""
    photos, maps = write_pictures(tmp_path / "photos", 33), tmp_path / "maps"
    generator = np.random.default_rng(1)
    for picture in sorted(photos.rglob("*.png")):
        values = generator.normal(size=(5, 2, 2)).astype(np.float32)
        values[CLASSES.index(picture.parent.name), 0, 1] += 9
        (maps / picture.parent.name).mkdir(parents=True, exist_ok=True)
        np.savez(maps / picture.parent.name / f"{picture.stem}.npz", map=values, token=values.max((1, 2)))
    (maps / "red" / "2.npz").unlink()
    words = ("--data", photos, "--out", tmp_path / "out", "--heads", "soft,class-token", "--json", *QUICK[4:])
    done = run("--backbone", f"features:{maps}", *[word for word in words if word not in ("--size", "32")])
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    assert list(result["rivals"]) == ["majority", "knn", "linear", "soft", "class-token"]
    assert result["rivals"]["linear"]["accuracy"] > 0.9
    assert "1 picture left out without a map: 2.png" in result["remarks"]
    assert sorted(each.name for each in (tmp_path / "out").iterdir()) == [
        "head.safetensors",
        "report.html",
        "results.json",
    ]
    with safe_open(tmp_path / "out" / "head.safetensors", "pt") as head:
        assert json.loads(head.metadata()["answers"]) == [*CLASSES]
        assert tuple(head.get_tensor("classify.weight").shape) == (3, 5)


def test_what_a_backbone_lacks_is_said_before_pictures_are_read(tmp_path: Path, monkeypatch: Any) -> None:
    photos = write_pictures(tmp_path / "photos", 9)
    monkeypatch.setattr("saccade.probing.probe.usable_pictures", lambda *_: pytest.fail("pictures were read"))
    done = run("--data", photos, "--out", tmp_path / "out", "--backbone", "vgg16", "--offline")
    assert done.exit_code == 2
    assert "ImageNet weights of 'vgg16' are not on this machine" in " ".join(done.output.split())


WRONG = {
    "one class": ((("one",), 9), [], "1 class"),
    "too few for so many splits": ((CLASSES, 9), ["--splits", "10"], "splits"),
    "too many classes": ((tuple(f"c{number}" for number in range(12)), 12), [], "12 classes"),
    "no class token": ((CLASSES, 18), ["--heads", "soft,class-token"], "class-token"),
    "no such head": ((CLASSES, 18), ["--heads", "sofd"], "sofd"),
    "no evidence": ((CLASSES, 12), ["--evidence-weight", "1"], "evidence"),
    "two lengths": ((CLASSES, 12), ["--epochs", "2"], "epochs"),
    "nothing readable": ((CLASSES, 0), [], "6 pictures"),
    "data of another kind": ((CLASSES, 9), ["--data", "svhn:somewhere"], "svhn"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_cannot_be_probed_is_said_with_exit_code_2(
    tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("saccade.probing.pictures.MAX_CLASSES", 9)
    (classes, count), words, named = WRONG[what]
    photos = write_pictures(tmp_path / "photos", count, classes)
    for number in range(0 if count else 6):
        (photos / str(number % 2)).mkdir(parents=True, exist_ok=True)
        (photos / str(number % 2) / f"{number}.jpg").write_bytes(b"no picture %d" % number)
    done = run("--data", photos, "--out", tmp_path / "out", *QUICK, *words)
    assert done.exit_code == 2
    assert named in " ".join(done.stderr.split())
    assert not (tmp_path / "out").exists()


def test_another_probe_is_not_overwritten(tmp_path: Path) -> None:
    """Neither one of other data nor one of other settings; the same probe may run again."""
    photos, out = write_pictures(tmp_path / "photos", 18), tmp_path / "out"
    words = ("--data", photos, "--out", out, "--heads", "soft", *QUICK)
    assert run(*words).exit_code == 0
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    other = write_pictures(tmp_path / "other", 18)
    for named, changed in (("data", ("--data", other)), ("keep", ("--keep", "linear")), ("splits", ("--splits", "4"))):
        done = run(*words, *changed)
        assert done.exit_code == 2
        assert named in done.stderr
        assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    (out / "results.json").write_text("{")
    assert "results.json" in run(*words).stderr
    (out / "results.json").unlink()  # as of a probe that was killed before it wrote its results
    assert run(*words).exit_code == 0
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "thesis.txt").write_text("mine")  # what no probe wrote
    assert "text" in run(*words, "--out", tmp_path / "text").stderr


SMALL = Probe("compact", through="layer2", size=32, heads=["soft"], splits=3, seeds=1, steps=60, hidden=8,
              rates=(3e-2,), linear_rates=(3e-2,), decays=(1e-2,), shares=())  # fmt: skip


@pytest.mark.parametrize(("planted", "watermark"), [(True, False), (True, True), (False, False)])
def test_a_planted_shortcut_is_named_and_a_clean_set_is_not(tmp_path: Path, planted: bool, watermark: bool) -> None:
    """The verdict of the probe, its page, and the verdict of ``evaluate`` on the same pictures agree."""
    table = write_squares(tmp_path / "squares", 90, planted=planted, watermark=watermark)
    written = SMALL.fit(f"csv:{table}").save(tmp_path / "out")
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    rests = written.results["rests_on"]["accuracy"]
    assert "What the answer depends on</h2>" in page
    assert ("it reads the background" in written.verdict) == planted
    assert ("it reads the background" in page) == planted
    assert (rests["evidence_swapped"] > 0.7) == planted
    assert written.results["maps"]["chance"] in ("part_prior", "centre_gaussian", "uniform")
    scored = saccade.evaluate(tmp_path / "out", data=f"csv:{table}", split="train", device="cpu")
    assert ("it reads the background" in scored["verdict"]) == planted
    assert "learned from all pictures of its probe" in scored["caution"]
    assert "it beats guessing by" in scored["verdict"]


QUICKER = [word if word != "6" else "12" for word in QUICK]


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Any]:
    """A table with questions, clicks and boxes; the folder of its probe; what the command printed."""
    here = tmp_path_factory.mktemp("asked")
    table = write_table(here / "asked", evidence="point")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SACCADE_HOME", str(here / "home"))
        done = run("--data", table, "--out", here / "out", "--heads", "soft", *QUICKER)
    return table, here / "out", done


def test_a_table_with_questions_is_known_by_its_columns(asked: tuple[Path, Path, Any]) -> None:
    _, out, done = asked
    assert done.exit_code == 0, done.output
    result = json.loads((out / "results.json").read_text("utf-8"))
    assert result["pictures"] == 54
    assert result["examples"] == 108
    assert [*result["questions"]] == ["lower", "upper"]
    assert [*result["rivals"]] == ["majority", "prior", "knn", "linear", "soft"]
    assert {"box_centre", "part_prior", "uniform", "centre_gaussian"} <= {*result["maps"]["blind_maps"]}
    assert result["maps"]["score"] == "pointing_at"
    assert result["maps"]["blind_maps"]["part_prior"]["value"] == 1  # a square lies always at the same place of its box
    assert result["maps"]["blind_maps"]["box_centre"]["value"] == 0  # between both squares
    assert result["rests_on"]["n"] == 108
    page = (out / "report.html").read_text("utf-8")
    for heading in ("Scores of questions", "Where it looked", "What the answer depends on"):
        assert f"{heading}</h2>" in page
    assert "2 questions, asked 108 times about 54 pictures; 3 answers." in page
