"""The attention of other people's transformers: equal to the textbook, on the right pixels, or refused."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import saccade
from saccade.errors import ConfigError, DataError
from saccade.tracing.attention_calls import AttentionCall, AttentionCalls
from saccade.tracing.trace_of import trace_with_output
from tiny_vits import WAYS, Captioner, Halved, OfLayers, TinyViT, Way, Windowed


@pytest.fixture
def images() -> Tensor:
    return torch.randn(2, 3, 32, 40, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def tiny(way: Way = "sdpa", **settings: object) -> TinyViT:
    return TinyViT(way, **settings).double().eval()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("registers", [0, 4])
def test_rows_of_the_class_token_are_the_textbooks(way: Way, registers: int, images: Tensor) -> None:
    model = tiny(way, registers=registers)
    trace = saccade.trace_of(model, images)
    prefix = 1 + registers
    assert [look.name for look in trace.looks] == [f"layer{i}.head{j}" for i in (1, 2) for j in (1, 2, 3)]
    assert trace.meta["prefix_tokens"] == prefix
    for number, expected in enumerate(model.reference(images), 1):
        for head in range(3):
            look = trace.look(f"layer{number}.head{head + 1}")
            assert (look.kind, look.role, look.norm) == ("soft", "multiplier", "none")
            assert look.weights.shape == (2, 4, 5)
            assert (look.weights.flatten(1) - expected[:, head, 0, prefix:]).abs().max() < 1e-9
    assert trace.answer.tolist() == model(images).argmax(-1).tolist()


@pytest.mark.parametrize("way", WAYS)
def test_all_rows_are_steps(way: Way, images: Tensor) -> None:
    model = tiny(way)
    trace = saccade.trace_of(model, images, rows="all", layers=[2])
    assert [look.name for look in trace.looks] == ["layer2.head1", "layer2.head2", "layer2.head3"]
    expected = model.reference(images)[1]  # (B,h,N,N)
    for head, look in enumerate(trace.looks):
        assert look.weights.shape == (2, 21, 4, 5)
        assert (look.weights.flatten(2) - expected[:, head, :, 1:]).abs().max() < 1e-9


def test_a_pooling_head_is_the_look_and_rebuilds_what_it_made(images: Tensor) -> None:
    model = tiny(head="map")
    trace = saccade.trace_of(model, images)
    assert [look.name for look in trace.looks] == ["pool.head1", "pool.head2", "pool.head3"]
    assert {look.norm for look in trace.looks} == {"softmax"}
    seen: list[Tensor] = []
    model.pool.attention.register_forward_pre_hook(lambda _, args: seen.append(args[1]))
    made: list[Tensor] = []
    model.pool.attention.register_forward_hook(lambda _, args, output: made.append(output[0]))
    model(images)
    attention = model.pool.attention
    values = F.linear(seen[0], attention.in_proj_weight[48:], attention.in_proj_bias[48:])  # (B,cells,D)
    on_grid = values.transpose(1, 2).unflatten(2, (4, 5)).chunk(3, 1)  # h × (B,d,H,W)
    context = torch.cat([look.rebuild(each) for look, each in zip(trace.looks, on_grid)], 1)  # (B,D)
    assert (attention.out_proj(context) - made[0][:, 0]).abs().max() < 1e-12


def test_words_of_a_text_look_at_the_picture_step_by_step(images: Tensor) -> None:
    model = Captioner().double().eval()
    words = torch.tensor([[1, 2, 3, 4], [5, 6, 7, 8]])
    trace = saccade.trace_of(model, images, inputs={"input_ids": words})
    assert [look.name for look in trace.looks] == [f"text{i}.head{j}" for i in (1, 2) for j in (1, 2, 3)]
    kept: list[Tensor] = []

    def keep(module: nn.Module, args: tuple[Tensor, ...], kwargs: object) -> None:
        kept.append(module.forward(*args, need_weights=True, average_attn_weights=False)[1])

    for cross in model.cross:
        cross.register_forward_pre_hook(keep, with_kwargs=True)
    model(images, input_ids=words)
    for number, expected in enumerate(kept, 1):
        for head in range(3):
            look = trace.look(f"text{number}.head{head + 1}")
            assert look.weights.shape == (2, 4, 4, 5)
            assert (look.weights.flatten(2) - expected[:, head, :, 1:]).abs().max() < 1e-9
    assert trace.answer is None
    alone = saccade.trace_of(model, images)  # without a text its vision model
    assert alone.looks[0].name == "layer1.head1"


def test_a_mask_a_scale_causality_and_shared_heads_count() -> None:
    draw = torch.Generator().manual_seed(5)
    query = torch.randn(2, 4, 6, 8, dtype=torch.float64, generator=draw)
    key, value = (torch.randn(2, 2, 6, 8, dtype=torch.float64, generator=draw) for _ in range(2))
    bias = torch.randn(1, 4, 6, 6, dtype=torch.float64, generator=draw)
    shut = torch.ones(6, 6, dtype=torch.bool)
    shut[2] = False  # a row that may see nothing
    for told in ({"attn_mask": bias, "scale": 0.7}, {"is_causal": True}, {"attn_mask": shut}):
        calls: list[Tensor] = []
        rows = torch.tensor([1, 2, 5])

        def visit(call: AttentionCall, calls: list[Tensor] = calls, rows: Tensor = rows) -> None:
            calls.extend([call.rows(2, rows), call.rows(2)])

        with AttentionCalls(visit):
            made = F.scaled_dot_product_attention(query, key, value, enable_gqa=True, **told)
        some, every = calls
        assert (every @ value.repeat_interleave(2, 1) - made).abs().max() < 1e-12
        assert (some - every[:, :, rows]).abs().max() < 1e-15


def test_masks_of_the_module_count() -> None:
    torch.manual_seed(0)
    module = nn.MultiheadAttention(12, 3, batch_first=True).double().eval()
    tokens = torch.randn(2, 5, 12, dtype=torch.float64)
    padding = torch.tensor([[False] * 5, [False, False, False, True, True]])
    mask = torch.rand(6, 5, 5) < 0.2
    mask[..., 0] = False
    found: list[Tensor] = []
    with torch.no_grad(), AttentionCalls(lambda call: found.append(call.rows(2, torch.tensor([0, 4])))):
        module(tokens, tokens, tokens, key_padding_mask=padding, attn_mask=mask, need_weights=False)
    _, expected = module(tokens, tokens, tokens, padding, attn_mask=mask, average_attn_weights=False)
    assert (found[0] - expected[:, :, [0, 4]]).abs().max() < 1e-12
    assert found[0][1, :, :, 3:].abs().max() == 0


@pytest.mark.parametrize("fast_path", ["_transformer_encoder_layer_fwd", "_native_multi_head_attention"])
def test_fast_paths_of_torch_are_seen(fast_path: str, images: Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    """In eval mode torch's own encoder and its attention take a path that calls no function of attention."""
    model = OfLayers().double().eval()
    if fast_path == "_native_multi_head_attention":  # of the encoder's layers the attention alone
        for layer in model.layers.layers:
            layer.register_forward_pre_hook(lambda *_: None)
            layer.activation_relu_or_gelu = 0
    taken: list[object] = []
    plain = getattr(torch, fast_path)
    monkeypatch.setattr(torch, fast_path, lambda *args, **named: taken.append(1) or plain(*args, **named))
    with torch.no_grad():
        model(images)
    assert len(taken) == 2
    trace = saccade.trace_of(model, images)
    assert len(taken) == 2
    assert len(trace.looks) == 8
    with torch.no_grad():
        tokens = model.patches(images).flatten(2).transpose(1, 2)
        tokens = torch.cat([model.class_token.expand(2, -1, -1), tokens], 1)
        for number, layer in enumerate(model.layers.layers, 1):
            _, expected = layer.self_attn(tokens, tokens, tokens, average_attn_weights=False)  # (B,h,N,N)
            found = torch.stack([trace.look(f"layer{number}.head{head}").weights for head in (1, 2, 3, 4)], 1)
            assert (found.flatten(2) - expected[:, :, 0, 1:]).abs().max() < 1e-9
            tokens = layer(tokens)


