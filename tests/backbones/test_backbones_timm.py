"""The timm adapter: against a stand-in with timm's interface, and (marked ``extras``) against timm itself."""

import importlib.util
import socket
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable
from types import ModuleType, SimpleNamespace

import pytest
import torch
from torch import Tensor, nn

from layer_probe import check_bright_patch
from saccade.backbones import build_backbone, hub
from saccade.backbones.pretrained import imagenet_weights, load_imagenet
from saccade.errors import ConfigError, MissingExtraError


def with_timm(test: Callable[..., None]) -> Callable[..., None]:
    """For a test that needs timm itself, which ``make test-extras`` installs."""
    missing = importlib.util.find_spec("timm") is None
    return pytest.mark.extras(pytest.mark.skipif(missing, reason="needs timm: make test-extras")(test))


class Features(nn.ModuleDict):
    """What timm returns for a network that it can take apart: layers in a row, some of which are tapped."""

    def __init__(self, layers: dict[str, nn.Module], taps: dict[str, tuple[int, int]]) -> None:
        super().__init__(OrderedDict(layers))
        self.return_layers = {name: str(index) for index, name in enumerate(taps)}
        self.feature_info = SimpleNamespace(
            channels=lambda: [channels for channels, _ in taps.values()],
            reduction=lambda: [reduction for _, reduction in taps.values()],
        )
        self.pretrained_cfg = {"mean": (0.5, 0.5, 0.5), "std": (0.25, 0.25, 0.25)}
        self.output_fmt = "NCHW"

    def forward(self, images: Tensor) -> list[Tensor]:
        maps = []
        for name, layer in self.items():
            images = layer(images)
            if name in self.return_layers:
                maps.append(images)
        return maps


def residual_like() -> Features:
    layers = {
        "conv1": nn.Conv2d(3, 4, 7, 2, 3, bias=False),
        "bn1": nn.BatchNorm2d(4),
        "act1": nn.ReLU(),
        "maxpool": nn.MaxPool2d(3, 2, 1),
        "layer1": nn.Sequential(nn.Conv2d(4, 4, 3, 1, 1), nn.ReLU()),
        "layer2": nn.Sequential(nn.Conv2d(4, 8, 3, 2, 1), nn.ReLU()),
    }
    return Features(layers, {"act1": (4, 2), "layer1": (4, 4), "layer2": (8, 8)})


def patch_like() -> Features:
    layers = {
        "stem_0": nn.Conv2d(3, 4, 4, 4),
        "stages_0": nn.Conv2d(4, 4, 7, padding=3),
        "stages_1": nn.Sequential(nn.Conv2d(4, 8, 2, 2), nn.GELU()),
    }
    return Features(layers, {"stages_0": (4, 4), "stages_1": (8, 8)})


def inseparable() -> nn.Module:
    network = patch_like()
    del network.return_layers
    network.return_layers = None
    network.forward = lambda images: [images, network["stages_1"](network["stages_0"](network["stem_0"](images)))]
    return network


class Transformer(nn.Module):
    """What timm returns for a transformer: a wrapper whose model gives tokens before the grid beside the map."""

    def __init__(self) -> None:
        super().__init__()
        self.model = nn.Module()
        self.model.patches = nn.Conv2d(3, 4, 8, 8)
        self.model.cls_token = nn.Parameter(torch.ones(4))
        self.model.forward_intermediates = self.intermediates
        self.out_indices, self.norm = [1, 3], True
        self.feature_info = SimpleNamespace(channels=lambda: [4, 4], reduction=lambda: [8, 8])

    def intermediates(self, images: Tensor, *, indices: list[int], norm: bool, **options: object) -> list[object]:
        assert (indices, norm) == ([3], True)
        assert options == {"output_fmt": "NCHW", "return_prefix_tokens": True, "intermediates_only": True}
        found = self.model.patches(images)
        return [(found, torch.stack([found.mean((2, 3)), found.amax((2, 3))], 1))]

    def forward(self, images: Tensor) -> list[Tensor]:
        return [images, self.model.patches(images)]


