"""Probes a frozen backbone with your own labelled pictures: a verdict, a page and a model folder."""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, cast

import torch
from safetensors.torch import save
from torch import Tensor

from saccade.backbones.catalog import FEATURES, has_imagenet_weights
from saccade.backbones.feature_folder import FeatureFolder
from saccade.backbones.hub import work_offline
from saccade.backbones.stages import finer_stages
from saccade.config import to_dict
from saccade.data.pictures.feature_cache import FEATURES_MB
from saccade.data.tables.doubts import check_usable, pluralise
from saccade.data.tables.readers import with_reader
from saccade.data.tables.table import Table
from saccade.errors import ConfigError, DataError, OutputError, nearest
from saccade.families import (
    Family,
    Probing,
    class_folders,
    data_entries,
    family_of_data,
    own_tables,
    picture_tables,
    read_table,
)
from saccade.files import parse_json, read_regular, write_bytes, write_json
from saccade.metrics.result import Part
from saccade.models.facts import CONFIG, InputsNote, ModelFacts, Preprocessing, read_facts
from saccade.models.folder import note_inputs, save_model
from saccade.models.likeness import ENCODING, FEWEST, fit_likeness, pooled
from saccade.models.probe_heads import HEADS, LINEAR, PYRAMID, HeadName, ProbeHead
from saccade.probing.data import ProbedPictures, usable_pictures, with_maps
from saccade.probing.evidence import places_of, with_evidence
from saccade.probing.features import CLASS_TOKEN, Features, features_of, folder_features
from saccade.probing.page import probe_page
from saccade.probing.probe import ProbeResult, TrainedHead, checked_heads, probe
from saccade.probing.trials import RIVALS, Plan
from saccade.tasks.describing import halves, shown_by
from saccade.tasks.task import evenly_spaced

RESULTS, PAGE = "results.json", "report.html"
MAX_DESCRIBED, DESCRIBED_AT_ONCE = 2000, 100
HEAD = "head.safetensors"
"""The kept head of a probe that has no network: its tensors, and in their metadata what the answers mean."""


@dataclass(frozen=True)
class ProbeOutput:
    """What a probe found and wrote."""

    folder: Path
    """Of the model, the page and the results."""
    probed: ProbeResult
    """Every trial."""
    pictures: ProbedPictures
    """What was probed, and remarks on what was left out."""
    results: dict[str, Any]
    """What results.json holds."""

    @property
    def verdict(self) -> str:
        """Whether attention is worth it on these pictures, in a sentence or two."""
        return self.probed.verdict

    def to_json(self) -> dict[str, Any]:
        """What results.json holds."""
        return self.results

    @property
    def report(self) -> Path:
        """The page."""
        return self.folder / PAGE


