"""Stand-ins for published ImageNet weights, so that tests neither need the real ones nor depend on them."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from saccade.backbones import build_backbone, pretrained
from saccade.errors import DataError


def publish(monkeypatch: pytest.MonkeyPatch, seed: int = 7, backbone: str = "mobilenetv2") -> dict[str, Tensor]:
    """From now on ``backbone`` alone has published weights, drawn from ``seed``; returns them."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        weights = build_backbone(backbone).state_dict()
    monkeypatch.setattr(pretrained, "imagenet_weights", lambda name: {backbone: weights}[name])
    return weights


def withdraw(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on there are none."""

    def missing(name: str) -> dict[str, Tensor]:
        raise DataError(f"the ImageNet weights of '{name}' are not on this machine. Get them with: saccade data get")

    monkeypatch.setattr(pretrained, "imagenet_weights", missing)
