"""Readers of caption data: the layouts of COCO, Flickr and Karpathy's splits, and your own tables.

Karpathy's splits (arXiv:1412.2306) are one JSON file for each set: an object with ``images``, a list of ``{filename,
filepath, split, sentences: [{raw, tokens}]}``.

COCO captions (Chen et al., arXiv:1504.00325). In the folder, or in ``annotations`` below it:

* ``dataset_coco.json`` of Karpathy, the splits of the published numbers: 82,783 train, 5,000 val and 5,000 test, and
  30,504 ``restval``, which train only if the option asks;
* else ``captions_train2014.json`` and ``captions_val2014.json`` (or 2017). Of the val pictures 5,000 are val and 5,000
  test (at most half of them each), by a hash of their names; the rest are ``restval``. Not comparable with published
  numbers.

Pictures are in ``train2014`` and ``val2014``, in the folder or in ``images`` below it.

Flickr8k and Flickr30k (Hodosh et al., JAIR 2013; Young et al., TACL 2014). Below one folder:

* captions: ``Flickr8k.token.txt``, ``results_20130124.token``: lines ``PICTURE#NUMBER ⇥ CAPTION``;
* splits: ``Flickr_8k.trainImages.txt``, dev and test alike; Flickr30k has none of its own: ``train.txt``, ``val.txt``
  and ``test.txt`` with a picture, or its number, in each line;
* or both in Karpathy's ``dataset_flickr8k.json`` (``dataset_flickr30k.json``), which counts where it is there;
* the pictures, in the folder that their archive unpacks to, or in ``Images``.

Your own table has ``image, caption``, a row for each caption; in JSON lines ``captions`` may be a list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from saccade.config import Within
from saccade.data.examples import SPLITS, hashed_share
from saccade.data.tables.doubts import check_usable
from saccade.data.tables.readers import OWN, Reader
from saccade.data.tables.rows import Cells, UnusableRowError, json_in, layout_of, text_in
from saccade.data.tables.table import Columns, Row, Table, TableOptions, read_rows
from saccade.errors import DataError
from saccade.families.caption.vocabulary import tokenise

CAPTIONS = 5  # Most captions of a picture, as in the paper: COCO has up to seven


def _captions(cells: Cells) -> tuple[str, ...]:
    several = cells.get("captions")
    return tuple(map(_clean, several if isinstance(several, list) and several else [cells.get("caption")]))


def _clean(caption: object) -> str:
    text = " ".join(text_in({"caption": caption}, "caption").split())
    if not tokenise(text):
        raise UnusableRowError("empty caption", f"'{text[:40]}' has no word")
    return text


# The sentences about a picture.
COLUMNS = Columns(needed=("image", "caption"), optional=frozenset(), labels=_captions, unknown=None)


@dataclass(frozen=True)
class CaptionOptions(TableOptions):
    """Options of all caption readers."""

    captions: Annotated[int, Within(1)] = CAPTIONS  # Most captions of a picture; the first ones stay


class RawCaption(NamedTuple):
    """One caption as in a file."""

    where: str
    image: Path | None  # none: the picture is not there
    caption: object
    split: str
    key: tuple[object, ...]  # what no other caption may have


def captions_table(
    name: str, captions: Iterable[RawCaption], options: CaptionOptions, skipped: list[str], doubts: Sequence[str] = ()
) -> Table:
    """A table of all captions, at most ``options.captions`` of a picture; unusable ones are added to ``skipped``."""
    rows: dict[Path, Row] = {}
    keys: set[tuple[object, ...]] = set()
    for where, image, caption, split, key in captions:
        try:
            if key in keys:
                raise UnusableRowError("duplicate", f"{key[-1]}"[:40])
            keys.add(key)
            if image is None:
                raise UnusableRowError("no such picture", f"{key[0]}")
            text = _clean(caption)
            row = rows.setdefault(image, Row(image, (), split))
            if row.split != split:
                raise UnusableRowError("picture in two splits", f"{image.name} in {row.split} and {split}")
            if len(row.labels) < options.captions:
                rows[image] = replace(row, labels=(*row.labels, text))
        except UnusableRowError as error:
            skipped.append(error.at(where))
    named_rows = [(row.image.name, row) for row in rows.values()]
    check_usable(name, named_rows, skipped, strict=options.strict, thing="caption")
    return Table.of(name, named_rows, COLUMNS, skipped=skipped, several=True, doubts=doubts)


def read_own(reader: str, path: Path, options: CaptionOptions) -> Table:
    """The captions of your own file or folder."""
    name, cells = f"{reader}:{path}", OWN[reader](path, COLUMNS)
    rows, doubts = read_rows(name, cells, COLUMNS)
    captions = (
        RawCaption(where, row.image, caption, row.split, (row.image, caption))
        for where, row in rows
        for caption in row.labels
    )
    return captions_table(name, captions, options, cells.skipped, doubts)


def _first_file(*places: Path) -> Path | None:
    return next((place for place in places if place.is_file()), None)


def _finder(*folders: Path) -> Callable[[Path], Path | None]:
    return lru_cache(maxsize=None)(lambda picture: _first_file(*(folder / picture for folder in folders)))


def karpathy_captions(
    path: Path, find: Callable[[Path], Path | None], splits: Mapping[str, str]
) -> Iterator[RawCaption]:
    """The captions of Karpathy's file ``path``; pictures outside ``splits`` are skipped."""
    with layout_of(path, "Karpathy's dataset_*.json: an image lacks filename, split or sentences"):
        for entry in json_in(path)["images"]:
            if entry["split"] in splits:
                picture = Path(entry.get("filepath", ""), entry["filename"])
                image, captions = find(picture), [sentence["raw"] for sentence in entry["sentences"]]
                for number, caption in enumerate(captions if captions and image else [None]):
                    yield RawCaption(picture.name, image, caption, splits[entry["split"]], (picture, number))


