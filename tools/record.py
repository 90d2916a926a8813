"""Keep what a run gave: join its evaluation with how it was trained, as one file in docs/results.

saccade evaluate RUN --json > evaluation.json
python tools/record.py evaluation.json RUN --name soft-mref-unlimited-seed0 --command "saccade train …"
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

RESULTS = Path(__file__).parent.parent / "docs" / "results"
TRAINING_FACTS = ("machine", "step", "phase", "metrics", "versions", "replica")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("evaluation", type=Path)
    parser.add_argument("run", type=Path, help="the run folder that was evaluated")
    parser.add_argument("--name", required=True)
    parser.add_argument("--command", required=True, help="the command that trained it")
    parser.add_argument("--revision", help="commit of the code, where the run could not know it")
    options = parser.parse_args()
    config = json.loads((options.run / "model" / "config.json").read_text())
    last = json.loads((options.run / "metrics.jsonl").read_text().splitlines()[-1])
    facts = {key: config["training"][key] for key in TRAINING_FACTS if key in config["training"]}
    facts |= {"minutes": round(last["seconds"] / 60, 2), "steps": last["step"]}
    result = {
        "name": options.name,
        "command": options.command,
        "recipe": config["recipe"],
        "data": config["data"],
        "training": {**facts, "revision": options.revision or config.get("revision"), "sha256": config["sha256"]},
        "evaluation": {**json.loads(options.evaluation.read_text()), "model": options.name},
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{options.name}.json").write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
