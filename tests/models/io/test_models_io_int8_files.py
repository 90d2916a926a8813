"""Model folders at one byte a weight: small, the same file however often they are saved, and read with suspicion."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from saccade.errors import CheckpointError
from saccade.models.io.card import model_card
from saccade.models.io.facts import Score, read_facts
from saccade.models.io.folder import load_model, save_model, store_as
from saccade.models.io.int8_rows import from_rows, has_rows, to_rows
from saccade.models.io.stored import to_stored
from saccade.models.soft import SoftModel
from tiny_models import save_tiny, tiny_facts

WEIGHTS = "model.safetensors"
NAME, BIAS = "head.classify.weight", "head.classify.bias"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return save_tiny(tmp_path / "tiny", dtype="int8")


def rewrite(folder: Path, change: Callable[[dict[str, Tensor]], object]) -> None:
    """Change what the weights file holds, and give it a digest that fits."""
    tensors = load_file(folder / WEIGHTS)
    change(tensors)
    save_file(tensors, folder / WEIGHTS)
    edit_config(folder, sha256=hashlib.sha256((folder / WEIGHTS).read_bytes()).hexdigest())


def edit_config(folder: Path, **changes: object) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_parameters_with_rows_are_bytes_and_the_others_half(folder: Path, tmp_path: Path) -> None:
    written, (model, facts) = load_file(folder / WEIGHTS), load_model(folder)
    whole = load_file(save_tiny(tmp_path / "whole") / WEIGHTS)
    parameters = {name for name, _ in model.named_parameters()}
    rounded = {name for name in parameters if has_rows(whole[name].shape)}
    assert facts.dtype == "int8"
    assert NAME in rounded < parameters
    assert set(written) == set(whole) | {f"{name}.scale" for name in rounded}
    for name, found in model.state_dict().items():
        assert found.dtype == whole[name].dtype
        if name in rounded:
            assert written[name].dtype == torch.int8
            assert torch.equal(found, from_rows(*to_rows(whole[name])))
        elif name in parameters:
            assert written[name].dtype == torch.float16
            assert torch.equal(found, whole[name].half().float())
        else:  # statistics stay as they are
            assert torch.equal(found, whole[name])
    assert "parameters as int8" in (folder / "card.md").read_text()
    assert "parameters as int8" in model_card(facts)


def test_bytes_change_answers_by_little(folder: Path, tmp_path: Path) -> None:
    inputs, _ = SoftModel.example_batch(4, 0)
    logits = [load_model(each)[0](**inputs).logits for each in (folder, save_tiny(tmp_path / "whole"))]
    assert not torch.equal(*logits)
    torch.testing.assert_close(*logits, rtol=0, atol=2e-2)


def test_saved_again_it_is_the_same_file(folder: Path, tmp_path: Path) -> None:
    model, facts = load_model(folder)
    assert save_model(model, tmp_path / "again", facts) == facts
    assert (tmp_path / "again" / WEIGHTS).read_bytes() == (folder / WEIGHTS).read_bytes()


def test_what_a_byte_cannot_hold_is_named(tmp_path: Path) -> None:
    model = SoftModel(SoftModel.tiny())
    model.head.classify.bias.data[0] = 1e6
    with pytest.raises(CheckpointError, match=r"'head\.classify\.bias' .* too large for int8; save it as float32"):
        save_model(model, tmp_path / "m", tiny_facts(dtype="int8"))
    model.head.classify.bias.data[0] = 0
    model.get_parameter(NAME).data[0, 0] = torch.finfo(torch.float32).max  # rows may be as large as they like
    save_model(model, tmp_path / "m", tiny_facts(dtype="int8"))
    load_model(tmp_path / "m")


def test_rounded_alike_is_the_same(folder: Path, tmp_path: Path) -> None:
    """Two runs began with one backbone and neither has been rounded yet: it is kept once nevertheless."""
    torch.manual_seed(0)
    model = SoftModel(SoftModel.tiny())  # as in the folder, before it was rounded
    model.get_parameter(NAME).data.add_(0.25)
    lying = save_model(model, tmp_path / "second", tiny_facts(dtype="int8"), beside="tiny")
    assert lying.beside is not None
    assert set(load_file(tmp_path / "second" / WEIGHTS)) == {NAME, f"{NAME}.scale"}
    alone = save_model(model, tmp_path / "elsewhere" / "alone", tiny_facts(dtype="int8"))
    again = save_model(load_model(tmp_path / "second")[0], tmp_path / "elsewhere" / "again", lying)
    assert again.sha256 == alone.sha256 != lying.sha256


@pytest.mark.parametrize(("first", "second"), [("float16", "int8"), ("int8", "float32"), ("float32", "int8")])
def test_a_neighbour_of_another_type_does_not_change_what_is_stored(tmp_path: Path, first: str, second: str) -> None:
    """A whole copy is the same file whichever way it went, so nothing finer or coarser may be borrowed."""
    save_tiny(tmp_path / "first", dtype=first)
    model, facts = load_model(tmp_path / "first")[0], tiny_facts(dtype=second)
    alone = save_model(model, tmp_path / "alone", facts)
    save_model(model, tmp_path / "second", facts, beside="first")
    whole = save_model(load_model(tmp_path / "second")[0], tmp_path / "whole", facts)
    assert whole.sha256 == alone.sha256
    for name, tensor in load_model(tmp_path / "second")[0].state_dict().items():
        assert torch.equal(tensor, load_model(tmp_path / "whole")[0].state_dict()[name]), name


def test_a_parameter_that_is_called_scale_is_one(tmp_path: Path) -> None:
    model = torch.nn.ParameterDict({"scale": torch.rand(3, 5), "weight": torch.rand(3, 5)})
    stored = to_stored(model, "int8")
    assert set(stored.tensors) == {"scale", "scale.scale", "weight", "weight.scale"}
    assert to_stored(model, "int8", stored.tensors).tensors == {}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda held: held.pop(f"{NAME}.scale"), r"no tensor 'head\.classify\.weight\.scale'"),
        (lambda held: held.pop(NAME), r"no tensor 'head\.classify\.weight'"),
        (lambda held: held.update({NAME: torch.zeros(3, 8)}), r"should be torch\.int8, found torch\.float32"),
        (lambda held: held.update({NAME: held[NAME].half()}), r"should be torch\.int8, found torch\.float16"),
        (lambda held: held.update({NAME: held[NAME].view(torch.uint8)}), r"torch\.int8, found torch\.uint8"),
        (lambda held: held.update({NAME: held[NAME][:, :7].contiguous()}), r"be \(3, 8\), found \(3, 7\)"),
        (lambda held: held.update({NAME: held[NAME][:2].clone()}), r"be \(3, 8\), found \(2, 8\)"),
        (lambda held: held.update({NAME: held[NAME][:, 0].clone()}), r"be \(3, 8\), found \(3,\)"),
        (lambda held: held.update({f"{NAME}.scale": torch.ones(3)}), r"bfloat16 .* found torch\.float32 \(3,\)"),
        (lambda held: held.update({f"{NAME}.scale": torch.ones(8).bfloat16()}), r"found torch\.bfloat16 \(8,\)"),
        (lambda held: held[f"{NAME}.scale"].fill_(torch.nan), "holds NaN, infinity or a number below 0"),
        (lambda held: held[f"{NAME}.scale"].fill_(torch.inf), "holds NaN, infinity or a number below 0"),
        (lambda held: held[f"{NAME}.scale"].neg_(), "holds NaN, infinity or a number below 0"),
        (lambda held: held[f"{NAME}.scale"].fill_(3e38), r"'head\.classify\.weight' holds NaN or infinity"),
        (lambda held: held.update({BIAS: held[BIAS].char()}), r"float16, found torch\.int8"),
        (lambda held: held.update({f"{BIAS}.scale": torch.ones(3).bfloat16()}), r"unexpected .*classify\.bias\.scale'"),
        (lambda held: held.update({"other.scale": torch.ones(3).bfloat16()}), r"unexpected tensor 'other\.scale'"),
    ],
)  # fmt: skip
def test_rows_that_do_not_fit_are_named(folder: Path, change: Callable[[dict[str, Tensor]], object], told: str) -> None:
    load_model(folder)
    rewrite(folder, change)
    with pytest.raises(CheckpointError, match=told):
        load_model(folder)


def test_types_are_taken_at_the_word_of_the_facts(folder: Path, tmp_path: Path) -> None:
    edit_config(folder, dtype="float16")
    with pytest.raises(CheckpointError, match=r"should be torch\.float16, found torch\.int8"):
        load_model(folder)
    half = save_tiny(tmp_path / "half", dtype="float16")
    edit_config(half, dtype="int8")
    with pytest.raises(CheckpointError, match=r"should be torch\.int8, found torch\.float16"):
        load_model(half)


def test_a_neighbour_is_read_with_the_same_suspicion(folder: Path, tmp_path: Path) -> None:
    model, facts = load_model(folder)
    save_model(model, tmp_path / "second", facts, beside="tiny")
    rewrite(folder, lambda held: held.pop(f"{NAME}.scale"))
    edit_config(tmp_path / "second", beside={"name": "tiny", "sha256": read_facts(folder).sha256})
    with pytest.raises(CheckpointError, match=r"second.* leaves out: no tensor 'head\.classify\.weight\.scale'"):
        load_model(tmp_path / "second")
    with pytest.raises(CheckpointError, match=r"the model beside: no tensor 'head\.classify\.weight\.scale'"):
        save_model(model, tmp_path / "third", facts, beside="tiny")


def test_stored_in_another_type_it_is_what_it_would_have_been(tmp_path: Path) -> None:
    scored = save_tiny(tmp_path / "run", scores=(Score("mref", "test", 10, metrics={"accuracy": 0.5}),))
    facts = store_as(scored, "int8")
    assert read_facts(scored) == facts
    assert (facts.dtype, facts.scores) == ("int8", ())  # the score was of other weights
    assert facts.sha256 == read_facts(save_tiny(tmp_path / "from-the-start", dtype="int8")).sha256
    assert store_as(scored, "int8").sha256 == facts.sha256
    assert store_as(scored, "float32").sha256 != facts.sha256
    assert store_as(scored, "int8").sha256 == facts.sha256  # what is wider holds it too


def test_stored_in_another_type_it_still_lies_beside(folder: Path, tmp_path: Path) -> None:
    model, facts = load_model(folder)
    model.get_parameter(NAME).data.add_(0.25)
    save_model(model, tmp_path / "second", dataclasses.replace(facts, dtype="float32"), beside="tiny")
    assert store_as(tmp_path / "second", "int8").beside is not None
    assert set(load_file(tmp_path / "second" / WEIGHTS)) == {NAME, f"{NAME}.scale"}
