"""Edits the weights of one word: does the captioner still say the word?

The true sentence is given word by word, and of each scene one content word is edited, drawn by the scene's number. The
answer is the word that the model finds likeliest in its place.

==================  ====================================================================================
``zero_target``     for this word, no weight on the digit that it is about
``zero_random``     no weight on as many cells elsewhere, drawn at random
``zero_heaviest``   no weight on as many cells elsewhere, the heaviest ones
``keep_target``     weight on the digit alone
``keep_random``     weight on as many cells elsewhere alone
``even``            the mean weight everywhere
``permuted``        cells change places at random
``target_removed``  no edit: the digit is taken out of the picture
``target_alone``    no edit: everything but the digit is taken out of the picture
==================  ====================================================================================

"all" is the word itself. The rest of the sentence is told apart: ``later words, forced, recomputed`` and ``… frozen``
say whether any later word changed while the true words are given, with later maps computed again or kept. ``whole
sentence, free`` is the greedy caption, whose first maps up to the edited word are given: did any of its words change?

Axes: B scenes, T words, h and w cells.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from saccade.data.pictures.reading import as_float
from saccade.data.scenes.hashing import hash_u32, uniform_below
from saccade.data.scenes.render import render
from saccade.families.caption.batch import CaptionBatch
from saccade.looks import Look
from saccade.metrics.maps.edits import ALONE, REMOVED, EditScores, cells_on, chosen_cells, permuted, uniform_like
from saccade.models.sat import WORD, SatModel
from saccade.tasks.forward_passes import encoded

EDITED = 200
"""Scenes whose attention is edited; some 20 passes each."""
_DRAW = 301  # of the word, on top of those that make a scene
REST = ("zero_target", "zero_random", "even")
"""Edits whose effect on the rest of the sentence is told."""


@torch.no_grad()
def word_edits(model: SatModel, features: Tensor, batch: CaptionBatch) -> EditScores:
    """What becomes of one content word of each scene, and of the words after it.

    Args:
        model: in eval mode.
        features: (B,L,D) of the pictures.
        batch: scenes with their true sentences; those without a digit do not count.
    """
    scores = EditScores()
    layout = batch.layout
    if layout is None or batch.names is None or model.config.attention_kind == "none":
        return scores
    kept = batch.has_mask.any(1)  # (B,)
    if not bool(kept.any()):
        return scores
    chosen = kept.nonzero().squeeze(1)
    batch, features, layout = batch[chosen], features[chosen], layout[chosen]
    rows = torch.arange(len(batch), device=batch.words.device)
    place = _drawn_words(batch)  # (B,)
    slot = batch.names[rows, place]  # type: ignore[index]  # (B,): the digit that the word is about
    size = (batch.images.shape[-2], batch.images.shape[-1])
    raw = model.teacher_force(features, batch.words)
    trace = model.wrap(raw, size).trace
    look = trace.look(WORD)
    one = _at(look, place)  # the edited word alone: (B,h,w)
    weights = torch.as_tensor(one.weights)
    frame, grid = trace.frame_on(look, size).to(weights.device), (weights.shape[-2], weights.shape[-1])
    frame = frame[0] if frame.dim() == 3 else frame
    masks = layout.masks()[rows, slot]  # (B,H,W)
    target = cells_on(masks, frame, grid)  # (B,h,w)
    count = target.sum(dim=(-2, -1))  # (B,)
    chance = torch.rand(weights.shape, generator=torch.Generator().manual_seed(0)).to(weights.device)  # (B,h,w)
    random, heaviest = chosen_cells(chance, ~target, count), chosen_cells(weights, ~target, count)
    possible = 2 * count <= grid[0] * grid[1]  # (B,)
    edits: dict[str, Callable[[], Tensor]] = {
        "zero_target": lambda: _weights(one.edit(target)),
        "zero_random": lambda: _weights(one.edit(random)),
        "zero_heaviest": lambda: _weights(one.edit(heaviest)),
        "keep_target": lambda: _weights(one.edit(~target)),
        "keep_random": lambda: _weights(one.edit(~random)),
        "even": lambda: uniform_like(weights),
        "permuted": lambda: permuted(weights),
    }
    before = raw["logits"].argmax(-1)  # (B,T)
    after_place = torch.arange(before.shape[1], device=before.device) > place[:, None]
    later = after_place & (batch.words >= 0)  # (B,T)
    answers: dict[str, Tensor] = {}
    rest: dict[str, dict[str, Tensor]] = {
        "later words, forced, recomputed": {},
        "later words, forced, frozen": {},
        "whole sentence, free": {},
    }
    free = _free(model, features, _weights(look), place)  # (B,T')
    for name, change in edits.items():
        given = _weights(look).clone()  # (B,T,h,w)
        given[rows, place] = change()
        frozen = model.teacher_force(features, batch.words, attention={WORD: given})["logits"].argmax(-1)  # (B,T)
        answers[name] = torch.where(possible, frozen[rows, place], -1)
        if name in REST:
            said = {
                "later words, forced, recomputed": _recomputed(model, features, batch.words, given, place),
                "later words, forced, frozen": frozen,
            }
            for way, words in said.items():
                rest[way][name] = _told(((words != before) & later).any(1), possible & later.any(1))
            changed = (_free(model, features, given, place) != free).any(1)  # (B,)
            rest["whole sentence, free"][name] = _told(changed, possible)
    present = layout.present
    alone = torch.zeros_like(present).scatter(1, slot[:, None], True)
    for name, there in ((REMOVED, present & ~alone), (ALONE, alone)):
        images = as_float(render(replace(layout, present=there)))
        words = model.teacher_force(encoded(model.encode, images), batch.words)["logits"].argmax(-1)  # (B,T)
        answers[name] = torch.where(possible, words[rows, place], -1)
    truth = batch.words[rows, place]  # (B,)
    scores.add(before[rows, place], truth, batch.picture, {"all": answers})
    scores.add_further(rest)
    return scores


def _drawn_words(batch: CaptionBatch) -> Tensor:
    """The place (B,) of one content word of each sentence."""
    layout, has = batch.layout, batch.has_mask  # (B,T)
    # scenes have a layout
    bits = hash_u32(layout.seed, layout.index, torch.zeros_like(layout.index), _DRAW)  # type: ignore[union-attr]
    nth = torch.stack([uniform_below(bits[row : row + 1], int(many))[0] for row, many in enumerate(has.sum(1))])  # (B,)
    order = has.cumsum(1) - 1  # (B,T)
    return ((order == nth[:, None].to(order)) & has).int().argmax(1)


def _at(look: Look, place: Tensor) -> Look:
    """The look of one word of each sentence, without the step axis."""
    rows = torch.arange(len(place), device=place.device)
    return Look(WORD, look.kind, look.role, _weights(look)[rows, place], norm=look.norm, frame=look.frame)


def _recomputed(model: SatModel, features: Tensor, words: Tensor, given: Tensor, place: Tensor) -> Tensor:
    """The likeliest words (B,T) when the maps up to the edited word are given, and later ones computed again."""
    found = words.new_zeros(words.shape)
    for at in sorted(set(place.tolist())):
        rows = (place == at).nonzero().squeeze(1)
        told = model.teacher_force(features[rows], words[rows], attention={WORD: given[rows, : at + 1]})
        found[rows] = told["logits"].argmax(-1)
    return found


def _free(model: SatModel, features: Tensor, given: Tensor, place: Tensor) -> Tensor:
    """The greedy captions (B,T) whose first maps, up to the edited word, are given."""
    found: list[tuple[Tensor, Tensor]] = []
    for at in sorted(set(place.tolist())):
        rows = (place == at).nonzero().squeeze(1)
        steps = min(at + 1, model.config.longest)
        said = model.caption(features[rows], method="greedy", attention={WORD: given[rows, :steps]}).words[:, 0]
        found.append((rows, said))
    result = found[0][1].new_full((len(features), model.config.longest), -1)
    for rows, said in found:
        result[rows] = said
    return result


def _weights(look: Look) -> Tensor:
    return torch.as_tensor(look.weights)


def _told(changed: Tensor, counts: Tensor) -> Tensor:
    """1 or 0 (B,), NaN where it does not count."""
    return torch.where(counts, changed.double(), torch.nan)
