"""The tables of docs/benchmarks.md about a GPU, from the file that ``benchmarks/gpu.py --out`` wrote."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from saccade.verbs.plain_table import PlainTable

RECORDED = Path(__file__).parent.parent / "docs" / "benchmarks" / "h200.json"
_COMMAND = "benchmarks/gpu.py --only"
Row = tuple[str, str, str, str]

LONGEST_NAME = 60
"""Characters of a kernel's name in a table."""


def gpu_figures(report: dict[str, Any]) -> str:
    """What was measured, beside its goal and the section of the command that measures it again."""
    sections = {name: found for name, found in report.get("sections", {}).items() if _is_measured(found)}
    rows = [(*row, f"`{_COMMAND} {name}`") for name, found in sections.items() for row in _ROWS[name](found)]
    if not rows:
        return "Nothing is recorded yet.\n"
    machines = {f"{found['machine']['device']}, torch {found['machine']['torch']}" for found in sections.values()}
    when = sorted({found["machine"]["when"] for found in sections.values()})
    note = f"{'; '.join(sorted(machines))}; {' to '.join(dict.fromkeys((when[0], when[-1])))}."
    return PlainTable("", ("what", "measured", "goal", "command"), rows).markdown() + f"\n{note}\n"


def gpu_kernels(report: dict[str, Any]) -> str:
    """For each training the kernels that take the most time, and the gaps in which none runs."""
    found = report.get("sections", {}).get("busy", {})
    if not found.get("rows"):
        return "Nothing is recorded yet.\n"
    texts = []
    for row in found["rows"]:
        lines = [
            (shortened(each["kernel"]), f"{each['ms']:.3f} ms", f"{100 * each['share']:.1f} %") for each in row["top"]
        ]
        gaps = sum(each["ms"] for each in row["gaps"])
        title = (
            f"**{row['label']}** (`{row['recipe']}`, {row['phase']}): {row['kernels_per_step']:.0f} kernels a step, "
            f"{row['step_ms']:.2f} ms; longer gaps {gaps:.2f} ms"
        )
        texts.append(f"{title}\n\n{PlainTable('', ('kernel', 'a step', 'of all kernels'), lines).markdown()}")
    return "\n".join(texts)


def shortened(kernel: str) -> str:
    """The name of a kernel in a cell: the beginning of one that spells out its template."""
    name = kernel.replace("|", "/")
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"


def _is_measured(found: dict[str, Any]) -> bool:
    return not found.keys() & {"error", "skipped"}


def _tests(found: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    yield "tests marked `gpu`", found["said"], "all pass"


def _scenes(found: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    for name in dict.fromkeys(row["set"] for row in found["rows"]):
        rows = [row for row in found["rows"] if row["set"] == name]
        chunks = ", ".join(f"{row['chunk']:,}" for row in rows)
        rates = ", ".join(f"{row['both_scenes_per_s'] / 1e3:,.0f}k" for row in rows)
        yield f"{name.upper()} scenes, layout and picture, {chunks} at once", f"{rates} a second", "≥ 500k"


def _start(found: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    reached = found["reached_after"]
    text = f"{reached:.1f} s, step {found['reached_step']:,}" if reached else f"not in {found['wall']:.1f} s"
    what = f"`{found['recipe']}`, from the command to {100 * found['target']:.2f} % of validation"
    yield what, f"{text} ({100 * found['accuracy']:.2f} % at the end)", "≤ 20 s"
    yield "its start-up", f"{found['start_up']:.1f} s", "≤ 6 s"
    if found.get("scenes_alone") is not None:
        yield "making the same scenes alone", f"{found['scenes_alone']:.1f} s", "≤ 15 % of the training"


def _busy(found: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    for row in found["rows"]:
        rate = f"{row['examples_per_second']:,.0f} examples a second"
        text = f"{100 * row['busy']:.1f} % (a step {row['step_ms']:.2f} ms, {rate})"
        way = "" if row["compiled"] else ", not compiled"
        yield f"training {row['label']}{way}: share of the time in which the device computes", text, "≥ 90 %"


def _evaluate(found: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    for row in found.get("rows", ()):
        yield f"`evaluate` of `{row['model']}`, {row['n']:,} questions, all scores", f"{row['seconds']:.1f} s", "≤ 8 s"


def _seeds(found: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    what = f"`train {found['recipe']} --seeds 5` ÷ one seed, {found['steps']:,} steps"
    yield what, f"{found['ratio']:.2f} ({found['five']:.1f} and {found['one']:.1f} s)", "≤ 2"


def _hop(found: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    for row in found["rows"]:
        what = f"a memory hop and its gradient, {row['batch']:,} questions, {row['slots']} sentences, d = {row['size']}"
        yield what, f"{row['us']:.0f} µs", "–"


_ROWS = {
    "tests": _tests,
    "scenes": _scenes,
    "start": _start,
    "busy": _busy,
    "evaluate": _evaluate,
    "seeds": _seeds,
    "hop": _hop,
}


def recorded() -> dict[str, Any]:
    """The recorded figures; empty where there are none."""
    return json.loads(RECORDED.read_text("utf-8")) if RECORDED.is_file() else {}
