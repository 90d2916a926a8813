"""Scores of human captions against the other humans' captions: a reference row for the table of models."""

from __future__ import annotations

from collections.abc import Callable

from saccade.data.tables.references import split_reference
from saccade.families.caption.flickr import FlickrOptions
from saccade.families.caption.readers import CAPTION_READERS, read_captions
from saccade.families.caption.reproduction.table1 import COLUMNS, DATA
from saccade.metrics.text.meteor import people_scores
from saccade.verbs.plain_table import PlainTable

MORE = {"length_ratio": "length", "rouge_l": "ROUGE-L", "cider": "CIDEr-D"}
"""Further columns, which the paper does not print."""


def people_table(
    data: str, reference: str, protocol: str, progress: Callable[[str, int, int], None]
) -> PlainTable | None:
    """The row of people on the test pictures of ``data``; None where no test picture is there.

    Args:
        data: name of the data set.
        reference: READER:PATH of its captions.
        protocol: which pictures are the test pictures, where the reader has a choice.
        progress: called with what is going on, how far it is, and how far it goes.

    Raises:
        DataError: the captions cannot be read, or no picture has two.
    """
    reader, _ = split_reference(reference, CAPTION_READERS)
    has_choice = issubclass(CAPTION_READERS[reader].options, FlickrOptions)
    table = read_captions(reference, {"splits": protocol} if has_choice else {})
    said = [row.captions for row in table.rows if row.split == "test"]
    if not said:
        return None
    found = people_scores(said, lambda done, total: progress("people against people", done, total))
    columns = COLUMNS | MORE
    texts = [f"{100 * found.metrics[name]:.2f}" if name in found.metrics else "–" for name in columns]
    title = f"people against people, BLEU without brevity penalty, % on {DATA[data]}"
    note = (
        f"Each of {found.turns} captions of {found.pictures:,} pictures against the others, mean; a model is judged "
        "with one reference more."
    )
    return PlainTable(title, ["", *columns.values()], [["People", *texts]], note)
