"""Large JSON files piece by piece: the same elements as from the whole file, whatever the pieces."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade.data.tables import json_stream
from saccade.data.tables.json_stream import list_elements, member_elements
from saccade.errors import DataError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("json") / "x.json"


@given(st.lists(JSON, max_size=5), st.sampled_from([1, 2, 7, 1 << 20]), st.booleans())
def test_a_list(path, elements, chunk, indented):
    path.write_text(json.dumps(elements, indent=2 if indented else None), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_stream, "_CHUNK", chunk)
        assert list(list_elements(path)) == elements


@given(st.dictionaries(st.text(), st.lists(JSON, max_size=3) | JSON, max_size=4), st.sampled_from([1, 3, 1 << 20]))
def test_members_of_an_object(path, content, chunk):
    wanted = list(content)[::2]
    path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_stream, "_CHUNK", chunk)
        found = list(member_elements(path, *wanted))
    expected = [(name, each) for name in wanted if isinstance(content[name], list) for each in content[name]]
    assert found == expected


def test_only_a_window_is_in_memory(path, monkeypatch):
    monkeypatch.setattr(json_stream, "_CHUNK", 1000)
    path.write_text(json.dumps([{"text": "x" * 100, "n": n} for n in range(2000)]))
    largest = 0
    read_on = json_stream._Window._read_on

    def watched(self):
        nonlocal largest
        more = read_on(self)
        largest = max(largest, len(self._text))
        return more

    monkeypatch.setattr(json_stream._Window, "_read_on", watched)
    assert [each["n"] for each in list_elements(path)] == list(range(2000))
    assert 0 < largest < 3000


@pytest.mark.parametrize("text", ['[{"a": 1}, {"b": ', '[{"a": 1}', '[{"a": 1} nonsense]', "[", "[1, 2"])
def test_a_list_that_is_cut_short_is_named(path, text):
    path.write_text(text)
    with pytest.raises(DataError, match=r"x\.json: damaged or cut short"):
        list(list_elements(path))


@pytest.mark.parametrize("text", ['{"a": [1, 2', '{"a"', '{"a" 3}', '{"a": ', "{", '{"a": 1'])
def test_an_object_that_is_cut_short_is_named(path, text):
    path.write_text(text)
    with pytest.raises(DataError, match=r"x\.json: damaged or cut short"):
        list(member_elements(path, "a"))


def test_what_is_no_list_and_no_object(path):
    path.write_text('{"a": 1}')
    with pytest.raises(DataError, match="not a JSON list"):
        list(list_elements(path))
    path.write_text("[1]")
    with pytest.raises(DataError, match="not a JSON object"):
        list(member_elements(path, "a"))
    path.write_bytes(b'["\xff"]')
    with pytest.raises(DataError, match="cannot be read"):
        list(list_elements(path))
    with pytest.raises(DataError, match="cannot be read"):
        list(list_elements(path.parent / "nowhere.json"))
