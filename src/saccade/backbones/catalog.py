"""Every backbone by name: one dictionary, readable without importing torch, and the one function that builds them.

To add a backbone, add a line here; ``saccade list backbones``, configurations and tests then find it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from saccade.errors import ConfigError, nearest

if TYPE_CHECKING:
    from saccade.backbones.stages import Stages

TIMM, HF, FEATURES = "timm:", "hf:", "features:"
"""What names of models of timm and of transformers, and of folders of stored feature maps, start with."""


@dataclass(frozen=True)
class BackboneSpec:
    """What is known of a backbone before it is built."""

    kind: str  # chooses the functions that build it and name its published weights, see `_functions`
    summary: str
    paper: str
    stages: tuple[str, ...]  # in order; attention can follow any of them
    arguments: Mapping[str, Any] = field(default_factory=dict)  # of the function that builds it
    published: str | None = None  # file of ImageNet weights, with the first digits of its SHA-256; None: there are none
    published_at: str | None = "https://download.pytorch.org/models"  # None: it comes in a package only

    def build(self, **arguments: object) -> Stages:
        """The whole backbone with fresh weights."""
        return _functions()[self.kind][0](**self.arguments, **arguments)

    def published_key(self, key: str) -> str:
        """How the published weights call the entry ``key`` of its state."""
        return _functions()[self.kind][1](key)


def _functions() -> dict[str, tuple[Callable[..., Stages], Callable[[str], str]]]:
    """By kind: what builds it, and what its published weights call an entry of its state."""
    from saccade.backbones import convnets, mobile, stages

    return {
        "small": (stages.small_stack, str),
        "compact": (convnets.compact, str),
        "resnet": (convnets.resnet, convnets.resnet_key),
        "vgg": (convnets.vgg, convnets.vgg_key),
        "mobilenet": (mobile.mobilenet_v2, mobile.mobilenet_v2_key),
        "efficientnet-lite": (mobile.efficientnet_lite, mobile.efficientnet_lite_key),
    }


_RESNET_STAGES = ("stem", "layer1", "layer2", "layer3", "layer4")


def _compact(summary: str, stages: tuple[str, ...] = _RESNET_STAGES, **arguments: object) -> BackboneSpec:
    return BackboneSpec("compact", summary, "after He et al. 2016, arXiv:1512.03385", stages, arguments)


def _resnet(layers: int, channels: int, published: str) -> BackboneSpec:
    summary = f"residual network of {layers} layers, {channels} channels at 1/32"
    paper = "He et al. 2016, arXiv:1512.03385"
    return BackboneSpec("resnet", summary, paper, _RESNET_STAGES, {"layers": layers}, published)


def _vgg(layers: int, convolutions: int, published: str) -> BackboneSpec:
    summary = f"{convolutions} convolutions in five blocks, 512 channels at 1/32"
    stages = tuple(f"{kind}{block}" for block in range(1, 6) for kind in ("conv", "pool"))
    paper = "Simonyan and Zisserman 2015, arXiv:1409.1556"
    return BackboneSpec("vgg", summary, paper, stages, {"layers": layers}, published)


def _inverted_residuals(blocks: int) -> tuple[str, ...]:
    return (*(f"block{number}" for number in range(blocks + 1)), "head")


def _lite(version: int, blocks: int, digest: str, summary: str, side: str) -> BackboneSpec:
    paper, stages = "Tan and Le 2019, arXiv:1905.11946", _inverted_residuals(blocks)
    summary, published = f"{summary}, 1280 channels at 1/32{side}", f"efficientnet-lite{version}-{digest}.pth"
    return BackboneSpec("efficientnet-lite", summary, paper, stages, {"version": version}, published, None)


BACKBONES: dict[str, BackboneSpec] = {
    "small": BackboneSpec(
        "small",
        "four small valid convolutions with poolings; trained from nothing",
        "Seo et al. 2016, arXiv:1606.02393",
        ("stage1", "stage2", "stage3", "stage4"),
    ),
    "compact": _compact("residual network of nine layers, 128 channels at 1/16; trained from nothing"),
    "compact-near": _compact(
        "compact with a last stage that looks no further: a cell sees 47×47 pixels, not 95×95", last_kernel=1
    ),
    "compact-fine": _compact("compact with a last stage that keeps its grid, 128 channels at 1/8", last_stride=1),
    "compact-deep": _compact(
        "compact-fine with a second block in two stages; starts from its weights, or from nothing",
        ("stem", "layer1", "layer2", "layer2b", "layer3", "layer3b", "layer4"),
        last_stride=1,
        further=(2, 3),
    ),
    "resnet18": _resnet(18, 512, "resnet18-f37072fd.pth"),
    "resnet34": _resnet(34, 512, "resnet34-b627a593.pth"),
    "resnet50": _resnet(50, 2048, "resnet50-0676ba61.pth"),
    "vgg16": _vgg(16, 13, "vgg16-397923af.pth"),
    "vgg19": _vgg(19, 16, "vgg19-dcbb9e9d.pth"),
    "mobilenetv2": BackboneSpec(
        "mobilenet",
        "17 inverted residuals, small and quick, 1280 channels at 1/32",
        "Sandler et al. 2018, arXiv:1801.04381",
        _inverted_residuals(17),
        published="mobilenet_v2-b0353104.pth",
    ),
    "efficientnet-lite0": _lite(0, 16, "57934424", "16 inverted residuals with filters of 3×3 and 5×5", ""),
    "efficientnet-lite1": _lite(1, 21, "77cc7160", "21 inverted residuals", "; for pictures of 240 × 240"),
    "efficientnet-lite2": _lite(2, 21, "9656183e", "21 wider inverted residuals", "; for pictures of 260 × 260"),
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
    """Refuse ``pretrained: true`` with a backbone ``name`` that has no weights, in ``__post_init__`` of a dataclass."""
    if not has_imagenet_weights(name):
        others = ", ".join(other for other, spec in BACKBONES.items() if spec.published)
        raise ValueError(
            f"pretrained: '{name}' has no ImageNet weights; set it to false, or choose a backbone that has them: "
            f"{others}, {TIMM}NAME or {HF}NAME"
        )


def build_backbone(name: str, *, channels: int = 32, depth: int = 4, through: str | None = None) -> Stages:
    """The backbone ``name`` with fresh weights. Only the configuration of an ``hf:`` model is downloaded.

    Args:
        name: a key of :data:`BACKBONES`, ``timm:NAME`` (extra ``timm``), ``hf:NAME`` (extra ``transformers``), or
            ``features:FOLDER``, whose maps can be read and not computed.
        channels: of every stage of "small".
        depth: stages of "small".
        through: the last stage to keep; None: all.
    """
    rest = name.partition(":")[2]
    if name.startswith(TIMM):
        from saccade.backbones.timm_adapter import timm_stages

        stages = timm_stages(rest)
    elif name.startswith(HF):
        from saccade.backbones.transformers_adapter import transformers_stages

        stages = transformers_stages(rest)
    elif name.startswith(FEATURES):
        from saccade.backbones.feature_folder import feature_stages

        stages = feature_stages(rest)
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
