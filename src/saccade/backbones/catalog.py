"""Every backbone by name: one dictionary, readable without importing torch, and the one function that builds them.

To add a backbone, add a line here; ``saccade list backbones``, configurations and tests then find it.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from saccade.errors import ConfigError, nearest

if TYPE_CHECKING:
    from saccade.backbones.stages import Stages

TIMM = "timm:"
"""What names of timm's models start with."""
HF = "hf:"
"""What names of models of the transformers library start with."""
FEATURES = "features:"
"""What the folder of feature maps that somebody else computed is named with."""


@dataclass(frozen=True)
class BackboneSpec:
    """What is known of a backbone before it is built."""

    target: str
    """``module:function`` that builds it."""
    summary: str
    paper: str
    stages: tuple[str, ...]
    """The stages in order; attention can follow any of them."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """What the function is called with."""
    published: str | None = None
    """The file of ImageNet weights in circulation, with the first digits of its SHA-256; None: there are none."""
    published_at: str | None = "https://download.pytorch.org/models"
    """The folder on the web that has that file; None: it comes in a package only."""

    def build(self, **arguments: object) -> Stages:
        """The whole backbone with fresh weights."""
        stages: Stages = self._named("")(**self.arguments, **arguments)
        return stages

    def published_key(self, key: str) -> str:
        """How the published weights call the entry ``key`` of its state; beside ``resnet`` stands ``resnet_key``."""
        return str(self._named("_key")(key))

    def _named(self, ending: str) -> Any:
        module, _, function = self.target.partition(":")
        return getattr(importlib.import_module(module), function + ending)


_RESNET_STAGES = ("stem", "layer1", "layer2", "layer3", "layer4")
_VGG_STAGES = tuple(f"{kind}{block}" for block in range(1, 6) for kind in ("conv", "pool"))


def _inverted_residuals(blocks: int) -> tuple[str, ...]:
    return (*(f"block{number}" for number in range(blocks + 1)), "head")


BACKBONES: dict[str, BackboneSpec] = {
    "small": BackboneSpec(
        target="saccade.backbones.plain:small_stack",
        summary="four small valid convolutions with poolings; trained from nothing",
        paper="Seo et al. 2016, arXiv:1606.02393",
        stages=("stage1", "stage2", "stage3", "stage4"),
    ),
    "compact": BackboneSpec(
        target="saccade.backbones.resnet:compact",
        summary="residual network of nine layers, 128 channels at 1/16; trained from nothing",
        paper="after He et al. 2016, arXiv:1512.03385",
        stages=_RESNET_STAGES,
    ),
    "compact-near": BackboneSpec(
        target="saccade.backbones.resnet:compact",
        summary="compact with a last stage that looks no further: a cell sees 47×47 pixels, not 95×95",
        paper="after He et al. 2016, arXiv:1512.03385",
        stages=_RESNET_STAGES,
        arguments={"last_kernel": 1},
    ),
    "compact-fine": BackboneSpec(
        target="saccade.backbones.resnet:compact",
        summary="compact with a last stage that keeps its grid, 128 channels at 1/8",
        paper="after He et al. 2016, arXiv:1512.03385",
        stages=_RESNET_STAGES,
        arguments={"last_stride": 1},
    ),
    "compact-deep": BackboneSpec(
        target="saccade.backbones.resnet:compact",
        summary="compact-fine with a second block in two stages; starts from its weights, or from nothing",
        paper="after He et al. 2016, arXiv:1512.03385",
        stages=("stem", "layer1", "layer2", "layer2b", "layer3", "layer3b", "layer4"),
        arguments={"last_stride": 1, "further": (2, 3)},
    ),
    "resnet18": BackboneSpec(
        target="saccade.backbones.resnet:resnet",
        summary="residual network of 18 layers, 512 channels at 1/32",
        paper="He et al. 2016, arXiv:1512.03385",
        stages=_RESNET_STAGES,
        arguments={"layers": 18},
        published="resnet18-f37072fd.pth",
    ),
    "resnet34": BackboneSpec(
        target="saccade.backbones.resnet:resnet",
        summary="residual network of 34 layers, 512 channels at 1/32",
        paper="He et al. 2016, arXiv:1512.03385",
        stages=_RESNET_STAGES,
        arguments={"layers": 34},
        published="resnet34-b627a593.pth",
    ),
    "resnet50": BackboneSpec(
        target="saccade.backbones.resnet:resnet",
        summary="residual network of 50 layers, 2048 channels at 1/32",
        paper="He et al. 2016, arXiv:1512.03385",
        stages=_RESNET_STAGES,
        arguments={"layers": 50},
        published="resnet50-0676ba61.pth",
    ),
    "vgg16": BackboneSpec(
        target="saccade.backbones.plain:vgg",
        summary="13 convolutions in five blocks, 512 channels at 1/32",
        paper="Simonyan and Zisserman 2015, arXiv:1409.1556",
        stages=_VGG_STAGES,
        arguments={"layers": 16},
        published="vgg16-397923af.pth",
    ),
    "vgg19": BackboneSpec(
        target="saccade.backbones.plain:vgg",
        summary="16 convolutions in five blocks, 512 channels at 1/32",
        paper="Simonyan and Zisserman 2015, arXiv:1409.1556",
        stages=_VGG_STAGES,
        arguments={"layers": 19},
        published="vgg19-dcbb9e9d.pth",
    ),
    "mobilenetv2": BackboneSpec(
        target="saccade.backbones.mobile:mobilenet_v2",
        summary="17 inverted residuals, small and quick, 1280 channels at 1/32",
        paper="Sandler et al. 2018, arXiv:1801.04381",
        stages=_inverted_residuals(17),
        published="mobilenet_v2-b0353104.pth",
    ),
    "efficientnet-lite0": BackboneSpec(
        target="saccade.backbones.mobile:efficientnet_lite",
        summary="16 inverted residuals with filters of 3×3 and 5×5, 1280 channels at 1/32",
        paper="Tan and Le 2019, arXiv:1905.11946",
        stages=_inverted_residuals(16),
        arguments={"version": 0},
        published="efficientnet-lite0-57934424.pth",
        published_at=None,
    ),
    "efficientnet-lite1": BackboneSpec(
        target="saccade.backbones.mobile:efficientnet_lite",
        summary="21 inverted residuals, 1280 channels at 1/32; for pictures of 240 × 240",
        paper="Tan and Le 2019, arXiv:1905.11946",
        stages=_inverted_residuals(21),
        arguments={"version": 1},
        published="efficientnet-lite1-77cc7160.pth",
        published_at=None,
    ),
    "efficientnet-lite2": BackboneSpec(
        target="saccade.backbones.mobile:efficientnet_lite",
        summary="21 wider inverted residuals, 1280 channels at 1/32; for pictures of 260 × 260",
        paper="Tan and Le 2019, arXiv:1905.11946",
        stages=_inverted_residuals(21),
        arguments={"version": 2},
        published="efficientnet-lite2-9656183e.pth",
        published_at=None,
    ),
}


def backbone_spec(name: str) -> BackboneSpec:
    """The entry called ``name``, or a ConfigError that names the nearest."""
    if name not in BACKBONES:
        raise ConfigError(
            f"no backbone '{name}': {nearest(name, BACKBONES)}; a model of timm is timm:NAME, one "
            "of transformers hf:NAME"
        )
    return BACKBONES[name]


def has_imagenet_weights(name: str) -> bool:
    """Whether the backbone ``name`` can start from published weights: ``pretrained: true`` is for these alone."""
    if name.startswith(FEATURES):
        return False
    return name.startswith((TIMM, HF)) or backbone_spec(name).published is not None


def check_pretrained(name: str) -> None:
    """Refuse ``pretrained: true`` with a backbone ``name`` that has no weights: for ``__post_init__`` of a dataclass.

    Raises:
        ValueError: names the setting and the backbones that have weights.
        ConfigError: there is no such backbone.
    """
    if not has_imagenet_weights(name):
        raise ValueError(_no_weights(name))


def published_name(name: str) -> str:
    """What the published file of ImageNet weights of a backbone of ours is called.

    Raises:
        ConfigError: there is no such backbone, or it has no published weights.
    """
    published = backbone_spec(name).published if has_imagenet_weights(name) else None
    if published is None:
        raise ConfigError(_no_weights(name))
    return published


def _no_weights(name: str) -> str:
    known = ", ".join(each for each, spec in BACKBONES.items() if spec.published)
    return (
        f"pretrained: '{name}' has no ImageNet weights; set it to false, or choose a backbone that has them: "
        f"{known}, {TIMM}NAME or {HF}NAME"
    )


def build_backbone(name: str, *, channels: int = 32, depth: int = 4, through: str | None = None) -> Stages:
    """The backbone ``name`` with fresh weights. Nothing is downloaded, but for the configuration of an ``hf:`` model.

    Args:
        name: a key of :data:`BACKBONES`, ``timm:NAME`` (extra ``timm``) or ``hf:NAME`` (extra ``transformers``), or
            ``features:FOLDER``, whose maps can be read and not computed.
        channels: of every stage of "small"; the other backbones have their own.
        depth: stages of "small"; the other backbones have their own.
        through: the last stage to keep; None: all.

    Raises:
        ConfigError: there is no such backbone or stage; the message names the nearest.
        MissingExtraError: timm or transformers is asked for and cannot be used.
    """
    if name.startswith(TIMM):
        from saccade.backbones.timm_adapter import timm_stages

        stages = timm_stages(name.removeprefix(TIMM))
    elif name.startswith(HF):
        from saccade.backbones.transformers_adapter import transformers_stages

        stages = transformers_stages(name.removeprefix(HF))
    elif name.startswith(FEATURES):
        from saccade.backbones.feature_folder import feature_stages

        stages = feature_stages(name.removeprefix(FEATURES))
    elif name == "small":
        stages = BACKBONES[name].build(channels=channels, depth=depth)
    else:
        stages = backbone_spec(name).build()
    if through is None:
        return stages
    try:
        return stages.through(through)
    except ConfigError as error:
        raise ConfigError(f"through: {error}; in a recipe this is model.config.through") from error
