"""METEOR of captions: by exact words and stems, as a reward of word numbers, and as the program of its authors.

Denkowski and Lavie, "Meteor Universal: Language Specific Translation Evaluation for Any Target Language", WMT 2014. The
words of a caption are paired with those of a reference (:func:`align`, Section 2); with m pairs of weight M in ch
chunks (runs that are adjacent and in order in both captions),

    P = M / words of the caption    R = M / words of the reference    F = P R / (α P + (1 − α) R)
    score = F · (1 − γ (ch / m)^β)                           α = 0.85, β = 0.2, γ = 0.6

**meteor_lite**, in plain Python, is METEOR without synonyms, paraphrases and the lower weight of function words: a
lower number that **does not compare with a published METEOR**. It equals METEOR 1.5 with ``-m 'exact stem' -w '1.0 0.6'
-p '0.85 0.2 0.6 0.5' -x 2000``, except where the beam of that program misses the best pairing. Each picture counts with
the reference that scores best; the score of a set is that of the sums of M, m, ch and lengths. A caption that equals
its reference has no chunks, so that it scores 1.

**meteor_of_words** is the reward, of captions that are numbers of words, for a whole batch. A content word
weighs δ = 0.75 and a function word 1 − δ, as in METEOR 1.5, and M and lengths are sums of these weights. It differs
from the score in this:

- Nothing is aligned. Pairs are clipped counts, and a pair goes on with the chunk of the one before where a run of two
  stems is in both captions. So ch = m − such runs, at least 1: too few where runs exclude each other.
- Whether a word is a function word goes by its stem, so that both words of a pair weigh the same.
- A caption that is its reference has one chunk, not none: learning captions by heart earns no prize.
- The end is no word. So that a caption gains nothing by breaking off ("a man in a"), last words that lead up to another
  one count as unknown. An unknown word is a content word that has no partner, not even another unknown one.

**meteor_jar** is METEOR 1.5 itself, the Java program, which compares with printed METEOR. It and its paraphrase table
come from the cache folder (``saccade data get meteor``) or from the package ``pycocoevalcap`` (extra ``meteor``), which
is never imported. Every picture needs the same number of references there, so the first one is repeated, which changes
nothing.

Axes: B pictures, K captions of each, R references, T places for words, of which −1 holds none, V words, 3 things
to meet in: the word, its stem, and its stem with the next.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.errors import ConfigError, MissingExtraError
from saccade.files import METEOR, METEOR_JAR, METEOR_PARAPHRASES, cache_home
from saccade.metrics.text.ngrams import Words, clipped_counts, judged_captions
from saccade.metrics.text.tokens import stem

EXACT, STEM = 1.0, 0.6
_WIDTH = 40
_NOWHERE = -2  # the place of a partner that is not there; no place follows it


class Alignment(NamedTuple):
    """The result of pairing two captions."""

    weight: float  # sum of the weights of all pairs
    pairs: int
    chunks: int


def align(caption: Words, reference: Words) -> Alignment:
    """The best pairing of two captions; each word has at most one partner.

    The best has, in this order, the largest weight (1 for the same word, 0.6 for the same stem), the fewest chunks and
    the smallest sum of |place − place|. It is found by a beam search from left to right; a word stays alone only where
    its stem is rarer in the other caption.

    >>> align("a red dog runs".split(), "the dog is running".split())
    Alignment(weight=1.6, pairs=2, chunks=2)
    """
    stems, reference_stems = [stem(word) for word in caption], [stem(word) for word in reference]
    surplus = Counter(stems) - Counter(reference_stems)  # stems with more words here than there: some must stay alone
    # The places taken (a bit for each) and the last one, which decide what can follow → the score of a pairing so far:
    # weight, joins (of equally many pairs, more are fewer chunks), minus the sum of distances, and pairs.
    beam = {(0, _NOWHERE): (0.0, 0, 0, 0)}
    for place, word in enumerate(caption):
        partners = [
            (other, EXACT if reference[other] == word else STEM)
            for other, its_stem in enumerate(reference_stems)
            if its_stem == stems[place]
        ]
        reached: dict[tuple[int, int], tuple[float, int, int, int]] = {}
        for (taken, last), score in beam.items():
            states = [((taken, _NOWHERE), score)] if not partners or stems[place] in surplus else []
            weight, joins, nearness, pairs = score
            for other, gain in partners:
                if not taken >> other & 1:
                    grown = (weight + gain, joins + (other == last + 1), nearness - abs(place - other), pairs + 1)
                    states.append(((taken | 1 << other, other), grown))
            for state, candidate in states:
                reached[state] = max(candidate, reached.get(state, candidate))
        beam = dict(sorted(reached.items(), key=lambda entry: entry[1], reverse=True)[:_WIDTH])
    weight, joins, _, pairs = max(beam.values())
    return Alignment(round(weight, 9), pairs, pairs - joins)


ALPHA, BETA, GAMMA = 0.85, 0.2, 0.6


def meteor_lite(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """METEOR by exact words and stems alone, a fraction 0..1; NaN when there are no pictures.

    >>> round(meteor_lite(["a dog runs"], [("a dog is running", "two birds")]), 4)
    0.3017
    """
    pictures = judged_captions(hypotheses, references)
    if not pictures:
        return float("nan")
    best = [
        max((_tally(caption, words) for words in texts), key=lambda tally: _score(*tally))
        for caption, texts in pictures
    ]
    return _score(*map(sum, zip(*best)))


def _tally(caption: Words, words: Words) -> tuple[int, int, float, int, int]:
    """Summed over pictures: words of the caption, words of the reference, weight, pairs and chunks."""
    weight, pairs, chunks = align(caption, words)
    whole = chunks == 1 and pairs == len(caption) == len(words)
    return len(caption), len(words), weight, pairs, 0 if whole else chunks


def _score(length: float, reference_length: float, weight: float, pairs: float, chunks: float) -> float:
    if not pairs:
        return 0.0
    precision, recall = weight / length, weight / reference_length
    mean = precision * recall / (ALPHA * precision + (1 - ALPHA) * recall)
    return float(mean * (1 - GAMMA * (chunks / pairs) ** BETA))


DELTA = 0.75

_OFTEN_LEADING = frozenset(
    """
    a an the this that my your his its our their some all of in on at with for from to into by about over after and
    or but as than if which who when what is are was were be been am has have had can could will would
    """.split()  # noqa: SIM905
)
_SELDOM_LEADING = frozenset(
    """
    each every these those whose where while because onto through under between near beside against across above
    toward towards
    """.split()  # noqa: SIM905
)
LEADING_WORDS = _OFTEN_LEADING | _SELDOM_LEADING
"""Words that lead up to another word: a caption that ends with one is broken off."""
FUNCTION_WORDS = _OFTEN_LEADING.union(
    """
    i you he she it we they me him her us them there not no so also then up out one two other
    """.split()  # noqa: SIM905
)
"""Frequent words of any sentence, like METEOR's list: "across" is not among them."""


