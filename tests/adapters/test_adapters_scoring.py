"""What a job wrote is read by ``score`` and by ``report``, and by the command line."""

from pathlib import Path

import numpy as np
import pytest
import torch
from row_pictures import folder_of

from saccade import look_folder, report, score
from saccade.adapters.scoring import RowMaps
from saccade.errors import ConfigError, DataError
from saccade.predict import load
from saccade.scoring.results import Policies
from saccade.scoring.score import score_maps
from saccade.scoring.sources import open_maps, open_truth
from tiny_models import save_tiny
from typed import typed


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
