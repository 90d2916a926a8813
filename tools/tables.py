"""Write the tables of README and docs anew from results/, and add a run to results/.

python tools/tables.py             # every table between <!-- table: NAME --> and <!-- /table -->
python tools/tables.py --check     # changes nothing, fails when a table is not current
saccade evaluate RUN --json > evaluation.json
python tools/tables.py add evaluation.json RUN --name NAME --table hattnet-table1 --command COMMAND
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from saccade.papers.results import Measured, measure, published, recorded_runs, results_folder, rows
from saccade.papers.tables import Cell, cell_text, cells_of, percent, strength_table
from saccade.show.tables import Table

ROOT = Path(__file__).parent.parent
FILES = (ROOT / "README.md", ROOT / "docs" / "results.md")
BLOCK = re.compile(r"(<!-- table: ([\w-]+) -->\n).*?(<!-- /table -->)", re.DOTALL)

Figure = tuple[str, str]
"""A cell and a score: the name of its records up to ``-seed``, and a metric in them."""

COLUMNS = ("system", "task and score, %", "measured", "published", "what to know")
NOTE = (
    "Measured: mean of the seeds ± standard deviation; below it, seeds × test examples. In brackets: published under "
    "other conditions, given for context."
)


@dataclass(frozen=True)
class Row:
    """One system."""

    label: str
    task: str
    main: Figure
    sentence: str
    """With ``{name}`` for each of ``figures`` and ``published``, which are put in as percentages."""
    figures: Mapping[str, Figure] = field(default_factory=dict)
    published: tuple[str, str, str] | None = None
    """Table, system and data set of the paper's row for ``main``."""
    is_comparable: bool = True
    """Whether the paper's number was made under the same conditions."""
    published_figures: Mapping[str, tuple[str, str, str, str]] = field(default_factory=dict)
    """Like ``figures``: table, system, data set and metric."""


_CTX = "hattnet-ctx-mref-authors-merged-authors-drawing"
_SPARSE = "hattnet-ctx-sparse-mref-unlimited-both-drawing"
_STRENGTH = "true_positive_strength"

