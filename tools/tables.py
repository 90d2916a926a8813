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
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from saccade.papers.results import Measured, measure, published, recorded_runs, results_folder, rows
from saccade.papers.tables import KINDS, PaperCell, cell_text, cells_of, percent
from saccade.show.tables import ShownTable

ROOT = Path(__file__).parent.parent
FILES = (ROOT / "README.md", ROOT / "docs" / "results.md", ROOT / "docs" / "board.md")
BLOCK = re.compile(r"(<!-- table: ([\w-]+) -->\n).*?(<!-- /table -->)", re.DOTALL)

TEXTS = yaml.safe_load((Path(__file__).parent / "tables.yaml").read_text(encoding="utf-8"))
"""Which systems are in which table, and what is said of them."""
COLUMNS = ("system", "task and score, %", "measured", "published", "what to know")
NOTE = (
    "Measured: mean of the seeds ± standard deviation; below it, seeds × test examples. In brackets: published under "
    "other conditions, given for context."
)
LED = ("cause_top", "misplaced", "map_follow", "true_positive_strength")
BOARD = {
    "scene": ("pointing", "true_positive_strength", "map_follow"),
    "model": ("cause_top", "misplaced", "off_objects"),
}
RIVALS = ("centre", "Sobel edges", "another picture's map", "even map", "target's mask")
STABLE = 0.9  # Kendall's τ between two halves of the photographs, at least


def headline() -> str:
    """Some systems in one line each, for the README."""
    return f"{ShownTable(COLUMNS, [_line(row) for row in TEXTS['systems']]).markdown()}\n{NOTE}\n"


def _line(row: Mapping[str, Any]) -> list[str]:
    main = _measured(*row["main"])
    spread = "" if main.std is None else f" ± {100 * main.std:.1f}"
    measured = f"{_percent(main.mean)}{spread}\n{len(main.seeds)} × {main.n:,}"
    printed = _percent(_published(*row["published"], row["main"][1]))
    printed = printed if row.get("comparable", True) else f"({printed})"
    numbers = {name: _percent(_measured(*figure).mean) for name, figure in row.get("figures", {}).items()}
    numbers |= {name: _percent(_published(*key)) for name, key in row.get("published_figures", {}).items()}
    return [row["label"], row["task"], measured, printed, row["sentence"].format(**numbers)]


def _measured(name: str, metric: str) -> Measured:
    """The mean over the seeds of a cell; ``CELL|BASELINE`` is a baseline of it."""
    found = _recorded(name, metric)
    if found is None:
        raise SystemExit(f"results/ has no {metric} of {name}, which the table of the README shows")
    return found


def _recorded(name: str, metric: str) -> Measured | None:
    cell, _, baseline = name.partition("|")
    metric = f"baseline/{baseline}/{metric}" if baseline else metric
    return measure((run for run in recorded_runs().values() if run.run.rpartition("-seed")[0] == cell), metric)


def _published(table: str, system: str, data: str, metric: str) -> float:
    data, _, protocol = data.partition("-") if table == "memory-table" else (data, "", "")
    wanted = (table, system, data, metric)
    return next(
        row.value
        for row in published()
        if (row.table, row.system, row.data, row.metric) == wanted and protocol in ("", row.protocol)
    )


def _percent(value: float) -> str:
    return f"{100 * value:.1f}"


def pivot(table: str, columns: Sequence[tuple[str, str, str, str]], labels: str) -> str:
    """Systems by columns: measured ± standard deviation (published), and seeds × n of each column."""
    cells: dict[tuple[str, str, str], list[PaperCell]] = {}
    for cell in cells_of(table):
        cells.setdefault((cell.system, cell.data, cell.metric), []).append(cell)
    lines = []
    for system, label in TEXTS["labels"][labels].items():
        chosen = [_chosen(cells.get((system, data, metric), []), wanted) for _, data, metric, wanted in columns]
        if any(chosen):
            seeds = {  # by data and protocol
                tuple(column[1::2]): str(len(cell.measured.seeds))
                for column, cell in zip(columns, chosen)
                if cell and cell.measured
            }
            counts = list(seeds.values()) if len(set(seeds.values())) > 1 else list(seeds.values())[:1]
            lines.append([label, *(cell_text(cell).replace(" ± ", "±") for cell in chosen), "/".join(counts)])
    return ShownTable(["", *(column[0] for column in columns), "seeds"], lines).markdown()


