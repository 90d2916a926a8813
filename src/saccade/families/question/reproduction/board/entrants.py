"""The entries of the board: shipped models, runs of controls, untrained weights, planted causes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import torch

from saccade.errors import SaccadeError
from saccade.families.question.board.measuring import Entrant
from saccade.families.question.board.methods import ATTRIBUTIONS, LAYERS, OWN, ROLLOUT
from saccade.families.question.query_model import query_model
from saccade.models.base import QueryModel
from saccade.models.vit import VitModel
from saccade.predict import Predictor, load

DATA = ("mref", "mdist", "mbg")
PLANTED = ("corner", "largest", "blind")
SYSTEMS: dict[str, tuple[str, tuple[str, ...]]] = {
    "hattnet-ctx-sparse": ("CTX, sparse", (OWN, *ATTRIBUTIONS)),
    "hattnet-ctx": ("HAttNet-CTX", (OWN,)),
    "hattnet": ("HAttNet", (OWN,)),
    "soft": ("SOFT", (OWN, *ATTRIBUTIONS)),
    "hard": ("HARD", (OWN,)),
    "cross": ("control: cross", (OWN, *ATTRIBUTIONS)),
    "film": ("control: FiLM", ATTRIBUTIONS),
    "vit": ("control: ViT", (OWN, *LAYERS, ROLLOUT, *ATTRIBUTIONS)),
}
"""The label and the methods of each system. FiLM has no attention. Rivals use the effects of the first system."""
RANDOM = ("hattnet-ctx-sparse", "soft")
"""Systems that stand there with random weights too."""


UNTAUGHT = ", random"
"""Ends the label of a model with random weights."""


def entrants(data: str, runs: Path | None, device: str, *, untaught: bool = True) -> Iterator[Entrant]:
    """All models for one data set: those of ``runs`` (folders called SYSTEM-DATA), else the shipped ones.

    With ``untaught``, some stand there with random weights too.
    """
    for system, (label, methods) in SYSTEMS.items():
        predictor = _found(f"{system}-{data}", runs, device)
        if predictor is None:
            continue
        model = query_model(predictor).eval()
        absent = LAYERS[model.config.layers - 1 :] if isinstance(model, VitModel) else ()
        methods = tuple(method for method in methods if method not in absent)
        yield Entrant(label, model, methods, _facts(predictor))
        if untaught and system in RANDOM:
            facts = {"from": f"{predictor.name}, its weights drawn anew, seed 0"}
            yield Entrant(f"{label}{UNTAUGHT}", _random(model), (OWN, "gradcam", "gradxinput"), facts)


def planted_entrant(planted: str, runs: Path | None, device: str) -> Entrant | None:
    """The model that learned from a planted cause; None where there is no run of it."""
    predictor = _found(f"soft-{planted}-mref", runs, device)
    if predictor is None:
        return None
    return Entrant(f"SOFT, {planted}", query_model(predictor).eval(), (OWN, *ATTRIBUTIONS), _facts(predictor))


def _found(name: str, runs: Path | None, device: str) -> Predictor | None:
    folder = None if runs is None else runs / name
    try:
        return load(folder if folder is not None and folder.exists() else name, device)
    except SaccadeError:
        return None


def _facts(predictor: Predictor) -> dict[str, object]:
    training = predictor.facts.training
    return {"from": predictor.name, "sha256": training.get("sha256"), "command": training.get("command")}


def _random(model: QueryModel) -> QueryModel:
    """The same network as nothing has taught it."""
    device = next(model.parameters()).device
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        fresh: QueryModel = type(model)(model.config)
    return fresh.to(device).eval()
