"""What every model of the catalog must do; a new model is tested by its line in the catalog.

Each model is built small (``TINY`` of ``tiny_models``) and gets a batch of its own. Which cases exist follows from
the fields of its Config; a setting that fits no model is an error at collection. A model may refuse an input only
where a table below says so.
"""

import copy
import dataclasses
import functools
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade.config import to_dict
from saccade.errors import ConfigError, DataError
from saccade.families import model_spec, models
from saccade.losses.captions import caption_cross_entropy, hard_attention_loss
from saccade.losses.multiset import count_loss, hsal_loss, sequence_cross_entropy
from saccade.losses.policy import reinforce
from saccade.models.base import ImageModel, QueryModel
from saccade.models.facts import Preprocessing
from saccade.models.folder import load_model, save_model
from saccade.models.sat import SatModel
from saccade.models.story import StoryModel
from saccade.trace import (
    CaptionOutput,
    LabelOutput,
    Look,
    ModelOutput,
    MultisetOutput,
    Output,
    QuestionOutput,
)
from tiny_models import STORY_WORDS, example_batch, named, tiny_facts, tiny_model

Inputs = dict[str, Tensor]

VARIANTS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "labels": ({"multi_label": True, "prior": True}, ("soft", "question-head", "hattnet-ctx", "stn")),
    "mobilenetv2": (
        {"backbone": "mobilenetv2", "through": "block7"},  # four resolutions up to that stage
        ("soft", "question-head", "hattnet-ctx", "probe", "racnn", "hsal", "sat-soft"),
    ),
    "finer": ({"scored_at": "finer"}, ("question-head",)),
    "plain": ({"gate": False, "deep_output": False}, ("sat-soft",)),
    "layerwise": ({"tying": "layerwise", "encoding": "position", "mask": True}, ("memn2n",)),
    "naive": ({"mask_type": "spatial", "residual": False}, ("ran",)),
    "channel": ({"mask_type": "channel"}, ("ran",)),
    "choice": ({"gate": "softmax", "passes": 3, "answer_words": 2}, ("dmn",)),
    "drawn": ({"estimator": "reinforce"}, ("hard",)),
    "free": ({"query_to_classifier": True, "bounded": False}, ("stn",)),
    "priced": ({"gate_penalty": 1.0, "spread_penalty": 1.0}, ("hattnet",)),
    "following": ({"glimpses": 3, "carry_state": False, "follow_priority": True}, ("hsal",)),
    "mean": ({"attention_kind": "none"}, ("sat-soft",)),
}
"""Other settings, and the models that are tested with them too."""
KINDS = ("soft", "hattnet-ctx", "stn", "ran", "racnn", "hsal", "sat-soft", "memn2n")
"""A model of each kind; what is slow and the same for all is tested with the others by ``make test-all``."""
WRONG: dict[str, Any] = {
    "dropout": 1.0,
    "samples": 1,
    "vocabulary": 2,
    "expected_share": 2.0,
    "coarse": (0, 8),
    "crop": (0, 8),
    "side": 2.0,
}
"""A value that every model with such a field must refuse; whole numbers are in ``test_models_io_folder``."""
ONE_SIZE = {"stn", "stn-tuned", "hsal", "multiset-counts", "sat-soft", "sat-hard", "racnn"}
"""Models that are built for pictures of one size, and refuse others."""
OTHER_SIZE = (62, 68)
"""Pictures for a deep backbone: twice the size of those in ``example_batch``."""


def fields_of(name: str) -> set[str]:
    """The settings that a model has."""
    return {field.name for field in dataclasses.fields(models()[name].load().Config)}


def models_that_are(kind: type) -> list[str]:
    """The models of a base class, of which there must be one."""
    result = [name for name in sorted(models()) if issubclass(models()[name].load(), kind)]
    if not result:
        raise LookupError(f"no model of the catalog is a {kind.__name__}")
    return result


every_model = pytest.mark.parametrize("name", sorted(models()))
every_variant = pytest.mark.parametrize(
    "name", [*sorted(models()), *(f"{name}/{variant}" for variant, (_, names) in VARIANTS.items() for name in names)]
)
of_each_kind = pytest.mark.parametrize(
    "name",
    [
        *(name if name in KINDS else pytest.param(name, marks=pytest.mark.long) for name in sorted(models())),
        "question-head/finer",
    ],
)

