"""A model saved beside another: what they share bit for bit is kept once, and nothing is lost on any way round."""

from __future__ import annotations

import copy
import dataclasses
import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from published_weights_fake import publish
from saccade.config import to_dict
from saccade.errors import CheckpointError
from saccade.models.io.card import model_card
from saccade.models.io.facts import Beside, Preprocessing, checked_beside, read_facts
from saccade.models.io.folder import load_model, save_model
from saccade.models.soft import SoftModel
from tiny_models import save_tiny, tiny_facts

WEIGHTS = "model.safetensors"


def learnt_on(model: nn.Module) -> nn.Module:
    """A copy whose head and whose one statistic of a norm are others."""
    other = copy.deepcopy(model)
    with torch.no_grad():
        other.get_parameter("head.classify.weight").add_(0.5)
        other.get_buffer("head.norm.running_mean").add_(1)
    return other


CHANGED = {"head.classify.weight", "head.norm.running_mean"}


@pytest.fixture(params=["float32", "float16", "int8"])
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder with the models ``first`` and, beside it, ``second``."""
    first, facts = load_model(save_tiny(tmp_path / "first", dtype=request.param))
    save_model(learnt_on(first), tmp_path / "second", facts, beside="first")
    return tmp_path


def edit_config(folder: Path, **changes: object) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def written(folder: Path) -> set[str]:
    """The names of the tensors that the weights file holds, be they whole or numbers and scales."""
    return {name.removesuffix(".scale") for name in load_file(folder / WEIGHTS)}


def assert_same_state(one: nn.Module, other: nn.Module) -> None:
    for (name, left), right in zip(one.state_dict().items(), other.state_dict().values(), strict=True):
        assert torch.equal(left, right), name
        assert left.dtype == right.dtype, name


def test_only_what_differs_is_written_and_the_model_is_whole_again(pair: Path) -> None:
    assert written(pair / "second") == CHANGED
    (first, base), (second, facts) = load_model(pair / "first"), load_model(pair / "second")
    assert facts.beside == Beside("first", base.sha256)
    assert facts.base is None
    for name, tensor in first.state_dict().items():
        assert torch.equal(tensor, second.state_dict()[name]) == (name not in CHANGED), name
    inputs, _ = SoftModel.example_batch(3, 0)
    assert not torch.equal(first(**inputs).logits, second(**inputs).logits)


def test_saved_again_it_needs_nobody(pair: Path) -> None:
    second, facts = load_model(pair / "second")
    again = save_model(second, pair / "elsewhere" / "again", facts)
    assert again.beside is None
    assert written(pair / "elsewhere" / "again") == set(second.state_dict())
    shutil.rmtree(pair / "first")
    assert_same_state(load_model(pair / "elsewhere" / "again")[0], second)


def test_a_whole_copy_is_the_same_file_whichever_way_it_went(tmp_path: Path) -> None:
    """So a recorded digest can be confirmed: half precision read and written again gives the same bytes."""
    save_tiny(tmp_path / "first", dtype="float16")
    model, facts = load_model(save_tiny(tmp_path / "whole", dtype="float16"))
    lying = save_model(model, tmp_path / "second", facts, beside="first")
    assert lying.sha256 != facts.sha256
    assert save_model(load_model(tmp_path / "second")[0], tmp_path / "third", lying).sha256 == facts.sha256


def test_a_tensor_that_is_off_by_one_bit_is_written(tmp_path: Path) -> None:
    model, facts = load_model(save_tiny(tmp_path / "first"))
    name = "head.classify.weight"
    first_weight = model.get_parameter(name).data.flatten()[:1]
    first_weight.copy_(torch.nextafter(first_weight, torch.tensor(torch.inf)))
    save_model(model, tmp_path / "second", facts, beside="first")
    assert set(load_file(tmp_path / "second" / WEIGHTS)) == {name}
    assert_same_state(load_model(tmp_path / "second")[0], model)


def test_a_tensor_of_another_shape_is_written(tmp_path: Path) -> None:
    save_tiny(tmp_path / "first")
    torch.manual_seed(0)
    sizes = dataclasses.replace(SoftModel.tiny(), answers=2)
    model = SoftModel(sizes).eval()
    save_model(model, tmp_path / "second", tiny_facts(model=to_dict(sizes), answers=("yes", "no")), beside="first")
    written = load_file(tmp_path / "second" / WEIGHTS)
    assert {"head.classify.weight", "head.classify.bias"} <= set(written) < set(model.state_dict())
    assert_same_state(load_model(tmp_path / "second")[0], model)


def test_models_that_share_nothing_stay_apart(tmp_path: Path) -> None:
    model, facts = load_model(save_tiny(tmp_path / "first"))
    for tensor in model.state_dict().values():
        tensor.add_(1)
    assert save_model(model, tmp_path / "second", facts, beside="first").beside is None
    shutil.rmtree(tmp_path / "first")
    load_model(tmp_path / "second")


def test_over_published_weights_the_neighbour_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One tensor is as published in the second model only: the first one's must not take its place."""
    weights = publish(monkeypatch)
    torch.manual_seed(0)
    sizes = dataclasses.replace(SoftModel.tiny(), backbone="mobilenetv2", pretrained=True, through="block1")
    facts = tiny_facts(model=to_dict(sizes), preprocessing=Preprocessing((64, 64)))
    model = SoftModel(sizes).eval()
    model.load_pretrained()
    names = [name for name, _ in model.named_parameters() if name.startswith("backbone.stages.block1.")][:2]
    with torch.no_grad():
        for name in names:
            model.get_parameter(name).add_(0.25)
        save_model(model, tmp_path / "first", facts)
        model.get_parameter(names[0]).copy_(weights[names[0].removeprefix("backbone.")])
    kept = save_model(model, tmp_path / "second", facts, beside="first")
    assert kept.base is not None
    assert kept.beside is not None
    assert set(load_file(tmp_path / "second" / WEIGHTS)) == {names[0]}
    assert_same_state(load_model(tmp_path / "second")[0], model)


