"""Captions that a model draws for itself, with the gradient of how likely each word was.

Rennie et al., "Self-Critical Sequence Training for Image Captioning", 2017 (arXiv:1612.00563): what is judged is what
the model says, not what it was given. Words are drawn one after the other by the very logits whose log p then gets the
gradient, whatever mode the decoder is in; what is never said (see :func:`.allowed`) is not in that distribution either.

:func:`.decode` draws captions too, many of each picture and without a gradient. Here the number of steps is fixed, and
nothing is asked of the device.

Axes: B pictures, each as often as there are captions of it (:func:`repeat_for_captions`), T words, L = h·w cells,
V words of the vocabulary.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from saccade.attention.hard import gumbel_max
from saccade.models.caption_decoder import CaptionDecoder, EncodedImage, LookStep, LstmState, Pick, stack_steps
from saccade.models.caption_decoding import END, NOTHING, allowed


class SampledCaptions(NamedTuple):
    """One caption of each picture."""

    words: Tensor
    """(B,T): ids, then 0 where the caption ended by itself, then −1."""
    log_prob: Tensor
    """(B,T): log p of each word after those before it; 0 behind the end."""
    logits: Tensor
    """(B,T,V) that the words were drawn by, before what is never said was taken out."""
    looked: LookStep
    """What was looked at for each word: (B,T,…)."""


def repeat_for_captions(scene: EncodedImage, memory: LstmState, times: int) -> tuple[EncodedImage, LstmState]:
    """What was computed of B pictures, for so many captions of each: (B·times,…), those of a picture together."""

    def each(tensor: Tensor) -> Tensor:
        return tensor.repeat_interleave(times, dim=0)

    seen = None if scene.seen is None else each(scene.seen)
    return EncodedImage(each(scene.features), seen), LstmState(each(memory.hidden), each(memory.cell))


def sample_captions(
    decoder: CaptionDecoder,
    scene: EncodedImage,
    memory: LstmState,
    noise: Tensor,
    *,
    pick: Pick = "expected",
    cell_noise: Tensor | None = None,
    expected: Tensor | None = None,
) -> SampledCaptions:
    """Draw a caption of each picture.

    Args:
        decoder: says the words, in the mode in which it is.
        scene: of its ``init_state``.
        memory: of the same.
        noise: Gumbel noise (B,T,V) of the words; its T is how long a caption can be.
        pick: which cells count.
        cell_noise: (B,T,L) of the cells, where one is drawn for each word.
        expected: (B,) bool, the pictures of which all cells count even so.
    """
    before = torch.full_like(noise[:, :1, 0], NOTHING, dtype=torch.long)  # (B,1)
    ended = torch.zeros_like(before, dtype=torch.bool)
    by_step = [None] * noise.shape[1] if cell_noise is None else torch.split(cell_noise, 1, dim=1)  # (B,1,L) each
    words, log_probs, logits, looks = [], [], [], []
    for step, (loud, cells) in enumerate(zip(torch.split(noise, 1, dim=1), by_step)):
        said = decoder.next_word(scene, memory, before, pick=pick, noise=cells, expected=expected)
        possible = allowed(said.logits.to(noise.dtype), first=step == 0)  # (B,1,V)
        chosen = gumbel_max(possible, loud)  # (B,1)
        log_prob = possible.log_softmax(-1).gather(-1, chosen.unsqueeze(-1)).squeeze(-1)  # (B,1)
        log_probs.append(log_prob.masked_fill(ended, 0))
        before, memory = chosen.masked_fill(ended, NOTHING), said.memory
        ended = ended | (chosen == END)
        words.append(before)
        logits.append(said.logits)
        looks.append(said.looked)
    return SampledCaptions(torch.cat(words, 1), torch.cat(log_probs, 1), torch.cat(logits, 1), stack_steps(looks))
