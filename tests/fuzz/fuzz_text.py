"""Text of strangers: tables of one's own data, and recipes."""

import csv
import io
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fuzzing import ODD_TEXT, Odd, Target, as_json, odd, spoilt_bytes, spoilt_text, spoilt_values
from PIL import Image

from saccade.data import read_table
from saccade.engine.recipe import load_recipe
from saccade.families import recipes

Case = tuple[str, str, Any]  # Family, reader, content of the file


class Tables(Target):
    """CSV files and JSON lines of four families; a bad row is counted, a bad file is told."""

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
                for value in (10**400, [1e999, 0, 1, 1], "nan 0 1 1", "\ud800", "\udcff", "a\0b", [[]], None,
                              "[" * 5000, "x" * 200_000, "9" * 5000, [10**400] * 4, {"a": 1}):  # fmt: skip
                    content = self._with_cell(family, column, value)
                    found[f"{family} {column} {str(value)[:30]!r}"] = (family, "jsonl", content)
        raw: dict[str, Any] = {
            "empty": b"", "NUL": b"\0" * 100, "Latin": b"image,query,label\n\xe9.png,a,b\n",
            "half a quote": b'image,query,label\n"a', "only a header": b"image,query,label\n",
            "deep": b"[" * 100_000, "deep object": b'{"a":' * 50_000, "one long line": b"x" * 300_000,
            "many columns": b"image,query,label" + b",a" * 50_000, "BOM": b"\xef\xbb\xbf",
            "twice": b"image,image,query,label\n", "UTF-16": "image,query".encode("utf-16"), "folder": Odd("folder"),
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


WORDS = (
    "2024-13-45", "2024-01-01", "!!int x", "!!float x", "!!bool x", "!!timestamp x", "!!binary x", "!!set {a}",
    "!!python/name:os", "!!python/object/apply:os.system [x]", "[1, 2]: x", "{a: b}: x", "? [a]", "[]", "{}", "null",
    "~", "&a [*a]", "&a {a: *a}", "*a", "<<: *a", "<<: [1]", "<<: {a: 1}", "1e400", ".nan", ".inf", "-.inf",
    "0x" + "f" * 50, "9" * 5000, "1:2:3:4", "1:" * 200 + "1", "0o7", "'", '"', "\\", "|", ">", "#", "- ", "---", "...",
    "%YAML 9.9", "%TAG ! x", "@", "`", "\t", "\0", '"\\ud800"', '"\\0"', "\ufeff", "yes", "phases: {}", "phases: [1]",
    "phases: 5", "data: []", "data: 5", "protocols: []", "protocols: {a: [1]}", "protocol: []", "protocol: {a: 1}",
    "model: []", "model: x", "extends: soft-mref", "extends: []", "extends: x.yaml", "extends: recipe.yaml",
    "schema_version: 1", "schema_version: x", "schema_version: 2", "task: attribute", "loss: soft:1:2:3",
    "loss: soft:x", "freeze: 5", "freeze: abc", "1.5: x", "phases.0.steps: 5", "phases.9.steps: 5",
    "phases.0.loss: soft:1", "a.b.c: 1", ".: 1", "steps: -1", "steps: 1e300", "batch_size: 1000000000000",
    "seed: 99999999999999999999", "lr: x",
)  # fmt: skip


class Recipes(Target):
    """YAML, resolved as ``saccade train`` does before anything is built."""

    name = "recipes"
    deadline = 5.0

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        texts = {file.stem: file.read_text(encoding="utf-8") for file in recipes().values()}
        self.bases = {name: text.partition("\nvariants:\n")[0] + f"\nname: {name}\n" for name, text in texts.items()}

    def corpus(self) -> Mapping[str, Any]:
        base = self.bases["soft"]
        texts = {f"with {word[:40]!r}": f"{base}\n{word}\n" for word in WORDS}
        texts |= {f"value {word[:40]!r}": base.replace("\n", f"\nseed: {word}\n", 1) for word in WORDS}
        texts |= {
            "empty": "",
            "deep lists": f"a: {'[' * 100_000}",
            "deep mappings": f"a: {'{a: ' * 5000}",
            "deep blocks": "\n".join(" " * depth + "a:" for depth in range(400)),
            "billion laughs": _laughs("[{}]"),
            "billion laughs by merging": _laughs("{{<<: [{}]}}", first="{a: 1}"),
            "many keys": "\n".join(f"k{number}: 1" for number in range(20_000)),
            "too long": "a: " + "x" * 2**20,
            "many anchors": "\n".join(f"k{number}: &a{number} 1" for number in range(5000)),
            "sexagesimal": "a: 1" + ":1" * 50_000,
            "many documents": "---\n" * 10_000,
            "itself": "extends: recipe.yaml\nschema_version: 2",
        }
        found: dict[str, Any] = {name: (text.encode(), ()) for name, text in texts.items()}
        contents = (Odd("pipe"), Odd("zero"), Odd("folder"), b"\0", b"\xe9")
        found |= {f"file {content}": (content, ()) for content in contents}
        for override in ("=", "phases.99999999999999999999.x=1", "phases.0.optimizer.lr=!!int x", "data=[",
                         "phases=&a [*a]", "seed=2e400", "data.name=\udcff", "seed=" + "9" * 5000, "phases.0=[]",
                         "model=5", "phases.0.loss.entropy.x=1"):  # fmt: skip
            found[f"--set {override[:40]!r}"] = lambda override=override: (base.encode(), (override,))
        return found

    def drawn(self, rng: random.Random) -> Any:
        text = self.bases[rng.choice(list(self.bases))]
        if rng.random() < 0.2:
            return spoilt_bytes(rng, text.encode(), [each.encode() for each in WORDS]), ()
        overrides = ()
        if rng.random() < 0.3:
            path = ".".join(rng.choice(("phases", "0", "-1", "optimizer", "lr", "data", "name", "model", "config",
                                        "loss", "", "x"))
                            for _ in range(rng.randrange(1, 5)))  # fmt: skip
            overrides = (f"{path}={rng.choice(WORDS)}",)
        return spoilt_text(rng, text, WORDS).encode("utf-8", "replace"), overrides

    def run(self, case: Any) -> None:
        content, overrides = case
        place = self.lay({"recipe.yaml": content})
        load_recipe(place / "recipe.yaml", overrides=[*overrides])


def _laughs(form: str, first: str = "[lol, lol]") -> str:
    lines = [f"a0: &a0 {first}"]
    lines += [f"a{n}: &a{n} {form.format(', '.join([f'*a{n - 1}'] * 9))}" for n in range(1, 10)]
    return "\n".join(lines)
