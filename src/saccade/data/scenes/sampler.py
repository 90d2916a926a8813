"""The authors' scene sampler, as a pure function of (seed, scene number).

Per scene: a number of digits, uniform; identities, a random permutation of 0..9; colours, independent and with
repeats; one normal number of noise per colour; then, digit by digit, scale and position by rejection: on the host by
``host.py``, on a GPU by ``kernels/placing.py``, or by ``placement.py`` where there are no kernels.
After Seo, Lin, Cohen, Shen and Han, "Progressive Attention Networks for Visual Attribute Prediction"
(arXiv:1606.02393) and the generator the authors released.

Deviation: the authors try without end; here a scene in which a digit finds no place in ``max_tries`` tries draws all
its scales and positions anew. Number, identities, glyphs and colours stay, so they are known without sampling.
"""

from __future__ import annotations

import torch
from torch import Tensor

from saccade.data.scenes.drawing import COLOURS
from saccade.data.scenes.glyphs import CLASSES, GlyphSet
from saccade.data.scenes.hashing import State, hash_more, hash_state, hash_words, rounded_normal, uniform_below
from saccade.data.scenes.host import place_on_host
from saccade.data.scenes.kernels import try_kernel
from saccade.data.scenes.layout import SceneLayout, SceneSpec
from saccade.data.scenes.placement import FRACTION_BITS, Occupancy, first_free
from saccade.data.scenes.resize import inked
from saccade.errors import DataError

_COUNT, _ORDER, _COLOUR, _NOISE, _GLYPH, _PLACE = range(6)  # streams of draws within a scene
_MAX_ATTEMPTS = 200
_FIRST_TRIES = 64


def scene_counts(spec: SceneSpec, seed: int, indices: Tensor) -> Tensor:
    """(B,) number of digits in each scene, without sampling it."""
    return _counts(spec, hash_state(seed, indices))


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
    scene = hash_state(seed, indices)  # lanes (B,)
    streams = torch.arange(_ORDER, _GLYPH + 1, device=indices.device)[:, None, None]
    bits = hash_more(_each(scene), streams, torch.arange(CLASSES, device=indices.device))  # (4, B, 10)
    for_colour, for_noise, for_glyph = bits[1:, :, : spec.slots]
    classes = torch.argsort(bits[0], dim=1, stable=True)[:, : spec.slots]
    glyph = glyphs.pick(classes, for_glyph)
    present = slot < _counts(spec, _each(scene))
    extent, x, y = _places(spec, glyphs, glyph, scene, present, indices)
    return SceneLayout(
        spec=spec,
        glyphs=glyphs,
        seed=seed,
        index=indices,
        classes=classes,
        glyph=glyph,
        colour=uniform_below(for_colour, len(COLOURS)),
        noise=rounded_normal(for_noise.contiguous(), spec.noise),
        extent=extent,
        x=x,
        y=y,
        present=present,
    )


def _counts(spec: SceneSpec, scene: State) -> Tensor:
    """Number of digits, from the hash state of a scene and in the shape of its lanes."""
    fewest, most = spec.count
    return fewest + uniform_below(hash_more(scene, _COUNT), most - fewest + 1)


def _each(lanes: State) -> State:
    """Lanes (…) as (…, 1), so that further counters get an axis of their own."""
    return lanes[0][..., None], lanes[1][..., None]


def _places(spec: SceneSpec, glyphs: GlyphSet, glyph: Tensor, scene: State, present: Tensor, indices: Tensor) -> Tensor:
    """extent, x and y as (3, B, N): by one attempt for most scenes, by as many as it takes for all.

    Args:
        spec: how scenes are drawn.
        glyphs: material of the digits.
        glyph: (B, N) the glyphs to place.
        scene: hash state of each scene, lanes (B,).
        present: (B, N) bool.
        indices: (B,) numbers of the scenes, for a complaint.
    """
    made = try_kernel(lambda: _kernel_places(spec, glyphs, glyph, scene, present), indices.device, spec.size)
    if made is not None:
        places, complete = made
        if not bool(complete.all()):
            raise _no_room(spec, indices[~complete])
        return places
    places, complete = _place(spec, glyphs, glyph, scene, 0, present)
    again = (~complete).nonzero().squeeze(1)  # (n,)
    if not len(again):
        return places
    # A handful of scenes drawn anew is quicker on the host; any device gives the same answer.
    glyph, present, indices, *lanes = (part[again].cpu() for part in (glyph, present, indices, *scene))
    used, glyph = torch.unique(glyph, return_inverse=True)
    glyphs = glyphs.subset(used.to(glyphs.device), glyphs.name).to("cpu")
    anew = places.new_empty(3, *present.shape, device="cpu")
    pending = torch.arange(len(again))
    for attempt in range(1, _MAX_ATTEMPTS):
        state = (lanes[0][pending], lanes[1][pending])
        anew[:, pending], complete = _place(spec, glyphs, glyph[pending], state, attempt, present[pending])
        pending = pending[~complete]
        if not len(pending):
            places[:, again] = anew.to(places.device)
            return places
    raise _no_room(spec, indices[pending])


