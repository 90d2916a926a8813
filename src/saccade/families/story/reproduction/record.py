"""One record of all runs of a system: every restart tested on the official files, and the kept weights scored in full.

A system that is trained task by task has one run folder for each task. One that is trained on all tasks together has
one run folder in all. Either way there is one record.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from saccade.atomic import make_folder, write_json_by_key
from saccade.config import from_dict, to_dict
from saccade.data.tables.references import split_reference
from saccade.errors import CheckpointError, ConfigError
from saccade.families.splits import config_of
from saccade.families.story.data import READERS, StoryDataConfig
from saccade.families.story.readers.babi import babi_files
from saccade.families.story.scores import CAUSAL, StoryScores, has_left_out, is_supervised, note_on, scored_questions
from saccade.families.story.scoring.responding import errors_by_task
from saccade.models.io.facts import ModelFacts
from saccade.models.io.folder import load_model
from saccade.models.story import StoryModel
from saccade.recorded import RecordedRun, Restarts
from saccade.recorded.recipe_versions import migrate_recipe

DIGITS = 5
CAUSAL_OF_EACH = 100
"""Questions of the causal tests for each of several runs, at least."""

Progress = Callable[[str, int, int], None]


def record_runs(
    runs: Sequence[Path],
    *,
    system: str | None = None,
    data: str,
    command: str,
    folder: Path,
    generated: Collection[int] = (),
    device: str = "auto",
    revision: str | None = None,
    progress: Progress = lambda what, done, total: None,
) -> RecordedRun:
    """Test all restarts of ``runs`` and write ``folder/SYSTEM-babi-PROTOCOL-SIZE-seedN.json``.

    Args:
        runs: run folders, each with ``model/`` and, of several restarts, ``replicas/N/``.
        system: the row of the table, for example ``memn2n-ls-1hop``; None: the name of the recipe.
        data: ``babi:PATH`` of the official files.
        command: what trained them.
        folder: made if it is not there.
        generated: numbers of tasks whose training questions were generated, of runs that do not say it themselves, as
            those do that were trained on generated stories or with ``data.fill``.
        device: auto, cpu, cuda, cuda:N or mps.
        revision: commit of the code, where the runs could not know it.
        progress: called with what is going on, how far it is, and how far it goes.
    """
    scores, found = StoryScores(causal=max(CAUSAL_OF_EACH, CAUSAL // max(1, len(runs)))), []
    facts: list[ModelFacts] = []
    note = ""
    marked = {f"qa{number}" for number in generated}
    for done, run in enumerate(runs):
        progress(f"testing {run.name}", done, len(runs))
        model, kept, restarts = _tested(run, data, scores, marked, device)
        note = note_on(model, supervised=is_supervised(kept), left_out=has_left_out(kept))
        facts.append(kept)
        found.append(restarts)
    _check(runs, facts, found)
    first = facts[0]
    protocol = first.protocol or ("task" if all(len(each.kept) == 1 for each in found) else "joint")
    name = f"{system or first.recipe['name']}-babi-{protocol}-{first.data['size']}-seed{int(first.seed or 0)}"
    evaluation = {
        "model": name,
        "data": "babi",
        "split": "test",
        "protocol": protocol,
        "seed": 0,
        **scores.summary(),
        **({"note": note} if note else {}),
    }
    values = {
        "name": name,
        "command": command,
        "recipe": migrate_recipe(dict(first.recipe), what=f"{runs[0]}: recipe"),
        "data": {**first.data, "name": "babi", "tasks": [int(task[2:]) for each in found for task in each.kept]},
        "training": {
            "machine": first.training.get("machine", ""),
            "versions": first.training.get("versions", {}),
            "minutes": round(sum(each.minutes or 0 for each in found), 2),
            "steps": sum(each.steps or 0 for each in found),
            "revision": revision or first.revision,
            "sha256": first.sha256,
        },
        "evaluation": evaluation,
        "restarts": [to_dict(each) for each in found],
    }
    record = from_dict(RecordedRun, values, where=name)  # before it is written: a file that cannot be read helps nobody
    write_json_by_key(make_folder(folder) / f"{name}.json", values)
    progress(f"wrote {name}.json", len(runs), len(runs))
    return record


def _tested(
    run: Path, data: str, scores: StoryScores, generated: Collection[str], device: str
) -> tuple[StoryModel, ModelFacts, Restarts]:
    """The facts of a run's kept model, whose questions are added to ``scores``, and the errors of all its restarts."""
    model, facts = _story_model(run / "model", device)
    config = config_of(StoryDataConfig, {**facts.data, "name": data})
    tensors = scored_questions(model, config, "test", words=facts.answers)
    scores.add(model, tensors, facts.answers)
    kept = {task: round(error, DIGITS) for task, error in errors_by_task(model, tensors).items()}
    folders = sorted((run / "replicas").glob("[0-9]*"), key=lambda path: int(path.name)) or [run / "model"]
    errors: dict[str, list[float]] = {task: [] for task in kept}
    for path in folders:
        if path == run / "model":  # the only one
            errors = {task: [error] for task, error in kept.items()}
            break
        restart, own = _story_model(path, device)
        if (own.answers, own.model) != (facts.answers, facts.model):
            raise CheckpointError(f"{path}: not a restart of {run / 'model'}: its words or settings differ")
        for task, error in errors_by_task(restart, tensors).items():
            errors[task].append(round(error, DIGITS))
    made = {*generated, *_filled(config)}
    is_generated = facts.data.get("name") == "stories"
    restarts = Restarts(
        errors={task: tuple(each) for task, each in errors.items()},
        kept=kept,
        chosen=int(facts.training.get("replica", 0)),
        generated=tuple(task for task in kept if is_generated or task in made),
        sha256=facts.sha256,
        **_course(run, len(folders)),
    )
    return model, facts, restarts


