"""The model card: ``card.md``, written from the facts and from nothing else. ``saccade report`` has the long tables."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from saccade.errors import SaccadeError
from saccade.families import families, model_spec
from saccade.models.facts import ModelFacts, Score

_MARKUP = re.compile(r"[\\`*_\[\]|~#!>]")

PUBLISHED_ELSEWHERE = (
    "published: the number in the paper. Its protocol, data, split and drawing may differ from those of this row; "
    "docs/results.md says where they do, and compares what was made in the same way."
)


def model_card(facts: ModelFacts) -> str:
    """Markdown: what it is, how to use it, scores, training, deviations, licence."""
    owner = families().get(facts.family)
    takes_text = owner is not None and owner.asks_text
    question = "your question" if takes_text else facts.queries[0] if facts.queries else None
    ask = "" if question is None else f", ask={json.dumps(question, ensure_ascii=False)}"
    source = "path/to/input" if facts.preprocessing is None else "scene.png"
    answers = f"sentences, of {len(facts.answers):,} words" if facts.sentences else _listed(facts.answers)
    return "\n".join([
        f"# {facts.name or facts.architecture}",
        "",
        _lead(facts),
        "",
        f"- asks: {'any question, in the words below' if takes_text else _listed(facts.queries)}",
        f"- answers: {answers}",
        *_facts(facts),
        "",
        "## Use",
        "",
        "```python",
        "import saccade",
        "",
        f'seen = saccade.load("{facts.name or "path/to/this/folder"}").look("{source}"{ask})',
        "seen.answer, seen.confidence",
        'seen.save("out")',
        "```",
        "",
        "## Scores",
        "",
        *(_scores(facts.scores) or ["Not scored yet: `saccade evaluate` does it."]),
        "",
        "## Training",
        "",
        *_pairs({"recipe": facts.recipe.get("name"), "protocol": facts.protocol, "seed": facts.seed}),
        *_pairs({f"data.{key}": value for key, value in facts.data.items()}),
        *_pairs({**facts.training, "revision": facts.revision}),
        "",
        "The whole recipe, as it was resolved, stands in `config.json`.",
        "",
        "## Deviations from the paper",
        "",
        *([f"- {deviation}" for deviation in facts.deviations] or ["See the head of the model's source file."]),
        "",
        "## Licence",
        "",
        facts.licence,
        "",
    ])  # fmt: skip


def _lead(facts: ModelFacts) -> str:
    about = ""
    with suppress(SaccadeError):  # a card can be written for a model of another catalog
        spec = model_spec(facts.architecture)
        about = f" ({spec.summary}; {spec.paper})"
    return f"Architecture `{facts.architecture}`{about}, family `{facts.family}`."


def _facts(facts: ModelFacts) -> Iterator[str]:
    if facts.preprocessing is not None:
        (height, width), fill = facts.preprocessing.size, facts.preprocessing.fill
        yield f"- input: {height}×{width} RGB; a picture is laid inside undistorted, border {fill:g}"
    yield f"- parameters: {facts.parameters:,}, stored as {facts.dtype}; SHA-256 `{facts.sha256}`"
    if facts.base is not None:
        yield f"- loads on top of the ImageNet weights of `{facts.base.backbone}` (SHA-256 `{facts.base.sha256}`)"
    if (fit := facts.calibration) is not None:
        yield f"- confidences: softmax(logits / {fit.temperature:g}), fitted on {fit.n:,} answers ({fit.data})"
    if (note := facts.inputs) is not None:
        yield f"- trained on {note.of}; an input unlike {note.compared:,} held-out ones ({note.data}) is pointed out"
    if facts.research_only:
        yield "- for research only: see the licence below"


def _scores(scores: tuple[Score, ...]) -> list[str]:
    """A row for each number of each evaluation."""
    if not scores:
        return []
    lines = ["| data | split | protocol | n | seed | metric | value | published |", "|---|---|---|---|---|---|---|---|"]
    for score in scores:
        split = f"{score.split} ({score.scored_part})" if score.scored_part else score.split
        for metric, value in {**score.metrics, **score.attention}.items():
            if isinstance(value, (int, float)):
                n = score.counts.get(metric, score.n)  # deletion and insertion are measured on fewer pictures
                number = f"{value:g} {score.units[metric]}(s)" if metric in score.units else f"{value:.4f}"
                published = f"{score.published[metric]:.4f}" if score.published.get(metric) is not None else "–"
                cells = (score.data, split, score.protocol or "–", f"{n:,}", score.seed, metric, number, published)
                lines.append(f"| {' | '.join(map(str, cells))} |")
    return [*lines, "", PUBLISHED_ELSEWHERE] if any(score.published for score in scores) else lines


def _listed(words: tuple[str, ...]) -> str:
    return ", ".join(map(_escaped, filter(None, words))) or "nothing in particular"


def _escaped(label: str) -> str:
    """A label as text: whatever a table called its answers, it is no markup, no link and no line of its own."""
    return _MARKUP.sub(r"\\\g<0>", " ".join(label.split())).replace("&", "&amp;").replace("<", "&lt;")


def _pairs(values: Mapping[str, Any]) -> list[str]:
    return [
        f"- {key}: {value if isinstance(value, str) else f'`{json.dumps(value, ensure_ascii=False)}`'}"
        for key, value in values.items()
        if value not in (None, "", {}, [])
    ]