def test_a_link_leads_to_the_neighbour_too(pair: Path) -> None:
    (pair / "far").mkdir()
    (pair / "far" / "link").symlink_to(pair / "second", target_is_directory=True)
    assert_same_state(load_model(pair / "far" / "link")[0], load_model(pair / "second")[0])


def test_a_folder_copied_alone_says_what_it_lacks(pair: Path) -> None:
    shutil.copytree(pair / "second", pair / "far" / "second")
    with pytest.raises(CheckpointError, match=r"leaves out what 'first' has, .* no .*far/first/model\.safetensors;"):
        load_model(pair / "far" / "second")
    shutil.copytree(pair / "first", pair / "far" / "first")
    assert_same_state(load_model(pair / "far" / "second")[0], load_model(pair / "second")[0])


def test_another_neighbour_is_refused(pair: Path) -> None:
    save_tiny(pair / "first", seed=8)
    with pytest.raises(CheckpointError, match=r"first/model\.safetensors is another one or damaged \(SHA-256 .* put"):
        load_model(pair / "second")
    facts = read_facts(pair / "second")
    with pytest.raises(CheckpointError, match="is another one or damaged"):
        checked_beside(pair / "second", facts)
    assert checked_beside(pair / "first", read_facts(pair / "first")) is None


def test_without_its_entry_a_tensor_is_missing(pair: Path) -> None:
    edit_config(pair / "second", beside=None)
    with pytest.raises(CheckpointError, match="no tensor '"):
        load_model(pair / "second")


@pytest.mark.parametrize("name", ["../first", "/etc", "a/b", "a\\b", "..", ".", ""])
def test_a_neighbour_is_a_name_and_not_a_path(pair: Path, name: str) -> None:
    edit_config(pair / "second", beside={"name": name, "sha256": "ab" * 32})
    with pytest.raises(CheckpointError, match="that of a folder beside, not a path"):
        load_model(pair / "second")


def test_what_one_cannot_lie_beside(pair: Path) -> None:
    model, facts = load_model(pair / "second")
    before = (pair / "second" / WEIGHTS).read_bytes()
    with pytest.raises(CheckpointError, match="'second' is not another folder beside it"):
        save_model(model, pair / "second", facts, beside="second")
    with pytest.raises(CheckpointError, match="'far/first' is not another folder beside it"):
        save_model(model, pair / "second", facts, beside="far/first")
    with pytest.raises(CheckpointError, match="none: not a model folder"):
        save_model(model, pair / "second", facts, beside="none")
    with pytest.raises(CheckpointError, match="leaves out weights itself; save beside 'first'"):
        save_model(model, pair / "third", facts, beside="second")
    (pair / "first" / WEIGHTS).write_bytes(b"damaged")
    with pytest.raises(CheckpointError, match=r"first/model\.safetensors: damaged"):
        save_model(model, pair / "second", facts, beside="first")
    assert (pair / "second" / WEIGHTS).read_bytes() == before


def test_the_card_names_the_neighbour(pair: Path) -> None:
    facts = read_facts(pair / "second")
    assert facts.beside is not None
    line = f"- beside the model `first`, with which it shares weights (SHA-256 `{facts.beside.sha256}`), which it needs"
    assert line in (pair / "second" / "card.md").read_text(encoding="utf-8")
    assert "beside" not in model_card(read_facts(pair / "first"))
