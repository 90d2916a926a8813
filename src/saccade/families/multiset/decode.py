"""From what was said step by step to a multiset: the labels up to the first stop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor

from saccade.answer import Answer
from saccade.models.base import ImageOnlyModel
from saccade.models.facts import ModelFacts
from saccade.trace import Output


def decode(model: ImageOnlyModel, output: Output, facts: ModelFacts) -> list[Answer]:
    """The answer to each example, from logits (B,T,K+1) and what was said (B,T)."""
    said = cast(Tensor, output.trace.answer)
    shares = torch.take_along_dim(output.logits.float().softmax(-1), said[..., None], dim=-1)[..., 0]  # (B,T)
    return [_multiset(ids, share, facts.answers) for ids, share in zip(said.cpu(), shares.cpu())]


def _multiset(said: Tensor, shares: Tensor, words: Sequence[str]) -> Answer:
    """The labels up to the first stop (id K), from ids (T,) and their probabilities (T,).

    The confidence is the product of the probabilities of every label and of the stop after them.
    """
    ids = said.tolist()
    end = ids.index(len(words)) if len(words) in ids else len(ids)
    labels = tuple((words[each], float(share)) for each, share in zip(ids[:end], shares))
    listed = ", ".join(words[each] for each in sorted(ids[:end]))
    return Answer(f"{{{listed}}}", float(shares[: end + 1].double().prod()), kind="labels", parts=labels)