def test_a_picture_is_laid_in_and_the_map_is_on_its_own_pixels() -> None:
    model = tiny()
    picture = np.random.default_rng(0).random((48, 80, 3)).astype(np.float32)
    with pytest.raises(DataError, match="mean= and std="):
        saccade.trace_of(model, picture)
    told = {"mean": [0.5] * 3, "std": [0.5] * 3}
    with pytest.raises(DataError, match="size="):
        saccade.trace_of(model, picture, **told)
    trace = saccade.trace_of(model, picture, **told, size=(32, 40))
    assert trace.image_size.tolist() == [[48, 80]]
    assert trace.image_map().shape == (1, 48, 80)
    # 80 × 48 into 40 × 32: half as large, four pixels of border above
    frame = trace.frame_on(trace.looks[0], (48, 80)).reshape(2, 3)
    assert frame.tolist() == [[16, 0, 0], [0, 16, -8]]


def test_prefix_tokens_are_the_models_own_count_or_told(images: Tensor) -> None:
    model = tiny(registers=2)
    del model.num_prefix_tokens, model.has_class_token
    model.has_class_token = True  # its forward reads it
    with pytest.raises(ConfigError, match="prefix_tokens="):
        saccade.trace_of(model, images)
    told = saccade.trace_of(model, images, prefix_tokens=3)
    assert (told.looks[0].weights - saccade.trace_of(tiny(registers=2), images).looks[0].weights).abs().max() == 0
    plain = tiny()
    del plain.num_prefix_tokens
    plain.cls_token = nn.Parameter(torch.zeros(1, 1, 24, dtype=torch.float64))  # by its name
    assert saccade.trace_of(plain, images).meta["prefix_tokens"] == 1


