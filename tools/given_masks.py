"""Ask a shipped residual attention network with its own masks and with others in their place, and keep it for the docs.

python tools/given_masks.py ran-56-cifar10 --count 2000       (CIFAR-10 in the cache: saccade data get cifar10)

The masks of another picture are those of the next one in the official order, which is shuffled. How far a mask varies
is its standard deviation: of one channel over the cells, and of its mean over the channels, which is what is drawn.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from saccade.families.classify.data import LabelData, LabelDataConfig
from saccade.models.ran import RanModel
from saccade.predict import load

MASKS = Path(__file__).parent.parent / "docs" / "results" / "masks"
BATCH = 100


@torch.inference_mode()
def study(name: str, count: int) -> dict[str, Any]:
    """Right answers by which masks were used, and how much the model's own vary."""
    predictor = load(name)
    model = predictor.model
    assert isinstance(model, RanModel)
    data = LabelData(LabelDataConfig(name="cifar10", size=(32, 32)), "test", predictor.device)
    right: dict[str, int] = {}
    spread: dict[str, list[Tensor]] = {}
    for start in range(0, count, BATCH):
        batch = data.take(torch.arange(start, min(start + BATCH, count)))
        raw = model.forward_raw(batch.images)
        for kind, given in others({look: raw[f"{look}.full"] for look in model.look_names}).items():
            logits = (model.forward_raw(batch.images, attention=given) if given else raw)["logits"]
            right[kind] = right.get(kind, 0) + int((logits.argmax(1) == batch.label).sum())
        for look in model.look_names:
            parts = (raw[f"{look}.full"].flatten(2).std(2).mean(1), raw[f"{look}.weights"].flatten(1).std(1))
            spread.setdefault(look, []).append(torch.stack(parts, dim=1))  # (B,2)
    varies = {look: [round(value, 5) for value in torch.cat(parts).mean(0).tolist()] for look, parts in spread.items()}
    return {"model": name, "data": "cifar10", "split": "test", "n": count, "right": right, "varies": varies}


def others(own: dict[str, Tensor]) -> dict[str, dict[str, Tensor]]:
    """What is given in place of masks (B,C,h,w); nothing: the model's own are used."""
    return {
        "own": {},
        "own, without places": {look: mask.mean((2, 3), keepdim=True).expand_as(mask) for look, mask in own.items()},
        "of another picture": {look: mask.roll(1, 0) for look, mask in own.items()},
        "½ everywhere": {look: torch.full_like(mask, 0.5) for look, mask in own.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a zoo name")
    parser.add_argument("--count", type=int, default=2000, help="test pictures")
    options = parser.parse_args()
    MASKS.mkdir(exist_ok=True)
    (MASKS / f"{options.model}.json").write_text(
        json.dumps(study(options.model, options.count), indent=1, ensure_ascii=False) + "\n"
    )


if __name__ == "__main__":
    main()
