"""Coloured digits as integers: how their scenes are drawn, and a layout whose objects have colours."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from torch import Tensor

from saccade.data.scenes.backgrounds import Background, Black
from saccade.data.scenes.glyph_layout import GlyphLayout, with_object
from saccade.data.scenes.palette import COLOURS, rgb
from saccade.data.scenes.placement import FRACTION_BITS
from saccade.data.scenes.resize import GLYPH
from saccade.errors import ConfigError, DataError


@dataclass(frozen=True)
class SceneSpec:
    """How scenes are drawn; the defaults are the authors' (MREF)."""

    size: int = 100
    """Side of the picture in pixels."""
    count: tuple[int, int] = (5, 9)
    """Fewest and most digits."""
    scale: tuple[float, float] = (0.5, 3.0)
    """Range of the glyphs' scale; 1 is 28 px."""
    noise: float = 10.0
    """Standard deviation of the one number added to all three channels of a colour."""
    max_tries: int = 400
    """Tries per digit before the scene's scales and positions are drawn anew; the authors had no limit."""
    background: Background = field(default_factory=Black)
    """What lies behind the digits."""

    def __post_init__(self) -> None:
        if not 1 <= self.count[0] <= self.count[1] <= 10:
            raise ConfigError(f"count: digits are distinct, so 1 ≤ fewest ≤ most ≤ 10, found {self.count}")
        if not 0 < self.scale[0] < self.scale[1] or int(GLYPH * self.scale[0]) < 1 or self.largest > self.size:
            raise ConfigError(
                f"scale: {self.scale} of 28 px must rise and stay between 1 px and the picture's {self.size}"
            )
        if self.max_tries < 1 or self.noise <= 0:
            raise ConfigError(f"max_tries and noise must be positive, found {self.max_tries} and {self.noise}")

    @property
    def slots(self) -> int:
        """Length of the object axis."""
        return self.count[1]

    @property
    def extents(self) -> tuple[int, int]:
        """The scale range as sides in 2⁻¹⁶ px, upper end excluded."""
        low, high = (round(GLYPH * scale * (1 << FRACTION_BITS)) for scale in self.scale)
        return low, high

    @property
    def largest(self) -> int:
        """The largest side in whole pixels."""
        return (self.extents[1] - 1) >> FRACTION_BITS


@dataclass(frozen=True, eq=False, kw_only=True)
class SceneLayout(GlyphLayout):
    """Scenes of digits that are distinct and have colours."""

    spec: SceneSpec
    colour: Tensor
    """(B, N) id in ``COLOURS``."""
    noise: Tensor
    """(B, N) added to all channels of the colour."""

    @property
    def rgb(self) -> Tensor:
        """(B, N, 3) int64: the colours with their noise."""
        return rgb(self.colour, self.noise)

    def recolour(self, obj: Tensor, colour: Tensor) -> SceneLayout:
        """Give object ``obj`` (B,) of each scene the colour ``colour`` (B,); its noise stays."""
        self._check_objects(obj)
        if len(colour) and not 0 <= int(colour.min()) <= int(colour.max()) < len(COLOURS):
            raise DataError(f"colours are numbered 0..{len(COLOURS) - 1}, found {colour.tolist()}")
        return replace(self, colour=with_object(self.colour, obj, colour))
