"""Readers of caption data: the layouts of COCO, Flickr and Karpathy's splits, and your own tables.

Karpathy's splits of Flickr8k, Flickr30k and COCO are one JSON file each (Karpathy and Fei-Fei, arXiv:1412.2306): an
object with ``images``, a list of ``{filename, filepath, split, sentences: [{raw, tokens}]}``.

COCO captions (Chen et al., "Microsoft COCO Captions", arXiv:1504.00325). In the folder, or in ``annotations`` below it:

* ``dataset_coco.json`` of Karpathy, the splits of the published numbers: 82,783 train, 5,000 val and 5,000 test, and
  30,504 ``restval``, which train only if the option asks, since the paper's 82,783 training pictures have none of them;
* else ``captions_train2014.json`` and ``captions_val2014.json`` (or 2017). Captions of the official test pictures are
  not public, so of the val pictures 5,000 are val and 5,000 test (or half of them each, where there are fewer than
  10,000), by a hash of their names; the rest are ``restval``. Not comparable with published numbers.

Pictures are in ``train2014`` and ``val2014``, in the folder or in ``images`` below it.

Flickr8k and Flickr30k: photographs of people and animals, five captions each, in their official layouts
(Hodosh et al., JAIR 2013; Young et al., TACL 2014). Below one folder:

* captions: ``Flickr8k.token.txt``, ``results_20130124.token``: lines ``PICTURE#NUMBER ⇥ CAPTION``;
* splits: ``Flickr_8k.trainImages.txt``, dev and test alike; Flickr30k has none of its own: ``train.txt``, ``val.txt``
  and ``test.txt`` with a picture, or its number, in each line;
* or both in Karpathy's ``dataset_flickr8k.json`` (``dataset_flickr30k.json``), which counts where it is there;
* the pictures, in the folder that their archive unpacks to, or in ``Images``.

A picture that no list names is in no split and is skipped: the Flickr8k archive has 91 of them.

A table of one's own has ``image, caption``; a picture with several captions has as many rows, all in one split. In JSON
lines ``captions`` may be a list. Readers yield captions one by one, in any order; :func:`captions_table` makes a table
of pictures of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from saccade.config import Within
from saccade.data.tables.doubts import check_usable
from saccade.data.tables.references import OWN, Reader
from saccade.data.tables.rows import Cells, UnusableRowError, json_in, text_in
from saccade.data.tables.splits import SPLITS, hashed_share
from saccade.data.tables.table import Columns, Row, Table, TableOptions, read_rows
from saccade.errors import DataError
from saccade.families.caption.vocabulary import tokenise

CAPTIONS = 5
"""Captions of a picture at most, as in the paper: COCO has up to seven, and a fair score has five everywhere."""


def _captions(cells: Cells) -> tuple[str, ...]:
    several = cells.get("captions")
    return tuple(map(_clean, several if isinstance(several, list) and several else [text_in(cells, "caption")]))


def _clean(caption: object) -> str:
    """The caption on one line; it must hold a word."""
    if not isinstance(caption, str):
        raise UnusableRowError("caption is not text", repr(caption)[:40])
    text = " ".join(caption.split())
    if not tokenise(text):
        raise UnusableRowError("empty caption", f"'{text[:40]}' has no word" if text else "")
    return text


COLUMNS = Columns(needed=("image", "caption"), optional=frozenset(), labels=_captions, unknown=None)
"""The sentences about a picture."""


@dataclass(frozen=True)
class CaptionOptions(TableOptions):
    """What all readers of captions can be told."""

    captions: Annotated[int, Within(1)] = CAPTIONS
    """Captions of a picture at most; the first ones stay."""


Said = tuple[str, Path, object, str]
"""One caption as it is found: where that is, its picture, what was said, and the split."""


def captions_table(
    name: str,
    said: Iterable[Said],
    options: CaptionOptions,
    skipped: list[str],
    *,
    again: str = "",
    doubts: Sequence[str] = (),
) -> Table:
    """All that was said, pictures in the order in which they were first seen.

    A caption beyond ``options.captions`` is dropped without a word, as in the paper.

    Args:
        name: READER:PATH.
        said: the captions.
        options: how many captions stay, and what to do about those that cannot be used.
        skipped: what cannot be used, each with its reason; readers and this function add to it.
        again: what to call a caption that the picture has already; if empty, two people said the same.
        doubts: what looks wrong.

    Raises:
        DataError: there is no caption, or the options are strict and something was left out.
    """
    rows: dict[Path, Row] = {}
    for where, image, caption, split in said:
        try:
            text = _clean(caption)
            row = rows.setdefault(image, Row(image, (), split))
            if row.split != split:
                raise UnusableRowError("picture in two splits", f"{image.name} in {row.split} and {split}")
            if again and text in row.labels:
                raise UnusableRowError(again, f"'{text[:40]}'")
        except UnusableRowError as error:
            skipped.append(error.at(where))
            continue
        if len(row.labels) < options.captions:
            rows[image] = replace(row, labels=(*row.labels, text))
    found = [(row.image.name, row) for row in rows.values()]
    check_usable(name, found, skipped, strict=options.strict, thing="caption")
    return Table.of(name, found, COLUMNS, skipped=skipped, several=True, doubts=doubts)


def read_own(reader: str, path: Path, options: CaptionOptions) -> Table:
    """The captions of a file or folder of one's own."""
    name, found = f"{reader}:{path}", OWN[reader](path, COLUMNS)
    rows, doubts = read_rows(name, found, COLUMNS)
    said = ((where, row.image, caption, row.split) for where, row in rows for caption in row.labels)
    return captions_table(name, said, options, found.skipped, again="duplicate", doubts=doubts)