WITHOUT_LOOKS = {"story-lstm"}
"""Controls that show nothing of where they looked."""
FED = {"dmn"}
"""Models whose looks are gates of a recurrent net, role "input": there is no weighted sum to make again. Instead
``test_models_story`` makes the answer again from the facts and the gates alone, so these gates are what was used."""
PLACELESS = {"ran/channel"}
"""Models whose looks are on channels, which have no place on a picture."""
BLIND = {"blind"}
"""Controls that leave the query alone."""
SAID = ("<end>", "<unknown>", "red", "green", "blue")
"""The vocabulary of the tiny captioners."""
OVERFIT_STEPS = 400
SAME = {"rtol": 0.0, "atol": 0.0}
BATCH = 8


def build(name: str, seed: int = 0) -> Any:
    """A small model with weights drawn from ``seed``; NAME/VARIANT has other settings."""
    return copy.deepcopy(_built(name, seed))


@functools.cache
def _built(name: str, seed: int) -> Any:
    return tiny_model(name.partition("/")[0], seed, **changes(name))


def changes(name: str) -> dict[str, Any]:
    """The settings in which NAME/VARIANT differs from ``tiny()``."""
    name, _, variant = name.partition("/")
    settings = VARIANTS[variant][0] if variant else {}
    sized = "backbone" in settings and "input_size" in fields_of(name)
    return {**settings, **({"input_size": OTHER_SIZE} if sized else {})}


def batch(name: str, count: int = 4, seed: int = 0) -> tuple[Inputs, Tensor]:
    """Inputs and labels that fit it; with several labels at once, every other picture has a second one."""
    settings = changes(name)
    inputs, labels = example_batch(name.partition("/")[0], count, seed)
    if "backbone" in settings:
        inputs = {**inputs, "images": F.interpolate(inputs["images"], OTHER_SIZE)}
    if "multi_label" in settings:
        other = F.one_hot((labels + 1) % 3, 3) * (torch.arange(count) % 2)[:, None]
        labels = (F.one_hot(labels, 3) + other).float()  # (B,K)
    if "answer_words" in settings:
        labels = F.pad(labels, (0, settings["answer_words"] - 1))  # (B,A): word 0 ends an answer
    return inputs, labels


def source(inputs: Inputs) -> Tensor:
    """What a model encodes: the pictures, or the stories."""
    return inputs["images"] if "images" in inputs else inputs["story"]


def shows_looks(name: str) -> bool:
    """Whether NAME or NAME/VARIANT has looks."""
    return name.partition("/")[0] not in WITHOUT_LOOKS


def part(inputs: Inputs, which: slice) -> Inputs:
    return {key: tensor[which] for key, tensor in inputs.items()}


def assert_same(first: ModelOutput, second: ModelOutput, **tolerance: float) -> None:
    result, expected = named(first), named(second)
    assert result.keys() == expected.keys()
    for key in result:
        torch.testing.assert_close(result[key], expected[key], msg=lambda text, key=key: f"{key}: {text}", **tolerance)


def shape_of_logits(model: Any) -> tuple[int, ...]:
    """Of each example: one row of answers, or a row for each label or word and one that ends them."""
    config = model.config
    if isinstance(model, SatModel):
        return (3, config.vocabulary)
    if isinstance(model, StoryModel):
        return (config.answer_words, config.words) if model.answers_word_by_word else (config.words,)
    return (config.answers,) if hasattr(config, "answers") else (config.most + 1, config.classes + 1)


@pytest.mark.parametrize("name", models_that_are(QueryModel))
def test_queries_in_a_row_for_each_picture_are_answered_as_if_asked_alone(name: str) -> None:
    model = build(name).eval()
    inputs, _ = batch(name, 3)
    queries = torch.tensor([0, 1, 2, 3, 1, 0])
    with torch.no_grad():
        together = model.forward_raw(inputs["images"], queries, asks=2)
        alone = model.forward_raw(inputs["images"].repeat_interleave(2, dim=0), queries)
    assert_same(together, alone, rtol=1e-5, atol=1e-6)
    assert together.logits.shape[0] == 6


