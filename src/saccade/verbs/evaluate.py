"""Score a trained model: task metrics, attention metrics, baselines and causal tests, as one dictionary."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from saccade.data.scenes.glyphs import meets_training_glyphs
from saccade.data.tables.reader_for_path import with_reader
from saccade.errors import ConfigError
from saccade.families import data_entries, family
from saccade.families.contract import load_target
from saccade.metrics.evaluation import Evaluation
from saccade.models.io.facts import ModelFacts
from saccade.models.io.folder import load_model
from saccade.tasks.eval_request import EvalRequest
from saccade.zoo import resolve


def evaluate(
    model: str | Path,
    *,
    data: str | None = None,
    split: str = "test",
    protocol: str | None = None,
    glyphs: str | None = None,
    drawing: str | None = None,
    limit: int | None = None,
    sweeps: int | None = None,
    twins: int | None = None,
    beam: int | None = None,
    length_penalty: float | None = None,
    device: str = "auto",
    seed: int = 0,
    allow_pack: bool = True,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Evaluation:
    """Score ``model`` on a split of its data (or of ``data``).

    Metrics are fractions 0..1, but for CIDEr-D (0..10), ``length_ratio``, what ``units`` of the result names, and what
    is called ``_raw``, which has units of its own.

    Args:
        model: zoo name, model folder or run folder.
        data: another data set than the model's own, by name; READER:PATH for a model of one's own pictures, which does
            not remember where they were.
        split: val or test.
        protocol: sizes and splits; the model's own by default.
        glyphs: disjoint, merged or pack; the model's own by default. Those that hold what it was trained with are
            refused.
        drawing: blend, authors or both, for questions about generated scenes (``data/scenes/drawing.py``); as the model
            was trained by default.
        limit: at most this many examples; of a table, those about a sample of its pictures.
        sweeps: examples for what costs many passes, such as deletion and insertion of pictures or causal tests of
            stories; None: as many as the task thinks enough.
        twins: for questions about generated scenes: how many of them are asked again about scenes that are rendered
            with one thing changed, for scores of maps under intervention; None: 100, 0: none.
        beam: for a model that says captions: how many are followed side by side; 1 is greedy.
        length_penalty: for such a model: captions are ranked by log p / length^γ, 0 by default.
        device: auto, cpu, cuda, cuda:N or mps.
        seed: of the scenes that it is scored on; not the seed it was trained with.
        allow_pack: let test scenes use the shipped glyphs when MNIST is not there; ``glyphs`` of the result says so.
        progress: called with examples done and examples in all.

    Returns:
        ``model, data, split, protocol, n, seed, metrics, attention, baselines, intervals, counts, seconds`` and what
        else describes the data, such as the ``glyphs`` and ``drawing`` of generated scenes. ``definition`` is the
        version of the rules for baselines and intervals, see :mod:`saccade.metrics.summary`. Of answers that are right
        or wrong there is a ``verdict`` in one line, ``against`` what it is, and, where boxes or masks are known, what
        the answers rest on (``rests_on``); of labels ``confusion``, ``per_class`` and the worst ``mistakes``.
        ``caution`` says it where the model may have learned from what it is scored on.
        ``interventions`` has the scores of maps of scenes that were rendered again, see
        :mod:`saccade.metrics.maps.twins`.
    """
    data = None if data is None else with_reader(data, data_entries())
    folder = resolve(model)
    network, facts = load_model(folder, device)
    _check_glyphs(facts, glyphs, split)
    started = time.monotonic()
    own = family(facts.family)
    task = load_target(own.task).for_data(data or str(facts.data.get("name", "")))
    request = EvalRequest(
        data=data, protocol=protocol, glyphs=glyphs, drawing=drawing, seed=seed, allow_pack=allow_pack
    )
    search: dict[str, Any] = {
        name: each
        for name, each in (("beam", beam), ("length_penalty", length_penalty), ("twins", twins))
        if each is not None
    }
    if unknown := [name for name in search if name not in own.options]:
        raise ConfigError(f"{', '.join(unknown)}: the family '{own.name}' has no such option; leave it out")
    given = search | ({} if sweeps is None else {"sweeps": sweeps})
    scored: Evaluation = task.evaluate(
        network, split=split, limit=limit, progress=progress, **given, **task.eval_kwargs(facts, request)
    )
    result: Evaluation = {"model": facts.name or str(model), "protocol": facts.protocol, "seed": seed, **scored}
    if how := facts.training.get("maps_supervised"):
        result["maps_supervised"] = str(how)
    if learned := facts.training.get("trained_on"):
        result["caution"] = f"this model learned from {learned}"
    result["seconds"] = round(time.monotonic() - started, 2)
    return result


def _check_glyphs(facts: ModelFacts, glyphs: str | None, split: str) -> None:
    """Refuse glyphs that the model was trained with."""
    trained = facts.data.get("glyphs")
    if glyphs is not None and trained is not None and meets_training_glyphs(str(trained), glyphs, split):
        raise ConfigError(
            f"glyphs: this model was trained with '{trained}' glyphs, and the {split} glyphs of '{glyphs}' hold some "
            f"of those; score it with --glyphs {trained}, or train it with --set data.glyphs={glyphs}"
        )