class MeteorWords:
    """The stem and weight of each word of a vocabulary, and whether it leads up to another one.

    ``end`` is the number that ends a caption, ``unknown`` that of all other words; with a ``delta`` (δ) of 0.5 all
    words weigh the same.
    """

    def __init__(
        self,
        entries: Sequence[str],
        *,
        end: int,
        unknown: int,
        device: torch.device | str | None = None,
        delta: float = DELTA,
    ) -> None:
        stems = [stem(entry) for entry in entries]
        place = {root: number for number, root in enumerate(dict.fromkeys(stems), start=1)}
        function_stems = {stem(word) for word in FUNCTION_WORDS}
        weights = torch.tensor([0.0, *(1 - delta if root in function_stems else delta for root in stems)])  # (1+V,)
        weights[1 + end] = 0
        partners = torch.tensor([range(1 + len(entries)), [0, *map(place.__getitem__, stems)]])  # (2,1+V)
        partners[:, [1 + end, 1 + unknown]] = 0
        leads = torch.tensor([True, *(entry in LEADING_WORDS for entry in entries)])  # (1+V,)
        leads[1 + end] = True  # nothing stands behind the words before it
        # tables (…,1+V), the first entry that of a place without a word
        self._weights, self._partners, self._leads = (table.to(device) for table in (weights, partners, leads))
        self._unknown, self._stems = unknown, len(place)

    def weights(self, words: Tensor) -> Tensor:
        """The weight of each of ``words`` (…); 0 for none."""
        return self._weights[words + 1]

    def keys(self, words: Tensor) -> Tensor:
        """The numbers by which words (…,T) match: (…,3,T), 0 where they cannot."""
        word, its_stem = self._partners[:, words + 1]  # (…,T) each
        following = F.pad(its_stem[..., 1:], (0, min(1, words.shape[-1])))  # (…,T)
        both = (its_stem * (self._stems + 1) + following) * ((its_stem > 0) & (following > 0))  # (…,T)
        return torch.stack((word, its_stem, both), dim=-2)

    def without_loose_end(self, words: Tensor) -> Tensor:
        """Captions (…,T) whose last words become unknown if they lead up to another one."""
        loose = self._leads[words + 1].long().flip(-1).cumprod(-1).flip(-1) > 0  # (…,T)
        return torch.where(loose & (self.weights(words) > 0), self._unknown, words)


