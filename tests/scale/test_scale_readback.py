"""What a job wrote is read by ``score`` and by ``report``, and by the command line."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from scale_pictures import folder_of, shard_of
from typer.testing import CliRunner

from saccade import scale
from saccade.cli import app
from saccade.errors import ConfigError, DataError, MissingExtraError
from saccade.metrics.maps.localisation import no_counts, pr_counts
from saccade.predict import load
from saccade.scale.job import Job, Part
from saccade.scale.local_engine import run_here
from saccade.scale.output import Receipt
from saccade.verbs.report import report
from saccade.verbs.score import score
from tiny_models import save_tiny


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A finished job over four pictures, one bad one, and masks of the four."""
    home = tmp_path_factory.mktemp("job")
    places = {"model": save_tiny(home / "tiny"), "in": folder_of(home / "in", 4), "out": home / "out"}
    (home / "in" / "bad.png").write_bytes(b"x")
    scale.look(home / "in", model=str(home / "tiny"), ask=1, out=home / "out", device="cpu", part=2)
    masks = {f"{n:03d}": np.zeros((20, 31), bool) for n in range(4)}
    for number, mask in enumerate(masks.values()):
        mask[2 : 6 + number, 3:9] = True
    np.savez(home / "masks.npz", **masks)
    return {**places, "masks": home / "masks.npz"}


def test_its_maps_score_as_those_of_the_predictor_do(job: dict[str, Path]) -> None:
    predictor = load(job["model"], "cpu")
    own = {f"{n:03d}__1": predictor.look(job["in"] / f"{n:03d}.png", 1).map() for n in range(4)}
    wanted = score(own, job["masks"])
    found = score(job["out"], job["masks"], broken="skip")
    assert found.names == wanted.names
    assert found.counts["scored"] == 4
    for name in ("true_positive_strength", "pointing", "iou"):
        assert found.scores[name].mean == pytest.approx(wanted.scores[name].mean, abs=1e-4)


def test_parts_that_are_scored_apart_score_as_all_together(job: dict[str, Path], tmp_path: Path) -> None:
    """Values, pooled pixels and intervals to the last bit; exchanged maps are others."""
    from saccade.scale.look_folder import LookMaps
    from saccade.scoring.maps import MappingMaps
    from saccade.scoring.policies import Policies
    from saccade.scoring.score import score_maps
    from saccade.scoring.truths import open_truth

    chunks = [chunk for chunk in LookMaps(job["out"]).each(1) if not isinstance(chunk.maps, Exception)]
    together = MappingMaps({chunk.names[0]: chunk.maps[0] for chunk in chunks})
    wanted = score_maps(together, open_truth(job["masks"]), Policies())
    found = score(job["out"], job["masks"], broken="skip", engine="local")
    assert found.scores == {**wanted.scores, "pr_auc": found.scores["pr_auc"]}
    assert found.scores["pr_auc"].mean == wanted.scores["pr_auc"].mean
    assert all(torch.equal(found.values[name], wanted.values[name]) for name in wanted.values)
    for name in ("uniform", "centre_gaussian", "grid_oracle"):
        assert found.baselines[name] == pytest.approx(dict(wanted.baselines[name]), nan_ok=True)
    assert found.counts["pictures"] == 4


def test_counts_of_pixels_travel_as_they_are() -> None:
    counts = pr_counts(torch.rand(3, 5, 4), torch.rand(3, 5, 4) > 0.5)
    state = counts.__getstate__()
    assert state[0].is_sparse
    back = no_counts()
    back.__setstate__(state)
    assert torch.equal(back.positives, counts.positives)
    assert torch.equal(back.negatives, counts.negatives)
    assert (back.pictures, back.undefined) == (counts.pictures, counts.undefined)


def test_a_row_with_an_error_is_a_map_that_cannot_be_read(job: dict[str, Path], tmp_path: Path) -> None:
    """Without a truth it is counted as unreadable; with one it stops, or is left out and counted."""
    without = score(job["out"], job["masks"])
    assert (without.counts["broken"], without.counts["extra"]) == (1, 0)
    assert "1 unreadable" in without.counted()
    assert "without a truth" not in without.counted()
    with np.load(job["masks"]) as masks:
        np.savez(tmp_path / "masks.npz", **masks, bad=np.ones((20, 31), bool))
    with pytest.raises(DataError, match=r"bad\.png: not a picture.*`broken=skip`"):
        score(job["out"], tmp_path / "masks.npz")
    assert score(job["out"], tmp_path / "masks.npz", broken="skip").counts["broken"] == 1


def test_report_draws_the_first_rows_on_their_pictures(job: dict[str, Path], tmp_path: Path) -> None:
    page = report([job["out"]], looks=2).save(tmp_path / "page.html").read_text()
    assert page.count("000.png") >= 1
    assert "001.png" in page
    assert "002.png" not in page
    assert "data:image/" in page
    assert "Of the 5 rows in" in page
    assert "3 are left out, 1 of them without an answer" in page
    told = CliRunner().invoke(app, ["report", str(job["out"]), "--out", str(tmp_path / "page.html")])
    assert "1 are left out" in told.stderr
    assert "in place of the file that was there" in told.stderr
    assert (
        CliRunner()
        .invoke(app, ["report", str(job["out"]), "-o", str(tmp_path / "new.html")])
        .stderr.endswith("new.html\n")
    )