class AnySize(nn.Module):
    """What timm returns for a vision transformer: a class token of 5s and a register before the patches."""

    def __init__(self) -> None:
        super().__init__()
        self.patches, self.head = nn.Conv2d(3, 4, 8, 8), nn.Linear(4, 2)
        self.cls_token = nn.Parameter(torch.full((4,), 5.0))
        self.num_features, self.feature_info = 4, [{"reduction": 8}]
        self.pretrained_cfg = {"mean": (0.5, 0.5, 0.5), "std": (0.25, 0.25, 0.25)}

    def prune_intermediate_layers(self, last: int) -> None:
        assert last == 1
        self.head = nn.Identity()

    def forward_intermediates(
        self, images: Tensor, *, indices: int, norm: bool, intermediates_only: bool, return_prefix_tokens: bool = False
    ) -> list[object]:
        assert (indices, norm, intermediates_only) == (1, True, True)
        assert not images.shape[-2] % 8
        assert not images.shape[-1] % 8
        features = self.patches(images)
        before = torch.stack([self.cls_token, 2 * self.cls_token]).expand(len(images), 2, 4)
        return [(features, before)] if return_prefix_tokens else [features]


def channels_last() -> Features:
    network = patch_like()
    network.output_fmt = SimpleNamespace(value="NHWC")
    return network


def without_maps() -> Features:
    raise RuntimeError("features_only is not supported")


MODELS = {
    "residual": residual_like,
    "patches": patch_like,
    "whole": inseparable,
    "tokens": Transformer,
    "any": AnySize,
    "last": channels_last,
    "mapless": without_maps,
}


@pytest.fixture
def timm(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bool]]:
    """A module named timm; what was asked of it is noted."""
    asked: list[tuple[str, bool]] = []

    def create_model(
        name: str, *, pretrained: bool, features_only: bool = False, dynamic_img_size: bool = False
    ) -> nn.Module:
        assert features_only is not dynamic_img_size is (name == "any")
        asked.append((name, pretrained))
        network = MODELS[name]()
        if pretrained:
            for parameter in network.parameters():
                nn.init.constant_(parameter, 0.5)
        return network

    module = ModuleType("timm")
    module.__version__ = "0"
    module.create_model = create_model
    homes = {
        name: SimpleNamespace(__module__="timm.models.eva" if name == "any" else "timm.models.x") for name in MODELS
    }
    module.model_entrypoint = homes.__getitem__
    module.is_model = MODELS.__contains__
    module.list_models = lambda pattern: [name for name in MODELS if name.startswith(pattern.rstrip("*"))]
    monkeypatch.setitem(sys.modules, "timm", module)
    monkeypatch.setattr(hub, "why_no_hub", lambda: None)
    return asked


def test_a_chain_becomes_stages(timm) -> None:
    backbone = build_backbone("timm:residual").eval()
    assert backbone.names == ("act1", "layer1", "layer2")
    assert backbone.channels == {"act1": 4, "layer1": 4, "layer2": 8}
    assert backbone.grid((64, 65)) == {"act1": (32, 33), "layer1": (16, 17), "layer2": (8, 9)}
    images = torch.rand(1, 3, 64, 64)
    in_parts = backbone.between(backbone.between(images, to="act1"), after="act1")
    assert torch.equal(in_parts, backbone(images))
    assert timm == [("residual", False)]  # nothing is downloaded by building


def test_the_class_token_is_the_first_before_the_grid(timm) -> None:
    backbone = build_backbone("timm:tokens").eval()
    images = torch.rand(2, 3, 16, 24)
    packed, found = backbone.with_class_token(images), backbone(images)
    assert (packed.shape, backbone.has_class_token) == ((2, 4, 3, 3), True)
    assert torch.equal(packed[:, :, :2], found)
    assert torch.allclose(packed[:, :, 2, 0], found.mean((2, 3)))
    assert not bool(packed[:, :, 2, 1:].any())
    assert not build_backbone("timm:whole").has_class_token


def test_patches_of_pictures_of_any_size(timm) -> None:
    """Without class token and register; the last two rows and five columns fill no patch."""
    backbone = build_backbone("timm:any").eval()
    assert (backbone.names, backbone.channels, backbone.has_class_token) == (("features",), {"features": 4}, True)
    images = torch.rand(2, 3, 18, 29)
    assert backbone.grid((18, 29)) == {"features": (2, 3)}
    patches = backbone.stages["features"][1].network.patches((images[..., :16, :24] - 0.5) / 0.25)
    assert torch.equal(backbone(images), patches)
    packed = backbone.with_class_token(images)
    assert torch.equal(packed[:, :, :2], patches)
    assert packed[:, :, 2].tolist() == [[[5, 0, 0]] * 4] * 2
    load_imagenet(backbone, "timm:any")
    assert all(bool((parameter == 0.5).all()) for parameter in backbone.parameters())
    assert "stages.features.1.network.head.weight" not in imagenet_weights("timm:any")


