"""The model card: ``card.md``, written from the facts and from nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from saccade.errors import SaccadeError
from saccade.families import families, model_spec
from saccade.families.contract import load_target
from saccade.models.io.facts import Calibration, InputsNote, ModelFacts, Score

_MARKUP = re.compile(r"[\\`*_\[\]|~#!>]")
_ANY = "any question, in the words below"

PUBLISHED_ELSEWHERE = (
    "published: the number in the paper. Its protocol, data, split and drawing may differ from those of this row; "
    "docs/results.md says where they do, and compares what was made in the same way."
)
"""Said below scores that stand beside published ones."""


def model_card(facts: ModelFacts) -> str:
    """Markdown: what it is, how to use it, scores, data, deviations, licence."""
    name = facts.name or "path/to/this/folder"
    lines = [
        f"# {facts.name or facts.architecture}",
        "",
        _lead(facts),
        "",
        f"- asks: {_ANY if _takes_text(facts) else _listed(facts.queries)}",
        f"- answers: {_answers(facts)}",
        *_input(facts),
        f"- parameters: {facts.parameters:,}",
        f"- weights: SHA-256 `{facts.sha256}`" + (f", parameters as {facts.dtype}" if facts.dtype != "float32" else ""),
        *_elsewhere(facts),
        *(["- for research only: see the licence below"] if facts.research_only else []),
        "",
        "## Use",
        "",
        "```python",
        "import saccade",
        "",
        f'seen = saccade.load("{name}").look("{_sample(facts)}"'
        + (f", ask={json.dumps(asked, ensure_ascii=False)})" if (asked := _sample_question(facts)) else ")"),
        "seen.answer, seen.confidence",
        'seen.save("out")',
        "```",
        "",
        "## Scores",
        "",
        *_scores(facts.scores),
        "",
        "## How sure it is, and what it knows",
        "",
        *_calibration(facts.calibration),
        *_inputs(facts.inputs),
        *_premise(facts),
        "",
        "## Training",
        "",
        *_pairs("model", facts.model),
        *_pairs("data", facts.data),
        *_pairs("", {"protocol": facts.protocol, "seed": facts.seed}),
        *_recipe(facts),
        *_pairs("", {**facts.training, "revision": facts.revision, "data_changes": None}),
        *(f"- the data changed during training, which was accepted: {each}" for each in _changes(facts)),
        "",
        "The whole recipe, as it was resolved, stands in `config.json`.",
        "",
        "## Deviations from the paper",
        "",
        *([f"- {each}" for each in facts.deviations] or ["See the head of the model's source file."]),
        "",
        "## Licence",
        "",
        facts.licence,
        "",
    ]
    return "\n".join(lines)


def _lead(facts: ModelFacts) -> str:
    try:
        spec = model_spec(facts.architecture)
    except SaccadeError:  # a card can be written for a model of another catalog
        return f"Architecture `{facts.architecture}`, family `{facts.family}`."
    return f"Architecture `{facts.architecture}` ({spec.summary}; {spec.paper}), family `{facts.family}`."


def _takes_text(facts: ModelFacts) -> bool:
    """Whether it is asked in any words, as its family says; one that is not installed says nothing."""
    known = families().get(facts.family)
    return known is not None and bool(load_target(known.responder).query_kind(facts) == "text")


def _premise(facts: ModelFacts) -> list[str]:
    """What its questions take for granted, as its family says."""
    known = families().get(facts.family)
    told = "" if known is None else load_target(known.responder).premise(facts)
    return [f"- it {told}"] if told else []


def _sample_question(facts: ModelFacts) -> str:
    """The question in the example of use; none where nothing is asked."""
    if _takes_text(facts):
        return "your question"
    return facts.queries[0] if facts.queries else ""


def _sample(facts: ModelFacts) -> str:
    """The path in the example of use."""
    return "path/to/input" if facts.preprocessing is None else "scene.png"


def _input(facts: ModelFacts) -> list[str]:
    """How pictures are prepared, where the model reads pictures."""
    if facts.preprocessing is None:
        return []
    (height, width), fill = facts.preprocessing.size, facts.preprocessing.fill
    return [f"- input: {height}×{width} RGB; a picture is laid inside undistorted, border {fill:g}"]


def _elsewhere(facts: ModelFacts) -> list[str]:
    """Where the rest of the weights is, if the folder does not hold them all."""
    sources = []
    if facts.base is not None:
        sources.append((f"on top of the ImageNet weights of `{facts.base.backbone}`", facts.base.sha256))
    if facts.beside is not None:
        sources.append((f"beside the model `{facts.beside.name}`, with which it shares weights", facts.beside.sha256))
    return [f"- {source} (SHA-256 `{digest}`), which it needs to load" for source, digest in sources]


def _changes(facts: ModelFacts) -> list[str]:
    """Changes of the data between two sittings of a run, in words."""
    found = facts.training.get("data_changes")
    return [str(each) for each in found] if isinstance(found, list) else []


def _answers(facts: ModelFacts) -> str:
    return f"sentences, of {len(facts.answers):,} words" if facts.sentences else _listed(facts.answers)


def _listed(words: tuple[str, ...]) -> str:
    return ", ".join(map(_escaped, filter(None, words))) or "nothing in particular"


def _escaped(label: str) -> str:
    """A label as text: whatever a table called its answers, it is no markup, no link and no line of its own."""
    return _MARKUP.sub(r"\\\g<0>", " ".join(label.split())).replace("&", "&amp;").replace("<", "&lt;")


def _scores(scores: tuple[Score, ...]) -> list[str]:
    if not scores:
        return ["Not scored yet: `saccade evaluate` does it."]
    lines = ["| data | split | protocol | n | seed | metric | value | published |", "|---|---|---|---|---|---|---|---|"]
    for score in scores:
        part = f" ({score.scored_part})" if score.scored_part else ""
        where = f"| {score.data} | {score.split}{part} | {score.protocol or '–'} |"
        for metric, value in {**_numbers(score.metrics), **_numbers(score.attention)}.items():
            published = score.published.get(metric)
            n = score.counts.get(metric, score.n)  # deletion and insertion are measured on fewer pictures
            printed = "–" if published is None else f"{published:.4f}"
            told = f"{value:g} {score.units[metric]}{'s' * (value != 1)}" if metric in score.units else f"{value:.4f}"
            lines.append(f"{where} {n:,} | {_plain(score.seed)} | {metric} | {told} | {printed} |")
    if any(score.published for score in scores):
        lines += ["", PUBLISHED_ELSEWHERE]
    for score in scores:
        lines += _by_query(score)
        lines += _interventions(score)
    return lines


def _by_query(score: Score) -> list[str]:
    """Where maps point, question by question, and for which they are no better than a map that never looks."""
    found = score.by_query()
    if not found:
        return []
    lines = [
        "",
        f"Maps that peak in the right place, by question, beside the best map that never looks ({score.data} "
        f"{score.split}):",
        "",
        "| asked | n | this model | best blind map | difference [95 %, by picture] |",
        "|---|---|---|---|---|",
    ]
    for query, each in found.items():
        ends = ", ".join(f"{100 * end:+.1f}" for end in each.interval)
        blind = f"{100 * each.chance_value:.1f} % ({_escaped(each.chance.replace('_', ' '))})"
        difference = f"{100 * (each.value - each.chance_value):+.1f} [{ends}]"
        lines.append(f"| {_escaped(query)} | {each.n:,} | {100 * each.value:.1f} % | {blind} | {difference} |")
    if level := [query for query, each in found.items() if not each.is_better]:
        lines += [
            "",
            f"Its maps were not found to point better than that when it is asked for: {_listed(tuple(level))}.",
        ]
    return lines


def _calibration(found: Calibration | None) -> list[str]:
    """The temperature of its confidences, and what that changed."""
    if found is None:
        return ["- confidences are not calibrated: they are as the network gives them"]
    where = f"{found.n:,} answers ({found.data})"
    if found.temperature == 1:
        lines = [f"- confidences: softmax(logits), as the network gives them: no temperature helped on {where}"]
    else:
        lines = [f"- confidences: softmax(logits / {found.temperature:g}), fitted on {where}"]
    if found.error_before is not None and found.error_after is not None:
        before, after = (f"{100 * each:.2f} %" for each in (found.error_before, found.error_after))
        lines.append(f"- expected calibration error, test, n = {found.test_n:,}: {before} before, {after} after")
    return lines


def _inputs(found: InputsNote | None) -> list[str]:
    """How it tells inputs that are none of its business."""
    if found is None:
        return ["- what its inputs look like is not known: it cannot tell when an input is foreign to it"]
    lines = [
        f"- trained on {found.of}; an input is called unlike these when p ≤ 0.01, by its `{found.features}` features, "
        f"compared with {found.compared:,} held-out inputs ({found.data})"
    ]
    if found.false_alarms is not None:
        lines.append(f"- false alarms on test inputs: {100 * found.false_alarms:.1f} %")
    if found.found:
        told = ", ".join(f"{kind} {100 * share:.1f} %" for kind, share in found.found.items())
        lines.append(f"- foreign inputs that are found: {told}")
    return lines


def _interventions(score: Score) -> list[str]:
    """One table for each group of scores of maps under intervention, with everyone that has them."""
    lines: list[str] = []
    rows_scored = score.interventions.get("n", 0)
    groups = {name: held for name, held in score.interventions.items() if isinstance(held, Mapping)}
    what = "Maps of re-rendered scenes" if len(groups) > 1 else "Edited attention"
    for group, held in groups.items():
        names = list(_numbers(held.get("scores", {})))
        rows = {"this model": held.get("scores", {}), **held.get("baselines", {})}
        lines += [
            "",
            f"{what}, about the {group} ({score.data} {score.split}, n {rows_scored:,}):",
            "",
            f"| who | {' | '.join(names)} |",
            f"|---{'|---' * len(names)}|",
            *(f"| {who} | {' | '.join(_told(values.get(name)) for name in names)} |" for who, values in rows.items()),
        ]
    return lines


def _told(value: object) -> str:
    return f"{value:.4f}" if isinstance(value, (int, float)) else "–"


def _numbers(values: Mapping[str, Any]) -> dict[str, float]:
    return {key: value for key, value in values.items() if isinstance(value, (int, float))}


def _recipe(facts: ModelFacts) -> list[str]:
    """The recipe in a line for each phase, and what it began with."""
    recipe = facts.recipe
    lines = [f"- recipe: `{recipe['name']}`"] if "name" in recipe else []
    if recipe.get("start"):
        parts = ", ".join(f"`{part}`" for part in recipe.get("start_parts", ["*"]))
        lines.append(f"- began with the weights of {_start(facts)}" + ("" if parts == "`*`" else f": {parts}"))
    for phase in recipe.get("phases", []):
        length = f"{phase['steps']:,} steps" if phase.get("steps") else f"{phase.get('epochs')} epochs"
        optimizer, schedule = phase.get("optimizer", {}), phase.get("schedule", {})
        lines.append(
            f"- phase {phase.get('name')}: {length} of {recipe.get('batch_size')}, {optimizer.get('name')} at "
            f"{optimizer.get('lr')}, weight decay {optimizer.get('weight_decay')}, {schedule.get('name')} schedule"
            + _taught_by(phase.get("loss", "default"))
        )
    return lines


def _start(facts: ModelFacts) -> str:
    """The model that training began with; a model cannot be its own start, so its name means the one shipped before."""
    start = facts.recipe["start"]
    if start != facts.name:
        return f"`{start}`"
    runs = re.findall(r"--start[ =](\S+)", str(facts.training.get("command", "")))
    return f"`{runs[-1]}`, the earlier `{start}`" if runs else f"an earlier `{start}`"


def _taught_by(loss: Mapping[str, object] | str) -> str:
    """The loss of a phase with its numbers: a mapping, or a text in recipes of schema 1; nothing of the default."""
    if isinstance(loss, str):
        return "" if loss == "default" else f", taught by `{loss}`"
    numbers = ", ".join(f"{name} {_setting(value)}" for name, value in loss.items() if name != "name")
    if loss.get("name") == "default" and not numbers:
        return ""
    return f", taught by `{loss.get('name')}`" + (f" ({numbers})" if numbers else "")


def _pairs(group: str, values: Mapping[str, object]) -> list[str]:
    prefix = f"{group}." if group else ""
    return [f"- {prefix}{key}: {_plain(value)}" for key, value in values.items() if value not in (None, "", {}, [])]


def _plain(value: object) -> str:
    if value is None:
        return "–"
    return value if isinstance(value, str) else f"`{json.dumps(value, ensure_ascii=False)}`"


def _setting(value: object) -> str:
    """A setting of a loss in words: a number without needless digits, anything else as it is."""
    return f"{value:g}" if isinstance(value, int | float) else str(value)
