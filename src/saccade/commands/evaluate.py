"""``evaluate``: task metrics, attention metrics, baselines and causal tests of a model, as one dictionary."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from saccade.commands.verb import Command, Remark, checked, print_table, say, wake_cuda, warn
from saccade.config import Within
from saccade.errors import ConfigError
from saccade.progress import OnProgress, no_progress

if TYPE_CHECKING:
    from saccade.metrics.result import Evaluation

COLUMNS = 5  # Scores side by side in one table: more do not fit a terminal of 80 characters.


@checked
def evaluate(
    model: str | Path,
    *,
    data: str | None = None,
    split: Literal["train", "val", "test"] = "test",
    protocol: str | None = None,
    glyphs: Literal["disjoint", "merged", "pack"] | None = None,
    drawing: Literal["blend", "authors", "both", "mostly-authors"] | None = None,
    limit: Annotated[int | None, Within(1)] = None,
    sweeps: Annotated[int | None, Within(0)] = None,
    twins: Annotated[int | None, Within(0)] = None,
    beam: Annotated[int | None, Within(1)] = None,
    length_penalty: float | None = None,
    device: str = "auto",
    seed: Annotated[int, Within(0)] = 0,
    allow_pack: bool = True,
    on_progress: OnProgress = no_progress,
) -> Evaluation:
    """Score the answers of a model, and its attention beside baselines.

    Metrics are fractions 0..1. CIDEr-D goes from 0 to 10; ``length_ratio``, what ``units`` of the result names, and
    what is called ``_raw`` have units of their own. Tables in a terminal show percent, and CIDEr-D times 100.

    Args:
        model: zoo name, model folder or run folder.
        data: name, path or READER:PATH. A model of your own pictures needs it: it does not remember where they were.
            None: what the model was trained on.
        split: which part of the data.
        protocol: sizes and splits, e.g. unlimited or authors. None: the model's own.
        glyphs: digits of generated scenes. Those that hold what the model was trained with are refused. None: the
            model's own.
        drawing: how generated scenes are drawn. None: the model's own.
        limit: at most this many examples. From a table, those about a sample of its pictures. None: all.
        sweeps: examples for scores that take many passes. These are deletion and insertion, and causal tests of
            stories. None: as the task says.
        twins: scenes to render again with one thing changed, to score maps. 0 is none. None: 100.
        beam: captions followed side by side. 1 is greedy. None: 5.
        length_penalty: captions are ranked by log p / length^this. None: 0.
        device: where to compute: auto, cpu, cuda, cuda:N or mps.
        seed: seed of the scenes it is scored on. It is not the seed of the training.
        allow_pack: let test scenes use the shipped glyphs when MNIST is not there. ``glyphs`` of the result says so.
        on_progress: called with examples done and examples in all.

    Returns:
        ``model, data, split, protocol, n, seed, metrics, attention, baselines, intervals, counts, seconds`` and facts
        about the data; ``definition``, the version of the rules for baselines and intervals (see
        :mod:`saccade.metrics.result`). Where they apply: ``verdict`` and what it is ``against``, ``rests_on``,
        ``confusion``, ``per_class``, ``mistakes``, ``interventions`` (see :mod:`saccade.metrics.maps.twins`), and
        ``caution`` if the model may have learned from what it is scored on.

    Example:
        >>> scores = saccade.evaluate("soft-mref", limit=500)                        # doctest: +SKIP
        >>> scores["metrics"]["accuracy"], scores["attention"], scores["baselines"]  # doctest: +SKIP
    """
    wake_cuda(device)  # before torch is imported, which takes a second
    from saccade.data.scenes.glyphs import meets_training_glyphs
    from saccade.data.tables.readers import with_reader
    from saccade.families.registry import data_entries, family
    from saccade.models.folder import load_model
    from saccade.zoo.folders import resolve

    data = None if data is None else with_reader(data, data_entries())
    folder = resolve(model)
    network, facts = load_model(folder, device)
    trained = facts.data.get("glyphs")
    if glyphs is not None and trained is not None and meets_training_glyphs(str(trained), glyphs, split):
        raise ConfigError(
            f"glyphs: this model was trained with '{trained}' glyphs, and the {split} glyphs of '{glyphs}' hold some "
            f"of those; score it with glyphs={trained}, or train it with data.glyphs={glyphs}"
        )
    started = time.monotonic()
    own = family(facts.family)
    task = own.task()
    changes = {"name": data, "protocol": protocol, "glyphs": glyphs, "drawing": drawing, "seed": seed}
    settings = task.eval_settings(facts, {name: value for name, value in changes.items() if value is not None})
    options = {"beam": beam, "length_penalty": length_penalty, "twins": twins, "sweeps": sweeps}
    chosen = {name: value for name, value in options.items() if value is not None}
    if unknown := [name for name in chosen if name not in own.options]:
        raise ConfigError(f"{', '.join(unknown)}: the family '{own.name}' has no such option; leave it out")
    scored: Evaluation = task.evaluate(
        network, settings, split, facts=facts, limit=limit, allow_pack=allow_pack, on_progress=on_progress, **chosen
    )
    result: Evaluation = {"model": facts.name or str(model), "protocol": facts.protocol, "seed": seed, **scored}
    if how := facts.training.get("maps_supervised"):
        result["maps_supervised"] = str(how)
    if learned := facts.training.get("trained_on"):
        result["caution"] = f"this model learned from {learned}"
    result["seconds"] = round(time.monotonic() - started, 2)
    return result


def show(result: Mapping[str, Any], arguments: Mapping[str, Any], remark: Remark) -> None:
    """Print the tables: answers, attention, and both beside their baselines."""
    from saccade.show.score_tables import score_tables
    from saccade.tasks.describing import MIN_ANSWERS

    shown = dict(result["metrics"])
    if result["n"] < MIN_ANSWERS and shown.pop("calibration_error", None) is not None:
        remark(f"calibration error: {result['n']} answers are too few to tell it, {MIN_ANSWERS} are enough")
    if len(shown.get("accuracy_by_query", ())) == 1:  # the accuracy again
        del shown["accuracy_by_query"]
    for table in score_tables({**result, "metrics": shown}, columns=COLUMNS):
        print_table(table.caption, table.columns, table.texts, note=table.note)
    if result.get("verdict"):
        say(f"{result['verdict']}.")
    if result.get("caution"):
        warn(str(result["caution"]))


COMMAND = Command(
    evaluate,
    show,
    place={"model": "MODEL"},
    leave_out=frozenset({"allow_pack"}),
    example="saccade evaluate soft-mref --limit 500\nsaccade evaluate runs/mine --data csv:my.csv --json > scores.json",
)
