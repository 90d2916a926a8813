"""What words rest on: of photographs by altering pixels, of generated scenes by editing the weights of one word.

Word evidence on photographs: do the words of a caption rest on what their maps mark?

A photograph cannot be rendered again, so the pixels that a map marks are blurred, or replaced by those of another
photograph whose caption shares no content word (:mod:`saccade.metrics.maps.words`). Of each caption every
content and every function word is scored:

============================  ====================================================================================
``word_evidence_FILL_raw``    of content words: Eq. (2) there, in nats; above 0 where maps mark what their word needs
``word_drop_FILL_raw``        of content words: what altering their own map takes, before others' are subtracted
``function_evidence_FILL_raw``  of function words ("a", "on"), which name nothing to be seen: the negative control
``word_map_distance``         of content words: total variation between their map and those of the others, 0 .. 1
============================  ====================================================================================

FILL is ``blur`` or ``patch``. The rival ``noise`` has the first score of maps of noise on the same cells: 0 on average.

Edits the weights of one word: does the captioner still say the word?

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
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from saccade.data.pictures.reading import as_float
from saccade.data.scenes.hashing import hash_u32, uniform_below
from saccade.data.scenes.render import render
from saccade.families.caption.data import CaptionBatch
from saccade.families.caption.vocabulary import UNKNOWN, Vocabulary
from saccade.geometry import Size
from saccade.looks import Look
from saccade.metrics import blurred
from saccade.metrics.intervals import ColumnBuffer, Values
from saccade.metrics.maps.edits import ALONE, REMOVED, EditScores, cells_on, chosen_cells, permuted, uniform_like
from saccade.metrics.maps.words import log_drops, map_distances, marked, own_and_other, word_log_probabilities
from saccade.metrics.text.tokens import FUNCTION_WORDS
from saccade.metrics.verdict import BLUR, donors
from saccade.models.sat import WORD, SatModel
from saccade.tasks.forward_passes import encoded
from saccade.trace import AttentionTrace

PICTURES = 120
"""Photographs whose words are scored: a word of them costs four forward passes, a caption has about ten."""
AT_ONCE = 32  # altered copies in one forward pass
BLUR_FILL, PATCH_FILL = "blur", "patch"
CONTENT, FUNCTION = "word", "function"
KINDS = (CONTENT, FUNCTION)


@dataclass
class WordEvidence:
    """What was measured, word by word; NaN where a score is of the other kind of words."""

    values: Values = field(default_factory=Values)
    noise: Values = field(default_factory=Values)
    """The same of maps of noise."""
    columns: ColumnBuffer = field(default_factory=ColumnBuffer)
    """``picture`` of every word; ``altered``, every picture once."""

    def __len__(self) -> int:
        return len(self.columns["altered"]) if "altered" in self.columns else 0

    def join(self, later: WordEvidence) -> None:
        """Add what was measured of later pictures."""
        for name in ("values", "noise", "columns"):
            getattr(self, name).join(getattr(later, name))

    @property
    def groups(self) -> Tensor:
        """The picture (N,) of each word."""
        return self.columns["picture"] if "picture" in self.columns else torch.zeros(0, dtype=torch.long)


@torch.no_grad()
def add_words(
    scores: WordEvidence,
    model: SatModel,
    images: Tensor,
    words: Tensor,
    rows: Tensor,
    vocabulary: Vocabulary,
    *,
    first: int = 0,
    progress: Callable[[int], None] = lambda done: None,
) -> None:
    """Score some of the captions (B,T) that ``model`` said of the pictures (B,3,H,W).

    Args:
        scores: where they are kept.
        model: in eval mode.
        images: all of the batch; each may lend a patch to another.
        words: the captions.
        rows: (A,) which of them are scored.
        vocabulary: the model's.
        first: how many pictures were scored before.
        progress: called with the number of pictures of the batch up to the last one that was scored.
    """
    lender = donors(torch.arange(len(words)), _content_words(words, vocabulary))  # (B,): -1 where all share a word
    size = (images.shape[-2], images.shape[-1])
    for number, row in enumerate(rows.tolist(), first):
        image, said = images[row : row + 1], words[row : row + 1]  # (1,3,H,W), (1,T)
        fills = {BLUR_FILL: blurred(image, BLUR * min(size))[0]}
        if int(lender[row]) >= 0:
            fills[PATCH_FILL] = images[int(lender[row])]
        output = model.forward_features(encoded(model.encode, image), said)
        before = word_log_probabilities(output.logits, said)[0]  # (T,)
        one = _Caption(model, image[0], said[0], before)
        _add_caption(scores, one, fills, model.wrap(output, size).trace, vocabulary, number)
        progress(row + 1)


@dataclass(frozen=True)
class _Caption:
    """One caption and its picture."""

    model: SatModel
    image: Tensor
    """(3,H,W)."""
    words: Tensor
    """(T,)."""
    before: Tensor
    """(T,) log p of each word of the picture as it is."""

    def drops(self, maps: Tensor, fill: Tensor, places: Tensor) -> Tensor:
        """D[u,t] (N,N) between the words at ``places`` (N,), whose maps (N,H,W) say what is replaced by ``fill``."""
        after = []
        for part in torch.split(marked(maps), AT_ONCE):
            copies = torch.where(part[:, None], fill, self.image)  # (R,3,H,W)
            said = self.words.expand(len(part), -1)  # (R,T): the same caption, whatever the model would say now
            logits = self.model.forward_features(encoded(self.model.encode, copies), said)["logits"]
            after.append(word_log_probabilities(logits, said))
        return log_drops(self.before, torch.cat(after))[:, places]  # (N,N)


def _add_caption(
    scores: WordEvidence,
    one: _Caption,
    fills: dict[str, Tensor],
    trace: AttentionTrace,
    vocabulary: Vocabulary,
    number: int,
) -> None:
    """Score the words of one caption, that of picture ``number``, the content words first."""
    size = (one.image.shape[-2], one.image.shape[-1])
    weights = _weights(trace.look(WORD))[0]  # (T,h,w)
    maps = trace.image_map(WORD, size)[0]  # (T,H,W)
    for kind in KINDS:
        chosen = [place for place, word in enumerate(one.words.tolist()) if kind_of(word, vocabulary) == kind]
        if not chosen:
            continue
        places = torch.tensor(chosen, device=one.words.device)  # (N,)
        ids, is_word = one.words[places], kind == CONTENT
        unknown = torch.full((len(places),), torch.nan, device=places.device)  # (N,)
        found = dict.fromkeys(SCORES, unknown)
        rival = dict.fromkeys(NOISE_SCORES, unknown)
        for name, fill in fills.items():
            own, other = own_and_other(one.drops(maps[places], fill, places), ids)  # (N,) each
            found[f"{kind}_evidence_{name}_raw"] = own - other
            if is_word:
                found[f"word_drop_{name}_raw"] = own
                noise = _noise_maps(trace, number, size)[places]  # (N,H,W)
                own, other = own_and_other(one.drops(noise, fill, places), ids)
                rival[f"word_evidence_{name}_raw"] = own - other
        if is_word:
            found["word_map_distance"] = map_distances(weights[places], ids)
        scores.values.add_values(found)
        scores.noise.add_values(rival)
        scores.columns.append(picture=torch.full_like(places, number))
    scores.columns.append(altered=torch.tensor([number]))


def _noise_maps(trace: AttentionTrace, seed: int, size: Size) -> Tensor:
    """Maps (T,H,W) of noise, on the cells and through the projection of the model's own."""
    look = trace.look(WORD)
    weights = _weights(look)  # (1,T,h,w)
    drawn = torch.rand(weights.shape, generator=torch.Generator().manual_seed(seed))  # (1,T,h,w)
    return trace.image_map(replace(look, weights=drawn.to(weights)), size)[0]


def kind_of(number: int, vocabulary: Vocabulary) -> str | None:
    """Whether the word of that number names something or is a function word; ends and unknown words are neither."""
    if number <= UNKNOWN:
        return None
    return FUNCTION if vocabulary[number] in FUNCTION_WORDS else CONTENT


def _content_words(words: Tensor, vocabulary: Vocabulary) -> Tensor:
    """Which content words each caption (B,T) has, (B,V) of 0 and 1."""
    found = torch.zeros(len(words), len(vocabulary))
    for row, caption in enumerate(words.tolist()):
        found[row, [word for word in caption if kind_of(word, vocabulary) == CONTENT]] = 1
    return found


_FILLS = (BLUR_FILL, PATCH_FILL)
NOISE_SCORES = tuple(f"word_evidence_{fill}_raw" for fill in _FILLS)
SCORES = (
    *NOISE_SCORES,
    *(f"word_drop_{fill}_raw" for fill in _FILLS),
    *(f"function_evidence_{fill}_raw" for fill in _FILLS),
    "word_map_distance",
)


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
    output = model.teacher_force(features, batch.words)
    trace = model.wrap(output, size).trace
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
    before = output.logits.argmax(-1)  # (B,T)
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
