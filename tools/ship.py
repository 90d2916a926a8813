"""Put a recorded run's model into the zoo, with its score and where it came from.

python tools/ship.py RUN docs/results/soft-mref-unlimited-seed0.json --name soft-mref
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import inspect
import json
import re
from pathlib import Path

from saccade.config import from_dict
from saccade.models.catalog import model_spec
from saccade.models.folder import Score, load_model, save_model
from saccade.tasks.published import PUBLISHED
from saccade.zoo import ZOO


def deviations(architecture: str) -> tuple[str, ...]:
    """What the model's source file, and those of the classes it is built on, say under "Deviations from the paper"."""
    found = []
    for base in model_spec(architecture).resolve().__mro__:
        if base.__module__.startswith("saccade.models"):
            text = ast.get_docstring(ast.parse(Path(inspect.getfile(base)).read_text())) or ""
            match = re.search(r"Deviations from the paper[^:]*:\s*(.*?)(?:\n\n|$)", text, re.DOTALL)
            found += [plain(" ".join(match[1].split()))] if match else []
    return tuple(text for text in found if not text.startswith("none"))


def plain(text: str) -> str:
    """Without the marks that documentation puts around the names of things."""
    return re.sub(r":\w+:`[~.]*([^`]+)`", r"`\1`", text).replace("``", "`")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("result", type=Path, help="its file in docs/results")
    parser.add_argument("--name", required=True)
    parser.add_argument("--note", action="append", default=[], help="what else its card should say under deviations")
    options = parser.parse_args()
    result = json.loads(options.result.read_text())
    model, facts = load_model(options.run / "model")
    published = PUBLISHED.get((facts.architecture, facts.data["name"]))
    score = from_dict(Score, result["evaluation"] | {"model": options.name})
    score = dataclasses.replace(score, published=published.metrics if published else {})
    facts = dataclasses.replace(
        facts,
        name=options.name,
        scores=(score,),
        deviations=(*deviations(facts.architecture), *options.note),
        revision=result["training"]["revision"],
        training={**result["training"], "command": result["command"]},
    )
    save_model(model, ZOO / options.name, facts)


if __name__ == "__main__":
    main()
