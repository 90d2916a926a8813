"""The strongest cheap rivals of a model on a published backbone: linear classifiers on the mean of its last map.

====================  ============================================================================
``linear``            a multinomial logistic regression for each question
``question_blind``    one for all questions, which is not told the question
====================  ============================================================================

Both are trained on the training rows of the table. The backbone has its ImageNet weights and all of its stages.
Features are standardised by the training rows and divided by √C, so that a feature has a length of about 1; the loss is
the mean cross-entropy (of several labels that of each answer) plus :data:`DECAY` / 2 · |W|², minimised by L-BFGS from
zero. Nothing is drawn or tuned.

Axes: N scored rows, M training rows, C channels, Q questions, K answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.backbones import build_backbone
from saccade.backbones.pretrained import load_imagenet
from saccade.data.pictures.feature_cache import FEATURES_MB, weights_digest
from saccade.data.pictures.image_split import ImageSplit
from saccade.errors import SaccadeError
from saccade.metrics.labels import right_answers
from saccade.progress import OnProgress
from saccade.tasks.cached_features import PictureFeatures, as_it_answers

DECAY = 1e-3
STEPS = 100  # Of L-BFGS at most
MOST = 20_000  # Training rows that rivals learn from at most
TOGETHER = 256


class Asked(NamedTuple):
    """What rows ask and what is right, by number."""

    query: Tensor  # (N,); zeros where nothing is asked
    label: Tensor  # (N,), or (N,K) of 0 and 1 where several answers may hold

    def of(self, rows: Tensor) -> Asked:
        """Those of the ``rows`` (n,)."""
        return Asked(*(each[rows.to(each.device)].cpu() for each in self))


class Rivals(NamedTuple):
    """Whether each rival is right, 1 or 0, of each scored row (N,), by name; none where there is nothing to compare."""

    right: dict[str, Tensor]
    note: str = ""  # Why there is none, where a user can mend it


NO_RIVALS = Rivals({})


def wants_rivals(model: Any) -> bool:
    """Whether a model began with a published backbone."""
    return bool(getattr(getattr(model, "config", None), "pretrained", False))


def shares_features(model: Any) -> bool:
    """Whether rivals read what the model has encoded: its whole backbone is as it was published."""
    return wants_rivals(model) and _source(model, torch.device("cpu"))[0] is model


def linear_rivals(
    model: Any,
    scored: ImageSplit,
    rows: Tensor,
    learned: ImageSplit,
    asked: Mapping[str, Asked],
    on_progress: OnProgress,
    limit_mb: int = FEATURES_MB,
) -> Rivals:
    """The rivals of ``model`` on the ``rows`` (N,) of the split ``scored``, trained on the split ``learned``.

    ``limit_mb`` bounds what cached features take; 0: none are kept.
    """
    try:
        source, channels = _source(model, scored.device)
    except SaccadeError as error:
        return Rivals({}, f"no linear rival: {error}")
    taught = learned.sampled(MOST)
    features, wanted = (
        pooled(split, numbers, source, limit_mb, on_progress)[:, -channels:].double()
        for split, numbers in ((learned, taught), (scored, rows))
    )
    train, test, answers = asked[learned.split].of(taught), asked[scored.split].of(rows), len(scored.answers)
    centre, spread = features.mean(0), features.std(0, correction=min(1, len(features) - 1))  # (C,) each
    spread = spread.clamp_min(1e-3 * float(spread.max().clamp_min(1e-6)))
    features, wanted = ((each - centre) / spread / channels**0.5 for each in (features, wanted))
    blind = logistic(features, train.label, wanted, answers)  # (N,K)
    right = {"question_blind": right_answers(blind, test.label).double()}
    questions = torch.unique(train.query)
    if len(questions) < 2:
        return Rivals({"linear": right["question_blind"]})
    logits = blind.clone()  # of a question that training never asks
    for query in questions:
        own, here = train.query == query, test.query == query
        if bool(here.any()):
            logits[here] = logistic(features[own], train.label[own], wanted[here], answers)
    return Rivals({"linear": right_answers(logits, test.label).double(), **right})


def pooled(split: ImageSplit, rows: Tensor, source: Any, limit_mb: int, on_progress: OnProgress) -> Tensor:
    """The mean (n,C) over cells of what ``source`` encodes of the pictures of ``rows`` (n,)."""
    pictures, which = torch.unique(split.picture[rows.to(split.device)], return_inverse=True)  # (P,), (n,)
    encode = as_it_answers(source, source.encoder)

    def take(numbers: Tensor) -> Tensor:
        features = encode(split.pictures.take(pictures[numbers.to(pictures.device)]))
        on_progress("features", int(numbers[-1]) + 1, len(pictures))
        return features

    if limit_mb:
        with suppress(SaccadeError):  # too little room, or too large for half precision: computed, and not kept
            take = PictureFeatures(split.pictures, pictures, source, limit_mb, on_progress).take
    parts = torch.split(torch.arange(len(pictures)), TOGETHER)
    return torch.cat([take(part).flatten(2).mean(-1).cpu() for part in parts])[which.cpu()]


def _source(model: Any, device: torch.device) -> tuple[Any, int]:
    """What encodes, and the channels of the last map, which come last: the model where its backbone is unchanged."""
    stages, name = build_backbone(model.config.backbone), model.config.backbone
    load_imagenet(stages, name)
    last, own = stages.names[-1], getattr(model, "encoder", None)
    if own is None or weights_digest(own.state_dict()) != weights_digest(stages.state_dict()):
        stages = stages.to(device).eval()
        model = SimpleNamespace(config=model.config, encoder=stages, encode=stages, encoding_name=last)
    return model, stages.channels[last]


@torch.enable_grad()
def logistic(features: Tensor, label: Tensor, wanted: Tensor, answers: int) -> Tensor:
    """Logits (N,K) for ``wanted`` (N,C), of a linear classifier that learned the labels of ``features`` (M,C)."""
    weight = features.new_zeros(answers, features.shape[1]).requires_grad_()  # (K,C)
    bias = features.new_zeros(answers).requires_grad_()
    optimizer = torch.optim.LBFGS([weight, bias], max_iter=STEPS, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        logits = F.linear(features, weight, bias)
        if label.dim() == 1:
            missed = F.cross_entropy(logits, label)
        else:
            missed = F.binary_cross_entropy_with_logits(logits, label.to(logits), reduction="none").sum(1).mean()
        loss: Tensor = missed + DECAY / 2 * weight.square().sum()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    optimizer.step(closure)  # type: ignore[no-untyped-call]
    return F.linear(wanted, weight, bias).detach()
