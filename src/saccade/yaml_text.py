"""YAML as recipes use it: plain values only, with a limit on how many values a text may expand to.

Text, numbers, yes and no, lists and mappings are read; a date is text, and any other tag is an error. Keys are text as
they are written. References (``*name``) count as often as they are used, so ten lines cannot make a billion values.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

import yaml

from saccade.untrusted import DEEPEST, check_plain

LONGEST = 128 * 2**10
"""Characters; the longest recipe that comes with saccade has three thousand."""
MAX_NODES = 100_000
"""Values and keys, each counted as often as it is referred to."""
_LONGEST_NUMBER = 100  # characters
_PLAIN = ("null", "bool", "int", "float", "str", "seq", "map")
_TAG = "tag:yaml.org,2002:"
_EVENTS = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the same events, from C where PyYAML was built with it
_DROPPED = (f"{_TAG}timestamp", f"{_TAG}value")


def parse_yaml(text: str) -> object:
    """Plain values from ``text``; numbers such as ``1e-3`` are numbers, a repeated key is an error.

    Raises:
        ValueError: not YAML, or values that are too many, too deep or not plain; one line.
    """
    if len(text) > LONGEST:
        raise ValueError(f"{len(text):,} characters, and at most {LONGEST:,} are allowed")
    try:
        values = yaml.load(text, Loader=_PlainLoader)  # noqa: S506 - a SafeLoader
    except (yaml.YAMLError, ArithmeticError, LookupError, AttributeError, TypeError, RecursionError) as error:
        raise ValueError(" ".join(str(error).split())) from error
    check_plain(values)
    return values


def top_values(text: str, wanted: Collection[str], unless: Collection[str] = ()) -> dict[str, str]:
    """Single values at the top level of ``text``, as they are written; nothing is read once all ``wanted`` are found.

    Args:
        text: YAML.
        wanted: keys to look for.
        unless: further keys that are taken where they stand before the last of those.

    Raises:
        ValueError: not YAML, as far as it was read.
    """
    found: dict[str, str] = {}
    depth, key, is_key = 0, "", True
    try:
        for event in yaml.parse(text, Loader=_EVENTS):
            if depth == 1 and isinstance(event, yaml.NodeEvent):  # a key or a value of the outermost mapping
                text_of = event.value if isinstance(event, yaml.ScalarEvent) else ""
                if not is_key and text_of and (key in wanted or key in unless):
                    found[key] = text_of
                key, is_key = text_of, not is_key
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if found.keys() >= set(wanted):
                break
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from error
    return found


class _PlainLoader(yaml.SafeLoader):
    """SafeLoader for plain values, without two traps of YAML 1.1: 1e-3 read as text, the last of equal keys winning."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0
        self._nodes: dict[int, int] = {}
        """Values in a finished node, by its id; the tree keeps the nodes alive."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            node = super().compose_node(parent, index)
            if id(node) not in self._nodes:  # the node that it stands in is not finished
                raise _told(node, "a value that refers to itself")
            return node
        if self._depth > DEEPEST:
            event = self.peek_event()  # type: ignore[no-untyped-call]  # PyYAML has no types here
            raise _told(event, f"nested deeper than {DEEPEST} levels")
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        inside = node.value if isinstance(node, yaml.SequenceNode) else ()
        if isinstance(node, yaml.MappingNode):
            inside = [part for pair in node.value for part in pair]
        self._nodes[id(node)] = 1 + sum(self._nodes[id(part)] for part in inside)
        if self._nodes[id(node)] > MAX_NODES:
            raise _told(node, f"more than {MAX_NODES:,} values")
        return node

    def construct_mapping(self, node: yaml.Node, deep: bool = False) -> dict[object, object]:
        if not isinstance(node, yaml.MappingNode):
            raise _told(node, "a mapping was expected")
        seen = set()
        for key_node, _ in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise _told(key_node, "a key is text, not a list or a mapping")
            if key_node.value in seen:
                raise _told(key_node, f"key '{key_node.value}' again")
            seen.add(key_node.value)
        self.flatten_mapping(node)
        return {key_node.value: self.construct_object(value, deep=deep) for key_node, value in node.value}

    def construct_number(self, node: yaml.Node) -> object:
        kind = node.tag.removeprefix(_TAG)
        read = super().construct_yaml_int if kind == "int" else super().construct_yaml_float
        if isinstance(node, yaml.ScalarNode) and len(node.value) <= _LONGEST_NUMBER:
            try:
                return read(node)
            except (ValueError, IndexError):
                pass
        raise _told(node, f"'{str(node.value)[:_LONGEST_NUMBER]}' is not a number ({kind})")

    def construct_bool(self, node: yaml.Node) -> bool:
        if not isinstance(node, yaml.ScalarNode) or node.value.lower() not in self.bool_values:
            raise _told(node, f"'{str(node.value)[:_LONGEST_NUMBER]}' is neither true nor false")
        return self.bool_values[node.value.lower()]


def _told(where: Any, problem: str) -> yaml.MarkedYAMLError:
    """The error for a node or event, with its line."""
    return yaml.constructor.ConstructorError(problem=f"{problem} in line {where.start_mark.line + 1}")


_PlainLoader.yaml_constructors = {
    tag: read
    for tag, read in yaml.SafeLoader.yaml_constructors.items()
    if tag is None or tag.removeprefix(_TAG) in _PLAIN
}
_PlainLoader.add_constructor(f"{_TAG}int", _PlainLoader.construct_number)
_PlainLoader.add_constructor(f"{_TAG}float", _PlainLoader.construct_number)
_PlainLoader.add_constructor(f"{_TAG}bool", _PlainLoader.construct_bool)
_PlainLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in found if tag not in _DROPPED]
    for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_PlainLoader.add_implicit_resolver(
    f"{_TAG}float", re.compile(r"^[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$"), list("-+0123456789")
)
