"""``causal.json``: the settings, counts and digest of a causal set; and the frozen set ``causal-v1``.

``causal-v1`` is frozen: the first 10,000 usable scenes of seed 0, split test, on black, of the glyphs that ship with
saccade, so that everyone can draw it without a download. Its digest is pinned here. If these settings draw anything
else, saccade raises an error and writes nothing. A change of the drawing needs a new version.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from saccade.config import from_dict
from saccade.errors import ConfigError, DataError

FACTS = "causal.json"
ROWS = "truth.jsonl"
CARD = "README.md"
FORMAT = 1
"""Version of the folder's layout."""

V1 = "causal-v1"
V1_COUNT = 10_000
V1_SETTINGS = {
    "background": "black",
    "split": "test",
    "seed": 0,
    "start": 0,
    "glyphs": "pack-test-600",
    "drawing": "blend",
}
V1_DIGESTS = {
    32: "54f8f645900b60b59364ae1ffac568a9751a50777c5084af800d5a642ccb518f",
    V1_COUNT: "f69133d299b71eb1c1f89849e0db2cd1c4a1b2d2a2847aa5f2afd39e40c24cdc",
}
"""Number of scenes from the first on → digest."""


@dataclass(frozen=True)
class CausalFacts:
    """What is known of a set without reading its scenes."""

    scenes: str
    """mref, mdist or mbg: what lies behind the digits."""
    split: str
    seed: int
    start: int
    """Number of the first scene that was looked at; those that cannot be used are passed over."""
    glyphs: str
    """Name of the glyphs, which says how many there are."""
    drawing: str
    background: str
    other_background: str
    """What lies behind the digits in the twin ``background_changed``."""
    count: int
    """Scenes."""
    last: int
    """Number of the last scene."""
    digest: str
    licence: str
    pictures: bool
    """Whether there are PNG files; else there is Parquet alone."""
    size: int = 100
    """Side of a picture in pixels."""
    format: int = FORMAT
    version: str | None = None
    """``causal-v1``, where it is that."""
    queries: tuple[str, ...] = field(default_factory=lambda: tuple(map(str, range(10))))
    answers: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Plain values."""
        return asdict(self)


def facts_of(told: Mapping[str, object], where: str) -> CausalFacts:
    """The facts in a file, checked.

    Raises:
        DataError: it is not what saccade writes, or its layout is of a later version.
    """
    version = told.get("format")
    if isinstance(version, int) and version > FORMAT:
        raise DataError(f"{where}: format {version} is newer than {FORMAT}, which this saccade reads; update it")
    try:
        facts = from_dict(CausalFacts, dict(told), where=where)
    except ConfigError as error:
        raise DataError(f"{where}: not the facts of a causal set ({error}); make the set again") from error
    if facts.version is not None:
        check_frozen(facts, where)
    return facts


def is_frozen(facts: CausalFacts) -> bool:
    """Whether a set has the settings of ``causal-v1``, with as many scenes or fewer."""
    same = all(getattr(facts, name) == value for name, value in V1_SETTINGS.items())
    return same and facts.count <= V1_COUNT


def check_frozen(facts: CausalFacts, where: str) -> None:
    """Refuse a set that says or should be a part of ``causal-v1`` with a known digest, and has another one.

    Raises:
        DataError: names both digests.
    """
    pinned = V1_DIGESTS.get(facts.count)
    if facts.version not in (None, V1):
        raise DataError(f"{where}: version '{facts.version}' is unknown; this saccade knows {V1}")
    if facts.version == V1 and (not is_frozen(facts) or facts.count != V1_COUNT):
        raise DataError(f"{where}: it says {V1}, but its settings or its number of scenes are others; make it again")
    if pinned is not None and is_frozen(facts) and facts.digest != pinned:
        raise DataError(
            f"{where}: the digest of the first {facts.count} scenes of {V1} is {pinned}, found {facts.digest}; "
            "the set is damaged, or this version of saccade draws other scenes"
        )
