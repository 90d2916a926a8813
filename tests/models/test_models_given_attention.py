"""Given attention, for every model of the catalog: its own weights repeat it, others are used exactly as they are.

A new model is tested by its line in the catalog; nothing in the first parts knows what a model is inside.
"""

import dataclasses
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from test_models_common import FED, KINDS, assert_same, batch, build, every_model, every_variant, shows_looks
from test_models_common import doubled as in_double_precision
from torch import Tensor

from saccade import geometry
from saccade.errors import ConfigError, DataError, ShapeError
from saccade.models.hsal import HsalModel
from saccade.models.sat import SatModel
from saccade.trace import Look, Output

EXACT = {"rtol": 0.0, "atol": 1e-10}
USED = ("multiplier", "mixture", "crop")
"""Roles in which a look makes a context."""


def is_used(name: str, look: Look) -> bool:
    """Whether the answer of the model ``name`` is made from this look."""
    return look.role in USED or name.partition("/")[0] in FED


def doubled(name: str, **settings: Any) -> tuple[Any, dict[str, Tensor]]:
    """A small model in double precision and eval mode, other ``settings`` in place of its own, and inputs for it."""
    model = build(name)
    if settings:
        torch.manual_seed(0)
        model = type(model)(dataclasses.replace(model.config, **settings))
    inputs, _ = batch(name)
    return model.double().eval(), in_double_precision(inputs)


def other(look: Look, kind: str, inputs: dict[str, Tensor]) -> Tensor:
    """Weights (of a crop: a frame) of the look's shape that are not the model's own."""
    if look.kind == "crop":
        size = inputs["images"].shape[-2:]
        whole, small = (0.0, 0.0, float(size[1]), float(size[0])), (3.0, 5.0, 11.0, 20.0)
        box = torch.tensor(whole if kind == "uniform" else small, dtype=torch.float64).expand(len(look.frame), 4)
        frame = geometry.crop_frame(box, look.grid)  # (B,2,3)
        return frame + 0.05 * torch.rand_like(frame) if kind == "random" else frame
    weights = look.weights
    cells = weights.flatten(-2) if look.is_spatial else weights  # (B[,T],N)
    if kind == "uniform":
        made = torch.full_like(cells, 1 / cells.shape[-1])
    elif kind == "one-hot":
        lead = torch.arange(cells[..., 0].numel()).reshape(cells.shape[:-1])
        made = F.one_hot((3 * lead + 1) % cells.shape[-1], cells.shape[-1]).to(cells)
    else:
        made = 0.01 + 0.98 * torch.rand_like(cells)
        made = made / made.sum(-1, keepdim=True) if look.norm == "softmax" else made
    return made.reshape(weights.shape)


@every_variant
def test_its_own_attention_given_back_changes_nothing(name: str) -> None:
    model, inputs = doubled(name)
    own = model(**inputs)
    given = own.trace.as_given()
    assert tuple(given) == model.look_names == tuple(look.name for look in own.trace.looks)
    assert_same(model(**inputs, attention=given).aux, own.aux, **EXACT)
    for look, weights in given.items():
        assert_same(model(**inputs, attention={look: weights}).aux, own.aux, **EXACT)


def assert_used(output: Output, name: str, given: Tensor) -> None:
    """The look ``name`` shows what was given, and its context is what the look alone makes of the features."""
    look = output.trace.look(name)
    if look.kind == "crop":
        torch.testing.assert_close(look.frame, given, **EXACT)
    else:
        assert torch.equal(look.weights, given)
    if look.role in USED:
        context = look.rebuild(output.aux.acts[name].values)
        torch.testing.assert_close(context, output.aux.acts[name].context, **EXACT)
    if look.role == "policy":
        assert torch.equal(look.choice, given.flatten(-2).argmax(-1))


@every_variant
def test_other_weights_are_used_as_they_are(name: str) -> None:
    """One look at a time, then all of them."""
    model, inputs = doubled(name)
    own = model(**inputs)
    for kind in ("uniform", "one-hot", "random"):
        given = {look.name: other(look, kind, inputs) for look in own.trace.looks}
        for look, weights in given.items():
            output = model(**inputs, attention={look: weights})
            assert_used(output, look, weights)
            output.trace.validate()
            if kind == "one-hot":
                assert (output.logits - own.logits).abs().max() > 1e-6, look
        together = model(**inputs, attention=given)
        for look, weights in given.items():
            assert_used(together, look, weights)


@every_model
def test_scores_stay_the_models_own(name: str) -> None:
    """Of the first look, and of its first step: what comes later sees what was given before."""
    model, inputs = doubled(name)
    own = model(**inputs)
    if not shows_looks(name):
        assert own.trace.looks == ()
        return
    first = own.trace.looks[0]
    given = {first.name: other(first, "one-hot", inputs)}
    look = model(**inputs, attention=given).trace.looks[0]
    if first.scores is None:
        assert look.scores is None
    else:
        here = (slice(None), 0) if first.has_steps else ...
        assert torch.equal(look.scores[here], first.scores[here])


@every_model
def test_the_answer_has_a_gradient_with_respect_to_given_weights(name: str) -> None:
    """Whatever repeats has one at every step that comes before the last word or label."""
    model, inputs = doubled(name)
    for look in model(**inputs).trace.looks:
        if not is_used(name, look):
            continue
        given = other(look, "random", inputs).requires_grad_()
        model(**inputs, attention={look.name: given}).logits.square().sum().backward()
        assert given.grad.isfinite().all()
        each = given.grad.flatten(2) if look.has_steps else given.grad.flatten(1)  # (B[,T],N)
        assert (each.abs().sum(-1) > 0).all(), look.name


