"""The parts of goldens.py that take about a minute together: sightings, commands, records, and a few steps."""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from safetensors.torch import load_file

import saccade

PICTURES = Path(__file__).parents[1] / "tests" / "golden" / "pictures"
STORY = ("Mary went to the kitchen.", "Mary took the football.", "John went to the office.", "Mary went to the garden.")
PARTS_OF_BIRDS = ("crown", "wing", "bill", "belly", "nape")
ASKED_NOTHING = ("hsal", "sat", "ran", "racnn")
READ_STORIES = ("memn2n", "dmn")
OF_A_LOOK = ("weights", "gain", "scores", "choice", "log_prob", "active", "emits", "full", "frame")
WORDING = {"seconds", "sentence", "summary", "paper", "description", "licence", "license", "get", "title", "about"}
"""Keys of JSON that are left out: time, and sentences for people."""

IN_THE_PACKAGE = re.compile(re.escape(str(Path(saccade.__file__).parent)) + r"/([^/\s]+/)*")


def machine() -> dict[str, str]:
    """What bits depend on: the versions that compute, and the processor that they choose their kernels for."""
    info = Path("/proc/cpuinfo")
    names = [line for line in info.read_text().splitlines() if line.startswith("model name")] if info.exists() else []
    kernels = torch.backends.cpu.get_cpu_capability()
    processor = names[0].split(":")[1].strip() if names else platform.processor()
    return {"torch": str(torch.__version__), "numpy": np.__version__, "kernels": kernels, "processor": processor}


def plain(value: Any, *, folder: str = "\0") -> Any:
    """A value as JSON has it: without wording, NaN as a word, and without the names of folders."""
    if isinstance(value, dict):
        return {str(key): plain(each, folder=folder) for key, each in value.items() if key not in WORDING}
    if isinstance(value, (list, tuple)):
        return [plain(each, folder=folder) for each in value]
    if isinstance(value, str):
        named = value.replace(str(PICTURES), "{pictures}").replace(folder, "{out}")
        return IN_THE_PACKAGE.sub("{saccade}/", named)  # where a file lies there may change
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value.item() if isinstance(value, np.generic) else value


def digest(values: Any) -> str:
    """SHA-256 of the kind, the shape and the bytes of a tensor or an array, shortened."""
    if isinstance(values, torch.Tensor):
        values = values.detach().cpu().contiguous()
        values = values.view(torch.int16) if values.dtype == torch.bfloat16 else values
        values = values.numpy()
    told = f"{values.dtype}{values.shape}".encode() + np.ascontiguousarray(values).tobytes()
    return hashlib.sha256(told).hexdigest()[:20]


# ---- sightings: what every shipped model answers, and where it looks, bit for bit


def sightings(only: str = "") -> dict[str, Any]:
    """Of every shipped model: answers, shares, and digests of the weights of every look and of the total map."""
    return {model: {name: told(seen) for name, seen in seen_by(model).items()} for model in shipped() if only in model}


def shipped() -> list[str]:
    """Names of the shipped models, as the command line lists them."""
    return sorted(json.loads(command("list", "zoo", "--json")["stdout"])["zoo"])


def seen_by(model: str) -> dict[str, Any]:
    """First all inputs in one batch, then some by themselves with another question; of captions two by a search."""
    predictor = saccade.load(model, device="cpu")
    files = sorted(PICTURES.glob("*.png"))
    if model.startswith(READ_STORIES):
        questions = ("Where is the football?", "Where is Mary?", "Where was the football before the garden?")
        seen = [predictor.look(list(STORY), ask=question) for question in questions]
        seen += predictor.look_many([list(STORY), list(STORY[:2])], ask="Where is Mary?")
    elif model.startswith(ASKED_NOTHING):
        seen = [*predictor.look_many(files), predictor.look(files[0])]
    else:
        first, others = ("back", PARTS_OF_BIRDS) if model == "crown-cub" else (7, range(10))
        asked = [others[number % len(others)] for number in range(len(files))]
        seen = [*predictor.look_many(files, ask=first), *map(predictor.look, files, asked)]
    if model.startswith("sat"):
        seen += [predictor.look(path, captions=2, beam=3) for path in files[:2]]
    return {f"{number}-{_name(each)}": each for number, each in enumerate(seen)}


