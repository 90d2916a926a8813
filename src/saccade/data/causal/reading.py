"""Reads a causal set from its folder, whichever kind it is."""

from __future__ import annotations

from pathlib import Path

from saccade.config import from_dict
from saccade.data.causal.photographs.format import KIND, PhotographFacts, PhotographSet
from saccade.data.causal.row_folder import FACTS, FORMAT
from saccade.data.causal.scenes import CausalFacts, CausalSet, check_frozen
from saccade.errors import DataError
from saccade.files import read_json


def read_causal_set(folder: str | Path) -> CausalSet | PhotographSet:
    """The causal set in ``folder``, to be iterated: each scene or photograph has image, masks and twins."""
    folder = Path(folder).expanduser()
    path = folder / FACTS
    if not path.is_file():
        raise DataError(
            f"{folder}: no causal set, as {FACTS} is not there; `saccade data make causal --out DIR` writes one"
        )
    facts = read_json(path)
    version = facts.get("format")
    if isinstance(version, int) and version > FORMAT:
        raise DataError(f"{path}: format {version} is newer than {FORMAT}, which this saccade reads; update it")
    if facts.get("kind") == KIND:
        return PhotographSet(folder, from_dict(PhotographFacts, facts, where=str(path)))
    causal = CausalSet(folder, from_dict(CausalFacts, facts, where=str(path)))
    if causal.facts.version is not None:
        check_frozen(causal.facts, str(path))
    return causal


def read_drawn_set(folder: str | Path) -> CausalSet:
    """The causal set of drawn scenes in ``folder``; one of photographs is refused."""
    causal = read_causal_set(folder)
    if not isinstance(causal, CausalSet):
        raise DataError(f"{folder}: a causal set of photographs, where one of drawn scenes is needed")
    return causal