def _chosen(cells: Sequence[PaperCell], wanted: str) -> PaperCell | None:
    """The cell of the first of the wanted protocols (``protocol`` or ``protocol, drawing``) that has a run."""
    for place in wanted.split(" | "):
        for cell in cells:
            if place in (cell.protocol, f"{cell.protocol}, {cell.drawing}") and cell.measured is not None:
                return cell
    return next((cell for cell in cells if cell.published is not None and cell.protocol in wanted), None)


def listing(lines: Mapping[str, str], columns: Sequence[tuple[str, str]]) -> str:
    """Cells of results/ by scores, %, and n of the first; a score ``BASELINE|METRIC`` is of that baseline."""
    shown = []
    for cell, label in lines.items():
        scores = [_recorded("|".join([cell, *wanted.split("|")[:-1]]), wanted.split("|")[-1]) for _, wanted in columns]
        numbers = ["–" if score is None else _percent(score.mean) for score in scores]
        shown.append([label, *numbers, f"{_measured(cell, columns[0][1]).n:,}"])
    return ShownTable(["", *(heading for heading, _ in columns), "n"], shown).markdown()


def parts() -> str:
    """At which parts of birds the map points less often than the place where that part usually is."""
    cell, score = "soft-parts-cub-pictures", "pointing_at_by_query"
    names = ("throat", "crown", "bill", "forehead", "nape", "back", "breast", "belly", "wing")
    found = {
        name: [_measured(where, f"{score}/{name}") for where in (cell, f"{cell}|part_prior_exact")] for name in names
    }
    better = [both for both in found.values() if both[0].mean > both[1].mean]
    own, usual = ([both[place].mean for both in better] for place in (0, 1))
    ranges = [f"{_percent(min(values))} to {_percent(max(values))} %" for values in (own, usual)]
    lost = [
        f"the {name} ({_percent(both[0].mean)} against {_percent(both[1].mean)} %, n = {both[0].n})"
        for name, both in found.items()
        if both not in better
    ]
    return (
        f"At {len(better)} of {len(names)} parts the map points better than the best rule that never looks, the place "
        f"where the part usually is: {ranges[0]} against {ranges[1]}. It is worse at {' and '.join(lost)}.\n"
    )


def leaderboard() -> str:
    """On MREF the models' own maps, and for the sparse model the best and the worst of attribution methods."""
    known = [row for row in rows(results_folder() / "causal.csv") if (row["set"], row["what"]) == ("mref", "value")]
    maps = [row for row in known if row["kind"] == "map" and "random" not in row["model"]]
    maps.sort(key=lambda row: -float(row["cause_top"]))
    attributed = ("own", "occlusion", "gradxinput", "gradcam")
    shown = [row for row in maps if row["method"] in (attributed if row["model"] == "CTX, sparse" else ("own",))]
    lines = [[row["model"], row["method"], *(percent(row[score]) for score in LED)] for row in shown]
    tau = next(row for row in known if row["method"] == "split-half tau")
    lines.append(["split-half τ", "", *(f"{float(tau[score]):.2f}" for score in LED)])
    return ShownTable(["model", "map", *(score.replace("_", " ") for score in LED)], lines).markdown()


def board(about: str, name: str, baselines: Sequence[str] = ()) -> str:
    """Of each network the best, the worst and its own map by the first score, then baselines (none named: all).

    Baselines of the scene are the same for all networks. A heading with a star: see ``STABLE``. n is a column where
    it differs.
    """
    known = [row for row in rows(results_folder() / "causal.csv") if row["set"] == name]
    tau = next(row for row in known if row["method"] == "split-half tau")
    ends = {(row["model"], row["method"], row["what"]): row for row in known}
    measured = [row for row in known if row["what"] == "value" and row["kind"] in KINDS]
    measured = [row for row in measured if any(row[score] for score in BOARD[about])]
    networks = list(dict.fromkeys(row["model"] for row in measured))
    shown = []
    for network in networks:
        maps = [row for row in measured if (row["model"], row["kind"]) == (network, "map")]
        maps.sort(key=lambda row: -float(row[BOARD[about][0]]))
        shown += [row for row in maps if row in (maps[0], maps[-1]) or row["method"] == "own"]
        if about == "model":
            shown += _rivals(measured, network, baselines)
    if about == "scene":
        shown += _rivals(measured, networks[0], baselines)
    counted = len({row["n"] for row in shown}) > 1
    lines, before = [], ""  # A network stands in its first row
    for row in shown:
        method = row["method"] if row["kind"] == "map" else f"*{row['method']}*"
        model = row["model"] if row["kind"] == "map" or about == "model" else ""
        model, before = "" if model == before else model, model
        low, high = (ends[row["model"], row["method"], what] for what in ("low", "high"))
        cells = [_between(row[score], low[score], high[score]) for score in BOARD[about]]
        lines.append([model, method, *cells, *([row["n"]] if counted else [])])
    taus = [f"{float(tau[score]):.2f}" for score in BOARD[about]]
    lines.append(["split-half τ", "", *taus, *([""] if counted else [])])
    stars = ["" if float(tau[score]) >= STABLE else "*" for score in BOARD[about]]
    heads = [score.replace("_", " ") + star for score, star in zip(BOARD[about], stars)]
    return ShownTable(["network", "map", *heads, *(["n"] if counted else [])], lines).markdown()


