"""Which word of one caption stands for which word of another: METEOR's alignment, by exact words and by stems.

Denkowski and Lavie, "Meteor Universal: Language Specific Translation Evaluation for Any Target Language", WMT 2014,
Section 2. Each word has at most one partner. Of all such pairings the best has, in this order, the largest weight
(1 for the same word, 0.6 for the same stem), the fewest chunks (runs that are adjacent and in order in both captions)
and the smallest sum of |place − place|. Found by a beam search from left to right, 40 wide as in METEOR; a word stays
alone only where its stem is rarer in the other caption, so for captions of ordinary length a wider beam finds nothing
better.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from saccade.metrics.text.stems import stem
from saccade.metrics.text.words import Words

EXACT, STEM = 1.0, 0.6
_WIDTH = 40
_NOWHERE = -2  # the place of a partner that is not there; no place follows it


class Alignment(NamedTuple):
    """What a pairing of two captions comes to."""

    weight: float
    """Sum of the weights of all pairs."""
    pairs: int
    chunks: int


class _Score(NamedTuple):
    """A pairing of the first words, in the order in which pairings are compared; larger is better."""

    weight: float
    joins: int
    """Pairs that carry on the chunk of the word before: with equally many pairs, more joins are fewer chunks."""
    nearness: int
    """Minus the sum of distances."""
    pairs: int


class _State(NamedTuple):
    """All that the rest of a pairing depends on."""

    taken: int
    """One bit for each place of the other caption."""
    last: int
    """The place that the word before was paired with."""


def align(said: Words, reference: Words) -> Alignment:
    """The best pairing of two captions.

    >>> align("a red dog runs".split(), "the dog is running".split())
    Alignment(weight=1.6, pairs=2, chunks=2)
    """
    stems, known = [stem(word) for word in said], [stem(word) for word in reference]
    surplus = Counter(stems) - Counter(known)  # stems with more words here than there: some must stay alone
    beam = {_State(0, _NOWHERE): _Score(0.0, 0, 0, 0)}
    for place, word in enumerate(said):
        partners = [
            (other, EXACT if reference[other] == word else STEM)
            for other, its_stem in enumerate(known)
            if its_stem == stems[place]
        ]
        reached: dict[_State, _Score] = {}
        for state, score in beam.items():
            if not partners or stems[place] in surplus:
                _keep_better(reached, _State(state.taken, _NOWHERE), score)
            for other, weight in partners:
                if not state.taken >> other & 1:
                    joined = other == state.last + 1
                    _keep_better(
                        reached,
                        _State(state.taken | 1 << other, other),
                        _Score(
                            score.weight + weight,
                            score.joins + joined,
                            score.nearness - abs(place - other),
                            score.pairs + 1,
                        ),
                    )
        beam = dict(sorted(reached.items(), key=lambda entry: entry[1], reverse=True)[:_WIDTH])
    best = max(beam.values())
    return Alignment(round(best.weight, 9), best.pairs, best.pairs - best.joins)


def _keep_better(reached: dict[_State, _Score], state: _State, score: _Score) -> None:
    if state not in reached or score > reached[state]:
        reached[state] = score
