"""Tables of one's own data: CSV files and JSON lines of four families; a bad row is counted, a bad file is told."""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fuzzing import Odd, Target
from mutate import ODD_TEXT, as_json, odd, spoilt_bytes, spoilt_values
from PIL import Image

from saccade.data import read_table

Case = tuple[str, str, Any]
"""Family, reader, content of the file."""


class Tables(Target):
    name = "tables"
    deadline = 5.0

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        buffer = io.BytesIO()
        Image.new("RGB", (8, 8)).save(buffer, "PNG")
        self.picture = buffer.getvalue()
        names = [f"{number}.png" for number in range(6)]
        splits = ["train", "train", "train", "val", "val", "test"]
        self.rows: dict[str, list[dict[str, Any]]] = {
            "question": [
                {"image": name, "query": f"q{number % 2}", "label": f"a{number % 3}", "split": split, "box": "1 1 5 5",
                 "point": "2 3", "group": f"g{number}"} for number, (name, split) in enumerate(zip(names, splits))
            ],
            "classify": [
                {"image": name, "label": f"a{number % 3}", "split": split, "box": "1 1 5 5", "mask": name}
                for number, (name, split) in enumerate(zip(names, splits))
            ],
            "multiset": [
                {"image": name, "labels": "a; b; b", "split": split, "boxes": "0 0 1 1; 1 1 2 2; 3 3 4 4"}
                for name, split in zip(names, splits)
            ],
            "caption": [
                {"image": name, "caption": f"a digit {number}", "split": split}
                for number, (name, split) in enumerate(zip(names, splits))
            ],
        }  # fmt: skip

    def corpus(self) -> Mapping[str, Any]:
        found: dict[str, Case] = {}
        for family, rows in self.rows.items():
            for reader in ("csv", "jsonl"):
                found[f"good {family} {reader}"] = (family, reader, self._written(reader, rows))
            for column in rows[0]:
                for value in ("1e400", 10**400, [1e999, 0, 1, 1], "1e400 0 1 1", "nan 0 1 1", "\ud800", "\udcff",
                              "a\0b", "", [], {}, [[]],
                              True, None, "[" * 5000, "x" * 200_000, -1, "9" * 5000, [10**400] * 4, {"a": 1},
                              1.0):  # fmt: skip
                    found[f"{family} {column} {str(value)[:30]!r}"] = (
                        family,
                        "jsonl",
                        self._with_cell(family, column, value),
                    )
        raw: dict[str, Any] = {
            "empty": b"", "NUL": b"\0" * 100, "Latin": b"image,query,label\n\xe9.png,a,b\n",
            "half a quote": b'image,query,label\n"a',
            "only a header": b"image,query,label\n", "semicolons": b"image;query;label\n1;2;3\n",
            "deep": b"[" * 100_000,
            "deep object": b'{"a":' * 50_000, "one long line": b"x" * 300_000, "many columns": b"a," * 50_000,
            "many good columns": b"image,query,label" + b",a" * 50_000, "BOM": b"\xef\xbb\xbf",
            "twice": b"image,image,query,label\n", "carriage returns": b"image,query,label\r\r\r0.png,a,b\r",
            "UTF-16": "image,query".encode("utf-16"),
            "folder": Odd("folder"), "digits": b'{"image": ' + b"9" * 6000 + b"}",
        }  # fmt: skip
        for name, content in raw.items():
            found |= {f"{reader} {name}": ("question", reader, content) for reader in ("csv", "jsonl")}
        return found

    def drawn(self, rng: random.Random) -> Case:
        family, reader = rng.choice(list(self.rows)), rng.choice(("csv", "jsonl"))
        rows = self.rows[family]
        if rng.random() < 0.25:
            return family, reader, spoilt_bytes(rng, self._written(reader, rows))
        if reader == "jsonl":
            return family, reader, self._written(reader, spoilt_values(rng, rows))
        rows = [dict(row) for row in rows]
        for _ in range(rng.randrange(1, 5)):
            rng.choice(rows)[rng.choice(list(rows[0]))] = rng.choice((*ODD_TEXT, str(odd(rng))[:500]))
        return family, reader, self._written(reader, rows)

    def run(self, case: Case) -> None:
        family, reader, content = case
        place = self.lay({f"{number}.png": self.picture for number in range(6)} | {f"table.{reader}": content})
        read_table(f"{reader}:{place / f'table.{reader}'}", family)

    def _with_cell(self, family: str, column: str, value: Any) -> bytes:
        rows = [dict(row) for row in self.rows[family]]
        rows[1][column] = value
        return self._written("jsonl", rows)

    def _written(self, reader: str, rows: Any) -> bytes:
        if reader == "jsonl":
            return b"\n".join(as_json(row) for row in rows) if isinstance(rows, list) else as_json(rows)
        text = io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]), extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
        return text.getvalue().encode("utf-8", "surrogatepass")
