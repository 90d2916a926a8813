"""The catalog of backbones, their ImageNet weights, and ``features:FOLDER``: found, named right, refused when wrong."""

import hashlib
import importlib.resources
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from PIL import Image
from safetensors.numpy import save_file as save_arrays
from safetensors.torch import save_file
from torch import Tensor

from saccade import geometry
from saccade.backbones import build_backbone
from saccade.backbones.catalog import BACKBONES, has_imagenet_weights
from saccade.backbones.feature_folder import FeatureFolder
from saccade.backbones.pretrained import (
    from_normalised_vgg19,
    imagenet_weights,
    load_imagenet,
    read_torch_file,
    weights_digest,
)
from saccade.backbones.stages import IMAGENET_MEAN
from saccade.errors import ConfigError, DataError
from saccade.files import WEIGHTS, RemoteFile, cache_home
from saccade.models.base import BackboneConfig


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and no package that carries weights."""
    monkeypatch.setenv("SACCADE_HOME", str(tmp_path))
    (tmp_path / "weights").mkdir()
    return tmp_path


def narrowed(monkeypatch: pytest.MonkeyPatch, name: str, **changes: object) -> None:
    """Replace the backbone ``name`` by a narrow one, which is quick to write and read."""
    narrow = {"width": 0.1 if name.startswith(("mobilenet", "efficientnet")) else 2}
    spec = BACKBONES[name]
    monkeypatch.setitem(BACKBONES, name, replace(spec, arguments={**spec.arguments, **narrow}, **changes))


def published_state(name: str) -> dict[str, Tensor]:
    """Random weights of the backbone under the names of the published files, with a classifier behind them."""
    spec = BACKBONES[name]
    torch.manual_seed(3)
    state = {spec.published_key(key): tensor for key, tensor in build_backbone(name).state_dict().items()}
    classifier = {"resnet": "fc", "effici": "_fc"}.get(name[:6], "classifier.1")
    return {**state, f"{classifier}.weight": torch.zeros(4, 4), f"{classifier}.bias": torch.zeros(4)}


def put(home: Path, name: str, tensors: dict[str, Tensor]) -> None:
    save_file({key: tensor.contiguous() for key, tensor in tensors.items()}, home / "weights" / f"{name}.safetensors")


@pytest.mark.parametrize(
    "name",
    ["resnet18", "resnet50", "vgg16", "mobilenetv2", "efficientnet-lite0", "efficientnet-lite1", "efficientnet-lite2"],
)
def test_weights_under_published_names(home: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    narrowed(monkeypatch, name)
    put(home, name, published_state(name))
    backbone = build_backbone(name)
    result = imagenet_weights(name)
    assert result.keys() == backbone.state_dict().keys()
    load_imagenet(backbone, name)
    torch.manual_seed(3)
    expected = build_backbone(name).state_dict()
    assert all(torch.equal(tensor, expected[key]) for key, tensor in backbone.state_dict().items())


def test_weights_under_our_names_have_the_same_digest(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The digest names the weights, not the file; a changed number changes it, a counter of batches does not."""
    narrowed(monkeypatch, "resnet18")
    put(home, "resnet18", published_state("resnet18"))
    digest, weights = weights_digest("resnet18"), imagenet_weights("resnet18")
    put(home, "resnet18", weights)
    assert weights_digest("resnet18") == digest
    weights["stages.stem.bn1.num_batches_tracked"] += 1
    put(home, "resnet18", weights)
    assert weights_digest("resnet18") == digest
    weights["stages.stem.bn1.bias"][0] += 1
    put(home, "resnet18", weights)
    assert weights_digest("resnet18") != digest


