"""Questions for the colour of a named object, from DAQUAR's text files: a table for each of five folds.

python examples/daquar_colours.py DAQUAR --out tables        # DAQUAR has qa.894.raw.train.txt and nyu_depth_images/
saccade train attributes-soft --data csv:tables/fold0.csv --epochs 20 --set phases.0.optimizer.lr=1e-2 --out runs/fold0

With ``--test qa.894.raw.test.txt`` one table more, ``test.csv``, has the questions of that file as its test split.

DAQUAR: Malinowski and Fritz, "A Multi-World Approach to Question Answering about Real-World Scenes", 2014
(arXiv:1410.0210). Pictures whose numbers are near each other often show one room, so ten numbers in a row are in one
fold. A question is "what is the colour of the OBJECT ... in the image7": the object is the last word of its name, in
the singular; what follows (on, near, behind ...) is left out. Colours with fewer than ten answers are left out, and
objects with fewer than three questions are "other object"; both are counted over all folds. Two questions about one
object of one picture may have different answers, since what tells them apart is left out.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

FOLDS = 5
LEAST_ANSWERS = 10
LEAST_QUESTIONS = 3
COLOURS = {
    "beige", "black", "blue", "brown", "gold", "gray", "green", "orange", "pink", "purple", "red", "silver", "white",
    "yellow",
}  # fmt: skip
WHERE = (
    "above across along and around at attached beside between behind below beneath beyond close found hanging in "
    "inside is are kept lying near next of on over placed present reflected seen that to under visible wearing which "
    "with"
)
_REST = rf"(?: (?:{'|'.join(WHERE.split())})\b.*)?"
QUESTIONS = (
    re.compile(rf"what (?:is|are) (?:the )?colou?rs? of (?:the )?(.+?){_REST} ?in the image(\d+) \?$"),
    re.compile(rf"what colou?rs? (?:is|are) the (.+?){_REST} ?in the image(\d+) \?$"),
)
Question = tuple[str, str, list[str]]  # number of the picture, object, colours


def colour_questions(text: Path) -> Iterator[Question]:
    """The questions for colours in a file that has a line for each question and each answer in turn."""
    lines = [line.strip() for line in text.read_text(encoding="utf-8").splitlines()]
    for question, answer in zip(lines[::2], lines[1::2]):
        match = next((match for pattern in QUESTIONS if (match := pattern.match(question))), None)
        colours = {colour.strip() for colour in answer.split(",")}
        if match is not None and colours <= COLOURS:
            yield match[2], singular(match[1].split()[-1]), sorted(colours)


def singular(word: str) -> str:
    """The singular of an English noun, near enough for the names of things in a room.

    >>> [singular(word) for word in ("chairs", "shelves", "boxes", "glasses", "bookcase")]
    ['chair', 'shelf', 'box', 'glasses', 'bookcase']
    """
    if word in ("cloth", "clothes", "glasses"):
        return word
    if word.endswith("shelves"):
        return "shelf"
    if word.endswith("ies"):
        return word[:-3] + "y"
    if re.search("(ches|shes|xes|sses)$", word):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def room(picture: str) -> str:
    """The ten numbers in a row that a picture belongs to: ``12`` for the pictures 120 to 129."""
    return str(int(picture) // 10)


def named(questions: Sequence[Question], train: Sequence[Question]) -> list[Question]:
    """``questions`` with colours and objects that are common in ``train``."""
    answers = Counter(colour for *_, colours in train for colour in colours)
    common = {colour for colour, many in answers.items() if many >= LEAST_ANSWERS}
    of_object = Counter(thing for _, thing, colours in train if set(colours) <= common)
    return [
        (picture, thing if of_object[thing] >= LEAST_QUESTIONS else "other object", colours)
        for picture, thing, colours in questions
        if set(colours) <= common
    ]


def write(path: Path, pictures: Path, parts: Sequence[tuple[str, Question]]) -> None:
    """Write a table of ``parts``: (split, question)."""
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["image", "query", "labels", "split"])
        for split, (picture, thing, colours) in parts:
            table.writerow([pictures / f"image{picture}.jpg", thing, "; ".join(colours), split])


def main() -> None:
    """Write the tables that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("daquar", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--test", type=Path)
    options = parser.parse_args()
    pictures = (options.daquar / "nyu_depth_images").resolve()
    asked = list(colour_questions(options.daquar / "qa.894.raw.train.txt"))
    train = named(asked, asked)
    options.out.mkdir(parents=True, exist_ok=True)
    rooms = sorted({room(picture) for picture, *_ in train}, key=lambda name: hashlib.sha256(name.encode()).hexdigest())
    fold_of = {picture: rooms.index(room(picture)) % FOLDS for picture, *_ in train}
    for fold in range(FOLDS):
        splits = {fold: "test", (fold + 1) % FOLDS: "val"}
        parts = [(splits.get(fold_of[question[0]], "train"), question) for question in train]
        write(options.out / f"fold{fold}.csv", pictures, parts)
    if options.test is not None:
        parts = [("val" if fold_of[question[0]] == 0 else "train", question) for question in train]
        parts += [("test", question) for question in named(list(colour_questions(options.test)), asked)]
        write(options.out / "test.csv", pictures, parts)
    print(f"{len(train)} questions about {len(fold_of)} pictures, {FOLDS} folds in {options.out}")


if __name__ == "__main__":
    main()
