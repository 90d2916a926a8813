"""Put a recorded run's model into the zoo, with its score and where it came from.

saccade evaluate RUN --json > evaluation.json
python tools/tables.py add evaluation.json RUN …
python tools/ship.py RUN evaluation.json --name soft-mref

What ships is what was scored: a run whose weights were rounded after it was added to results/ is refused.
``--beside NAME`` leaves out what the shipped model NAME has bit for bit. Where others lie beside a model that is
replaced, they are written anew and stay what they were.
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

from torch import nn

from saccade.config import from_dict
from saccade.families import model_spec
from saccade.models.io.facts import WEIGHTS, ModelFacts, Score, read_facts
from saccade.models.io.folder import load_model, save_model
from saccade.papers.published import published_for
from saccade.papers.results import recorded_runs
from saccade.zoo import ZOO, shipped


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


def leaning_on(name: str) -> dict[Path, tuple[nn.Module, ModelFacts]]:
    """The shipped models that lie beside ``name``, read while it still is the one they know."""
    bases = {folder: read_facts(folder).beside for folder in shipped().values()}
    return {folder: load_model(folder) for folder, base in bases.items() if base is not None and base.name == name}


def put(model: nn.Module, folder: Path, facts: ModelFacts, beside: str | None, *, whole: bool = False) -> None:
    """Save the model and say how large it is there."""
    kept = save_model(model, folder, facts, beside=beside, whole=whole)
    shared = f", the rest is in {kept.beside.name}" if kept.beside is not None else ""
    print(f"{folder.name}: {(folder / WEIGHTS).stat().st_size:,} bytes{shared}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("evaluation", type=Path, help="what `saccade evaluate RUN --json` printed")
    parser.add_argument("--name", required=True)
    parser.add_argument("--note", action="append", default=[], help="what else its card should say under deviations")
    parser.add_argument("--whole", action="store_true", help="write the ImageNet weights too: it loads anywhere")
    parser.add_argument("--licence", help="of the weights, where their data asks for another than the code's")
    parser.add_argument("--beside", metavar="NAME", help="a shipped model that it shares weights with")
    options = parser.parse_args()
    leaning = leaning_on(options.name)
    if leaning and options.beside is not None:
        names = ", ".join(folder.name for folder in leaning)
        sys.exit(f"{names} lies beside {options.name}, which so must be whole; leave out --beside")
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
    put(model, ZOO / options.name, facts, options.beside, whole=options.whole)
    for folder, (other, told) in leaning.items():
        put(other, folder, told, options.name)


if __name__ == "__main__":
    main()
