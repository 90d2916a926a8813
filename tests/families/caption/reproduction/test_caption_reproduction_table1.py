"""Table 1 of the caption paper: measured beside published, runs that are missing, the curve of BLEU and likelihood."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fake_runs import fake_run
from saccade.engine.recipe import packaged_recipes
from saccade.errors import ConfigError
from saccade.families.caption.reproduction.table1 import ABLATIONS, DEV, CaptionTable, caption_page, likelihood_figure
from saccade.recorded import RecordedRun
from saccade.verbs.reproduce import reproduce


def run(system: str = "sat-soft", data: str = "flickr8k", seed: int = 0, protocol: str = "official", b1: float = 0.66):
    """A recorded run of a captioner, without METEOR, as on a machine without Java."""
    made = fake_run(system, data, protocol, "", seed, name=f"{system}-{data}-{protocol}-seed{seed}", n=1000)
    metrics = {f"bleu_{order}_nobp": b1 / order for order in range(1, 5)} | {"bleu_4": 0.15, "length_ratio": 0.9}
    scored = replace(made.evaluation, metrics=metrics, attention={}, baselines={}, intervals={}, counts={})
    return replace(made, evaluation=scored)


def test_cells_stand_beside_the_published_ones() -> None:
    table = CaptionTable([run(seed=0, b1=0.66), run(seed=1, b1=0.68)], ("flickr8k",))
    cell = table.cell("bleu_1_nobp", "sat-soft", "flickr8k")
    assert cell.measured is not None
    assert (cell.measured.mean, cell.measured.seeds, cell.published) == (pytest.approx(0.67), (0, 1), 0.67)
    shown = table.printed("flickr8k")
    assert shown.columns == ["", "encoder", "B-1", "B-2", "B-3", "B-4", "METEOR"]
    assert shown.rows[0][:3] == ["Soft attention", "–", "67.00±1.41 (67.00)\n2 × 1,000"]
    assert shown.rows[0][6] == "– (18.93)"  # there was a run, but no Java
    assert shown.rows[1] == [
        "Hard attention", "–", "no run (67.00)", "no run (45.70)", "no run (31.40)", "no run (21.30)", "no run (20.30)",
    ]  # fmt: skip
    assert shown.rows[2] == ["Google NIC", "–", "(63.00)", "(41.00)", "(27.00)", "–", "–"]


def test_systems_that_the_paper_quotes_stand_where_it_quotes_them() -> None:
    rows = {name: [row[0] for row in CaptionTable([]).printed(name).rows] for name in ("flickr8k", "coco")}
    assert rows["flickr8k"] == ["Soft attention", "Hard attention", "Google NIC", "Log Bilinear"]
    assert rows["coco"][2:] == ["Google NIC", "Log Bilinear", "CMU/MS Research", "MS Research", "BRNN"]


def test_what_the_paper_does_not_print_has_a_table_of_its_own() -> None:
    table = CaptionTable([run()], ("flickr8k",))
    (row,) = table.beside("flickr8k").rows
    assert row == ["Soft attention", "–", "15.00", "90.00", "–", "–", "–"]
    assert not CaptionTable([]).beside("coco").rows


def test_ablations_get_rows_and_other_data_do_not() -> None:
    runs = [run("sat-none", b1=0.5), run("sat-lambda-2", b1=0.4), run("sat-soft-ungated"), fake_run("soft", "mref")]
    table = CaptionTable(runs, ("flickr8k",))
    assert [row[0] for row in table.printed("flickr8k").rows][2:5] == ["Soft, no β", "No attention", "sat-lambda-2"]
    assert table.printed("flickr8k").rows[3][2] == "50.00\n1 × 1,000"
    assert "soft" not in table.systems
    assert [row[0] for row in CaptionTable([]).printed("flickr8k").rows][2] == "Google NIC"  # no run, no row


def test_the_papers_setting_takes_the_place_of_a_row_without_a_run() -> None:
    """The published numbers stand once, and the encoder of a run is named."""
    paper = run("sat-soft-paper", protocol=DEV)
    seen = {"name": "sat-soft", "config": {"backbone": "vgg19"}}
    rows = CaptionTable([replace(paper, recipe={**paper.recipe, "model": seen})], protocol=DEV).printed("flickr8k").rows
    assert [row[:2] for row in rows[:2]] == [["Hard attention", "–"], ["Soft, the paper's setting", "vgg19"]]
    assert rows[1][2] == "66.00 (67.00)\n1 × 1,000"
    both = CaptionTable([paper, run(protocol=DEV)], protocol=DEV).printed("flickr8k").rows
    assert [row[0] for row in both[:3]] == ["Soft attention", "Hard attention", "Soft, the paper's setting"]


def test_ablations_are_recipes() -> None:
    assert set(ABLATIONS) <= set(packaged_recipes())


def test_runs_on_dev_pictures_are_another_table() -> None:
    runs = [run(b1=0.5), run(protocol=DEV, b1=0.6)]
    assert CaptionTable(runs).cell("bleu_1_nobp", "sat-soft", "flickr8k").measured.mean == 0.5
    dev = CaptionTable(runs, protocol=DEV)
    assert dev.cell("bleu_1_nobp", "sat-soft", "flickr8k").measured.mean == 0.6
    assert "dev pictures" in dev.printed("flickr8k").note
    assert not CaptionTable(runs).printed("flickr8k").note


def test_only_cells_whose_pictures_are_there_are_trained() -> None:
    table = CaptionTable.of_references([run(seed=0, protocol=DEV)], ["flickr8k:/my/pictures", "coco"], DEV)
    assert table.data == ("flickr8k", "coco")
    jobs = table.missing(2)
    assert [(job.system, job.seed) for job in jobs] == [("sat-soft", 1), ("sat-hard", 0), ("sat-hard", 1)]
    assert jobs[0].name == "sat-soft-flickr8k-dev-seed1"
    assert jobs[0].overrides == ()
    words = jobs[0].words(["batch_size=8"], Path("out"))
    assert words[2:7] == ["sat-soft", "--data", "flickr8k:/my/pictures", "--protocol", "dev"]
    command = jobs[0].command([], Path("out"))
    assert "--data flickr8k:PATH" in command  # a record tells no paths
    assert "/my/pictures" not in command
    assert not CaptionTable([]).missing(3)


def test_a_cell_keeps_its_first_run_of_a_seed() -> None:
    table = CaptionTable([run(seed=0)])
    assert table.with_runs([run(seed=0, b1=0.1)]).runs == tuple(table.runs)
    assert len(table.with_runs([run(seed=0, protocol=DEV), run(seed=1)]).runs) == 3


def test_runs_otherwise_taught_stand_by_name() -> None:
    table = CaptionTable([], ("flickr8k",))
    shown = table.otherwise([run(), run(protocol=DEV), run(data="coco")], "flickr8k")
    assert [row[:2] for row in shown.rows] == [["sat-soft-flickr8k-official-seed0", "66.00"]]
    assert shown.rows[0][5:] == ["–", "90.00"]  # no Java; the length ratio


@pytest.mark.parametrize(
    ("references", "protocol", "complaint"),
    [
        (["flickr9k:/x"], "official", "did you mean 'flickr8k'"),
        (["coco"], "devv", "protocol 'devv': did you mean 'dev'"),
    ],
)
def test_unknown_names_are_refused(references: list[str], protocol: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        CaptionTable.of_references([], references, protocol)


def on_the_way(known: RecordedRun, points: list[tuple[float, float]]) -> RecordedRun:
    rows = [
        {"step": step, "phase": "decoder", "kind": "validation", "values": {"log_likelihood": x, "bleu_4": y}}
        for step, (x, y) in enumerate(points, start=1)
    ]
    return replace(known, course=tuple(rows))


def test_the_curve_comes_from_what_runs_kept(monkeypatch) -> None:
    assert likelihood_figure(CaptionTable([run()], ("flickr8k",))) == []
    runs = [
        on_the_way(run(), [(-4.0, 0.05), (-3.0, 0.2), (-3.2, 0.21)]),
        on_the_way(run("sat-hard"), [(-4.0, 0.05)]),  # one point is no curve
        on_the_way(run("sat-none"), [(-4.0, 0.04), (-3.5, 0.1)]),
    ]
    kept = {}
    monkeypatch.setattr(
        "saccade.families.caption.reproduction.table1.line_panels",
        lambda panels, **options: kept.update(panels) or (None, None),
    )
    (drawing,) = likelihood_figure(CaptionTable(runs, ("flickr8k", "coco")))
    drawing.draw("light")
    assert list(kept["Flickr8k"]) == ["Soft attention", "No attention"]
    line = kept["Flickr8k"]["Soft attention"]
    assert (list(line.x), list(line.y)) == ([-4.0, -3.0, -3.2], [0.05, 0.2, 0.21])  # in the order of training


def test_reproduce_prints_writes_and_tells_json(tmp_path: Path, monkeypatch) -> None:
    known: list[RecordedRun] = [on_the_way(run(), [(-4.0, 0.05), (-3.0, 0.2)])]
    monkeypatch.setattr("saccade.families.caption.reproduction.recorded_runs", lambda: known)
    result = reproduce("sat-table1", data=["flickr8k"], out=tmp_path / "out")
    assert [table.title.split(":")[0] for table in result.tables] == [
        "Table 1",
        "with brevity penalty, and more, % on Flickr8k",
    ]
    assert [path.name for path in result.figures] == ["sat-likelihood.png"]
    page = result.report.read_text(encoding="utf-8")
    for words in ("Xu et al. 2015", "66.00 (67.00)", "Log Bilinear", "Section 4.3"):
        assert words in page, words
    cells = {(cell["system"], cell["metric"]): cell for cell in result.to_json()["cells"]}
    assert cells["sat-soft", "bleu_1_nobp"]["mean"] == 0.66
    assert cells["sat-hard", "meteor"]["published"] == 0.2030
    assert ("sat-soft", "cider") not in cells  # neither measured nor printed


def test_the_page_shows_differences_where_both_have_runs() -> None:
    pair = [run("sat-soft-tuned", b1=0.7), run("sat-none-tuned")]
    titles = [section.title for section in caption_page(CaptionTable(pair), []).sections]
    assert titles[:2] == ["Table 1", "Differences"]
    assert "Differences" not in [section.title for section in caption_page(CaptionTable(pair[:1]), []).sections]


def test_people_stand_beside_the_models_where_their_captions_are_at_hand(tmp_path: Path, monkeypatch) -> None:
    """Two dev pictures of three captions, and no test pictures: under "dev" the dev pictures are tested on."""
    (tmp_path / "Images").mkdir()
    said = {
        "t.jpg": ["A cat ."] * 3,
        "a.jpg": ["A dog's ball .", "a dog 's ball", "a ball"],
        "b.jpg": ["Two birds"] * 3,
    }
    for name in said:
        (tmp_path / "Images" / name).write_bytes(b"not read")
    lines = [f"{name}#{turn}\t{text}" for name, texts in said.items() for turn, text in enumerate(texts)]
    (tmp_path / "Flickr8k.token.txt").write_text("\n".join(lines))
    (tmp_path / "Flickr_8k.trainImages.txt").write_text("t.jpg")
    (tmp_path / "Flickr_8k.devImages.txt").write_text("a.jpg\nb.jpg")
    monkeypatch.setattr("saccade.families.caption.reproduction.recorded_runs", lambda folder=None: ())
    monkeypatch.setattr("saccade.metrics.text.meteor.meteor_missing", lambda: "not here")
    shown, people = reproduce("sat-table1", data=[f"flickr8k:{tmp_path}"], protocol="dev").tables
    assert people.title == "people against people, BLEU without brevity penalty, % on Flickr8k"
    assert people.columns[:7] == ["", *shown.columns[2:], "length"]
    assert people.rows[0][:2] == ["People", "100.00"]  # every word of everybody is in a caption of the others
    assert people.rows[0][5] == "–"  # METEOR, without Java
    assert "Each of 3 captions of 2 pictures" in people.note
    assert len(reproduce("sat-table1", data=[f"flickr8k:{tmp_path}"]).tables) == 1  # no test pictures