def probe_pictures(
    data: str,
    *,
    out: Path | str,
    backbone: str = "mobilenetv2",
    size: int = 224,
    through: str | None = None,
    heads: Sequence[str] | None = None,
    keep: str | None = None,
    plan: Plan | None = None,
    ask: Sequence[str] | None = None,
    untrained: bool = False,
    offline: bool = False,
    on_progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> ProbeOutput:
    """Compare heads on the features of ``backbone``, and write model, results and page to ``out``.

    See :func:`saccade.probe`; ``plan`` has its numbers, and more of them. Of a folder of features
    (:mod:`saccade.backbones.feature_folder`) no model can be made: the head is written (:data:`HEAD`).
    """
    began = time.monotonic()
    wanted = checked_heads([*(RIVALS if heads is None else heads), *([keep] if keep else [])])
    if keep == CLASS_TOKEN:
        raise ConfigError(f"keep: {CLASS_TOKEN} has no attention; keep one of {', '.join(HEADS)}")
    plan, folder, reference = plan or Plan(), Path(out), as_reference(data)
    if offline:
        work_offline()
    maps = FeatureFolder(backbone.removeprefix(FEATURES)) if backbone.startswith(FEATURES) else None
    settings = {"data": reference, "backbone": backbone, "through": through, "size": size, "heads": heads, "keep": keep}
    settings |= {"ask": ask, "untrained": untrained, **asdict(plan)}
    settings = json.loads(json.dumps(settings, default=list))
    _check_folder(folder, settings)
    family, probing = _prober(reference, asks=ask is not None)
    table, remarks, input_size = _asked_table(reference, family, ask), list[str](), (size, size)
    if maps is not None:
        table, lost = with_maps(table, maps)
        remarks += [lost] if lost else []
        input_size = maps.note.input_size
    is_pretrained = not untrained and has_imagenet_weights(backbone)
    config = {"answers": 2, "backbone": backbone, "through": through, "hidden": plan.hidden}
    config |= {"query_count": plan.queries, "pretrained": is_pretrained, "head": LINEAR}

    def new_model() -> Any:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return family.models[probing.model].build(config)

    model = new_model()  # before pictures are read: what it lacks is said at once
    model.check_input(input_size)
    if is_pretrained:
        model.load_pretrained()
    model.eval().requires_grad_(False)
    pictures = usable_pictures(table, input_size, on_progress)
    words = pictures.questions.words if pictures.questions.are_asked else ()
    config |= {"answers": len(pictures.classes), **({"queries": len(words)} if words else {})}
    finer = finer_stages(model.backbone, input_size) if maps is None and PYRAMID in wanted else ()
    if heads is None:
        lacking = {CLASS_TOKEN: not model.backbone.has_class_token, PYRAMID: not finer}
        wanted = tuple(name for name in wanted if not lacking.get(name) or name == keep)
        if lacking[PYRAMID]:
            remarks.append("no pyramid: this backbone has one map, or maps that do not fit together at this size")
    if maps is None:
        features = features_of(pictures, model, finer, limit_mb=FEATURES_MB, on_progress=on_progress)
    else:
        features = folder_features(pictures, maps)
    pictures = replace(pictures, remarks=(*remarks, *pictures.remarks), folder=maps)
    grid = (features.map.shape[1], features.map.shape[2])
    probed = probe(
        pictures,
        features,
        plan=plan,
        heads=wanted,
        keep=cast("HeadName | None", keep),
        places=places_of(pictures, model.backbone.frames[model.stage], grid, plan.evidence_weight),
        on_progress=on_progress,
    )
    kept = probed.kept
    config |= {"head": kept.name, **({"pyramid": list(finer)} if kept.name == PYRAMID else {})}

    def filled(head: ProbeHead, centre: Tensor, spread: Tensor) -> Any:
        """A model on the one backbone, with a trained head and the statistics of its features."""
        network = new_model()
        network.backbone = model.backbone
        network.head.load_state_dict(head.state_dict())
        network.centre.copy_(centre)
        network.spread.copy_(spread)
        return network.eval().requires_grad_(False)

    @cache
    def model_of(split: int) -> Any:
        trial = probed.trials[kept.name]
        return filled(trial.heads[split], *trial.statistics[split])

    if maps is None:  # without a network nobody can see a changed picture
        probed = with_evidence(probed, pictures, features, model_of, on_progress)
    final = filled(kept.head, kept.centre, kept.spread)
    taught = {}
    if plan.evidence_weight > 0 and kept.name not in (LINEAR, PYRAMID):
        taught["maps_supervised"] = f"by evidence, with weight {plan.evidence_weight:g}"
    source, _, path = reference.partition(":")
    licence, research_only = family.licence_of_weights(source)
    facts = ModelFacts(
        architecture=probing.model,
        model=to_dict(final.config),
        family=family.name,
        queries=words,
        answers=tuple(pictures.classes),
        preprocessing=Preprocessing(size=input_size),
        name=folder.name,
        data={"name": source, "size": [*input_size]},
        licence=licence,
        research_only=research_only,
        seed=0,
        training={
            "minutes": round((time.monotonic() - began) / 60, 2),
            "pictures": len(pictures.paths),
            "verdict": probed.verdict,
            "trained_on": "all pictures of its probe: a score on those tells what it has learned; the score to expect "
            f"on others is in its {RESULTS}",
            **taught,
        },
    )
    described = {}
    if maps is None:
        save_model(final, folder, facts)
        described["inputs"] = _describe(folder, facts, features, kept.name, len(pictures.paths))
    else:
        _save_head(folder, kept, facts)

    def place(number: int) -> Part:
        asked = pictures.asked(number)
        return {"picture": str(pictures.path(number)), **({"asked": asked} if asked else {})}

    results = {
        "backbone": backbone,
        "data": reference,
        "size": list(input_size),
        "pictures": len(pictures.paths),
        **probed.to_json(place),
        "remarks": list(pictures.remarks),
        "copies": [list(pair) for pair in pictures.copies],
        **described,
        **taught,
        "settings": settings,
        "seconds": round(time.monotonic() - began, 1),
    }
    write_json(folder / RESULTS, results)
    page = probe_page(probed, pictures, features, model_of, title=f"{backbone} on {Path(path).name}")
    page.save(folder / PAGE)
    return ProbeOutput(folder, probed, pictures, results)


def _describe(folder: Path, facts: ModelFacts, features: Features, head: str, count: int) -> str:
    """Let the model know what the features of its pictures look like; what was done, in one line.

    The backbone is frozen, so that features of pictures that the head learned are like those of any others.
    """
    numbers = evenly_spaced(count, MAX_DESCRIBED)
    if len(numbers) < 2 * FEWEST:
        return f"what pictures it knows: not known, {pluralise(count, 'picture')} are too few to tell"
    means = [pooled(features.encoded(head, part)) for part in torch.split(numbers, DESCRIBED_AT_ONCE)]
    known = torch.cat(means)  # (N,2C)
    fitting, comparing = halves(len(known))
    likeness = fit_likeness(known[fitting], known[comparing])
    note = InputsNote(ENCODING, shown_by(facts), "pictures of the probe", len(fitting), len(comparing), sha256="")
    note_inputs(folder, likeness, note, None)
    return f"what pictures it knows: by features of {len(known):,} of its pictures"


def _save_head(folder: Path, kept: TrainedHead, facts: ModelFacts) -> None:
    """The head alone: its tensors, the statistics of its features, and what its answers mean."""
    tensors = {"centre": kept.centre, "spread": kept.spread, **kept.head.state_dict()}
    meaning = {"head": kept.name, "answers": json.dumps(facts.answers), "model": json.dumps(facts.model)}
    folder.mkdir(parents=True, exist_ok=True)
    write_bytes(folder / HEAD, save({name: tensor.contiguous() for name, tensor in tensors.items()}, meaning))


def as_reference(data: str) -> str:
    """READER:PATH of a path alone, by what lies there; a folder comes before generated data of its name.

    Raises:
        DataError: nothing lies there that can be read.
    """
    known = data_entries()
    is_path = Path(data).expanduser().is_dir() or (":" not in data and data not in known)
    return with_reader(f".{os.sep}{data}" if is_path and data == Path(data).name else data, known)


def _prober(reference: str, *, asks: bool) -> tuple[Family, Probing]:
    """The family that probes such data; with ``asks``, one that knows its questions.

    A table tells by its columns. Of other data that has both labels and questions, labels are probed unless questions
    are named.
    """
    name = reference.partition(":")[0]
    able = [
        (family, family.probing)
        for family, entry in data_entries().get(name, ())
        if entry.kind == "reader" and family.probing is not None
    ]
    if not able or name in {**own_tables(""), **class_folders(), **picture_tables()}:
        meant = family_of_data(reference)  # which says what is wrong with a name that nobody knows
        able = [pair for pair in able if pair[0] is meant]
    if not able:
        raise DataError(
            f"'{reference}' is data of the family '{family_of_data(reference).name}'; a probe takes pictures with one "
            "label each, or questions about pictures with one answer each"
        )
    for family, probing in sorted(able, key=lambda pair: pair[1].asks):  # labels first
        if probing.asks or not asks:
            return family, probing
    raise ConfigError(f"ask: '{reference}' has labels and no questions; leave it out")


def _asked_table(reference: str, family: Family, ask: Sequence[str] | None) -> Table:
    """The table without questions that have several answers; with ``ask`` these questions alone, without case."""
    with warnings.catch_warnings():  # of labels and copies by the reader's own splits, which a probe does not use
        warnings.simplefilter("ignore", UserWarning)
        table = read_table(reference, family.name)
    rows = table.as_found or table.rows
    kept = tuple(row for row in rows if len(row.labels) == 1)
    several = [f"several answers: {row.image.name}, {row.query}" for row in rows if len(row.labels) > 1]
    skipped = (*table.skipped, *several)
    check_usable(table.name, kept, skipped, strict=False, thing=table.columns.thing)
    if ask is not None:
        known = {row.query.casefold(): row.query for row in kept}
        for word in ask:
            if word.strip().casefold() not in known:
                raise ConfigError(f"ask: nothing asks '{word}': {nearest(word, sorted(known.values()))}")
        wanted = {known[word.strip().casefold()] for word in ask}
        kept = tuple(row for row in kept if row.query in wanted)
        others = tuple(f", {word}" for word in {*known.values()} - wanted)  # how an entry that is left out ends
        skipped = tuple(entry for entry in skipped if not entry.endswith(others))
    return replace(table, rows=kept, as_found=kept, skipped=skipped)


def _check_folder(folder: Path, settings: Mapping[str, Any]) -> None:
    """Refuse a folder that holds anything but a probe with these ``settings``; it may be new or empty."""
    if not (folder / RESULTS).is_file():
        is_free = not folder.exists() or (folder.is_dir() and not any(folder.iterdir()))
        is_probe = (folder / CONFIG).is_file() and "verdict" in read_facts(folder).training  # killed before its results
        if not is_free and not is_probe:
            raise OutputError(f"{folder}: holds something that no probe wrote; choose a new or empty folder")
        return
    try:
        before = parse_json(read_regular(folder / RESULTS).decode("utf-8"))["settings"]
        changed = [f"{name} was {before[name]}" for name, value in settings.items() if before[name] != value]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise OutputError(f"{folder / RESULTS}: damaged; choose another folder, or delete that folder") from error
    if changed:
        raise OutputError(
            f"{folder}: holds another probe ({'; '.join(changed)}); choose another folder, or delete that folder"
        )