def said_by_karpathy(
    path: Path, find: Callable[[str, str], Path | None], splits: Mapping[str, str], skipped: list[str]
) -> Iterator[Said]:
    """The captions of Karpathy's file ``path``.

    Args:
        path: the JSON file.
        find: where the picture of a folder (``val2014`` for COCO, empty for the Flickr sets) and name is, if anywhere.
        splits: a split of the file → train, val or test; pictures of other splits are passed over.
        skipped: takes what cannot be used.
    """
    try:
        entries = [
            (str(each.get("filepath", "")), each["filename"], each["split"], [s["raw"] for s in each["sentences"]])
            for each in json_in(path)["images"]
        ]
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{path}: an entry of 'images' lacks filename, split or sentences ({type(error).__name__}: {error}); "
            "this reader takes Karpathy's dataset_*.json"
        ) from error
    seen: set[tuple[str, str]] = set()
    for folder, file, split, captions in entries:
        if split not in splits:
            continue
        image = find(folder, file)
        if (folder, file) in seen:
            skipped.append(UnusableRowError("picture named twice").at(file))
        elif image is None:
            skipped.append(UnusableRowError("no such picture", folder).at(file))
        elif not captions:
            skipped.append(UnusableRowError("no caption").at(file))
        else:
            yield from ((file, image, caption, splits[split]) for caption in captions)
        seen.add((folder, file))


COCO_HELD_OUT = 5_000
"""Pictures of val, and of test, cut from the official val pictures."""

_KARPATHY = "dataset_coco.json"
_YEARS = ("2014", "2017")


@dataclass(frozen=True)
class CocoOptions(CaptionOptions):
    """How the captions are read."""

    restval: bool = False
    """Train on the pictures that are held out and not needed for val and test, too."""


def read_coco(path: Path, options: CocoOptions) -> Table:
    """The captions in ``path``: the folder of COCO, or one of the JSON files in it."""
    folder, karpathy = _layout(path)
    splits = {split: split for split in SPLITS} | ({"restval": "train"} if options.restval else {})
    skipped: list[str] = []
    if karpathy is not None:
        said = said_by_karpathy(karpathy, partial(_picture, folder), splits, skipped)
    else:
        said = _said_in_annotations(folder, splits, skipped)
    return captions_table(f"coco:{path}", said, options, skipped)


def _layout(path: Path) -> tuple[Path, Path | None]:
    """The folder that pictures are looked for in, and the file of Karpathy, if that is what is meant."""
    if path.is_file():
        folder = path.parent.parent if path.parent.name == "annotations" else path.parent
        return folder, None if path.name.startswith("captions_") else path
    if not path.is_dir():
        raise DataError(f"{path}: no such file or folder; name COCO's folder, or its {_KARPATHY}")
    places = (path / _KARPATHY, path / "annotations" / _KARPATHY)
    return path, next((place for place in places if place.is_file()), None)


def _picture(folder: Path, part: str, file: str) -> Path | None:
    places = (folder / part / file, folder / "images" / part / file)
    return next((place for place in places if place.is_file()), None)


