"""Readers by name: references, options, and the one warning about what was left out."""

import warnings
from dataclasses import is_dataclass
from pathlib import Path

import pytest

from saccade.data.tables.references import split_reference
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


def test_references_are_reader_and_path():
    assert split_reference("csv:a b/c:d.csv", READERS) == ("csv", Path("a b/c:d.csv"))
    assert split_reference("cub:~/birds", READERS)[1] == Path.home() / "birds"


@pytest.mark.parametrize("reference", ["mref", "C:\\pictures\\t.csv", "c:/t.csv", "csv:", ":x", ""])
def test_what_is_no_reference(reference):
    with pytest.raises(DataError, match=r"is not READER:PATH, as in csv:my\.csv; readers: csv, jsonl, folder, coco, "):
        split_reference(reference, READERS)


def test_an_unknown_reader_or_option_names_the_nearest():
    with pytest.raises(DataError, match="no reader 'jsnl': did you mean 'jsonl'"):
        read_questions("jsnl:x")
    with pytest.raises(ConfigError, match=r"data\.options\.strct.*did you mean 'strict'"):
        read_questions("csv:x", {"strct": True})
    with pytest.raises(ConfigError, match=r"data\.options\.splits: found 'birds'"):
        read_questions("cub:x", {"splits": "birds"})


def test_rows_left_out_are_counted_in_one_warning(tmp_path):
    (tmp_path / "a.png").touch()
    table = tmp_path / "t.csv"
    table.write_text("image,query,label\na.png,q,x\n" + "".join(f"{n}.png,q,x\n" for n in range(9)))
    with pytest.warns(
        UserWarning, match=r"1 question read, left out 9 × no such picture in .* \(line 3, 0.png;"
    ) as caught:
        read_questions(f"csv:{table}")
    assert len(caught) == 1
    with pytest.raises(DataError, match="strict"):
        read_questions(f"csv:{table}", {"strict": True})
    table.write_text("image,query,label\na.png,q,x\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(read_questions(f"csv:{table}").rows) == 1
