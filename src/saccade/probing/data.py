"""What a probe learns from: usable pictures, the questions about them, and the folds they are cut into.

What cannot be used is left out, counted and named: files that cannot be read, classes with too few pictures to learn
from, to choose with and to be tested on, and questions that are asked about too few.

Features are of pictures, everything else is of examples: N questions about P pictures. Where nothing is asked, an
example is a picture. Examples are dealt into J folds: every class is in every fold, and pictures that belong together
are in one fold. Split j is tested on fold j, chooses its settings on fold j + 1 and learns from the others, so every
picture is tested once, and never chooses what it is tested with.

Axes: N examples, P pictures, B pictures of a batch, R examples about them, J splits, H and W pixels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from saccade.backbones.feature_folder import FeatureFolder
from saccade.data.pictures.content_digest import copy_groups
from saccade.data.pictures.evidence import Evidence
from saccade.data.pictures.prepared import PreparedPictures
from saccade.data.tables.doubts import contradictions, first_few, pluralise, spellings, summarised
from saccade.data.tables.splits import hashed_share
from saccade.data.tables.table import Row, Table
from saccade.errors import DataError
from saccade.geometry import Size
from saccade.models.probe_heads import ExampleQueries

MAX_CLASSES = 2_000
"""Classes that a probe compares at most: each rival has a row of weights for each of them, many times over."""
MAX_QUESTIONS = 500
"""Questions that a probe asks at most: some rivals have weights for each of them."""
DECODED = 2 << 30
"""Bytes of decoded pictures that are kept in memory."""
_NAMED = 5
_UNSEEN = ("label never seen in train", "query never seen in train")
"""Rows that the reader leaves out by its own splits; a probe makes others and can use them."""

OnProgress = Callable[[str, int, int], None]
"""Called with what is going on, how far it is, and how far it goes."""


@dataclass(frozen=True)
class ProbedPictures:
    """Examples that a probe can use: pictures with a label each, or questions about pictures."""

    paths: tuple[Path, ...]
    """(P,) the files."""
    labels: Tensor
    """(N,) the number of each example's class."""
    classes: tuple[str, ...]
    groups: tuple[int, ...]
    """The group number of each example; examples of one group belong together."""
    store: PreparedPictures
    places: Tensor
    """(P,) where each picture is in the store."""
    remarks: tuple[str, ...]
    """What was left out, and what else is to be known, in words."""
    copies: tuple[tuple[str, str], ...]
    """A picture and the first one with the same bytes."""
    questions: Questions
    evidence: Evidence | None = None
    """Where labels can be seen, by row; None where the data does not say."""
    rows: Tensor | None = None
    """(N,) the row of each example's evidence."""
    folder: FeatureFolder | None = None
    """Whose maps stand in for a network, if any."""

    def __len__(self) -> int:
        return len(self.labels)

    def path(self, example: int) -> Path:
        """The file of an example."""
        return self.paths[int(self.questions.picture[example])]

    def asked(self, example: int) -> str:
        """The question of an example in words; "" where nothing is asked."""
        return self.questions.words[int(self.questions.query[example])]

    def inputs(self, pictures: Tensor) -> Tensor:
        """Pictures by number, as the network sees them: (B,3,H,W)."""
        return self.store.take(self.places[pictures])

    def images(self, examples: Tensor) -> Tensor:
        """The pictures of examples, as the network sees them: (B,3,H,W)."""
        return self.inputs(self.questions.picture[examples])

    def query(self, examples: Tensor) -> Tensor | None:
        """The numbers (B,) of the questions; None where nothing is asked."""
        return self.questions.query[examples] if self.questions.are_asked else None

    def row(self, examples: Tensor) -> Tensor:
        """Where the evidence of examples is, (B,)."""
        return self.places[examples] if self.rows is None else self.rows[examples]

    def evidence_of(self, examples: Tensor) -> Tensor | None:
        """The evidence (B,H,W) bool of examples; None where the data has none."""
        return None if self.evidence is None else self.evidence.marks(self.row(examples)).evidence()

    def canvas(self, examples: Tensor) -> tuple[Tensor, Tensor]:
        """For each picture: the frame from the network input to it (B,2,3), and its height and width (B,2)."""
        place = self.places[self.questions.picture[examples]]
        size = self.store.image_size[place]
        return self.store.canvas[place] if self.folder is None else self.folder.canvas(size), size