@pytest.mark.parametrize("name", KINDS)
def test_what_fits_no_look_is_refused_by_the_name_of_the_look(name: str) -> None:
    """Another shape, a number below zero, NaN, and looks that there are not. A frame of a crop may be negative."""
    model, inputs = doubled(name)
    trace = model(**inputs).trace
    for look, weights in trace.as_given().items():
        for wrong in (weights[:1], weights[..., :-1], weights.unsqueeze(1)):
            expected = rf"'{look}': expected shape \({','.join(map(str, weights.shape))}\), got"
            with pytest.raises(ShapeError, match=expected):
                model(**inputs, attention={look: wrong})
        for number in (-0.5, torch.nan) if trace.look(look).kind != "crop" else ():
            wrong = weights.clone()
            wrong.view(-1)[0] = number
            with pytest.raises(DataError, match=look):
                model(**inputs, attention={look: wrong})
        with pytest.raises(ConfigError, match=f"no look '{look}x': did you mean '{look}'"):
            model(**inputs, attention={look: weights, f"{look}x": weights})


def hsal() -> tuple[HsalModel, Tensor, Output]:
    model, inputs = doubled("hsal")
    return model, inputs["images"], model(**inputs)


def test_given_glimpses_are_the_cells_that_are_seen() -> None:
    model, images, own = hsal()
    cells = (own.aux.acts["glimpse"].choice + 1) % (model.grid[0] * model.grid[1])  # (B,T·k)
    weights = F.one_hot(cells, model.grid[0] * model.grid[1]).double().unflatten(-1, model.grid)  # (B,T·k,h,w)
    raw = model(images, attention={"glimpse": weights}).aux
    by_label = cells.unflatten(1, (model.steps, -1))  # (B,T,k)
    assert torch.equal(raw.location, by_label)
    torch.testing.assert_close(
        raw.location_reward, raw.acts["priority"].weights.flatten(2).gather(2, by_label), rtol=0, atol=0
    )
    assert raw.acts["glimpse"].log_prob.abs().max() == 0
    assert (raw.location_log_prob < 0).all()  # of the model's own scores
    assert (raw.acts["inhibited"].weights.flatten(2).gather(2, by_label) == 0).all()


@pytest.fixture(params=["sat-soft", "sat-hard"])
def captioner(request: pytest.FixtureRequest) -> tuple[SatModel, Tensor]:
    model, inputs = doubled(request.param)
    return model, model.encode(inputs["images"])


@pytest.mark.parametrize("search", [{}, {"width": 3, "captions": 2}])
def test_a_search_with_given_weights_agrees_with_the_words_told_with_them(
    captioner: tuple[SatModel, Tensor], search: dict[str, Any]
) -> None:
    """Its log p is that of its words under the same weights, and these are the weights that it shows."""
    model, encoding = captioner
    given = torch.rand(len(encoding), model.config.longest, *model.grid).double()
    own, result = model.caption(encoding, **search), model.caption(encoding, attention={"word": given}, **search)
    assert not torch.allclose(result.log_prob, own.log_prob)
    for which in range(result.words.shape[1]):
        words = result.words[:, which]  # (B,T)
        told = model.teacher_force(encoding, words, attention={"word": given})
        each = told.logits.log_softmax(-1).gather(-1, words.clamp_min(0).unsqueeze(-1)).squeeze(-1)  # (B,T)
        torch.testing.assert_close(
            (each * (words >= 0)).sum(1).float(), result.log_prob[:, which], rtol=1e-5, atol=1e-5
        )
        shown = torch.where((words >= 0)[..., None, None], given, 0)
        assert torch.equal(result.weights[:, which], shown)


def test_without_words_the_greedy_caption_of_the_given_weights_is_told(captioner: tuple[SatModel, Tensor]) -> None:
    model, encoding = captioner
    given = {"word": torch.rand(len(encoding), model.config.longest, *model.grid).double()}
    raw = model.respond(encoding, attention=given)
    assert torch.equal(raw.acts["word"].emits, model.caption(encoding, attention=given).words[:, 0])
    assert torch.equal(raw.acts["word"].weights, given["word"])


steps_are = pytest.mark.parametrize(
    ("name", "look", "told"),
    [("sat-soft", "word", 2), ("sat-hard", "word", 1), ("hsal", "glimpse", 3), ("hsal", "covert", 1)],
)


@steps_are
def test_the_first_steps_alone_are_used_and_the_later_ones_computed_again(name: str, look: str, told: int) -> None:
    model, inputs = doubled(name)
    own = model(**inputs)
    again = model(**inputs, attention=own.trace.look(look).as_given(told))
    assert_same(again.aux, own.aux, **EXACT)
    assert again.trace.meta == {"given": [look], "given_steps": {look: told}}
    given = other(own.trace.look(look), "one-hot", inputs)[:, :told]
    changed = model(**inputs, attention={look: given})
    seen = changed.trace.look(look)
    assert torch.equal(seen.weights[:, :told], given)
    before = own.trace.look(look).weights[:, told:]
    assert not torch.allclose(seen.weights[:, told:], before)  # recomputed from what the given steps changed
    frozen = torch.cat([given, before], 1)
    assert torch.equal(model(**inputs, attention={look: frozen}).trace.look(look).weights[:, told:], before)
