"""What words rest on: of photographs by altering pixels, of generated scenes by editing the weights of one word.

**Photographs.** The pixels that a map marks are blurred, or replaced by those of another photograph whose caption
shares no content word (:mod:`saccade.metrics.maps.words`). FILL is ``blur`` or ``patch``:

================================  ================================================================================
``word_evidence_FILL_raw``        of content words: Eq. (2) there, in nats; above 0 where maps mark what is needed
``word_drop_FILL_raw``            what altering their own map takes, before others' are subtracted
``function_evidence_FILL_raw``    of function words ("a", "on"), which name nothing to be seen: the negative control
``word_map_distance``             total variation between the map of a content word and those of the others, 0 .. 1
================================  ================================================================================

The rival ``noise`` has the first score of maps of noise on the same cells: 0 on average.

**Scenes.** The true sentence is fed word by word, and the weights of one content word, drawn by the scene's number,
are edited (:mod:`saccade.metrics.maps.edits`). The target is the digit that it is about, the answer the word that the
model finds likeliest in its place.

Axes: B scenes, T words, h and w cells.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import torch
from torch import Tensor

from saccade.data.pictures.reading import as_float
from saccade.data.scenes.drawing import render
from saccade.data.scenes.hashing import hash_u32
from saccade.data.scenes.layout import SceneLayout, drawn_from
from saccade.families.caption.data import CaptionBatch
from saccade.families.caption.vocabulary import UNKNOWN, Vocabulary
from saccade.geometry import Size
from saccade.metrics.maps.edits import ALONE, REMOVED, EditScores, at_steps, cells_about, edited_weights
from saccade.metrics.maps.faithfulness import blurred
from saccade.metrics.maps.words import map_distances, marked, own_and_other, word_log_probabilities
from saccade.metrics.text.tokens import FUNCTION_WORDS
from saccade.metrics.verdict import BLUR, donors
from saccade.models.sat import WORD, SatModel
from saccade.tasks.evaluate import Measurements, encoded
from saccade.trace import AttentionTrace

PICTURES = 120  # photographs whose words are scored: a word of them costs four forward passes, a caption has about ten
COPIES_AT_ONCE = 32  # altered copies in one forward pass
BLUR_FILL, PATCH_FILL = "blur", "patch"
CONTENT, FUNCTION = "word", "function"


@torch.no_grad()
def add_words(
    measured: Measurements,
    model: SatModel,
    images: Tensor,
    words: Tensor,
    rows: Tensor,
    vocabulary: Vocabulary,
    *,
    first: int = 0,
) -> None:
    """Score the captions ``rows`` (A,) among those (B,T) of ``model`` for the pictures (B,3,H,W).

    ``measured`` gets every score word by word as ``acts`` (NaN for words of the other kind), noise maps as a baseline,
    and each picture once in the column ``altered``. ``first`` is how many pictures were scored before.
    """
    lender = donors(torch.arange(len(words)), _content_words(words, vocabulary))  # (B,): -1 where all share a word
    size = (images.shape[-2], images.shape[-1])
    for number, row in enumerate(rows.tolist(), first):
        image, caption = images[row : row + 1], words[row : row + 1]  # (1,3,H,W), (1,T)
        fills = {BLUR_FILL: blurred(image, BLUR * min(size))[0]}
        if int(lender[row]) >= 0:
            fills[PATCH_FILL] = images[int(lender[row])]
        output = model.teacher_force(encoded(model.encode, image), caption)
        before, trace = word_log_probabilities(output.logits, caption)[0], model.wrap(output, size).trace  # (T,)
        maps, noise = trace.image_map(WORD, size)[0], _noise_maps(trace, number, size)  # (T,H,W) each
        for kind in (CONTENT, FUNCTION):
            chosen = [place for place, word in enumerate(caption[0].tolist()) if kind_of(word, vocabulary) == kind]
            if not chosen:
                continue
            places = torch.tensor(chosen, device=caption.device)  # (N,)
            ids, is_word = caption[0, places], kind == CONTENT
            unknown = torch.full((len(places),), torch.nan, device=places.device)  # (N,)
            scores, rival = dict.fromkeys(SCORES, unknown), dict.fromkeys(SCORES[:2], unknown)
            for name, fill in fills.items():
                own, other = own_and_other(_drops(model, image, caption, before, maps, fill, places), ids)  # (N,) each
                scores[f"{kind}_evidence_{name}_raw"] = own - other
                if is_word:
                    scores[f"word_drop_{name}_raw"] = own
                    own, other = own_and_other(_drops(model, image, caption, before, noise, fill, places), ids)
                    rival[f"word_evidence_{name}_raw"] = own - other
            if is_word:
                scores["word_map_distance"] = map_distances(torch.as_tensor(trace.look(WORD).weights)[0, places], ids)
            measured.acts.add_values(scores)
            measured.rivals.add_values("noise", rival)
            measured.columns.append(act_picture=torch.full_like(places, number))
        measured.columns.append(altered=torch.tensor([number]))


def _drops(
    model: SatModel, image: Tensor, caption: Tensor, before: Tensor, maps: Tensor, fill: Tensor, places: Tensor
) -> Tensor:
    """D[u,t] (N,N) between the words at ``places`` (N,), whose maps (T,H,W) say what is replaced by ``fill``.

    ``before`` (T,) has log p of each word of the ``caption`` (1,T) for the unchanged ``image`` (1,3,H,W).
    """
    after = []
    for part in torch.split(marked(maps[places]), COPIES_AT_ONCE):
        copies = torch.where(part[:, None], fill, image)  # (R,3,H,W)
        same = caption.expand(len(part), -1)  # (R,T): the same caption, whatever the model would say now
        logits = model.teacher_force(encoded(model.encode, copies), same).logits
        after.append(word_log_probabilities(logits, same))
    return (before - torch.cat(after))[:, places]  # (N,N), Eq. (1)


def _noise_maps(trace: AttentionTrace, seed: int, size: Size) -> Tensor:
    look = trace.look(WORD)
    weights = torch.as_tensor(look.weights)  # (1,T,h,w)
    drawn = torch.rand(weights.shape, generator=torch.Generator().manual_seed(seed))  # (1,T,h,w)
    return trace.image_map(replace(look, weights=drawn.to(weights)), size)[0]


def kind_of(number: int, vocabulary: Vocabulary) -> str | None:
    """Whether a word names something or is a function word; None for ends and unknown words."""
    if number <= UNKNOWN:
        return None
    return FUNCTION if vocabulary[number] in FUNCTION_WORDS else CONTENT


def _content_words(words: Tensor, vocabulary: Vocabulary) -> Tensor:
    counts = torch.zeros(len(words), len(vocabulary))
    for row, caption in enumerate(words.tolist()):
        counts[row, [word for word in caption if kind_of(word, vocabulary) == CONTENT]] = 1
    return counts


_MEASURED = ("word_evidence", "word_drop", "function_evidence")
SCORES = (*(f"{name}_{fill}_raw" for name in _MEASURED for fill in (BLUR_FILL, PATCH_FILL)), "word_map_distance")

EDITED = 200  # scenes whose attention is edited; a dozen passes each
_DRAW = 301  # of the word, on top of those that make a scene


@torch.no_grad()
def word_edits(model: SatModel, features: Tensor, batch: CaptionBatch) -> EditScores:
    """Edits of one content word of each scene, from features (B,L,D); scenes without a digit do not count."""
    scores = EditScores()
    chosen = batch.has_mask.any(1).nonzero().squeeze(1)
    if not len(chosen) or model.config.attention_kind == "none":
        return scores
    batch, features = batch[chosen], features[chosen]
    layout, names = cast(SceneLayout, batch.layout), cast(Tensor, batch.names)
    rows, place = torch.arange(len(batch), device=batch.words.device), _drawn_words(batch)  # (B,) each
    slot = names[rows, place]  # (B,): the digit that the word is about
    size = (batch.images.shape[-2], batch.images.shape[-1])
    output = model.teacher_force(features, batch.words)
    trace = model.wrap(output, size).trace
    look = trace.look(WORD)
    weights, one = torch.as_tensor(look.weights), at_steps(look, rows, place)  # (B,T,h,w), the edited word alone
    cells = cells_about(layout.masks()[rows, slot], weights[rows, place], trace.frame_on(look, size))
    answers: dict[str, Tensor] = {}
    for name, changed in edited_weights(one, cells).items():
        edited = weights.clone()
        edited[rows, place] = changed
        logits = model.teacher_force(features, batch.words, attention={WORD: edited}).logits
        answers[name] = logits.argmax(-1)[rows, place]  # (B,)
    for name, scenes in ((REMOVED, layout.remove(slot)), (ALONE, layout.alone(slot))):
        images = as_float(render(scenes))
        logits = model.teacher_force(encoded(model.encode, images), batch.words).logits
        answers[name] = logits.argmax(-1)[rows, place]
    possible = {name: torch.where(cells.are_enough, ids, -1) for name, ids in answers.items()}
    scores.add(output.logits.argmax(-1)[rows, place], batch.words[rows, place], batch.picture, {"all": possible})
    return scores


def _drawn_words(batch: CaptionBatch) -> Tensor:
    layout = cast(SceneLayout, batch.layout)
    return drawn_from(batch.has_mask, hash_u32(layout.seed, layout.index, torch.zeros_like(layout.index), _DRAW))