ROWS = (
    Row(
        "HAttNet-CTX, Seo et al. 2016",
        "colour of the digit asked for (MREF): accuracy",
        (_CTX, "accuracy"),
        "Is right a little less often than published, and lays {here} % of its map on the digit, not {there} %. "
        "Trained by our own settings; the authors' training has recipes and no recorded run yet.",
        {"here": (_CTX, _STRENGTH)},
        ("hattnet-table1", "hattnet-ctx", "mref"),
        published_figures={"there": ("hattnet-table1", "hattnet-ctx", "mref", _STRENGTH)},
    ),
    Row(
        "HAttNet-CTX with our sparse gates",
        "the same, on fresh scenes",
        (_SPARSE, "accuracy"),
        "Lays {here} % of its map on the digit; an even map lays {even} % there.",
        {"here": (_SPARSE, _STRENGTH), "even": (f"{_SPARSE}|uniform", _STRENGTH)},
    ),
    Row(
        "STN, bounded window",
        "the same, on fresh scenes",
        ("stn-mref-unlimited", "accuracy"),
        "Worse than a model that never hears the question ({blind} %); our tuned STN has {tuned} %.",
        {"blind": ("blind-mref-unlimited", "accuracy"), "tuned": ("stn-tuned-mref-unlimited", "accuracy")},
        ("hattnet-table1", "stn", "mref"),
        is_comparable=False,
    ),
    Row(
        "HSAL-RL, Welleck et al. 2017",
        "all digits of a picture (MNIST multisets): exact match",
        ("hsal-plain-mnist-multiset-authors", "exact_match"),
        "Ours has a small backbone at 100 px, not an ImageNet ResNet-34 at 224 px. On fresh scenes our improved one "
        "has {improved} %, a counter without attention {counter} %: attention is not needed here.",
        {
            "improved": ("hsal-mnist-multiset-unlimited", "exact_match"),
            "counter": ("counts-mnist-multiset-unlimited", "exact_match"),
        },
        ("hsal-table1", "hsal", "mnist-multiset"),
        is_comparable=False,
    ),
    Row(
        "Show, Attend and Tell, soft, Xu et al. 2015",
        "captions of photographs (Flickr8k): BLEU-4",
        ("sat-soft-tuned-flickr8k-dev", "bleu_4_nobp"),
        "Ours trains an EfficientNet-Lite0 and is scored on dev pictures; without attention it has {none} %, with the "
        "paper's frozen VGG-19 {paper} %; the shipped 8 MB model has {shipped} %.",
        {
            "none": ("sat-none-tuned-flickr8k-dev", "bleu_4_nobp"),
            "paper": ("sat-soft-paper-flickr8k-dev", "bleu_4_nobp"),
            "shipped": ("sat-soft-photos-flickr8k-dev", "bleu_4_nobp"),
        },
        ("sat-table1", "sat-soft", "flickr8k"),
        is_comparable=False,
    ),
    Row(
        "MemN2N, Sukhbaatar et al. 2015",
        "questions about stories (bAbI, 1,000 a task): mean error",
        ("memn2n-babi-joint-1k", "mean_error"),
        "Best of ten restarts, as in the paper; with 10,000 questions a task {more} %, published: {more_published} %; "
        "our training file of task 3 is generated.",
        {"more": ("memn2n-babi-task-10k", "mean_error")},
        ("memory-table", "memn2n", "babi-joint-1k"),
        published_figures={"more_published": ("memory-table", "memn2n", "babi-task-10k", "mean_error")},
    ),
    Row(
        "DMN, Kumar et al. 2016",
        "the same",
        ("dmn-128-babi-joint-1k", "mean_error"),
        "Ours learns all tasks together, reads in both directions, and has softmax gates and a weighted sum for an "
        "episode; trained task by task it errs more, {task} %.",
        {"task": ("dmn-babi-task-1k", "mean_error")},
        ("memory-table", "dmn", "babi-task-1k"),
        is_comparable=False,
    ),
    Row(
        "Residual attention, Wang et al. 2017",
        "labels (CIFAR-10): accuracy",
        ("ran-56-cifar10-full", "accuracy"),
        "By a schedule of our own. A residual network of its size without attention, trained alike, has {plain} %; the "
        "masks are almost flat.",
        {"plain": ("resnet-56-cifar10-full", "accuracy")},
        ("ran-table", "ran-56", "cifar10"),
        is_comparable=False,
    ),
    Row(
        "RA-CNN, Fu et al. 2017",
        "labels (generated fine details): accuracy",
        ("racnn-details-unlimited", "accuracy"),
        "Crops in the middle give {middle} %: the learned zoom does the work. On birds, which the paper uses, it has "
        "{birds} %, crops in the middle {birds_middle} %: one run, and chance can explain the gain.",
        {
            "middle": ("racnn-centre-details-unlimited", "accuracy"),
            "birds": ("racnn-cub", "accuracy"),
            "birds_middle": ("racnn-centre-cub", "accuracy"),
        },
    ),
)


def systems() -> str:
    """Every system in one line, for the README."""
    table = Table(COLUMNS, [_line(row) for row in ROWS], note=NOTE)
    return f"{table.markdown()}\n{table.note}\n"


def _line(row: Row) -> list[str]:
    held = _measured(row.main)
    spread = "" if held.std is None else f" ± {100 * held.std:.1f}"
    measured = f"{_percent(held.mean)}{spread}\n{len(held.seeds)} × {held.n:,}"
    printed = "–"
    if row.published is not None:
        printed = _percent(_published((*row.published, row.main[1])))
        printed = printed if row.is_comparable else f"({printed})"
    numbers = {name: _percent(_measured(figure).mean) for name, figure in row.figures.items()}
    numbers |= {name: _percent(_published(key)) for name, key in row.published_figures.items()}
    return [row.label, row.task, measured, printed, row.sentence.format(**numbers)]


def _measured(figure: Figure) -> Measured:
    """The mean over the seeds of a cell; ``CELL|BASELINE`` is a baseline of it."""
    name, metric = figure
    cell, _, baseline = name.partition("|")
    metric = f"baseline/{baseline}/{metric}" if baseline else metric
    found = measure((run for run in recorded_runs().values() if run.run.rpartition("-seed")[0] == cell), metric)
    if found is None:
        raise SystemExit(f"results/ has no {metric} of {name}, which the table of the README shows")
    return found


