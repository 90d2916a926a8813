"""Causal sets on disk: written, pinned, read back, refused where they are broken, and asked about as a table."""

import json

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from saccade.commands.door import app
from saccade.data import read_causal_set
from saccade.data.causal import scenes as causal_facts
from saccade.data.causal.scenes import TWINS, V1_DIGESTS, map_name
from saccade.data.tables.readers import with_reader
from saccade.errors import DataError, SaccadeError
from saccade.families.question.readers import CausalConfig, CausalOptions, read_causal, write_causal
from saccade.families.question.tables import TableData, TableDataConfig
from saccade.tasks.evaluate import distinct

FIRST = min(V1_DIGESTS)


def run(*args):
    return CliRunner().invoke(app, [str(arg) for arg in args])


def said(result):
    return " ".join(result.output.split())


@pytest.fixture(scope="module")
def pinned(tmp_path_factory):
    """The first scenes of causal-v1; for reading only."""
    return write_causal(CausalConfig(), "test", FIRST, tmp_path_factory.mktemp("causal") / "set")


@pytest.fixture
def small(tmp_path, pinned):
    """Three scenes that a test may break."""
    write_causal(CausalConfig(seed=1), "test", 3, tmp_path / "set")
    return tmp_path / "set"


def test_what_was_written_is_read_back_and_verified(pinned):
    causal = read_causal_set(pinned)
    causal.verify()
    assert (len(causal), len(list(causal))) == (FIRST, FIRST)
    scene = next(iter(causal))
    assert scene.image.shape == (100, 100, 3)
    assert scene.masks.shape == (len(scene.row["objects"]), 100, 100)
    assert scene.masks.any((1, 2)).all()
    assert scene.row["objects"][scene.target]["class"] == int(scene.question)
    assert scene.row["objects"][scene.target]["colour"] == scene.answer
    assert set(scene.twins) == set(TWINS)
    twins = scene.twins
    assert twins["target_recoloured"].answer not in (scene.answer, None)
    assert twins["target_removed"].answer is None
    assert not twins["target_removed"].masks[scene.target].any()
    assert (twins["other_removed"].answer, twins["other_removed"].other_answer) == (scene.answer, None)
    assert twins["other_moved"].answer == twins["background_changed"].answer == scene.answer
    x0, y0, x1, y1 = twins["target_moved"].row["box"]
    ys, xs = np.nonzero(twins["target_moved"].masks[scene.target])
    assert x0 <= xs.min() <= xs.max() < x1
    assert y0 <= ys.min() <= ys.max() < y1
    assert scene.maps()[map_name(scene.id, "target_moved", scene.question)] == ("target_moved", scene.question)
    assert len(scene.maps()) == 2 + len(TWINS) - 1  # no score reads the map of the target in another colour


def test_it_is_a_table_of_questions_with_the_target_as_evidence(pinned):
    table = read_causal(pinned, CausalOptions(check=True))
    assert (len(table.rows), table.count("test"), len(table.answers)) == (2 * FIRST, 2 * FIRST, 5)
    with_twins = read_causal(pinned, CausalOptions(twins=True))
    assert len(with_twins.rows) == 2 * FIRST + 6 * FIRST  # of seven twins one has no answer
    assert with_reader(str(pinned), ()) == f"causal:{pinned}"
    some = table.first("test", 4)
    data = TableData(TableDataConfig(f"causal:{pinned}", size=(100, 100)), "test", table=some)
    batch = data.take(distinct(data.picture)[0][:4])
    for scene, evidence, image in zip(read_causal_set(pinned), batch.evidence(), batch.images):
        assert np.array_equal(evidence.numpy(), scene.masks[scene.target])
        assert np.array_equal((image.permute(1, 2, 0) * 255).round().byte().numpy(), scene.image)


def test_the_command_writes_shows_and_refuses(tmp_path, pinned):
    out = tmp_path / "new"
    made = run("data", "make", "causal", "--count", 3, "--scenes", "mdist", "--seed", 4, "--out", out)
    assert made.exit_code == 0, made.output
    facts = json.loads((out / "causal.json").read_text())
    assert (facts["count"], facts["seed"], facts["background"]) == (3, 4, "distractors-17")
    assert facts["other_background"] == "distractors-17, drawn anew"
    card = (out / "README.md").read_text()
    for told in (facts["digest"], "cc-by-sa-3.0", "__QUERY", "settings of its own", *TWINS):
        assert told in card
    shown = run("data", "show", out, "--out", tmp_path / "sheet.png")
    assert shown.exit_code == 0, shown.output
    for wrong, complaint in (
        (("--count", 0), "count"),
        (("--protocol", "authors"), "unknown setting 'data.protocol'"),
        (("--out", pinned), "not an empty folder"),
    ):
        given = {"--count": 2, "--out": tmp_path / "never"} | {wrong[0]: wrong[1]}
        result = run("data", "make", "causal", *(each for pair in given.items() for each in pair))
        assert result.exit_code == 2
        assert complaint in said(result)
    assert not (tmp_path / "never").exists()
    alone = run("data", "show", "causal")
    assert alone.exit_code == 2
    assert "then name it causal:DIR" in said(alone)


def swapped_lines(folder):
    lines = (folder / "truth.jsonl").read_text().splitlines(keepends=True)
    (folder / "truth.jsonl").write_text("".join([lines[1], lines[0], lines[2]]))


def edited(folder, **changes):
    lines = [json.loads(line) for line in (folder / "truth.jsonl").read_text().splitlines()]
    lines[0] |= changes
    (folder / "truth.jsonl").write_text("\n".join(map(json.dumps, lines)))


def other_facts(folder, **changes):
    told = json.loads((folder / "causal.json").read_text())
    (folder / "causal.json").write_text(json.dumps(told | changes))


def first_twin(folder):
    return next(iter(read_causal_set(folder))).twins["other_moved"].image_path


def one_pixel(folder):
    pixels = np.asarray(Image.open(first_twin(folder))).copy()
    pixels[3, 3, 0] ^= 1
    Image.fromarray(pixels).save(first_twin(folder))


def nameless_object(folder):
    twins = json.loads((folder / "truth.jsonl").read_text().splitlines()[0])["twins"]
    del twins["other_moved"]["object"]
    edited(folder, twins=twins)


BROKEN = {
    "a twin without its object": (nameless_object, "line 1"),
    "other order": (swapped_lines, "of digest"),
    "leads out": (lambda folder: edited(folder, image="../../secret.png"), "leads out of the folder"),
    "a later format": (lambda folder: other_facts(folder, format=2), "format 2 is newer"),
    "another digest": (lambda folder: other_facts(folder, digest="00" * 32), "00" * 32),
    "a pixel": (one_pixel, "is not as it was written"),
}


@pytest.mark.parametrize("damage", BROKEN)
def test_a_broken_set_is_named(small, damage):
    breaks, complaint = BROKEN[damage]
    breaks(small)
    with pytest.raises((SaccadeError, OSError)) as error:
        read_causal(small, CausalOptions(check=True))
    assert complaint in str(error.value)


def test_a_frozen_set_that_comes_out_otherwise_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setitem(causal_facts.V1_DIGESTS, 2, "11" * 32)
    with pytest.raises(DataError, match="this version of saccade draws other scenes"):
        write_causal(CausalConfig(), "test", 2, tmp_path / "set")
    assert not list(tmp_path.iterdir())
    write_causal(CausalConfig(seed=5), "test", 2, tmp_path / "set")  # other settings are not frozen
