"""Write the tables of README and docs anew from docs/results: no number in them is typed by hand.

A table stands between ``<!-- table: NAME -->`` and ``<!-- /table -->``. ``--check`` changes nothing and fails when a
table is not current.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from saccade.tasks.published import PUBLISHED

ROOT = Path(__file__).parent.parent
FILES = (ROOT / "README.md", ROOT / "docs" / "results.md")
BLOCK = re.compile(r"(<!-- table: ([\w-]+) -->\n).*?(<!-- /table -->)", re.DOTALL)


RESULTS = ROOT / "docs" / "results"


def read(pattern: str) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(RESULTS.glob(pattern))]


def percent(value: float | None, interval: list[float] | None = None, digits: int = 2) -> str:
    if value is None:
        return "–"
    text = f"{100 * value:.{digits}f}"
    return text if interval is None else f"{text} [{100 * interval[0]:.{digits}f}, {100 * interval[1]:.{digits}f}]"


def lines(header: list[str], rows: list[list[str]]) -> str:
    out = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(out + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def attributes(pattern: str = "*.json") -> str:
    """One row a recorded run of the attribute task: score, published neighbour, attention, causal tests."""
    header = ["system · data", "protocol, glyphs", "accuracy % (published)", "true-positive strength % (published)"]
    header += [
        "uniform · best on its grid",
        "selectivity %",
        "follow / hold %",
        "test n · seed of the one run",
        "trained in",
    ]
    rows = []
    for result in read(pattern):
        evaluation, recipe, data = result["evaluation"], result["recipe"], result["data"]
        model, name = recipe["model"]["name"], data["name"]
        published = PUBLISHED[model, name].metrics
        attention = evaluation["attention"]
        beside = {name: row.get("true_positive_strength") for name, row in evaluation["baselines"].items()}
        rows.append([
            f"{model.upper()} · {name.upper()}",
            f"{evaluation['protocol']}, {data['glyphs']}",
            f"**{percent(evaluation['metrics']['accuracy'])}** ({percent(published.get('accuracy'))})",
            f"{percent(attention['true_positive_strength'], digits=1)} "
            f"({percent(published.get('true_positive_strength'), digits=1)})",
            f"{percent(beside.get('uniform'), digits=1)} · {percent(beside.get('grid_oracle'), digits=1)}",
            percent(attention["selectivity"], digits=1),
            f"{percent(attention['causal_follow'], digits=1)} / {percent(attention['causal_hold'], digits=1)}",
            f"{evaluation['n']:,} · {recipe['seed']}",
            f"{result['training']['minutes']:.1f} min, {result['training']['machine']}",
        ])  # fmt: skip
    return lines(header, rows)


def attention() -> str:
    """Every attention score beside its baselines and bounds, for each recorded run."""
    text = []
    for result in read("*.json"):
        evaluation = result["evaluation"]
        names = [key for key, value in evaluation["attention"].items() if isinstance(value, float)]
        shown = [name for name in names if any(name in row for row in evaluation["baselines"].values())]
        rows = [["**the model**"] + [percent(evaluation["attention"][name], digits=1) for name in shown]]
        for baseline, row in evaluation["baselines"].items():
            rows.append([baseline] + [percent(row.get(name), digits=1) for name in shown])
        text.append(f"**{result['name']}**\n\n" + lines(["map", *shown], rows))
        intervals = evaluation.get("intervals", {})
        values, counts = evaluation["metrics"] | evaluation["attention"], evaluation["counts"]
        spread = [[name, percent(values.get(name), both), f"{counts[name]:,}"] for name, both in intervals.items()]
        text.append(lines(["score", "value % [95 % interval, by picture]", "n"], spread))
        text.append(f"`{result['command']}`\n")
    return "\n".join(text)


def variants() -> str:
    """Recorded runs of other settings than the recipe's."""
    commands = "".join(f"\n`{result['command']}`\n" for result in read("variants/*.json"))
    return attributes("variants/*.json") + commands


def settings() -> str:
    """What was tried on the validation split before a recipe was fixed; every row that was run."""
    text = []
    for found in read("settings/*.json"):
        rows = [
            [row["setting"], str(row["epochs"]), percent(row["accuracy"], digits=1)
             + (" ← chosen" if number == found["chosen"] else "")]
            for number, row in enumerate(found["rows"])
        ]  # fmt: skip
        where = f"{found['recipe']}, {found['protocol']}, {found['split']} n = {found['n']:,}, seed {found['seed']}"
        text.append(
            f"**{where}, {found['machine']}**: {found['note']}.\n\n" + lines(["setting", "epochs", "accuracy %"], rows)
        )
    return "\n".join(text)


TABLES = {"attributes": attributes, "attention": attention, "variants": variants, "settings": settings}


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
