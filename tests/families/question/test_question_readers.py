"""Readers by name: references, options, and the one warning about what was left out."""

from dataclasses import is_dataclass

import pytest

from saccade.errors import ConfigError, DataError
from saccade.families import data_entries
from saccade.families.caption.published import CAPTION_READERS
from saccade.families.multiset.readers import MULTISET_READERS
from saccade.families.question.readers import READERS, read_questions
from saccade.families.story.data import READERS as STORY_READERS


def test_every_reader_is_in_the_catalog_and_has_options():
    kinds = (READERS, MULTISET_READERS, CAPTION_READERS)
    for name, reader in [item for readers in kinds for item in readers.items()]:
        assert data_entries()[name][0][1].kind == ("collection" if name == "causal" else "reader")  # it is drawn too
        assert is_dataclass(reader.options)
        assert reader.options() == reader.options()  # every option has a default
    listed = {name for name, held in data_entries().items() if held[0][1].kind == "reader"}
    assert listed | {"causal"} == set().union(*kinds, STORY_READERS)


def test_an_unknown_reader_or_option_names_the_nearest():
    with pytest.raises(DataError, match="no reader 'jsnl': did you mean 'jsonl'"):
        read_questions("jsnl:x")
    with pytest.raises(ConfigError, match=r"data\.options\.strct.*did you mean 'strict'"):
        read_questions("csv:x", {"strct": True})
    with pytest.raises(ConfigError, match=r"data\.options\.splits: found 'birds'"):
        read_questions("cub:x", {"splits": "birds"})
