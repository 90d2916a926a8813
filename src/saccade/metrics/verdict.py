"""A verdict on a model in one line: does it beat its best rival, use the question, need the evidence, beat blind maps?

Each part is a paired comparison on the same examples, with the picture as the unit and a 95 % interval.

**Rivals** are guesses and, where the backbone is a published one, linear classifiers on its features; the best one on
these examples counts. 2 to :data:`QUESTIONS` questions are also compared one by one.

**The question.** If two questions about a picture have different right answers and a model gives both the same answer
in more than half of the cases (by the 95 % interval), it does not use the question, and the verdict does not say that
it beats anything.

**Evidence.** Where the evidence M (a box or a mask) is known, each picture is changed in four ways, and asked again:

====================  ==============================================================================================
``evidence_blurred``  the pixels of M are blurred
``evidence_swapped``  the pixels of M are those of another picture, which has another answer to the same question
``rest_blurred``      the pixels outside M are blurred
``rest_swapped``      the pixels outside M are those of the other picture
====================  ==============================================================================================

A blur leaves the colour of what it hides, and a swap can bring in another object. So "without the evidence" is that one
of the first two which the model answers worse. Let w, u and g be 1 where the model is right with the evidence, without
it, and where guessing is right. A model reads the background if it keeps more than half of its gain over guessing
without the evidence:

    mean(u - g) > KEPT · mean(w - g)                                                                              (1)

The verdict says so if w beats g and (1) holds, each with the 95 % interval of the paired difference.

**Chance**, for a map, is the best of the maps that do not look at the picture: even, the centre of the picture, the
centre of the object's box, and where the part usually lies (:data:`BLIND`).

Axes: B examples, N examples in all, H and W pixels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from saccade.errors import listed
from saccade.metrics.intervals import Grouped, Values, mean_defined, mean_interval, paired_difference
from saccade.metrics.maps.faithfulness import blurred
from saccade.metrics.maps.points import PointScorer
from saccade.metrics.maps.scorer import MapScorer
from saccade.metrics.result import Part, without_nan

BLUR = 1 / 10  # Standard deviation of the blur, as a share of the picture's shorter side
KEPT = 0.5  # The share in (1)
MOST = 400  # Examples that are changed: each costs five forward passes
WITH = "unchanged"

Right = Callable[[Tensor, Tensor], Tensor]
"""Pictures (n,3,H,W) and which examples of the batch they are of (n,) → whether each answer is right (n,)."""


class Altered(NamedTuple):
    """A batch of examples whose evidence can be taken away."""

    images: Tensor  # (B,3,H,W)
    evidence: Tensor  # (B,H,W) bool
    right: Right  # asks the model again
    labels: Tensor  # (B,), or (B,K) of 0 and 1 where several hold
    pictures: Tensor  # (B,) ids
    guessed: Tensor  # (B,): whether guessing is right
    kinds: Tensor | None = None  # (B,): what was asked


def sampled(count: int, most: int = MOST) -> Tensor:
    """Numbers (n,) of the examples that are changed, in a fixed random order."""
    return torch.randperm(count, generator=torch.Generator().manual_seed(0))[:most]


def donors(pictures: Tensor, labels: Tensor, kinds: Tensor | None = None, *, seed: int = 0) -> Tensor:
    """For each example the number of another one that lends its pixels, -1 where there is none: (B,).

    It is about another picture, of the same kind, and none of its labels is among the example's own.

    >>> donors(torch.tensor([0, 1, 2]), torch.tensor([5, 5, 7]))
    tensor([2, 2, 1])

    Arguments are as in :class:`Altered`.
    """
    several = labels.dim() == 2
    shares = labels.double() @ labels.double().T > 0 if several else labels[:, None] == labels  # (B,B)
    fits = (pictures[:, None] != pictures) & ~shares  # (B,B)
    if kinds is not None:
        fits &= kinds[:, None] == kinds
    draw = torch.rand(fits.shape, generator=torch.Generator().manual_seed(seed)).to(fits.device)  # (B,B)
    best, lender = torch.where(fits, draw, -1.0).max(1)  # (B,), (B,)
    return torch.where(best >= 0, lender, -1)


def changed(images: Tensor, others: Tensor, evidence: Tensor) -> dict[str, Tensor]:
    """The pictures (B,3,H,W) in the four ways; ``others`` (B,3,H,W) lend their pixels, ``evidence`` (B,H,W) is bool."""
    inside = evidence[:, None]  # (B,1,H,W)
    soft = blurred(images, BLUR * min(images.shape[2:]))  # (B,3,H,W)
    return {
        "evidence_blurred": torch.where(inside, soft, images),
        "evidence_swapped": torch.where(inside, others, images),
        "rest_blurred": torch.where(inside, images, soft),
        "rest_swapped": torch.where(inside, images, others),
    }


class EvidenceReliance(Grouped):
    """Collects what became of the answers, batch by batch."""

    def __init__(self) -> None:
        super().__init__()
        self.values = Values()
        """``unchanged``, the four ways, and ``guess``: 1 where the answer is right, (N,) each."""

    def add(self, batch: Altered) -> None:
        """Change a batch in all ways and ask again.

        Examples whose evidence is empty or the whole picture, and those without a donor in the batch, do not count.
        """
        images, evidence, right, labels, pictures, guessed, kinds = batch
        lender = donors(pictures, labels, kinds, seed=len(self)).to(images.device)  # (B,)
        covered = evidence.flatten(1)  # (B,HW)
        counts = covered.any(1) & ~covered.all(1) & (lender >= 0)  # (B,)
        rows = counts.nonzero()[:, 0]  # (n,)
        if not len(rows):
            return
        ways = changed(images[rows], images[lender[rows]], evidence[rows])
        answered = {WITH: right(images[rows], rows)} | {name: right(some, rows) for name, some in ways.items()}
        self.values.add_values({**answered, "guess": guessed[rows.to(guessed.device)]})
        self._columns.append(group=pictures[rows.to(pictures.device)])

    def sentence(self) -> str:
        """That the model reads the background, where that is sure; else ""."""
        if len(self) < 2:
            return ""
        values, means, pictures = self.values.values(), self.values.means(), self.groups
        without = min("evidence_blurred", "evidence_swapped", key=means.__getitem__)  # the way that is answered worse
        own, gone, guess = values[WITH], values[without], values["guess"]  # (N,) each
        knows = paired_difference(own, guess, pictures)
        keeps = mean_interval(gone - guess - KEPT * (own - guess), pictures, ends=(-1.0 - KEPT, 1.0 + KEPT))
        if not (knows.low > 0 and keeps.low > 0):  # NaN says nothing
            return ""
        right = self.values.intervals(pictures)[without]
        return (
            f"{100 * right.mean:.0f} % right with the evidence gone ({100 * right.low:.0f} to {100 * right.high:.0f}; "
            f"{100 * means[WITH]:.0f} % with it): it reads the background"
        )

    def summary(self) -> Part:
        """Plain values; nothing where no example counted."""
        if not len(self):
            return {}
        intervals = self.values.intervals(self.groups)
        return {
            "n": len(self),
            "pictures": len(torch.unique(self.groups)),
            "accuracy": {name: share.mean for name, share in intervals.items()},
            "intervals": {name: [share.low, share.high] for name, share in intervals.items()},
            "says": self.sentence(),
        }


QUESTIONS = 20  # Questions that are compared one by one at most
RIVALS = {
    "linear": "a linear classifier on the same backbone",
    "question_blind": "a linear classifier that is not told the question",
}
"""Rivals that have learned, in words."""
GUESSES = {
    "commonest_label": "always answering the commonest label",
    "training_prior": "always answering what is commonest in training",
    "training_prior_by_query": "guessing from the question",
}
"""Baselines of answers, in words."""
BLIND = {
    "uniform": "an even map",
    "centre_gaussian": "the centre of the picture",
    "box_centre": "the centre of the box",
    "box_centre_exact": "the centre of the box",
    "part_prior": "where the part usually is",
    "part_prior_exact": "where the part usually is",
}
"""Baselines of maps that do not look at the picture, in words."""
OF_ANY_TOOL = {
    "uniform": "an even map",
    "centre_gaussian": "the centre of the picture",
    "shuffled": "your maps of other pictures",
}
"""Baselines that maps of any tool stand beside, in words."""
POINTING = ("pointing_at", "pointing")
"""What a map is judged by: whether its peak lies near the click, else whether it lies on the evidence."""


class Answered(NamedTuple):
    """What became of N answers."""

    right: Tensor  # (N,): 1 where the answer is right
    rivals: Mapping[str, Tensor]  # the same of each rival, by name
    pictures: Tensor  # (N,) ids
    query: Tensor | None = None  # (N,): number of the question
    questions: Sequence[str] = ()  # by number
    same: Tensor | None = None  # (N,): 1 where a question with another right answer gets the same one; NaN: no such
    instead: str = ""  # what to try where the model is not better than its rivals

    def among(self, chosen: Tensor) -> Answered:
        """Those that are ``chosen`` (N,) bool, without their questions."""
        rivals = {name: right[chosen] for name, right in self.rivals.items()}
        return Answered(self.right[chosen], rivals, self.pictures[chosen])


def against_rivals(answered: Answered) -> Part:
    """A model beside its strongest rival, a sentence as ``says`` and its numbers; nothing without any.

    ``by_question`` has the same of each question, and ``same_answer`` how often two questions about a picture get one
    answer although the right ones differ.
    """
    right, rivals, pictures = answered.right, answered.rivals, answered.pictures
    if not rivals or not len(right):
        return {}
    name = max(rivals, key=lambda rival: mean_defined(rivals[rival]))
    own, other = mean_defined(right), mean_defined(rivals[name])
    less = paired_difference(right.double(), rivals[name].double(), pictures)
    ends, it = f"{100 * less.low:+.1f} to {100 * less.high:+.1f}", "it" if name in RIVALS else "guessing"
    ignored = _ignores_question(answered)
    if math.isnan(less.low):
        judged = "too few pictures to tell a difference"
    elif less.low > 0:
        judged = "" if ignored else f"it beats {it} by {100 * less.mean:.1f} points ({ends})"
    elif less.high < 0:
        judged = f"it has lost to {it} ({100 * less.mean:+.1f} points, {ends})"
    else:
        judged = f"no difference from {it} detected ({ends} points)"
    words = (RIVALS | GUESSES).get(name, name.replace("_", " "))
    part: Part = {
        "says": f"{100 * own:.1f} % against {100 * other:.1f} % by {words}: ",
        "accuracy": own,
        "rival": name,
        "rival_accuracy": other,
        "difference": less.mean,
        "interval": [less.low, less.high],
    }
    if by_question := _by_question(answered):
        part["by_question"] = by_question
        lost = [word for word, one in by_question.items() if one["interval"][1] < 0]
        if lost and less.high >= 0:
            judged = "; ".join(filter(None, [judged, f"it has lost on {listed(lost)}"]))
    if answered.same is not None and not bool(answered.same.isnan().all()):
        part["same_answer"] = mean_defined(answered.same)
    instead = "" if less.low > 0 else answered.instead
    part["says"] += "; ".join(filter(None, [ignored, judged, instead]))
    return part


def _ignores_question(answered: Answered) -> str:
    """That a model gives the same answer to both of two questions, where that is sure; else ""."""
    if answered.same is None:
        return ""
    same = mean_interval(answered.same, answered.pictures)
    if not same.low > 0.5:  # NaN says nothing
        return ""
    return (
        f"it gives the same answer to both questions about a picture in {100 * same.mean:.0f} % of {same.n:,} cases in "
        "which the right answers differ, so it does not use the question"
    )


def _by_question(answered: Answered) -> dict[str, Part]:
    """The comparison on each question, by its words; nothing of one alone, or of very many."""
    if answered.query is None:
        return {}
    numbers = torch.unique(answered.query).tolist()
    if not 2 <= len(numbers) <= QUESTIONS:
        return {}
    return {
        answered.questions[number]: {"n": int(chosen.sum()), **against_rivals(answered.among(chosen))}
        for number in numbers
        for chosen in [answered.query == number]
    }


def against_chance(maps: MapScorer, among: Tensor | None = None) -> Part:
    """Maps beside the best of the blind ones, a sentence as ``says`` and its numbers; nothing where none was scored."""
    among = torch.ones(len(maps.groups), dtype=torch.bool) if among is None else among
    for score in POINTING:
        values = {"": maps.total, **{name: maps.baselines[name] for name in BLIND if name in maps.baselines}}
        of = {name: scores[score][among] for name, scores in values.items() if score in scores}
        of = {name: own for name, own in of.items() if not bool(own.isnan().all())}
        if "" in of and len(of) > 1:
            break
    else:
        return {}
    own = of.pop("")
    name = max(of, key=lambda blind: mean_defined(of[blind]))
    value, chance = mean_defined(own), mean_defined(of[name])
    less = paired_difference(own, of[name], maps.groups[among])
    if math.isnan(less.low):
        return {}
    rival = f"{100 * chance:.1f} % by {BLIND[name]}, the best blind map"
    where = "near the click" if score == "pointing_at" else "on the evidence"
    ends = f"{100 * less.low:+.1f} to {100 * less.high:+.1f} points"
    if less.low > 0:
        how = f"{value / chance:.1f} × as often as by chance" if chance > 0 else "more often than by chance"
    else:
        how = "less often than by chance" if less.high < 0 else "no more often than by chance, as far as can be told"
    return {
        "says": f"its maps peak {where} in {100 * value:.1f} % of cases, {how} ({rival}; {ends})",
        "score": score,
        "value": value,
        "chance": name,
        "chance_value": chance,
        "difference": less.mean,
        "interval": [less.low, less.high],
    }


def maps_verdict(maps: MapScorer | PointScorer) -> str:
    """Whether the maps of any tool beat the best of those that do not look, in a sentence; "" where none was scored."""
    score = next((name for name in ("pointing", "nss") if name in maps.total), "")
    scored = {name: maps.baselines[name] for name in OF_ANY_TOOL if score in maps.baselines.get(name, {})}
    rivals = {name: own[score] for name, own in scored.items() if not bool(own[score].isnan().all())}
    if not rivals:
        return ""
    own, name = maps.total[score], max(rivals, key=lambda rival: mean_defined(rivals[rival]))
    does, unit = ("point to the object", "") if score == "pointing" else ("lie on the points", "NSS ")
    difference = own.double() - rivals[name].double()  # (N,)
    less = mean_interval(difference, maps.groups, ends=None if unit else (-1.0, 1.0))
    rival, values = OF_ANY_TOOL[name], f"{unit}{mean_defined(own):.2f} against {mean_defined(rivals[name]):.2f}"
    if math.isnan(less.low):
        return f"Too few pictures to tell whether your maps {does} more often than {rival}: {values}"
    ends = f"difference {less.low:+.2f} to {less.high:+.2f}"
    if less.low <= 0 <= less.high:
        return f"Your maps do not clearly {does} more or less often than {rival}: {values} ({ends})"
    return f"Your maps {does} {'more' if less.low > 0 else 'less'} often than {rival}: {values} ({ends})"


def beside_blind_maps(maps: MapScorer, score: str) -> dict[str, Part]:
    """Every blind map: its ``value`` by ``score``, and how much more the model's maps have, with its interval."""
    parts: dict[str, Part] = {}
    for name in BLIND:
        if name in maps.baselines and score in maps.baselines[name]:
            blind = maps.baselines[name][score]  # (N,)
            less = paired_difference(maps.total[score], blind, maps.groups)
            value = mean_defined(blind)
            if value == value:
                parts[name] = {"value": value, "difference": less.mean, "interval": [less.low, less.high]}
    return parts


