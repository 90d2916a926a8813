"""COCO captions: Karpathy's splits, or the official annotations.

Chen et al., "Microsoft COCO Captions" (arXiv:1504.00325). In the folder, or in ``annotations`` below it:

* ``dataset_coco.json`` of Karpathy, the splits of the published numbers: 82,783 train, 5,000 val and 5,000 test, and
  30,504 ``restval``, which train only if the option asks, since the paper's 82,783 training pictures have none of them;
* else ``captions_train2014.json`` and ``captions_val2014.json`` (or 2017). Captions of the official test pictures are
  not public, so of the val pictures 5,000 are val and 5,000 test (or half of them each, where there are fewer than
  10,000), by a hash of their names; the rest are ``restval``. Not comparable with published numbers.

Pictures are in ``train2014`` and ``val2014``, in the folder or in ``images`` below it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from saccade.data.tables.rows import UnusableRowError, json_in
from saccade.data.tables.splits import SPLITS, hashed_share
from saccade.errors import DataError
from saccade.families.caption.karpathy import gather_karpathy
from saccade.families.caption.table import CaptionGathering, CaptionOptions, CaptionTable

HELD_OUT = 5_000
"""Pictures of val, and of test, cut from the official val pictures."""

_KARPATHY = "dataset_coco.json"
_YEARS = ("2014", "2017")


@dataclass(frozen=True)
class CocoOptions(CaptionOptions):
    """How the captions are read."""

    restval: bool = False
    """Train on the pictures that are held out and not needed for val and test, too."""


def read_coco(path: Path, options: CocoOptions) -> CaptionTable:
    """The captions in ``path``: the folder of COCO, or one of the JSON files in it."""
    folder, karpathy = _layout(path)
    gathering = CaptionGathering(f"coco:{path}", options)
    splits = {split: split for split in SPLITS} | ({"restval": "train"} if options.restval else {})
    if karpathy is not None:
        gather_karpathy(karpathy, gathering, lambda entry: _picture(folder, entry.folder, entry.file), splits)
    else:
        _gather_annotations(folder, gathering, splits)
    return gathering.table()


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


def _gather_annotations(folder: Path, gathering: CaptionGathering, splits: dict[str, str]) -> None:
    year, train = next(
        ((year, file) for year in _YEARS if (file := _annotations(folder, f"train{year}")) is not None), ("", None)
    )
    if train is None:
        raise DataError(
            f"{folder}: neither {_KARPATHY} nor annotations/captions_train2014.json (or 2017) is here; "
            "name COCO's folder, with its annotations unpacked"
        )
    _gather_part(train, gathering, folder, f"train{year}", None, splits)
    held_out = _annotations(folder, f"val{year}")
    if held_out is not None:
        names = {name for _, name in _read(held_out)[0]}
        order = sorted(names, key=lambda name: (hashed_share(name), name))
        each = min(HELD_OUT, len(order) // 2)
        split_of = {name: "val" if place < each else "test" for place, name in enumerate(order[: 2 * each])}
        _gather_part(held_out, gathering, folder, f"val{year}", split_of, splits)


def _gather_part(
    path: Path,
    gathering: CaptionGathering,
    folder: Path,
    part: str,
    split_of: dict[str, str] | None,
    splits: dict[str, str],
) -> None:
    """Add the captions of one annotation file; without ``split_of`` all of them are for training."""
    images, captions = _read(path)
    names = dict(images)
    found: dict[int, Path | None] = {}
    seen: set[int] = set()
    for image, annotation, caption in captions:
        split = splits.get("train" if split_of is None else split_of.get(names.get(image, ""), "restval"))
        if split is None:
            continue
        try:
            if annotation in seen:
                raise UnusableRowError("caption numbered twice")
            seen.add(annotation)
            if image not in names:
                raise UnusableRowError("caption of no picture", f"image {image}")
            if image not in found:
                found[image] = _picture(folder, part, names[image])
            picture = found[image]
            if picture is None:
                raise UnusableRowError("no such picture", f"{part}/{names[image]}")
            gathering.add(picture, caption, split)
        except UnusableRowError as error:
            gathering.skip(f"{path.name} annotation {annotation}", error)


def _annotations(folder: Path, part: str) -> Path | None:
    name = f"captions_{part}.json"
    return next((place for place in (folder / "annotations" / name, folder / name) if place.is_file()), None)


def _read(path: Path) -> tuple[list[tuple[int, str]], list[tuple[int, int, object]]]:
    """Numbers and names of the pictures in a file; and of its captions the picture, the number and the text."""
    held = json_in(path)
    try:
        images = [(int(each["id"]), str(each.get("file_name"))) for each in held["images"]]
        captions = [(int(each["image_id"]), int(each["id"]), each.get("caption")) for each in held["annotations"]]
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        said = f"{type(error).__name__}: {error}"
        raise DataError(f"{path}: not COCO's caption annotations ({said}); download it again") from error
    return images, captions
