"""RA-CNN: a network that looks at the picture, proposes a region, and looks again closer; three scales, one answer.

Paper: Fu et al., "Look Closer to See Better: Recurrent Attention Convolutional Neural Network", CVPR 2017.

============  ==========================================================  ==========================================
Eq. (1)       p(X) = f(W_c ∗ X): features and classes of a scale          ``nets``, ``heads``
Eq. (2)       [t_x, t_y, t_l] = g(W_c ∗ X): where the next scale looks    :class:`.AttentionProposal`, ``proposals``
Eqs. (3–7)    cut out and amplified                                       :mod:`saccade.attention.zoom`
Section 3.4   the scales' normalised descriptors, one classifier          ``fused``
============  ==========================================================  ==========================================

What teaches the parts, and in which order, is in :mod:`saccade.losses.maps` and in the recipes.

The network input is the **whole picture** (``input_size``, 224×224). Scale 1 sees it shrunk to ``coarse`` (112×112), so
a crop of half its side, read at ``crop`` (112×112), shows pixels that scale 1 never saw. Every crop is read from the
picture itself, also a crop of a crop.

The result is a :class:`~saccade.trace.LabelOutput`: ``logits`` are those of all scales together.

**Controls for the zoom** (``crops``), as the gain may come from three networks, from the middle of the picture, or from
more pixels:

=============  ===============================================================================================
``proposed``   the model: regions come from the attention proposals
``centre``     regions of ``side`` in the middle
``random``     regions of ``side`` anywhere: a place that the picture's own pixels draw, the same each time
``whole``      three networks, each of which sees the whole picture shrunk: no crop
``given``      regions round the evidence, which the data must know (``attention`` of ``forward_raw``)
=============  ===============================================================================================

A single network that sees all pixels is ``crops: whole`` with ``coarse: [224, 224]``: its ``scale1_accuracy``.

Deviations from the paper:

- Any backbone can see the scales; scale 1 and the crops have the same size.
- Proposals may read an earlier stage of it (``read``). At 112 pixels the last one of MobileNetV2 has 4 × 4 cells.
- ``fused`` learns together with the scales, from descriptors that it does not change.
- Proposals may learn from ``responses``: the network of the next scale sees the whole region of this one, at
  ``input_size``.
- Those of :mod:`saccade.attention.zoom` and :mod:`saccade.losses.maps` apply too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade import geometry
from saccade.attention import zoom
from saccade.attention.spatial_transformer import given_window
from saccade.backbones import Stages, build_backbone, pretrained
from saccade.config import Within
from saccade.errors import DataError
from saccade.geometry import Size
from saccade.models.base import BackboneConfig, Given, ImageOnlyModel, Pixels, Units, Words
from saccade.trace import Act, LabelOutput, crop_spec

SCALES = ("scale1", "scale2", "scale3")
CROPS = SCALES[1:]  # the scales that see a crop; their looks have these names
Crops = Literal["proposed", "centre", "random", "whole", "given"]
_STRIDE = 7  # every seventh pixel each way draws the place of a random crop


@dataclass(frozen=True)
class RacnnConfig(BackboneConfig):
    """Sizes of RA-CNN; the paper has VGG-19, 448 and 224 pixels, and 1024 hidden units."""

    answers: Words = 12
    """Number of labels."""
    backbone: str = "compact"
    """The network of each scale: compact, mobilenetv2, vgg19, timm:NAME …"""
    input_size: Pixels = (224, 224)
    """(height, width) of the network input, from which crops are read."""
    coarse: Pixels = (112, 112)
    """(height, width) at which scale 1 sees the picture."""
    crop: Pixels = (112, 112)
    """(height, width) at which a crop is read."""
    hidden: Units = 64
    """Units of the attention proposals."""
    smallest: Annotated[float, Within(0, 1, above=True)] = zoom.SMALLEST
    """Side of the smallest region, as a share of its parent's; public ports have ⅔."""
    sharpness: Annotated[float, Within(0, above=True)] = zoom.SHARPNESS
    """k of the mask's edge, for the side of the parent."""
    crops: Crops = "proposed"
    """Where crops come from; all but ``proposed`` are controls."""
    side: Annotated[float, Within(0, 1, above=True)] = 0.5
    """Side of the crops of a control, as a share of their parent's."""
    read: str | None = None
    """The stage that attention proposals read; None: the last, as in the paper. Earlier ones have more cells."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.coarse[0] > self.input_size[0] or self.coarse[1] > self.input_size[1]:
            raise ValueError(f"coarse: at most as large as the picture {self.input_size}, found {self.coarse}")


class RacnnModel(ImageOnlyModel):
    """Pictures (B,3,H,W) → logits (B,K) of three scales together; looks ``scale2`` and ``scale3``, two nested crops."""

    Config = RacnnConfig
    config: RacnnConfig
    sized_by = "input_size"

    to_coarse: Tensor
    to_crop: Tensor

    def __init__(self, config: RacnnConfig) -> None:
        super().__init__(config)
        self.network_size = config.coarse
        self.look_specs = dict.fromkeys(CROPS, crop_spec(config.crop, config.input_size))
        self.shrink = zoom.Downsample(config.input_size, config.coarse)
        self.nets = nn.ModuleDict({name: build_backbone(config.backbone, through=config.through) for name in SCALES})
        first = self.net("scale1")
        last = first.names[-1]
        channels = first.channels[last]
        self.heads = nn.ModuleDict({name: nn.Linear(channels, config.answers) for name in SCALES})
        sizes = (config.coarse, config.crop)
        read = first.check_stage(last if config.read is None else config.read)
        grids = [first.grid(size)[read] for size in sizes]  # also refuses sizes that are too small
        self.proposals = nn.ModuleDict()
        if config.crops == "proposed":
            for name, grid in zip(CROPS, grids):
                self.proposals[name] = zoom.AttentionProposal(
                    first.channels[read], grid, hidden=config.hidden, smallest=config.smallest
                )
        self.fused = nn.Linear(len(SCALES) * channels, config.answers)
        for name, size in zip(("to_coarse", "to_crop"), sizes):  # cells → shares of what the scale sees
            shares = geometry.scale_shift((1 / size[1], 1 / size[0]), (0.0, 0.0))
            frame = geometry.compose(shares, first.frames[last]).float()  # (2,3)
            self.register_buffer(name, frame, persistent=False)

    def net(self, name: str) -> Stages:
        """The network of a scale."""
        return cast(Stages, self.nets[name])

    def load_pretrained(self) -> None:
        """Give every scale's network its ImageNet weights."""
        for name in SCALES:
            pretrained.load_imagenet(self.net(name), self.config.backbone)

    def encode(self, images: Tensor) -> Tensor:
        """The picture itself (B,3,H,W): every scale reads it anew."""
        self.check_input((images.shape[-2], images.shape[-1]))
        return images

    def forward_raw(self, images: Tensor, **options: Any) -> LabelOutput:
        """Pictures (B,3,H,W) → plain tensors; the options are those of :meth:`answer`."""
        return self.answer(self.encode(images), **options)

    def answer(
        self,
        encoding: Tensor,
        *,
        attention: Given | None = None,
        last: str = SCALES[-1],
        responses: bool = False,
    ) -> LabelOutput:
        """Look, propose, look closer, twice; then all scales together.

        For phases that need no more, ``last`` is the last scale that looks: without the finest there are no ``logits``
        and no looks behind it. ``responses`` are returned for a phase that teaches proposals by them.
        """
        seeing = SCALES[: SCALES.index(last) + 1]
        acts: dict[str, Act] = {}
        exact = torch.promote_types(encoding.dtype, torch.float32)  # coordinates and answers, in any precision around
        theta = torch.eye(2, 3, dtype=exact, device=encoding.device).expand(encoding.shape[0], 2, 3)
        view = self.shrink(encoding)  # scale 1: (B,3,h,w)
        logits, descriptors, boxes, places, regions = [], [], [], [], []
        for number, name in enumerate(seeing):
            net = self.net(name)
            proposing = net.between(_laid_out(view), to=self.config.read)  # (B,C',h',w'), for proposals
            features = proposing  # Eq. (1): (B,C,h,w)
            if self.config.read is not None:
                features = net.between(proposing, after=self.config.read)
            pooled = features.mean((2, 3))  # (B,C)
            descriptor = pooled.detach() if self.training else pooled  # the fused classifier teaches no network
            descriptors.append(F.normalize(descriptor.to(exact), dim=1) * math.sqrt(pooled.shape[1]))
            logits.append(self.heads[name](pooled).to(exact))  # (B,K)
            if name == SCALES[-1]:
                break
            closer = SCALES[number + 1]
            cell = zoom.strongest(features.detach().mean(1).to(self.to_coarse.dtype))  # (B,2)
            places.append(geometry.apply(self.to_crop if number else self.to_coarse, cell))  # (B,2)
            if responses:
                regions.append(self._responding(closer, encoding, None if name == SCALES[0] else theta))
            box, theta = self._region(closer, encoding, proposing, theta, attention)
            boxes.append(box)
            if name != last:
                view, crop = self._cut(encoding, theta, box)
                acts[closer] = Act(crop, values=encoding, theta=theta)
        output = LabelOutput(
            acts=acts,
            scale_logits=torch.stack(logits, dim=1),  # (B,S,K)
            boxes=torch.stack(boxes, dim=1),  # (B,2,3)
            strongest=torch.stack(places, dim=1),  # (B,2,2)
        )
        for number, act in enumerate(acts.values(), start=1):
            act.emits = logits[number].argmax(-1)  # (B,): what its scale says by itself
        if responses:
            output.responses = torch.stack(regions, dim=1)  # (B,2,3)
        if last == SCALES[-1]:
            output.logits = self.fused(torch.cat(descriptors, dim=1))  # (B,K)
        return output

    def _region(
        self, name: str, images: Tensor, features: Tensor, parent: Tensor, attention: Given | None
    ) -> tuple[Tensor, Tensor]:
        """Where a scale looks: the box (B,3) in shares of its ``parent`` (B,2,3), and θ (B,2,3) in the picture."""
        config, count = self.config, images.shape[0]
        frame = self.given(attention, name, (count, 2, 3), signed=True)
        if frame is not None:
            theta = given_window(frame, config.crop, images).to(parent)  # (B,2,3)
            inside = geometry.compose(geometry.invert(parent), theta)  # (B,2,3)
            return zoom.theta_box(inside), theta
        if config.crops == "proposed":
            box = self.proposals[name](features)  # Eq. (2): (B,3)
        elif config.crops == "random":
            box = _anywhere(images, config.side, CROPS.index(name)).to(parent.dtype)
        elif config.crops == "given":
            raise DataError(f"this control looks round the evidence: give the frame of '{name}' as attention")
        else:
            half = 0.5 if config.crops == "whole" else config.side / 2
            middle = torch.full((count, 2), 0.5, dtype=parent.dtype, device=images.device)
            box = torch.cat([middle, torch.full_like(middle[:, :1], half)], dim=1)  # (B,3)
        return box, zoom.nested(parent, zoom.box_theta(box))

    def _cut(self, images: Tensor, theta: Tensor, box: Tensor) -> tuple[Tensor, Tensor]:
        """What a scale sees, masked, and the crop as it was read: (B,3,h,w) each."""
        crop, mask = zoom.apn_crop(images, theta, box[:, 2], self.config.crop, self.config.sharpness)
        if self.config.crops == "whole":  # no region, so no edge; shrunk as scale 1 sees it where the sizes agree
            return (self.shrink(images) if self.config.coarse == self.config.crop else crop), crop
        return crop * mask.unsqueeze(1), crop

    @torch.no_grad()
    def _responding(self, name: str, images: Tensor, theta: Tensor | None) -> Tensor:
        """The square (B,3) of a window ``theta`` (B,2,3), or of the picture, in which the network ``name`` responds."""
        view = images if theta is None else geometry.sample_theta(images, theta, self.config.input_size)
        features = self.net(name)(_laid_out(view))  # (B,C,h,w)
        return zoom.responding_region(features.mean(1).to(torch.promote_types(images.dtype, torch.float32)))


