"""Put a recorded run's model into the zoo, with its score and where it came from.

python tools/ship.py RUN docs/results/soft-mref-unlimited-seed0.json --name soft-mref

What ships is what was scored: a run whose weights were rounded after its result was recorded is refused.
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
from saccade.models.io.facts import WEIGHTS, Score
from saccade.models.io.folder import load_model, save_model
from saccade.tasks.published import published_for
from saccade.zoo import ZOO


def deviations(architecture: str) -> tuple[str, ...]:
    """What the model's source file, and those of the classes it is built on, say under "Deviations from the paper"."""
    found = []
    for base in model_spec(architecture).resolve().__mro__:
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
    parser.add_argument("result", type=Path, help="its file in docs/results")
    parser.add_argument("--name", required=True)
    parser.add_argument("--note", action="append", default=[], help="what else its card should say under deviations")
    parser.add_argument("--whole", action="store_true", help="write the ImageNet weights too: it loads anywhere")
    parser.add_argument("--licence", help="of the weights, where their data asks for another than the code's")
    options = parser.parse_args()
    result = json.loads(options.result.read_text())
    model, facts = load_model(options.run / "model")
    if facts.sha256 != result["training"]["sha256"]:
        sys.exit(f"{options.result} is of other weights than {options.run} has now; evaluate and record it again")
    training = result["training"]
    published = published_for(facts)
    score = from_dict(Score, result["evaluation"] | {"model": options.name})
    score = dataclasses.replace(score, published=published.metrics if published else {})
    facts = dataclasses.replace(
        facts,
        name=options.name,
        scores=(score,),
        deviations=(*deviations(facts.architecture), *options.note),
        revision=result["training"]["revision"],
        licence=options.licence or facts.licence,
        training={**training, "command": result["command"]},
    )
    save_model(model, ZOO / options.name, facts, whole=options.whole)
    print(f"{options.name}: {(ZOO / options.name / WEIGHTS).stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
