"""HSAL: saliency-driven sequential attention that reads a multiset of labels, one region and one label at a time.

Paper: Welleck et al., "Saliency-based Sequential Image Attention with Multiset Prediction", 2017 (arXiv:1711.05165).

=============================  ======================================================  ==========================
Section 3, "Saliency Model"    S_1 = Σ_c V_c², from 0 to 1 (Appendix A)                :class:`.SaliencyMap`
Section 3, "Meta-Controller"   M_t, a mixture of Gaussians                             :class:`.MetaController`
Section 3, "Interface"         P_t = M_t ⊙ S_t from 0 to 1, g_0 = Σ M_t V              :func:`.priority_map`
Section 3, "Controller"        k glimpses, then a class                                :class:`.Controller`
Section 3, "Update Mechanism"  S_t+1                                                   :class:`.InhibitionOfReturn`
Section 4.2, "Reward"          R of a glimpse: P_t at its cell                         ``location_reward``
Section 5                      in training drawn, otherwise the likeliest until stop   :meth:`HsalModel.read`
=============================  ======================================================  ==========================

Every rollout has T = ``most`` + 1 meta steps of k + 1 controller steps, so that it can be captured; ``active`` says
which count. The result is a :class:`~saccade.trace.MultisetOutput` with Y classes, stop included. Behind the end
``said`` is stop, except in training, where a rollout goes on. Glimpses are k steps a label.

**Given attention** (:mod:`saccade.models.base`) has T maps for each of ``saliency`` (S_t), ``covert`` (M_t),
``priority`` (P_t) and ``inhibited`` (S_t+1), and T·k maps for ``glimpse``: the cell with the largest weight of each is
glimpsed. ``inhibited`` is the saliency of the next step, unless ``saliency`` is given too. ``location_log_prob`` and
``location_entropy`` stay those of the model's own scores.

Deviations from the paper: those of :mod:`saccade.attention.glimpse` and :mod:`saccade.models.multiset_reader`. The
paper does not say whether the controller's state outlives a meta step; here it does (``carry_state``), so it can name
later what it saw before. The reward of glimpses does not reach the state that decides where to look;
``follow_priority`` lets it add the priority map itself. a_i is one-hot, 0 before the first glimpse, as is ŷ_0. Saliency
does not teach the backbone. Section 5.2 names the resolution as the limit: ``fine_stage`` gives a cell finer
activations.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade import geometry
from saccade.attention.glimpse import COVERT, InhibitionOfReturn, SaliencyMap, min_max, priority_map
from saccade.attention.hard import gumbel_noise, log_weights
from saccade.backbones import Stages
from saccade.errors import ConfigError
from saccade.models.base import Given
from saccade.models.hsal_controller import Controller, Glimpsed, HsalConfig, MetaController
from saccade.models.multiset_reader import MultisetModel
from saccade.trace import Act, LookSpec, MultisetOutput


class HsalModel(MultisetModel):
    """Reads a picture region by region; looks ``saliency``, ``covert``, ``priority``, ``glimpse``, ``inhibited``."""

    Config = HsalConfig
    config: HsalConfig

    def __init__(self, config: HsalConfig) -> None:
        super().__init__(config)
        finer = config.fine_stage
        self.fine = None if finer is None else FineCells(self.backbone, finer, config.input_size)
        frame = self.backbone.frames[self.look_stage]
        fed = LookSpec("soft", "input", "sigmoid", frame)
        self.look_specs = {  # in the order in which a step needs them; the total is of the covert masks
            "saliency": fed,
            "covert": COVERT.at(frame),
            "priority": fed,
            "glimpse": LookSpec("hard", "policy", "softmax", frame),
            "inhibited": fed,
        }
        self.saliency = SaliencyMap(config.saliency)
        self.meta = MetaController(config, self.grid)
        channels = self.channels + (0 if self.fine is None else self.fine.channels)
        self.controller = Controller(config, self.grid[0] * self.grid[1], channels)
        self.inhibit = InhibitionOfReturn()

    def encode(self, images: Tensor) -> Tensor:
        """The activation volume V, behind it the finer activations under each cell: (B,3,H,W) → (B,C[+F],h,w)."""
        if self.fine is None:
            return super().encode(images)
        lower = self.backbone.between(images, to=self.config.fine_stage)  # (B,F,H,W)
        volume = self.backbone.between(lower, after=self.config.fine_stage)  # (B,C,h,w)
        return torch.cat([volume, self.fine(lower)], dim=1)

    def answer(self, encoding: Tensor, *, attention: Given | None = None) -> MultisetOutput:
        """Read the encoded pictures (B,C[+F],h,w): in training by draws, otherwise by what is likeliest."""
        location_noise = class_noise = None
        if self.training:
            count, steps = encoding.shape[0], self.steps
            cells = self.grid[0] * self.grid[1]
            location_noise = gumbel_noise((count, steps, self.config.glimpses, cells), like=encoding)  # (B,T,k,N)
            class_noise = gumbel_noise((count, steps, self.config.classes + 1), like=encoding)  # (B,T,Y)
        output = self.read(encoding, location_noise, class_noise, attention=attention)
        output.single_logits = self.read_single(encoding)
        return output

    def read(
        self,
        encoding: Tensor,
        location_noise: Tensor | None = None,
        class_noise: Tensor | None = None,
        *,
        attention: Given | None = None,
    ) -> MultisetOutput:
        """The rollout: T meta steps, drawn with the noise (B,T,k,N) and (B,T,Y), or the likeliest without.

        In float32 or wider: bfloat16 is too coarse to compare and draw in.
        """
        with torch.autocast(encoding.device.type, enabled=False):
            encoding = encoding.to(torch.promote_types(encoding.dtype, torch.float32))
            maps = {}
            for name in self.look_names if attention is not None else ():
                steps = self.steps * (self.config.glimpses if name == "glimpse" else 1)
                weights = self.given_steps(attention, name, (encoding.shape[0], steps, *self.grid))  # (B,t,h,w)
                if weights is not None:
                    maps[name] = weights.to(encoding)
            return self._read(encoding, location_noise, class_noise, maps)

    def _read(
        self, encoding: Tensor, location_noise: Tensor | None, class_noise: Tensor | None, given: dict[str, Tensor]
    ) -> MultisetOutput:
        glimpsed = None
        if "glimpse" in given:
            glimpsed = given["glimpse"].flatten(2).argmax(-1)  # (B,t)
        energy = self.saliency(encoding[:, : self.channels]).detach()  # (B,h,w)
        saliency = min_max(energy)  # S_1: (B,h,w)
        projected = self.controller.project(encoding)
        one_hot = torch.eye(self.config.classes + 1, dtype=encoding.dtype, device=encoding.device)  # (Y,Y)
        label = encoding.new_zeros(encoding.shape[0], self.config.classes + 1)  # ŷ_0: (B,Y)
        meta_state = encoding.new_zeros(encoding.shape[0], self.config.meta_hidden)
        fresh = state = encoding.new_zeros(encoding.shape[0], self.config.hidden)
        maps: dict[str, list[Tensor]] = {name: [] for name in ("saliency", "covert", "priority", "inhibited")}
        steps: list[Glimpsed] = []
        many = self.config.glimpses

        def used(name: str, computed: Tensor) -> Tensor:
            """The map (B,h,w) given for this step, or the model's own."""
            step = len(maps[name])
            maps[name].append(given[name][:, step] if name in given and step < given[name].shape[1] else computed)
            return maps[name][-1]

        for number in range(self.steps):
            saliency = used("saliency", saliency)  # S_t: (B,h,w)
            mask, meta_state = self.meta(saliency, label, meta_state)
            mask = used("covert", mask)  # M_t: (B,h,w)
            priority = used("priority", priority_map(mask, saliency))  # P_t: (B,h,w)
            step = self.controller.step(
                projected,
                priority,
                mask,
                label,
                state if self.config.carry_state else fresh,
                location_noise=None if location_noise is None else location_noise[:, number],
                class_noise=None if class_noise is None else class_noise[:, number],
                cells=None if glimpsed is None else glimpsed[:, number * many : (number + 1) * many],
            )
            state = step.states[-1]  # (B,D)
            label = F.embedding(step.label, one_hot)  # ŷ_t: (B,Y)
            steps.append(step)
            saliency = used("inhibited", self.inhibit(saliency, mask, step.cells))  # S_t+1: (B,h,w)
        saliency, covert, priority, inhibited = (torch.stack(row, dim=1) for row in maps.values())  # (B,T,h,w) each
        location_logits, location_values, class_logits, class_values = self.controller.judge(steps, priority)
        output = self._classes(steps, class_logits, class_values)
        output.energy, output.location_value = energy, location_values
        glimpse = self._glimpse(output, steps, location_logits, priority.detach())
        if "glimpse" in given:
            first = given["glimpse"].shape[1]  # t
            chosen = glimpse.choice[:, :first].unsqueeze(2)  # (B,t,1)
            of_given = log_weights(given["glimpse"]).flatten(2).gather(2, chosen).squeeze(2)  # (B,t)
            glimpse.weights = torch.cat([given["glimpse"], glimpse.weights[:, first:]], 1)  # (B,T·k,h,w)
            glimpse.log_prob = torch.cat([of_given, glimpse.log_prob[:, first:]], 1)  # (B,T·k)
        of_label = {"active": output.active & (output.said != self.stop), "emits": output.said}  # (B,T) each
        output.acts = {
            "saliency": Act(weights=saliency, **of_label),  # S_1 … S_T: (B,T,h,w)
            "covert": Act(torch.einsum("bthw,bchw->btc", covert, encoding), covert, values=encoding, **of_label),  # g_0
            "priority": Act(weights=priority, **of_label),
            "glimpse": glimpse,
            "inhibited": Act(weights=inhibited, **of_label),  # S_2 … S_T+1: (B,T,h,w)
        }
        glimpse.active, glimpse.emits = (row.repeat_interleave(many, dim=1) for row in of_label.values())  # (B,T·k)
        return output

    def _classes(self, steps: list[Glimpsed], logits: Tensor, values: Tensor) -> MultisetOutput:
        """The classes, their probabilities and expected values."""
        labels = torch.stack([step.label for step in steps], dim=1)  # (B,T)
        stops = (labels == self.stop).int()  # (B,T)
        active = stops.cumsum(1) == stops  # no stop before: (B,T)
        log_prob = logits.log_softmax(-1)  # (B,T,Y)
        return MultisetOutput(
            logits,
            said=labels if self.training else torch.where(active, labels, self.stop),
            said_log_prob=log_prob.gather(-1, labels.unsqueeze(-1)).squeeze(-1),
            class_entropy=-(log_prob.exp() * log_prob).sum(-1),
            class_value=values,
            active=active,
        )

    def _glimpse(self, output: MultisetOutput, steps: list[Glimpsed], logits: Tensor, priority: Tensor) -> Act:
        """Where the model looked, how likely that was, and what it was worth: ``priority`` (B,T,h,w) there."""
        cells = torch.stack([step.cells for step in steps], dim=1)  # (B,T,k)
        every = logits.log_softmax(-1)  # (B,T,k,N)
        shares = every.exp()  # (B,T,k,N)
        log_prob = every.gather(-1, cells.unsqueeze(-1)).squeeze(-1)  # (B,T,k)
        output.location, output.location_log_prob = cells, log_prob
        output.location_entropy = -(shares * every).sum(-1)  # (B,T,k)
        output.location_reward = priority.flatten(2).gather(2, cells)  # (B,T,k)
        weights = shares.reshape(every.shape[0], -1, *self.grid)  # (B,T·k,h,w)
        return Act(weights=weights, choice=cells.flatten(1), log_prob=log_prob.flatten(1))  # (B,T·k)