def with_maps(table: Table, folder: FeatureFolder) -> tuple[Table, str]:
    """The rows of ``table`` whose pictures have a map in ``folder``, and a remark on the others.

    Raises:
        DataError: no picture has one, or two have the same.
    """
    rows = table.as_found or table.rows
    kept = tuple(row for row in rows if folder.file_of(row.image) is not None)
    if not kept:
        raise DataError(
            f"{folder.folder}: no map has the name of a picture of {table.name}, such as {rows[0].image.stem}"
        )
    folder.check_apart([row.image for row in kept])
    lost = [row.image.name for row in rows if folder.file_of(row.image) is None]
    said = f"{pluralise(len(lost), 'picture')} left out without a map: {first_few(lost, _NAMED)}" if lost else ""
    return replace(table, rows=kept, as_found=kept), said


def usable_pictures(table: Table, size: Size, on_progress: OnProgress) -> ProbedPictures:
    """The pictures and questions of ``table`` that a probe can use; its own splits are put together.

    Raises:
        DataError: fewer than two classes can be compared, or too many.
    """
    rows = table.as_found or table.rows
    _check_count(table.name, "classes", {row.label for row in rows}, MAX_CLASSES)
    remarks = _doubts(table, rows)
    files = [*dict.fromkeys(row.image for row in rows)]
    number_of = {path: number for number, path in enumerate(files)}
    own = [number_of[row.image] for row in rows]
    store = PreparedPictures(
        files,
        size,
        torch.device("cpu"),
        limit=DECODED,
        progress=lambda done, total: on_progress("pictures", done, total),
    )
    if store.unreadable:
        broken = [files[number].name for number in sorted(store.unreadable)]
        remarks.append(f"{pluralise(len(broken), 'picture')} cannot be read: {first_few(broken, _NAMED)}")
    readable = [number for number in range(len(files)) if number not in store.unreadable]
    if not readable:
        raise DataError(f"{table.name}: {remarks[-1]}; nothing is left to probe")
    evidence = Evidence(rows, store, torch.device("cpu"), limit=DECODED, picture_of=own)
    if evidence.wrong:
        remarks.append(f"evidence that cannot be used: {summarised([*evidence.wrong.values()])}")
    first_of = copy_groups([files[number] for number in readable])
    like = {number: readable[first] for number, first in zip(readable, first_of)}  # picture → picture
    usable = [place for place in range(len(rows)) if own[place] in like]  # rows
    first_row: dict[int, int] = {}
    alike = [first_row.setdefault(like[own[place]], at) for at, place in enumerate(usable)]
    groups = together([rows[place].group for place in usable], alike)
    named = {rows[place].group for place in usable} - {""}
    if named:
        remarks.append(
            f"{pluralise(len(named), 'group')} of pictures that belong together, by the column 'group': each stays on "
            "one side of every split"
        )
    kept = _frequent(rows, usable, groups, "groups" if named else "pictures", remarks)
    classes = tuple(sorted({rows[usable[at]].label for at in kept}))
    if len(classes) < 2:
        raise DataError(
            f"{table.name}: {pluralise(len(classes), 'class', 'classes')} with {MIN_GROUPS} different pictures or "
            f"more; a probe needs two of them: add pictures{''.join(f'; {each}' for each in remarks)}"
        )
    chosen = [usable[at] for at in kept]  # rows
    pictures = [*dict.fromkeys(own[place] for place in chosen)]  # of the store
    label_of = {word: number for number, word in enumerate(classes)}
    return ProbedPictures(
        paths=tuple(files[number] for number in pictures),
        labels=torch.tensor([label_of[rows[place].label] for place in chosen]),
        classes=classes,
        groups=tuple(groups[at] for at in kept),
        store=store,
        places=torch.tensor(pictures),
        remarks=tuple(remarks),
        copies=tuple((files[each].name, files[like[each]].name) for each in pictures if like[each] != each),
        evidence=evidence if evidence.is_there else None,
        rows=torch.tensor(chosen),
        questions=_questions(table.name, [rows[place] for place in chosen], [own[place] for place in chosen], pictures),
    )


def _doubts(table: Table, rows: Sequence[Row]) -> list[str]:
    """What is wrong with a table before a picture is opened, in words."""
    skipped = [entry for entry in table.skipped if not entry.startswith(_UNSEEN)]
    asked = sorted({row.query for row in rows} - {""})
    said = (
        f"left out when {table.name} was read: {summarised(skipped)}" if skipped else "",
        spellings(sorted({row.label for row in rows}), "labels"),
        spellings(asked, "questions"),
        contradictions(((row.image, row.query, (row.label,)) for row in rows), "question") if asked else "",
    )
    return [each for each in said if each]


