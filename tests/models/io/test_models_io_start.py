"""Beginning with another model's weights."""

from __future__ import annotations

import pytest
import torch

from saccade.errors import ConfigError
from saccade.families import model_spec
from saccade.models.folder import load_matching


def built(name: str = "soft", seed: int = 0, **settings: object) -> torch.nn.Module:
    torch.manual_seed(seed)
    return model_spec(name).build({"channels": 4, "depth": 2, "hidden": 8, **settings})


def test_what_fits_is_taken_and_the_rest_keeps_its_own() -> None:
    old, new = built(), built(seed=1, answers=7)
    before = {name: tensor.clone() for name, tensor in new.state_dict().items()}
    left = load_matching(new, old.state_dict(), "old")
    assert left == ("head.classify.weight", "head.classify.bias")
    for name, tensor in new.state_dict().items():
        assert torch.equal(tensor, before[name] if name in left else old.state_dict()[name]), name


def test_other_kinds_share_a_backbone() -> None:
    soft, gates = built("soft"), built("hattnet", seed=1)
    left = load_matching(gates, soft.state_dict(), "soft")
    assert all(name.startswith(("gates.", "norms.")) for name in left)
    assert any(name.startswith("gates.") for name in left)
    assert torch.equal(gates.state_dict()["backbone.stages.stage1.0.weight"], soft.backbone.stages["stage1"][0].weight)  # type: ignore[union-attr, index]


def test_nothing_fits() -> None:
    other = {"tower.weight": torch.zeros(3), "head.norm.num_batches_tracked": torch.tensor(5)}
    with pytest.raises(ConfigError, match="nothing of elsewhere fits this model"):
        load_matching(built(), other, "elsewhere")
