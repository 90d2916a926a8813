"""The data card of a causal set: ``README.md`` with licence, seed, digest, counts, schema and how to hand in maps."""

from __future__ import annotations

import json

from saccade.data.causal.facts import CARD, FACTS, ROWS, V1, V1_COUNT, CausalFacts, is_frozen
from saccade.data.causal.truth import MASKED, TWINS, map_name

_CHANGES = {
    "target_recoloured": "the target has another colour, drawn by the seed from the other four",
    "target_moved": "the target lies on free ground, 16 px or more away along x or y, clear of all ink of the scene",
    "target_removed": "the target is gone",
    "other_recoloured": "as target_recoloured, for the other object",
    "other_moved": "as target_moved, for the other object",
    "other_removed": "as target_removed, for the other object",
    "background_changed": "the objects stay; what lies behind them is {}",
}


def card(facts: CausalFacts, form: str) -> str:
    """The text of the card; ``form`` is png, parquet or both."""
    pictures = facts.count * (1 + len(TWINS))
    name = facts.version or "causal set"
    return f"""---
pretty_name: {name}
license: cc-by-sa-3.0
task_categories:
- visual-question-answering
size_categories:
- {_size(facts.count)}
{_configs(facts) if form != "png" else ""}---

# {name}: scenes and their twins

{_which(facts)}

Coloured digits, and two questions about each scene: which colour has the target, which has the other object? Each scene
comes with {len(TWINS)} twins, the same scene with one thing changed. With these one can ask whether an attention or
attribution map follows the object that was asked about, and holds when something else changes.

| | |
|---|---|
| scenes | {facts.count:,} |
| pictures | {pictures:,} of {facts.size} × {facts.size} px |
| questions | {2 * facts.count:,} |
| seed, split, scene numbers | {facts.seed}, {facts.split}, {facts.start} … {facts.last} |
| glyphs | {facts.glyphs} |
| background | {facts.background} |
| drawing | {facts.drawing} |
| digest (blake2b over pixels, masks and rows) | `{facts.digest}` |
| licence | {facts.licence} |

## Twins

| name | what is changed |
|---|---|
{_twins(facts)}

Target and other object are taken from the objects that have a free place to be moved to, so large digits are rare among
them. The other object is the one whose area is nearest to the target's. Scenes with fewer than two such objects are
passed over. Removed objects and backgrounds of another kind may lie outside what a model was trained on.
Glyphs called pack-test are from the test part of MNIST: train on other digits.

## Files

{_files(form)}

`{ROWS}` has one JSON object a line: `id`; `image` and `mask`, paths from this folder; `objects`, each with class,
colour, rgb, box (x0 y0 x1 y1, right and lower edge excluded) and scale; `target` and `other`, places in `objects`;
`questions`, two, each with query, object and answer; `twins` by name, each with image, mask, the object that was
changed, its new colour or box, and the `answers` to both questions (null where the object asked about is gone);
`digest`. Masks are grey pictures: 0 is background, k + 1 is object k. {len(MASKED)} pictures of a scene have a mask of
their own.

In Python, `saccade.data.read_causal_set("THIS FOLDER")` yields the scenes; `.verify()` checks every digest.

## Handing in maps

One file for each picture and question, called `PICTURE__QUERY`: an array (H,W) of weights as .npy, or a grey .png.

| maps | called | needed for |
|---|---|---|
| the scene, first question | `{map_name("ID", "scene", "QUERY")}.npy` | every score |
| the scene, second question | `{map_name("ID", "scene", "OTHER_QUERY")}.npy` | map_turn |
| twins target_moved, other_moved, first question | `{map_name("ID", "TWIN", "QUERY")}.npy` | map_follow |
| these, target_removed and other_removed | the same | map_specific |
| other_moved, other_removed and other_recoloured | the same | map_hold |
| background_changed | the same | map_hold_background |

`saccade score MAPS --truth THIS FOLDER --out RESULTS` scores a folder of them. The results file is
`RESULTS/scores.json`; it holds the digest above. A map that is missing is counted, and the scores that need it leave
its scene out. No score reads a map of target_recoloured. Cite the name and the digest beside the scores.
"""


def _which(facts: CausalFacts) -> str:
    if facts.version == V1:
        return (
            f"This is **{V1}**, a frozen test set. `saccade data make causal --count {V1_COUNT} --out DIR` draws it "
            "anew, without a download, and checks its digest."
        )
    if is_frozen(facts):
        return f"The first {facts.count:,} scenes of {V1}, which has {V1_COUNT:,}. Cite {V1} for the whole set only."
    return f"A causal set with settings of its own; the frozen test set is {V1}."


def _twins(facts: CausalFacts) -> str:
    return "\n".join(f"| {name} | {_CHANGES[name].format(facts.other_background)} |" for name in TWINS)


def _files(form: str) -> str:
    files = {
        CARD: "this card",
        FACTS: "the facts above, for programs",
        ROWS: "what is true of each scene and its twins",
    }
    if form != "parquet":
        files |= {"images/": "ID.png and ID-TWIN.png", "masks/": "ID.png and ID-TWIN.png"}
    if form != "png":
        files["data/*.parquet"] = "one row a scene, pictures as columns {bytes, path}"
    return "\n".join(f"- `{name}`: {what}" for name, what in files.items())


def _configs(facts: CausalFacts) -> str:
    path = json.dumps(f"data/{facts.split}-*.parquet")
    split = {"val": "validation"}.get(facts.split, facts.split)
    return f"configs:\n- config_name: default\n  data_files:\n  - split: {split}\n    path: {path}\n"


def _size(count: int) -> str:
    """The class of sizes that dataset hubs know."""
    names = {1_000: "n<1K", 10_000: "1K<n<10K", 100_000: "10K<n<100K"}
    return next((name for most, name in names.items() if count < most), "100K<n<1M")
