"""Write the tables of README and docs anew from docs/results and docs/benchmarks: no number in them is typed by hand.

A table stands between ``<!-- table: NAME -->`` and ``<!-- /table -->``. ``--check`` changes nothing and fails when a
table is not current. ``saccade reproduce`` prints the same tables, from the same code.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import torch
from gpu_tables import gpu_figures, gpu_kernels, recorded
from systems_table import systems_table

from saccade import families
from saccade.config import from_dict
from saccade.families.caption.reproduction.table1 import DEV, CaptionTable
from saccade.families.classify.reproduction.residual_table import LEGEND as RESIDUAL_LEGEND
from saccade.families.classify.reproduction.residual_table import ResidualTable
from saccade.families.classify.reproduction.zoom_table import LEGEND as ZOOM_LEGEND
from saccade.families.classify.reproduction.zoom_table import ZoomTable
from saccade.families.multiset.reproduction.table1 import LEGEND as MULTISET_LEGEND
from saccade.families.multiset.reproduction.table1 import MultisetTable
from saccade.families.question.reproduction.ablations import ablation_table, penalty_curve, penalty_table
from saccade.families.question.reproduction.absent import absent_table
from saccade.families.question.reproduction.board.recording import recorded_boards
from saccade.families.question.reproduction.board.tables import LEGEND as BOARD_LEGEND
from saccade.families.question.reproduction.board.tables import board_tables, parts_table
from saccade.families.question.reproduction.drawings import drawings_table
from saccade.families.question.reproduction.projections import ProjectionStudy, projection_table
from saccade.families.question.reproduction.readings import reading_table, recorded_readings
from saccade.families.question.reproduction.table1 import LEGEND, Table1
from saccade.families.story.reproduction.memory_table import MemoryTable
from saccade.families.story.reproduction.systems import LEGEND as MEMORY_LEGEND
from saccade.metrics.intervals import mean_interval
from saccade.models.io.facts import ON_GRIDS
from saccade.recorded import RecordedRun, recorded_runs, superseded_runs
from saccade.verbs.plain_table import PlainTable
from saccade.verbs.reproduction.cells import measured_text

ROOT = Path(__file__).parent.parent
FILES = (ROOT / "README.md", *(ROOT / "docs" / f"{name}.md" for name in ("summary", "results", "benchmarks")))
RESULTS = ROOT / "docs" / "results"
BLOCK = re.compile(r"(<!-- table: ([\w-]+) -->\n).*?(<!-- /table -->)", re.DOTALL)


def titled(*tables: PlainTable) -> str:
    """Tables under one another, each with its title and its note."""
    return "\n".join(
        f"**{table.title}**\n\n{table.markdown()}" + (f"\n{table.note}\n" if table.note else "") for table in tables
    )


def systems() -> str:
    """Every system in one line, for the README."""
    table = systems_table(recorded_runs(RESULTS))
    return f"{table.markdown()}\n{table.note}\n"


def table1_short() -> str:
    """Systems × data sets, for the summary of results."""
    table = Table1(recorded_runs(RESULTS)).short()
    return f"{table.markdown()}\n{table.note}\n"


def table1() -> str:
    """Tables 1a and 1b in full."""
    table = Table1(recorded_runs(RESULTS))
    return titled(*(make(data) for make in (table.accuracy, table.strength) for data in table.data)) + f"\n{LEGEND}\n"


def looking() -> str:
    """Selectivity, pointing and the causal tests."""
    table = Table1(recorded_runs(RESULTS))
    return titled(*(found for data in table.data if (found := table.looking(data)).rows))


def baselines() -> str:
    """Every map score beside baselines and bounds, in the setting of the shipped models."""
    table = Table1(recorded_runs(RESULTS))
    metrics = ("true_positive_strength", "selectivity", "pointing", "iou", "pr_auc")
    tables = []
    for data in table.data:
        rows = []
        for row in table.rows:
            cells = [table.cell(metric, row.system, data, table.settings[-1]) for metric in metrics]
            if any(cell.measured for cell in cells):
                told = (
                    "–" if cell.measured is None else measured_text(cell.measured, drawn=cell.drawn) for cell in cells
                )
                rows.append([row.label, *told])
        columns = ("map", *(metric.replace("_", " ") for metric in metrics))
        tables += [PlainTable(f"{data.upper()}, unlimited, %", columns, rows)] if rows else []
    return titled(*tables)


def birds() -> str:
    """What colour is the crown? Answers and where it looked, beside what habit and position alone give."""
    metrics = ("accuracy", "swapped_query", "pointing_at", "attention_near", "distance")
    tables = []
    for split, title in (("pictures", "new pictures of known species"), ("species", "unseen species")):
        found = [run for run in recorded_runs(RESULTS) if run.on == "cub" and run.protocol == split]
        usual = found[0].evaluation.n if found else 0
        rows = [
            [
                run.system + ("" if run.evaluation.n == usual else f", n = {run.evaluation.n:,}"),
                *(_percent(run.value(metric)) for metric in metrics),
            ]
            for run in found
        ]
        baselines = found[0].evaluation.baselines if found else {}
        for name in ("training_prior_by_query", "uniform", "box_centre", "part_prior", "grid_oracle"):
            held = baselines.get(name, {})
            label = name.replace("_", " ") + (", one grid" if name in ON_GRIDS else "")
            rows.append([label, *(_percent(held.get(metric)) for metric in metrics)])
        n = f"{usual:,}"
        columns = ("", *(metric.replace("_", " ") for metric in metrics))
        note = "One grid: 14×14 cells. The map of hattnet-ctx is a product of three grids: these are no bounds for it."
        tables.append(PlainTable(f"{title}, %, n = {n} questions, one seed", columns, rows, note))
        tables += [part_pointing(run, title) for run in found if run.evaluation.by_query()]
    return titled(*tables)


def part_pointing(run: RecordedRun, title: str) -> PlainTable:
    """How often the maps of a run peak near the click, part by part, beside the best map that never looks."""
    score, rows = run.evaluation, []
    for part, found in score.by_query().items():
        low, high = (f"{100 * end:+.1f}" for end in found.interval)
        difference = f"{100 * (found.value - found.chance_value):+.1f} [{low}, {high}]"
        better = "yes" if found.is_better else "worse" if found.interval[1] < 0 else "no"
        right = score.metrics.get("accuracy_by_query", {}).get(part)
        prior = score.baselines.get("part_prior", {}).get("pointing_at_by_query", {}).get(part)
        blind = f"{_percent(found.chance_value)} {found.chance.replace('_', ' ')}"
        shares = map(_percent, (right, found.value, prior))
        rows.append([part, f"{found.n:,}", *shares, blind, difference, better])
    shown = ("accuracy", "pointing at", "part prior", "best blind map")
    columns = ("part", "n", *shown, "difference [95 %, by picture]", "better?")
    note = (
        "Part prior: the cell where the part usually is. Best blind map: of those that never look, the one that points "
        "best at this part; `exact` is to the pixel. The difference is from that one."
    )
    return PlainTable(f"{run.system}, part by part, {title}, %", columns, rows, note)


def board() -> str:
    """The leaderboard of maps: about the scene, about the model, right and wrong answers, planted causes, birds."""
    birds_parts = parts_table(recorded_runs(RESULTS))
    tables = board_tables(recorded_boards(RESULTS))
    return titled(*tables, *([] if birds_parts is None else [birds_parts])) + f"\n{BOARD_LEGEND}\n"


def captions() -> str:
    """Captions of scenes, and of the photographs that have a run."""
    table = CaptionTable(recorded_runs(RESULTS), protocol=DEV)
    told = [data for data in table.data if any(table.of(system, data) for system in table.systems)]
    others = recorded_runs(RESULTS, variants=True)
    tables = [make(data) for data in told for make in (table.printed, table.differences, table.beside)]
    more = [found for data in told if (found := table.otherwise(others, data)).rows]
    return titled(table.scenes(), *tables, *more)


def multisets() -> str:
    """What was read, and where the glimpses fell."""
    table = MultisetTable(recorded_runs(RESULTS))
    looking = [found for column in table.columns() if (found := table.looking(*column)).rows]
    otherwise = table.otherwise(recorded_runs(RESULTS, variants=True))
    return titled(table.answers(), table.differences(), table.trained(), *looking, otherwise) + f"\n{MULTISET_LEGEND}\n"


def memories() -> str:
    """Memory networks on bAbI: mean errors, errors by task, looks, changed stories, cost."""
    table = MemoryTable(recorded_runs(RESULTS))
    tasks = [table.by_task(setting) for setting in table.settings]
    tasks.append(table.carried_over())
    found = [*map(table.overview, table.settings), *tasks, table.looking(), *table.changing(), table.cost()]
    return titled(*(each for each in found if each is not None)) + f"\n{MEMORY_LEGEND}\n"


def residual() -> str:
    """Residual attention networks on CIFAR-10: errors and differences."""
    table = ResidualTable(recorded_runs(RESULTS))
    return titled(table.errors(), table.differences()) + f"\n{RESIDUAL_LEGEND}\n"


def masks() -> str:
    """What the masks of a residual attention network do, for the models that tools/given_masks.py was run on."""
    tables = []
    for path in sorted((RESULTS / "masks").glob("*.json")):
        found = json.loads(path.read_text())
        n, rows = found["n"], []
        for kind, right in found["right"].items():
            held = mean_interval((torch.arange(n) < right).double())
            rows.append([kind, f"{100 * held.mean:.2f} [{100 * held.low:.2f}, {100 * held.high:.2f}]"])
        where = f"{found['model']}, first {n:,} {found['split']} pictures of {found['data']}"
        tables.append(PlainTable(f"{where}: which masks were used", ("masks", "accuracy % [95 %]"), rows))
        varied = [[look, *(f"{value:.4f}" for value in values)] for look, values in found["varies"].items()]
        columns = ("module", "a channel of the mask", "its mean over channels, which is drawn")
        tables.append(PlainTable("standard deviation of its own masks over the cells", columns, varied))
    return titled(*tables)


def marks() -> str:
    """How right a scale is by what its crop holds, for the models that tools/crops_and_marks.py was run on."""
    tables = []
    for path in sorted((RESULTS / "crops").glob("*.json")):
        found = json.loads(path.read_text())
        rows = []
        for scale, shares in found["right"].items():
            told = (f"{100 * right / n:.1f} of {n:,}" if n else "none" for right, n in shares.values())
            rows.append([scale, *told])
            columns = ("crop of", *(f"it holds {share} of the mark" for share in shares))
        where = f"{found['model']}, first {found['n']:,} {found['split']} pictures of {found['data']}"
        tables.append(PlainTable(f"{where}: right, %, by what the crop holds", columns, rows))
    return titled(*tables)


def zoom() -> str:
    """RA-CNN and controls of its zoom: what each scale says, and where the crops lie."""
    table = ZoomTable(recorded_runs(RESULTS))
    return titled(*(table.answers(data) for data in table.names), *table.further()) + f"\n{ZOOM_LEGEND}\n"


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"


def runs() -> str:
    """Every recorded run: what it gave, how it was made."""
    return listed(recorded_runs(RESULTS))


SCORES = ("accuracy", "exact_match", "bleu_4_nobp")
"""The first that a run has stands for it in the list of runs."""


def listed(found: tuple[RecordedRun, ...]) -> str:
    """Runs, one a line: the score that stands for it, on how much, in how long, by which command."""
    rows = []
    for run in found:
        score = next((name for name in SCORES if run.value(name) is not None), SCORES[0])
        value, interval = run.value(score), run.interval(score)
        around = "" if interval is None else f" [{100 * interval[0]:.2f}, {100 * interval[1]:.2f}]"
        minutes = f"{run.training['minutes']:.1f} min, {run.training['machine']}"
        named = "" if score == SCORES[0] else f"{score.removesuffix('_nobp').replace('_', ' ')} "
        told = "–" if value is None else f"{named}{100 * value:.2f}{around}"
        rows.append([run.name, told, f"{run.evaluation.n:,}", minutes, f"`{run.again}`"])
    return PlainTable(
        "", ("run", "accuracy or other score, % [95 %, by picture]", "n", "trained in", "command"), rows
    ).markdown()


def variants() -> str:
    """Ablations, and the commands behind them."""
    main, others = recorded_runs(RESULTS), recorded_runs(RESULTS, variants=True)
    points = penalty_curve(main, others)
    tables = [ablation_table(main, others)] + ([penalty_table(points)] if len(points) > 1 else [])
    return titled(*tables) + "\n" + listed(others)


def settings() -> str:
    """What was tried on the validation split before a recipe was fixed; every row that was run."""
    tables = []
    for path in sorted((RESULTS / "settings").glob("*.json")):
        found = json.loads(path.read_text())
        rows = [
            [row["setting"], str(row["epochs"]), f"{100 * row['accuracy']:.1f}"
             + (" ← chosen" if number == found["chosen"] else "")]
            for number, row in enumerate(found["rows"])
        ]  # fmt: skip
        where = f"{found['recipe']}, {found['protocol']}, {found['split']} n = {found['n']:,}, seed {found['seed']}"
        tables.append(
            PlainTable(f"{where}, {found['machine']}: {found['note']}", ("setting", "epochs", "accuracy %"), rows)
        )
    return titled(*tables)


def projections() -> str:
    """What the projection decides, for the models that tools/projections.py was run on."""
    found = [json.loads(path.read_text()) for path in sorted((RESULTS / "projections").glob("*.json"))]
    return titled(*(projection_table(from_dict(ProjectionStudy, each)) for each in found))


def readings() -> str:
    """Table 1b under every reading of the paper."""
    main, others = recorded_runs(RESULTS), recorded_runs(RESULTS, variants=True)
    return titled(*(reading_table(each, main, others) for each in recorded_readings(RESULTS)))


def coverage() -> str:
    """Every table and figure of the papers, family by family."""
    rows = [[item.paper, item.item, item.state, item.note] for items in families.coverage().values() for item in items]
    return PlainTable("", ("paper", "table or figure", "state", "by what, or why not"), rows).markdown()


def depth() -> str:
    """How many foreign pictures of each kind each shipped model finds, its false alarms, and its calibration."""
    held = [json.loads(path.read_text()) for path in sorted((RESULTS / "depth").glob("*.json"))]
    kinds = list(dict.fromkeys(kind for each in held for kind in each["inputs"]["found"]))
    rows, sure = [], []
    for each in held:
        told, found = each["inputs"], each["calibration"]
        shares = (_percent(told["found"].get(kind)) for kind in kinds)
        name = each["model"]
        rows.append([name, told["features"], *shares, _percent(told["false_alarms"]), f"{each['foreign_n']:,}"])
        if found is not None:
            errors = (_percent(found[key]) for key in ("error_before", "error_after"))
            sure.append([name, f"{found['temperature']:g}", f"{found['n']:,}", *errors, f"{found['test_n']:,}"])
    note = "At p ≤ 0.01. False alarms: of 1,000 test pictures of the right kind. –: its own kind, or no test part."
    columns = ("model", "temperature", "n", "error before", "error after", "test n")
    return titled(
        PlainTable("Foreign pictures that are found, %", ("model", "by", *kinds, "false alarms", "n each"), rows, note),
        PlainTable("Expected calibration error, %", columns, sure),
    )


def superseded() -> str:
    """Records that no table shows any more, with what they said and why that does not count."""
    rows = []
    for run in superseded_runs(RESULTS):
        score = next((name for name in SCORES if run.value(name) is not None), SCORES[0])
        rows.append([run.name, f"{score} {_percent(run.value(score))}", f"{run.evaluation.n:,}", run.superseded])
    return PlainTable("", ("run", "what it said, %", "n", "why it no longer counts"), rows).markdown()


TABLES = {
    "systems": systems,
    "table1-short": table1_short,
    "table1": table1,
    "looking": looking,
    "baselines": baselines,
    "birds": birds,
    "captions": captions,
    "multisets": multisets,
    "memories": memories,
    "residual": residual,
    "masks": masks,
    "zoom": zoom,
    "marks": marks,
    "runs": runs,
    "projections": projections,
    "drawings": lambda: titled(drawings_table(recorded_runs(RESULTS))),
    "absent": lambda: titled(absent_table(recorded_runs(RESULTS, variants=True))),
    "readings": readings,
    "board": board,
    "coverage": coverage,
    "variants": variants,
    "settings": settings,
    "superseded": superseded,
    "depth": depth,
    "gpu": lambda: gpu_figures(recorded()),
    "gpu-kernels": lambda: gpu_kernels(recorded()),
}


def main() -> int:
    stale = []
    for path in FILES:
        old = path.read_text()
        new = BLOCK.sub(lambda match: match[1] + TABLES[match[2]]() + match[3], old)
        if new != old:
            stale.append(path.name)
            if "--check" not in sys.argv:
                path.write_text(new)
    if "--check" in sys.argv and stale:
        print(f"not current: {', '.join(stale)}; run `make tables`")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