def test_weights_come_from_timm(timm) -> None:
    short = build_backbone("timm:residual", through="layer1")
    load_imagenet(short, "timm:residual")
    assert all(bool((parameter == 0.5).all()) for parameter in short.parameters())
    assert short.state_dict().keys() < imagenet_weights("timm:residual").keys()
    assert ("residual", True) in timm


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("timm:residul", "no model 'residul': did you mean 'residual'"),
        ("timm:mapless", "cannot give the feature maps of 'mapless'.*not supported"),
        ("timm:last", "channels last"),
    ],
)
def test_models_that_cannot_be_used(timm, name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build_backbone(name)


def test_without_timm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(MissingExtraError, match=r"timm.*pip install 'saccade-attention\[timm\]'") as raised:
        build_backbone("timm:resnet18")
    assert raised.value.extra == "timm"


@with_timm
@pytest.mark.parametrize(
    ("name", "stages", "cell"),
    [
        ("resnet18", ("act1", "layer1", "layer2", "layer3", "layer4"), 32),
        ("convnext_atto", ("stages_0", "stages_1", "stages_2", "stages_3"), 32),
        ("vit_tiny_patch16_224", ("features",), 16),
    ],
)
def test_models_of_timm_become_stages(name: str, stages: tuple[str, ...], cell: int) -> None:
    backbone = build_backbone(f"timm:{name}").eval()
    assert backbone.names == stages
    features = backbone(torch.rand(1, 3, 224, 224))
    assert features.shape == (1, backbone.channels[stages[-1]], *backbone.grid((224, 224))[stages[-1]])
    assert features.shape[-1] == 224 // cell
    assert features.isfinite().all()


TINY = {"embed_dim": 24, "depth": 3, "num_heads": 2, "img_size": 32, "patch_size": 8}
WITH_TOKENS = [
    ("vit_small_patch16_224", 1),
    ("vit_small_patch14_reg4_dinov2", 5),
    ("vit_small_patch16_dinov3", 5),
    ("vit_medium_patch16_reg4_gap_256", 4),  # registers and no class token
    ("vit_base_patch16_clip_224", 1),
    ("vit_base_patch16_siglip_224", 0),  # SigLIP 2 has the same network
    ("eva02_tiny_patch14_224", 1),
    ("naflexvit_base_patch16_siglip", 0),
]


@pytest.fixture
def tiny_timm(monkeypatch: pytest.MonkeyPatch) -> None:
    """timm itself, whose models are made tiny and have random weights."""
    import timm

    create = timm.create_model

    def tiny(name: str, *, pretrained: bool = False, **options: object) -> nn.Module:
        naflex = {key: value for key, value in TINY.items() if key != "img_size"}
        return create(name, pretrained=False, **(naflex if "naflex" in name else TINY), **options)

    monkeypatch.setattr(timm, "create_model", tiny)


@with_timm
@pytest.mark.parametrize(("name", "prefix"), WITH_TOKENS, ids=[name for name, _ in WITH_TOKENS])
def test_tokens_of_timm_lie_where_their_patches_are(tiny_timm: None, name: str, prefix: int) -> None:
    import timm

    torch.manual_seed(0)
    backbone = build_backbone(f"timm:{name}").eval()
    normalise, patches = backbone.stages["features"]
    images = torch.rand(2, 3, 32, 32)
    with torch.no_grad():
        tokens = patches.network.forward_features(normalise(images))
        assert patches.network.num_prefix_tokens == prefix
        assert torch.equal(backbone(images), tokens[:, prefix:].transpose(1, 2).unflatten(2, (4, 4)))
        assert backbone.has_class_token == (prefix not in (0, 4))
        if backbone.has_class_token:
            assert torch.equal(backbone.with_class_token(images)[:, :, 4, 0], tokens[:, 0])
    scaling = timm.get_pretrained_cfg(name)
    assert normalise.mean.flatten().tolist() == pytest.approx(scaling.mean)
    assert normalise.std.flatten().tolist() == pytest.approx(scaling.std)
    check_bright_patch(backbone)


class Connection:
    def close(self) -> None: ...


@pytest.fixture(autouse=True)
def online(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HTTPS_PROXY", "https_proxy", "HF_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)


def test_a_hub_that_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{port}")
    assert (hub.why_no_hub() or "").startswith("127.0.0.1 cannot be reached (")


def test_a_name_server_that_is_silent_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()
    monkeypatch.setattr(hub, "_PATIENCE", 0.01)
    monkeypatch.setattr(socket, "create_connection", lambda *args, **kwargs: release.wait(60) and Connection())
    assert hub.why_no_hub() == "huggingface.co cannot be reached (no answer)"
    release.set()
