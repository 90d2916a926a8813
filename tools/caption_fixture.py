"""Writes tests/metrics/text/caption_fixture.json: captions of our own making, scored by the reference evaluation.

    python tools/caption_fixture.py tests/metrics/text/caption_fixture.json

It needs the package pycocoevalcap (and Java for METEOR) and nothing of saccade. The sentences come from a small grammar
with random edits, so that words are dropped, doubled, swapped and inflected; the numbers are those of the package's
scorers on the sentences as they are, without its tokeniser, and those of its METEOR 1.5 jar. The sentences are the same
in every run.
"""

from __future__ import annotations

import importlib.metadata
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import pycocoevalcap.meteor.meteor as meteor
from pycocoevalcap.bleu.bleu import Bleu
from pycocoevalcap.cider.cider import Cider
from pycocoevalcap.rouge.rouge import Rouge

PICTURES, REFERENCES = 60, 5
SIZES, COLOURS = ("small", "large", "tiny", "big"), ("red", "green", "white", "blue", "cyan")
THINGS = ("seven", "two", "bird", "dog", "boat", "child", "bicycle")
VERBS = (
    ("run", "runs", "running"),
    ("jump", "jumps", "jumping"),
    ("play", "plays", "played"),
    ("fly", "flies", "flying"),
)
PLACES = ("above the water", "near a wooden house", "on the grass", "left of a large two", "in front of the other one")
LITE = ["-m", "exact stem", "-w", "1.0 0.6", "-p", "0.85 0.2 0.6 0.5", "-x", "2000"]
ODD = {7: "", 11: "bird", 19: "a a a a a a", 23: "the the the the the the the", 31: "zebra quilt"}
"""Hypotheses of some pictures: nothing, one word, repetitions, nothing that is known."""


def sentence(scene: tuple[str, ...], draw: random.Random) -> str:
    size, colour, thing, place = scene
    verb = draw.choice(draw.choice(VERBS))
    forms = (
        f"a {size} {colour} {thing} {verb} {place}",
        f"a {colour} {thing} is {verb} {place}",
        f"the {thing} {verb} {place} and the {draw.choice(THINGS)} too",
        f"there is a {size} {thing} {place}",
        f"{size} {colour} {thing}",
    )
    return draw.choice(forms)


def edited(text: str, draw: random.Random) -> str:
    words = [word for word in text.split() if draw.random() > 0.12]
    if len(words) > 2 and draw.random() < 0.3:
        first, second = draw.sample(range(len(words)), 2)
        words[first], words[second] = words[second], words[first]
    if words and draw.random() < 0.2:
        words.append(words[0])
    return " ".join(words)


def captions() -> tuple[list[str], list[list[str]]]:
    draw = random.Random(20150701)
    hypotheses, references = [], []
    for picture in range(PICTURES):
        scene = tuple(draw.choice(choices) for choices in (SIZES, COLOURS, THINGS, PLACES))
        references.append([sentence(scene, draw) for _ in range(draw.randint(1, REFERENCES))])
        source = sentence(scene, draw) if draw.random() < 0.7 else draw.choice(references[-1])
        hypotheses.append(ODD.get(picture, edited(source, draw)))
    return hypotheses, references


def meteor_scores(hypotheses: list[str], references: list[list[str]], options: list[str]) -> float:
    jar = Path(meteor.__file__).parent / meteor.METEOR_JAR
    padded = [caption for known in references for caption in (known * REFERENCES)[:REFERENCES]]
    with tempfile.TemporaryDirectory() as folder:
        said, known = Path(folder, "said.txt"), Path(folder, "known.txt")
        said.write_text("".join(f"{caption}\n" for caption in hypotheses))
        known.write_text("".join(f"{caption}\n" for caption in padded))
        command = ["java", "-Xmx2G", "-jar", str(jar), str(said), str(known), "-l", "en", "-q", "-r", str(REFERENCES)]
        return float(subprocess.run([*command, *options], capture_output=True, text=True, check=True).stdout)


def main(target: Path) -> None:
    hypotheses, references = captions()
    said, known = {i: [text] for i, text in enumerate(hypotheses)}, dict(enumerate(references))
    bleus, _ = Bleu(4).compute_score(known, said, verbose=0)
    rouge, rouges = Rouge().compute_score(known, said)
    cider, ciders = Cider().compute_score(known, said)
    scores = {
        "bleu": bleus, "rouge_l": float(rouge), "rouge_l_each": rouges.tolist(), "cider": float(cider),
        "cider_each": ciders.tolist(), "meteor": meteor_scores(hypotheses, references, ["-norm"]),
        "meteor_exact_stem": meteor_scores(hypotheses, references, LITE),
    }  # fmt: skip
    version = importlib.metadata.version("pycocoevalcap")
    made = f"tools/caption_fixture.py with pycocoevalcap {version}; cider is ten times a fraction, as usual"
    fixture = {"made_by": made, "hypotheses": hypotheses, "references": references, "scores": scores}
    target.write_text(json.dumps(fixture, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