def test_rollout_is_the_product_of_layers_and_says_that_it_is_derived(images: Tensor) -> None:
    model = tiny(registers=1)
    trace = saccade.trace_of(model, images, rollout=True)
    look = trace.look("rollout")
    eye = torch.eye(22, dtype=torch.float64)
    first, second = (0.5 * weights.mean(1) + 0.5 * eye for weights in model.reference(images))
    assert (look.weights.flatten(1) - (second @ first)[:, 0, 2:]).abs().max() < 1e-9
    assert look.role == "derived"
    assert trace.meta["derived"] == ["rollout"]
    with pytest.raises(DataError, match="multiplied nothing"):
        look.rebuild(torch.zeros(2, 3, 4, 5))
    plain = saccade.trace_of(model, images)
    assert torch.equal(trace.image_map(), plain.image_map())  # it is no part of the total


def test_rollout_begins_at_what_reads_the_patches(images: Tensor) -> None:
    pooled = tiny(head="map")
    trace = saccade.trace_of(pooled, images, rollout=True)
    eye = torch.eye(20, dtype=torch.float64)
    first, second = (0.5 * weights.mean(1) + 0.5 * eye for weights in pooled.reference(images))
    read = torch.stack([look.weights.flatten(1) for look in trace.looks[:3]]).mean(0)  # (B,cells)
    expected = (read.unsqueeze(1) @ second @ first).squeeze(1)
    assert (trace.look("rollout").weights.flatten(1) - expected).abs().max() < 1e-9
    mean = tiny(head="mean")
    only = saccade.trace_of(mean, images, rollout=True)
    assert [look.name for look in only.looks] == ["rollout"]
    first, second = (0.5 * weights.mean(1) + 0.5 * eye for weights in mean.reference(images))
    assert (only.looks[0].weights.flatten(1) - (second @ first).mean(1)).abs().max() < 1e-9


class Convolutions(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(nn.Conv2d(3, 4, 8, 8), nn.AdaptiveAvgPool2d(1), nn.Flatten())


REFUSED = [
    (lambda: tiny(head="mean"), "mean of all patches"),
    (lambda: Windowed().double().eval(), "windows or groups, 8 for 2"),
    (lambda: Halved().double().eval(), "9, 21 tokens.*drops, merges or regroups"),
    (lambda: Convolutions().double().eval(), "no attention was seen"),
]


@pytest.mark.parametrize(("model", "why"), REFUSED)
def test_what_has_no_honest_look_is_refused(model: object, why: str, images: Tensor) -> None:
    images = images if "windows" not in why else images[..., :32]
    with pytest.raises(ConfigError, match=why):
        saccade.trace_of(model(), images)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"rows": "clas"}, "did you mean 'class'"),
        ({"layers": [3]}, "layers 1 to 2"),
        ({"layers": "first"}, "'all', 'last'"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, object], why: str, images: Tensor) -> None:
    with pytest.raises(ConfigError, match=why):
        saccade.trace_of(tiny(), images, **options)


def test_the_output_is_bit_equal_and_nothing_is_left_behind(images: Tensor) -> None:
    model = tiny()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with torch.no_grad():
        plain = model(images)
    assert torch.equal(trace_with_output(model, images).logits, plain)
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in model.modules())
    assert torch.overrides._get_current_function_mode() is None


def test_a_model_that_trains_runs_in_eval_mode_and_trains_on(images: Tensor) -> None:
    model = tiny("eager").train()
    model.blocks[1].eval()
    trace = saccade.trace_of(model, images)
    assert torch.equal(trace.looks[0].weights, saccade.trace_of(tiny("eager"), images).looks[0].weights)
    assert model.training
    assert model.blocks[0].attention.drop.training
    assert not model.blocks[1].attention.drop.training


def test_wrapped_and_compiled_models_are_the_model_inside(images: Tensor) -> None:
    model = tiny()
    expected = saccade.trace_of(model, images)
    compiled = tiny()
    compiled.blocks[0].compile(backend="eager")
    for wrapped in (nn.DataParallel(model), torch.compile(model, backend="eager"), compiled):
        found = saccade.trace_of(wrapped, images)
        assert [look.name for look in found.looks] == [look.name for look in expected.looks]
        assert torch.equal(found.looks[-1].weights, expected.looks[-1].weights)