def _name(seen: Any) -> str:
    name = Path(str(getattr(seen.source, "name", ""))).stem or "story"
    return f"{name}-{seen.question}" if seen.question else name


def told(seen: Any) -> dict[str, Any]:
    """What was said, with every digit, and digests of what was looked at."""
    said = {
        "answer": seen.answer,
        "confidence": seen.confidence,
        "alternatives": seen.alternatives,
        "labels": seen.labels,
        "log_probability": seen.log_probability,
        "notes": len(seen.notes),
    }
    for look in seen.trace.looks:
        values = {name: getattr(look, name, None) for name in OF_A_LOOK}
        about = {name: digest(each) for name, each in values.items() if isinstance(each, torch.Tensor)}
        said[f"look {look.name}"] = about | {"kind": look.kind, "role": look.role, "norm": look.norm}
    if seen.is_spatial:
        said["total"] = digest(seen.trace.image_map("total"))
    return said


# ---- commands: the JSON and the files of cheap ones

COMMANDS: dict[str, tuple[str, ...]] = {
    "look": ("look", "--example", "digits", "--ask", "7", "--model", "hattnet-ctx-mref", "--out", "{out}"),
    "look-several": ("look", "{pictures}/mref-0.png", "{pictures}/coffee.png", "--ask", "3", "--out", "{out}"),
    "look-labels": ("look", "{pictures}/multiset-0.png", "--model", "hsal-mnist-multiset", "--out", "{out}"),
    "look-captions": ("look", "--example", "cat", "--model", "sat-soft-photos", "--captions", "2", "--beam", "3"),
    "look-crops": ("look", "--example", "stripes", "--model", "racnn-details", "--out", "{out}"),
    "look-story": ("look", "{out}/story.txt", "--model", "memn2n-babi", "--ask", "Where is the football?"),
    "look-wrong": ("look", "--example", "digits", "--ask", "seventeen"),
    "list-zoo": ("list", "zoo"),
    "list-models": ("list", "models"),
    "list-recipes": ("list", "recipes"),
    "data-list": ("data", "list"),
    "make-mdist": ("data", "make", "mdist", "--count", "3", "--glyphs", "pack", "--seed", "3", "--out", "{out}/made"),
    "make-mbg": ("data", "make", "mbg", "--count", "2", "--glyphs", "pack", "--split", "train", "--out", "{out}/made"),
    "make-multiset": ("data", "make", "mnist-multiset", "--count", "3", "--glyphs", "pack", "--out", "{out}/made"),
    "make-scenes": ("data", "make", "scenes", "--count", "3", "--glyphs", "pack", "--out", "{out}/made"),
    "make-details": ("data", "make", "details", "--count", "2", "--out", "{out}/made"),
    "make-causal": ("data", "make", "causal", "--count", "8", "--out", "{out}/made"),
    "show": ("data", "show", "jsonl:{pictures}/labels.jsonl", "--count", "4", "--out", "{out}/sheet.png"),
    "score": ("score", "{out}/maps", "--truth", "{out}/masks", "--out", "{out}/scored"),
    "evaluate": ("evaluate", "soft-mref", "--glyphs", "pack", "--limit", "40", "--sweeps", "2", "--twins", "4"),
    "doctor": ("doctor",),
}
NO_JSON = {"make", "show"}


def commands(only: str = "") -> dict[str, Any]:
    """Exit status, JSON and files of each command."""
    return {name: told_by(name, words) for name, words in COMMANDS.items() if only in name}


