"""The parts of goldens.py that take minutes: evaluations, trainings, stopped runs, causal-v1."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from golden_quick import (
    ASKED_NOTHING,
    PICTURES,
    READ_STORIES,
    command,
    digest,
    in_file,
    machine,
    of_a_run,
    shipped,
    told_by,
)
from PIL import Image

import saccade

LIMIT, SWEEPS = 200, 10
AN_INSTANT = 1e-9
"""Minutes after which a run stops: after one step, whatever the machine."""

# ---- evaluations: every number, of every shipped model


def evaluation_cases() -> dict[str, dict[str, Any]]:
    """Arguments of ``evaluate`` by the name of the case: a model, or MODEL@TABLE of the golden pictures."""
    found: dict[str, dict[str, Any]] = {}
    for model in shipped():
        if model.startswith(READ_STORIES):
            found[model] = {"data": "stories", "limit": LIMIT, "sweeps": SWEEPS}
        elif model == "racnn-details":
            found[model] = {"limit": LIMIT // 5}  # its pictures are large
        elif model not in ON_TABLES:
            scenes = {"glyphs": "pack", "limit": LIMIT}
            few = {} if model.startswith(ASKED_NOTHING) else {"sweeps": SWEEPS, "twins": 20}
            found[model] = scenes | few | ({"data": "mnist-multiset"} if model == "hsal-svhn-multiset" else {})
    for model, table in ON_TABLES.items():
        found[f"{model}@{table}"] = {"data": f"jsonl:{PICTURES / table}.jsonl"}
    return found | {"hsal-mnist-multiset@labels": {"data": f"jsonl:{PICTURES / 'labels'}.jsonl"}}


ON_TABLES = {"crown-cub": "parts", "ran-56-cifar10": "classes", "sat-soft-photos": "captions"}
"""Models that scenes of digits tell nothing about, and the table of golden pictures that they are scored on."""


def evaluations(only: str = "") -> dict[str, Any]:
    """Scores of every case. Scenes are of the shipped glyphs, so that they depend on the code alone."""
    cases = evaluation_cases()

    def scored(name: str) -> dict[str, Any]:
        scores = saccade.evaluate(name.partition("@")[0], **cases[name], device="cpu")
        scores.pop("mistakes", None)  # they name files by where they lie
        return dict(json.loads(json.dumps(scores)))

    return each_of(cases, only, scored)


def each_of(names: Iterable[str], only: str, found: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
    """What ``found`` gives for each name that holds ``only``; an error is a value too, and the others go on."""
    values: dict[str, Any] = {}
    for name in names:
        if only in name:
            try:
                values[name] = found(name)
            except Exception as error:
                values[name] = {"error": type(error).__name__}
                print(f"{name}: {error!r}", file=sys.stderr, flush=True)
    return values


# ---- tables of small pictures, for what is trained on files

SIDE = 32


def tables(folder: Path) -> None:
    """Twelve small scenes as PNG, with tables of captions, questions, multisets and classes."""
    drawing = ("--count", "12", "--glyphs", "pack", "--seed", "11", "--quiet", "--out", str(folder / "made"))
    command("data", "make", "scenes", *drawing)
    kinds: dict[str, list[dict[str, Any]]] = {"captions": [], "questions": [], "multisets": [], "classes": []}
    for number, line in enumerate((folder / "made" / "scenes.jsonl").read_text(encoding="utf-8").splitlines()):
        row = json.loads(line)
        things = row["objects"] or [{"colour": "none", "digit": 0, "box": [0, 0, 20, 20]}]
        with Image.open(folder / "made" / row["image"]) as picture:
            picture.resize((SIDE, SIDE), Image.Resampling.LANCZOS).save(folder / row["image"])
        about = {"image": row["image"], "split": ("train", "train", "train", "val", "train", "test")[number % 6]}
        boxes = [[round(side * SIDE / 100, 2) for side in thing["box"]] for thing in things]
        loose = row["caption"].replace("left of", "and").replace("above", "and").replace("small", "little")
        kinds["captions"].append(about | {"captions": [row["caption"], f"there is {loose}"]})
        kinds["multisets"].append(about | {"labels": [thing["colour"] for thing in things], "boxes": boxes})
        kinds["classes"].append(about | {"label": things[0]["colour"], "box": boxes[0]})
        for query, place in (("first", 0), ("last", -1)):
            kinds["questions"].append(about | {"query": query, "label": things[place]["colour"], "box": boxes[place]})
    for name, rows in kinds.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


# ---- trainings of a few steps, and runs that are stopped and gone on with


@dataclass(frozen=True)
class Case:
    """A recipe, and what makes it tiny."""

    recipe: str
    overrides: tuple[str, ...] = ()
    phases: int = 1
    """How many phases it has."""
    named: tuple[str, ...] = ()
    """Train these alone."""
    table: str = ""
    """Table of small pictures that it learns from."""
    steps: int = 2
    """Of each phase."""
    stop: int = 0
    """After how many steps it is stopped, for the part ``resumed``."""

    def given(self, folder: Path) -> dict[str, Any]:
        """Arguments of ``train``."""
        settings = ["log_every=1", "keep_checkpoints=1", "batch_size=4"]
        settings += [] if self.table or not self.glyphs else ["data.glyphs=pack"]
        for number in range(self.phases):
            phase = f"phases.{number}"
            settings += [f"{phase}.epochs=null", f"{phase}.steps={self.steps}", f"{phase}.validate_every={self.steps}"]
        data = f"jsonl:{folder / self.table}.jsonl" if self.table else None
        overrides = (*settings, *self.overrides)
        return {"recipe": self.recipe, "data": data, "phases": self.named, "overrides": overrides, "device": "cpu"}

    @property
    def glyphs(self) -> bool:
        """Whether its data is drawn of glyphs."""
        return not self.recipe.startswith(("memn2n", "dmn", "story", "racnn"))


QUESTION = "model.config={channels: 6, hidden: 4, dropout: 0.3}"
PLAIN = "model.config={channels: 6, dropout: 0.3}"
MULTISET = (
    "model.config={backbone: small, through: stage1, input_size: [20, 20], hidden: 6, meta_hidden: 6,"
    " location_hidden: 4, follow_priority: true}"
)
SAT = "embed: 3, hidden: 4, attention: 3, dropout: 0.2, longest: 12"
SCENES = f"model.config={{backbone: small, through: stage1, {SAT}}}"
FILES = f"model.config={{backbone: compact, through: stem, pretrained: false, {SAT}}}"
SIZE = f"data.size=[{SIDE}, {SIDE}]"
OWN = "model.config={backbone: small, channels: 4, depth: 2, hidden: 4, dropout: 0.2}"
RAN = "model.config={stem: small, widths: [4, 8, 8, 8], modules: [1, 1, 1]}"
BEST = "phases.0.select={metric: loss, mode: min}"
EVIDENCE = "phases.0.loss={name: cross_entropy, evidence_weight: 0.5}"
LEARNT = ("decoder", "self_critical")
CAPTIONS = Case("sat-soft-tuned", (FILES, SIZE, "data.at_least=1", "ema=0.9"), 3, LEARNT, "captions", steps=5)

RESUMED = {
    "question": Case("soft-mref", (QUESTION, BEST, "batch_size=16", "phases.0.validate_every=4"), steps=8, stop=6),
    "question-bf16": Case("soft-mref", (QUESTION, BEST, "precision=bf16-mixed"), steps=6, stop=4),
    "question-files": Case("attributes", (OWN, SIZE), table="questions", steps=9, stop=6),
    "question-kept": Case("attributes-head", (OWN, SIZE), table="questions", steps=8, stop=5),
    "multiset": Case("hsal-mnist-multiset", (MULTISET, "data.size=40"), phases=2, steps=4, stop=6),
    "multiset-activation": Case("hsal-mnist-multiset", (MULTISET, "data.size=40"), phases=2, steps=4, stop=2),
    "multiset-files": Case("multisets", (MULTISET, "data.size=32"), phases=2, table="multisets", steps=4, stop=6),
    "caption": Case("sat-soft-scenes", (SCENES, "data.size=[40, 40]", "phases.0.loss.penalty=1"), steps=8, stop=6),
    "caption-files": replace(CAPTIONS, stop=7),
    "caption-decoder": replace(CAPTIONS, stop=2),
    "classify-files": Case("ran-56-photos", (RAN, SIZE, EVIDENCE), table="classes", steps=6, stop=4),
    "story": Case("memn2n", ("replicas=2", "data.noise=0.2", "data.leave_out=0.3"), phases=2, steps=4, stop=5),
}

TRAINED = {
    **{name: Case(name, (QUESTION,)) for name in ("soft-mref", "hard-mdist", "soft-mbg", "soft-largest-mref")},
    **{name: Case(name) for name in ("stn-mref", "stn-tuned-mref", "hattnet-mbg", "hattnet-ctx-varied-mref")},
    **{name: Case(name) for name in ("hattnet-ctx-sparse-mdist", "hattnet-ctx-mref-fast", "cross-mref", "film-mbg")},
    **{name: Case(name) for name in ("blind-mref", "vit-mref", "soft-corner-mref", "hattnet-ctx-sparse-mref-absent")},
    **{
        name: Case(name, (MULTISET, "data.size=40"), phases=2)
        for name in ("hsal-mnist-set", "hsal-ce-mnist-multiset", "hsal-ordered-mnist-multiset", "hsal-plain-mnist-set")
    },
    "hsal-oracle-mnist-set": Case("hsal-oracle-mnist-set", (MULTISET, "data.size=40"), phases=2),
    "counts-mnist-multiset": Case("counts-mnist-multiset", ("data.size=40",)),
    "sat-hard-scenes": Case("sat-hard-scenes", (SCENES, "data.size=[40, 40]")),
    "sat-none-tuned": Case("sat-none-tuned", (FILES, SIZE, "data.at_least=1"), phases=3, table="captions"),
    "memn2n-bow": Case("memn2n-bow", ("replicas=2",)),
    "memn2n-pe": Case("memn2n-pe", ("replicas=2", "data.words=wide")),
    "dmn": Case("dmn", ("model.config.size=8", "model.config.embedding=8")),
    "dmn-weak": Case("dmn-weak", ("model.config.size=8", "model.config.embedding=8")),
    "story-lstm": Case("story-lstm"),
    "racnn-details": Case("racnn-details", phases=7),
    "racnn-box-details": Case("racnn-box-details"),
    "ran-56-photos": Case("ran-56-photos", (RAN, SIZE), table="classes"),
}


def trained(only: str = "") -> dict[str, Any]:
    """Two steps of each phase of many recipes: losses, and digests of the weights."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tables(folder)
        return each_of(TRAINED, only, lambda name: of_a_run(_train(TRAINED[name], folder, name)))