def test_defaults_of_an_entry_give_way_to_what_is_said() -> None:
    for spec in models().values():
        for key, value in spec.defaults.items():
            plain = getattr(spec.load().Config(), key)
            assert getattr(spec.build().config, key) == value != plain
            assert getattr(spec.build({key: plain}).config, key) == plain


@every_variant
def test_forward_wraps_what_forward_raw_computes_in_a_valid_trace(name: str) -> None:
    model, (inputs, labels) = build(name).eval(), batch(name)
    raw, output = model.forward_raw(**inputs), model(**inputs)
    trace = output.trace.validate()
    assert_same(raw, output.aux, **SAME)
    assert output.logits is output.aux.logits
    assert output.logits.shape == (len(labels), *shape_of_logits(model))
    assert output.logits.isfinite().all()
    assert (len(trace), trace.total) == (len(labels), type(model).total)
    for one in trace:
        one.validate()
    for look in trace.looks:
        assert look.weights is None or torch.equal(look.weights, raw.acts[look.name].weights)
        for step in steps_of(look):
            step.validate()
    if trace.image_size is not None and name not in PLACELESS:
        laid = trace.image_map()
        assert laid.shape == (len(labels), *inputs["images"].shape[-2:])
        assert laid.isfinite().all()
        assert (laid >= 0).all()


@every_model
def test_the_answer_is_the_best_logit(name: str) -> None:
    model, (inputs, _) = build(name).eval(), batch(name)
    output = model(**inputs)
    best = output.logits.argmax(-1)  # (B,) or (B,T)
    if "words" in inputs:  # which are given, and padded
        best = best.masked_fill(inputs["words"] < 0, -1)
    elif best.dim() == 2 and not isinstance(model, StoryModel):  # said in a row until the last class, "nothing more"
        nothing = output.logits.shape[-1] - 1
        best = best.masked_fill((best == nothing).cumsum(1) > 0, nothing)
    assert torch.equal(output.trace.answer, best)


def doubled(inputs: Inputs) -> Inputs:
    return {key: tensor.double() if tensor.is_floating_point() else tensor for key, tensor in inputs.items()}


@every_variant
def test_examples_do_not_see_each_other(name: str) -> None:
    """One by one is the same as together; in double precision, as in single the order of sums shows in a deep model."""
    model, (inputs, labels) = build(name).eval(), batch(name)
    with torch.no_grad():
        single, model = model.forward_raw(**inputs), model.double()
        together = model.forward_raw(**doubled(inputs))
        for index in range(len(labels)):
            here = slice(index, index + 1)
            alone = model.forward_raw(**part(doubled(inputs), here))
            assert_same(alone, together[here], rtol=1e-5, atol=1e-5)
    assert together.logits.dtype == torch.float64
    torch.testing.assert_close(together.logits, single.logits.double(), rtol=1e-3, atol=1e-4)


def steps_of(look: Look) -> list[Look]:
    """The steps of a look that repeats, each without its step axis; of another, the look itself."""
    return [look.step(index) for index in range(look.steps)] if look.has_steps else [look]


@every_variant
def test_looks_rebuild_what_they_made(name: str) -> None:
    """The proof that the weights shown are the weights used: from the look alone comes the context of the model."""
    model, (inputs, _) = build(name).eval(), batch(name)
    output = model(**inputs)
    used = [look for look in output.trace.looks if look.role in ("multiplier", "mixture", "crop")]
    assert bool(used) == (shows_looks(name) and name.partition("/")[0] not in FED)
    for look in used:
        values, context = output.aux.acts[look.name].values, output.aux.acts[look.name].context
        torch.testing.assert_close(look.rebuild(values), context, rtol=1e-5, atol=1e-5)
        contexts = context.unbind(1) if look.has_steps else (context,)  # (B,C,…) of each step
        assert len(contexts) == len(steps_of(look))
        for step, expected in zip(steps_of(look), contexts):
            torch.testing.assert_close(step.rebuild(values), expected, rtol=1e-5, atol=1e-5)