def _published(key: tuple[str, str, str, str]) -> float:
    table, system, data, metric = key
    data, _, protocol = data.partition("-") if table == "memory-table" else (data, "", "")
    wanted = (table, system, data, metric)
    return next(
        row.value
        for row in published()
        if (row.table, row.system, row.data, row.metric) == wanted and protocol in ("", row.protocol)
    )


def _percent(value: float) -> str:
    return f"{100 * value:.1f}"


Column = tuple[str, str, str, str]
"""A heading, a data set, a metric, and the protocols that count, the first that has a run before the others."""


def pivot(table: str, columns: Sequence[Column], labels: Mapping[str, str]) -> str:
    """Systems by columns: measured ± standard deviation (published), and seeds × n of each column."""
    cells: dict[tuple[str, str, str], list[Cell]] = {}
    for cell in cells_of(table):
        cells.setdefault((cell.system, cell.data, cell.metric), []).append(cell)
    lines = []
    for system, label in labels.items():
        chosen = [_chosen(cells.get((system, data, metric), []), wanted) for _, data, metric, wanted in columns]
        if any(chosen):
            counts = [f"{len(cell.measured.seeds)}" if cell and cell.measured else "–" for cell in chosen]
            counts = counts if len(set(counts)) > 1 else counts[:1]
            lines.append([label, *(cell_text(cell).replace(" ± ", "±") for cell in chosen), "/".join(counts)])
    table_ = Table(["", *(column[0] for column in columns), "seeds"], lines)
    return table_.markdown()


def _chosen(cells: Sequence[Cell], wanted: str) -> Cell | None:
    """The cell of the first of the wanted protocols (``protocol`` or ``protocol, drawing``) that has a run."""
    for place in wanted.split(" | "):
        for cell in cells:
            if place in (cell.protocol, f"{cell.protocol}, {cell.drawing}") and cell.measured is not None:
                return cell
    return next((cell for cell in cells if cell.published is not None and cell.protocol in wanted), None)


SCENES = ("mref", "mdist", "mbg")
AS_PUBLISHED = "authors merged, authors | authors merged, blend"
FRESH = "unlimited, blend"
QUESTION = {
    "stn-plain": "STN, plain", "stn": "STN, bounded", "soft": "SOFT", "hard": "HARD", "hattnet": "HAttNet",
    "hattnet-ctx": "HAttNet-CTX", "hattnet-ctx-sparse": "CTX, sparse (ours)", "stn-tuned": "STN, tuned (ours)",
    "cross": "control: cross", "film": "control: FiLM", "blind": "control: blind", "uniform": "bound: even map",
    "best cell, one grid": "bound: best cell, one grid",
}  # fmt: skip
MULTISET = {
    "hsal": "HSAL-RL, improved", "hsal-plain": "HSAL-RL, plain", "hsal-ce": "cross-entropy",
    "hsal-ordered": "control: reading order", "hsal-oracle": "control: multiset loss", "counts": "control: counter",
}  # fmt: skip
CAPTION = {
    "sat-soft-paper": "soft, the paper's setting", "sat-soft-tuned": "soft, tuned", "sat-hard-tuned": "hard, tuned",
    "sat-none-tuned": "no attention, tuned", "sat-soft-photos": "`sat-soft-photos`, shipped",
}  # fmt: skip
STORY = {
    "memn2n-bow": "MemN2N, bags of words", "memn2n-pe": "MemN2N PE", "memn2n-ls": "MemN2N PE LS",
    "memn2n": "MemN2N PE LS RN", "dmn": "DMN, supervised", "dmn-128": "DMN, 128 units", "dmn-weak": "DMN, weak",
    "story-lstm": "LSTM",
}  # fmt: skip
LABEL = {
    "ran-56": "Attention-56", "resnet-56": "control: residual network of its size", "ran-56-naive": "naive learning",
    "ran-56-channel": "masks of channels", "ran-56-spatial": "masks of places", "ran-92": "Attention-92",
    "resnet-92": "control: residual network of its size",
}  # fmt: skip
ZOOM = {
    "racnn": "RA-CNN", "racnn-centre": "control: crops in the middle", "racnn-random": "control: crops anywhere",
    "racnn-box": "control: crops round the evidence", "racnn-whole": "control: no crop",
    "racnn-full": "control: all pixels",
}  # fmt: skip
ZOOMED = ("scale1_accuracy", "scale2_accuracy", "scale3_accuracy", "accuracy")
BIRDS = {name: name for name in ("soft-parts", "cross", "hattnet-ctx", "soft", "film", "hard", "blind")}
BABI = ("task-1k", "task-10k", "joint-1k", "joint-10k")
LED = ("cause_top", "misplaced", "map_follow", "true_positive_strength")


