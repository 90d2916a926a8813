"""Writes two fixtures: captions of our own making, scored by the reference evaluation.

    python tools/caption_fixture.py tests/metrics

It needs the package pycocoevalcap and Java, and nothing of saccade.

``caption_fixture.json``: sentences of a small grammar with random edits, so that words are dropped, doubled, swapped
and inflected. The numbers are those of the package's scorers on the sentences as they are, without its tokeniser, and
those of its METEOR 1.5 jar. The sentences are the same in every run.

``caption_hard_fixture.json``: the captions of ``hard_captions.py``, the words into which the package's PTB tokeniser
cuts them, and the scores of the first caption of each picture against the other four, tokeniser and all.
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
from hard_captions import PICTURES as HARD
from pycocoevalcap.bleu.bleu import Bleu
from pycocoevalcap.cider.cider import Cider
from pycocoevalcap.rouge.rouge import Rouge
from pycocoevalcap.tokenizer.ptbtokenizer import PTBTokenizer

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
        said.write_text("".join(f"{caption}\n" for caption in hypotheses), encoding="utf-8")
        known.write_text("".join(f"{caption}\n" for caption in padded), encoding="utf-8")
        command = ["java", "-Xmx2G", "-jar", str(jar), str(said), str(known), "-l", "en", "-q", "-r", str(REFERENCES)]
        return float(subprocess.run([*command, *options], capture_output=True, text=True, check=True).stdout)


def scored(hypotheses: list[str], references: list[list[str]]) -> dict[str, object]:
    """The scores of the package, of captions whose words have spaces between them."""
    said, known = {i: [text] for i, text in enumerate(hypotheses)}, dict(enumerate(references))
    bleus, _ = Bleu(4).compute_score(known, said, verbose=0)
    rouge, rouges = Rouge().compute_score(known, said)
    cider, ciders = Cider().compute_score(known, said)
    return {
        "bleu": bleus, "rouge_l": float(rouge), "rouge_l_each": rouges.tolist(), "cider": float(cider),
        "cider_each": ciders.tolist(), "meteor": meteor_scores(hypotheses, references, ["-norm"]),
        "meteor_exact_stem": meteor_scores(hypotheses, references, LITE),
    }  # fmt: skip


def in_words(pictures: list[list[str]]) -> list[list[str]]:
    """The captions of each picture as the package's tokeniser cuts them, with spaces between the words."""
    captions = {i: [{"caption": text} for text in texts] for i, texts in enumerate(pictures)}
    found = PTBTokenizer().tokenize(captions)
    # a mixed fraction is one token with a no-break space inside, at which BLEU and CIDEr cut it again
    return [[" ".join(text.split()) for text in found[i]] for i in range(len(pictures))]


def write(target: Path, **content: object) -> None:
    version = importlib.metadata.version("pycocoevalcap")
    made = f"tools/caption_fixture.py with pycocoevalcap {version}; cider is ten times a fraction, as usual"
    target.write_text(json.dumps({"made_by": made, **content}, indent=1) + "\n")


def main(folder: Path) -> None:
    hypotheses, references = captions()
    write(
        folder / "caption_fixture.json",
        hypotheses=hypotheses,
        references=references,
        scores=scored(hypotheses, references),
    )
    words = in_words(HARD)
    found = scored([said for said, *_ in words], [known for _, *known in words])
    write(folder / "caption_hard_fixture.json", captions=HARD, words=words, scores=found)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