def _no_room(spec: SceneSpec, pending: Tensor) -> DataError:
    return DataError(
        f"scene {int(pending[0])}: no room for its digits in {_MAX_ATTEMPTS} attempts of {spec.max_tries} "
        f"tries; lower count {spec.count} or scale {spec.scale}, or enlarge size {spec.size}"
    )


def _kernel_places(
    spec: SceneSpec, glyphs: GlyphSet, glyph: Tensor, scene: State, present: Tensor
) -> tuple[Tensor, Tensor]:
    """All attempts of all scenes by one kernel: extent, x and y as (3, B, N), and complete (B,) bool."""
    from saccade.data.scenes.kernels.placing import place

    return place(
        glyphs,
        glyph,
        scene,
        present,
        size=spec.size,
        extents=spec.extents,
        stream=_PLACE,
        max_tries=spec.max_tries,
        attempts=_MAX_ATTEMPTS,
    )


def _place(
    spec: SceneSpec, glyphs: GlyphSet, glyph: Tensor, scene: State, attempt: int, present: Tensor
) -> tuple[Tensor, Tensor]:
    """One attempt at scales and positions.

    Args:
        spec: how scenes are drawn.
        glyphs: material of the digits.
        glyph: (B, N) the glyphs to place.
        scene: hash state of each scene, lanes (B,).
        attempt: its number.
        present: (B, N) bool.

    Returns:
        extent, x and y as (3, B, N), zero where nothing is present, and complete (B,) bool: all found room.
    """
    if present.device.type != "cpu":
        return place_on_device(spec, glyphs.images[glyph], scene, attempt, present)
    return place_on_host(
        glyphs.images.numpy(),
        glyph,
        scene,
        present,
        size=spec.size,
        extents=spec.extents,
        draws=(_PLACE, attempt),
        max_tries=spec.max_tries,
    )


def place_on_device(
    spec: SceneSpec, images: Tensor, scene: State, attempt: int, present: Tensor, first: int = _FIRST_TRIES
) -> tuple[Tensor, Tensor]:
    """One attempt by torch's own operations: few, as a GPU is held up by their number, for all scenes alike.

    Args:
        spec: how scenes are drawn.
        images: (B, N, 28, 28) the glyphs to place.
        scene: hash state of each scene, lanes (B,).
        attempt: its number.
        present: (B, N) bool.
        first: tries of every digit; the rest is for scenes that need more. To know which do, the host has to wait for
            the device, so it asks once for each digit.

    Returns:
        as :func:`_place`.
    """
    (batch, slots), device = present.shape, present.device
    occupancy = Occupancy(batch, spec.size, spec.extents[0] >> FRACTION_BITS, device)
    complete = torch.ones(batch, dtype=torch.bool, device=device)
    blocks = (first, spec.max_tries - first) if first < spec.max_tries else (spec.max_tries,)
    draws = hash_words(scene, _PLACE, attempt, torch.arange(slots, device=device)[:, None])  # lanes (N, B)
    numbers = torch.arange(blocks[0], device=device)
    first_tries = occupancy.draw(slice(None), _each(draws), numbers, spec.extents)  # (N, B, block)
    places = torch.zeros(3, batch, slots, dtype=torch.int64, device=device)
    absent = ~present
    for slot in range(slots):
        more_draws = (draws[0][slot], draws[1][slot])  # (B,)
        wanted = present[:, slot] & complete
        *place, found = first_free(occupancy, first_tries.of_slot(slot), more_draws, spec.extents, blocks, wanted)
        torch.mul(torch.stack(place), present[:, slot], out=places[..., slot])
        complete &= found | absent[:, slot]
        if slot + 1 < slots:
            extent, x, y = places[..., slot]  # a side of 0 marks nothing
            marks = inked(images[:, slot], extent >> FRACTION_BITS, spec.largest)
            occupancy.add(slice(None), marks, x, y)
            occupancy.refresh()
    return places, complete
