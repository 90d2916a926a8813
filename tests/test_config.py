"""Configurations: names and types are checked on the way in, and what comes out is plain."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade.config import from_dict, set_by_path, to_dict
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


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ({"stesp": 5}, ("stesp", "steps")),
        ({}, ("steps",)),
        ({"steps": "five"}, ("steps", "five")),
        ({"steps": 1, "optimizer": {"name": "sdg"}}, ("optimizer.name", "sdg", "sgd")),
        ({"steps": 1, "freeze": [1]}, ("freeze.0", "1")),
        ({"steps": -1}, ("Settings", "steps")),
        ({"steps": 2**63}, ("steps", "64")),
        ({"steps": 1, "note": "a\0b"}, ("note", "NUL")),
        ({"steps": 1, "flag": "x" * 500}, ("x" * 119 + "…",)),
        ([], ("Settings",)),
    ],
)
def test_each_mistake_is_named(values: Any, names: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError) as caught:
        from_dict(Settings, values)
    assert all(name in str(caught.value) for name in names)


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


def test_set_by_path_makes_the_groups_it_needs() -> None:
    values: dict[str, Any] = {"a": None, "list": [{"k": 1}, {"k": 2}]}
    set_by_path(values, "a.b.c", 1)
    set_by_path(values, "list.-1.k", 3)
    set_by_path(values, "list.0", 4)
    assert values == {"a": {"b": {"c": 1}}, "list": [4, {"k": 3}]}


@pytest.mark.parametrize("path", ["list.2.k", "list.-3", "list.x", "list.--1", "list.²", "steps.deep"])
def test_set_by_path_names_the_place(path: str) -> None:
    with pytest.raises(ConfigError, match=r"overrides=(list\.|steps\.deep)"):
        set_by_path({"list": [1, 2], "steps": 5}, path, 0)
