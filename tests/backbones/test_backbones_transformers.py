"""Models of transformers as backbones: against a stand-in with its interface, and (``extras``) against the library."""

import importlib.util
import sys
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from layer_probe import check_bright_patch
from saccade.backbones import build_backbone, hub
from saccade.backbones.pretrained import imagenet_weights, load_imagenet
from saccade.backbones.stages import Chain, Stages
from saccade.backbones.transformers_adapter import TokenGrid
from saccade.errors import ConfigError, DataError


def with_transformers(test: Callable[..., None]) -> Callable[..., None]:
    """For a test that needs transformers itself, which ``make test-extras`` installs."""
    missing = importlib.util.find_spec("transformers") is None
    return pytest.mark.extras(pytest.mark.skipif(missing, reason="needs transformers: make test-extras")(test))


class Tokens(nn.Module):
    """Patches of 8 pixels as tokens, behind a class token of 5s."""

    def __init__(self) -> None:
        super().__init__()
        self.cls_token = nn.Parameter(torch.full((1, 1, 4), 5.0))
        self.patches = nn.Conv2d(3, 4, 8, 8, padding="valid")

    def forward(self, pixel_values: Tensor, interpolate_pos_encoding: bool = False) -> Any:
        assert interpolate_pos_encoding
        cells = self.patches(pixel_values).flatten(2).transpose(1, 2)  # (B,h·w,4)
        return SimpleNamespace(last_hidden_state=torch.cat([self.cls_token.expand(len(cells), -1, -1), cells], 1))


class Words(nn.Module):
    def forward(self, input_ids: Tensor) -> Any:
        raise AssertionError("never called")


