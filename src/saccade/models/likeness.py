"""Whether an input is like those that a model learned from: a distance of its features, as a conformal p-value.

Features are the mean and the maximum of each channel of a feature map, standardised. More than :data:`LARGEST` are
summed in that many groups with fixed signs. The score is their squared Mahalanobis distance from the mean of held-out
inputs,

    s = ‖W z‖²,   WᵀW = ((1 − λ) C + λ I)⁻¹,

with C the covariance of z and λ the shrinkage. Further held-out inputs give n scores to compare with:

    p = (1 + #{scores ≥ s}) / (n + 1)

(Vovk et al. 2005, "Algorithmic Learning in a Random World"). An input of the same kind has p ≤ α with probability α at
most, whatever the features: the rate of false alarms. How many foreign inputs are noticed depends on the features.

==============  ==================================================================================================
``encoding``    the output of ``encode``, where that is a feature map
``first``       the first stage of the backbone, computed for this purpose; it keeps what later stages forget
==============  ==================================================================================================
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from saccade.backbones import Stages
from saccade.errors import CheckpointError, ConfigError, DataError
from saccade.models.base import AttentionModel, Encoding, ImageModel

LARGEST = 64  # numbers that a distance is computed of
SHRINKAGE = 0.05
ALPHA = 0.01  # an input is unlike when its p-value is at most this, and so are as many of the right kind
UNUSUAL = 0.05  # it is unusual when its p-value is at most this, and larger than ALPHA
FEWEST = 99  # scores to compare with: with fewer no p-value could be as small as ALPHA
_TAIL, _EVERY = 200, 20  # of the scores all the largest are kept, and every twentieth of the others
_NAMES = ("centre", "spread", "whitening", "scores", "not_below")


def pooled(features: Tensor) -> Tensor:
    """Mean and maximum of each channel: (B,C,h,w) or (B,L,C) → (B,2C)."""
    places = features.float().flatten(2) if features.dim() == 4 else features.float().transpose(1, 2)  # (B,C,P)
    return torch.cat([places.mean(2), places.amax(2)], 1)


@dataclass(frozen=True)
class InputFit:
    """Whether an input is like those that the model learned from."""

    p: float | None = None  # its p-value among held-out inputs of that kind; None: not known
    trained_on: str = ""  # what those show

    @property
    def unlike(self) -> bool | None:
        """Whether it is unlike them; None: not known."""
        return None if self.p is None else self.p <= ALPHA

    @property
    def verdict(self) -> str:
        """``unlike`` (p ≤ .01), ``unusual`` (p ≤ .05), ``usual`` (no sign that it is unlike) or ``not known``."""
        if self.p is None:
            return "not known"
        return "unlike" if self.p <= ALPHA else "unusual" if self.p <= UNUSUAL else "usual"

    @property
    def warning(self) -> str:
        """A sentence where the input is unlike; empty otherwise."""
        return f"this model was trained on {self.trained_on}, so its answer here means little" if self.unlike else ""

    @property
    def sentence(self) -> str:
        """The verdict and what the p-value means, for people to read."""
        if self.p is None:
            return "not known whether this is like what the model learned from"
        meaning = {
            "unlike": self.warning,
            "unusual": "unusual for this model, so be careful with its answer",
            "usual": "no sign that this is unlike what the model learned from",
        }[self.verdict]
        return f"{meaning}: of inputs of the right kind, {100 * self.p:.2g} % are at least as unusual (p {self.p:.2g})"

    def to_json(self) -> dict[str, str | float | None]:
        """Plain values."""
        p = None if self.p is None else round(self.p, 6)
        facts = {"verdict": self.verdict, "p": p, "level": ALPHA, "sentence": self.sentence}
        return facts | ({"warning": self.warning} if self.unlike else {})


@dataclass(frozen=True, eq=False)
class Likeness:
    """What the features of held-out inputs look like."""

    centre: Tensor  # (D,) their means
    spread: Tensor  # (D,) their standard deviations
    whitening: Tensor  # (k,k) W, upper triangular
    scores: Tensor  # (m,) the scores of further held-out inputs that are kept, ascending
    not_below: Tensor  # (m,) how many of all scores are at least as large as each of these

    @property
    def n(self) -> int:
        """How many inputs gave scores to compare with."""
        return int(self.not_below[0])

    def p_values(self, features: Tensor) -> Tensor:
        """The p-value (B,) of each input, from its features (B,D)."""
        score = self.score(features).to(self.scores)  # rounded as these are: the same input has the same score
        place = torch.searchsorted(self.scores, score) - 1  # the last kept score that is < s: all equal ones count
        larger = torch.where(place < 0, self.n, self.not_below[place.clamp(min=0)])
        larger = torch.where(score > self.scores[-1], 0, larger)
        return (1 + larger.double()) / (self.n + 1)

    def score(self, features: Tensor) -> Tensor:
        """The squared distance (B,) of features (B,D); infinite where they are not finite."""
        features = features.detach().double().cpu()
        standard = _folded((features - self.centre.double()) / self.spread.double())  # (B,k)
        distance = (standard @ self.whitening.double().T).square().sum(1)  # (B,)
        return torch.where(distance.isfinite(), distance, torch.inf)

    def to_tensors(self) -> dict[str, Tensor]:
        """Its tensors as they are stored, by name; of the triangular matrix the upper part, row by row."""
        rows, columns = torch.triu_indices(*self.whitening.shape)
        stored = {name: getattr(self, name).contiguous() for name in _NAMES}
        return stored | {"whitening": self.whitening[rows, columns].contiguous()}

    @classmethod
    def from_tensors(cls, tensors: dict[str, Tensor], where: str) -> Likeness:
        """The inverse of :meth:`to_tensors`; a CheckpointError where they cannot be that."""
        shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
        many, scores = ((shapes.get(name) or (0,))[0] for name in ("centre", "scores"))
        width = min(many, LARGEST)
        upper = (width * (width + 1) // 2,)
        if many and scores and shapes == dict(zip(_NAMES, ((many,), (many,), upper, (scores,), (scores,)))):
            whitening = torch.zeros(width, width, dtype=tensors["whitening"].dtype)
            rows, columns = torch.triu_indices(width, width)
            whitening[rows, columns] = tensors["whitening"]
            likeness = cls(**{**tensors, "whitening": whitening})
            counts = likeness.not_below
            is_finite = all(bool(tensor.isfinite().all()) for tensor in tensors.values())
            is_ordered = bool((likeness.scores.diff() >= 0).all()) and bool((counts.diff() <= 0).all())
            is_count = not counts.is_floating_point() and int(counts[-1]) >= 1
            if is_finite and bool((likeness.spread > 0).all()) and is_ordered and is_count:
                return likeness
        raise CheckpointError(f"{where}: no sound statistics of features; fit them again")


def fit_likeness(features: Tensor, held_out: Tensor) -> Likeness:
    """Statistics of ``features`` (N,D), with p-values by the scores of ``held_out`` (n,D), which are other inputs."""
    if len(held_out) < FEWEST or len(features) < FEWEST:
        raise DataError(
            f"at least {2 * FEWEST} held-out inputs are needed to say what is unlike them, found "
            f"{len(features) + len(held_out)}"
        )
    features = features.detach().double().cpu()
    centre, spread = features.mean(0), features.std(0)  # (D,)
    floor = 0.01 * float(spread.mean()) + 1e-6  # a channel that is silent here may speak elsewhere
    stored = {"centre": centre.half(), "spread": spread.clamp(min=floor).float()}
    standard = _folded((features - stored["centre"].double()) / stored["spread"].double())  # (N,k)
    width = standard.shape[1]
    covariance = (1 - SHRINKAGE) * torch.cov(standard.T).reshape(width, width) + SHRINKAGE * torch.eye(width).double()
    whitening = torch.linalg.cholesky(torch.linalg.inv(covariance)).mH  # (k,k), WᵀW = the inverse
    likeness = Likeness(**stored, whitening=whitening.half(), scores=torch.zeros(1), not_below=torch.ones(1).int())
    scores = likeness.score(held_out).float().sort().values  # (n,)
    count = len(scores)
    places = [at for at in range(count) if at >= count - _TAIL or at % _EVERY == 0]
    not_below = torch.tensor([count - at for at in places], dtype=torch.int32)
    return replace(likeness, scores=scores[places], not_below=not_below)


def _folded(standard: Tensor) -> Tensor:
    """Features (B,D) as at most :data:`LARGEST` sums (B,k) of some of them, with signs that do not change."""
    many = standard.shape[1]
    if many <= LARGEST:
        return standard
    number = torch.arange(many)
    sign = 1.0 - 2.0 * ((number * 2_654_435_761 >> 15) & 1).double()  # (D,)
    sums = torch.zeros(len(standard), LARGEST, dtype=standard.dtype)
    sums.index_add_(1, number % LARGEST, standard * sign)
    return sums * math.sqrt(LARGEST / many)


ENCODING, FIRST = "encoding", "first"


def input_feature_names(model: AttentionModel, encoding: Encoding) -> tuple[str, ...]:
    """Names of the features that ``model`` has; none where its input is no picture."""
    if not isinstance(model, ImageModel):
        return ()
    can_pool = isinstance(encoding, Tensor) and encoding.dim() in (3, 4) and encoding.is_floating_point()
    return (*((ENCODING,) if can_pool else ()), *((FIRST,) if _first_stages(model) is not None else ()))


def input_features(model: AttentionModel, name: str, images: Tensor, encoding: Encoding = None) -> Tensor:
    """The features ``name`` (B,D) of pictures (B,3,H,W); ``encoding`` is what ``encode`` made of them, where known."""
    if name == ENCODING:
        return pooled(model.encode(images) if encoding is None else encoding)
    stages = _first_stages(model)
    if name != FIRST or stages is None:
        raise ConfigError(
            f"no features '{name}' of {type(model).__name__}: {', '.join(input_feature_names(model, encoding))}"
        )
    return pooled(stages.between(images, to=stages.names[0]))


def _first_stages(model: Any) -> Stages | None:
    return next((part for part in model.children() if isinstance(part, Stages)), None)
