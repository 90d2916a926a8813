"""Captions by beam search, and drawn captions, of many pictures at once, with their attention.

Xu et al. 2015 (arXiv:1502.03044) leave the search open; the beam is that of their released code. The best continuations
of all open captions are kept, and a caption that ends keeps its place. A beam of one is greedy. A caption is cut after
``longest`` words and cannot begin with the end. Each step stores its results and the place that every caption came
from; captions are read backwards in the end.

Drawn captions are for training (Rennie et al. 2017, arXiv:1612.00563): words are drawn by the logits whose log p gets
the gradient (:func:`allowed`). The number of steps is fixed, so nothing is read back from the device.

Axes: B pictures, K places of the beam, N captions asked for, T words, L = h·w cells, V words of the vocabulary.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from saccade.attention.hard import gumbel_max
from saccade.errors import ConfigError
from saccade.models.caption_decoder import CaptionDecoder, EncodedImage, LookStep, LstmState, stack_steps

END, UNKNOWN, NOTHING = 0, 1, -1  # ids: the end of a caption, any word outside the vocabulary, padding


class Decoded(NamedTuple):
    """N captions of each picture, the best first."""

    words: Tensor  # (B,N,T): ids, then 0 where the caption ended by itself, then -1
    log_prob: Tensor  # (B,N) of the caption with its end; -inf where the beam found fewer captions
    weights: Tensor  # (B,N,T,h,w) of each word and the end; 0 behind it
    gains: Tensor  # (B,N,T): β of each word; 0 behind the end
    lengths: Tensor  # (B,N): words, the end not counted
    choices: Tensor | None = None  # (B,N,T): the cell that was chosen, if one was; 0 behind the end


class _Chosen(NamedTuple):
    log_prob: Tensor  # (B,K), with the new word; -inf for a place that holds none
    parents: Tensor  # (B,K): the place that the caption had before
    words: Tensor  # (B,K): the new word; -1 behind the end


@torch.no_grad()
def decode(
    model: Any,
    encoding: Tensor,
    *,
    width: int = 1,
    captions: int = 1,
    longest: int = 20,
    length_penalty: float = 0.0,
    weights: Tensor | None = None,
) -> Decoded:
    """Captions of encoded pictures (B,…), by beam search.

    Args:
        model: in eval mode. Its ``init_state`` returns what every word needs and a memory, a named tuple of tensors
            (B,1,…); its ``next_word`` adds one word to K captions of each picture.
        encoding: of its ``encode``.
        width: K of the beam; 1 is greedy.
        captions: N of each picture; at most ``width``.
        longest: words after which a caption is cut.
        length_penalty: γ; captions are ranked by log p / (length with the end)^γ.
        weights: (B,t,h,w) given for the first t words.
    """
    if not math.isfinite(length_penalty):
        raise ConfigError(f"length_penalty: a number, found {length_penalty}")
    scene, memory = model.init_state(encoding)
    nothing = torch.full((encoding.shape[0], width), NOTHING, device=encoding.device)  # (B,K)
    log_prob = torch.zeros(nothing.shape, device=encoding.device)  # (B,K)
    log_prob[:, 1:] = -torch.inf  # a beam begins as one caption: its first word is computed once
    before, lengths, ended = nothing[:, :1], torch.zeros_like(nothing), torch.zeros_like(nothing, dtype=torch.bool)
    steps: list[tuple[LookStep, _Chosen]] = []
    while len(steps) < longest and not (steps and bool(ended.all())):
        options = {}
        if weights is not None and len(steps) < weights.shape[1]:
            options = {"weights": weights[:, len(steps)]}  # (B,h,w)
        logits, looked, memory = model.next_word(scene, memory, before, **options)
        logits = logits.expand(-1, width, -1).float()  # (B,K,V)
        looked, memory = _spread(looked, width), _spread(memory, width)
        surplus = logits.logsumexp(-1)  # of the logits over log p: (B,K)
        chosen = _best(allowed(logits, first=not steps), surplus, log_prob, ended)
        log_prob, parents, before = chosen
        lengths = lengths.gather(1, parents) + (before != NOTHING)  # words, the end counted: (B,K)
        ended = ended.gather(1, parents) | (before == END)  # (B,K)
        ended = ended & log_prob.isfinite()  # an empty place has no end
        memory = type(memory)(*(_at(tensor, parents) for tensor in memory))  # (B,K,…)
        steps.append((looked, chosen))
    score = log_prob / lengths.clamp_min(1) ** length_penalty  # (B,K)
    best = score.argsort(dim=1, descending=True, stable=True)[:, :captions]  # (B,N)
    return _read_back(steps, log_prob, best, longest)


def _spread(parts: Any, places: int) -> Any:
    """A named tuple of tensors (B,1,…) as views (B,K,…) for all ``places``; tensors (B,K,…) stay."""
    return type(parts)(*(None if part is None else part.expand(-1, places, *part.shape[2:]) for part in parts))


def allowed(logits: Tensor, *, first: bool) -> Tensor:
    """The logits (B,K,V), with -inf for what is never written: the unknown word, and the end as the first word."""
    penalty = torch.zeros(logits.shape[-1], device=logits.device)  # (V,)
    penalty[UNKNOWN] = -torch.inf
    if first:
        penalty[END] = -torch.inf
    return logits + penalty


def _best(logits: Tensor, surplus: Tensor, log_prob: Tensor, ended: Tensor) -> _Chosen:
    """The best continuations of all open captions, into the places of the open ones; those that ended stay."""
    places = logits.shape[1]
    still_open = log_prob.masked_fill(ended, -torch.inf)  # (B,K)
    many = min(places, logits.shape[2])  # no caption can have more of its continuations among the best
    values, words = logits.topk(many, dim=-1)  # (B,K,many)
    candidates = (values + (still_open - surplus).unsqueeze(-1)).flatten(1)  # (B,K·many)
    scores, numbers = candidates.topk(places, dim=-1)  # best first: (B,K)
    turn = ((~ended).cumsum(1) - 1).clamp_min(0)  # the n-th open place takes the n-th candidate: (B,K)
    scores, numbers = scores.gather(1, turn), numbers.gather(1, turn)  # (B,K)
    same_place = torch.arange(places, device=scores.device).expand_as(numbers)
    return _Chosen(
        torch.where(ended, log_prob, scores),
        torch.where(ended, same_place, numbers // many),
        torch.where(ended, NOTHING, words.flatten(1).gather(1, numbers)),
    )


def _read_back(steps: list[tuple[LookStep, _Chosen]], log_prob: Tensor, best: Tensor, longest: int) -> Decoded:
    """The captions at ``best`` (B,N), from the last word to the first, along the places that they came from."""
    log_prob, place = log_prob.gather(1, best), best  # (B,N)
    words, weights, gains, choices = [], [], [], []
    for looked, chosen in reversed(steps):
        words.append(chosen.words.gather(1, place))  # (B,N)
        place = chosen.parents.gather(1, place)  # (B,N)
        weights.append(_at(looked.weights, place))  # (B,N,h,w)
        gains.append(looked.gain.gather(1, place))  # (B,N)
        if looked.choice is not None:
            choices.append(looked.choice.gather(1, place))  # (B,N)
    ids = _in_order(words, longest, NOTHING)  # (B,N,T)
    ids = ids.masked_fill(~log_prob.isfinite().unsqueeze(-1), NOTHING)
    padding = ids == NOTHING  # (B,N,T)
    return Decoded(
        ids,
        log_prob,
        _in_order(weights, longest, 0).masked_fill(padding[..., None, None], 0),
        _in_order(gains, longest, 0).masked_fill(padding, 0),
        (ids > END).sum(-1),
        _in_order(choices, longest, 0).masked_fill(padding, 0) if choices else None,
    )


def _in_order(backwards: list[Tensor], longest: int, filling: int) -> Tensor:
    """Steps (B,N,…) from the last to the first → (B,N,T,…), ``filling`` behind the last."""
    steps = torch.stack(backwards[::-1], dim=2)  # (B,N,T',…)
    missing = longest - steps.shape[2]
    rest = steps.new_full((*steps.shape[:2], missing, *steps.shape[3:]), filling)
    return torch.cat([steps, rest], dim=2)


def _at(tensor: Tensor, places: Tensor) -> Tensor:
    """What ``tensor`` (B,K,…) holds at ``places`` (B,N): (B,N,…)."""
    wanted = places.reshape(*places.shape, *[1] * (tensor.dim() - 2)).expand(-1, -1, *tensor.shape[2:])
    return tensor.gather(1, wanted)


class SampledCaptions(NamedTuple):
    """One caption of each picture."""

    words: Tensor  # (B,T): ids, then 0 where the caption ended by itself, then −1
    log_prob: Tensor  # (B,T): log p of each word after those before it; 0 behind the end
    logits: Tensor  # (B,T,V) that the words were drawn by, before what is never written was taken out
    looked: LookStep  # what was looked at for each word: (B,T,…)


def repeat_for_captions(parts: Any, times: int) -> Any:
    """A named tuple of tensors (B,…), each row ``times`` in a row: (B·times,…)."""
    return type(parts)(*(None if part is None else part.repeat_interleave(times, dim=0) for part in parts))


def sample_captions(
    decoder: CaptionDecoder,
    scene: EncodedImage,
    memory: LstmState,
    noise: Tensor,
    cell_noise: Tensor | None = None,
    **how: Any,
) -> SampledCaptions:
    """Draw a caption of at most T words of each picture, by Gumbel noise (B,T,V) of words and (B,T,L) of cells."""
    before = torch.full_like(noise[:, :1, 0], NOTHING, dtype=torch.long)  # (B,1)
    ended = torch.zeros_like(before, dtype=torch.bool)
    by_step = [None] * noise.shape[1] if cell_noise is None else torch.split(cell_noise, 1, dim=1)  # (B,1,L) each
    words, log_probs, logits, looks = [], [], [], []
    for step, (loud, cells) in enumerate(zip(torch.split(noise, 1, dim=1), by_step)):
        output = decoder.next_word(scene, memory, before, noise=cells, **how)
        possible = allowed(output.logits.to(noise.dtype), first=step == 0)  # (B,1,V)
        chosen = gumbel_max(possible, loud)  # (B,1)
        log_prob = possible.log_softmax(-1).gather(-1, chosen.unsqueeze(-1)).squeeze(-1)  # (B,1)
        log_probs.append(log_prob.masked_fill(ended, 0))
        before, memory = chosen.masked_fill(ended, NOTHING), output.memory
        ended = ended | (chosen == END)
        words.append(before)
        logits.append(output.logits)
        looks.append(output.looked)
    return SampledCaptions(torch.cat(words, 1), torch.cat(log_probs, 1), torch.cat(logits, 1), stack_steps(looks))