@every_variant
def test_encoding_once_is_enough(name: str) -> None:
    model, (inputs, _) = build(name).eval(), batch(name)
    encoding = model.encode(source(inputs))
    if isinstance(model, SatModel):
        told = model.teacher_force(encoding, inputs["words"])
        assert_same(told, model.forward_raw(**inputs), rtol=1e-6, atol=1e-6)
        return
    if not isinstance(model, (QueryModel, StoryModel)):
        assert_same(model.answer(encoding), model.forward_raw(**inputs), rtol=1e-6, atol=1e-6)
        return
    for shift in range(3):
        query = inputs["query"].roll(shift, 0)
        assert_same(model.ask(encoding, query), model.forward_raw(source(inputs), query), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", models_that_are(ImageModel))
def test_pictures_of_other_sizes(name: str) -> None:
    """Odd and non-square sizes; a model that is built for one size says so."""
    model, (inputs, _) = build(name).eval(), batch(name)
    for more in ((0, 1), (7, 0), (13, 30)):
        images = F.pad(inputs["images"], (0, more[1], 0, more[0]))
        if name in ONE_SIZE:
            with pytest.raises(DataError, match="pixels only"):
                model(**{**inputs, "images": images})
        else:
            output = model(**{**inputs, "images": images})
            assert output.trace.validate().image_map().shape == (len(output.logits), *images.shape[-2:])


@every_model
def test_a_constant_picture_does_no_harm(name: str) -> None:
    model, (inputs, _) = build(name).eval(), batch(name)
    still = {key: torch.zeros_like(tensor) if tensor.is_floating_point() else tensor for key, tensor in inputs.items()}
    output = model(**still)
    output.trace.validate()
    assert output.logits.isfinite().all()


@every_model
@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_gpu_computes_the_same(name: str) -> None:
    model, (inputs, _) = build(name).eval(), batch(name)
    here = model(**inputs)
    there = model.cuda()(**{key: tensor.cuda() for key, tensor in inputs.items()})
    torch.testing.assert_close(there.logits.cpu(), here.logits, rtol=1e-4, atol=1e-4)
    there.trace.validate()
    if there.trace.image_size is not None:
        torch.testing.assert_close(there.trace.image_map().cpu(), here.trace.image_map(), rtol=1e-4, atol=1e-5)


@every_variant
def test_every_parameter_receives_gradient(name: str) -> None:
    """None is unused; kernels and matrices get more than nothing (a bias before a softmax or a norm may not).

    After one step: what lies before a layer that starts at zero, such as that of a window, does not move at first.
    """
    model, (inputs, labels) = build(name).train(), batch(name, BATCH)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    loss_of(model.forward_raw(**inputs), labels).backward()
    optimizer.step()
    optimizer.zero_grad()
    loss_of(model.forward_raw(**inputs), labels).backward()
    for parameter_name, parameter in model.named_parameters():
        assert parameter.grad is not None, parameter_name
        assert parameter.grad.isfinite().all(), parameter_name
        if parameter.dim() > 1:
            assert parameter.grad.abs().sum() > 0, parameter_name


def kept_with(model: Any, inputs: Inputs) -> dict[str, Any]:
    """What a folder says of a model: its words, and how pictures are made ready, if it reads any."""
    if isinstance(model, StoryModel):
        words = ("", *(f"word{number}" for number in range(1, STORY_WORDS)))
        return {"family": "story", "queries": (), "answers": words, "preprocessing": None}
    said = {"answers": SAID} if isinstance(model, SatModel) else {}
    return {"preprocessing": Preprocessing(tuple(inputs["images"].shape[-2:])), **said}


@every_variant
def test_a_folder_gives_the_model_back(name: str, tmp_path: Path) -> None:
    """Settings and weights travel together, whatever the settings; and to another process, as training may send it."""
    model, (inputs, _) = build(name), batch(name, BATCH)
    model.train()(**inputs)
    assert_same(pickle.loads(pickle.dumps(model.eval())).forward_raw(**inputs), model.forward_raw(**inputs), **SAME)
    facts = tiny_facts(
        architecture=name.partition("/")[0],
        model=to_dict(model.config),
        **kept_with(model, inputs),
    )
    save_model(model, tmp_path / "model", facts)
    loaded, _ = load_model(tmp_path / "model")
    assert_same(loaded.forward_raw(**inputs), model.forward_raw(**inputs), **SAME)


def loss_of(raw: ModelOutput, labels: Tensor) -> Tensor:
    """A loss by which everything learns: of answers, or of what is said in a row with whatever was drawn on the way."""
    if isinstance(raw, CaptionOutput):
        if raw.expected is not None:
            return hard_attention_loss(raw, labels, raw.baseline)["loss"]
        return caption_cross_entropy(raw.logits, labels)
    if isinstance(raw, MultisetOutput):
        single = F.cross_entropy(raw.single_logits, labels[:, 0].clamp_min(0))
        if raw.count_logits is not None:
            return single + count_loss(raw.count_logits, labels)
        return single + hsal_loss(raw, labels)["loss"] + sequence_cross_entropy(raw.logits, labels)
    if isinstance(raw, QuestionOutput) and raw.sampled_logits is not None:
        return reinforce(raw.sampled_logits[torch.arange(len(labels)), :, labels], raw.sampled_log_prob)
    answered = [raw.logits]
    if isinstance(raw, QuestionOutput) and raw.helper_logits is not None:
        answered.append(raw.helper_logits)
    if isinstance(raw, LabelOutput) and raw.scale_logits is not None:
        answered += raw.scale_logits.unbind(1)
    if labels.is_floating_point():
        return torch.stack([F.binary_cross_entropy_with_logits(logits, labels) for logits in answered]).sum()
    return torch.stack([F.cross_entropy(logits.flatten(0, -2), labels.flatten()) for logits in answered]).sum()


def right_answers(output: Output, labels: Tensor) -> Tensor:
    """Whether the answer is the label (B,), or what was said is the labels (B,M) in any order: (B,) bool.

    Captions, and answers to stories, are to be right word by word.
    """
    answer = output.trace.answer
    if labels.dim() == 1:
        return answer == labels
    if not isinstance(output.aux, MultisetOutput):
        return (answer == labels).all(1)
    said = answer.masked_fill(answer == output.logits.shape[-1] - 1, -1)  # (B,T)
    wanted = F.pad(labels, (0, said.shape[1] - labels.shape[1]), value=-1)  # (B,T)
    return (said.sort(1).values == wanted.sort(1).values).all(1)


@pytest.fixture(scope="module")
def overfitted() -> dict[str, nn.Module]:
    """Models that have learnt one batch by heart; filled as tests ask for them."""
    return {}


def lesson(name: str) -> tuple[Inputs, Tensor]:
    """A batch to learn by heart; too many pictures to know them without the questions."""
    is_asked = issubclass(models()[name.partition("/")[0]].load(), QueryModel)
    return batch(name, 2 * BATCH if is_asked else BATCH)


def learnt(name: str, known: dict[str, nn.Module]) -> nn.Module:
    if name not in known:
        model, (inputs, labels) = build(name).train(), lesson(name)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
        torch.manual_seed(0)  # some draw while they learn, and may take longer
        for step in range(1, OVERFIT_STEPS + 1):
            optimizer.zero_grad()
            loss_of(model.train().forward_raw(**inputs), labels).backward()
            optimizer.step()
            if step % 25 == 0:
                with torch.no_grad():
                    if right_answers(model.eval()(**inputs), labels).all():
                        break
        known[name] = model.eval()
    return copy.deepcopy(known[name])


@of_each_kind
@pytest.mark.no_cover
def test_one_batch_can_be_learnt(name: str, overfitted: dict[str, nn.Module]) -> None:
    (inputs, labels), model = lesson(name), learnt(name, overfitted)
    with torch.no_grad():
        output = model(**inputs)
    assert right_answers(output, labels).float().mean() >= 0.99


@pytest.mark.parametrize(
    "name",
    [name if name in KINDS else pytest.param(name, marks=pytest.mark.long) for name in models_that_are(QueryModel)],
)
@pytest.mark.no_cover
def test_the_query_matters(name: str, overfitted: dict[str, nn.Module]) -> None:
    """After learning, the same pictures with other queries get other answers; from a blind model, the same."""
    inputs, labels = lesson(name)
    model = learnt(name, overfitted)
    kinds = int(inputs["query"].max()) + 1
    changed = []
    for shift in range(1, kinds):
        asked = {**inputs, "query": (inputs["query"] + shift) % kinds}
        with torch.no_grad():
            changed.append(model(**asked).logits.argmax(-1) != labels)
    share = torch.stack(changed).float().mean()
    assert share == 0 if name in BLIND else share > 0.2


class _Raw(nn.Module):
    """``forward_raw`` as a module of one dictionary, which is what exporters take."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, inputs: Inputs) -> ModelOutput:
        return self.model.forward_raw(**inputs)  # type: ignore[operator]


@of_each_kind
@pytest.mark.no_cover
def test_export_for_any_batch_size(name: str) -> None:
    model, (inputs, _) = build(name).eval(), batch(name, 3)
    some = torch.export.Dim("batch", min=1, max=64)
    program = torch.export.export(_Raw(model), (inputs,), dynamic_shapes=({key: {0: some} for key in inputs},))
    more, _ = batch(name, 5, seed=1)
    for given in (inputs, more):
        assert_same(program.module()(given), model.forward_raw(**given), rtol=1e-5, atol=1e-5)


@of_each_kind
@pytest.mark.no_cover
def test_forward_raw_is_one_graph(name: str) -> None:
    """Compiling must not break the graph; the backend that only captures needs no compiler."""
    model, (inputs, _) = build(name).eval(), batch(name)
    torch.compiler.reset()  # models share the code of forward_raw, and dynamo counts its versions
    captured = torch.compile(model.forward_raw, fullgraph=True, backend="eager")
    with torch.no_grad(), torch._dynamo.config.patch(allow_rnn=True):  # else PyTorch's own GRU and LSTM break it
        assert_same(captured(**inputs), model.forward_raw(**inputs), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("setting", WRONG)
def test_sizes_that_cannot_be_are_named(setting: str) -> None:
    names = [name for name in models() if setting in fields_of(name)]
    assert names
    for name in names:
        with pytest.raises(ConfigError, match=rf"^model\.{setting}\b"):
            model_spec(name).build({setting: WRONG[setting]})


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("hattnet", {"gated": ["stage4"]}, "'stage4' is the last stage"),
        ("vit", {"width": 20}, "width: a multiple of 4 × heads"),
        ("stn", {"backbone": "resnet18"}, "flattens the last map of the small stack"),
        ("stn-tuned", {"largest": 0.05}, "largest: above the smallest window"),
        ("probe", {"head": "pyramid"}, "pyramid: names the finer stages"),
        ("hsal", {"sharpness": [2.0, 1.5]}, "sharpness is two numbers above 0, the smaller first"),
        ("hsal", {"fine_stage": "layer4"}, "'layer4' is the stage that is attended already"),
        ("ran", {"modules": [0, 0, 0]}, "needs one"),
        ("sat-soft", {"pick": "best"}, "no one cell to pick"),
        ("sat-soft", {"input_size": [2, 2], "backbone": "small", "through": None}, "too small"),
        ("dmn", {"stops": True}, "gate: softmax"),
    ],
)
def test_settings_that_do_not_fit_each_other_are_named(name: str, settings: dict[str, Any], message: str) -> None:
    with pytest.raises((ConfigError, DataError), match=message):
        model_spec(name).build(settings)


STACK, SCORER, HEAD = 28_640, 1_409, 229
"""By hand: 3·3·3·32 + 32 and three times 3·3·32·32 + 32; 32·32 + 32, 10·32 for the query and 33; 2·32 and 32·5 + 5."""


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("soft", STACK + SCORER + HEAD),
        ("hattnet", STACK + SCORER + HEAD + 3 * (SCORER + 64)),  # three more scorers, a norm behind each
        ("hattnet-ctx", STACK + SCORER + HEAD + 3 * (9_601 + 64)),  # which see 3×3 cells: 3·3·32·32 + 32 in front
        ("cross", STACK + 1_344 + HEAD),  # keys 32·32, queries 10·32
        ("film", STACK + 2_816 + HEAD),  # four times (10 + 1)·64
        ("blind", STACK + HEAD),
        ("stn", 2 * STACK + 16_736 + 198 + HEAD),  # (4·4·32 + 10)·32 + 32 and 32·6 + 6 for the window
        ("stn-tuned", 2 * STACK + SCORER + 43 + 2 * HEAD),  # 42 + 1 for its extent, a head that helps
        ("vit", 323_621),
        ("memn2n", 4 * (30 + 50) * 20),  # 30 words and 50 times, before each of three hops and behind the last
    ],
)
def test_the_number_of_parameters_is_that_of_the_paper(name: str, count: int) -> None:
    assert sum(parameter.numel() for parameter in model_spec(name).build().parameters()) == count
