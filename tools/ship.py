"""Put a recorded run's model into the zoo, with its score and where it came from.

saccade evaluate RUN --json > evaluation.json
python tools/tables.py add evaluation.json RUN …
python tools/ship.py RUN evaluation.json --name soft-mref

What ships is what was scored: a run whose weights were rounded after it was added to results/ is refused.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import inspect
import json
import re
import sys
from pathlib import Path

from saccade.config import from_dict
from saccade.families import model_spec
from saccade.models.facts import WEIGHTS, Score
from saccade.models.folder import load_model, save_model
from saccade.papers.results import published_for, recorded_runs
from saccade.zoo.folders import ZOO


def deviations(architecture: str) -> tuple[str, ...]:
    """What the model's source file, and those of the classes it is built on, say under "Deviations from the paper"."""
    found = []
    for base in model_spec(architecture).load().__mro__:
        if base.__module__.startswith("saccade.models"):
            text = ast.get_docstring(ast.parse(Path(inspect.getfile(base)).read_text())) or ""
            match = re.search(r"Deviations from the paper[^:]*:\s*(.*?)(?:\n\n|$)", text, re.DOTALL)
            found += items(match[1]) if match else []
    return tuple(text for text in found if not text.startswith("none"))


def items(text: str) -> list[str]:
    """The points of a list, each in one line; a text that is no list is one."""
    return [plain(" ".join(item.split())) for item in re.split(r"(?:^|\n)- ", text) if item.strip()]


def plain(text: str) -> str:
    """Without the marks that documentation puts around the names of things."""
    return re.sub(r":\w+:`[~.]*([^`]+)`", r"`\1`", text).replace("``", "`")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("evaluation", type=Path, help="what `saccade evaluate RUN --json` printed")
    parser.add_argument("--name", required=True)
    parser.add_argument("--note", action="append", default=[], help="what else its card should say under deviations")
    parser.add_argument("--whole", action="store_true", help="write the ImageNet weights too: it loads anywhere")
    parser.add_argument("--licence", help="of the weights, where their data asks for another than the code's")
    options = parser.parse_args()
    model, facts = load_model(options.run / "model")
    recorded = [run for run in recorded_runs().values() if run.sha256 and facts.sha256.startswith(run.sha256)]
    if not recorded:
        sys.exit(f"no run in results/ has the weights of {options.run}; evaluate it and add it (tools/tables.py add)")
    found = recorded[0]
    known = {field.name for field in dataclasses.fields(Score)}
    evaluation = {key: value for key, value in json.loads(options.evaluation.read_text()).items() if key in known}
    score = from_dict(Score, evaluation | {"model": options.name})
    score = dataclasses.replace(score, published=published_for(facts))
    training = {**facts.training, "minutes": float(found.minutes or 0), "sha256": facts.sha256}
    facts = dataclasses.replace(
        facts,
        name=options.name,
        scores=(score,),
        deviations=(*deviations(facts.architecture), *options.note),
        revision=found.commit or facts.revision,
        licence=options.licence or facts.licence,
        training={**training, "command": found.command},
    )
    save_model(model, ZOO / options.name, facts, whole=options.whole)
    print(f"{options.name}: {(ZOO / options.name / WEIGHTS).stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