def scenes(metric: str, protocol: str) -> str:
    """One score of the question models on the three kinds of scenes."""
    return pivot("hattnet-table1", [(data.upper(), data, metric, protocol) for data in SCENES], QUESTION)


def leaderboard() -> str:
    """The maps of the MREF board that compete and lead in one of the scores about the model, and the models' own."""
    known = [row for row in rows(results_folder() / "causal.csv") if (row["set"], row["what"]) == ("mref", "value")]
    maps = [row for row in known if row["kind"] == "map" and "random" not in row["model"]]
    maps.sort(key=lambda row: -float(row["cause_top"]))
    shown = [row for row in maps if row["method"] == "own" or row["model"] == "CTX, sparse"]
    lines = [[row["model"], row["method"], *(percent(row[score]) for score in LED)] for row in shown]
    tau = next(row for row in known if row["method"] == "split-half tau")
    lines.append(["split-half τ", "", *(f"{float(tau[score]):.2f}" for score in LED)])
    return Table(["model", "map", *(score.replace("_", " ") for score in LED)], lines).markdown()


def foreign() -> str:
    """How many foreign pictures shipped models find, and their false alarms: five of them."""
    models = ("hattnet-ctx-sparse-mref", "soft-mref", "crown-cub", "ran-56-cifar10", "sat-soft-photos", "racnn-details")
    kinds = ("letters", "printed digits", "photographs", "inverted", "scans")
    lines = []
    for model in models:
        scores = recorded_runs()[model].scores
        names = [*(f"foreign_found/{kind}" for kind in kinds), "foreign_false_alarms"]
        lines.append([model, *(_percent(scores[name].value) if name in scores else "–" for name in names)])
    return Table(["model", *kinds, "false alarms"], lines).markdown()


TABLES = {
    "systems": systems,
    "accuracy": lambda: scenes("accuracy", AS_PUBLISHED),
    "strength": lambda: scenes("true_positive_strength", AS_PUBLISHED),
    "accuracy-fresh": lambda: scenes("accuracy", FRESH),
    "strength-fresh": lambda: scenes("true_positive_strength", FRESH),
    "projections": lambda: strength_table().markdown(),
    "birds": lambda: pivot(
        "crown-table", [(name, "cub", name, "pictures") for name in ("accuracy", "swapped_query", "pointing_at")], BIRDS
    ),
    "multisets": lambda: pivot(
        "hsal-table1",
        [
            (f"{title}, {protocol}", data, "exact_match", f"{protocol} disjoint" if protocol == "authors" else protocol)
            for data, title in (("mnist-set", "sets"), ("mnist-multiset", "multisets"))
            for protocol in ("authors", "unlimited")
        ]
        + [("SVHN", "svhn", "exact_match", "")],
        MULTISET,
    ),
    "captions": lambda: pivot(
        "sat-table1",
        [(f"BLEU-{n}", "flickr8k", f"bleu_{n}_nobp", "dev") for n in (1, 2, 3, 4)]
        + [("METEOR", "flickr8k", "meteor", "dev")],
        CAPTION,
    ),
    "stories": lambda: pivot(
        "memory-table", [(name, "babi", "mean_error", name) for name in BABI],
        STORY,
    ),
    "labels": lambda: pivot(
        "ran-table", [(name, "cifar10", "accuracy", name) for name in ("full", "short")], LABEL
    ),
    "zoom": lambda: pivot(
        "racnn-table",
        [(f"{name.removesuffix('_accuracy')}, details", "details", name, "unlimited") for name in ZOOMED]
        + [("all scales, birds", "cub", "accuracy", "")],
        ZOOM,
    ),
    "leaderboard": leaderboard,
    "foreign": foreign,
}  # fmt: skip


