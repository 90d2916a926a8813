"""Score a shipped model again, and put the evaluation into its record and its model folder.

python tools/rescore.py hattnet-mref hattnet-mdist --device cuda

For scores whose definition changed while the weights did not. The record in docs/results is the one with the same
weights; how it was trained stays as it is. Run ``python tools/tables.py`` afterwards.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import saccade
from saccade.models.io.card import model_card
from saccade.models.io.facts import CARD, CONFIG, read_facts
from saccade.zoo import ZOO, shipped

RESULTS = Path(__file__).parent.parent / "docs" / "results"


def record_of(sha256: str) -> Path:
    """The file of the run with these weights."""
    for path in sorted(RESULTS.glob("*.json")):
        if json.loads(path.read_text(encoding="utf-8"))["training"]["sha256"] == sha256:
            return path
    sys.exit(f"no record in {RESULTS} is of weights {sha256[:12]}…; record the run first (tools/record.py)")


def rescore(name: str, device: str, data: str | None) -> None:
    """Evaluate the shipped model ``name`` on as much as its record has, and write both."""
    folder = ZOO / name
    config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    path = record_of(config["sha256"])
    record = json.loads(path.read_text(encoding="utf-8"))
    old: dict[str, Any] = record["evaluation"]
    found = saccade.evaluate(
        name, data=data, split=old["split"], seed=old["seed"] or 0, device=device, allow_pack=False
    )
    for key in ("n", "glyphs", "data"):
        if found.get(key) != old.get(key):
            sys.exit(f"{name}: {key} is {found.get(key)}, its record has {old.get(key)}; nothing is written")
    for metric, value in old["metrics"].items():
        if isinstance(value, float) and abs(value - found["metrics"][metric]) > 0.002:
            sys.exit(
                f"{name}: {metric} is {found['metrics'][metric]:.4f}, its record has {value:.4f}; nothing is written"
            )
    record["evaluation"] = {**found, "model": old["model"]}
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    kept = config["scores"][0]
    config["scores"] = [{**kept, **{key: value for key, value in found.items() if key != "model"}}]
    (folder / CONFIG).write_text(json.dumps(config, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    (folder / CARD).write_text(model_card(read_facts(folder)), encoding="utf-8")
    print(f"{name}: {path.name}, definition {found['definition']}, {found['seconds']:.0f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", choices=sorted(shipped()), metavar="MODEL")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--data", help="READER:PATH, for a model of pictures that do not ship")
    options = parser.parse_args()
    for name in options.models:
        rescore(name, options.device, options.data)


if __name__ == "__main__":
    main()