def _frequent(
    rows: Sequence[Row], usable: Sequence[int], groups: Sequence[int], what: str, remarks: list[str]
) -> list[int]:
    """The places in ``usable`` whose label and question come in enough groups; the others are said in ``remarks``."""
    kept = [*range(len(usable))]
    kinds: tuple[tuple[str, str, Callable[[Row], str]], ...] = (
        ("question", "questions", lambda row: row.query),
        ("class", "classes", lambda row: row.label),
    )
    for thing, several, word in kinds:
        words = sorted({word(rows[usable[at]]) for at in kept})
        number = {each: place for place, each in enumerate(words)}
        own = [number[word(rows[usable[at]])] for at in kept]
        held = groups_of_class(own, [groups[at] for at in kept])
        few = [each for each in words if held[number[each]] < MIN_GROUPS]
        if few and (thing == "class" or words != [""]):
            remarks.append(
                f"{pluralise(len(few), thing, several)} left out with fewer than {MIN_GROUPS} different {what}: "
                f"{first_few(few, _NAMED)}"
            )
            gone = {*few}
            kept = [at for at in kept if word(rows[usable[at]]) not in gone]
    return kept


def _questions(name: str, rows: Sequence[Row], own: Sequence[int], pictures: Sequence[int]) -> Questions:
    """What the rows ask about their pictures (of the store)."""
    words = tuple(sorted({row.query for row in rows}))
    _check_count(name, "questions", words, MAX_QUESTIONS)
    number = {word: place for place, word in enumerate(words)}
    place = {picture: at for at, picture in enumerate(pictures)}
    query = torch.tensor([number[row.query] for row in rows])
    return Questions(words, query, torch.tensor([place[each] for each in own]))


def _check_count(name: str, several: str, found: Collection[str], most: int) -> None:
    if len(found) > most:
        raise DataError(f"{name}: {len(found):,} {several}; a probe compares {most:,} at most: name a part of the data")


def together(named: Sequence[str], alike: Sequence[int]) -> list[int]:
    """The group of each picture: pictures of one name, and those that look alike, are in one; (N,) numbers.

    Args:
        named: the group that the data names for each picture; "" where it names none.
        alike: number of the first picture that each one looks like; its own where there is none.
    """
    first_of: dict[str, int] = {}
    parent = [*range(len(named))]

    def root(number: int) -> int:
        while parent[number] != number:
            parent[number] = parent[parent[number]]
            number = parent[number]
        return number

    for number, (name, other) in enumerate(zip(named, alike)):
        for friend in (other, first_of.setdefault(name, number) if name else number):
            low, high = sorted((root(number), root(friend)))
            parent[high] = low
    return [root(number) for number in range(len(named))]


class Part(NamedTuple):
    """Some examples, with their pictures."""

    pictures: Tensor
    """(B,) numbers of pictures, each once."""
    places: Tensor
    """(R,) which of the examples that were asked for these are."""
    asked: ExampleQueries | None
    """None: nothing is asked."""


