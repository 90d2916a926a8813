"""The authors' scene sampler, as a pure function of (seed, scene number).

Per scene: a number of digits, uniform; identities, a random permutation of 0..9; colours, independent and with
repeats; one normal number of noise per colour; then, digit by digit, scale and position by rejection: on a GPU by
``kernels/placing.py``; on the host, and for a GPU without kernels, by ``host.py``.
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
from saccade.data.scenes.hashing import State, hash_more, hash_state, rounded_normal, uniform_below
from saccade.data.scenes.host import place_on_host
from saccade.data.scenes.kernels import try_kernel
from saccade.data.scenes.layout import SceneLayout, SceneSpec
from saccade.errors import DataError

_COUNT, _ORDER, _COLOUR, _NOISE, _GLYPH, _PLACE = range(6)  # streams of draws within a scene
_MAX_ATTEMPTS = 200


def scene_counts(spec: SceneSpec, seed: int, indices: Tensor) -> Tensor:
    """(B,) number of digits in each scene, without sampling it."""
    return _counts(spec, hash_state(seed, indices))


def sample_layout(spec: SceneSpec, glyphs: GlyphSet, seed: int, indices: Tensor) -> SceneLayout:
    """The scenes ``indices`` (B,) of the stream ``seed``, on the device of ``indices``.

    Raises:
        DataError: a scene found no room in many attempts, as happens when digits are too many or too large.
    """
    indices = indices.long()
    glyphs = glyphs.to(indices.device)
    slot = torch.arange(spec.slots, device=indices.device)
    scene = hash_state(seed, indices)  # lanes (B,)
    streams = torch.arange(_ORDER, _GLYPH + 1, device=indices.device)[:, None, None]
    bits = hash_more(_each(scene), streams, torch.arange(CLASSES, device=indices.device))  # (4, B, 10)
    for_colour, for_noise, for_glyph = bits[1:, :, : spec.slots]
    classes = torch.argsort(bits[0], dim=1, stable=True)[:, : spec.slots]
    glyph = glyphs.pick(classes, for_glyph)
    present = slot < _counts(spec, _each(scene))
    places, complete = _places(spec, glyphs, glyph, scene, present)
    if not bool(complete.all()):
        raise DataError(
            f"scene {int(indices[~complete][0])}: no room for its digits in {_MAX_ATTEMPTS} attempts of "
            f"{spec.max_tries} tries; lower count {spec.count} or scale {spec.scale}, or enlarge size {spec.size}"
        )
    extent, x, y = places
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


def _places(spec: SceneSpec, glyphs: GlyphSet, glyph: Tensor, scene: State, present: Tensor) -> tuple[Tensor, Tensor]:
    """Scales and positions, in as many attempts as it takes.

    Args:
        spec: how scenes are drawn.
        glyphs: material of the digits.
        glyph: (B, N) the glyphs to place.
        scene: hash state of each scene, lanes (B,).
        present: (B, N) bool.

    Returns:
        extent, x and y as (3, B, N), zero where nothing is present, and complete (B,) bool: all found room.
    """
    device = present.device

    def by_one_kernel() -> tuple[Tensor, Tensor]:
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

    placed = try_kernel(by_one_kernel, device, spec.size)
    if placed is not None:
        return placed
    glyph, present, first, second = (tensor.cpu() for tensor in (glyph, present, *scene))
    places = torch.zeros(3, *present.shape, dtype=torch.int64)
    complete = torch.zeros(len(present), dtype=torch.bool)
    for attempt in range(_MAX_ATTEMPTS):
        rows = (~complete).nonzero().squeeze(1)
        if not len(rows):
            break
        places[:, rows], complete[rows] = place_on_host(
            glyphs.images.cpu().numpy(),
            glyph[rows],
            (first[rows], second[rows]),
            present[rows],
            size=spec.size,
            extents=spec.extents,
            draws=(_PLACE, attempt),
            max_tries=spec.max_tries,
        )
    return places.to(device), complete.to(device)
