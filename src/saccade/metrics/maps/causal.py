"""Does the answer follow the object that was asked about, and hold when anything else changes?

Scenes are re-rendered with one thing changed, and the model is asked again:

=================  ==========================================  ===================================================
score              what is changed                             1 for a picture whose …
=================  ==========================================  ===================================================
``causal_follow``  the target gets another answer              answer becomes the new truth
``causal_hold``    any other object is changed or removed      answer stays what it was, right or wrong
``swapped_query``  another object that is present is asked     answer is still the *original* truth (lower is better:
                                                               with five answers a model that reads the question
                                                               keeps about 0.20, a query-blind one about 0.418)
=================  ==========================================  ===================================================

**The denominator is all pictures.** With ``given`` (B,) bool it is the pictures where that is True, the others are
NaN: ``given=answers == truth`` is "given that the first answer was right". Every score is (B,), for
``saccade.metrics.intervals``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from saccade.errors import DataError, ShapeError
from saccade.metrics.answers.accuracy import check_ids, correct
from saccade.metrics.maps.values import where_defined


def causal_follow(after: Tensor, new_truth: Tensor, old_truth: Tensor, *, given: Tensor | None = None) -> Tensor:
    """1 where the answer to the re-rendered target is its new truth (B,).

    Args:
        after: answer ids after the target was re-rendered, (B,).
        new_truth: what the target now is, (B,).
        old_truth: what it was, (B,); must differ everywhere, or there is nothing to follow.
        given: pictures that count; all by default.
    """
    after = check_ids("after", after)
    new_truth, old_truth = check_ids("new_truth", new_truth, after), check_ids("old_truth", old_truth, after)
    same = new_truth == old_truth
    if bool(same.any()):
        index = int(same.nonzero()[0, 0])
        raise DataError(
            f"picture {index}: the re-rendered target has its old answer {int(old_truth[index])}; give it another"
        )
    return _among(correct(after, new_truth), given)


def causal_hold(before: Tensor, after: Tensor, *, given: Tensor | None = None) -> Tensor:
    """1 where the answer (B,) is the same before and after something other than the target was changed."""
    before = check_ids("before", before)
    return _among(correct(check_ids("after", after, before), before), given)


def swapped_query(swapped: Tensor, truth: Tensor, *, given: Tensor | None = None) -> Tensor:
    """1 where the answer to a question about *another* object is still the original truth (B,).

    Args:
        swapped: answer ids to the swapped question, (B,).
        truth: true answer ids of the original question, (B,). The other object may share it by chance.
        given: pictures that count; all by default.
    """
    swapped = check_ids("swapped", swapped)
    return _among(correct(swapped, check_ids("truth", truth, swapped)), given)


@dataclass(frozen=True)
class Interventions:
    """A batch of scenes with their re-renderings; what is left out is not scored."""

    images: Tensor
    """(B,C,H,W) as first rendered."""
    queries: Tensor
    """(B,…) what is asked."""
    truth: Tensor
    """(B,) ids of the true answers."""
    target_changed: Tensor | None = None
    """(B,C,H,W): the target re-rendered with another answer."""
    new_truth: Tensor | None = None
    """(B,) ids of those other answers."""
    others_changed: Mapping[str, Tensor] = field(default_factory=dict)
    """(B,C,H,W) for each way of changing another object, such as "recoloured" and "removed"."""
    other_queries: Tensor | None = None
    """(B,…) asks for another object that is present."""
    answers: Tensor | None = None
    """(B,) ids of what was answered to ``images`` and ``queries``, if that is known; else the model is asked."""
    other_answers: Tensor | None = None
    """(B,) the same of ``other_queries``."""


@dataclass(frozen=True)
class CausalAnswers:
    """What was answered about a batch of scenes and their re-renderings, (B,) ids each; None: not asked."""

    truth: Tensor
    """The true answers."""
    before: Tensor
    """To the scenes as first rendered."""
    target_changed: Tensor | None = None
    """After the target was re-rendered with another answer."""
    new_truth: Tensor | None = None
    """Those other answers."""
    others_changed: Mapping[str, Tensor] = field(default_factory=dict)
    """For each way of changing another object, such as "recoloured" and "removed"."""
    other_query: Tensor | None = None
    """To a question about another object that is present."""


def causal_scores(
    answer: Callable[[Tensor, Tensor], Tensor], scenes: Interventions, *, given_right: bool = False
) -> dict[str, Tensor]:
    """Ask a model about scenes and their re-renderings; every score that the scenes allow, (B,) each.

    Args:
        answer: ``answer(images, queries) -> ids (B,)``; called without gradients, once for each rendering whose answer
            is not known.
        scenes: the batch.
        given_right: count only pictures whose first answer was right; the others are NaN.

    Returns:
        Those of :func:`scores_of_answers`.
    """
    if (scenes.target_changed is None) != (scenes.new_truth is None):
        raise DataError("interventions: target_changed and new_truth belong together; one of them is missing")
    with torch.no_grad():
        queries, swapped = scenes.queries, scenes.other_answers
        if swapped is None and scenes.other_queries is not None:
            swapped = answer(scenes.images, scenes.other_queries)  # (B,)
        answers = CausalAnswers(
            truth=scenes.truth,
            before=answer(scenes.images, queries) if scenes.answers is None else scenes.answers,
            target_changed=None if scenes.target_changed is None else answer(scenes.target_changed, queries),
            new_truth=scenes.new_truth,
            others_changed={way: answer(images, queries) for way, images in scenes.others_changed.items()},
            other_query=None if scenes.other_queries is None else swapped,
        )
    return scores_of_answers(answers, given_right=given_right)


def scores_of_answers(answers: CausalAnswers, *, given_right: bool = False) -> dict[str, Tensor]:
    """Every score that the answers allow, (B,) each.

    Args:
        answers: of the batch.
        given_right: count only pictures whose first answer was right; the others are NaN.

    Returns:
        ``accuracy``; ``causal_follow``; ``causal_hold_<way>`` for each way of changing another object and
        ``causal_hold``, their mean for each picture; ``swapped_query``.
    """
    right = correct(answers.before, answers.truth)
    given = right.bool() if given_right else None
    scores = {"accuracy": right}
    if answers.target_changed is not None and answers.new_truth is not None:
        scores["causal_follow"] = causal_follow(answers.target_changed, answers.new_truth, answers.truth, given=given)
    held = {
        f"causal_hold_{way}": causal_hold(answers.before, after, given=given)
        for way, after in answers.others_changed.items()
    }
    if held:
        scores |= held
        scores["causal_hold"] = torch.stack(list(held.values())).mean(0)  # (B,)
    if answers.other_query is not None:
        scores["swapped_query"] = swapped_query(answers.other_query, answers.truth, given=given)
    return scores


def _among(scores: Tensor, given: Tensor | None) -> Tensor:
    if given is None:
        return scores
    if given.shape != scores.shape:
        raise ShapeError("given", f"{tuple(scores.shape)}", given.shape)
    if given.dtype != torch.bool:
        raise DataError(f"given: expected a bool mask, found {given.dtype}")
    return where_defined(scores, given.to(scores.device))