def _rivals(measured: Sequence[Mapping[str, str]], network: str, names: Sequence[str]) -> list[Mapping[str, str]]:
    rivals = [row for row in measured if row["model"] == network and row["kind"] != "map"]
    return [row for row in rivals if not names or row["method"] in names]


def _between(value: str, low: str, high: str) -> str:
    return f"{percent(value)} ({percent(low)}–{percent(high)})" if value else "–"


def _effects() -> Iterator[tuple[Mapping[str, str], dict[str, float], float]]:
    """Of each network on photographs a line, its effects by what is changed, and those of a patch ÷ an object."""
    known = [row for row in rows(results_folder() / "causal.csv") if row["kind"] == "effect"]
    for network in dict.fromkeys((row["set"], row["model"]) for row in known):
        of_network = [row for row in known if (row["set"], row["model"]) == network]
        effects = {row["method"]: float(row["effect"]) for row in of_network}
        yield of_network[0], effects, effects["patch"] / max(effects["target"], effects.get("others", 0.0))


def moved() -> str:
    """What moves the answers of the networks on photographs, and whether the tool refused the table about the model."""
    changes = {
        "target": "object removed",
        "others": "stamp removed",
        "patch": "patch filled in",
    }
    maps = [row for row in rows(results_folder() / "causal.csv") if row["kind"] == "map" and row["off_objects"]]
    accepted = {(row["set"], row["model"]) for row in maps}
    lines = []
    for row, effects, share in _effects():
        shown = [f"{effects[change]:.3f}" if change in effects else "–" for change in changes]
        refused = "" if (row["set"], row["model"]) in accepted else "yes"
        cells = [percent(row["accuracy"]), *shown, f"{100 * share:.1f}", refused, f"{int(row['scenes']):,}"]
        lines.append([row["set"], row["model"], *cells])
    heads = ["set", "network", "accuracy", *changes.values(), "patch ÷ object, %", "refused", "n"]
    return ShownTable(heads, lines).markdown()


def foreign() -> str:
    """How many foreign pictures shipped models find, and their false alarms: five of them."""
    models = ("hattnet-ctx-sparse-mref", "soft-mref", "crown-cub", "ran-56-cifar10", "sat-soft-photos", "racnn-details")
    kinds = ("letters", "printed digits", "photographs", "inverted", "scans")
    lines = []
    for model in models:
        scores = recorded_runs()[model].scores
        names = [*(f"foreign_found/{kind}" for kind in kinds), "foreign_false_alarms"]
        lines.append([model, *(_percent(scores[name].value) if name in scores else "–" for name in names)])
    return ShownTable(["model", *kinds, "false alarms"], lines).markdown()


TABLES: dict[str, Callable[[], str]] = {
    "headline": headline,
    **{name: partial(pivot, **settings) for name, settings in TEXTS["pivots"].items()},
    **{name: partial(listing, **settings) for name, settings in TEXTS["listings"].items()},
    "parts": parts,
    "leaderboard": leaderboard,
    "foreign": foreign,
    "board-scene": partial(board, "scene", "birds-pets", RIVALS),
    "board-model": partial(board, "model", "pets", ("centre", "target's mask")),
    "board-stamp": partial(
        board, "model", "birds-pets-stamp", ("centre", "even map", "candidate with the largest effect", "target's mask")
    ),
    "board-moved": moved,
}


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
