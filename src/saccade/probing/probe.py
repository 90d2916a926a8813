"""Probes a frozen backbone with your own labelled pictures: a verdict, a page and a model folder.

:class:`Probe` goes from a table of pictures to features (:mod:`saccade.probing.features`), rivals
(:mod:`saccade.probing.rivals`) and what they rest on (:mod:`saccade.probing.evidence`). :func:`probe_pictures` reads
the table and writes the folder.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, cast

import torch
from safetensors.torch import save

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
from saccade.models.probe import AnyProbe
from saccade.models.probe_heads import LINEAR, PYRAMID
from saccade.probing.data import OnProgress, ProbedPictures, usable_pictures
from saccade.probing.evidence import places_of, with_evidence
from saccade.probing.features import CLASS_TOKEN, features_of
from saccade.probing.heads import Plan
from saccade.probing.page import probe_page
from saccade.probing.rivals import ProbeResult, compare_rivals, wanted_heads
from saccade.tasks.describing import halves, shown_by
from saccade.tasks.task import evenly_spaced

RESULTS, PAGE = "results.json", "report.html"
MAX_DESCRIBED, DESCRIBED_AT_ONCE = 2000, 100
HEAD = "head.safetensors"
"""The kept head of a probe that has no network: its tensors, and in their metadata what the answers mean."""


class Probe:
    """A frozen backbone, the heads that are compared on its features, and what came of it.

    Args:
        family: whose model carries the result.
        model_name: that model.
        plan: the backbone, the heads, and how they are trained.
    """

    pictures: ProbedPictures
    result: ProbeResult
    folder: Path
    """Of the model, the page and the results, once they are saved."""
    results: Part
    """What results.json holds."""

    def __init__(self, family: Family, model_name: str, plan: Plan) -> None:
        self.family, self.model_name, self.plan = family, model_name, plan
        self.heads, self._models = wanted_heads(plan), dict[int | None, AnyProbe]()
        has_maps = plan.backbone.startswith(FEATURES)
        self.maps = FeatureFolder(plan.backbone.removeprefix(FEATURES)) if has_maps else None
        self.size = (plan.size, plan.size) if self.maps is None else self.maps.note.input_size
        is_pretrained = not plan.untrained and has_imagenet_weights(plan.backbone)
        self._config = {"answers": 2, "backbone": plan.backbone, "through": plan.through, "hidden": plan.hidden}
        self._config |= {"query_count": plan.queries, "pretrained": is_pretrained, "head": LINEAR}
        model = self._new()
        model.check_input(self.size)
        if is_pretrained:
            model.load_pretrained()
        self.network = model.eval().requires_grad_(False)
        """A model on the backbone, with a head that was not trained."""

    def _new(self) -> AnyProbe:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return cast(AnyProbe, self.family.models[self.model_name].build(self._config))

    def fit(self, table: Table, on_progress: OnProgress) -> None:
        """Compare all heads on the pictures of ``table``."""
        plan, backbone, wanted = self.plan, self.network.backbone, self.heads
        pictures = usable_pictures(table, self.size, on_progress, self.maps)
        finer = finer_stages(backbone, self.size) if self.maps is None and PYRAMID in wanted else ()
        if plan.heads is None:
            lacking = {CLASS_TOKEN: not backbone.has_class_token, PYRAMID: not finer}
            wanted = tuple(name for name in wanted if not lacking.get(name) or name == plan.keep)
            if lacking[PYRAMID]:
                remark = "no pyramid: this backbone has one map, or maps that do not fit together at this size"
                pictures = replace(pictures, remarks=(*pictures.remarks, remark))
        self.pictures = pictures
        self.features = features_of(pictures, self.network, finer, FEATURES_MB, on_progress)
        grid = (self.features.map.shape[1], self.features.map.shape[2])
        places = places_of(pictures, backbone.frames[self.network.stage], grid, plan.evidence_weight)
        self.result = compare_rivals(
            pictures, self.features, plan=plan, heads=wanted, places=places, on_progress=on_progress
        )
        self._config |= {"answers": len(pictures.classes), "head": self.result.kept}
        if pictures.questions.are_asked:
            self._config |= {"queries": len(pictures.questions.words)}
        if self.result.kept == PYRAMID:
            self._config |= {"pyramid": list(finer)}
        if self.maps is None:  # without a network nobody can see a changed picture
            self.result = with_evidence(self, on_progress)

    def model(self, split: int | None = None) -> AnyProbe:
        """The backbone with the head that tested a split; None: with the head of all pictures."""
        if split in self._models:
            return self._models[split]
        result, model = self.result, self._new()
        head, centre, spread = result.final if split is None else result.trials[result.kept].trained[split]
        model.backbone = self.network.backbone
        model.head.load_state_dict(head.state_dict())
        model.centre.copy_(centre)
        model.spread.copy_(spread)
        self._models[split] = model.eval().requires_grad_(False)
        return model

    @property
    def verdict(self) -> str:
        """Whether attention is worth it on these pictures, in a sentence or two."""
        return self.result.verdict

    @property
    def report(self) -> Path:
        """The page."""
        return self.folder / PAGE

    def to_json(self) -> Part:
        """What results.json holds."""
        return self.results

    def save(self, folder: Path, reference: str, settings: Part, began: float) -> None:
        """Write the model, or the head alone of a folder of maps, results.json and the page."""
        result, pictures, plan = self.result, self.pictures, self.plan
        final, (source, _, path) = self.model(), reference.partition(":")
        taught = {}
        if plan.evidence_weight > 0 and result.kept not in (LINEAR, PYRAMID):
            taught["maps_supervised"] = f"by evidence, with weight {plan.evidence_weight:g}"
        licence, research_only = self.family.licence_of_weights(source)
        facts = ModelFacts(
            architecture=self.model_name,
            model=to_dict(final.config),
            family=self.family.name,
            queries=pictures.questions.words if pictures.questions.are_asked else (),
            answers=tuple(pictures.classes),
            preprocessing=Preprocessing(size=self.size),
            name=folder.name,
            data={"name": source, "size": [*self.size]},
            licence=licence,
            research_only=research_only,
            seed=0,
            training={
                "minutes": round((time.monotonic() - began) / 60, 2),
                "pictures": len(pictures.paths),
                "verdict": result.verdict,
                "trained_on": "all pictures of its probe: a score on those tells what it has learned; the score to "
                f"expect on others is in its {RESULTS}",
                **taught,
            },
        )
        described = {}
        if self.maps is None:
            save_model(final, folder, facts)
            described["inputs"] = self._describe(folder, facts)
        else:
            head, centre, spread = result.final
            tensors = {"centre": centre, "spread": spread, **head.state_dict()}
            meaning = {"head": result.kept, "answers": json.dumps(facts.answers), "model": json.dumps(facts.model)}
            folder.mkdir(parents=True, exist_ok=True)
            write_bytes(folder / HEAD, save({name: tensor.contiguous() for name, tensor in tensors.items()}, meaning))
        self.folder, self.results = folder, {
            "backbone": plan.backbone,
            "data": reference,
            "size": list(self.size),
            "pictures": len(pictures.paths),
            **result.to_json(pictures.place),
            "remarks": list(pictures.remarks),
            "copies": [list(pair) for pair in pictures.copies],
            **described,
            **taught,
            "settings": settings,
            "seconds": round(time.monotonic() - began, 1),
        }  # fmt: skip
        write_json(folder / RESULTS, self.results)
        probe_page(self, title=f"{plan.backbone} on {Path(path).name}").save(self.report)

    def _describe(self, folder: Path, facts: ModelFacts) -> str:
        """Let the model know what the features of its pictures look like; what was done, in one line.

        The backbone is frozen, so features of pictures that the head learned are like those of any others.
        """
        count, head = len(self.pictures.paths), self.result.kept
        numbers = evenly_spaced(count, MAX_DESCRIBED)
        if len(numbers) < 2 * FEWEST:
            return f"what pictures it knows: not known, {pluralise(count, 'picture')} are too few to tell"
        means = [pooled(self.features.encoded(head, part)) for part in torch.split(numbers, DESCRIBED_AT_ONCE)]
        values = torch.cat(means)  # (N,2C)
        fitting, comparing = halves(len(values))
        likeness = fit_likeness(values[fitting], values[comparing])
        note = InputsNote(ENCODING, shown_by(facts), "pictures of the probe", len(fitting), len(comparing), sha256="")
        note_inputs(folder, likeness, note, None)
        return f"what pictures it knows: by features of {len(values):,} of its pictures"


def probe_pictures(
    data: str,
    plan: Plan,
    out: Path | str,
    *,
    ask: Sequence[str] | None = None,
    offline: bool = False,
    on_progress: OnProgress = lambda what, done, total: None,
) -> Probe:
    """Compare heads on pictures and write model, results and page to ``out``, see :func:`saccade.probe`."""
    began = time.monotonic()
    reference, folder = with_reader(data, ()), Path(out)  # generated data cannot be probed
    if offline:
        work_offline()
    settings = json.loads(json.dumps({"data": reference, "ask": ask, **asdict(plan)}, default=list))
    _check_folder(folder, settings)
    family, probing = _prober(reference, asks=ask is not None)
    table = _asked_table(reference, family, ask)
    probe = Probe(family, probing.model, plan)  # what the backbone lacks is said before pictures are read
    probe.fit(table, on_progress)
    probe.save(folder, reference, settings, began)
    return probe


def _prober(reference: str, *, asks: bool) -> tuple[Family, Probing]:
    """The family that probes such data; with ``asks``, one that knows its questions.

    A table tells by its columns. Of other data that has both labels and questions, labels are probed unless questions
    are named.
    """
    name = reference.partition(":")[0]
    readers = [family for family, entry in data_entries().get(name, ()) if entry.kind == "reader"]
    if not readers or name in {**own_tables(""), **class_folders(), **picture_tables()}:
        readers = [family_of_data(reference)]  # which says what is wrong with a name that nobody knows
    able = [(family, family.probing) for family in readers if family.probing is not None]
    if not able:
        raise DataError(
            f"'{reference}' is data of the family '{readers[0].name}'; a probe takes pictures with one label each, or "
            "questions about pictures with one answer each"
        )
    able = [pair for pair in able if pair[1].asks or not asks]
    if not able:
        raise ConfigError(f"ask: '{reference}' has labels and no questions; leave it out")
    return min(able, key=lambda pair: pair[1].asks)  # labels first


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
        spelt = {row.query.casefold(): row.query for row in kept}
        for word in ask:
            if word.strip().casefold() not in spelt:
                raise ConfigError(f"ask: nothing asks '{word}': {nearest(word, sorted(spelt.values()))}")
        wanted = {spelt[word.strip().casefold()] for word in ask}
        kept = tuple(row for row in kept if row.query in wanted)
        others = tuple(f", {word}" for word in {*spelt.values()} - wanted)  # how an entry that is left out ends
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
