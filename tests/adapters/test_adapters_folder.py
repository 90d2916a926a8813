"""Rows of many pictures: what they hold, how a stopped run goes on, and that ``score`` and ``report`` read them."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from row_pictures import folder_of, png

from saccade import look_folder, report, score
from saccade.adapters import folder, rows
from saccade.adapters.folder import read_rows
from saccade.adapters.scoring import RowMaps
from saccade.errors import ConfigError, DataError, OutputError
from saccade.predict import load
from saccade.scoring.results import Policies
from saccade.scoring.score import score_maps
from saccade.scoring.sources import open_maps, open_truth
from tiny_models import save_tiny
from typed import typed


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_tiny(tmp_path_factory.mktemp("models") / "tiny"))


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder_of(tmp_path_factory.mktemp("pictures"), 7)


def rows_of(sources, model: str, out: Path, **options) -> list[dict]:
    look_folder(sources, model=model, ask=1, out=out, device="cpu", **options)
    return list(read_rows(out))


@pytest.fixture(scope="module")
def plain(model: str, pictures: Path, tmp_path_factory: pytest.TempPathFactory) -> list[dict]:
    """The rows of the seven pictures in parts of three."""
    return rows_of(pictures, model, tmp_path_factory.mktemp("plain") / "out", part=3, batch_size=2)


def test_a_row_says_what_the_predictor_says(model: str, pictures: Path, plain: list[dict]) -> None:
    assert [(row["part"], row["row"]) for row in plain] == [(n // 3, n % 3) for n in range(7)]
    predictor = load(model, "cpu")
    for row in plain[:3]:
        seen = predictor.look(row["source"], 1)
        assert row["answer"] == seen.answer
        assert row["confidence"] == pytest.approx(seen.confidence, abs=1e-6)
        assert [other["answer"] for other in row["alternatives"]] == [word for word, _ in seen.alternatives]
        assert (row["height"], row["width"], row["question"], row["error"]) == (20, 31, "1", None)
        assert row["name"] == Path(row["source"]).stem
        (stored,) = row["maps"]
        expected = seen.trace.image_map("total", (20, 31))[0].numpy()
        np.testing.assert_allclose(rows.decode_map(stored), expected, rtol=2e-3, atol=1e-6)
        y, x = np.unravel_index(rows.decode_map(stored).argmax(), (20, 31))
        assert abs(row["peak_x"] - x) <= 1
        assert abs(row["peak_y"] - y) <= 1


def test_a_map_keeps_its_values_to_eleven_bits_and_small_ones_too() -> None:
    values = torch.rand(9, 4).numpy() * 1e-7 + np.eye(9, 4, dtype=np.float32) * 1e-4
    back = rows.decode_map(rows.encode_map(values))
    np.testing.assert_allclose(back, values, rtol=2**-11, atol=values.max() * 2**-24)
    assert rows.decode_map(rows.encode_map(np.zeros((2, 3), np.float32))).tolist() == [[0.0] * 3] * 2


def test_all_maps_of_a_model_with_crops_and_none(tmp_path: Path) -> None:
    folder_of(tmp_path / "in", 1)
    (row,) = rows_of(tmp_path / "in", "stn-mref", tmp_path / "all", maps="all")
    assert {stored["look"] for stored in row["maps"]} > {"total"}
    (box,) = row["boxes"]
    assert box["x0"] < box["x1"]
    assert box["y0"] < box["y1"]
    assert rows_of(tmp_path / "in", "stn-mref", tmp_path / "none", maps="none")[0]["maps"] == []


def test_a_run_that_was_stopped_goes_on(
    model: str, pictures: Path, plain: list[dict], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is lost or there twice, what was done is not done again, and a file that is cut off is."""
    out = tmp_path / "out"
    write, left = folder.write_bytes, iter(range(2))

    def write_twice(path: Path, data: bytes) -> Path:
        if next(left, None) is None:
            raise KeyboardInterrupt
        return write(path, data)

    with monkeypatch.context() as patched:
        patched.setattr(folder, "write_bytes", write_twice)
        with pytest.raises(KeyboardInterrupt):
            rows_of(pictures, model, out, part=3, batch_size=2)
    first, second = sorted(out.glob("*.parquet"))
    before = first.stat().st_mtime_ns
    second.write_bytes(second.read_bytes()[:-9])
    with pytest.raises(DataError, match="3 rows"):
        list(read_rows(out))
    looked = look_folder(pictures, model=model, ask=1, out=out, part=3, batch_size=2, device="cpu", resume=True)
    assert (looked.rows, looked.errors, looked.parts, looked.resumed) == (7, 0, 3, 1)
    assert first.stat().st_mtime_ns == before
    assert list(read_rows(out)) == plain


