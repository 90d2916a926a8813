"""Recipes: YAML of strangers, resolved as ``saccade train`` does before anything is built."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fuzzing import Odd, Target
from mutate import spoilt_bytes, spoilt_text

from saccade.engine.recipe import load_recipe
from saccade.families import recipes

WORDS = (
    "2024-13-45", "2024-01-01", "!!int x", "!!float x", "!!bool x", "!!timestamp x", "!!binary x", "!!set {a}",
    "!!python/name:os",
    "!!python/object/apply:os.system [x]", "[1, 2]: x", "{a: b}: x", "? [a]", "[]", "{}", "null", "~", "&a [*a]",
    "&a {a: *a}", "*a",
    "<<: *a", "<<: [1]", "<<: {a: 1}", "1e400", ".nan", ".inf", "-.inf", "0x" + "f" * 50, "9" * 5000, "1:2:3:4",
    "1:" * 200 + "1",
    "0o7", "'", '"', "\\", "|", ">", "#", "- ", "---", "...", "%YAML 9.9", "%TAG ! x", "@", "`", "\t", "\0",
    '"\\ud800"', '"\\0"',
    "\ufeff", "yes", "phases: {}", "phases: [1]", "phases: 5", "data: []", "data: 5", "protocols: []",
    "protocols: {a: [1]}",
    "protocol: []", "protocol: {a: 1}", "model: []", "model: x", "extends: soft-mref", "extends: []", "extends: x.yaml",
    "extends: recipe.yaml", "schema_version: 1", "schema_version: x", "schema_version: 2", "task: attribute",
    "loss: soft:1:2:3",
    "loss: soft:x", "freeze: 5", "freeze: abc", "1.5: x", "phases.0.steps: 5", "phases.9.steps: 5",
    "phases.0.loss: soft:1",
    "a.b.c: 1", ".: 1", "steps: -1", "steps: 1e300", "batch_size: 1000000000000", "seed: 99999999999999999999", "lr: x",
)  # fmt: skip


class Recipes(Target):
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
            "recursive anchor": "a: &a [*a]",
            "recursive mapping": "a: &a {b: *a}",
            "many keys": "\n".join(f"k{number}: 1" for number in range(20_000)),
            "one long line": "a: " + "x " * 100_000,
            "too long": "a: " + "x" * 2**20,
            "many anchors": "\n".join(f"k{number}: &a{number} 1" for number in range(5000)),
            "quotes": '"' * 50_000,
            "sexagesimal": "a: 1" + ":1" * 50_000,
            "many documents": "---\n" * 10_000,
            "comments": "#\n" * 100_000,
            "itself": "extends: recipe.yaml\nschema_version: 2",
        }
        found: dict[str, Any] = {name: (text.encode(), ()) for name, text in texts.items()}
        contents = (Odd("pipe"), Odd("zero"), Odd("folder"), b"\0", b"\xe9")
        found |= {f"file {content}": (content, ()) for content in contents}
        for override in ("phases.0.steps", "=", "a=b", "phases.99999999999999999999.x=1",
                         "phases.0.optimizer.lr=!!int x", "data=[",
                         "model.config.channels=1e400", "phases=&a [*a]", "phases.0.loss=soft:x", "seed=2e400",
                         "data.name=\udcff",
                         "seed=" + "9" * 5000, "phases.0=[]", "phases.-1.steps=7", "model=5",
                         "phases.0.loss.entropy.x=1"):  # fmt: skip
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
