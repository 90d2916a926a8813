"""Notes what a run is trained on when it starts, and compares it when the run goes on.

``data.json`` in the run folder has the settings of the data in plain words, and of every other part (rows, pictures,
vocabulary, glyphs, …) how much there is and a digest. A run that goes on with other data would be a mixture of two
runs, so it is refused, unless the change is accepted; every model that is saved from there on says so.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from saccade.atomic import write_json
from saccade.config import check_schema
from saccade.errors import CheckpointError, ConfigError, DataError

FILE, SCHEMA_VERSION = "data.json", 2
IN_WORDS = "settings"
"""The part whose values are kept in plain words."""
Parts = Mapping[str, Sequence[tuple[str, str]]]
"""What a task learns from: names and values in order, part by part."""


def write_note(run: Path, parts: Parts, accepted: Sequence[str]) -> None:
    """Note ``parts``, and the changes that were accepted so far, in the folder ``run``."""
    write_json(run / FILE, {"schema_version": SCHEMA_VERSION, "accepted": list(accepted), "parts": _noted(parts)})


def compare_data(run: Path, parts: Parts, *, accept: bool) -> tuple[list[str], list[str]]:
    """Changes of the data that were accepted before, and those since the note in the folder ``run``, in words.

    Raises:
        DataError: something changed since, and that is not accepted.
        CheckpointError: the note cannot be read, and a change is not accepted.
    """
    cure = "continue with `resume=True` and `accept_changed_data=True`"
    try:
        values = json.loads((run / FILE).read_text(encoding="utf-8"))
        check_schema(values["schema_version"], SCHEMA_VERSION, what=FILE)
        accepted, changes = [str(each) for each in values["accepted"]], _changes(values["parts"], _noted(parts))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, ConfigError) as error:
        if not accept:
            raise CheckpointError(f"{run / FILE}: cannot be read ({error}); put the file back, or {cure}") from error
        return [], [f"it is not known how: {FILE} could not be read"]
    if changes and not accept:
        raise DataError(
            f"{run}: the data is not what the run began with: {'; '.join(changes)}. Put it back, start a new run in "
            f"another `out`, or {cure}"
        )
    return accepted, changes


def _noted(parts: Parts) -> dict[str, Any]:
    return {part: dict(entries) if part == IN_WORDS else _digest(entries) for part, entries in parts.items()}


def _digest(entries: Sequence[tuple[str, str]]) -> str:
    """How many entries there are, and what they are: in order, with their names.

    >>> _digest([("a.png", "#1"), ("b.png", "#2")])
    '2 (a2f7e5735adad70b)'
    """
    content = json.dumps([list(entry) for entry in entries], ensure_ascii=False).encode()
    return f"{len(entries)} ({hashlib.sha256(content).hexdigest()[:16]})"


def _changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """What is not as it was, in words.

    >>> _changes({"settings": {"seed": "0"}, "rows": "6 (ab)"}, {"settings": {"seed": "1"}, "rows": "4 (cd)"})
    ['settings: seed was 0, now 1', 'rows: was 6 (ab), now 4 (cd)']
    """
    told = []
    for part in dict.fromkeys((*old, *new)):
        before, now = old.get(part), new.get(part)
        if part == IN_WORDS and before is not None and now is not None:
            names = [name for name in dict.fromkeys((*before, *now)) if before.get(name) != now.get(name)]
            told += [f"{part}: {name} was {before.get(name)}, now {now.get(name)}" for name in names]
        elif before != now:
            told.append(f"{part}: was {before or 'not there'}, now {now or 'gone'}")
    return told