CONFIGS = {"seer": SimpleNamespace(patch_size=8, hidden_size=4), "reader": SimpleNamespace(hidden_size=4)}


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A module named transformers; what was asked of it is noted."""
    asked: list[str] = []

    def config(name: str, *, trust_remote_code: bool) -> Any:
        assert not trust_remote_code
        if str(name) not in CONFIGS:
            raise OSError(f"{name} is not a model of the hub")
        return CONFIGS[str(name)]

    def pretrained(name: str, *, use_safetensors: bool, trust_remote_code: bool) -> nn.Module:
        assert use_safetensors
        asked.append(name)
        network = Tokens()
        nn.init.constant_(network.patches.weight, 0.5)
        return network

    module, base, logging = (
        ModuleType(f"transformers{part}") for part in ("", ".image_processing_base", ".utils.logging")
    )
    build = {
        "from_config": lambda said: Tokens() if said is CONFIGS["seer"] else Words(),
        "from_pretrained": pretrained,
    }
    module.AutoConfig, module.AutoModel = SimpleNamespace(from_pretrained=config), SimpleNamespace(**build)
    wishes = {"image_mean": [0.5, 0.5, 0.5], "image_std": [0.25, 0.25, 0.25]}
    base.ImageProcessingMixin = SimpleNamespace(get_image_processor_dict=lambda name: (wishes, {}))
    logging.disable_progress_bar = lambda: None
    for each in (module, base, logging):
        monkeypatch.setitem(sys.modules, each.__name__, each)
    monkeypatch.setattr(hub, "why_no_hub", lambda: None)
    return asked


def test_tokens_become_a_map_and_the_class_token_is_kept(library: list[str]) -> None:
    backbone = build_backbone("hf:seer").eval()
    assert (backbone.names, backbone.channels, backbone.has_class_token) == (("features",), {"features": 4}, True)
    assert backbone.grid((32, 48)) == {"features": (4, 6)}
    assert backbone.frames["features"].tolist() == [[8, 0, 0], [0, 8, 0]]
    images = torch.rand(2, 3, 32, 48)
    found, packed = backbone(images), backbone.with_class_token(images)
    network = backbone.stages["features"][1].network
    assert torch.allclose(found, network.patches((images - 0.5) / 0.25))  # as the model wants its colours
    assert torch.equal(packed[:, :, :-1], found)
    assert packed[:, :, -1].tolist() == [[[5, 0, 0, 0, 0, 0]] * 4] * 2
    assert library == []  # nothing but the configuration was fetched


def test_weights_come_from_the_library(library: list[str]) -> None:
    backbone = build_backbone("hf:seer")
    load_imagenet(backbone, "hf:seer")
    assert bool((backbone.stages["features"][1].network.patches.weight == 0.5).all())
    assert library == ["seer"]


def test_what_cannot_be_used_is_said(library: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="hf: needs the name of a model"):
        build_backbone("hf:")
    with pytest.raises(ConfigError, match=r"hf:reader .Words. takes no pictures"):
        build_backbone("hf:reader")
    with pytest.raises(ConfigError, match=r"hf:nobody cannot be used .nobody is not a model"):
        build_backbone("hf:nobody")
    monkeypatch.setattr(hub, "why_no_hub", lambda: "fetching is off (by `offline` or HF_HUB_OFFLINE)")
    with pytest.raises(DataError, match="the settings of hf:nobody are not on this machine, and fetching is off"):
        build_backbone("hf:nobody")


class Fixed(nn.Module):
    """Patches with positions of their own, for pictures of one size."""

    def __init__(self) -> None:
        super().__init__()
        self.config = SimpleNamespace(image_size=32)
        self.patches, self.positions = nn.Conv2d(3, 4, 8, 8), nn.Parameter(torch.zeros(1, 16, 4))

    def forward(self, pixel_values: Tensor) -> Any:
        cells = self.patches(pixel_values).flatten(2).transpose(1, 2)  # (B,h·w,4)
        return SimpleNamespace(last_hidden_state=cells + self.positions)


def test_a_model_for_one_size_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(nn.Parameter, "__deepcopy__")  # weights may be large: none is copied to find the grid
    monkeypatch.setattr(torch.Tensor, "__deepcopy__", None)
    stages = Stages(OrderedDict(features=Chain([TokenGrid(Fixed(), 8, False)], 8)), {"features": 4})
    assert stages.grid((32, 32)) == {"features": (4, 4)}
    with pytest.raises(ConfigError, match="32×32; set size"):
        stages.grid((64, 64))
    with pytest.raises(DataError, match="too small"):
        stages.grid((6, 6))


TINY = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
TINY |= {"image_size": 32, "patch_size": 8}
FLEXIBLE = {key: value for key, value in TINY.items() if key != "image_size"} | {"num_patches": 16}
TEXT = {**TINY, "vocab_size": 20, "max_position_embeddings": 16, "bos_token_id": 1, "eos_token_id": 2}
STAGED = {"hidden_sizes": [8, 8, 16, 16], "depths": [1, 1, 1, 1]}
REAL = [
    ("ViT", TINY, 8, 0.0, True),
    ("Dinov2WithRegisters", TINY, 8, 0.0, True),
    ("DeiT", TINY, 8, 0.0, True),
    ("DINOv3ViT", {**TINY, "num_register_tokens": 4}, 8, 0.0, True),
    ("Siglip2Vision", FLEXIBLE, 8, 0.0, False),  # NaFlex; SigLIP 2 of one size is a SigLIP
    ("Siglip", {"vision_config": TINY, "text_config": TEXT}, 8, 0.0, False),
    ("CLIP", {"vision_config": TINY, "text_config": TEXT}, 8, 0.0, True),
    ("ViTMAE", TINY, 8, 0.0, True),
    ("Swin", {"embed_dim": 8, "depths": [1, 1], "num_heads": [2, 2], "window_size": 4}, 8, 0.0, False),
    ("ResNet", {**STAGED, "embedding_size": 8}, 32, -15.5, False),
]


@with_transformers
@pytest.mark.parametrize(("kind", "settings", "cell", "shift", "has_token"), REAL, ids=[row[0] for row in REAL])
def test_models_of_transformers(
    kind: str, settings: dict[str, Any], cell: int, shift: float, has_token: bool, tmp_path: Path
) -> None:
    import transformers

    torch.manual_seed(0)
    config = getattr(transformers, f"{kind}Config")(**settings)
    getattr(transformers, f"{kind}Model")(config).save_pretrained(tmp_path)
    name = f"hf:{tmp_path}"
    backbone = build_backbone(name).eval()
    load_imagenet(backbone, name)
    images = torch.rand(2, 3, 64, 96)
    with torch.no_grad():
        found = backbone(images)
        assert torch.equal(found, backbone(images))  # a masked autoencoder hides and shuffles nothing
    assert found.shape == (2, backbone.channels["features"], 64 // cell, 96 // cell)
    assert backbone.grid((64, 96)) == {"features": (64 // cell, 96 // cell)}
    assert backbone.frames["features"].tolist() == [[cell, 0, shift], [0, cell, shift]]
    assert backbone.has_class_token == has_token
    assert imagenet_weights(name).keys() == backbone.state_dict().keys()
    if cell == 8 and kind != "Swin":  # the windows of a Swin reach into neighbours
        check_bright_patch(backbone)
