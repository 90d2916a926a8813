"""What users do, as README, tutorials, how-tos and three scripted users have it: does each still work?

::

    python tools/user_actions.py                                # with the saccade beside this Python
    python tools/user_actions.py --saccade venv/bin/saccade     # with another, for example from a wheel
    python tools/user_actions.py train probe                    # those alone whose names hold a word, and the first

Each action is a command or a few lines of Python with a check of what came out. They run one after the other in one
empty folder, so that the next finds what the one before left.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
import textwrap
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Action:
    """A command, or lines of Python, and what must come of it."""

    name: str
    command: str = ""
    """Words after ``saccade``; behind ``>`` the file that its standard output goes to."""
    python: str = ""
    says: tuple[str, ...] = ()
    """What is printed, on either stream; line breaks do not count."""
    makes: tuple[str, ...] = ()
    """Globs of files that are there afterwards."""
    fails: bool = False
    """The input is wrong: one line that says so, exit status 2, and no traceback."""


HEAD = (
    "--backbone compact --set model.config.through=layer2 --set model.config.pretrained=false --set data.size=[32,32]"
    " --steps 60 --batch-size 16 --set phases.0.select=null --set phases.0.restore_best=false"
    " --set phases.0.patience=null"
)
"""What makes ``train attributes-head`` a matter of seconds."""
TINY = "--set model.config.channels=6 --set model.config.hidden=4 --set data.glyphs=pack --batch-size 16"

INPUTS = """
import csv, numpy as np
from pathlib import Path
from PIL import Image
random = np.random.default_rng(0)
colours = {"red": (230, 40, 40), "green": (40, 200, 40), "blue": (40, 40, 230)}
def picture(colour):
    pixels = (random.random((32, 32, 3)) * 60).astype(np.uint8)
    top, left = random.integers(0, 20, 2)
    mask = np.zeros((32, 32), bool); mask[top:top + 12, left:left + 12] = True
    pixels[mask] = colours[colour]
    return Image.fromarray(pixels), Image.fromarray(mask), (left, top, left + 12, top + 12)
for folder in ("new", "pictures", "masks", "maps", *(f"photos/{name}" for name in colours)):
    Path(folder).mkdir(parents=True)
for name in colours:
    picture(name)[0].save(f"new/is-{name}.png")
    for number in range(8):
        picture(name)[0].save(f"photos/{name}/{number}.png")