def region_round(boxes: Tensor, picture: Size, side: float, crop: Size) -> dict[str, Tensor]:
    """Frames (B,2,3) of the control ``given``: regions of ``side`` round evidence ``boxes`` (B,4) xyxy in pixels.

    They lie inside their parents, and grow where the evidence is larger.
    """
    x0, y0, x1, y1 = boxes.float().unbind(-1)
    frames, theta = {}, torch.eye(2, 3, device=boxes.device).expand(len(boxes), 2, 3)
    centre = torch.stack([(x0 + x1) / 2 / picture[1], (y0 + y1) / 2 / picture[0]], dim=-1)  # (B,2) in the picture
    extent = torch.maximum((x1 - x0) / picture[1], (y1 - y0) / picture[0])  # (B,)
    corner, length = torch.zeros_like(centre), torch.ones_like(extent)  # of the parent, in shares of the picture
    for name in CROPS:
        half = torch.maximum(torch.full_like(extent, side), extent / length).clamp(max=1) / 2  # (B,)
        at = (centre - corner) / length.unsqueeze(-1)  # (B,2) in the parent
        box = zoom.clamped_box(torch.cat([at, half.unsqueeze(-1)], dim=-1), smallest=0.0)  # (B,3)
        theta = zoom.nested(theta, zoom.box_theta(box))
        corner = corner + (box[:, :2] - box[:, 2:]) * length.unsqueeze(-1)
        length = length * 2 * half
        frames[name] = geometry.theta_to_frame(theta.double(), crop, picture)
    return frames


def _anywhere(images: Tensor, side: float, number: int) -> Tensor:
    """A box (B,3) of ``side`` at a place that the pixels draw: at random over pictures, the same for one picture."""
    levels = (images[:, :, ::_STRIDE, ::_STRIDE].float() * 255).round().long().flatten(1)  # (B,N)
    weights = torch.arange(levels.shape[1], device=images.device) * 2_654_435 % 65_521 + 1  # (N,)
    mixed = (levels * weights).sum(1)  # (B,): whole numbers, so no order of summing matters
    draws = torch.stack([mixed * (48_271 + 2 * number) >> 3, mixed * (69_621 + 2 * number) >> 5], dim=-1)  # (B,2)
    shares = (draws % 65_537).float() / 65_537
    half = side / 2
    return torch.cat([half + (1 - side) * shares, torch.full_like(shares[:, :1], half)], dim=-1)


def _laid_out(images: Tensor) -> Tensor:
    """The pictures, on a CPU with their channels together: convolutions and poolings are twice as fast."""
    return images.contiguous(memory_format=torch.channels_last) if images.device.type == "cpu" else images