class FineCells(nn.Module):
    """Features of a finer stage (B,F,H,W) → (B,F·r²,h,w) on the grid of a backbone's last stage."""

    theta: Tensor

    def __init__(self, backbone: Stages, stage: str, size: geometry.Size) -> None:
        super().__init__()
        last = backbone.names[-1]
        if backbone.check_stage(stage) == last:
            raise ConfigError(f"fine_stage: '{last}' is the stage that is attended already; name an earlier one")
        coarse, fine = backbone.frames[last], backbone.frames[stage]
        grids = backbone.grid(size)
        self.ratio = max(1, round(float(coarse[0, 0] / fine[0, 0])))
        self.channels = backbone.channels[stage] * self.ratio**2
        self.grid = (grids[last][0] * self.ratio, grids[last][1] * self.ratio)
        divided = geometry.compose(coarse, geometry.scale_shift((1 / self.ratio,) * 2, (0.0, 0.0)))  # → input pixels
        theta = geometry.frame_to_theta(geometry.compose(geometry.invert(fine), divided), self.grid, grids[stage])
        self.register_buffer("theta", theta.float(), persistent=False)  # (2,3)

    def forward(self, features: Tensor) -> Tensor:
        """The finer features under each coarse cell, as channels."""
        theta = self.theta.expand(features.shape[0], 2, 3)  # (B,2,3)
        return F.pixel_unshuffle(geometry.sample_theta(features, theta, self.grid), self.ratio)  # (B,F·r²,h,w)