def write_tables(*, check: bool) -> int:
    """Write the tables that are not current, or with ``check`` say which they are."""
    stale = []
    for path in FILES:
        old = path.read_text()
        new = BLOCK.sub(lambda match: match[1] + TABLES[match[2]]() + match[3], old)
        if new != old:
            stale.append(path.name)
            if not check:
                path.write_text(new)
    if check and stale:
        print(f"not current: {', '.join(stale)}; run `make tables`")
        return 1
    return 0


def flat(evaluation: Mapping[str, Any]) -> Iterator[tuple[str, str, float]]:
    """Name, column (value, low, high or n) and value of every score in what ``saccade evaluate --json`` printed."""
    groups = [("", evaluation), *(("", part) for part in evaluation.get("interventions", {}).values())]
    for _, group in groups:
        if not isinstance(group, dict):
            continue
        for key in ("metrics", "attention", "scores"):
            yield from ((name, "value", value) for name, value in _leaves(group.get(key) or {}))
        yield from ((f"baseline/{name}", "value", value) for name, value in _leaves(group.get("baselines") or {}))
        yield from ((name, "n", value) for name, value in _leaves(group.get("counts") or {}))
        for name, ends in (group.get("intervals") or {}).items():
            yield from ((name, end, value) for end, value in zip(("low", "high"), ends) if value is not None)


def _leaves(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, float]]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{before}{key}/")
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            yield before + key, value


def add(evaluation: Mapping[str, Any], run: Path, name: str, table: str, command: str, kind: str) -> None:
    """Append a run and its scores to results/; a run of that name that is there already is an error."""
    folder = results_folder()
    if name in recorded_runs():
        sys.exit(f"{name}: results/ has a run of this name")
    config = json.loads((run / "model" / "config.json").read_text(encoding="utf-8"))
    last = json.loads((run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()[-1])
    data, recipe, training = config["data"], config["recipe"], config["training"]
    row = {
        "run": name, "table": table, "kind": kind, "system": name.partition(f"-{data['name']}")[0],
        "data": data["name"],
        "drawing": evaluation.get("drawing") or "", "glyphs": data.get("glyphs", ""),
        "protocol": evaluation.get("protocol") or "", "seed": recipe["seed"], "recipe": recipe["name"],
        "epochs": "+".join(str(phase["epochs"]) for phase in recipe["phases"] if phase.get("epochs")),
        "steps": last["step"], "minutes": round(last["seconds"] / 60, 2), "machine": training.get("machine", ""),
        "commit": config.get("revision") or "", "sha256": config["sha256"][:16], "command": command,
    }  # fmt: skip
    scores: dict[str, dict[str, float]] = {}
    for metric, column, value in flat(evaluation):
        scores.setdefault(metric, {})[column] = value
    _append(folder / "runs.csv", [row])
    _append(
        folder / "scores.csv",
        [
            {"run": name, "split": evaluation["split"], "metric": metric, "n": evaluation["n"]}
            | {column: value if isinstance(value, int) else f"{value:.7g}" for column, value in found.items()}
            for metric, found in scores.items()
            if "value" in found
        ],
    )


def _append(path: Path, lines: Sequence[Mapping[str, object]]) -> None:
    with path.open(encoding="utf-8", newline="") as file:
        columns = next(csv.reader(file))
    with path.open("a", encoding="utf-8", newline="") as file:
        csv.DictWriter(file, columns, lineterminator="\n").writerows(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    commands = parser.add_subparsers(dest="verb")
    adding = commands.add_parser("add", help="append a run to results/")
    adding.add_argument("evaluation", type=Path)
    adding.add_argument("run", type=Path, help="the run folder that was evaluated")
    for option in ("--name", "--table", "--command"):
        adding.add_argument(option, required=True)
    adding.add_argument("--kind", default="main", choices=("main", "variant"))
    options = parser.parse_args()
    if options.verb == "add":
        evaluation = json.loads(options.evaluation.read_text())
        add(evaluation, options.run, options.name, options.table, options.command, options.kind)
        return 0
    return write_tables(check=options.check)


if __name__ == "__main__":
    sys.exit(main())
