"""Hard attention: the model looks at one cell, and which one is a latent variable with the prior α.

Paper: Seo et al., "Hierarchical Attention Networks", 2016 (arXiv:1606.02393), the baseline HARD of Section 5.1, after
Xu et al., "Show, Attend and Tell", 2015 (arXiv:1502.03044).

=================  ===============================================================================
Seo, Eq. (2-3)     α_ij = softmax_ij g_att(f_ij, q)            :meth:`HardAttention.prior`
Seo, Section 5.1   log p(y) = log Σ_ij α_ij p(y|f_ij)          :func:`log_marginal`
Bayes              p(ij|y) ∝ α_ij p(y|f_ij)                    :func:`posterior`
Xu, Eq. (8)        s ~ Categorical(α)                          :func:`sample_cells`, :func:`log_prob_of`
=================  ===============================================================================

The answers of the cells come in as log-probabilities (B,K,H,W): a log-softmax over K exclusive answers, or for many
labels at once a log-sigmoid of each, which are then marginalised label by label.

Cells are drawn by the Gumbel-max trick: the largest of logits plus Gumbel noise is a draw from their softmax. Unlike
``torch.multinomial`` it reads nothing back from the device, so it works inside a CUDA graph.

Deviations from the paper: none known. The paper says only "marginal log-likelihood" about HARD; the formula is ours.

Axes: B examples, K answers, H and W cells, N = H·W, S samples.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from saccade.attention.scores import AdditiveScorer, given_or_own, spatial_softmax
from saccade.trace import MIXTURE, Act, Look


def gumbel_noise(shape: Sequence[int], *, like: Tensor) -> Tensor:
    """Independent standard Gumbel noise of ``shape``, on the device of ``like``.

    Always float32 or wider: bfloat16 is too coarse to draw in.

    >>> gumbel_noise((2, 3), like=torch.zeros(1, dtype=torch.bfloat16)).dtype
    torch.float32
    """
    dtype = torch.promote_types(like.dtype, torch.float32)
    uniform = torch.rand(tuple(shape), dtype=dtype, device=like.device)
    return -torch.log(-torch.log(uniform))


def gumbel_max(logits: Tensor, noise: Tensor | None) -> Tensor:
    """A draw from softmax(logits) by its ``noise`` of the same shape (…,N), or without noise the likeliest: (…)."""
    return (logits if noise is None else logits.detach() + noise).argmax(-1)


class HardAttention(nn.Module):
    """Features (B,C,H,W), a query vector (B,Q) and the cells' answers (B,K,H,W) → log-probabilities (B,K) and the look.

    >>> attention = HardAttention(8, 4)
    >>> answers = torch.randn(2, 3, 5, 7).log_softmax(1)
    >>> log_mixture, look = attention(torch.randn(2, 8, 5, 7), torch.randn(2, 4), answers)
    >>> log_mixture.exp().sum(1).round(decimals=4).tolist(), look.role
    ([1.0, 1.0], 'mixture')
    """

    def __init__(self, channels: int, query_size: int, *, hidden: int = 32) -> None:
        super().__init__()
        self.scorer = AdditiveScorer(channels, query_size, hidden=hidden)

    def prior(self, features: Tensor, query: Tensor, *, weights: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Eq. (2) and (3): α, where it would look before it has answered, and its scores; both (B,H,W).

        ``weights`` (B,H,W) that are given take the place of α; the scores stay its own.
        """
        scores = self.scorer(features, query)  # (B,H,W)
        return given_or_own(weights, spatial_softmax(scores)), scores

    def forward(
        self,
        features: Tensor,
        query: Tensor,
        answers: Tensor,
        *,
        frame: Tensor | None = None,
        name: str = "attention",
        weights: Tensor | None = None,
    ) -> tuple[Tensor, Look]:
        """The exact marginal over all locations, and its look; ``weights`` as in :meth:`prior`."""
        weights, scores = self.prior(features, query, weights=weights)
        return log_marginal(weights, answers), MIXTURE.at(frame).look(name, Act(weights=weights, scores=scores))


def log_marginal(weights: Tensor, answers: Tensor) -> Tensor:
    """The mixture log Σ_ij α_ij p(y|ij), by log-sum-exp: weights (B,H,W), log-probabilities (B,K,H,W) → (B,K)."""
    joint = log_weights(weights).unsqueeze(1) + answers  # log α_ij p(y|ij): (B,K,H,W)
    return torch.logsumexp(joint.flatten(2), dim=-1)  # (B,K)


def posterior(weights: Tensor, answers: Tensor, answer: Tensor) -> Tensor:
    """Where the evidence for ``answer`` (B,) lies, ∝ α_ij p(answer|ij): (B,H,W), summing to 1."""
    wanted = answer[:, None, None, None].expand(-1, 1, *answers.shape[2:])  # (B,1,H,W)
    likelihood = answers.gather(1, wanted).squeeze(1)  # log p(answer|ij): (B,H,W)
    return spatial_softmax(log_weights(weights) + likelihood)  # (B,H,W)


def sample_cells(weights: Tensor, count: int) -> Tensor:
    """``count`` independent draws from Categorical(α): weights (B,H,W) → cells (B,S), numbered row by row."""
    fine = weights.detach().float()  # bfloat16 is too coarse to draw in
    log_prior = log_weights(fine).flatten(1).unsqueeze(1)  # (B,1,N)
    shape = (log_prior.shape[0], count, log_prior.shape[2])
    return gumbel_max(log_prior, gumbel_noise(shape, like=log_prior))  # (B,S)


def best_cell(weights: Tensor) -> Tensor:
    """The cell with the largest α: weights (B,H,W) → (B,1), numbered row by row."""
    return weights.flatten(1).argmax(-1, keepdim=True)


def log_prob_of(weights: Tensor, cells: Tensor) -> Tensor:
    """The log α at ``cells`` (B,S): (B,S), with a gradient to the weights (B,H,W)."""
    return at_cells(log_weights(weights).unsqueeze(1), cells).squeeze(-1)


def at_cells(values: Tensor, cells: Tensor) -> Tensor:
    """What ``values`` (B,C,H,W) hold at ``cells`` (B,S): (B,S,C)."""
    # gather rather than take_along_dim, which fixes the batch size when it is exported
    wanted = cells.unsqueeze(1).expand(-1, values.shape[1], -1)  # (B,C,S)
    return values.flatten(2).gather(2, wanted).transpose(1, 2)  # (B,S,C)


def cell_entropy(weights: Tensor) -> Tensor:
    """−Σ_ij α_ij log α_ij: how undecided the prior (B,H,W) is, (B,)."""
    return -(weights * log_weights(weights)).flatten(1).sum(-1)


def log_weights(weights: Tensor) -> Tensor:
    """Log α, finite where α is 0; from the weights that are shown, so that gradients pass through them."""
    return weights.clamp_min(torch.finfo(weights.dtype).tiny).log()
