"""Edits the attention to one label: another mask, other glimpsed cells. Is the label still read?

Of each scene one label is taken that is there once and is read once. At the step that read it, the covert mask and the
glimpses are edited. Cells are those on the label's digit.

==================  ====================================================================================
``zero_target``     the mask is 0 on the digit, and the glimpses go to cells that are not on it
``zero_random``     the mask is 0 on as many cells elsewhere, and the glimpses go to other cells on the digit
``zero_heaviest``   the mask is 0 on as many cells elsewhere, the heaviest ones; glimpses as they were
``keep_target``     the mask is 0 but on the digit, and the glimpses go to cells on it
``keep_random``     the mask is 0 but on as many cells elsewhere, and the glimpses go there
``target_removed``  no edit: the digit is taken out of the picture
``target_alone``    no edit: everything but the digit is taken out of the picture
==================  ====================================================================================

"all": the label is read at no step, with later steps computed again. So the model may come back to the digit. ``all,
later frozen`` keeps the later masks and glimpses. ``covert`` and ``glimpse`` edit one of the two. ``label at its step``
asks what is read at the edited step alone. The mask is a gate and is not scaled.

Axes: B scenes, T steps, k glimpses of a step, h and w cells.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from saccade.data.pictures.reading import as_float
from saccade.families.multiset.batch import MultisetBatch, at_size
from saccade.families.multiset.scenes import MultisetSpec, paint
from saccade.geometry import Size
from saccade.metrics.maps.edits import ALONE, REMOVED, EditScores, cells_on, chosen_cells
from saccade.metrics.sets import before_stop
from saccade.models.hsal import HsalModel
from saccade.outputs import ModelOutput
from saccade.trace import AttentionTrace

EDITED = 200
"""Scenes whose attention is edited."""
COVERT, GLIMPSE = "covert", "glimpse"


@torch.no_grad()
def glimpse_edits(
    model: HsalModel, raw: ModelOutput, trace: AttentionTrace, batch: MultisetBatch, size: Size
) -> EditScores:
    """What becomes of one label of each scene.

    Args:
        model: in eval mode.
        raw: of the unedited pass over the batch.
        trace: of the same, placed on the pictures.
        batch: generated scenes.
        size: (height, width) of the network input.
    """
    scores = EditScores()
    said = raw["said"]  # (B,T)
    rows, step, obj = _chosen_labels(said, batch, model.stop)  # (n,) each
    spec = None if batch.layout is None else batch.layout.spec
    if batch.layout is None or not isinstance(spec, MultisetSpec) or not len(rows):
        return scores
    label = said[rows, step]  # (n,)
    encoding = model.encode(at_size(batch.images[rows], size))
    shown = (batch.images.shape[-2], batch.images.shape[-1])
    look = trace.look(COVERT)
    frame = trace.frame_on(look, shown)
    frame = (frame[0] if frame.dim() == 3 else frame).to(said.device)
    covert, glimpses = raw["covert.weights"][rows], raw["glimpse.weights"][rows]  # (n,T,h,w), (n,T·k,h,w)
    grid, many = (covert.shape[-2], covert.shape[-1]), model.config.glimpses
    own_cells = raw["location"][rows]  # (n,T,k)
    target = cells_on(batch.masks()[rows, obj], frame, grid)  # (n,h,w)
    count = target.sum(dim=(-2, -1))  # (n,)
    mask = covert[torch.arange(len(rows)), step]  # M_t: (n,h,w)
    chance = torch.rand(mask.shape, generator=torch.Generator().manual_seed(0)).to(mask.device)  # (n,h,w)
    random, heaviest = chosen_cells(chance, ~target, count), chosen_cells(mask, ~target, count)
    possible = 2 * count <= grid[0] * grid[1]  # (n,)
    on, off, there = (_cells(chance, each, many) for each in (target, ~target, random))  # (n,k) cells
    stays = own_cells[torch.arange(len(rows)), step]  # (n,k)
    edits = {
        "zero_target": (mask.masked_fill(target, 0), off),
        "zero_random": (mask.masked_fill(random, 0), on),
        "zero_heaviest": (mask.masked_fill(heaviest, 0), stays),
        "keep_target": (mask.masked_fill(~target, 0), on),
        "keep_random": (mask.masked_fill(~random, 0), there),
    }

    def read(name: str, looks: tuple[str, ...], *, frozen: bool = False) -> Tensor:
        """What is read (n,T) with an edit of ``looks``; the earlier steps are given as they were."""
        one, cells = edits[name]
        masks, aimed = covert.clone(), _one_hot(own_cells, grid).to(glimpses)  # (n,T,h,w), (n,T,k,h,w)
        number = torch.arange(len(rows))
        if COVERT in looks:
            masks[number, step] = one
        if GLIMPSE in looks:
            aimed[number, step] = _one_hot(cells, grid).to(glimpses)
        found = said.new_full((len(rows), said.shape[1]), model.stop)
        for at in sorted(set(step.tolist())):
            some = (step == at).nonzero().squeeze(1)
            last = said.shape[1] if frozen else at + 1
            given = {COVERT: masks[some, :last], GLIMPSE: aimed[some, :last].flatten(1, 2)}
            found[some] = model.read(encoding[some], attention=given)["said"]
        return found

    def lost(words: Tensor) -> Tensor:
        is_read = ((words == label[:, None]) & before_stop(words, model.stop)).any(1)  # (n,)
        return torch.where(possible, (~is_read).double(), torch.nan)

    def other(words: Tensor) -> Tensor:
        at = words.gather(1, step[:, None]).squeeze(1)  # (n,)
        return torch.where(possible, (at != label).double(), torch.nan)

    both = (COVERT, GLIMPSE)
    words = {name: read(name, both) for name in edits}
    found = {"all": {name: lost(each) for name, each in words.items()}}
    found["label at its step"] = {name: other(each) for name, each in words.items()}
    found["all, later frozen"] = {name: lost(read(name, both, frozen=True)) for name in edits}
    for which in both:
        found[f"{which}, later recomputed"] = {n: lost(read(n, (which,))) for n in ("zero_target", "zero_random")}
    present = batch.layout.present[rows]
    alone = torch.zeros_like(present).scatter(1, _slots(batch, rows, obj)[:, None], True)
    for name, kept in ((REMOVED, present & ~alone), (ALONE, alone)):
        images = as_float(paint(replace(batch.layout[rows], present=kept), spec))
        found["all"][name] = lost(model.read(model.encode(at_size(images, size)))["said"])
    scores.add_changes(batch.picture[rows].cpu(), {way: _on_cpu(each) for way, each in found.items()})
    return scores


def _chosen_labels(said: Tensor, batch: MultisetBatch, stop: int) -> tuple[Tensor, Tensor, Tensor]:
    """Rows, steps and objects (n,) of one label of each scene that is there once and was read once."""
    active = before_stop(said, stop)  # (B,T)
    same = (said[:, :, None] == batch.labels[:, None]) & active[:, :, None] & batch.present[:, None]  # (B,T,M)
    once = same & (same.sum(1, keepdim=True) == 1) & (same.sum(2, keepdim=True) == 1)  # (B,T,M)
    chance = torch.rand(once.shape, generator=torch.Generator().manual_seed(0)).to(once.device)
    best, place = torch.where(once, chance, -1.0).flatten(1).max(1)  # (B,), (B,)
    rows = (best >= 0).nonzero().squeeze(1)
    return rows, place[rows] // once.shape[2], place[rows] % once.shape[2]


def _slots(batch: MultisetBatch, rows: Tensor, obj: Tensor) -> Tensor:
    """The slot (n,) of each object in its scene."""
    return obj if batch.slot is None else batch.slot[rows, obj]


def _cells(rank: Tensor, allowed: Tensor, many: int) -> Tensor:
    """``many`` cells (n,k), numbered row by row, of the highest ``rank`` (n,h,w) among those ``allowed`` (n,h,w)."""
    held = torch.where(allowed, rank, -1.0).flatten(1)  # (n,hw)
    order = held.argsort(1, descending=True)[:, :many]  # (n,k)
    few = allowed.flatten(1).sum(1, keepdim=True).clamp(min=1)  # (n,1): a small digit has one cell for all glimpses
    turn = torch.arange(many, device=order.device) % few  # (n,k)
    return order.gather(1, turn)


def _one_hot(cells: Tensor, grid: Size) -> Tensor:
    """Maps (…,h,w) with all weight on the cells (…)."""
    return torch.nn.functional.one_hot(cells, grid[0] * grid[1]).view(*cells.shape, *grid)


def _on_cpu(values: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: each.cpu() for name, each in values.items()}
