"""The folder of a probe: a model folder, or the head alone of a folder of maps, results.json and the page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import save

from saccade.data.tables.doubts import pluralise
from saccade.errors import OutputError
from saccade.files import parse_json, read_regular, write_bytes, write_json
from saccade.metrics.result import Part
from saccade.models.facts import CONFIG, InputsNote, ModelFacts, read_facts
from saccade.models.folder import note_inputs, save_model
from saccade.models.likeness import ENCODING, FEWEST, fit_likeness, pooled
from saccade.probing.page import probe_page
from saccade.tasks.describing import halves, shown_by
from saccade.tasks.task import evenly_spaced

if TYPE_CHECKING:
    from saccade.probing.probe import Probe

RESULTS, PAGE = "results.json", "report.html"
MAX_DESCRIBED, DESCRIBED_AT_ONCE = 2000, 100
HEAD = "head.safetensors"
"""The kept head of a probe that has no network: its tensors, and in their metadata what the answers mean."""


def write_folder(probe: Probe, folder: Path) -> Part:
    """Write the model or its head, results.json and the page into ``folder``; returns what results.json holds."""
    result, pictures, plan, facts = probe.result, probe.pictures, probe.plan, probe.facts(folder.name)
    described = {}
    if probe.maps is None:
        save_model(probe.model(), folder, facts)
        described["inputs"] = _describe(probe, folder, facts)
    else:
        head, centre, spread = result.final
        tensors = {"centre": centre, "spread": spread, **head.state_dict()}
        meaning = {"head": result.kept, "answers": json.dumps(facts.answers), "model": json.dumps(facts.model)}
        folder.mkdir(parents=True, exist_ok=True)
        write_bytes(folder / HEAD, save({name: tensor.contiguous() for name, tensor in tensors.items()}, meaning))
    results: Part = {
        "backbone": plan.backbone,
        "data": probe.reference,
        "size": list(probe.size),
        "pictures": len(pictures.paths),
        **result.to_json(pictures.place),
        "remarks": list(pictures.remarks),
        "copies": [list(pair) for pair in pictures.copies],
        **described,
        **probe.taught,
        "settings": probe.settings,
        "seconds": round(probe.seconds, 1),
    }
    write_json(folder / RESULTS, results)
    data = Path(probe.reference.partition(":")[2] or probe.reference).name
    probe_page(probe, title=f"{plan.backbone} on {data}").save(folder / PAGE)
    return results


def _describe(probe: Probe, folder: Path, facts: ModelFacts) -> str:
    """Let the model know what the features of its pictures look like; what was done, in one line.

    The backbone is frozen, so features of pictures that the head learned are like those of any others.
    """
    count, head = len(probe.pictures.paths), probe.result.kept
    numbers = evenly_spaced(count, MAX_DESCRIBED)
    if len(numbers) < 2 * FEWEST:
        return f"what pictures it knows: not known, {pluralise(count, 'picture')} are too few to tell"
    means = [pooled(probe.features.encoded(head, part).cpu()) for part in torch.split(numbers, DESCRIBED_AT_ONCE)]
    values = torch.cat(means)  # (N,2C)
    fitting, comparing = halves(len(values))
    likeness = fit_likeness(values[fitting], values[comparing])
    note = InputsNote(ENCODING, shown_by(facts), "pictures of the probe", len(fitting), len(comparing), sha256="")
    note_inputs(folder, likeness, note, None)
    return f"what pictures it knows: by features of {len(values):,} of its pictures"


def check_folder(folder: Path, settings: Mapping[str, Any]) -> None:
    """Refuse a folder that holds anything but a probe with these ``settings``; it may be new or empty."""
    if not (folder / RESULTS).is_file():
        is_free = not folder.exists() or (folder.is_dir() and not any(folder.iterdir()))
        is_probe = (folder / CONFIG).is_file() and "verdict" in read_facts(folder).training  # killed before its results
        if not is_free and not is_probe:
            raise OutputError(f"{folder}: holds something that no probe wrote; choose a new or empty folder")
        return
    try:
        before = parse_json(read_regular(folder / RESULTS).decode("utf-8"))["settings"]
        changed = [f"{name} was {before.get(name)}" for name, value in settings.items() if before.get(name) != value]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise OutputError(f"{folder / RESULTS}: damaged; choose another folder, or delete that folder") from error
    if changed:
        raise OutputError(
            f"{folder}: holds another probe ({'; '.join(changed)}); choose another folder, or delete that folder"
        )
