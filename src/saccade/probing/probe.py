"""Probes a frozen backbone with your own labelled pictures: a verdict, a classifier, and its model folder.

:class:`Probe` goes from pictures (:mod:`saccade.probing.pictures`) to features (:mod:`saccade.probing.features`),
rivals (:mod:`saccade.probing.rivals`) and what they rest on (:mod:`saccade.probing.evidence`). It has the methods that
scikit-learn asks of a classifier, without needing scikit-learn.
"""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any, cast
from weakref import finalize

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from saccade.backbones.catalog import FEATURES, has_imagenet_weights
from saccade.backbones.feature_folder import FeatureFolder
from saccade.backbones.stages import finer_stages, fuse_norms
from saccade.config import from_dict, to_dict
from saccade.data.pictures.feature_cache import FEATURES_MB
from saccade.data.tables.readers import with_reader
from saccade.data.tables.table import Table
from saccade.errors import ConfigError, nearest
from saccade.families.registry import Family, Probing, families
from saccade.metrics.result import Part
from saccade.models.facts import ModelFacts, Preprocessing
from saccade.models.folder import pick_device
from saccade.models.probe import AnyProbe
from saccade.models.probe_heads import LINEAR, PYRAMID
from saccade.predict import Predictor
from saccade.probing.evidence import places_of, with_evidence
from saccade.probing.features import CLASS_TOKEN, features_of
from saccade.probing.folder import PAGE, RESULTS, check_folder, write_folder
from saccade.probing.heads import ALL_TITLES
from saccade.probing.pictures import IN_MEMORY, asked_table, digest_of, labelled_pictures, prober, usable_pictures
from saccade.probing.plan import Plan, Work, expected_seconds
from saccade.probing.rivals import ProbeResult, compare_rivals, wanted_heads
from saccade.progress import OnProgress, no_progress
from saccade.sighting import Sighting
from saccade.trace import AttentionTrace