def meteor_of_words(captions: Tensor, references: Tensor, words: MeteorWords) -> Tensor:
    """METEOR, 0..1, of captions (B,K,T) by the references (B,R,T') of their pictures: (B,K).

    Without a reference that has a word, or for a caption without one, it is 0.
    """
    captions = words.without_loose_end(captions)  # (B,K,T)
    mine, theirs = words.keys(captions), words.keys(references)  # (B,K,3,T), (B,R,3,T')
    clipped = clipped_counts(mine, theirs)  # (B,K,R,3,T)
    weights = words.weights(captions)  # (B,K,T)
    same_word, same_stem, _ = (clipped * weights[:, :, None, None]).sum(-1).unbind(-1)  # (B,K,R) each
    matched = STEM * same_stem + (EXACT - STEM) * same_word  # M: the same word has the same stem too
    total = weights.sum(-1)[:, :, None]  # (B,K,1): of captions
    reference_total = words.weights(references).sum(-1)[:, None]  # (B,1,R)
    mean = matched / (ALPHA * reference_total + (1 - ALPHA) * total).clamp_min(1e-12)  # (B,K,R)
    _, pairs, joined = clipped.sum(-1).unbind(-1)  # (B,K,R) each
    chunks = (pairs - joined).clamp_min(1)
    return (mean * (1 - GAMMA * (chunks / pairs.clamp_min(1)) ** BETA)).amax(-1)  # (B,K)


def meteor_missing() -> str | None:
    """Why METEOR 1.5 cannot run here and what to do; None if it can."""
    try:
        _program()
    except MissingExtraError as error:
        return str(error)
    return None


def meteor_jar(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], *, timeout_seconds: float = 900.0
) -> float:
    """METEOR 1.5 of a set of captions, a fraction 0..1; NaN when there are no pictures.

    Raises:
        MissingExtraError: there is no Java, or no program for it.
        ConfigError: the program failed, or took longer than ``timeout_seconds``.
    """
    pictures = judged_captions(hypotheses, references)
    java, jar, paraphrases = _program()
    if not pictures:
        return float("nan")
    most = max(len(picture.references) for picture in pictures)
    padded = [words for _, texts in pictures for words in [*texts, *[texts[0]] * (most - len(texts))]]
    with tempfile.TemporaryDirectory(prefix="saccade-meteor-") as folder:
        files = [Path(folder, name) for name in ("said.txt", "references.txt")]
        for file, captions in zip(files, ([picture.caption for picture in pictures], padded)):
            file.write_text("".join(f"{' '.join(words)}\n" for words in captions), encoding="utf-8", newline="\n")
        command = [java, "-Xmx2G", "-Dfile.encoding=UTF-8", "-jar", str(jar), *map(str, files)]
        command += ["-l", "en", "-norm", "-a", str(paraphrases), "-q", "-r", str(most)]
        try:
            done = subprocess.run(  # noqa: S603 - a fixed program on files of our own
                command, capture_output=True, text=True, errors="replace", timeout=timeout_seconds, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ConfigError(f"METEOR 1.5 gave no score: {error}; try 'java -version'") from error
    printed = done.stdout.strip()
    if done.returncode or not _NUMBER.fullmatch(printed):
        message = done.stderr.strip()[-200:] or printed[-200:]
        raise ConfigError(f"METEOR 1.5 gave no score (exit code {done.returncode}): {message}; try 'java -version'")
    return float(printed)


_NUMBER = re.compile(r"[\d.]+(E-?\d+)?")  # as Java prints one


def _program() -> tuple[str, Path, Path]:
    """Java, METEOR and its paraphrase table, from the cache folder or the package that carries them."""
    fetched = cache_home() / METEOR
    places = [(fetched / METEOR_JAR.name, fetched / METEOR_PARAPHRASES.name)]
    package = importlib.util.find_spec("pycocoevalcap")
    for home in (package and package.submodule_search_locations) or []:
        places.append((Path(home, "meteor", METEOR_JAR.name), Path(home, "meteor", "data", METEOR_PARAPHRASES.name)))
    program = next((files for files in places if all(file.is_file() for file in files)), None)
    java = shutil.which("java")
    if program is None or java is None:
        why = "it is a Java program and there is no 'java' on the PATH; install a Java runtime too"
        if program is None:
            why = f"it is not here; 'saccade data get {METEOR}' brings it, as does"
        raise MissingExtraError("METEOR 1.5", "meteor", why)
    return java, *program
