"""``saccade look`` with transformers of other libraries: stand-ins with the interfaces of timm and transformers."""

import json
import os
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn
from typer.testing import CliRunner, Result

import saccade
from saccade.backbones import hub
from saccade.commands.door import app
from saccade.errors import ConfigError
from saccade.record import read_record
from tiny_vits import TinyViT

COLOURS = {"mean": (0.5, 0.4, 0.3), "std": (0.2, 0.2, 0.2), "input_size": (3, 32, 40)}
NAMES = ["crane, bird", "tench", "crane", "cow", "dog"]


@pytest.fixture
def timm(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module named timm that has a classifier, a model without a head, and one whose weights are far away."""

    def create_model(name: str, *, pretrained: bool) -> nn.Module:
        assert pretrained
        if name == "far":
            assert os.environ["HF_HUB_OFFLINE"] == "1"  # its client must not try again and again
            raise OSError("not in the cache")
        network = TinyViT(classes=0 if name == "bare" else 5, head="mean" if name == "mean" else "token")
        network.pretrained_cfg = {**COLOURS, **({"label_names": NAMES} if name == "named" else {})}
        return network

    module, data = ModuleType("timm"), ModuleType("timm.data")
    module.__version__, module.create_model = "0", create_model
    module.is_model = {"named", "plain", "bare", "far", "mean"}.__contains__
    module.list_models = lambda pattern: ["named", "plain"]
    data.infer_imagenet_subset = lambda network: None
    monkeypatch.setitem(sys.modules, "timm", module)
    monkeypatch.setitem(sys.modules, "timm.data", data)
    monkeypatch.setattr(hub, "why_no_hub", lambda: None)
    return module


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    pixels = np.random.default_rng(0).integers(0, 256, (48, 80, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "photo.png")
    return tmp_path / "photo.png"


def run(*args: object) -> Result:
    return CliRunner().invoke(app, [str(arg) for arg in args])


def error_line(result: Result) -> str:
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    return result.stderr.strip().splitlines()[-1]


@pytest.mark.usefixtures("timm")
def test_the_answer_is_the_heads_and_the_maps_are_traced(photo: Path, tmp_path: Path) -> None:
    result = run("look", photo, "--model", "timm:named", "--json", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    network = TinyViT().eval()
    pixels = torch.from_numpy(np.array(Image.open(photo))).permute(2, 0, 1)[None] / 255
    small = torch.nn.functional.interpolate(pixels, (24, 40), mode="bilinear", antialias=True)
    framed = torch.nn.functional.pad(small, (0, 0, 4, 4), value=0.5)
    mean, std = (torch.tensor(COLOURS[name]).view(3, 1, 1) for name in ("mean", "std"))
    shares = network((framed - mean) / std).softmax(-1)[0].detach()
    words = ["crane (class 0)", "tench", "crane (class 2)", "cow", "dog"]
    assert told["answer"] == words[int(shares.argmax())]
    assert told["confidence"] == pytest.approx(float(shares.max()), abs=1e-4)
    assert [look["name"] for look in told["looks"]] == ["layer2.head1", "layer2.head2", "layer2.head3"]
    record = read_record(tmp_path / "out" / "photo.json")
    expected = saccade.trace_of(network, (framed - mean) / std, layers="last")
    torch.testing.assert_close(record.trace.looks[0].weights, expected.looks[0].weights, atol=1e-5, rtol=1e-4)
    assert record.trace.image_map().shape == (1, 48, 80)
    assert (tmp_path / "out" / "photo.png").is_file()


@pytest.mark.usefixtures("timm")
@pytest.mark.parametrize("verb", ["evaluate", "export", "serve"])
def test_only_look_takes_them(verb: str, tmp_path: Path) -> None:
    out = ("--out", tmp_path / "out") if verb == "export" else ()
    assert "only saccade look supports it" in error_line(run(verb, "timm:plain", *out))


@pytest.mark.usefixtures("timm")
def test_what_is_asked_wrongly_is_one_line(photo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "takes no question" in error_line(run("look", photo, "--model", "timm:plain", "--ask", "3"))
    assert "has no beam" in error_line(run("look", photo, "--model", "timm:plain", "--beam", "3"))
    assert "has no model 'plan'" in error_line(run("look", photo, "--model", "timm:plan"))
    assert "another library" in error_line(run("evaluate", "timm:plain"))
    with pytest.raises(ConfigError, match="can be seen, not given"):
        saccade.load("timm:plain", "cpu").look(photo, attention={"layer2.head1": [[1.0]]})
    monkeypatch.setattr(hub, "why_no_hub", lambda: "the hub cannot be reached")
    line = error_line(run("look", photo, "--model", "timm:far"))
    assert "timm:far are not on this machine, and the hub cannot be reached" in line


def test_offline_asks_no_hub(photo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.setenv("TRANSFORMERS_OFFLINE", "0")
    monkeypatch.setattr(hub.socket, "create_connection", lambda *args, **options: asked.append(args))
    run("look", photo, "--model", "timm:far", "--offline")
    assert hub.is_offline()
    assert asked == []


class OfTransformers(TinyViT):
    """A model with a config, which returns logits by name."""

    def __init__(self, classes: int) -> None:
        super().__init__(classes=classes)
        del self.num_classes
        self.config = SimpleNamespace(model_type="vit", image_size=32, num_labels=max(classes, 2))

    def forward(self, pixel_values: torch.Tensor) -> SimpleNamespace:
        made = super().forward(pixel_values)
        return SimpleNamespace(logits=made) if "Classification" in type(self).__name__ else SimpleNamespace(pooled=made)


class TinyForImageClassification(OfTransformers):
    pass


@pytest.fixture
def transformers(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module named transformers that loads folders called ``classifier``, ``bare`` and ``colourless``."""

    def config(name: str, **_: object) -> SimpleNamespace:
        if "damaged" in name:
            raise OSError("no config.json\nand more lines")
        is_classifier = "classifier" in name
        architecture = "TinyForImageClassification" if is_classifier else "TinyModel"
        labels = (
            {number: f"LABEL_{number}" for number in range(3)} if "unnamed" in name else {0: "cat, felis", 1: "dog"}
        )
        return SimpleNamespace(architectures=[architecture], id2label=labels, num_labels=3)

    def model(classes: int) -> type:
        kind = TinyForImageClassification if classes else OfTransformers

        class Auto:
            @staticmethod
            def from_pretrained(name: str, *, use_safetensors: bool, **_: object) -> nn.Module:
                assert use_safetensors
                return kind(classes)

        return Auto

    def processor(name: str, **_: object) -> tuple[dict[str, object], dict[str, object]]:
        if "colourless" in name:
            raise OSError("no preprocessor_config.json")
        return {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}, {}

    module, base = ModuleType("transformers"), ModuleType("transformers.image_processing_base")
    module.AutoConfig = SimpleNamespace(from_pretrained=config)
    module.AutoModel, module.AutoModelForImageClassification = model(0), model(3)
    base.ImageProcessingMixin = SimpleNamespace(get_image_processor_dict=processor)
    monkeypatch.setitem(sys.modules, "transformers", module)
    monkeypatch.setitem(sys.modules, "transformers.image_processing_base", base)
    bars = SimpleNamespace(disable_progress_bar=lambda: None)
    monkeypatch.setitem(sys.modules, "transformers.utils.logging", bars)
    return module


@pytest.mark.usefixtures("transformers")
def test_folders_of_transformers_answer_with_their_own_words(photo: Path, tmp_path: Path) -> None:
    for name in ("classifier", "unnamed-classifier", "bare", "colourless", "damaged"):
        (tmp_path / name).mkdir()
    named = saccade.load(f"hf:{tmp_path / 'classifier'}", "cpu").look(photo)
    words = {named.answer, *(word for word, _ in named.alternatives)}
    assert words == {"cat", "dog", "class 2"}
    unnamed = saccade.load(f"hf:{tmp_path / 'unnamed-classifier'}", "cpu").look(photo)
    assert unnamed.answer.startswith("class ")
    assert not saccade.load(f"hf:{tmp_path / 'bare'}", "cpu").look(photo).is_answered
    with pytest.raises(ConfigError, match="its colours"):
        saccade.load(f"hf:{tmp_path / 'colourless'}", "cpu")
    with pytest.raises(ConfigError, match=r"no config\.json"):
        saccade.load(f"hf:{tmp_path / 'damaged'}", "cpu")
    with pytest.raises(ConfigError, match="needs the name of a model"):
        saccade.load("hf:", "cpu")
