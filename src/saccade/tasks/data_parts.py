"""What a task learns from, as names and values: rows, contents of pictures, words, settings, glyphs, photographs.

The engine stores them when a run begins and compares them when it resumes (:mod:`saccade.engine.run_folder`). Only
train counts, and val, which chooses the model. A value that begins with ``#`` is a digest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from saccade.backbones.pretrained import weights_digest
from saccade.data.examples import Split
from saccade.data.pictures.files import content_digests
from saccade.data.scenes.glyphs import GlyphPolicy, glyphs_for
from saccade.data.scenes.photo_backgrounds import photograph_files
from saccade.data.tables.table import Row, Table
from saccade.progress import OnProgress

Entries = list[tuple[str, str]]  # Names and values, in order
LEARNED: tuple[Split, ...] = ("train", "val")  # Splits that a run learns from

_LIMITS = ("cache_mb", "features_mb")  # settings that say where data is kept, not what it is
_DIGITS = 16


def settings_entries(settings: Mapping[str, object], prefix: str = "") -> Entries:
    """Settings by dotted name, without those that only bound memory and disk."""
    entries: Entries = []
    for name, value in settings.items():
        if isinstance(value, Mapping):
            entries += settings_entries(value, f"{prefix}{name}.")
        elif name not in _LIMITS:
            entries.append((f"{prefix}{name}", json.dumps(value, ensure_ascii=False, default=str)))
    return entries


def picture_entries(images: Iterable[Path], on_progress: OnProgress) -> Entries:
    """The contents of picture files, each once, in order; ``on_progress`` gets "contents", files read and in all."""
    paths = list(dict.fromkeys(images))
    unreadable = "-" * _DIGITS  # such a picture is left out of training too
    digests = content_digests(paths, unreadable=unreadable, on_progress=on_progress)
    return [(_short(path), f"#{digest[:_DIGITS]}") for path, digest in zip(paths, digests)]


def table_parts(table: Table, on_progress: OnProgress) -> dict[str, Entries]:
    """The rows of train and val, each with a digest of its labels and marks, and their pictures."""
    rows = [row for row in table.rows if row.split in LEARNED]
    return {
        "rows": [(" ".join(filter(None, (_short(row.image), row.query))), _row_digest(row)) for row in rows],
        "pictures": picture_entries((row.image for row in rows), on_progress),
    }


def word_entries(**words: Sequence[str]) -> Entries:
    """Words by kind and number: ``answer 3``."""
    return [(f"{kind} {number}", word) for kind, vocabulary in words.items() for number, word in enumerate(vocabulary)]


def glyph_entries(policy: GlyphPolicy) -> Entries:
    """The digits that scenes are made of, by split."""
    entries: Entries = []
    for split in LEARNED:
        glyphs, digest = glyphs_for(split, policy), hashlib.blake2b(digest_size=_DIGITS // 2)
        for tensor in (glyphs.images, glyphs.labels):
            digest.update(tensor.cpu().contiguous().numpy().data)
        entries.append((split, f"#{digest.hexdigest()}"))
    return entries


def photograph_entries(folder: str | None, on_progress: OnProgress) -> Entries:
    """The photographs behind the digits of scenes, split by split."""
    return picture_entries((path for split in LEARNED for path in photograph_files(split, folder)), on_progress)


def backbone_entries(config: object) -> Entries:
    """The backbone of a model with this ``config``, its last stage, and the ImageNet weights that it began with."""
    name = getattr(config, "backbone", None)
    if name is None:
        return []
    entries = [("backbone", str(name)), ("through", str(getattr(config, "through", None)))]
    if getattr(config, "pretrained", False):
        entries.append(("ImageNet weights", f"#{weights_digest(name)[:_DIGITS]}"))
    return entries


def _short(path: Path) -> str:
    """FOLDER/FILE, so that data may move as a whole."""
    return "/".join(path.parts[-2:])


def _row_digest(row: Row) -> str:
    text = json.dumps((row.split, row.labels, row.boxes, row.crop), ensure_ascii=False)
    return f"#{hashlib.blake2b(text.encode('utf-8', 'surrogatepass'), digest_size=_DIGITS // 2).hexdigest()}"
