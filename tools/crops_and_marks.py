"""How right each scale of a shipped RA-CNN is, by how much of the mark its crop holds; kept for the docs.

python tools/crops_and_marks.py racnn-details --count 1000

A crop that holds nothing of the mark shows no more than the colour: a quarter of the answers would be right. What is
right beyond that was told by where the crop lies, which the scale before chose, knowing the mark.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import torch

from saccade.families.classify.data import LabelData, LabelDataConfig
from saccade.families.classify.zoom_scores import crops_of, scale_values
from saccade.metrics.intervals import Values
from saccade.metrics.maps.edits import covers_evidence
from saccade.models.racnn import CROPS, RacnnModel
from saccade.predict import load

FOLDER = Path(__file__).parent.parent / "docs" / "results" / "crops"
BATCH = 50
SHARES = {"nothing": (-1.0, 0.0), "up to half": (0.0, 0.5), "more": (0.5, 2.0)}
"""Of the mark in the crop: above the first, up to the second."""


@torch.inference_mode()
def study(name: str, count: int) -> dict[str, Any]:
    """Pictures and right answers by scale and by share of the mark."""
    predictor = load(name)
    model = predictor.model
    assert isinstance(model, RacnnModel)
    data = LabelData(LabelDataConfig(name="details", size=model.config.input_size), "test", predictor.device)
    values = Values()
    for start in range(0, count, BATCH):
        batch = data.take(torch.arange(start, min(start + BATCH, count)))
        assert batch.evidence is not None
        raw = model.forward_raw(batch.images)
        covers = {scale: covers_evidence(boxes, batch.evidence) for scale, boxes in crops_of(model, raw).items()}
        values.add_values(scale_values(raw, batch.label) | covers)
    found: dict[str, dict[str, list[int]]] = {}
    for scale in CROPS:
        for share, (low, high) in SHARES.items():
            chosen = (values[scale] > low) & (values[scale] <= high)
            right = int(values[f"{scale}_accuracy"][chosen].sum())
            found.setdefault(scale, {})[share] = [right, int(chosen.sum())]
    return {"model": name, "data": "details", "split": "test", "n": count, "right": found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a zoo name")
    parser.add_argument("--count", type=int, default=1000, help="test pictures")
    options = parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    found = json.dumps(study(options.model, options.count), indent=1)
    (FOLDER / f"{options.model}.json").write_text(found + "\n", "utf-8")


if __name__ == "__main__":
    main()
