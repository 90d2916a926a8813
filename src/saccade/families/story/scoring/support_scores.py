"""Do the looks of a model lie on the supporting facts? Scores of each look, of all together, and of baselines."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from saccade.families.story.scoring.rival_maps import RIVALS, rival_maps
from saccade.families.story.scoring.sentence_weights import SentenceWeights
from saccade.metrics.intervals import Values
from saccade.metrics.result import Scores, only_defined
from saccade.metrics.slots import mass_elsewhere, support_found, support_hit, support_mass, support_rank

SCORES = {"support_hit": support_hit, "support_rank": support_rank, "support_mass": support_mass}
BEST = "support_hit_best_look"
ELSEWHERE = {False: "empty_mass", True: "end_mass"}
"""What the weight on no sentence lies on: empty slots, or the end-of-passes fact."""
RANDOM = "random_looks"
"""The rival with as many looks as the model made, each at one sentence drawn at random."""


class SupportScores:
    """Kept batch by batch. ``total`` holds the scores of all looks together, of every question."""

    def __init__(self) -> None:
        self.total = Values()
        self.by_look: dict[str, Values] = {}
        self.rivals: dict[str, Values] = {name: Values() for name in (*RIVALS, RANDOM)}

    def add(self, seen: SentenceWeights, batch: Mapping[str, Tensor]) -> None:
        """Score the looks at a batch.

        Args:
            seen: the looks.
            batch: its ``story`` (B,S,J), ``query`` (B,Q) and slots of ``supporting`` facts (B,F), −1 for none.
        """
        present = seen.present
        facts = supporting_slots(batch["supporting"].cpu(), present)  # (B,S) bool
        self.total.add_values(_scores(seen.total, facts, present, seen.has_end) | {
            "support_found": support_found(_taken(seen), facts, present)
        })  # fmt: skip
        for name, weights in seen.looks.items():
            own = _scores(weights, facts, present, seen.has_end)
            active = seen.active[name]
            kept = {score: torch.where(active, value, torch.nan) for score, value in own.items()}
            self.by_look.setdefault(name, Values()).add_values(kept | ({"active": active} if seen.has_end else {}))
        maps = rival_maps(batch)
        for name, rival in maps.items():
            held = {score: scored(rival.total[:, :-1], facts, present) for score, scored in SCORES.items()}
            self.rivals[name].add_values(held | {"support_found": support_found(_taken(rival), facts, present)})
        even = maps["uniform"].total[:, :-1]
        drawn = [even * active.unsqueeze(1) for active in seen.active.values()]
        self.rivals[RANDOM].add_values({"support_found": support_found(drawn, facts, present)})

    def attention(self) -> Scores:
        """Means of all looks together, the best look's hit, and the means look by look."""
        looks = {name: only_defined(values.means()) for name, values in self.by_look.items()}
        hits = [held["support_hit"] for held in looks.values() if "support_hit" in held]
        best = {BEST: max(hits)} if hits else {}
        return {**only_defined(self.total.means()), **best, "by_look": looks}

    def baselines(self) -> dict[str, dict[str, float]]:
        """The same scores of maps that need no model."""
        found = {name: only_defined(values.means()) for name, values in self.rivals.items()}
        return {
            name: held | ({BEST: held["support_hit"]} if "support_hit" in held else {})
            for name, held in found.items()
            if held
        }


def supporting_slots(supporting: Tensor, present: Tensor) -> Tensor:
    """Slots (B,S) of the supporting facts that are in memory, from their numbers (B,F), below 0 for none."""
    places = torch.arange(present.shape[1], device=present.device)
    return (supporting.unsqueeze(2) == places).any(1) & present


def _taken(seen: SentenceWeights) -> list[Tensor]:
    """The looks (B,S), without weight where they did not take place."""
    return [each[:, :-1] * seen.active[name].unsqueeze(1) for name, each in seen.looks.items()]


def _scores(weights: Tensor, facts: Tensor, present: Tensor, has_end: bool) -> dict[str, Tensor]:
    """Every score of weights (B,S+1)."""
    on_sentences = torch.cat([present, torch.zeros_like(present[:, :1])], 1)  # (B,S+1)
    return {score: scored(weights[:, :-1], facts, present) for score, scored in SCORES.items()} | {
        ELSEWHERE[has_end]: mass_elsewhere(weights, on_sentences)
    }