def _filled(config: StoryDataConfig) -> set[str]:
    """Tasks whose training questions were made, because the pack has none."""
    if not config.fill:
        return set()
    _, root = split_reference(config.name, READERS)
    return {task for task, files in babi_files(root, config.size).items() if "train" not in files}


def _story_model(folder: Path, device: str) -> tuple[StoryModel, ModelFacts]:
    model, facts = load_model(folder, device)
    if not isinstance(model, StoryModel):
        raise ConfigError(f"{folder}: '{facts.architecture}' does not answer questions about stories")
    return model, facts


def _course(run: Path, count: int) -> dict[str, Any]:
    """What the run's log says at its end: accuracies of all restarts, minutes and steps."""
    path = run / "metrics.jsonl"
    try:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        last = [row for row in rows if row["kind"] == "validation"][-1]
    except (OSError, ValueError, KeyError, IndexError) as error:
        raise CheckpointError(f"{run}: not a finished run ({error}); continue with 'saccade train --resume'") from error
    held = last.get("replicas") or {name: [value] for name, value in last["values"].items()}
    told = {
        name: tuple(round(float(value), DIGITS) for value in held.get(name, ()))
        for name in ("train_accuracy", "accuracy")
    }
    if any(len(each) not in (0, count) for each in told.values()):
        raise CheckpointError(f"{path}: tells of {len(told['accuracy'])} restarts, but {count} are kept")
    return {**told, "minutes": round(rows[-1]["seconds"] / 60, 2), "steps": int(rows[-1]["step"])}


def _check(runs: Sequence[Path], facts: Sequence[ModelFacts], found: Sequence[Restarts]) -> None:
    """Refuse runs that do not belong into one record."""
    if not runs:
        raise ConfigError("no run folder was given; name at least one")
    seen: dict[str, Path] = {}
    for run, each, own in zip(runs, found, facts):
        for task in each.kept:
            if task in seen:
                raise ConfigError(f"{run} and {seen[task]} both have {task}; give one run for each task")
            seen[task] = run
        for what in ("architecture", "protocol", "seed"):
            if getattr(own, what) != getattr(facts[0], what):
                raise ConfigError(
                    f"{run}: {what} is {getattr(own, what)}, but {getattr(facts[0], what)} in {runs[0]}; "
                    "runs of one record differ in their tasks only"
                )
        if each.count != found[0].count:
            raise ConfigError(f"{run}: {each.count} restarts, but {found[0].count} in {runs[0]}; train as many of each")


def run_folders(paths: Sequence[Path]) -> list[Path]:
    """Run folders among ``paths`` and right below them, by the numbers in their names."""
    found: list[Path] = []
    for path in paths:
        own = [path] if (path / "model").is_dir() else [each for each in path.glob("*") if (each / "model").is_dir()]
        if not own:
            raise CheckpointError(f"{path}: no run folder (no model/ in it, nor one level below)")
        found += sorted(own, key=_numbered)
    return found


def _numbered(path: Path) -> tuple[str, int]:
    head = path.name.rstrip("0123456789")
    return head, int(path.name[len(head) :] or 0)
