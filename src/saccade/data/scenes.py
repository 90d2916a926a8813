"""The authors' scene sampler, as a pure function of (seed, scene number).

Per scene: a number of digits, uniform; identities, a random permutation of 0..9; colours, independent and with
repeats; one normal number of noise per colour; then, digit by digit, scale and position by rejection (``placement``).
After Seo, Lin, Cohen, Shen and Han, "Progressive Attention Networks for Visual Attribute Prediction"
(arXiv:1606.02393) and the generator the authors released.

Deviation: the authors try without end; here a scene in which a digit finds no place in ``max_tries`` tries draws all
its scales and positions anew. Number, identities, glyphs and colours stay, so they are known without sampling.
"""

from __future__ import annotations

import torch
from torch import Tensor

from saccade.data.glyphs import CLASSES, GlyphSet
from saccade.data.hashing import State, hash_more, hash_state, hash_u32, rounded_normal, uniform_below
from saccade.data.layout import SceneLayout, SceneSpec
from saccade.data.palette import COLOURS
from saccade.data.placement import FRACTION_BITS, Occupancy, first_free, packed_rows
from saccade.data.resize import by_padding, resized
from saccade.errors import DataError

_COUNT, _ORDER, _COLOUR, _NOISE, _GLYPH, _PLACE = range(6)  # streams of draws within a scene
_MAX_ATTEMPTS = 200
# Narrowing down to the work that is needed pays where work is dear: for many scenes on a CPU. Few scenes, or a GPU,
# are held up by the number of operations instead.
_SMALL_BATCH = 16


def scene_counts(spec: SceneSpec, seed: int, indices: Tensor) -> Tensor:
    """(B,) number of digits in each scene, without sampling it."""
    fewest, most = spec.count
    return fewest + uniform_below(hash_u32(seed, indices, _COUNT), most - fewest + 1)


def sample_layout(spec: SceneSpec, glyphs: GlyphSet, seed: int, indices: Tensor) -> SceneLayout:
    """The scenes ``indices`` (B,) of the stream ``seed``, on the device of ``indices``.

    Raises:
        DataError: a scene found no room in many attempts, as happens when digits are too many or too large.
    """
    indices = indices.long()
    if len(indices) and int(indices.min()) < 0:
        raise DataError(f"scenes are numbered from 0, found {int(indices.min())}")
    glyphs = glyphs.to(indices.device)
    slot = torch.arange(spec.slots, device=indices.device)
    scene = hash_state(seed, indices[:, None])  # lanes (B, 1)
    order = hash_more(scene, _ORDER, torch.arange(CLASSES, device=indices.device))  # (B, 10)
    classes = torch.argsort(order, dim=1, stable=True)[:, : spec.slots]
    colour = uniform_below(hash_more(scene, _COLOUR, slot), len(COLOURS))
    noise = rounded_normal(hash_more(scene, _NOISE, slot), spec.noise)
    glyph = glyphs.pick(classes, hash_more(scene, _GLYPH, slot))
    present = slot < scene_counts(spec, seed, indices)[:, None]

    places = torch.zeros(3, len(indices), spec.slots, dtype=torch.int64, device=indices.device)
    pending = torch.arange(len(indices), device=indices.device)
    for attempt in range(_MAX_ATTEMPTS):
        # A handful of scenes drawn anew is quicker on the host; any device gives the same answer.
        worker = indices.device if attempt == 0 else torch.device("cpu")
        draws = hash_state(seed, indices[pending].to(worker), _PLACE, attempt, slot[:, None].to(worker))  # (N, n)
        images = glyphs.images[glyph[pending]]  # (n, N, 28, 28)
        placed, complete = _place(spec, images.to(worker), draws, present[pending].to(worker))
        places[:, pending] = placed.to(places.device)
        pending = pending[~complete.to(pending.device)]
        if not len(pending):
            break
    else:
        raise DataError(
            f"scene {int(indices[pending[0]])}: no room for its digits in {_MAX_ATTEMPTS} attempts of {spec.max_tries} "
            f"tries; lower count {spec.count} or scale {spec.scale}, or enlarge size {spec.size}"
        )
    extent, x, y = places
    return SceneLayout(
        spec=spec,
        glyphs=glyphs,
        seed=seed,
        index=indices,
        classes=classes,
        glyph=glyph,
        colour=colour,
        noise=noise,
        extent=extent,
        x=x,
        y=y,
        present=present,
    )


def _place(spec: SceneSpec, images: Tensor, draws: State, present: Tensor) -> tuple[Tensor, Tensor]:
    """One attempt at scales and positions, digit by digit.

    Args:
        spec: how scenes are drawn.
        images: (B, N, 28, 28) the glyphs to place.
        draws: hash state of each digit, lanes (N, B).
        present: (B, N) bool.

    Returns:
        extent, x and y as (3, B, N), zero where nothing is present, and complete (B,) bool: all found room.
    """
    (batch, slots), device = present.shape, present.device
    occupancy = Occupancy(batch, spec.size, spec.extents[0] >> FRACTION_BITS, device)
    complete = torch.ones(batch, dtype=torch.bool, device=device)
    narrowing = device.type == "cpu" and batch > _SMALL_BATCH
    blocks = _try_blocks(spec.max_tries) if narrowing else (spec.max_tries,)
    lanes = (draws[0][..., None], draws[1][..., None])  # (N, B, 1)
    first_tries = occupancy.draw(lanes, torch.arange(blocks[0], device=device), spec.extents)  # (N, B, block)
    places = torch.zeros(3, batch, slots, dtype=torch.int64, device=device)
    for slot in range(slots):
        here = present[:, slot]
        more_draws = (draws[0][slot], draws[1][slot])  # (B,)
        tries = first_tries.of_slot(slot)
        *place, found = first_free(occupancy, tries, more_draws, spec.extents, blocks, here & complete)
        places[..., slot] = torch.stack(place) * here
        complete &= found | ~here
        if slot + 1 < slots:
            goes_on = present[:, slot + 1] & complete if narrowing else None
            _occupy(occupancy, spec.largest, images[:, slot], places[..., slot], goes_on)
    return places, complete


def _occupy(occupancy: Occupancy, largest: int, images: Tensor, places: Tensor, wanted: Tensor | None) -> None:
    """Mark the glyphs (B, 28, 28) just placed at ``places`` (3, B), in all scenes or those ``wanted`` (B,)."""
    extent, x, y = places
    side = extent >> FRACTION_BITS
    if wanted is None:  # one product for all, and no waiting for the device; a side of 0 marks nothing
        groups = [(torch.arange(len(side), device=side.device), largest)]
    else:
        scenes = wanted.nonzero().squeeze(1)
        groups = [(scenes[group], padding) for group, padding in by_padding(side[scenes], largest)]
    for members, padding in groups:
        patches = resized(images[members], side[members], padding)  # (k, padding, padding)
        occupancy.add(members, packed_rows(patches), x[members], y[members])
    occupancy.refresh()


def _try_blocks(max_tries: int) -> tuple[int, ...]:
    """A few tries first, since most digits need no more, then the rest for the scenes that do."""
    blocks, left = [], max_tries
    for block in (16, 64):
        blocks.append(min(block, left))
        left -= blocks[-1]
    return tuple(block for block in (*blocks, left) if block)
