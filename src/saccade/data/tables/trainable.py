"""Checks a table of your own pictures before training: it needs a name, and rows in train and val."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping
from typing import Protocol

from saccade.errors import ConfigError, DataError


class SplitTable(Protocol):
    """A table whose rows are in splits."""

    @property
    def name(self) -> str:
        """READER:PATH."""

    def count(self, split: str) -> int:
        """Rows in ``split``."""


def check_named(data: Mapping[str, object], readers: Collection[str], things: str) -> None:
    """Refuse settings of data that name none: a recipe for one's own pictures cannot know where they are.

    Args:
        data: the settings.
        readers: which READERs there are.
        things: what is trained on, in the plural.
    """
    if not data.get("name"):
        raise ConfigError(f"no {things} to train on: give `data=READER:PATH`; readers: {', '.join(readers)}")


def check_trainable(table: SplitTable, thing: str) -> None:
    """Refuse a table with nothing to learn from, or nothing to choose a model by.

    Args:
        table: the rows.
        thing: what one of them is.
    """
    for split in ("train", "val"):
        if not table.count(split):
            raise DataError(f"{table.name}: no {thing} in split '{split}'; training needs train and val rows")


def warn_of_one_answer(table: str, answers: Iterable[str], *, things: str, word: str) -> None:
    """Warn of data on which a model that looks at nothing is always right.

    Args:
        table: READER:PATH.
        answers: that of every training row.
        things: what the rows are, in the plural.
        word: what an answer is called.
    """
    known = {*answers}
    if len(known) == 1:
        (only,) = known
        warnings.warn(
            f"{table}: all training {things} have the {word} '{only}', so a model that always says it is never wrong "
            f"and its accuracy means nothing; add {things} with another {word}",
            stacklevel=3,
        )
