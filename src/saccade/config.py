"""Frozen dataclasses from plain dictionaries, and back.

One reader for every configuration. An unknown key is an error that names the nearest valid one, a value of the wrong
type an error that names the key; a file of another version is refused. Numbers have 64 bits, and a setting that decides
a size has bounds (:class:`Within`).

:func:`plain_yaml` reads YAML as recipes use it: text, numbers, yes and no, lists and mappings. A date is text, keys are
text as they are written, and ``1e-3`` is a number. A repeated key is an error, and so is a reference (``*name``): ten
lines with references can make a billion values.
"""

from __future__ import annotations

import dataclasses
import math
import re
import types
import typing
from collections.abc import Mapping, Sequence
from functools import cache
from numbers import Real
from typing import Annotated, Any, TypeVar

import yaml

from saccade.errors import LONGEST_SHOWN, ConfigError, nearest, shown_value
from saccade.files import HIGHEST_INT, LOWEST_INT, check_plain, check_text

T = TypeVar("T")


def from_dict(cls: type[T], values: Mapping[str, object], *, where: str = "") -> T:
    """Build the (frozen) dataclass ``cls`` from what a YAML or JSON file held, checking names and types on the way.

    ``where`` is a dotted path for messages.
    """
    values = _mapping(values, where or cls.__name__)
    # cls is a dataclass
    fields = {field.name: field for field in dataclasses.fields(cls) if field.init}  # type: ignore[arg-type]
    hints = _hints(cls)  # type: ignore[arg-type]  # mypy takes type[T] for unhashable
    for key in values:
        if key not in fields:
            at = f"{where}.{key}" if where else str(key)
            raise ConfigError(f"unknown setting '{at[:LONGEST_SHOWN]}': {nearest(str(key), fields)}")
    built = {key: _convert(hints[key], value, f"{where}.{key}" if where else key) for key, value in values.items()}
    required = [name for name, field in fields.items() if field.default is field.default_factory is dataclasses.MISSING]
    if missing := [name for name in required if name not in built]:
        raise ConfigError(f"{where or cls.__name__}: missing {', '.join(missing)}")
    try:
        return cls(**built)
    except (ValueError, TypeError, ArithmeticError) as error:  # its __post_init__ refused
        raise ConfigError(f"{where or cls.__name__}: {error}") from error


@dataclasses.dataclass(frozen=True)
class Within:
    """Bounds of a number, or of each number of a tuple: ``hidden: Annotated[int, Within(1, 8192)]``.

    Infinity and NaN are never within bounds.
    """

    least: float
    most: float = math.inf
    above: bool = False  #: Whether ``least`` itself is out of bounds.
    below: bool = False  #: Whether ``most`` itself is out of bounds.

    def check(self, value: object, where: str) -> None:
        """Raise a ConfigError that names ``where`` and the bound if a number of ``value`` is out of bounds."""
        for number in value if isinstance(value, tuple) else (value,):
            if not isinstance(number, Real):
                continue
            number = float(number)
            enough = number > self.least if self.above else number >= self.least
            few = number < self.most if self.below or self.most == math.inf else number <= self.most
            if not (enough and few):
                raise ConfigError(f"{where}: must be {self}, found {shown_value(value)}")

    def __str__(self) -> str:
        if not self.above and not self.below and self.most < math.inf:
            return f"{self.least:,} to {self.most:,}"
        low = f"above {self.least:,}" if self.above else f"{self.least:,} or more"
        return low if self.most == math.inf else f"{low} and {'below' if self.below else 'at most'} {self.most:,}"


Share = Annotated[float, Within(0, 1)]  # A part of a whole: 0 to 1.
Portion = Annotated[float, Within(0, 1, below=True)]  # A part of a whole that is never all of it.
Weight = Annotated[float, Within(0)]  # The weight of a term of a loss: 0 or more.
Count = Annotated[int, Within(1)]
Seed = Annotated[int, Within(0, 2**63 - 1)]


