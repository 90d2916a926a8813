"""What training pictures hold most often: the answer of who never looks, which a reader of multisets must beat."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from saccade.families.multiset.table import MultisetTable


def commonest_multiset(table: MultisetTable, classes: Sequence[str]) -> tuple[int, ...] | None:
    """The labels that most training pictures of ``table`` have, as numbers of ``classes``; perhaps none at all.

    Of equally frequent ones the first in the table. None where no training picture is in the words of ``classes``.
    """
    number_of = {label: number for number, label in enumerate(classes)}
    held: Counter[tuple[int, ...]] = Counter()
    for row in table.rows:
        if row.split == "train" and all(label in number_of for label in row.labels):
            numbers = [number_of[label] for label in row.labels]
            held[tuple(numbers if table.kind == "list" else sorted(numbers))] += 1
    return held.most_common(1)[0][0] if held else None