def _said_in_annotations(folder: Path, splits: Mapping[str, str], skipped: list[str]) -> Iterator[Said]:
    year, train = next(
        ((year, file) for year in _YEARS if (file := _annotations(folder, f"train{year}")) is not None), ("", None)
    )
    if train is None:
        raise DataError(
            f"{folder}: neither {_KARPATHY} nor annotations/captions_train2014.json (or 2017) is here; "
            "name COCO's folder, with its annotations unpacked"
        )
    yield from _said_in_part(train, folder, f"train{year}", None, splits, skipped)
    held_out = _annotations(folder, f"val{year}")
    if held_out is not None:
        names = {name for _, name in _read_coco(held_out)[0]}
        order = sorted(names, key=lambda name: (hashed_share(name), name))
        each = min(COCO_HELD_OUT, len(order) // 2)
        split_of = {name: "val" if place < each else "test" for place, name in enumerate(order[: 2 * each])}
        yield from _said_in_part(held_out, folder, f"val{year}", split_of, splits, skipped)


def _said_in_part(
    path: Path,
    folder: Path,
    part: str,
    split_of: Mapping[str, str] | None,
    splits: Mapping[str, str],
    skipped: list[str],
) -> Iterator[Said]:
    """The captions of one annotation file; without ``split_of`` all of them are for training."""
    images, captions = _read_coco(path)
    names = dict(images)
    found = {image: _picture(folder, part, name) for image, name in images}
    seen: set[int] = set()
    for image, annotation, caption in captions:
        split = splits.get("train" if split_of is None else split_of.get(names.get(image, ""), "restval"))
        if split is None:
            continue
        where, picture = f"{path.name} annotation {annotation}", found.get(image)
        if annotation in seen:
            skipped.append(UnusableRowError("caption numbered twice").at(where))
        elif image not in names:
            skipped.append(UnusableRowError("caption of no picture", f"image {image}").at(where))
        elif picture is None:
            skipped.append(UnusableRowError("no such picture", f"{part}/{names[image]}").at(where))
        else:
            yield where, picture, caption, split
        seen.add(annotation)


def _annotations(folder: Path, part: str) -> Path | None:
    name = f"captions_{part}.json"
    return next((place for place in (folder / "annotations" / name, folder / name) if place.is_file()), None)


def _read_coco(path: Path) -> tuple[list[tuple[int, str]], list[tuple[int, int, object]]]:
    """Numbers and names of the pictures in a file; and of its captions the picture, the number and the text."""
    held = json_in(path)
    try:
        images = [(int(each["id"]), str(each.get("file_name"))) for each in held["images"]]
        captions = [(int(each["image_id"]), int(each["id"]), each.get("caption")) for each in held["annotations"]]
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        said = f"{type(error).__name__}: {error}"
        raise DataError(f"{path}: not COCO's caption annotations ({said}); download it again") from error
    return images, captions


FLICKR_HELD_OUT = 500
"""Training pictures that choose a model where the dev pictures are kept to report on."""

_Find = Callable[[str], Path | None]


@dataclass(frozen=True)
class FlickrOptions(CaptionOptions):
    """How the captions are read."""

    splits: Literal["official", "dev"] = "official"
    """``official``: the lists as they are. ``dev``, for those who have no test pictures or keep them: the dev pictures
    are test, and val is 500 training pictures by a hash of their names."""


@dataclass(frozen=True)
class _Names:
    """What the files of one of the two are called."""

    reader: str
    karpathy: str
    tokens: tuple[str, ...]
    lists: Mapping[str, tuple[str, ...]]
    pictures: tuple[str, ...]
    texts: tuple[str, ...]
    """Folders, from the one that is named, that the text files may be in."""


_FLICKR8K = _Names(
    "flickr8k",
    "dataset_flickr8k.json",
    ("Flickr8k.token.txt",),
    {
        "train": ("Flickr_8k.trainImages.txt",),
        "val": ("Flickr_8k.devImages.txt",),
        "test": ("Flickr_8k.testImages.txt",),
    },
    ("Images", "Flicker8k_Dataset", "Flickr8k_Dataset"),
    (".", "Flickr8k_text"),
)
_FLICKR30K = _Names(
    "flickr30k",
    "dataset_flickr30k.json",
    ("results_20130124.token", "results.token"),
    {split: (f"{split}.txt", f"flickr30k_{split}.txt") for split in SPLITS},
    ("Images", "flickr30k-images", "flickr30k_images"),
    (".", "flickr30k"),
)


def read_flickr8k(path: Path, options: FlickrOptions) -> Table:
    """The captions in ``path``, the folder that Flickr8k was unpacked in."""
    return _read_flickr(_FLICKR8K, path, options)


def read_flickr30k(path: Path, options: FlickrOptions) -> Table:
    """The captions in ``path``, the folder that Flickr30k was unpacked in."""
    return _read_flickr(_FLICKR30K, path, options)


def _read_flickr(names: _Names, path: Path, options: FlickrOptions) -> Table:
    if not path.is_dir():
        packed = " (it is a file: unpack it)" if path.is_file() else ""
        raise DataError(f"{path}: not a folder{packed}; name the one with the captions and pictures of {names.reader}")
    find = _finder(names, path)
    karpathy, skipped = _text_file(names, path, names.karpathy), list[str]()
    if karpathy is not None:
        said = said_by_karpathy(karpathy, lambda _, file: find(file), {split: split for split in SPLITS}, skipped)
    else:
        said = _said_in_tokens(names, path, find, skipped)
    table = captions_table(f"{names.reader}:{path}", said, options, skipped)
    return _reported_on_dev(table) if options.splits == "dev" else table


def _reported_on_dev(table: Table) -> Table:
    """The table with its val pictures as test, and some training pictures as val."""
    train = [row.image.name for row in table.rows if row.split == "train"]
    held_out = set(sorted(train, key=lambda name: (hashed_share(name), name))[:FLICKR_HELD_OUT])
    kept = (row for row in table.rows if row.split != "test")
    moved = {"val": "test", "train": "train"}
    rows = (replace(row, split="val" if row.image.name in held_out else moved[row.split]) for row in kept)
    return replace(table, rows=tuple(rows))


def _said_in_tokens(names: _Names, path: Path, find: _Find, skipped: list[str]) -> Iterator[Said]:
    tokens = _text_file(names, path, *names.tokens)
    if tokens is None:
        wanted = " nor ".join((names.karpathy, *names.tokens))
        raise DataError(f"{path}: neither {wanted} is here; name the folder that {names.reader} was unpacked in")
    split_of = _listed(names, path)
    seen: set[str] = set()
    for line, text in _lines(tokens, skipped):
        key, tab, caption = text.partition("\t")
        name, number, _ = key.partition("#")
        where, split = f"{tokens.name} line {line}", split_of.get(Path(name).stem)
        if not tab or not number:
            skipped.append(UnusableRowError("not PICTURE#NUMBER, tab, caption", text[:40]).at(where))
        elif split is None:
            continue
        elif key in seen:
            skipped.append(UnusableRowError("caption numbered twice", key).at(where))
        elif (image := find(name)) is None:
            skipped.append(UnusableRowError("no such picture", name).at(where))
        else:
            yield where, image, caption, split
        if tab and number:
            seen.add(key)
    captioned = {Path(key.partition("#")[0]).stem for key in seen}
    silent = [stem for stem in split_of if stem not in captioned]
    skipped += [f"no caption: {stem}, listed for {split_of[stem]}" for stem in silent]


def _listed(names: _Names, path: Path) -> dict[str, str]:
    """Picture, without its suffix, → split."""
    split_of: dict[str, str] = {}
    for split, candidates in names.lists.items():
        file = _text_file(names, path, *candidates)
        for stem in _stems(file) if file is not None else ():
            if split_of.setdefault(stem, split) != split:
                raise DataError(f"{file}: {stem} is listed for {split_of[stem]} too; a picture is in one split only")
    if not split_of:
        wanted = ", ".join(candidates[0] for candidates in names.lists.values())
        raise DataError(f"{path}: no list says which pictures are for training: {wanted}; put them there")
    return split_of


def _stems(file: Path) -> list[str]:
    try:
        return [Path(name).stem for line in file.read_text(encoding="utf-8-sig").splitlines() if (name := line.strip())]
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{file}: cannot be read ({error}); download it again") from error


def _lines(path: Path, skipped: list[str]) -> Iterator[tuple[int, str]]:
    """The lines of a file that are UTF-8, by number; those that are not are noted, and the rest goes on."""
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                try:
                    text = line.decode("utf-8-sig").strip()
                except UnicodeDecodeError as error:
                    found = f"byte 0x{line[error.start]:02x}"
                    skipped.append(UnusableRowError("not UTF-8", found).at(f"{path.name} line {number}"))
                    continue
                if text:
                    yield number, text
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error}); check the path") from error


def _text_file(names: _Names, path: Path, *candidates: str) -> Path | None:
    places = (path / folder / name for folder in names.texts for name in candidates)
    return next((place for place in places if place.is_file()), None)


def _finder(names: _Names, path: Path) -> _Find:
    """Where pictures are found by name."""
    folders = [path / folder for folder in names.pictures if (path / folder).is_dir()]
    if not folders:
        raise DataError(f"{path}: no pictures in {', '.join(names.pictures)}; unpack their archive there")

    def find(name: str) -> Path | None:
        return next((place for folder in folders if (place := folder / name).is_file()), None)

    return find


CAPTION_READERS: dict[str, Reader] = {
    **{name: Reader(partial(read_own, name), CaptionOptions) for name in OWN if name not in ("coco", "folder")},
    "flickr8k": Reader(read_flickr8k, FlickrOptions),
    "flickr30k": Reader(read_flickr30k, FlickrOptions),
    "coco": Reader(read_coco, CocoOptions),
}
