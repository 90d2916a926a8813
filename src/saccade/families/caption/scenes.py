"""Scenes with one canonical sentence each, as a pure function of (seed, scene number).

One or two coloured digits, small or large: "a large green three", "a small red seven above a large white two", "a large
blue one left of a small white four". By construction, exactly one sentence is right:

* small digits have 18 to 27 hundredths of the picture's side, large ones 36 to 48;
* two digits are in reading order, the upper or the left one first: their centres are farther apart along the one axis
  than along the other by ``MARGIN``, and along it the boxes are disjoint;
* the two digits of a scene are different ones; their colours may be the same.

A share of the scenes may be empty, of which "nothing" is said, by a draw of its own: all others stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from saccade.data.scenes.drawing import COLOURS, FRACTION_BITS, GLYPH
from saccade.data.scenes.glyphs import CLASSES, GlyphSet
from saccade.data.scenes.hashing import State, hash_more, hash_state, rounded_normal, uniform_below
from saccade.data.scenes.layout import SceneLayout, SceneSpec
from saccade.errors import ConfigError, DataError
from saccade.families.caption.vocabulary import END, NO_WORD, Vocabulary

SIDES = ((18, 27), (36, 48))  # least and largest side of small and of large digits, in hundredths of the picture's side
MARGIN = 6  # how much more two digits differ along one axis than along the other, in hundredths of the picture's side

SIZE_WORDS = ("small", "large")
DIGIT_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
NOTHING = "nothing"  # what is said of an empty scene
# All that is ever said of a scene.
SCENE_VOCABULARY = Vocabulary(("a", *SIZE_WORDS, *COLOURS, *DIGIT_WORDS, "above", "left", "of", NOTHING))
LONGEST = 10  # words of the longest sentence, without its end

_DIGITS = 2  # in a scene at most
_COUNT, _ORDER, _COLOUR, _NOISE, _GLYPH, _SIZE, _SIDE, _AXIS, _PLACE, _EMPTY = range(10)  # draws within a scene


def scene_vocabulary(*, empty: bool) -> Vocabulary:
    """The words for scenes; "nothing", the last word, only if some are ``empty``."""
    return SCENE_VOCABULARY if empty else Vocabulary(SCENE_VOCABULARY.words[:-1])


@dataclass(frozen=True)
class CaptionSpec(SceneSpec):
    """How captioned scenes are drawn."""

    empty: float = 0.0  # Share of scenes without a digit


def scene_spec(size: int, empty: float = 0.0) -> CaptionSpec:
    """How scenes of side ``size`` are drawn; the shipped models use 100."""
    if not 40 <= size <= 400:
        raise ConfigError(f"size: scenes are 40 to 400 pixels wide, found {size}")
    smallest, largest = SIDES[0][0] * size // 100, SIDES[1][1] * size // 100
    scale = (smallest / GLYPH, (largest + 1) / GLYPH)
    return CaptionSpec(size=size, count=(1, _DIGITS), scale=scale, empty=empty)


def sample_captioned(spec: CaptionSpec, glyphs: GlyphSet, seed: int, indices: Tensor) -> SceneLayout:
    """The scenes ``indices`` (B,) of the stream ``seed``, on the device of ``indices``; objects in reading order."""
    indices = indices.long()
    glyphs = glyphs.to(indices.device)
    slot = torch.arange(_DIGITS, device=indices.device)
    scene = hash_state(seed, indices[:, None])  # lanes (B, 1)
    order = hash_more(scene, _ORDER, torch.arange(CLASSES, device=indices.device))  # (B, 10)
    classes = torch.argsort(order, dim=1, stable=True)[:, :_DIGITS]  # (B, 2)
    is_large = uniform_below(hash_more(scene, _SIZE, slot), len(SIDES))  # (B, 2)
    low, high = (torch.tensor(SIDES, device=indices.device) * spec.size // 100)[is_large].unbind(-1)  # (B, 2)
    side = low + uniform_below(hash_more(scene, _SIDE, slot), high + 1 - low)  # (B, 2)
    present = slot < 1 + uniform_below(hash_more(scene, _COUNT), _DIGITS)  # (B, 2)
    x, y = _places(spec.size, scene, side * present)
    return SceneLayout(
        spec=spec,
        glyphs=glyphs,
        seed=seed,
        index=indices,
        classes=classes,
        glyph=glyphs.pick(classes, hash_more(scene, _GLYPH, slot)),
        colour=uniform_below(hash_more(scene, _COLOUR, slot), len(COLOURS)),
        noise=rounded_normal(hash_more(scene, _NOISE, slot), spec.noise),
        extent=side << FRACTION_BITS,
        x=x,
        y=y,
        present=present & (hash_more(scene, _EMPTY) >= round(spec.empty * 2**32)),
    )


def _places(size: int, scene: State, side: Tensor) -> tuple[Tensor, Tensor]:
    """(B, 2) left and top edges of boxes of ``side`` (B, 2); a second side of 0 is an absent digit.

    Along the main axis the free space is split at random into before, between and behind. Across it the second digit
    lies as near to the first as ``MARGIN`` requires.
    """
    bits = hash_more(scene, _PLACE, torch.arange(4, device=side.device))  # (B, 4)
    first, second = side.unbind(1)  # (B,)
    room = size - first - second
    between = uniform_below(bits[:, 0], torch.where(second > 0, room + 1, 1))
    along = uniform_below(bits[:, 1], room - between + 1)
    across = uniform_below(bits[:, 2], size - first + 1)
    # Centres are counted in half pixels; twice the distance of the centres along the axis less the margin is left.
    reach = 2 * between + first + second - 2 * (MARGIN * size // 100)
    centre = 2 * across + first
    lowest = (centre - reach - second + 1).clamp(min=0) // 2
    highest = torch.minimum((centre + reach - second).div(2, rounding_mode="floor"), size - second)
    other = lowest + uniform_below(bits[:, 3], (highest - lowest + 1).clamp(min=1))
    along, across = torch.stack([along, along + first + between], 1), torch.stack([across, other], 1)  # (B, 2)
    is_there = side > 0
    beside = hash_more(scene, _AXIS) & 1 == 1  # (B, 1)
    return torch.where(beside, along, across) * is_there, torch.where(beside, across, along) * is_there


# Places of words in "nothing", a sentence about one digit, one with "above" and one with "left of": 0 to 3 are "a small
# red seven" of the first digit, 4 to 7 of the second; then nothing, above, left, of, the end, no word.
_PLACES = (
    (8, 12, *[13] * 9),
    (0, 1, 2, 3, 12, *[13] * 6),
    (0, 1, 2, 3, 9, 4, 5, 6, 7, 12, 13),
    (0, 1, 2, 3, 10, 11, 4, 5, 6, 7, 12),
)
_NAMED = (-1, 0, 0, 0, -1, 1, 1, 1, *[-1] * 6)  # the digit that each of them names


def check_words(vocabulary: Vocabulary, *, empty: bool) -> None:
    """A DataError if the vocabulary lacks words of scenes ("nothing" if some are ``empty``)."""
    if missing := [word for word in scene_vocabulary(empty=empty).words if word not in vocabulary]:
        wanted = "scenes, with empty ones, or leave out data.empty" if empty else "scenes"
        raise DataError(f"scenes: the vocabulary lacks '{', '.join(missing[:5])}'; use a model trained on {wanted}")


def describe(layout: SceneLayout, vocabulary: Vocabulary = SCENE_VOCABULARY) -> tuple[Tensor, Tensor]:
    """The sentences that are true of scenes, in the words of a vocabulary.

    Returns:
        (B,11) numbers of words, the end, then −1; and (B,11) the object whose size, colour or digit a word names, −1
        for the other words.
    """

    def numbers(*words: str) -> Tensor:
        return torch.tensor([vocabulary.number(word) for word in words], device=layout.device)

    is_large = layout.side * 100 > (SIDES[0][1] + SIDES[1][0]) * layout.spec.size // 2  # (B, 2)
    phrase = torch.stack(
        [
            numbers("a").expand_as(layout.classes),
            numbers(*SIZE_WORDS)[is_large.long()],
            numbers(*COLOURS)[layout.colour],
            numbers(*DIGIT_WORDS)[layout.classes],
        ],
        dim=-1,
    )  # (B, 2, 4)
    others = torch.cat([numbers(NOTHING, "above", "left", "of"), phrase.new_tensor([END, NO_WORD])])  # (6,)
    words = torch.cat([phrase.flatten(1), others.expand(len(layout), -1)], dim=1)  # (B, 14)
    # 0 and 1 for as many digits, 2 where the second is below the first, 3 where it is to the right: (B,)
    across, down = ((2 * edge + layout.side).diff(dim=1).squeeze(1).abs() for edge in (layout.x, layout.y))
    form = torch.where(layout.count < 2, layout.count, torch.where(down > across, 2, 3))
    places = torch.tensor(_PLACES, device=layout.device)[form]  # (B, 11)
    return words.gather(1, places), torch.tensor(_NAMED, device=layout.device)[places]