IN_ORDER = {"deletion": -1.0, "insertion": 1.0}
"""Scores of pixels taken away or put back in the order of a map, and the sign of a better one."""
UNSEEN = "whether it looked at the right place is not known: the data has no boxes, points or masks"


def against_random_order(own: Values, random: Values, pictures: Tensor) -> Part:
    """Deletion and insertion (n,) beside those of pixels in random order; ``pictures`` (n,) are ids."""
    if not all(name in own.names and name in random.names for name in IN_ORDER):
        return {}
    part: Part = {}
    texts = []
    for name, sign in IN_ORDER.items():
        mine, other = own[name], random[name]
        less = paired_difference(mine, other, pictures)
        part[name] = {"difference": less.mean, "interval": [less.low, less.high]}
        better = [less.low * sign > 0, less.high * sign > 0]  # NaN is not
        judged = "better" if all(better) else "no difference detected" if any(better) else "worse"
        judged = "too few pictures to tell" if math.isnan(less.low) else judged
        ends = "" if math.isnan(less.low) else f", {100 * less.low:+.1f} to {100 * less.high:+.1f} points"
        share, chance = 100 * mean_defined(mine), 100 * mean_defined(other)
        texts.append(f"{name} {share:.1f} % against {chance:.1f} % in random order ({judged}{ends})")
    return {"says": ", ".join(texts), **part}


def joined(parts: Iterable[Part]) -> str:
    """What all parts say, in one line."""
    return "; ".join(part["says"] for part in parts if part.get("says"))


def verdict(
    answered: Answered,
    *,
    maps: MapScorer | None = None,
    rests_on: EvidenceReliance | None = None,
    in_order: Part | None = None,
    unseen: bool = False,
) -> Part:
    """``verdict``, the sentence, and what it is made of: ``against`` and, where evidence is known, ``rests_on``.

    ``in_order`` is of :func:`against_random_order`; ``unseen``: no evidence is known.
    """
    answers, chance = against_rivals(answered), {} if maps is None else against_chance(maps)
    rests = {} if rests_on is None else rests_on.summary()
    parts = {"answers": answers, "maps": chance, "in_order": in_order or {}}
    against = {name: part for name, part in parts.items() if part}
    where = {"says": UNSEEN} if unseen else chance
    sentence = {"verdict": joined([answers, rests, where, parts["in_order"]]), "against": against}
    return without_nan({**sentence, "rests_on": rests} if rests else sentence)
