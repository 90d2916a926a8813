"""Files that paths, folders and globs mean, and the pictures that ship with saccade to try things with.

Of these the scenes lie in ``gallery``: ``digits`` is scene 136 of mref and ``clutter`` scene 40 of mdist (test split,
shipped glyphs), ``stripes`` picture 2 of details (test split). The photographs are among those that ship as
backgrounds; ``packs/backgrounds/attribution.json`` has their sources.
"""

from __future__ import annotations

import glob
import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from saccade.errors import DataError, nearest


def find_files(paths: Iterable[str | os.PathLike[str]], suffixes: Collection[str], thing: str) -> list[Path]:
    """The files meant by ``paths``: files as they are, folders through and through, globs spelt out.

    In folders, files with one of the ``suffixes`` count and hidden ones do not; each file comes once, in order.
    ``thing`` is what messages call one of them.
    """
    found: dict[Path, None] = {}
    asked = [os.fspath(path) for path in paths]
    for text in asked:
        path = local_path(text, thing)
        if path.is_dir():
            members = sorted(file for file in _shown_files(path) if file.suffix.lower() in suffixes)
        elif path.exists():
            members = [path]
        elif glob.has_magic(text):
            matches = (Path(match) for match in sorted(glob.glob(text, recursive=True)))
            members = [file for file in matches if file.is_file()]
        else:
            raise DataError(f"{path}: no such file or folder; check the path")
        found.update(dict.fromkeys(members))
    if not found:
        where = ", ".join(asked) or "an empty list of paths"
        raise DataError(f"no {plural(thing)} in {where}; looked for {' '.join(sorted(suffixes))}")
    return list(found)


def skipped_files(paths: Iterable[str | os.PathLike[str]], suffixes: Collection[str]) -> Counter[str]:
    """How many files in the folders of ``paths`` :func:`find_files` passes over, by kind; hidden ones do not count.

    A kind is the ending of the names in capitals, such as HEIC, or "no ending".
    """
    found: Counter[str] = Counter()
    for folder in (Path(path) for path in paths if str(path) and Path(path).is_dir()):
        others = (file for file in _shown_files(folder) if file.suffix.lower() not in suffixes)
        found.update(file.suffix.lstrip(".").upper() or "no ending" for file in others)
    return found


def local_path(text: str, thing: str) -> Path:
    """``text`` as a path on this machine; an empty one would mean the folder one happens to be in."""
    if not text:
        raise DataError(f"an empty path came where a {thing} was expected; name a file, a folder or a glob")
    if text.startswith(("http://", "https://")):
        raise DataError(f"{text}: an address, not a file; saccade does not download {plural(thing)}; download it first")
    return Path(text)


def plural(thing: str) -> str:
    """The plural of what one item is called.

    >>> plural("picture"), plural("story")
    ('pictures', 'stories')
    """
    return f"{thing[:-1]}ies" if thing.endswith("y") else f"{thing}s"


def _shown_files(folder: Path) -> Iterator[Path]:
    for file in folder.rglob("*"):
        if not any(part.startswith(".") for part in file.relative_to(folder).parts) and file.is_file():
            yield file


_HERE = Path(__file__).parent / "gallery"
_PHOTOGRAPHS = _HERE.parent / "scenes/packs/backgrounds"
_GLYPHS = "MNIST glyphs CC BY-SA 3.0 (LeCun, Cortes, Burges)"


@dataclass(frozen=True)
class ShippedPicture:
    """One picture to try things with."""

    path: Path
    shows: str
    ask: str  # What a model of its kind can be asked; empty for a photograph
    credit: str  # Author and licence


EXAMPLES = {
    "digits": ShippedPicture(_HERE / "digits.png", "seven coloured digits on black", "7", _GLYPHS),
    "clutter": ShippedPicture(_HERE / "clutter.png", "seven coloured digits among bits of others", "7", _GLYPHS),
    "stripes": ShippedPicture(_HERE / "stripes.webp", "discs, one with a mark of fine stripes", "", "generated"),
    "cat": ShippedPicture(_PHOTOGRAPHS / "test" / "cat.jpg", "a cat", "", "Stefan van der Walt, CC0 1.0"),
    "coffee": ShippedPicture(
        _PHOTOGRAPHS / "train" / "coffee.jpg",
        "a cup of coffee",
        "",
        "Rachel Michetti, courtesy of Pikolo Espresso Bar, CC0 1.0",
    ),
    "rocket": ShippedPicture(_PHOTOGRAPHS / "val" / "rocket.jpg", "a rocket takes off", "", "SpaceX, public domain"),
}  # by name


def example(name: str = "digits") -> Path:
    """The file of a picture that ships with saccade, such as ``digits``, ``stripes`` or ``cat`` (:data:`EXAMPLES`).

    Args:
        name: with or without its suffix.

    Raises:
        DataError: no such picture; the message names those that there are.

    >>> example("digits").name
    'digits.png'
    """
    found = next((each for key, each in EXAMPLES.items() if name in (key, each.path.name)), None)
    if found is None:
        raise DataError(f"no example '{name}': {nearest(str(name), EXAMPLES)}")
    return found.path
