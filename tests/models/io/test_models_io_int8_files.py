"""Model folders at one byte a weight: small, the same file however often they are saved, and read with suspicion."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from saccade.errors import CheckpointError
from saccade.models.facts import Score, read_facts
from saccade.models.folder import from_rows, has_rows, load_model, save_model, store_as, to_rows
from saccade.models.soft import SoftModel
from tiny_models import change_weights, edit_config, save_tiny, tiny_facts, tiny_model

WEIGHTS = "model.safetensors"
NAME, BIAS = "head.classify.weight", "head.classify.bias"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return save_tiny(tmp_path / "tiny", dtype="int8")


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
    assert "int8" in (folder / "card.md").read_text()


def test_saved_again_it_is_the_same_file(folder: Path, tmp_path: Path) -> None:
    model, facts = load_model(folder)
    assert save_model(model, tmp_path / "again", facts) == facts
    assert (tmp_path / "again" / WEIGHTS).read_bytes() == (folder / WEIGHTS).read_bytes()


def test_what_a_byte_cannot_hold_is_named(tmp_path: Path) -> None:
    model = tiny_model(SoftModel)
    model.head.classify.bias.data[0] = 1e6
    with pytest.raises(CheckpointError, match=r"'head\.classify\.bias' .* int8"):
        save_model(model, tmp_path / "m", tiny_facts(dtype="int8"))
    model.head.classify.bias.data[0] = 0
    model.get_parameter(NAME).data[0, 0] = torch.finfo(torch.float32).max  # rows may be as large as they like
    save_model(model, tmp_path / "m", tiny_facts(dtype="int8"))
    load_model(tmp_path / "m")


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda held: held.pop(f"{NAME}.scale"), f"{NAME}.scale"),
        (lambda held: held.update({NAME: held[NAME].half()}), NAME),
        (lambda held: held.update({NAME: held[NAME][:, :7].contiguous()}), NAME),
        (lambda held: held.update({f"{NAME}.scale": torch.ones(3)}), f"{NAME}.scale"),
        (lambda held: held[f"{NAME}.scale"].fill_(torch.nan), NAME),
        (lambda held: held.update({BIAS: held[BIAS].char()}), BIAS),
        (lambda held: held.update({f"{BIAS}.scale": torch.ones(3).bfloat16()}), f"{BIAS}.scale"),
    ],
)  # fmt: skip
def test_rows_that_do_not_fit_are_named(folder: Path, change: Callable[[dict[str, Tensor]], object], name: str) -> None:
    load_model(folder)
    change_weights(folder, change)
    with pytest.raises(CheckpointError, match=f"'{re.escape(name)}'"):
        load_model(folder)


def test_types_are_taken_at_the_word_of_the_facts(folder: Path, tmp_path: Path) -> None:
    half = save_tiny(tmp_path / "half", dtype="float16")
    for place, dtype in ((folder, "float16"), (half, "int8"), (half, "float32"), (half, "float8")):
        edit_config(place, dtype=dtype)
        with pytest.raises(CheckpointError, match=r"model\.safetensors|dtype"):
            load_model(place)


def test_stored_in_another_type_it_is_what_it_would_have_been(tmp_path: Path) -> None:
    scored = save_tiny(tmp_path / "run", scores=(Score("mref", "test", 10, metrics={"accuracy": 0.5}),))
    facts = store_as(scored, "int8")
    assert read_facts(scored) == facts
    assert (facts.dtype, facts.scores) == ("int8", ())  # the score was of other weights
    assert facts.sha256 == read_facts(save_tiny(tmp_path / "from-the-start", dtype="int8")).sha256
    assert store_as(scored, "int8").sha256 == facts.sha256
    assert store_as(scored, "float32").sha256 != facts.sha256
    assert store_as(scored, "int8").sha256 == facts.sha256  # what is wider holds it too
