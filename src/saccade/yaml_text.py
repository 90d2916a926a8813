"""YAML as recipes use it: plain values only. Text, numbers, yes and no, lists and mappings are read.

A date is text, keys are text as they are written, ``1e-3`` is a number, and a repeated key is an error. So is a
reference (``*name``): ten lines with references can make a billion values, and recipes have no use for them.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from saccade.untrusted import check_plain

LONGEST = 128 * 2**10
"""Characters; the longest recipe that comes with saccade has three thousand."""
_TAG = "tag:yaml.org,2002:"
_NOT_PLAIN = {f"{_TAG}{kind}" for kind in ("timestamp", "value", "merge", "set", "omap", "pairs", "binary")}
_QUICK = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def parse_yaml(text: str) -> object:
    """Plain values from ``text``.

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


def quick_yaml(text: str) -> object:
    """Plain values of a file of our own, by libyaml where PyYAML was built with it: many times as fast."""
    try:
        return yaml.load(text, Loader=_QUICK)  # noqa: S506 - a SafeLoader
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from error


class _PlainLoader(yaml.SafeLoader):
    """SafeLoader for plain values."""

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
    first: [(tag, pattern) for tag, pattern in found if tag not in _NOT_PLAIN]
    for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_PlainLoader.add_implicit_resolver(
    f"{_TAG}float", re.compile(r"^[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$"), list("-+0123456789")
)
