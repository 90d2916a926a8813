"""The zoo: model folders that come with saccade, one sub-folder each, found without importing torch."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path

from saccade.atomic import recover
from saccade.errors import CheckpointError, nearest
from saccade.models.io.facts import CONFIG, refuse_foreign

ZOO = Path(__file__).parent
HUB = "hf://"
"""What the address of a model on the hub starts with."""


LEFT_OUT = "left_out.json"
"""In a copy without the weights that are for research only: which these are."""


def shipped() -> dict[str, Path]:
    """Name → model folder of every model that comes with saccade."""
    return {file.parent.name: file.parent for file in sorted(ZOO.glob(f"*/{CONFIG}"))}


def left_out() -> dict[str, str]:
    """Name → licence of the models that this copy was built without (``make wheel-open``); none in a full copy."""
    try:
        found: dict[str, str] = json.loads((ZOO / LEFT_OUT).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return found


def resolve(name_or_path: str | Path) -> Path:
    """The model folder meant by a zoo name, a model folder, a run folder (its ``model/``) or ``hf://USER/NAME``.

    A zoo name wins over a model in a folder of the same name here, and says so: write ``./name`` for the latter.
    """
    if not isinstance(name_or_path, (str, os.PathLike)):
        hint = nearest("", shipped(), listed_by="saccade list")
        raise CheckpointError(f"a model is named by text or a path, found {name_or_path!r}; {hint}")
    if str(name_or_path).startswith(HUB):
        from saccade.zoo.from_hub import hub_folder

        return hub_folder(str(name_or_path))
    path = Path(name_or_path)
    for folder in (path, path / "model"):
        recover(folder)  # a writer may have been killed while it replaced the folder
    try:
        own = next((folder for folder in (path, path / "model") if (folder / CONFIG).is_file()), None)
    except OSError as error:
        raise CheckpointError(
            f"{path}: cannot be read ({error.strerror}); name a model that you have permission to read"
        ) from error
    ours = shipped().get(str(name_or_path))
    if ours is not None:
        if own is not None and not own.samefile(ours):
            warnings.warn(f"'{path}' is the shipped model; for the folder of that name write ./{path}", stacklevel=3)
        return ours
    if own is not None:
        return own
    if path.exists():
        refuse_foreign(path)
        if (path / "config.yaml").is_file():
            raise CheckpointError(
                f"{path}: a run that has not saved a model yet; continue with 'saccade train … --resume'"
            )
        if runs := sorted(path.glob("seed-*/config.yaml")):
            raise CheckpointError(f"{path} holds several runs: name one of them, such as {runs[0].parent}")
        raise CheckpointError(f"{path}: neither a model folder (no {CONFIG}) nor a run folder (no model/)")
    if str(name_or_path).startswith(("timm:", "hf:")):
        raise CheckpointError(f"'{name_or_path}' comes from another library: only saccade look supports it")
    if (missing := left_out().get(str(name_or_path))) is not None:
        raise CheckpointError(
            f"this open copy of saccade was built without '{name_or_path}' ({missing}); install the full package"
        )
    known = nearest(str(name_or_path), shipped(), listed_by="saccade list")
    zoo = known if shipped() else "(no models are shipped with this copy)"
    raise CheckpointError(f"no model '{name_or_path}' in the zoo and no such folder: {zoo}")
