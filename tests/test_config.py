"""Configurations: names and types are checked on the way in, and what comes out is plain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade.config import from_dict, migrate, set_by_path, to_dict
from saccade.errors import ConfigError


@dataclass(frozen=True)
class Optimizer:
    name: Literal["adam", "sgd"] = "adam"
    lr: float = 1e-3


@dataclass(frozen=True)
class Settings:
    steps: int
    optimizer: Optimizer = Optimizer()
    freeze: tuple[str, ...] = ()
    size: tuple[int, int] = (100, 100)
    rates: list[float] = field(default_factory=list)
    extra: dict[str, int] = field(default_factory=dict)
    note: str | None = None
    limit: int | float | None = None
    flag: bool = False
    anything: Any = None
    words: Sequence[str] = ()
    table: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.steps < 0:
            raise ValueError("steps cannot be negative")


def test_everything_a_yaml_file_can_hold() -> None:
    built = from_dict(
        Settings,
        {
            "steps": 5,
            "optimizer": {"name": "sgd", "lr": "1e-3"},  # YAML reads 1e-3 as text
            "freeze": ["a.*", "b"],
            "size": [64, 48],
            "rates": [1, 0.5],
            "extra": {"k": 3},
            "note": None,
            "limit": 7,
            "flag": True,
            "anything": {"x": [1]},
            "words": ["w"],
            "table": {"t": 2},
        },
    )
    assert built == Settings(
        5, Optimizer("sgd", 0.001), ("a.*", "b"), (64, 48), [1.0, 0.5], {"k": 3}, None, 7, True, {"x": [1]}, ("w",),
        {"t": 2.0},
    )  # fmt: skip
    assert isinstance(built.rates[0], float)


def test_a_dataclass_value_is_kept() -> None:
    optimizer = Optimizer("sgd")
    assert from_dict(Settings, {"steps": 1, "optimizer": optimizer}).optimizer is optimizer


def test_a_whole_float_is_an_integer() -> None:
    assert from_dict(Settings, {"steps": 1e3}).steps == 1000


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"stesp": 5}, "unknown setting 'stesp': did you mean 'steps'?"),
        ({"steps": 1, "optimizer": {"rl": 1}}, "unknown setting 'optimizer.rl': did you mean 'lr'?"),
        ({"steps": 1, 7: 1}, "unknown setting '7'"),
        ({}, "missing setting(s) steps"),
        ({"steps": "five"}, "steps: expected int, found str 'five'"),
        ({"steps": 1.5}, "steps: expected int, found float 1.5"),
        ({"steps": True}, "steps: expected int, found bool True"),
        ({"steps": None}, "steps: expected int, found nothing"),
        ({"steps": 1, "flag": 1}, "flag: expected bool, found int 1"),
        ({"steps": 1, "optimizer": {"lr": "fast"}}, "optimizer.lr: expected float, found str 'fast'"),
        ({"steps": 1, "optimizer": {"lr": True}}, "optimizer.lr: expected float, found bool True"),
        ({"steps": 1, "optimizer": {"name": "sdg"}}, "optimizer.name: found 'sdg'; did you mean 'sgd'?"),
        ({"steps": 1, "optimizer": 3}, "optimizer: expected a mapping of settings, found int 3"),
        ({"steps": 1, "freeze": "a"}, "freeze: expected a list, found str 'a'"),
        ({"steps": 1, "freeze": [1]}, "freeze.0: expected str, found int 1"),
        ({"steps": 1, "size": [1]}, "size: expected 2 values, found 1"),
        ({"steps": 1, "size": [1, "x"]}, "size.1: expected int"),
        ({"steps": 1, "extra": [1]}, "extra: expected a mapping, found list"),
        ({"steps": 1, "extra": {"k": "v"}}, "extra.k: expected int"),
        ({"steps": 1, "limit": "many"}, "limit: expected int"),
        ({"steps": -1}, "Settings: steps cannot be negative"),
        ({"steps": 2**63}, "steps: a whole number beyond 64 bits"),
        ({"steps": 1e300}, "steps: expected int, found float 1e+300"),
        ({"steps": 1, "optimizer": {"lr": 10**400}}, "optimizer.lr: a whole number beyond 64 bits"),
        ({"steps": 1, "note": "a\0b"}, "note: text that holds NUL"),
        ({"steps": 1, "note": "a\ud800"}, "note: text that holds NUL or half of a surrogate pair: 'a\\ud800'"),
        ({"steps": 1, "flag": 16**5000}, "flag: expected bool, found int too long to be shown"),
        ({"steps": 1, "flag": "x" * 500}, "x" * 119 + "…"),
        ({"s" * 500: 1}, f"unknown setting '{'s' * 120}': choose from"),
        ([], "Settings: expected a mapping of settings, found list []"),
    ],
)
def test_each_mistake_is_named(values: Any, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        from_dict(Settings, values)
    assert said in str(caught.value)


def test_messages_start_at_where() -> None:
    with pytest.raises(ConfigError, match=r"unknown setting 'recipe\.data\.sedd'"):
        from_dict(Settings, {"sedd": 1}, where="recipe.data")


TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=5)
INTEGER = st.integers(-(2**63), 2**63 - 1)


@given(
    st.builds(
        Settings,
        steps=st.integers(0, 10**6),
        optimizer=st.builds(Optimizer, st.sampled_from(["adam", "sgd"]), st.floats(1e-6, 1)),
        freeze=st.lists(TEXT, max_size=3).map(tuple),
        size=st.tuples(INTEGER, INTEGER),
        note=st.none() | TEXT,
        extra=st.dictionaries(st.text(max_size=3), INTEGER, max_size=3),
        flag=st.booleans(),
    )
)
def test_there_and_back(config: Settings) -> None:
    assert from_dict(Settings, to_dict(config)) == config


def test_to_dict_is_plain() -> None:
    plain = to_dict(Settings(1, freeze=("a",), extra={"k": 1}))
    assert plain["freeze"] == ["a"]
    assert plain["optimizer"] == {"name": "adam", "lr": 1e-3}


def test_to_dict_refuses_what_is_no_configuration() -> None:
    with pytest.raises(TypeError, match="not list"):
        to_dict([1])


def test_migrations_run_in_order_and_leave_the_input_alone() -> None:
    table = {1: lambda v: {**v, "b": v["a"] + 1}, 2: lambda v: {**v, "c": v["b"] * 10}}
    old = {"schema_version": 1, "a": 1}
    assert migrate(old, table, 3, what="x") == {"schema_version": 3, "a": 1, "b": 2, "c": 20}
    assert old == {"schema_version": 1, "a": 1}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, "schema_version"),
        ({"schema_version": "1"}, "schema_version"),
        ({"schema_version": True}, "schema_version"),
        ({"schema_version": 9}, "schema_version 9"),
        ({"schema_version": 1}, "schema_version 1"),
    ],
)
def test_versions_that_cannot_be_read(values: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        migrate(values, {}, 3, what="a file")


def test_set_by_path_makes_the_groups_it_needs() -> None:
    values: dict[str, Any] = {"a": None, "list": [{"k": 1}, {"k": 2}]}
    set_by_path(values, "a.b.c", 1)
    set_by_path(values, "list.-1.k", 3)
    set_by_path(values, "list.0", 4)
    assert values == {"a": {"b": {"c": 1}}, "list": [4, {"k": 3}]}


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("list.2.k", "`overrides=list.2`: the list there has 2 entries"),
        ("list.-3", "the list there has 2 entries"),
        ("list.x", "the list there has 2 entries"),
        ("list.--1", "the list there has 2 entries"),
        ("list.²", "the list there has 2 entries"),
        ("steps.deep", "`overrides=steps.deep`: 'deep' is inside a plain value"),
    ],
)
def test_set_by_path_names_the_place(path: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        set_by_path({"list": [1, 2], "steps": 5}, path, 0)
    assert said in str(caught.value)