rows = []
for number in range(30):
    name = [*colours][number % 3]
    image, mask, box = picture(name)
    image.save(f"pictures/{number:02}.png"); mask.save(f"masks/{number:02}.png")
    noise = random.random((32, 32))
    np.save(f"maps/{number:02}.npy", noise + 3 * np.asarray(mask))
    split = ("train", "train", "train", "val", "test")[number // 3 % 5]
    rows.append({"image": f"pictures/{number:02}.png", "label": name, "mask": f"masks/{number:02}.png", "split": split})
def write(path, rows):
    with open(path, "w", newline="") as file:
        table = csv.DictWriter(file, rows[0]); table.writeheader(); table.writerows(rows)
write("own.csv", rows)
write("asked.csv", [{"image": row["image"], "query": ask, "label": row["label"] if ask == "square" else "dark",
                     "split": row["split"]} for row in rows for ask in ("square", "ground")])
Path("story.txt").write_text("Mary went to the kitchen.\\nMary took the football.\\nMary went to the garden.\\n")
"""

ACTIONS = [
    Action("write the inputs", python=INPUTS, makes=("photos/red/7.png", "own.csv", "maps/29.npy")),
    # README and the start
    Action("version", "--version", says=("saccade ",)),
    Action("list the models", "list", says=("hattnet-ctx-mref", "memn2n-babi")),
    Action("list recipes by a pattern", "list recipes soft-mref", says=("soft-mref",)),
    Action("list backbones", "list backbones", says=("mobilenetv2", "efficientnet-lite0")),
    Action("doctor", "doctor", says=("torch",)),
    Action("list the data", "data list", says=("mref", "csv")),
    Action("look at an example", "look --example digits --ask 7 --model hattnet-ctx-sparse-mref", says=("red",)),
    Action("list the examples", "list examples", says=("clutter", "rocket")),
    Action(
        "eight lines of Python",
        python="""
        import saccade
        model = saccade.load("hattnet-ctx-sparse-mref")
        seen = model.look(saccade.example("digits"), ask=7)
        assert (seen.answer, round(seen.confidence, 2)) == ("red", 1.0)
        assert seen.trace.looks[-1].weights.dim() == 3
        assert seen.trace.image_map("total").shape == (1, 100, 100)
        seen.save("eight/")
        assert "<img" in seen._repr_html_()
        """,
        makes=("eight/*.png", "eight/*.json", "eight/*.safetensors"),
    ),
    Action(
        "serve the page",
        python="""
        import socket, subprocess, sys, time, urllib.request
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0)); port = free.getsockname()[1]
        page = subprocess.Popen([sys.executable, "-m", "saccade", "serve", "soft-mref", "--port", str(port)])
        try:
            for _ in range(120):
                try:
                    answer = urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5); break
                except OSError:
                    time.sleep(0.5)
            assert answer.status == 200 and b"<html" in answer.read().lower()
        finally:
            page.terminate(); page.wait(20)
    """,
    ),
    # how-to: look
    Action(
        "make scenes", "data make mref --count 20 --out scenes", makes=("scenes/00000019.png", "scenes/scenes.jsonl")
    ),
    Action("a contact sheet of scenes", "data show mref --out mref.png", makes=("mref.png",)),
    Action("look at a picture", "look scenes/00000000.png --ask 7 --out out", makes=("out/*.json", "out/*.png")),
    Action("look at a folder", "look scenes --ask 7 --out looks", makes=("looks/looks.csv",)),
    Action("look as JSON", "look scenes/00000000.png --ask 7 --json > seen.json", makes=("seen.json",)),
    Action("a page of records", "report out/*.json --out looks.html", makes=("looks.html",)),
    Action(
        "every question about a picture",
        python="""
        import saccade
        model = saccade.load("soft-mref")
        picture = model.encode("scenes/00000000.png")
        found = {seen.question: (seen.answer, seen.confidence, seen.peak) for seen in model.ask_all(picture)}
        assert len(found) == 10 and all(0 <= share <= 1 for _, share, _ in found.values())
        seen = model("scenes/00000000.png", ask=7)
        assert seen.map().shape == (100, 100)
        assert seen.overlay(colormap="magma", alpha=0.6).mode == "RGB"
        seen.save("seen.png")
        assert len(list(model.look_many("scenes/", 7))) == 20
    """,
        makes=("seen.png",),
    ),
    Action(
        "a record reads back bit-equal",
        python="""
        import pathlib, torch, saccade
        (path,) = pathlib.Path("out").glob("*.json")
        record = saccade.read_record(path)
        again = saccade.read_record(saccade.write_record(pathlib.Path("again"), record))
        assert all(torch.equal(one.weights, other.weights) for one, other in zip(record.trace.looks, again.trace.looks))
    """,
    ),
    Action("look at birds", "look --example coffee --ask crown --model crown-cub", says=("crown",)),
    Action(
        "captions of a photograph",
        "look --example cat --model sat-soft-photos --beam 3 --captions 2 --out cat",
        makes=("cat/*.png",),
    ),
    # a teacher
    Action(
        "ask a story",
        'look story.txt --ask "Where is the football?" --model memn2n-stories',
        says=("garden", "Mary took the football"),
    ),
    Action(
        "an unknown word is said",
        python="""
        import saccade
        told = ["Mary went to the kitchen.", "Mary took the football.", "Mary went to the garden."]
        ask = lambda more: saccade.look([*told, more], ask="Where is the football?", model="memn2n-stories")
        model = saccade.load("memn2n-stories")
        assert model.look([*told, "Mary went to the bedroom."], ask="Where is the football?").answer == "bedroom"
        seen = model.look([*told, "Zebulon juggled."], ask="Where is the football?")
        assert seen.answer == "garden" and "zebulon" in " ".join(seen.notes).lower()
    """,
    ),
    # tutorials
    Action(
        "tutorial: questions",
        python="""
        import torch, saccade
        picture = saccade.example("digits")
        seen = saccade.load("soft-mref", "cpu").look(picture, ask=7)
        look = seen.trace.looks[-1]
        torch.testing.assert_close(torch.softmax(look.scores.flatten(), 0).reshape(4, 4), look.weights[0])
        gated = saccade.load("hattnet-ctx-sparse-mref", "cpu").look(picture, ask=7)
        gated.filmstrip(panel=160).save("questions.png")
        product = torch.ones(100, 100)
        for look in gated.trace.looks:
            product = product * gated.trace.image_map(look)[0]
        torch.testing.assert_close(product, gated.trace.image_map("total")[0])
        crop = saccade.load("stn-tuned-mref", "cpu").look(picture, ask=7).trace.looks[0]
        assert crop.kind == "crop" and crop.weights is None and crop.frame.shape == (1, 2, 3)
    """,
        makes=("questions.png",),
    ),
    Action(
        "tutorial: multisets",
        python="""
        import torch, saccade
        from saccade.data import MultisetDataConfig, MultisetScenes
        scene = MultisetScenes(MultisetDataConfig("mnist-multiset", glyphs="pack"), "test").take(torch.tensor([6]))
        seen = saccade.load("hsal-ordered-mnist-multiset", "cpu").look(scene.images[0])
        assert len(seen.labels) == len(seen.glimpses())
        seen.filmstrip(panel=130).save("multisets.png")
        mask, priority = seen.trace.look("covert").step(0).weights, seen.trace.look("priority").step(0).weights
        product = mask * seen.trace.look("saliency").step(0).weights
        scaled = (product - product.amin()) / (product.amax() - product.amin())
        torch.testing.assert_close(scaled, priority, atol=1e-5, rtol=0)
    """,
        makes=("multisets.png",),
    ),
    Action(
        "tutorial: captions",
        python="""
        import torch, saccade
        from saccade.data import CaptionDataConfig, CaptionScenes
        scenes = CaptionScenes(CaptionDataConfig("scenes", glyphs="pack"), "test")
        seen = saccade.load("sat-soft-scenes", "cpu").look(scenes.take(torch.tensor([0])).images[0])
        assert seen.answer in scenes.references(0)
        assert all(0 <= word["gate"] for word in seen.words())
        seen.filmstrip(panel=150).save("captions.png")
    """,
        makes=("captions.png",),
    ),
    Action(
        "tutorial: stories",
        python="""
        import torch, saccade
        story = ["Mary went to the kitchen.", "Mary took the football.", "Mary went to the garden."]
        for name in ("memn2n-babi", "dmn-babi"):
            seen = saccade.load(name, "cpu").look(story, ask="Where is the football?")
            assert seen.answer == "garden" and seen.slots[: len(story)]
            assert seen.slot_grid.weights.shape[1] == len(seen.slot_grid.headings)
        seen.filmstrip().save("stories.png")
    """,
        makes=("stories.png",),
    ),
    Action(
        "tutorial: labels",
        python="""
        import saccade
        seen = saccade.load("ran-56-cifar10", "cpu").look(saccade.example("cat"))
        assert all(look.full.dim() == 4 for look in seen.trace.looks)
        model = saccade.load("racnn-details", "cpu")
        closer = model.look(saccade.example("stripes"))
        closer.filmstrip(panel=200).save("labels.png")
        corner = closer.trace.look("scale2").aim([0, 0, 80, 80])
        assert model.look(saccade.example("stripes"), attention=corner.as_given()).answer
    """,
        makes=("labels.png",),
    ),
    # how-to: scores of maps; a researcher
    Action("score maps", "score maps --truth masks --out scored", says=("pointing",), makes=("scored/*",)),
    Action(
        "scores of maps in Python",
        python="""
        import saccade
        found = saccade.score("maps", "masks")
        assert found.counts["scored"] == 30 and found.values["pointing"].mean() == 1
        assert found.baselines["shuffled"]["pointing"] < 1
    """,
    ),
    Action("score a method", "score scenes --truth scenes --method hirescam --model soft-mref", says=("pointing",)),
    Action("make a causal set", "data make causal --count 24 --out causal24", makes=("causal24/causal.json",)),
    Action(
        "maps of a causal set",
        python="""
        from pathlib import Path
        import numpy as np
        from saccade.data import read_causal_set
        Path("my-maps").mkdir()
        for scene in read_causal_set("causal24"):
            for name, (picture, query) in scene.maps().items():
                seen = scene if picture == "scene" else scene.twins[picture]
                np.save(f"my-maps/{name}.npy", seen.image.max(2) / 255.0)
    """,
    ),
    Action("score them causally", "score my-maps --truth causal24 --out causal-scores", says=("map_follow",)),
    Action(
        "score maps of your own network",
        python="""
        import torch, saccade
        from saccade import metrics
        from saccade.data import SceneData, SceneDataConfig
        network = saccade.load("soft-mref", "cpu").model
        data = SceneData(SceneDataConfig("mref", glyphs="pack"), "test")
        batch = data.take(data.one_per_scene(20))
        images = batch.images.clone().requires_grad_()
        logits = network(images, batch.query).logits
        (slope,) = torch.autograd.grad(logits.amax(-1).sum(), images)
        maps = (slope * images).sum(1).abs().detach()
        assert 0 <= metrics.mean_interval(metrics.true_positive_strength(maps, batch.evidence())).mean <= 1
        changed = batch.recolour_target()
        after = network(changed.images, changed.query).logits.argmax(-1)
        assert metrics.mean_interval(metrics.causal_follow(after, changed.label, batch.label)).n == 20
        scorer = metrics.MapScorer()
        scorer.add(maps, batch.evidence(), objects=batch.objects(), groups=batch.scene)
        assert "selectivity" in metrics.summarise(maps=scorer)["attention"]
    """,
    ),
    Action(
        "scenes in Python",
        python="""
        import torch
        from saccade.data import SceneData, SceneDataConfig
        batch = SceneData(SceneDataConfig(glyphs="pack"), "test").take(torch.arange(8))
        assert batch.images.shape == (8, 3, 100, 100) and batch.evidence().shape == (8, 100, 100)
        assert not torch.equal(batch.recolour_target().images, batch.images)
    """,
    ),
    # how-to: own parts
    Action(
        "edit the attention",
        python="""
        import saccade
        model = saccade.load("hattnet-ctx-sparse-mref")
        picture = model.encode(saccade.example("digits"))
        seen = model.ask(picture, 7)
        look = seen.trace.look("stage1")
        cells = look.weights[0] > look.weights.max() / 10
        edited = model.ask(picture, 7, attention=look.edit(cells).as_given())
        frozen = model.ask(picture, 7, attention=seen.trace.as_given() | look.edit(cells).as_given())
        assert seen.answer == "red" and edited.answer and frozen.answer
    """,
    ),
    Action(
        "a mechanism in a network of one's own",
        python="""
        import torch
        from torch import nn
        from saccade import AttentionTrace, SoftAttention, overlay
        from saccade.attention import frame_of
        body = nn.Sequential(nn.Conv2d(3, 16, 7, 2, 3), nn.ReLU(), nn.MaxPool2d(3, 2, 1), nn.Conv2d(16, 32, 3, 4, 1))
        image, query = torch.rand(1, 3, 224, 224), torch.rand(1, 10)
        features = body(image)
        context, look = SoftAttention(channels=32, query_size=10)(features, query, frame=frame_of(body, (224, 224)))
        torch.testing.assert_close(look.rebuild(features), context)
        where = AttentionTrace((look,)).image_map(size=(224, 224))
        overlay(image[0], where[0].detach()).save("own_network.png")
    """,
        makes=("own_network.png",),
    ),
    Action(
        "the trace of a transformer",
        python="""
        import torch, saccade
        from torch import nn
        class ViT(nn.Module):
            def __init__(self):
                super().__init__()
                self.patches, self.cls_token = nn.Conv2d(3, 64, 16, 16), nn.Parameter(torch.randn(1, 1, 64))
                self.layers = nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, 128, batch_first=True), 3)
            def forward(self, images):
                tokens = self.patches(images).flatten(2).transpose(1, 2)
                return self.layers(torch.cat([self.cls_token.expand(len(tokens), -1, -1), tokens], 1))[:, 0]
        trace = saccade.trace_of(ViT(), torch.rand(1, 3, 224, 224), rollout=True)
        assert trace.look("layer3.head1").weights.shape == (1, 14, 14)
        assert trace.image_map("layer3.head1").shape == (1, 224, 224) and trace.look("rollout").role == "derived"
    """,
    ),
    Action(
        "a backbone of one's own",
        python="""
        from collections import OrderedDict
        import torch
        from torch import nn
        from saccade.backbones import Stages
        early = nn.Sequential(nn.Conv2d(3, 16, 7, stride=2, padding=3), nn.ReLU())
        late = nn.Sequential(nn.Conv2d(16, 32, 3, stride=4, padding=1), nn.ReLU())
        mine = Stages(OrderedDict(early=early, late=late), channels={"early": 16, "late": 32})
        assert mine(torch.rand(1, 3, 224, 224)).shape == (1, 32, 28, 28)
        assert mine.frames["late"].tolist() == [[8, 0, -3.5], [0, 8, -3.5]]
    """,
    ),
    # an engineer: own pictures, train, probe, export
    Action("a contact sheet of own pictures", "data show photos --split train --out photos.png", makes=("photos.png",)),
    Action(
        "probe own pictures",
        "probe --data photos --out probed --heads soft --backbone compact --through layer2"
        " --size 32 --splits 3 --seeds 1 --steps 20",
        says=("soft attention", "33.3 %"),
        makes=("probed/report.html",),
    ),
    Action(
        "train on own pictures",
        f"train attributes-head --data photos --out runs/mine {HEAD}",
        makes=("runs/mine/model/*",),
    ),
    Action("look by one's own model", "look new --model runs/mine --out new-looks", makes=("new-looks/looks.csv",)),
    Action(
        "its answers are right",
        python="""
        import csv
        rows = csv.DictReader(open("new-looks/looks.csv"))
        assert all(row["answer"] in row["source"] for row in rows)
    """,
    ),
    Action("evaluate one's own model", "evaluate runs/mine --data photos --json > mine.json", makes=("mine.json",)),
    Action("a page of a run", "report runs/mine --scores mine.json --out mine.html", makes=("mine.html",)),
    Action("train on a table with masks", f"train attributes-head --data own.csv --out runs/table {HEAD} --quiet"),
    Action(
        "evidence in its evaluation",
        python="""
        import saccade
        scores = saccade.evaluate("runs/table", data="own.csv")
        assert scores["n"] == 6 and scores["metrics"]["accuracy"] >= 0.5 and scores["attention"]["pointing"] > 0.3
    """,
    ),
    Action("train on questions", f"train attributes-head --data csv:asked.csv --out runs/asked {HEAD}"),
    Action("ask it", "look pictures/00.png --ask square --model runs/asked", says=("square",)),
    Action("start from another model", f"train attributes-head --data photos --start runs/mine --out runs/more {HEAD}"),
    Action(
        "train a classifier",
        "train ran-56-photos --data photos --steps 2 --batch-size 4 --set data.size=[32,32]"
        " --set model.config.stem=small --set model.config.widths=[4,8,8,8] --out runs/photos",
        makes=("runs/photos/model/*",),
    ),
    Action("stop a training", f"train soft-mref --out runs/soft {TINY} --steps 4 --max-minutes 0.0000001"),
    Action("go on with it", "train --out runs/soft --resume", makes=("runs/soft/model/model.safetensors",)),
    Action(
        "train two seeds",
        f"train soft-mref --seeds 2 --out runs/seeds {TINY} --steps 2",
        makes=("runs/seeds/seed-1/model/*",),
    ),
    Action("the curves of a run", "report runs/soft --out soft.html", makes=("soft.html",)),
    Action("evaluate a shipped model", "evaluate soft-mref --limit 40 --sweeps 4 --twins 4", says=("accuracy",)),
    Action("evaluate on a causal set", "evaluate soft-mref --data causal:causal24 --sweeps 4", says=("accuracy",)),
    Action("export a model", "export soft-mref --out onnx", makes=("onnx/model.onnx", "onnx/model.json")),
    Action(
        "run it elsewhere",
        python="""
        import json, numpy as np, onnxruntime, saccade
        told = json.load(open("onnx/model.json"))
        session = onnxruntime.InferenceSession("onnx/model.onnx", providers=["CPUExecutionProvider"])
        picture = saccade.read_picture("scenes/00000000.png").image
        pixels = np.asarray(picture, np.float32).transpose(2, 0, 1)[None] / 255  # (1,3,H,W)
        names = [output.name for output in session.get_outputs()]
        query = np.array([told["queries"].index("7")])
        found = dict(zip(names, session.run(names, {"images": pixels, "query": query})))
        seen = saccade.load("soft-mref", "cpu").look("scenes/00000000.png", ask=7)
        assert told["answers"][found["answer"][0]] == seen.answer
    """,
    ),
    # what people do wrong
    Action(
        "a model that there is not", "look --example digits --ask 7 --model soft-mreff", says=("soft-mref",), fails=True
    ),
    Action("a picture that there is not", "look nothing.png --ask 7", says=("nothing.png",), fails=True),
    Action("a question that it does not know", "look --example digits --ask wing", says=("wing",), fails=True),
    Action(
        "a setting that there is not",
        "train soft-mref --set phases.0.stepz=3 --out runs/no",
        says=("stepz",),
        fails=True,
    ),
    Action("a folder that is taken", "train soft-mref --out runs/soft", says=("runs/soft",), fails=True),
]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="actions alone whose names hold one of them")
    parser.add_argument("--saccade", type=Path, default=Path(sys.executable).parent / "saccade")
    parser.add_argument("--python", type=Path, help="the Python that imports it; default: beside it")
    parser.add_argument("--keep", type=Path, help="empty folder to work in, which stays; default: a temporary one")
    given = parser.parse_args()
    saccade = given.saccade.absolute()
    python = (given.python or saccade.parent / "python").absolute()
    chosen = [
        each
        for each in ACTIONS
        if not given.words or each is ACTIONS[0] or any(word in each.name for word in given.words)
    ]
    failed, started = [], time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.keep.absolute() if given.keep else Path(temporary)
        folder.mkdir(exist_ok=True)
        for action in chosen:
            began = time.monotonic()
            wrong = done_wrong(action, saccade, python, folder)
            print(f"{'FAILED' if wrong else 'ok':6} {time.monotonic() - began:5.1f} s  {action.name}", flush=True)
            if wrong:
                failed.append(action.name)
                print(textwrap.indent(wrong[-2000:], "       "), flush=True)
    print(f"{len(chosen) - len(failed)} of {len(chosen)} actions work, {time.monotonic() - started:.0f} s")
    return 1 if failed else 0


def done_wrong(action: Action, saccade: Path, python: Path, folder: Path) -> str:
    """Do it in ``folder``; empty where all is as it should be, else what is wrong."""
    words, _, target = action.command.partition(" > ")
    command = [str(python), "-c", textwrap.dedent(action.python)]
    if action.command:
        command = [str(saccade)]
        for word in shlex.split(words):
            command += sorted(str(path.relative_to(folder)) for path in folder.glob(word)) if "*" in word else [word]
    environment = os.environ | {"SACCADE_HOME": str(folder / "cache"), "COLUMNS": "200"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    if target:
        (folder / target).write_text(done.stdout, encoding="utf-8")
    printed = done.stdout + done.stderr
    plain = " ".join(printed.split())
    wrong = []
    if done.returncode != (2 if action.fails else 0):
        wrong.append(f"{printed}\nexit status {done.returncode}")
    if action.fails and "Traceback" in printed:
        wrong.append(printed)
    wrong += [f"does not say {each!r}: {plain}" for each in action.says if each not in plain]
    wrong += [f"does not make {each}" for each in action.makes if not any(folder.glob(each))]
    return "\n".join(wrong)


if __name__ == "__main__":
    sys.exit(main())