COCO_HELD_OUT = 5_000  # pictures of val, and of test, cut from the official val pictures


@dataclass(frozen=True)
class CocoOptions(CaptionOptions):
    """How the captions are read."""

    restval: bool = False  # Also train on the pictures outside val and test (``restval``)


def read_coco(path: Path, options: CocoOptions) -> Table:
    """The captions in ``path``: the folder of COCO, or one of the JSON files in it."""
    splits = {split: split for split in SPLITS} | ({"restval": "train"} if options.restval else {})
    folder, karpathy = path, _first_file(path / "dataset_coco.json", path / "annotations" / "dataset_coco.json")
    if path.is_file():
        folder = path.parent.parent if path.parent.name == "annotations" else path.parent
        karpathy = None if path.name.startswith("captions_") else path
    find = _finder(folder, folder / "images")
    if karpathy is None:
        captions = _annotated_captions(folder, find, splits)
    else:
        captions = karpathy_captions(karpathy, find, splits)
    return captions_table(f"coco:{path}", captions, options, [])


def _annotated_captions(
    folder: Path, find: Callable[[Path], Path | None], splits: Mapping[str, str]
) -> Iterator[RawCaption]:
    """The official annotations, with the val pictures cut into val, test and the rest."""

    def annotations(part: str) -> Path | None:
        return _first_file(folder / "annotations" / f"captions_{part}.json", folder / f"captions_{part}.json")

    year = next((year for year in ("2014", "2017") if annotations(f"train{year}")), None)
    if year is None:
        wanted = "neither dataset_coco.json nor annotations/captions_train2014.json (or 2017)"
        raise DataError(f"{folder}: {wanted} is here; name COCO's folder, with its annotations unpacked")
    for part in (f"train{year}", f"val{year}"):
        if (file := annotations(part)) is None:
            continue
        content = json_in(file)
        with layout_of(file, "COCO's caption annotations"):
            names = {int(image["id"]): str(image.get("file_name")) for image in content["images"]}
            captions = [
                (int(entry["image_id"]), int(entry["id"]), entry.get("caption")) for entry in content["annotations"]
            ]
        order = sorted(set(names.values()), key=lambda name: (hashed_share(name), name))
        size = min(COCO_HELD_OUT, len(order) // 2)
        split_of = dict.fromkeys(order[size : 2 * size], "test") | dict.fromkeys(order[:size], "val")
        for image, number, caption in captions:
            name = names.get(image)
            split = splits.get("train" if part.startswith("train") else split_of.get(name or "", "restval"))
            if split is not None:
                picture = None if name is None else find(Path(part, name))
                key = (f"image {image}" if name is None else f"{part}/{name}", number)
                yield RawCaption(f"{file.name} annotation {number}", picture, caption, split, key)


FLICKR_HELD_OUT = 500  # training pictures that choose a model where the dev pictures are kept to report on
FLICKR_TOKENS = ("Flickr8k.token.txt", "results_20130124.token", "results.token")
FLICKR_LISTS = {
    "train": ("Flickr_8k.trainImages.txt", "train.txt", "flickr30k_train.txt"),
    "val": ("Flickr_8k.devImages.txt", "val.txt", "flickr30k_val.txt"),
    "test": ("Flickr_8k.testImages.txt", "test.txt", "flickr30k_test.txt"),
}
FLICKR_PICTURES = ("Images", "Flicker8k_Dataset", "Flickr8k_Dataset", "flickr30k-images", "flickr30k_images")
FLICKR_TEXTS = (".", "Flickr8k_text", "flickr30k")  # folders that the text files may be in


@dataclass(frozen=True)
class FlickrOptions(CaptionOptions):
    """How the captions are read."""

    # ``official``: the lists. ``dev``, without test pictures or to keep them: the dev pictures are test, and val is 500
    # training pictures by a hash of their names.
    splits: Literal["official", "dev"] = "official"


def read_flickr(reader: str, path: Path, options: FlickrOptions) -> Table:
    """The captions in ``path``, the unpacked folder of ``reader``, flickr8k or flickr30k."""
    folders = [path / name for name in FLICKR_PICTURES if (path / name).is_dir()]
    if not folders:
        wanted = ", ".join(FLICKR_PICTURES)
        raise DataError(f"{path}: no pictures in {wanted}; name the folder that {reader} was unpacked in")
    find, skipped = _finder(*folders), list[str]()
    karpathy, tokens = (
        _first_file(*(path / folder / name for folder in FLICKR_TEXTS for name in names))
        for names in ((f"dataset_{reader}.json",), FLICKR_TOKENS)
    )
    if karpathy is not None:
        captions = karpathy_captions(
            karpathy, lambda picture: find(Path(picture.name)), {name: name for name in SPLITS}
        )
    elif tokens is not None:
        captions = _token_captions(tokens, _listed(path), find, skipped)
    else:
        raise DataError(f"{path}: neither dataset_{reader}.json nor {' nor '.join(FLICKR_TOKENS)} is here")
    table = captions_table(f"{reader}:{path}", captions, options, skipped)
    return _reported_on_dev(table) if options.splits == "dev" else table


def _token_captions(
    tokens: Path, split_of: Mapping[str, str], find: Callable[[Path], Path | None], skipped: list[str]
) -> Iterator[RawCaption]:
    """The captions of a token file, lines of PICTURE#NUMBER, tab and caption; then pictures without a line."""
    silent = dict(split_of)
    for line, text in enumerate(tokens.read_bytes().decode("utf-8-sig", "surrogateescape").split("\n"), start=1):
        key, tab, caption = text.strip().partition("\t")
        name, number, _ = key.partition("#")
        split = split_of.get(Path(name).stem)
        if key and not (tab and number):
            error = UnusableRowError("not PICTURE#NUMBER, tab, caption", ascii(key[:40]))
            skipped.append(error.at(f"{tokens.name} line {line}"))
        elif key and split is not None:
            silent.pop(Path(name).stem, None)
            yield RawCaption(f"{tokens.name} line {line}", find(Path(name)), caption, split, (key,))
    skipped += [f"no caption: {stem}, listed for {split}" for stem, split in silent.items()]


def _listed(path: Path) -> dict[str, str]:
    split_of: dict[str, str] = {}
    for split, names in FLICKR_LISTS.items():
        file = _first_file(*(path / folder / name for folder in FLICKR_TEXTS for name in names))
        for line in [] if file is None else file.read_bytes().decode("utf-8-sig", "surrogateescape").split():
            if split_of.setdefault(stem := Path(line).stem, split) != split:
                raise DataError(f"{file}: {stem} is listed for {split_of[stem]} too; a picture is in one split only")
    if not split_of:
        wanted = ", ".join(f"{names[0]} or {names[1]}" for names in FLICKR_LISTS.values())
        raise DataError(f"{path}: no list says which pictures are for training: {wanted}; put them there")
    return split_of


def _reported_on_dev(table: Table) -> Table:
    """The table with its val pictures as test, and some training pictures as val."""
    train = [row.image.name for row in table.rows if row.split == "train"]
    held_out = set(sorted(train, key=lambda name: (hashed_share(name), name))[:FLICKR_HELD_OUT])
    moved = {"val": "test", "train": "train"}
    rows = [row for row in table.rows if row.split != "test"]
    rows = [replace(row, split="val" if row.image.name in held_out else moved[row.split]) for row in rows]
    return replace(table, rows=tuple(rows))


CAPTION_READERS: dict[str, Reader] = {
    **{name: Reader(partial(read_own, name), CaptionOptions) for name in OWN if name not in ("coco", "folder")},
    "flickr8k": Reader(partial(read_flickr, "flickr8k"), FlickrOptions),
    "flickr30k": Reader(partial(read_flickr, "flickr30k"), FlickrOptions),
    "coco": Reader(read_coco, CocoOptions),
}