def test_report_finds_a_picture_in_its_shard_and_does_without_it(job: dict[str, Path], tmp_path: Path) -> None:
    shard_of(tmp_path / "a.tar", {"p.png": (job["in"] / "001.png").read_bytes()})
    scale.look(tmp_path / "a.tar", model=str(job["model"]), ask=1, out=tmp_path / "out", device="cpu")
    from saccade.scale.look_folder import read_look_records

    (record,) = read_look_records(tmp_path / "out", 3)
    pixels = np.asarray(record.picture)
    (tmp_path / "a.tar").unlink()
    (grey,) = read_look_records(tmp_path / "out", 3)
    assert pixels.std() > 50
    assert np.asarray(grey.picture).std() == 0
    assert record.trace.validate() is record.trace


def test_the_command_line_writes_rows_and_says_what_became_of_them(job: dict[str, Path], tmp_path: Path) -> None:
    asked = ["look", str(job["in"]), "--model", str(job["model"]), "--ask", "1", "--engine", "local", "--device", "cpu"]
    done = CliRunner().invoke(app, [*asked, "--out", str(tmp_path / "out"), "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert (told["rows"], told["errors"], told["parts"]) == (5, 1, 1)
    shown = CliRunner().invoke(app, [*asked, "--out", str(tmp_path / "out"), "--resume"])
    assert "1 of 1 files were there already" in shown.output
    plain = CliRunner().invoke(app, [*asked[:6]])
    caveats = [line for line in plain.stderr.splitlines() if line.startswith(("fit:", "confidences", "'"))]
    assert len(caveats) >= 2
    assert set(caveats) <= set(shown.stderr.splitlines())


def test_a_job_counts_pictures_that_the_model_does_not_know(
    job: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every p-value is set below the level; a part that was there already is counted from its footer."""
    from saccade.predict import Predictor

    monkeypatch.setattr(Predictor, "_like", lambda self, inputs, encoding: (0.001,) * len(inputs))
    asked = {"model": str(job["model"]), "ask": 1, "out": tmp_path / "out", "device": "cpu"}
    first, again = scale.look(job["in"], **asked), scale.look(job["in"], **asked, resume=True)
    assert first.unlike == again.unlike == 4
    assert first.remarks[0].startswith("fit: 4 of 4 pictures are unlike those that the model learned from")


def test_a_job_without_ray_leaves_no_folder(
    job: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match="ray"):
        scale.look(job["in"], model=str(job["model"]), ask=1, out=tmp_path / "out", engine="ray")
    assert not (tmp_path / "out").exists()


def test_a_job_that_fails_before_its_first_part_leaves_no_folder(
    job: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that was there before stays, and so does one with a part in it."""
    asked = {"model": str(job["model"]), "ask": 1, "device": "cpu", "part": 2}

    def fail(job: Job, parts: Sequence[Part], out: str, **options: object) -> Iterator[Receipt]:
        yield from run_here(job, parts[: options.pop("first", 0)], out, **options)  # type: ignore[arg-type]
        raise ConfigError("no cluster answers")

    monkeypatch.setattr("saccade.scale.local_engine.run_here", fail)
    (tmp_path / "there").mkdir()
    for name in ("new", "there"):
        with pytest.raises(ConfigError, match="no cluster answers"):
            scale.look(job["in"], out=tmp_path / name, **asked)
    assert [path.name for path in tmp_path.iterdir()] == ["there"]
    monkeypatch.setattr("saccade.scale.local_engine.run_here", partial(fail, first=1))
    with pytest.raises(ConfigError, match="no cluster answers"):
        scale.look(job["in"], out=tmp_path / "new", **asked)
    monkeypatch.setattr("saccade.scale.local_engine.run_here", run_here)
    assert scale.look(job["in"], out=tmp_path / "new", **asked, resume=True).resumed == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--engine", "local"], "say where with --out"),
        (["--resume"], "go with --engine"),
        (["--engine", "local", "--out", "x", "--cells"], "not for --engine"),
        (["--engine", "local", "--out", "x", "--address", "auto"], "for --engine ray"),
    ],
)
def test_options_that_do_not_go_together(job: dict[str, Path], options: list[str], said: str) -> None:
    asked = ["look", str(job["in"]), "--model", str(job["model"]), "--ask", "1"]
    done = CliRunner().invoke(app, [*asked, *options])
    assert done.exit_code == 2
    assert said in " ".join(done.output.split())
    assert not Path("x").exists()


def test_an_engine_is_for_rows_and_for_masks(job: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"score the rows that `scale\.look` wrote"):
        score(np.ones((2, 4, 4)), np.ones((2, 4, 4), bool), engine="ray")
    with pytest.raises(ConfigError, match="choose from local, ray"):
        score(job["out"], job["masks"], engine="slurm")
    with pytest.raises(ConfigError, match="the path of a file that all machines see"):
        score(job["out"], {"000": np.ones((20, 31), bool)}, engine="ray")