def told_by(name: str, words: tuple[str, ...]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        _inputs(Path(folder))
        before = set(Path(folder).rglob("*"))
        filled = [word.format(out=folder, pictures=PICTURES) for word in words]
        done = command(*filled, *(() if name.split("-")[0] in NO_JSON else ("--json",)))
        written = sorted(path for path in Path(folder).rglob("*") if path.is_file() and path not in before)
        files = {str(path.relative_to(folder)): in_file(path, folder) for path in written}
        said = _json(done["stdout"])
    if name == "doctor":  # its values are of the machine
        said = sorted(said)
    return {"exit": done["exit"], "json": plain(said, folder=folder), "files": files}


def _json(text: str) -> Any:
    """JSON that was printed: one value, or one a line; None for anything else."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        lines = text.splitlines()
        return [json.loads(line) for line in lines] if text.startswith("{") else None


def _inputs(folder: Path) -> None:
    """A story, and maps with their masks."""
    (folder / "story.txt").write_text("\n".join(STORY) + "\n", encoding="utf-8")
    draw = np.random.default_rng(3)
    for number in range(4):
        for kind in ("maps", "masks"):
            (folder / kind).mkdir(exist_ok=True)
            values = draw.random((24, 32), dtype=np.float32)
            np.save(folder / kind / f"{number}.npy", values if kind == "maps" else values > 0.9)


def command(*words: str, **options: Any) -> dict[str, Any]:
    """``python -m saccade`` with these words: its exit status and what it printed."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        [sys.executable, "-m", "saccade", *words], capture_output=True, text=True, env=environment, **options
    )
    return {"exit": done.returncode, "stdout": done.stdout, "stderr": done.stderr}


def in_file(path: Path, folder: str) -> Any:
    """What a file holds, as plain values; pixels of pictures and tensors by their digests."""
    if path.suffix == ".json":
        return plain(json.loads(path.read_text(encoding="utf-8")), folder=folder)
    if path.suffix == ".jsonl":
        lines = path.read_text(encoding="utf-8").splitlines()
        return [plain(json.loads(line), folder=folder) for line in lines]
    if path.suffix == ".png":
        with Image.open(path) as picture:
            return f"{picture.mode} {digest(np.asarray(picture))}"
    if path.suffix == ".safetensors":
        return {name: digest(values) for name, values in load_file(path).items()}
    if path.suffix == ".csv":
        return [plain(line, folder=folder) for line in path.read_text(encoding="utf-8").splitlines()]
    return "a file"


# ---- records, and a few steps of training


def records(only: str = "") -> dict[str, Any]:
    """A record is read and written again: the same values, and the same bytes."""
    found: dict[str, Any] = {}
    for model, ask in (("hattnet-ctx-mref", 7), ("hsal-mnist-multiset", None), ("sat-soft-scenes", None)):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            saccade.load(model, device="cpu").look(PICTURES / "mref-0.png", ask=ask).save(folder / "first")
            (stored,) = (folder / "first").rglob("*.json")
            saccade.write_record(folder / "second" / stored.stem, saccade.read_record(stored))
            files = sorted(path for path in folder.rglob("*") if path.is_file())
            found[model] = {str(path.relative_to(folder)): in_file(path, str(folder)) for path in files}
    return found


STEPS = (
    "log_every=1",
    "data.glyphs=pack",
    "model.config={channels: 6, hidden: 4, dropout: 0.3}",
    "batch_size=16",
    "phases.0.steps=3",
    "phases.0.validate_every=3",
    "phases.0.schedule.warmup=2",
)


def steps(only: str = "") -> dict[str, Any]:
    """Three steps of a tiny model: every loss, and digests of its weights."""
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        saccade.train("soft-mref", overrides=STEPS, out=run, device="cpu", quiet=True)
        return {"soft-mref": of_a_run(run)}


def of_a_run(run: Path) -> dict[str, Any]:
    """What a run measured, and digests of its model and of its newest checkpoint."""
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    measured = []
    for row in rows:
        values = {name: value for name, value in row["values"].items() if "second" not in name and "memory" not in name}
        measured.append({"kind": row["kind"], "step": row["step"], "values": values})
    last = max((run / "checkpoints").glob("step-*"), key=lambda path: [int(part) for part in path.name[5:].split(".")])
    state = load_file(last / "state.safetensors")
    digests = {name: digest(each) for name, each in state.items() if name.startswith(("model/", "optimizer/", "ema/"))}
    weights = load_file(run / "model" / "model.safetensors")
    return plain(
        {"measured": measured, "state": digests, "model": {name: digest(each) for name, each in weights.items()}}
    )


PARTS: dict[str, Callable[[str], dict[str, Any]]] = {
    "sightings": sightings,
    "commands": commands,
    "records": records,
    "steps": steps,
}