def test_the_published_file_itself(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that torch saved, under the name that bears the first digits of its digest."""
    narrowed(monkeypatch, "resnet18")
    state = published_state("resnet18")
    torch.save(state, home / "file")
    content = (home / "file").read_bytes()
    digits = hashlib.sha256(content).hexdigest()[:8]
    narrowed(monkeypatch, "resnet18", published=f"resnet18-{digits}.pth")
    (home / "weights" / f"resnet18-{digits}.pth").write_bytes(content)
    assert torch.equal(imagenet_weights("resnet18")["stages.stem.conv1.weight"], state["conv1.weight"])


def test_what_was_fetched(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    narrowed(monkeypatch, "mobilenetv2")
    state = published_state("mobilenetv2")
    folder = home / "mobilenetv2-imagenet"
    folder.mkdir()
    torch.save(state, folder / "weights.pth")
    content = (folder / "weights.pth").read_bytes()
    file = RemoteFile("weights.pth", len(content), hashlib.sha256(content).hexdigest())
    monkeypatch.setitem(WEIGHTS, "mobilenetv2-imagenet", file)
    assert torch.equal(imagenet_weights("mobilenetv2")["stages.head.0.weight"], state["features.18.0.weight"])


def test_normalised_vgg19_computes_what_its_publisher_computes(monkeypatch: pytest.MonkeyPatch, assert_near) -> None:
    """A 1×1 convolution makes BGR bytes of the picture; folded away, the features are the same, up to the border.

    Its bias is taken from our own mean here, so that zeros padded before and after it are the same pixel.
    """
    narrowed(monkeypatch, "vgg19")
    colours = torch.tensor([[0.0, 0.0, 255.0], [0.0, 255.0, 0.0], [255.0, 0.0, 0.0]])
    raw = {"0.weight": colours.view(3, 3, 1, 1), "0.bias": -colours @ torch.tensor(IMAGENET_MEAN)}
    widths = [3, 2, 2, 4, 4, 8, 8, 8, 8, *[16] * 8]
    published = [2, 5, 9, 12, 16, 19, 22, 25, 29, 32, 35, 38, 42, 45, 48, 51]
    for layer, incoming, outgoing in zip(published, widths, widths[1:]):
        raw[f"{layer}.weight"] = torch.randn(outgoing, incoming, 3, 3) / (3 * incoming**0.5)
        raw[f"{layer}.bias"] = torch.randn(outgoing) / 10
    folded = from_normalised_vgg19(raw, BACKBONES["vgg19"], "here")
    backbone = build_backbone("vgg19").eval()
    backbone.load_state_dict(folded)

    images = torch.rand(1, 3, 32, 48)
    features = F.conv2d(images, raw["0.weight"], raw["0.bias"])
    for layer in published:
        if layer in (9, 16, 29, 42):  # where a block begins
            features = F.max_pool2d(features, 2)
        features = F.conv2d(features, raw[f"{layer}.weight"], raw[f"{layer}.bias"], padding=1).relu()
    assert_near(backbone.between(images, to="conv5"), features, rtol=1e-3, atol=1e-3)
    assert features.std() > 0.01


def test_weights_of_another_backbone(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("resnet18", "resnet34", "vgg16"):
        narrowed(monkeypatch, name)
    put(home, "resnet18", published_state("resnet34"))
    with pytest.raises(DataError, match=r"'layer1\.2\.bn1\.bias' is no layer of this backbone"):
        imagenet_weights("resnet18")
    put(home, "resnet34", published_state("resnet18"))
    with pytest.raises(DataError, match=r"'stages\.layer1\.2.*none"):
        imagenet_weights("resnet34")
    wide = published_state("vgg16")
    wide["features.0.bias"] = torch.zeros(64)
    put(home, "vgg16", wide)
    with pytest.raises(DataError, match=r"'stages\.conv1\.0\.bias' should be \(2,\), found \(64,\)"):
        imagenet_weights("vgg16")


def test_a_damaged_file(home: Path) -> None:
    (home / "weights" / "vgg16.safetensors").write_bytes(b"no safetensors")
    with pytest.raises(DataError, match=r"vgg16\.safetensors: cannot be read as safetensors"):
        imagenet_weights("vgg16")


class _Bomb:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (Path.touch, (self.path,))


def test_a_file_with_code_in_it_is_refused_and_not_run(tmp_path: Path) -> None:
    """A wrong digest keeps it closed; with the right one torch still makes nothing but tensors of it."""
    file, trace = tmp_path / "weights.pth", tmp_path / "it-ran"
    torch.save({"weight": _Bomb(trace)}, file)
    with pytest.raises(DataError, match="is not opened"):
        read_torch_file(file, "0" * 64)
    with pytest.raises(DataError, match="Unpickling"):
        read_torch_file(file, hashlib.sha256(file.read_bytes()).hexdigest())
    assert not trace.exists()


def _real(name: str) -> bool:
    try:
        imagenet_weights(name)
    except DataError:
        return False
    return True


@pytest.mark.skipif(not _real("mobilenetv2"), reason="needs: saccade data get mobilenetv2-imagenet")
def test_mobilenet_knows_a_cat() -> None:
    """With its own classifier on top, the shipped photograph of a cat is an Egyptian cat, class 285 of ImageNet."""
    backbone = build_backbone("mobilenetv2").eval()
    load_imagenet(backbone, "mobilenetv2")
    file = WEIGHTS["mobilenetv2-imagenet"]
    path = cache_home() / "mobilenetv2-imagenet" / file.name
    raw = read_torch_file(path, file.sha256)
    photograph = importlib.resources.files("saccade.data.scenes") / "packs" / "backgrounds" / "test" / "cat.jpg"
    with importlib.resources.as_file(photograph) as jpeg, Image.open(jpeg) as picture:
        side = 224 / min(picture.size)
        picture = picture.convert("RGB").resize((round(picture.width * side), round(picture.height * side)))
        left, top = (picture.width - 224) // 2, (picture.height - 224) // 2
        pixels = np.asarray(picture.crop((left, top, left + 224, top + 224)))
    image = torch.tensor(pixels).permute(2, 0, 1).unsqueeze(0) / 255  # (1,3,224,224)
    with torch.no_grad():
        pooled = backbone(image).mean((2, 3))  # (1,1280)
    logits = F.linear(pooled, raw["classifier.1.weight"], raw["classifier.1.bias"])  # (1,1000)
    assert logits.argmax().item() == 285
    assert logits.softmax(-1).max() > 0.5


# Kernels of 3×3 and 1×1, and two numbers a channel for each norm.
COMPACT = (
    9 * (3 * 24 + 2 * 24 * 24 + (24 + 48) * 48 + (48 + 96) * 96 + (96 + 128) * 128)
    + (24 * 48 + 48 * 96 + 96 * 128)
    + 2 * (3 * 24 + 3 * 48 + 3 * 96 + 3 * 128)
)
# What the papers and the published files have, counted without classifiers.
PARAMETERS = {
    "small": (3 * 9 + 1) * 32 + 3 * (32 * 9 + 1) * 32,
    "compact": COMPACT,
    "compact-fine": COMPACT,
    "compact-near": COMPACT - 8 * (96 + 128) * 128,
    "compact-deep": COMPACT + 2 * 9 * (48 * 48 + 96 * 96) + 2 * 2 * (48 + 96),
    "resnet18": 11_689_512 - 513_000,
    "resnet34": 21_797_672 - 513_000,
    "resnet50": 25_557_032 - 2_049_000,
    "vgg16": 14_714_688,
    "vgg19": 20_024_384,
    "mobilenetv2": 3_504_872 - 1_281_000,
    "efficientnet-lite0": 4_652_008 - 1_281_000,
    "efficientnet-lite1": 5_416_680 - 1_281_000,
    "efficientnet-lite2": 6_092_072 - 1_281_000,
}
# The maps that recipes attend to, for a picture of 224 × 224: (channels, side).
every_name = pytest.mark.parametrize("name", BACKBONES)


@every_name
def test_the_catalog_says_what_is_built(name: str) -> None:
    backbone = build_backbone(name)
    assert backbone.names == BACKBONES[name].stages
    assert sum(parameter.numel() for parameter in backbone.parameters()) == PARAMETERS[name]
    assert set(backbone.channels) == set(backbone.frames) == set(backbone.names)


@pytest.mark.parametrize(
    ("name", "ours", "theirs"),
    [
        ("resnet18", "stages.layer2.0.downsample.1.running_mean", "layer2.0.downsample.1.running_mean"),
        ("vgg19", "stages.conv5.34.bias", "features.34.bias"),
        ("mobilenetv2", "stages.block1.conv.1.weight", "features.1.conv.1.weight"),
        ("efficientnet-lite0", "stages.block1.conv.0.0.weight", "_blocks.0._depthwise_conv.weight"),
        ("efficientnet-lite0", "stages.block2.conv.0.1.running_mean", "_blocks.1._bn0.running_mean"),
        ("efficientnet-lite2", "stages.block21.conv.1.0.weight", "_blocks.20._depthwise_conv.weight"),
    ],
)
def test_published_names(name: str, ours: str, theirs: str) -> None:
    assert ours in build_backbone(name).state_dict()
    assert BACKBONES[name].published_key(ours) == theirs


@pytest.mark.parametrize("name", [*BACKBONES, "timm:resnet18", "hf:google/vit", "features:maps"])
def test_one_function_decides_who_has_published_weights(name: str) -> None:
    """Settings that ask for others are refused, and they cannot be loaded either."""
    has = not name.startswith(("small", "compact", "features:"))
    assert has_imagenet_weights(name) is has
    if has:
        BackboneConfig(name, pretrained=True)
        return
    with pytest.raises(ValueError, match=f"^pretrained: '{name}' has no ImageNet weights; .* mobilenetv2, .*hf:NAME"):
        BackboneConfig(name, pretrained=True)
    with pytest.raises(ConfigError, match="no ImageNet weights"):
        imagenet_weights(name)


MAP = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
TOKEN = np.array([7, 8], dtype=np.float32)


def folder_with(path: Path, note: dict[str, Any] | None = None, **maps: Any) -> FeatureFolder:
    path.mkdir(exist_ok=True)
    for name, array in (maps or {"a": MAP}).items():
        np.save(path / f"{name}.npy", array)
    if note is not None:
        (path / "features.json").write_text(json.dumps(note))
    return FeatureFolder(path)


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".safetensors"])
def test_every_kind_of_file_is_read(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"cat{suffix}"
    if suffix == ".npy":
        np.save(file, MAP.astype(np.float64))
    elif suffix == ".npz":
        np.savez(file, features=MAP)  # one array needs no special name
    else:
        save_arrays({"map": MAP, "token": TOKEN}, file)
    folder = FeatureFolder(tmp_path)
    result = folder.take([Path("photos/cat.jpg")])
    assert torch.equal(result[0, :, :3], torch.from_numpy(MAP))
    assert folder.has_class_token == (suffix == ".safetensors")
    if folder.has_class_token:  # one row more, its first cell the token
        assert result.shape == (1, 2, 4, 4)
        assert result[0, :, 3].tolist() == [[7, 0, 0, 0], [8, 0, 0, 0]]


def test_channels_may_be_last(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, {"layout": "hwc"}, a=MAP.transpose(1, 2, 0))
    assert torch.equal(folder.take([Path("a.jpg")])[0], torch.from_numpy(MAP))


def test_a_map_in_a_folder_of_the_same_name_comes_first(tmp_path: Path) -> None:
    for kind, value in (("cat", 1), ("dog", 2)):
        folder_with(tmp_path / kind, a=MAP * 0 + value)
    folder = FeatureFolder(tmp_path)
    pictures = [Path("photos/cat/a.jpg"), Path("photos/dog/a.jpg")]
    assert folder.take(pictures)[:, 0, 0, 0].tolist() == [1, 2]
    assert folder.file_of(Path("photos/cow/a.jpg")) is None
    with pytest.raises(DataError, match=r"a.npy: the map of both .*1/b/a.jpg and .*2/b/a.jpg"):
        folder_with(tmp_path / "flat").check_apart([Path("1/b/a.jpg"), Path("2/b/a.jpg")])


@pytest.mark.parametrize(
    ("note", "corner", "middle"),
    [
        ({}, (0, 0), (200, 150)),  # 3 × 4 cells on a picture of 300 × 400: all of it
        ({"fit": "inside", "input_size": [60, 40]}, (0, -150), (200, 150)),  # 10 pixels of the picture in one
        ({"fit": "centre", "input_size": [60, 80], "crop": 0.5}, (100, 75), (200, 150)),
        ({"frame": [[56, 0, 28], [0, 56, 0]]}, (50, 0), (250, 112.5)),  # as said, not as the cells would tile it
    ],
)
def test_cells_lie_where_the_note_says(tmp_path: Path, note: dict[str, Any], corner: Any, middle: Any) -> None:
    folder = folder_with(tmp_path, note)
    canvas = folder.canvas(torch.tensor([[300, 400]]))[0]
    frame = geometry.compose(canvas, folder.frame)
    for cell, wanted in (((0.0, 0.0), corner), ((2.0, 1.5), middle)):
        assert geometry.apply(frame, torch.tensor(cell)).tolist() == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("maps", "note", "said"),
    [
        ({"a": MAP.astype(int)}, None, "int64"),
        ({"a": MAP * np.nan}, None, "NaN or infinity"),
        ({"a": np.array([{}])}, None, "cannot be read .*allow_pickle"),
        ({"a": MAP}, {"fit": "stretch"}, "features.json: .*fit"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, maps: dict[str, Any], note: Any, said: str) -> None:
    with pytest.raises(DataError, match=said):
        folder_with(tmp_path, note, **maps)


def test_maps_must_be_alike_and_there(tmp_path: Path) -> None:
    for place in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(DataError, match=str(place)):
            FeatureFolder(place)
    folder = folder_with(tmp_path, a=MAP, b=MAP[:1])
    with pytest.raises(DataError, match=r"b.npy: a map of \(1, 3, 4\).*the first file has \(2, 3, 4\)"):
        folder.take([Path("b.jpg")])
    with pytest.raises(DataError, match=r"no map of c.jpg; expected c.npy"):
        folder.take([Path("c.jpg")])
    (tmp_path / "c.safetensors").write_bytes(b"no tensors")
    with pytest.raises(DataError, match="cannot be read"):
        FeatureFolder(tmp_path).take([Path("c.jpg")])
