"""``trace_of`` on the models of timm and transformers themselves: tiny, with random weights, nothing is downloaded.

The reference is each library's own eager attention, computed in float64.
"""

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import saccade
from saccade.errors import ConfigError

pytestmark = pytest.mark.extras

IMAGES = torch.randn(2, 3, 32, 32, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
SIZES = {"img_size": 32, "patch_size": 8, "depth": 2, "embed_dim": 24, "num_heads": 3}
VISION = {
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 32,
    "image_size": 32,
    "patch_size": 8,
}
TEXT = {
    "hidden_size": 24,
    "encoder_hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 32,
    "vocab_size": 20,
    "max_position_embeddings": 32,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "sep_token_id": 2,
    "pad_token_id": 0,
}


def needs(library: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(importlib.util.find_spec(library) is None, reason=f"needs {library}: make test-extras")


def spread(model: nn.Module) -> nn.Module:
    """The model with weights that make its attention uneven, in float64."""
    draw = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(torch.randn(weight.shape, generator=draw) * 0.3)
    return model.double().eval()


def check_class_rows(expected: list[Tensor], trace: saccade.AttentionTrace, prefix: int) -> None:
    """Looks are the class token's row of ``expected`` (B,h,N,N), behind the tokens before the patches."""
    assert trace.meta["prefix_tokens"] == prefix
    assert len(trace.looks) == 3 * len(expected)
    for number, weights in enumerate(expected, 1):
        assert weights[:, :, 0].std() > 1e-3  # or anything would be equal
        for head in range(3):
            look = trace.look(f"layer{number}.head{head + 1}")
            assert look.frame.tolist() == [[8, 0, 0], [0, 8, 0]]
            assert (look.weights.flatten(1) - weights[:, head, 0, prefix:]).abs().max() < 1e-9


def of_timm(name: str, **settings: Any) -> nn.Module:
    import timm

    return spread(timm.create_model(name, pretrained=False, **{**SIZES, **settings}))


@contextmanager
def eager_of_timm(model: nn.Module) -> Iterator[list[Tensor]]:
    """Weights that reach ``attn_drop`` while timm's own flag turns its fused attention off."""
    kept: list[Tensor] = []
    fused = [part for part in model.modules() if getattr(part, "fused_attn", False)]
    hooks = [
        part.attn_drop.register_forward_pre_hook(lambda _, args: kept.append(args[0]))
        for part in model.modules()
        if hasattr(part, "attn_drop")
    ]
    for part in fused:
        part.fused_attn = False
    try:
        yield kept
    finally:
        for part in fused:
            part.fused_attn = True
        for hook in hooks:
            hook.remove()


@needs("timm")
@pytest.mark.parametrize(
    ("name", "prefix"),
    [
        ("vit_tiny_patch16_224", 1),
        ("deit_tiny_distilled_patch16_224", 2),
        ("vit_small_patch14_reg4_dinov2", 5),
        ("vit_small_patch16_dinov3", 5),
    ],
)
def test_timm_class_rows(name: str, prefix: int) -> None:
    model = of_timm(name)
    assert model.num_prefix_tokens == prefix
    with eager_of_timm(model) as expected, torch.no_grad():
        answer = model(IMAGES)
    trace = saccade.trace_of(model, IMAGES)
    check_class_rows(expected, trace, prefix)
    if model.num_classes:
        assert trace.answer.tolist() == answer.argmax(-1).tolist()
    else:
        assert trace.answer is None
    with eager_of_timm(model):  # and where the model computes eagerly itself
        check_class_rows(expected, saccade.trace_of(model, IMAGES), prefix)


@needs("timm")
def test_timm_attention_pooling_is_the_look() -> None:
    model = of_timm("vit_base_patch16_siglip_224")
    trace = saccade.trace_of(model, IMAGES)
    assert [look.name for look in trace.looks] == ["pool.head1", "pool.head2", "pool.head3"]
    assert {look.norm for look in trace.looks} == {"softmax"}
    with eager_of_timm(model):
        eager = saccade.trace_of(model, IMAGES)
    assert max(float((a.weights - b.weights).abs().max()) for a, b in zip(trace.looks, eager.looks)) < 1e-9


@needs("timm")
@pytest.mark.parametrize("name", ["cait_xxs24_224", "xcit_nano_12_p16_224"])
def test_timm_class_attention_layers(name: str) -> None:
    settings = {"patch_size": 16} if "xcit" in name else {}
    trace = saccade.trace_of(of_timm(name, **settings), IMAGES)
    assert [look.name for look in trace.looks][:1] == ["pool1.head1"]
    assert {look.name.partition(".")[0] for look in trace.looks} == {"pool1", "pool2"}


@needs("timm")
@pytest.mark.parametrize(
    ("name", "settings", "size", "why"),
    [
        ("swin_tiny_patch4_window7_224", {"img_size": 56, "window_size": 7}, 56, "windows or groups"),
        ("levit_128s", {}, 224, "regroups"),
        ("vit_base_patch16_siglip_gap_224", SIZES, 32, "neither a class token"),
        ("beit_base_patch16_224", SIZES, 32, "mean of all patches"),
        ("resnet18", {}, 64, "no attention was seen"),
    ],
)
def test_timm_models_without_an_honest_look_are_refused(
    name: str, settings: dict[str, Any], size: int, why: str
) -> None:
    import timm

    model = timm.create_model(name, pretrained=False, **settings).double().eval()
    with pytest.raises(ConfigError, match=why):
        saccade.trace_of(model, torch.randn(1, 3, size, size, dtype=torch.float64))


def of_transformers(name: str, config: str, **settings: Any) -> nn.Module:
    import transformers

    return spread(getattr(transformers, name)(getattr(transformers, config)(**settings)))


@contextmanager
def eager_of_transformers(model: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The library's own switch; its softmax in the type of its input, where it says float32."""
    plain = F.softmax
    before = model.config._attn_implementation
    with monkeypatch.context() as patched:
        patched.setattr(F, "softmax", lambda scores, dim=None, dtype=None, **_: plain(scores, dim=dim))
        model.set_attn_implementation("eager")
        try:
            yield
        finally:
            model.set_attn_implementation(before)


@needs("transformers")
@pytest.mark.parametrize(
    ("name", "config", "settings", "prefix"),
    [
        ("ViTForImageClassification", "ViTConfig", {**VISION, "num_labels": 7}, 1),
        ("DeiTModel", "DeiTConfig", VISION, 2),
        ("Dinov2WithRegistersModel", "Dinov2WithRegistersConfig", {**VISION, "num_register_tokens": 4}, 5),
        ("DINOv3ViTModel", "DINOv3ViTConfig", {**VISION, "num_register_tokens": 4}, 5),
        ("CLIPVisionModel", "CLIPVisionConfig", VISION, 1),
    ],
)
def test_transformers_class_rows(
    name: str, config: str, settings: dict[str, Any], prefix: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = of_transformers(name, config, **settings)
    with eager_of_transformers(model, monkeypatch), torch.no_grad():
        exact = list(model(pixel_values=IMAGES, output_attentions=True).attentions)
    trace = saccade.trace_of(model, IMAGES)
    check_class_rows(exact, trace, prefix)
    model.set_attn_implementation("eager")
    with torch.no_grad():
        own = list(model(pixel_values=IMAGES, output_attentions=True).attentions)  # its softmax is in float32
    check_class_rows(own, saccade.trace_of(model, IMAGES), prefix)
    assert (trace.answer is None) is ("Classification" not in name)


@needs("transformers")
def test_transformers_attention_pooling_and_towers() -> None:
    siglip = of_transformers("SiglipVisionModel", "SiglipVisionConfig", **VISION)
    trace = saccade.trace_of(siglip, IMAGES)
    assert [look.name for look in trace.looks] == ["pool.head1", "pool.head2", "pool.head3"]
    assert {look.norm for look in trace.looks} == {"softmax"}
    text = {key: TEXT[key] for key in TEXT if key not in ("sep_token_id", "encoder_hidden_size")}
    for name, config, first in (
        ("SiglipModel", "SiglipConfig", "pool.head1"),
        ("CLIPModel", "CLIPConfig", "layer1.head1"),
    ):
        whole = of_transformers(name, config, text_config=text, vision_config=VISION)
        tower = saccade.trace_of(whole, IMAGES)
        assert tower.looks[0].name == first
        alone = saccade.trace_of(whole.vision_model, IMAGES)
        assert torch.equal(tower.looks[-1].weights, alone.looks[-1].weights)


@needs("transformers")
@pytest.mark.parametrize(
    ("name", "config", "settings", "why"),
    [
        ("SwinModel", "SwinConfig", {"embed_dim": 12, "depths": [1, 1], "num_heads": [2, 2]}, "windows or groups"),
        ("ViTMAEModel", "ViTMAEConfig", VISION, "drops, merges or regroups"),
        ("ResNetModel", "ResNetConfig", {"embedding_size": 8, "hidden_sizes": [8], "depths": [1]}, "no attention"),
    ],
)
def test_transformers_models_without_an_honest_look_are_refused(
    name: str, config: str, settings: dict[str, Any], why: str
) -> None:
    more = {"image_size": 32, "patch_size": 4, "window_size": 4} if name == "SwinModel" else {}
    with pytest.raises(ConfigError, match=why):
        saccade.trace_of(of_transformers(name, config, **settings, **more), IMAGES)