class Probe:
    """A classifier of pictures: a frozen backbone, and the best of several small heads on its features.

    ``fit`` compares heads, ``verdict`` says whether attention is worth it, ``predict`` uses the best attention head.

    >>> probe = saccade.Probe(size=160).fit(pictures, labels)  # doctest: +SKIP
    >>> probe.predict(["photo.jpg"]), probe.verdict  # doctest: +SKIP

    Args:
        backbone: mobilenetv2, compact …, timm:NAME, hf:NAME, features:FOLDER.
        settings: fields of :class:`saccade.probing.plan.Plan`; mostly arguments of :func:`saccade.probe`.
    """

    folder: Path
    """Of the model, the page and the results, once they are saved."""
    results: Part
    """What results.json holds."""

    def __init__(self, backbone: str = "mobilenetv2", **settings: Any) -> None:
        self._settings: dict[str, Any] = {}
        self._result: ProbeResult | None = None
        self.set_params(backbone=backbone, **settings)

    def __repr__(self) -> str:
        return f"Probe({', '.join(f'{name}={value!r}' for name, value in self._settings.items())})"

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """All settings by name, as scikit-learn asks for them."""
        return {setting.name: self._settings.get(setting.name, setting.default) for setting in fields(Plan)}

    def set_params(self, **settings: Any) -> Probe:
        """Change settings; they count from the next :meth:`fit` on."""
        known = [setting.name for setting in fields(Plan)]
        for name in settings:
            if name not in known:
                raise ConfigError(f"a probe has no setting '{name}': {nearest(name, known)}")
        self._settings |= settings
        return self

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: all that predicts, and the result. Pictures and their features stay behind."""
        if self._result is None:
            return {"_settings": self._settings, "_result": None}
        state = {**vars(self), "family": self.family.name, "_models": {}, "_predictor": None}
        state["network"] = copy.deepcopy(self.network).cpu()
        del state["device"]
        state.pop("features", None)  # not there where it was pickled before
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        if self._result is not None:
            self.family = families()[state["family"]]
            try:
                self.device = pick_device(self.plan.device)
            except ConfigError:  # it was fitted on a device that is not here
                self.device = pick_device()
            self.network.to(self.device)

    def __sklearn_tags__(self) -> Any:
        from sklearn.base import BaseEstimator, ClassifierMixin  # which asks, so it is there

        return type("Tags", (ClassifierMixin, BaseEstimator), {})().__sklearn_tags__()

    def fit(
        self,
        pictures: Any,
        labels: Iterable[Any] | None = None,
        *,
        groups: Iterable[Any] | None = None,
        ask: Sequence[str] | None = None,
        on_progress: OnProgress = no_progress,
    ) -> Probe:
        """Compare the heads, and train the best attention head on all pictures.

        Args:
            pictures: paths, PIL images or arrays (H,W,3), with ``labels``. Without labels a folder of class folders, a
                table, or READER:PATH.
            labels: one for each picture.
            groups: what each picture belongs to, such as a patient; a group stays on one side of every split.
            ask: questions to probe, of data that has some. None: all of them.
            on_progress: called with what is going on, the share of all work that is done, and 1.
        """
        began = time.monotonic()
        self.settings = self.described(None if labels is not None else pictures, ask)
        self.plan, self.reference = from_dict(Plan, self._settings), str(self.settings["data"])
        if labels is None:
            family, probing = prober(self.reference, asks=ask is not None)
            table, label_of = asked_table(self.reference, family, ask), {}
        else:
            labels = [*labels]
            written = mkdtemp(prefix="saccade-")
            finalize(self, rmtree, written, ignore_errors=True)  # they go with this probe
            family, probing, table = labelled_pictures(pictures, labels, groups, Path(written))
            label_of = {str(label): label for label in labels}
            self.settings["pictures_sha256"] = digest_of(table)
        self._open(family, probing)  # what the backbone lacks is said before pictures are read
        self._compare(table, on_progress)
        classes = np.array([label_of.get(word, word) for word in self.pictures.classes])
        order = classes.argsort(kind="stable")
        self.classes_ = classes[order]
        self._words = [self.pictures.classes[place] for place in order]
        self.seconds = time.monotonic() - began
        return self

    def described(self, data: Any, ask: Sequence[str] | None) -> Part:
        """What tells this probe of ``data`` (None: pictures in memory) from another one, as plain values."""
        reference = IN_MEMORY if data is None else with_reader(str(data), ())  # generated data cannot be probed
        plan = asdict(from_dict(Plan, self._settings))
        del plan["device"]
        described: Part = json.loads(json.dumps({"data": reference, "ask": ask, **plan}, default=list))
        return described

    def _open(self, family: Family, probing: Probing) -> None:
        plan = self.plan
        self.family, self._architecture = family, probing.model
        self.heads = wanted_heads(plan)
        self._models: dict[int | None, AnyProbe] = {}
        self._predictor: Predictor | None = None
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
        self.device = pick_device(plan.device)
        self.network = model.eval().requires_grad_(False).to(self.device)
        """A model on the backbone, with a head that was not trained."""

    def _new(self) -> AnyProbe:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return cast(AnyProbe, self.family.models[self._architecture].build(self._config))

    def _compare(self, table: Table, on_progress: OnProgress) -> None:
        plan, backbone, wanted, remark = self.plan, self.network.backbone, self.heads, ""
        finer = finer_stages(backbone, self.size) if self.maps is None and PYRAMID in wanted else ()
        if plan.heads is None:
            lacking = {CLASS_TOKEN: not backbone.has_class_token, PYRAMID: not finer}
            if PYRAMID in wanted and not finer:
                remark = "no pyramid: this backbone has one map, or maps that do not fit together at this size"
            wanted = tuple(name for name in wanted if not lacking.get(name) or name == plan.keep)
        work = Work(on_progress, expected_seconds(self.network, self.size, plan, wanted, finer, table))
        pictures = usable_pictures(table, self.size, work, self.maps)
        if plan.shots and pictures.questions.are_asked:
            raise ConfigError("shots: counts pictures of a class, and these pictures are asked questions; leave it out")
        pictures = replace(pictures, remarks=(*pictures.remarks, *filter(None, [remark])))
        self.pictures = pictures
        self.features = features_of(pictures, self.network, finer, FEATURES_MB, work)
        grid = (self.features.map.shape[1], self.features.map.shape[2])
        places = places_of(pictures, backbone.frames[self.network.stage], grid, plan.evidence_weight)

        def on_split(head: str, done: int) -> None:
            what = f"{ALL_TITLES[head]}, split {min(done + 1, plan.splits)} of {plan.splits}"
            work(head, done, plan.splits, what)

        self._result = compare_rivals(
            pictures, self.features, plan=plan, heads=wanted, places=places, on_split=on_split
        )
        self._config |= {"answers": len(pictures.classes), "head": self.result.kept}
        if pictures.questions.are_asked:
            self._config |= {"queries": len(pictures.questions.words)}
        if self.result.kept == PYRAMID:
            self._config |= {"pyramid": list(finer)}
        if self.maps is None:  # without a network nobody can see a changed picture
            self._result = with_evidence(self, work)

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
        self._models[split] = model.eval().requires_grad_(False).to(self.device)
        return model

    @torch.no_grad()
    def trace(self, split: int, examples: Tensor) -> AttentionTrace:
        """Where the head that tested a split looked for ``examples`` (n,), in main memory."""
        pictures, model = self.pictures, self.model(split)
        encoded = self.features.encoded(self.result.kept, pictures.questions.picture[examples])  # (n,C,h,w)
        query = pictures.query(examples)
        raw = model.respond(encoded, None if query is None else query.to(self.device))
        return model.wrap(raw, self.size).trace.detach().cpu()

    @property
    def result(self) -> ProbeResult:
        """All that came of the comparison."""
        self._check_fitted()
        return cast(ProbeResult, self._result)

    def _check_fitted(self) -> None:
        if self._result is None:
            raise ConfigError("this probe has learned nothing yet; call fit first")

    def _check_saved(self) -> None:
        self._check_fitted()
        if not hasattr(self, "folder"):
            raise ConfigError("this probe is in no folder yet; call save first")

    @property
    def verdict(self) -> str:
        """Whether attention is worth it on these pictures, in a sentence or two."""
        return self.result.verdict

    @property
    def taught(self) -> dict[str, str]:
        """What taught the kept head where to look; nothing where it was not taught."""
        if self.plan.evidence_weight == 0 or self.result.kept in (LINEAR, PYRAMID):
            return {}
        return {"maps_supervised": f"by evidence, with weight {self.plan.evidence_weight:g}"}

    def facts(self, name: str = "") -> ModelFacts:
        """What is known of the model besides its weights."""
        source, pictures = self.reference.partition(":")[0], self.pictures
        licence, research_only = self.family.licence_of_weights(source)
        return ModelFacts(
            architecture=self._architecture,
            model=to_dict(self.model().config),
            family=self.family.name,
            queries=pictures.questions.words if pictures.questions.are_asked else (),
            answers=tuple(pictures.classes),
            preprocessing=Preprocessing(size=self.size),
            name=name,
            data={"name": source, "size": [*self.size]},
            licence=licence,
            research_only=research_only,
            seed=0,
            training={
                "minutes": round(self.seconds / 60, 2),
                "pictures": len(pictures.paths),
                "verdict": self.verdict,
                "trained_on": "all pictures of its probe: a score on those tells what it has learned; the score to "
                f"expect on others is in its {RESULTS}",
                **self.taught,
            },
        )

    def save(self, folder: Path | str) -> Probe:
        """Write a model folder for ``look``, ``serve`` and ``export``, with the page and results.json.

        Of maps that were computed elsewhere it is the head alone. The folder must be new or empty, or hold the same
        probe. A probe that was pickled has no pictures and cannot be saved.
        """
        self._check_fitted()
        if not hasattr(self, "features"):
            raise ConfigError("this probe was pickled without its pictures; save it before that, or fit it again")
        check_folder(Path(folder), self.settings)
        self.folder, self.results = Path(folder), write_folder(self, Path(folder))
        return self

    @property
    def report(self) -> Path:
        """The page."""
        self._check_saved()
        return self.folder / PAGE

    def to_json(self) -> Part:
        """What results.json holds."""
        self._check_saved()
        return self.results

    def looks(self, pictures: str | Path | Iterable[Any], ask: str | None = None) -> Iterator[Sighting]:
        """An answer with its maps for each of ``pictures``: paths, PIL images, arrays, or a folder.

        ``ask`` is the question, of a probe of questions.
        """
        self._check_fitted()
        if self.maps is not None:
            raise ConfigError(f"'{self.plan.backbone}' has no network, so it cannot see new pictures")
        if self._predictor is None:
            model = copy.deepcopy(self.model())
            fuse_norms(model)  # as of a model that is loaded
            self._predictor = Predictor(model, self.facts(), name="probe")
        return self._predictor.look_many(pictures if isinstance(pictures, (str, Path)) else [*pictures], ask)

    def predict_proba(self, pictures: Any, ask: str | None = None) -> npt.NDArray[np.float64]:
        """The probability of each of ``classes_`` for each picture: (N,K)."""
        shares = [{seen.answer: seen.confidence, **dict(seen.alternatives)} for seen in self.looks(pictures, ask)]
        return np.array([[share[word] for word in self._words] for share in shares]).reshape(-1, len(self._words))

    def predict(self, pictures: Any, ask: str | None = None) -> npt.NDArray[Any]:
        """The label of each picture: (N,)."""
        shares = self.predict_proba(pictures, ask)
        return cast(npt.NDArray[Any], self.classes_[shares.argmax(1)])

    def score(self, pictures: Any, labels: Iterable[Any], ask: str | None = None) -> float:
        """The share of pictures whose label is predicted."""
        self._check_fitted()
        wanted = np.array([*labels])
        kinds = {"number" if values.dtype.kind in "biuf" else values.dtype.kind for values in (self.classes_, wanted)}
        if len(wanted) and len(kinds) > 1:
            raise ConfigError(
                f"labels: such as {wanted[0].item()!r}, and this probe predicts such as {self.classes_[0].item()!r}; "
                "give labels of the same type"
            )
        return float(np.mean(self.predict(pictures, ask) == wanted))

    def evidence(self, pictures: Any, ask: str | None = None) -> list[npt.NDArray[np.float32]]:
        """Where it looked: for each picture a map (H,W) on its pixels."""
        return [seen.map() for seen in self.looks(pictures, ask)]
