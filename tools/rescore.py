"""Score a shipped model again, and put the evaluation into its record and its model folder.

python tools/rescore.py hattnet-mref hattnet-mdist --device cuda
python tools/rescore.py --interventions 300
python tools/rescore.py --cards
saccade evaluate crown-cub --data cub:CUB_200_2011 --json > found.json
python tools/rescore.py crown-cub --evaluation found.json

For scores whose definition changed while the weights did not. The record in docs/results is the one with the same
weights; how it was trained stays as it is. A record of a part of the test split is replaced by one of the whole; its
numbers may then differ, while otherwise they must not. ``--evaluation`` takes an evaluation that was made before. Run
``python tools/tables.py`` afterwards.

With ``--interventions N`` only the scores of maps under intervention and of edited attention are measured, on N
examples, and put beside the scores that are there. Without names that is done for every shipped model whose data is
generated; a model that has no such scores, or whose data is not here, is told and left as it is. It can be repeated.
``--cards`` measures nothing and writes the cards of all shipped models from their facts again.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import saccade
from saccade.atomic import write_json_by_key, write_text
from saccade.errors import ConfigError, SaccadeError
from saccade.models.io.card import model_card
from saccade.models.io.facts import CARD, CONFIG, read_facts
from saccade.zoo import ZOO, shipped

RESULTS = Path(__file__).parent.parent / "docs" / "results"


def record_of(config: dict[str, Any], *, must: bool = True) -> Path | None:
    """The file of the run with the weights of a model, scored as its card says; None where there is none.

    Args:
        config: of the model folder.
        must: end with a message instead.
    """
    sha256, drawing = config["sha256"], config["scores"][0].get("drawing") or None
    for path in sorted(RESULTS.glob("*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        same_weights = record.get("training", {}).get("sha256") == sha256
        if same_weights and (drawing is None or record["evaluation"].get("drawing", drawing) == drawing):
            return path
    if not must:
        return None
    sys.exit(f"no record in {RESULTS} is of weights {sha256[:12]}…; record the run first (tools/record.py)")


def rescore(name: str, device: str, data: str | None, given: Path | None = None) -> None:
    """Evaluate the shipped model ``name`` on as much as its record has or more, and write both.

    Args:
        name: of the model.
        device: where to evaluate it.
        data: its pictures, where they do not ship.
        given: what ``saccade evaluate --json`` printed, instead of evaluating it here.
    """
    folder = ZOO / name
    config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    path = record_of(config)
    assert path is not None
    record = json.loads(path.read_text(encoding="utf-8"))
    old: dict[str, Any] = record["evaluation"]
    found: dict[str, Any]
    if given is None:
        found = saccade.evaluate(
            name, data=data, split=old["split"], drawing=config["scores"][0].get("drawing") or None,
            seed=old["seed"] or 0, device=device, allow_pack=False,
        )  # fmt: skip
    else:
        found = json.loads(given.read_text(encoding="utf-8"))
    for key in ("model", "split", "glyphs", "data"):
        wanted = name if key == "model" else old.get(key)
        if found.get(key) != wanted:
            sys.exit(f"{name}: {key} is {found.get(key)}, its record has {wanted}; nothing is written")
    found.pop("mistakes", None)  # they name files by where they lie
    if found["n"] < old["n"]:
        sys.exit(f"{name}: n is {found['n']}, its record has {old['n']}; nothing is written")
    for metric, value in old["metrics"].items() if found["n"] == old["n"] else ():
        if isinstance(value, float) and abs(value - found["metrics"][metric]) > 0.002:
            sys.exit(
                f"{name}: {metric} is {found['metrics'][metric]:.4f}, its record has {value:.4f}; nothing is written"
            )
    record["evaluation"] = {**found, "model": old["model"]}
    write_json_by_key(path, record)
    kept = config["scores"][0]
    config["scores"] = [{**kept, **{key: value for key, value in found.items() if key != "model"}}]
    write_json_by_key(folder / CONFIG, config)
    (folder / CARD).write_text(model_card(read_facts(folder)), encoding="utf-8")
    print(f"{name}: {path.name}, definition {found['definition']}, {found['seconds']:.0f} s")


def rescore_interventions(name: str, count: int, device: str, data: str | None) -> str:
    """Measure the scores under intervention of ``name`` on ``count`` examples, write them, and say how it went."""
    folder = ZOO / name
    config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    kept = config["scores"][0]
    asked = {
        "data": data, "split": kept["split"], "drawing": kept.get("drawing") or None, "seed": kept.get("seed") or 0,
        "device": device, "allow_pack": False,
    }  # fmt: skip
    try:
        try:  # every third question of as many scenes as the whole test set would have
            found = saccade.evaluate(name, limit=3 * count, sweeps=0, twins=count, **asked)
        except ConfigError:  # not asked about re-rendered scenes: its attention is edited alone
            found = saccade.evaluate(name, limit=count, **asked)
    except SaccadeError as error:
        return f"{name}: left as it is: {error}"
    if not found.get("interventions"):
        return f"{name}: left as it is: there are no scores under intervention on {found['data']}"
    measured = rounded({**found["interventions"], "seconds": round(found["seconds"], 1)})
    for path in (record_of(config, must=False), folder / CONFIG):
        if path is None:
            continue
        content = json.loads(path.read_text(encoding="utf-8"))
        told = content["scores"][0] if path.name == CONFIG else content["evaluation"]
        told["interventions"] = measured
        write_json_by_key(path, content)
    write_text(folder / CARD, model_card(read_facts(folder)))
    told = {
        score: value for each in measured.values() if isinstance(each, dict) for score, value in each["scores"].items()
    }
    return f"{name}: n {measured['n']}, {measured['seconds']:.0f} s, " + ", ".join(
        f"{score} {value:.3f}" for score, value in told.items() if isinstance(value, float)
    )


def rounded(value: Any) -> Any:
    """Five digits are more than the intervals allow, and keep files small."""
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [rounded(each) for each in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--interventions", type=int, metavar="N", help="only scores under intervention, on N examples")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--data", help="READER:PATH, for a model of pictures that do not ship")
    parser.add_argument("--evaluation", type=Path, help="of the one model named: what saccade evaluate --json printed")
    parser.add_argument("--cards", action="store_true", help="write the cards again, and nothing else")
    options = parser.parse_args()
    if unknown := set(options.models) - set(shipped()):
        parser.error(f"no such model ships: {', '.join(sorted(unknown))}")
    if options.cards:
        for name in options.models or shipped():
            write_text(ZOO / name / CARD, model_card(read_facts(ZOO / name)))
        return
    if options.interventions is not None:
        for name in options.models or shipped():
            print(rescore_interventions(name, options.interventions, options.device, options.data), flush=True)
        return
    if not options.models:
        parser.error("name models; only --interventions does all of them")
    if options.evaluation is not None and len(options.models) > 1:
        parser.error("--evaluation is of one model; name that one")
    for name in options.models:
        rescore(name, options.device, options.data, options.evaluation)


if __name__ == "__main__":
    main()
