"""How to treat maps and masks that cannot be scored as they are. Every choice is printed with the scores."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from saccade.data.maps.members import SEPARATOR
from saccade.errors import ConfigError

CHOICES: dict[str, dict[str, str]] = {
    "signed": {
        "keep": "values stay as they are; of masks and boxes a negative one is an error",
        "abs": "absolute values",
        "positive": "values below 0 become 0",
    },
    "resize": {
        "truth": "a map is laid over the picture at the size of the truth, smooth between its cells",
        "map": "a mask is brought to the size of the map; a pixel is in it where half of it was",
        "never": "a map of another size than its truth is an error",
    },
    "nan": {
        "skip": "a map with NaN or infinity is left out and counted",
        "zero": "NaN and infinity become 0",
        "stop": "a map with NaN or infinity is an error",
    },
    "missing": {
        "skip": "a truth without a map is left out and counted",
        "zero": "a truth without a map counts as a map of zeros",
        "stop": "a truth without a map is an error",
    },
    "empty": {
        "skip": "a map whose truth is empty is left out and counted",
        "stop": "an empty truth is an error",
    },
    "broken": {
        "stop": "a file that cannot be read is an error",
        "skip": "a file that cannot be read is left out and counted",
    },
}
"""What each policy may be, and what that means; the first is the default."""


@dataclass(frozen=True)
class Policies:
    """One choice of each, see :data:`CHOICES`."""

    signed: str = "keep"
    resize: str = "truth"
    nan: str = "skip"
    missing: str = "skip"
    empty: str = "skip"
    broken: str = "stop"
    separator: str = SEPARATOR
    """Between picture and question in the name of a map."""

    def __post_init__(self) -> None:
        if not self.separator.strip():
            raise ConfigError("separator: empty; what usually stands between picture and question is __")

    def to_json(self) -> dict[str, object]:
        """By name."""
        return asdict(self)

    def lines(self) -> list[str]:
        """Each choice and what it means, as it is printed."""
        return [f"{name} {getattr(self, name)}: {choices[getattr(self, name)]}" for name, choices in CHOICES.items()]