def test_another_question_model_or_picture_is_not_mixed_in(tmp_path: Path) -> None:
    source, model = folder_of(tmp_path / "in", 2), str(save_tiny(tmp_path / "tiny"))
    rows_of(source, model, tmp_path / "out", part=1)
    kept = sorted(file.name for file in (tmp_path / "out").iterdir())
    options = {"model": model, "out": tmp_path / "out", "part": 1, "device": "cpu"}
    with pytest.raises(OutputError, match="`resume=True`"):
        look_folder(source, ask=1, **options)
    with pytest.raises(OutputError, match="other ask"):
        look_folder(source, ask=2, resume=True, **options)
    (source / "000.png").write_bytes(png(99))
    with pytest.raises(OutputError, match="other files"):
        look_folder(source, ask=1, resume=True, **options)
    save_tiny(tmp_path / "tiny", seed=1)
    with pytest.raises(OutputError, match="other digest"):
        look_folder(source, ask=1, resume=True, **options)
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == kept


def test_the_command_line_writes_rows_and_says_what_became_of_them(model: str, pictures: Path, tmp_path: Path) -> None:
    asked = ["look", str(pictures), "--model", model, "--ask", "1", "--engine", "local", "--device", "cpu"]
    done = typed(*asked, "--out", str(tmp_path / "out"), "--json")
    counts = json.loads(done.stdout)
    assert (counts["rows"], counts["errors"], counts["parts"]) == (7, 0, 1)
    assert "1 of 1 files" in typed(*asked, "--out", str(tmp_path / "out"), "--resume").output


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A finished job over four pictures, one bad one, and masks of the four."""
    home = tmp_path_factory.mktemp("job")
    places = {"model": save_tiny(home / "tiny"), "in": folder_of(home / "in", 4), "out": home / "out"}
    (home / "in" / "bad.png").write_bytes(b"x")
    look_folder(home / "in", model=str(home / "tiny"), ask=1, out=home / "out", device="cpu", part=2)
    masks = {f"{n:03d}": np.zeros((20, 31), bool) for n in range(4)}
    for number, mask in enumerate(masks.values()):
        mask[2 : 6 + number, 3:9] = True
    np.savez(home / "masks.npz", **masks)
    return {**places, "masks": home / "masks.npz"}


def test_parts_that_are_scored_apart_score_as_the_maps_of_the_predictor(job: dict[str, Path]) -> None:
    """Values to eleven bits of a kept map, which are pooled and bounded like maps in memory."""
    predictor = load(job["model"], "cpu")
    own = {f"{n:03d}__1": predictor.look(job["in"] / f"{n:03d}.png", 1).map() for n in range(4)}
    kept = {name: each for name, each in RowMaps(job["out"]).each() if not isinstance(each, Exception)}
    found = score(job["out"], job["masks"], broken="skip", engine="local")
    assert (found.counts["scored"], found.counts["pictures"]) == (4, 4)
    for name, maps in (("the predictor", own), ("the rows", kept)):
        wanted = score_maps(open_maps(maps), open_truth(job["masks"]), Policies())
        assert found.names == wanted.names
        for key, value in wanted.scores.items():
            assert found.scores[key].mean == pytest.approx(value.mean, abs=1e-3), (name, key)
    assert found.scores == {**wanted.scores, "pr_auc": found.scores["pr_auc"]}  # of the rows, to the last bit
    assert all(torch.equal(found.values[name], wanted.values[name]) for name in wanted.values)
    for name in ("uniform", "centre_gaussian", "grid_oracle"):
        assert found.baselines[name] == pytest.approx(dict(wanted.baselines[name]), nan_ok=True)


def test_a_row_with_an_error_is_a_map_that_cannot_be_read(job: dict[str, Path], tmp_path: Path) -> None:
    """Without a truth it is counted as unreadable; with one it stops, or is left out and counted."""
    without = score(job["out"], job["masks"])
    assert (without.counts["broken"], without.counts["extra"]) == (1, 0)
    assert "1 unreadable" in without.counted()
    assert "without a truth" not in without.counted()
    with np.load(job["masks"]) as masks:
        np.savez(tmp_path / "masks.npz", **masks, bad=np.ones((20, 31), bool))
    with pytest.raises(DataError, match=r"bad\.png"):
        score(job["out"], tmp_path / "masks.npz")
    assert score(job["out"], tmp_path / "masks.npz", broken="skip").counts["broken"] == 1


def test_report_draws_the_first_rows_on_their_pictures(job: dict[str, Path], tmp_path: Path) -> None:
    page = report([job["out"]], looks=2).save(tmp_path / "page.html").read_text()
    assert [name in page for name in ("000.png", "001.png", "002.png", "data:image/")] == [True, True, False, True]
    assert "Of the 5 rows in" in page
    assert "3 are left out, 1 of them without an answer" in page
    assert "1 are left out" in typed("report", str(job["out"]), "--out", str(tmp_path / "page.html")).stderr


def test_an_engine_is_for_rows_and_for_masks(job: dict[str, Path]) -> None:
    mask = np.ones((20, 31), bool)
    for maps, truth, engine, word in (
        (mask[None] * 1.0, mask[None], "ray", "engine"),
        (job["out"], job["masks"], "slurm", "engine"),
        (job["out"], {"000": mask}, "ray", "truth"),
    ):
        with pytest.raises(ConfigError, match=word):
            score(maps, truth, engine=engine)