def to_dict(config: object) -> dict[str, Any]:
    """The plain dictionary of a dataclass, ready for JSON or YAML (tuples become lists)."""

    def plain(value: object) -> Any:
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
        if isinstance(value, Mapping):
            return {str(key): plain(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [plain(item) for item in value]
        return value

    return dict(plain(config))


def check_schema(version: object, current: object, *, what: str) -> None:
    """Refuse a file of another version, and one that has no version."""
    if version != current:
        raise ConfigError(f"{what}: schema_version {shown_value(version)}, but this saccade reads {current} only")


def set_by_path(values: dict[str, Any], path: str, value: Any) -> None:
    """Set ``values["a"]["b"][0]`` by the dotted path ``a.b.0``, as ``--set a.b.0=…`` does.

    >>> recipe = {"phases": [{"steps": 5}]}
    >>> set_by_path(recipe, "phases.0.steps", 7); recipe
    {'phases': [{'steps': 7}]}
    """
    *parents, last = path.split(".")
    node: Any = values
    for depth, part in enumerate([*parents, last]):
        at = ".".join(path.split(".")[: depth + 1])
        is_last = depth == len(parents)
        if isinstance(node, list):
            key: Any = int(part) if re.fullmatch("-?[0-9]{1,9}", part) else None
            if key is None or not -len(node) <= key < len(node):
                raise ConfigError(f"`overrides={at}`: the list there has {len(node)} entries, numbered from 0")
        elif isinstance(node, dict):
            key = part
            if not is_last and (key not in node or node[key] is None):
                node[key] = {}
        else:
            raise ConfigError(f"`overrides={at}`: '{part}' is inside a plain value ({_kind(node)}), not a group")
        if is_last:
            node[key] = value
        else:
            node = node[key]


def by_path(values: object, path: str = "") -> dict[str, object]:
    """Every plain value in nested ``values`` by its dotted path, as :func:`set_by_path` takes it.

    >>> by_path({"a": {"b": [1, {"c": 2}]}, "d": {}})
    {'a.b.0': 1, 'a.b.1.c': 2, 'd': {}}
    """
    if not isinstance(values, (Mapping, list)) or not values:
        return {path: values}
    inside = values.items() if isinstance(values, Mapping) else enumerate(values)
    plain: dict[str, object] = {}
    for key, value in inside:
        plain |= by_path(value, f"{path}.{key}" if path else str(key))
    return plain


@cache
def _hints(cls: type) -> dict[str, object]:
    """The types of the fields of ``cls``; finding them takes longer than using them."""
    return typing.get_type_hints(cls, include_extras=True)


def _kind(value: object) -> str:
    return "nothing" if value is None else f"{type(value).__name__} {shown_value(value)}"


def _mapping(values: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(values, Mapping):
        raise ConfigError(f"{where}: expected a mapping of settings, found {_kind(values)}")
    return values


def _convert(hint: Any, value: Any, where: str) -> object:
    """``value`` as the type that ``hint`` asks for, or a ConfigError naming ``where``."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return value
    if origin is Annotated:
        converted = _convert(args[0], value, where)
        for bounds in args[1:]:
            bounds.check(converted, where)
        return converted
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in args:
            return None
        problems = []
        for option in (option for option in args if option is not type(None)):
            try:
                return _convert(option, value, where)
            except ConfigError as error:
                problems.append(str(error))
        raise ConfigError(problems[0])
    if origin is typing.Literal:
        if value in args:
            return value
        shown = shown_value(value)
        raise ConfigError(f"{where}: found {shown}; {nearest(shown.strip(chr(39)), map(str, args))}")
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return value if isinstance(value, hint) else from_dict(hint, value, where=where)
    if origin in (list, tuple, Sequence):
        if not isinstance(value, (list, tuple)):
            raise ConfigError(f"{where}: expected a list, found {_kind(value)}")
        if origin is tuple and not (len(args) == 2 and args[1] is Ellipsis):
            if len(value) != len(args):
                raise ConfigError(f"{where}: expected {len(args)} values, found {len(value)}")
            return tuple(_convert(arg, item, f"{where}.{i}") for i, (arg, item) in enumerate(zip(args, value)))
        items = [_convert(args[0] if args else Any, item, f"{where}.{i}") for i, item in enumerate(value)]
        return items if origin is list else tuple(items)
    if origin in (dict, Mapping):
        inside = _mapping(value, where).items()
        return {str(key): _convert(args[1] if args else Any, item, f"{where}.{key}") for key, item in inside}
    if hint in (int, float) and isinstance(value, int) and not LOWEST_INT <= value <= HIGHEST_INT:
        raise ConfigError(f"{where}: a whole number beyond 64 bits")
    if hint is float and isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if hint is float and isinstance(value, str):  # YAML reads 1e-3 as text
        try:
            return float(value)
        except ValueError:
            pass
    if hint is int and isinstance(value, float) and value.is_integer() and LOWEST_INT <= value <= HIGHEST_INT:
        return int(value)
    if hint is str and isinstance(value, str):
        try:
            check_text(value)
        except ValueError as error:
            raise ConfigError(f"{where}: {error}") from error
    if isinstance(hint, type) and isinstance(value, hint) and not (hint is int and isinstance(value, bool)):
        return value
    raise ConfigError(f"{where}: expected {getattr(hint, '__name__', hint)}, found {_kind(value)}")


LONGEST_YAML = 128 * 2**10  # Characters; the longest recipe that comes with saccade has three thousand.
_YAML = "tag:yaml.org,2002:"
_NOT_PLAIN = {f"{_YAML}{kind}" for kind in ("timestamp", "value", "merge", "set", "omap", "pairs", "binary")}
_QUICK = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def plain_yaml(text: str) -> object:
    """Plain values from ``text``; a ValueError of one line where they are too many, too deep or not plain."""
    if len(text) > LONGEST_YAML:
        raise ValueError(f"{len(text):,} characters, and at most {LONGEST_YAML:,} are allowed")
    try:
        values = yaml.load(text, Loader=_PlainLoader)  # noqa: S506 - a SafeLoader
    except (yaml.YAMLError, ArithmeticError, LookupError, AttributeError, TypeError, RecursionError) as error:
        raise ValueError(" ".join(str(error).split())) from error
    check_plain(values)
    return values


def quick_yaml(text: str) -> object:
    """Plain values of a file of our own, by libyaml where PyYAML was built with it: many times as fast."""
    return yaml.load(text, Loader=_QUICK)  # noqa: S506 - a SafeLoader


class _PlainLoader(yaml.SafeLoader):
    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError(f"a reference (*{self.peek_event().anchor}), which recipes do not have")  # type: ignore[no-untyped-call]  # PyYAML has no types here
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[object, object]:
        keys = [key.value for key, _ in node.value]
        if twice := [key for key in keys if keys.count(key) > 1]:
            raise yaml.YAMLError(f"key '{twice[0]}' again below line {node.start_mark.line + 1}")
        return {key.value: self.construct_object(value, deep=deep) for key, value in node.value}


_PlainLoader.yaml_constructors = {
    tag: read for tag, read in yaml.SafeLoader.yaml_constructors.items() if tag not in _NOT_PLAIN
}
_PlainLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _NOT_PLAIN]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_PlainLoader.add_implicit_resolver(
    f"{_YAML}float", re.compile(r"^[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$"), list("-+0123456789")
)
