"""Probe a frozen backbone with one's own labelled pictures: a verdict, a page and a model folder."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from saccade.atomic import write_json
from saccade.config import to_dict
from saccade.data.pictures.feature_cache import FEATURES_MB
from saccade.data.tables.wording import counted
from saccade.errors import ConfigError, DataError, OutputError
from saccade.families import families, family_of_data
from saccade.families.contract import Family, Probing, class_folders, load_target
from saccade.likeness import FEWEST, fit_likeness, pooled
from saccade.models.describing import ENCODING
from saccade.models.io.facts import CONFIG, InputsNote, ModelFacts, Preprocessing
from saccade.models.io.folder import note_inputs, save_model
from saccade.models.probe import HEADS, LINEAR, HeadName, ProbeHead
from saccade.probing.evidence import places_of, with_evidence
from saccade.probing.page import probe_page
from saccade.probing.pictures import Features, features_of, usable_pictures
from saccade.probing.probe import Probed, checked_heads, probe
from saccade.probing.trials import Plan
from saccade.tasks.describing import halves, shown_by
from saccade.tasks.held_out import spread_out

RESULTS, PAGE = "results.json", "report.html"
MOST_DESCRIBED, DESCRIBED_AT_ONCE = 2000, 100


@dataclass(frozen=True)
class Written:
    """What a probe left."""

    folder: Path
    probed: Probed
    results: dict[str, Any]


def probe_pictures(
    backbone: str,
    data: str,
    out: Path | str,
    *,
    size: int = 224,
    through: str | None = None,
    heads: Sequence[str] = HEADS,
    keep: str | None = None,
    plan: Plan | None = None,
    untrained: bool = False,
    tell: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> Written:
    """Compare heads on the features of ``backbone``, and write model, results and page to ``out``.

    Args:
        backbone: its name, as ``saccade list backbones`` tells it, or timm:NAME.
        data: a folder with a folder for each class, or READER:PATH of labelled pictures.
        out: a new or empty folder, or one that a probe wrote.
        size: side of the network input, in pixels.
        through: the last stage of the backbone that is used; None: all stages.
        heads: which heads are compared; the linear one is always among them.
        keep: the head of the model folder; None: the attention head with the best validation accuracy.
        plan: splits, seeds and settings.
        untrained: random weights in place of published ones; always so for a backbone without published weights.
        tell: called with what is going on, how far it is, and how far it goes.
    """
    began = time.monotonic()
    wanted = checked_heads([*heads, *([keep] if keep else [])])
    folder = _checked_folder(Path(out))
    plan = plan or Plan()
    if plan.splits < 3:
        raise ConfigError(f"splits: at least 3, to learn, to choose and to test; found {plan.splits}")
    reference = as_reference(data)
    family, probing = _prober(reference)
    with warnings.catch_warnings():  # of labels and copies by the reader's own splits, which a probe does not use
        warnings.simplefilter("ignore", UserWarning)
        table = load_target(probing.read)(reference)
    pictures = usable_pictures(table, (size, size), tell)
    config = {"answers": len(pictures.classes), "backbone": backbone, "through": through, "hidden": plan.hidden}
    config |= {"query_count": plan.queries, "pretrained": not untrained and _has_weights(backbone)}
    make = _Maker(family, probing, config)
    model = make.model(wanted[0])
    model.check_input((size, size))
    if config["pretrained"]:
        model.start_pretrained()
    model.eval().requires_grad_(False)
    make.backbone = model.backbone
    features = features_of(pictures, model, limit_mb=FEATURES_MB, tell=tell)
    kept_name = next((head for head in wanted if head == keep), None)
    grid = (features.shape[1], features.shape[2])
    places = places_of(pictures, model.backbone.frames[model.stage], grid, plan.evidence_weight)
    probed = probe(pictures, features, plan=plan, heads=wanted, keep=kept_name, places=places, tell=tell)
    kept = probed.kept
    trial = probed.trials[kept.name]

    def model_of(split: int) -> Any:
        return make.filled(kept.name, trial.heads[split], *trial.statistics[split])

    probed = with_evidence(probed, features, model_of, tell)
    is_taught = plan.evidence_weight > 0 and kept.name != LINEAR
    facts = ModelFacts(
        architecture=probing.model,
        model=to_dict(make.model(kept.name).config),
        family=family.name,
        queries=(),
        answers=pictures.classes,
        preprocessing=Preprocessing(size=(size, size)),
        name=folder.name,
        data={"name": reference.partition(":")[0], "size": [size, size]},
        seed=0,
        training={
            "minutes": round((time.monotonic() - began) / 60, 2),
            "pictures": len(pictures),
            "verdict": probed.verdict,
            "trained_on": "all pictures; the verdict is from splits of them",
            **({"maps_supervised": f"by evidence, with weight {plan.evidence_weight:g}"} if is_taught else {}),
        },
    )
    save_model(make.filled(kept.name, kept.head, kept.centre, kept.spread), folder, facts)
    described = _describe(folder, facts, features, len(pictures))
    results = {"backbone": backbone, "data": reference, "size": size, "inputs": described, **probed.to_json()}
    results |= {"maps_supervised": facts.training["maps_supervised"]} if is_taught else {}
    results["seconds"] = round(time.monotonic() - began, 1)
    write_json(folder / RESULTS, results)
    page = probe_page(probed, features, model_of, title=f"{backbone} on {Path(reference.partition(':')[2]).name}")
    page.save(folder / PAGE)
    return Written(folder, probed, results)


def _describe(folder: Path, facts: ModelFacts, features: Features, count: int) -> str:
    """Let the model know what the features of its pictures look like; what was done, in one line.

    The backbone is frozen, so that features of pictures that the head learned are like those of any others.
    """
    numbers = spread_out(count, MOST_DESCRIBED)
    if len(numbers) < 2 * FEWEST:
        return f"what pictures it knows: not known, {counted(count, 'picture')} are too few to tell"
    held = torch.cat([pooled(features.take(part)) for part in torch.split(numbers, DESCRIBED_AT_ONCE)])  # (N,2C)
    fitting, comparing = halves(len(held))
    likeness = fit_likeness(held[fitting], held[comparing])
    note = InputsNote(ENCODING, shown_by(facts), "pictures of the probe", len(fitting), len(comparing), sha256="")
    note_inputs(folder, likeness, note, None)
    return f"what pictures it knows: by features of {len(held):,} of its pictures"


class _Maker:
    """Models that share one frozen backbone."""

    def __init__(self, family: Family, probing: Probing, config: dict[str, Any]) -> None:
        self._spec, self._config = family.models[probing.model], config
        self.backbone: torch.nn.Module | None = None

    def model(self, head: HeadName) -> Any:
        """A fresh model with that head; its backbone is the shared one as soon as there is one."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            made: Any = self._spec.build({**self._config, "head": head})
        if self.backbone is not None:
            made.backbone = self.backbone
        return made

    def filled(self, name: HeadName, head: ProbeHead, centre: torch.Tensor, spread: torch.Tensor) -> Any:
        """A model with a trained head and the statistics of its features."""
        made = self.model(name)
        made.head.load_state_dict(head.state_dict())
        made.centre.copy_(centre)
        made.spread.copy_(spread)
        return made.eval().requires_grad_(False)


def as_reference(data: str) -> str:
    """READER:PATH; a folder alone is taken as a folder of classes."""
    (reader,) = class_folders()
    return f"{reader}:{data}" if Path(data).expanduser().is_dir() else data


def _prober(reference: str) -> tuple[Family, Probing]:
    """The family that probes such data."""
    held = {name: each.probing for name, each in families().items() if each.probing is not None}
    name = reference.partition(":")[0]
    for family_name, probing in held.items():
        entry = families()[family_name].data.get(name)
        if entry is not None and entry.kind == "reader":
            return families()[family_name], probing
    found = family_of_data(reference)  # which says what is wrong with a name that nobody knows
    raise DataError(f"'{reference}' is data of the family '{found.name}'; a probe takes pictures with one label each")


def _has_weights(backbone: str) -> bool:
    from saccade.backbones.catalog import TIMM, backbone_spec

    return backbone.startswith(TIMM) or backbone_spec(backbone).published is not None


def _checked_folder(folder: Path) -> Path:
    """``folder``, if a probe may write to it."""
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"{folder}: a file is in the way; name a folder")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / CONFIG).is_file():
        raise OutputError(f"{folder}: holds something that is not a model; choose a new or empty folder")
    return folder