@dataclass(frozen=True)
class Questions:
    """What is asked, by the number of the example."""

    words: tuple[str, ...]
    """The questions that are known; its place here is a question's number."""
    query: Tensor
    """(N,) number of each question."""
    picture: Tensor
    """(N,) number of the picture it is about."""
    _order: Tensor = field(init=False, repr=False)
    _starts: Tensor = field(init=False, repr=False)

    def __post_init__(self) -> None:
        counts = torch.bincount(self.picture)  # (P,)
        object.__setattr__(self, "_order", self.picture.argsort(stable=True))  # examples, picture by picture
        object.__setattr__(self, "_starts", torch.cat([counts.new_zeros(1), counts.cumsum(0)]))  # (P+1,)

    @classmethod
    def none(cls, pictures: int) -> Questions:
        """Of each of so many pictures the same, which has no words."""
        return cls(("",), torch.zeros(pictures, dtype=torch.int64), torch.arange(pictures))

    @property
    def are_asked(self) -> bool:
        """Whether anything is asked; else an example is a picture."""
        return self.words != ("",)

    def about(self, pictures: Tensor) -> tuple[Tensor, ExampleQueries | None]:
        """All examples about the pictures (B,): their numbers (R,), and what they ask."""
        if not self.are_asked:
            return pictures, None
        first, behind = self._starts[pictures], self._starts[pictures + 1]  # (B,) each
        counts = behind - first
        place = torch.arange(len(pictures)).repeat_interleave(counts)  # (R,)
        within = torch.arange(int(counts.sum())) - (counts.cumsum(0) - counts)[place]  # (R,) 0, 1, … of each picture
        examples = self._order[first[place] + within]
        return examples, ExampleQueries(self.query[examples], place)

    def parts(self, examples: Tensor, size: int) -> Iterator[Part]:
        """The ``examples`` (n,) in parts about ``size`` pictures each."""
        pictures, own = torch.unique(self.picture[examples], return_inverse=True)  # (P',), (n,)
        if not self.are_asked:
            pictures, own = examples, torch.arange(len(examples))
        for first in range(0, len(pictures), size):
            places = ((own >= first) & (own < first + size)).nonzero()[:, 0]  # (R,)
            asked = ExampleQueries(self.query[examples[places]], own[places] - first)
            yield Part(pictures[first : first + size], places, asked if self.are_asked else None)

    def pictures_of(self, examples: Tensor) -> Tensor:
        """The pictures that the ``examples`` (n,) are about, each once."""
        found: Tensor = torch.unique(self.picture[examples])
        return found


MIN_GROUPS = 3
"""Groups of pictures that a class needs: one to learn from, one to choose with, one to be tested on."""


class Split(NamedTuple):
    """Numbers of pictures, (n,) each."""

    train: Tensor
    val: Tensor
    test: Tensor


def deal(labels: Sequence[int], groups: Sequence[int], folds: int, seed: int = 0) -> list[int]:
    """The fold of each picture.

    Groups are dealt class by class, large ones first, each to the fold that has the fewest pictures of its class; of
    equal ones to that with the fewest pictures. A group of several classes goes with its most frequent one.
    """
    members: dict[int, list[int]] = {}
    for number, group in enumerate(groups):
        members.setdefault(group, []).append(number)
    label_of = {
        group: min(Counter(labels[each] for each in held).items(), key=lambda pair: (-pair[1], pair[0]))[0]
        for group, held in members.items()
    }
    order = sorted(
        members, key=lambda group: (label_of[group], -len(members[group]), hashed_share(f"{seed} {group}"), group)
    )
    of_class: Counter[tuple[int, int]] = Counter()
    total: Counter[int] = Counter()
    fold_of = [0] * len(labels)
    for group in order:
        label = label_of[group]
        fold = min(range(folds), key=lambda fold: (of_class[fold, label], total[fold], fold))
        for number in members[group]:
            fold_of[number] = fold
            of_class[fold, labels[number]] += 1
            total[fold] += 1
    return fold_of


def splits_of(fold_of: Sequence[int], folds: int) -> list[Split]:
    """The J splits of pictures that were dealt into J folds."""
    fold = torch.tensor(fold_of)  # (N,)
    made = []
    for number in range(folds):
        chosen = (fold == number, fold == (number + 1) % folds)
        parts = (~(chosen[0] | chosen[1]), chosen[1], chosen[0])
        made.append(Split(*(part.nonzero()[:, 0] for part in parts)))
    return made


def groups_of_class(labels: Sequence[int], groups: Sequence[int]) -> Counter[int]:
    """How many groups each class has."""
    return Counter(label for label, _ in {*zip(labels, groups)})


def some_of(split: Split, share: float, labels: Tensor, questions: Questions) -> Tensor:
    """The first ``share`` of the training pictures of each class, at least one: (n,) examples.

    With questions a picture has several answers, so classes are not looked at: a picture comes with all its questions.
    """
    if questions.are_asked:
        pictures = questions.pictures_of(split.train).tolist()
        ranked = sorted(pictures, key=lambda number: hashed_share(f"share {number}"))
        some = torch.tensor(ranked[: max(1, round(share * len(ranked)))])
        return split.train[torch.isin(questions.picture[split.train], some)]
    order = torch.tensor(sorted(split.train.tolist(), key=lambda number: hashed_share(f"share {number}")))
    kept: list[Tensor] = []
    for label in sorted({*labels[order].tolist()}):
        own = order[labels[order] == label]
        kept.append(own[: max(1, round(share * len(own)))])
    return torch.cat(kept).sort().values