def _train(case: Case, folder: Path, name: str) -> Path:
    saccade.train(**case.given(folder), out=folder / "runs" / name, quiet=True)
    return folder / "runs" / name


def resumed(only: str = "") -> dict[str, Any]:
    """Runs trained to their end, and again stopped after every step up to one: both ends hold the same bits."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tables(folder)
        return each_of(RESUMED, only, lambda name: _resumed(RESUMED[name], folder, name))


def _resumed(case: Case, folder: Path, name: str) -> dict[str, Any]:
    whole, stopped = of_a_run(_train(case, folder, name)), _stopped(case, folder, name)
    saccade.train(out=stopped, resume=True, device="cpu", quiet=True)
    again = of_a_run(stopped)
    pairs = [
        (f"{kind}/{key}", whole[kind].get(key), again[kind].get(key))
        for kind in ("state", "model")
        for key in whole[kind] | again[kind]
    ]
    return whole | {"differs after a stop": [path for path, before, after in pairs if before != after]}


def _stopped(case: Case, folder: Path, name: str) -> Path:
    run = folder / "stopped" / name
    for step in range(1, case.stop + 1):
        how: dict[str, Any] = {"resume": True, "device": "cpu"} if step > 1 else case.given(folder)
        result = saccade.train(**how, out=run, max_minutes=AN_INSTANT, quiet=True)
        if (result.stopped, result.step) != ("time", step):
            raise SystemExit(f"{name}: expected a stop after step {step}, found {result}")
    return run


def store_run(archive: Path) -> None:
    """Make the stopped run that the suite goes on with: ``run``, and in ``final.json`` what the whole one holds."""
    case = RESUMED["question"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        whole, place = _train(case, folder, "question"), folder / "stored"
        shutil.copytree(_stopped(case, folder, "question"), place / "run")
        log = place / "run" / "log.txt"
        log.write_text(log.read_text(encoding="utf-8").replace(f"{folder}/", ""), encoding="utf-8")
        shutil.copy(whole / "model" / "model.safetensors", place / "final.safetensors")
        final = {"machine": machine(), **of_a_run(whole)}
        (place / "final.json").write_text(json.dumps(final, indent=1) + "\n", encoding="utf-8")
        shutil.make_archive(str(archive.with_suffix("")), "zip", place)


# ---- exports, and the causal set whole


def exported(only: str = "") -> dict[str, Any]:
    """Inputs, outputs and looks of models as ONNX."""
    models = ("hattnet-ctx-mref", "hsal-mnist-multiset", "sat-soft-scenes", "memn2n-stories")
    return each_of(models, only, lambda name: told_by(name, ("export", name, "--out", "{out}/onnx")))


def causal(only: str = "") -> dict[str, Any]:
    """All 10,000 scenes of causal-v1: digests of its truth, and of every hundredth picture."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "causal"
        done = command("data", "make", "causal", "--count", "10000", "--quiet", "--out", str(folder))
        if done["exit"]:
            raise SystemExit(done["stderr"])
        found = {}
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.suffix not in (".png", ".md"):
                found[path.name] = digest(np.fromfile(path, dtype=np.uint8))
        pictures = sorted(folder.rglob("*.png"))
        return found | {str(path.relative_to(folder)): in_file(path, name) for path in pictures[::100]}


PARTS: dict[str, Callable[[str], dict[str, Any]]] = {
    "evaluations": evaluations,
    "trained": trained,
    "resumed": resumed,
    "exported": exported,
    "causal": causal,
}
