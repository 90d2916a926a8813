"""The registry: families of the package, and what another package may add, wrong or right."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from saccade import families
from saccade.errors import ConfigError, DataError
from saccade.families import DataEntry, Family, ModelSpec

OTHER = Family(
    name="other",
    title="something in, something out",
    folder=Path(__file__).parent,
    models={"other-model": ModelSpec(object, "a model", "no paper")},
    data={"other-data": DataEntry("generator", "data", "none", "made on the fly")},
    headline=("score",),
)


OWN = ["question", "multiset", "caption", "story", "classify"]


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[object], None]]:
    """Lets an entry point lead to an object of this module, called FOUND."""

    def add(found: object) -> None:
        monkeypatch.setitem(globals(), "FOUND", found)
        point = EntryPoint("other", f"{__name__}:FOUND", families.GROUP)
        monkeypatch.setattr(families, "entry_points", lambda group: [point] if group == families.GROUP else [])
        monkeypatch.setattr(families, "_broken", {})
        families.families.cache_clear()

    yield add
    families.families.cache_clear()


def test_a_family_from_outside_stands_beside_those_of_the_package(added: Callable[[object], None]) -> None:
    added(OTHER)
    assert list(families.families()) == [*OWN, "other"]
    assert families.family_of_model("other-model") is OTHER
    assert families.family_of_data("other-data") is OTHER
    assert families.headline("other", {"accuracy": 0.5, "score": 0.25}) == ("score", 0.25)
    assert families.broken_families() == {}


def test_one_that_does_not_load_is_left_out_with_a_warning(added: Callable[[object], None]) -> None:
    added(OTHER)
    del globals()["FOUND"]  # the entry point leads nowhere now
    with pytest.warns(UserWarning, match="does not load and is left out .*AttributeError"):
        assert list(families.families()) == OWN
    (reason,) = families.broken_families().values()
    assert "AttributeError" in reason
    globals()["FOUND"] = None


def test_a_family_whose_name_is_taken_is_left_out(added: Callable[[object], None]) -> None:
    added(replace(OTHER, name="question"))
    assert families.family("question") is not OTHER
    assert list(families.families()) == OWN


def test_what_nobody_knows_is_named_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"no family 'captoin': did you mean 'caption'.*installed"):
        families.family("captoin")
    with pytest.raises(ConfigError, match="no model 'sfot': did you mean 'soft'"):
        families.model_spec("sfot")
    with pytest.raises(DataError, match="no generated data 'mreff': did you mean 'mref'"):
        families.family_of_data("mreff")
    with pytest.raises(DataError, match="no reader 'cvs': did you mean 'csv'"):
        families.family_of_data("cvs:table.csv")
    assert families.headline("not-installed", {"note": "x", "score": 0.5}) == ("score", 0.5)


@pytest.mark.parametrize(
    ("header", "name"),
    [("image,query,label", "question"), ("image,labels", "multiset"), ("image,caption", "caption")],
)
def test_a_table_is_of_the_family_whose_columns_it_has(tmp_path: Path, header: str, name: str) -> None:
    (tmp_path / "t.csv").write_text(f"{header}\na,b,c\n", encoding="utf-8")
    assert families.family_of_data(f"csv:{tmp_path / 't.csv'}").name == name


def test_every_target_of_every_family_is_there() -> None:
    for family in families.families().values():
        assert all(part() is not None for part in (family.reads, family.task, family.decode, family.responder))
        assert family.task().name == family.name
        assert callable(family.task().show_split)
        assert family.recipes()
        assert all(spec.load().Config for spec in family.models.values())
