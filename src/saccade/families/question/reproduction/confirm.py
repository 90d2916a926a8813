"""Scores shipped models on this machine, to check that their weights give the recorded numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot

from saccade.config import from_dict
from saccade.families.question.query_model import query_model
from saccade.families.question.reproduction.table1 import DATA
from saccade.families.question.scenes.data import SceneData, SceneDataConfig
from saccade.families.question.scenes.scores import SceneScores, score_scenes
from saccade.models.io.facts import ModelFacts, read_facts
from saccade.predict import load
from saccade.recorded import RecordedRun
from saccade.verbs.plain_table import PlainTable
from saccade.verbs.reproduction.training import Progress
from saccade.zoo import shipped

WIDER = 1.5
"""From two to three standard deviations."""


@dataclass(frozen=True)
class Confirmation:
    """One shipped model, measured here beside its record."""

    model: str
    system: str
    data: str
    n: int
    accuracy: float
    interval: tuple[float, float]
    recorded: RecordedRun | None
    """The run that its weights came from."""
    verdict: str
    glyphs: str
    """Glyphs of the scenes here."""
    scores: SceneScores
    """With what its curves are drawn from."""

    def to_json(self) -> dict[str, object]:
        """Plain values; scores are fractions."""
        return {
            "model": self.model,
            "data": self.data,
            "n": self.n,
            "glyphs": self.glyphs,
            "accuracy": self.accuracy,
            "interval": list(self.interval),
            "recorded": None if self.recorded is None else self.recorded.value("accuracy"),
            "recorded_run": None if self.recorded is None else self.recorded.name,
            "verdict": self.verdict,
        }


def confirm(
    runs: Sequence[RecordedRun], data: Sequence[str], *, limit: int, device: str, progress: Progress
) -> list[Confirmation]:
    """Score every shipped attribute model of ``data`` on the first ``limit`` test examples."""
    found = []
    for name, folder in shipped().items():
        facts = read_facts(folder)
        if facts.data.get("name") in DATA and facts.data["name"] in data:
            found.append(_confirm(name, facts, runs, limit=limit, device=device, progress=progress))
    return found


def _confirm(
    name: str, facts: ModelFacts, runs: Sequence[RecordedRun], *, limit: int, device: str, progress: Progress
) -> Confirmation:
    def told(done: int, total: int) -> None:
        progress(f"scoring {name}", done, total)

    told(0, limit)
    predictor = load(name, device)
    recorded = next((run for run in runs if run.training.get("sha256") == facts.training.get("sha256")), None)
    # The photographs that a model was trained with are not here in general: the default ones stand in for them.
    drawing = (recorded.evaluation.drawing if recorded is not None else "") or facts.data.get("drawing", "blend")
    config = from_dict(SceneDataConfig, {"name": facts.data["name"], "drawing": drawing})
    split = SceneData(config, "test", device=predictor.device, allow_pack=True)
    scores = score_scenes(query_model(predictor), split, limit=limit, sweeps=0, progress=told)
    right = scores.causal.intervals(scores.maps.groups)["accuracy"]
    interval = (right.low, right.high)
    return Confirmation(
        model=name,
        system=name.removesuffix(f"-{facts.data['name']}"),
        data=facts.data["name"],
        n=len(scores.maps.groups),
        accuracy=right.mean,
        interval=interval,
        recorded=recorded,
        verdict=verdict(right.mean, interval, recorded, split.backgrounds),
        glyphs=split.glyphs.name,
        scores=scores,
    )


def verdict(accuracy: float, interval: tuple[float, float], recorded: RecordedRun | None, backgrounds: str = "") -> str:
    """Whether a score measured here agrees with the record: no further apart than both intervals allow, widened.

    Of a table of models one in twenty lies outside its 95 % interval by chance; three standard deviations are a sign.
    """
    if recorded is None:
        return "its run is not among the records"
    told, around = recorded.value("accuracy"), recorded.interval("accuracy")
    if told is None or around is None:
        return "its record has no interval"
    told_of = recorded.evaluation.backgrounds  # older records do not say theirs; a set is known by its digest
    if told_of and told_of.rpartition("-")[2] != backgrounds.rpartition("-")[2]:
        return "other backgrounds than the record's: not comparable"
    ours, theirs = ((high - low) / 2 for low, high in (interval, around))
    if abs(accuracy - told) <= WIDER * hypot(ours, theirs):
        return "agrees with the record"
    return f"differs from the record by {100 * (accuracy - told):+.1f} points"


def confirmation_table(confirmed: Sequence[Confirmation]) -> PlainTable:
    """What was measured here, beside the record."""
    rows = []
    for each in confirmed:
        told = None if each.recorded is None else each.recorded.value("accuracy")
        count = "" if each.recorded is None else f"\n{each.recorded.evaluation.n:,}"
        rows.append([
            each.model,
            f"{100 * each.accuracy:.1f} [{100 * each.interval[0]:.1f}, {100 * each.interval[1]:.1f}]\n{each.n:,}",
            "–" if told is None else f"{100 * told:.2f}{count}",
            each.verdict,
        ])  # fmt: skip
    glyphs = ", ".join(sorted({each.glyphs for each in confirmed}))
    return PlainTable(
        "shipped weights, scored on this machine: accuracy %",
        ("model", "here [95 %], n", "record, n", "verdict"),
        rows,
        f"Scenes here are made of {glyphs}; an interval is drawn by scene." if confirmed else "",
    )
