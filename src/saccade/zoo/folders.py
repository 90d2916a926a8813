"""Model folders: those that ship, yours, and those on the hub; and shipped pictures to try them with; without torch.

``hf://USER/NAME`` is a model folder on the hub of Hugging Face, fetched once and kept in its cache;
``hf://USER/NAME@REVISION`` is a branch, tag or commit of it.

Pictures: ``digits`` is scene 136 of mref and ``clutter`` scene 40 of mdist (test split, shipped glyphs), ``stripes``
picture 2 of details (test split). NOTICE has the source of ``bird``, ``packs/backgrounds/attribution.json`` those of
the other photographs.
"""

from __future__ import annotations

import json
import re
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

from saccade.backbones import hub
from saccade.errors import CheckpointError, DataError, OutputError, nearest, shown_value
from saccade.files import recover, verify_digest
from saccade.models.facts import (
    CARD,
    CONFIG,
    INPUTS,
    VOCABULARY,
    WEIGHTS,
    ModelFacts,
    model_card,
    read_facts,
    refuse_foreign,
)

ZOO = Path(__file__).parent
LEFT_OUT = "left_out.json"  # in a copy without the weights that are for research only: their names
HUB = "hf://"  # the address of a model on the hub starts with it
_NAME = re.compile(r"[\w][\w.-]*/[\w][\w.-]*", re.ASCII)  # USER/NAME
_REVISION = re.compile(r"[\w][\w./-]*", re.ASCII)


def shipped() -> dict[str, Path]:
    """Name → model folder of every model that comes with saccade."""
    return {file.parent.name: file.parent for file in sorted(ZOO.glob(f"*/{CONFIG}"))}


def left_out() -> dict[str, str]:
    """Name → licence of the models that this copy was built without (``make wheel-open``); none in a full copy."""
    try:
        return dict(json.loads((ZOO / LEFT_OUT).read_text(encoding="utf-8")))
    except FileNotFoundError:
        return {}


def resolve(name_or_path: str | Path) -> Path:
    """The model folder meant by a zoo name, a model folder, a run folder (its ``model/``) or ``hf://USER/NAME``.

    A zoo name wins over a model in a folder of the same name here, and says so: write ``./name`` for the latter.
    """
    name = str(name_or_path)
    if name.startswith(HUB):
        return hub_folder(name)
    path = Path(name)
    folders = (path, path / "model")
    for folder in folders:
        recover(folder)  # a writer may have been killed while it replaced the folder
    try:
        own = next((folder for folder in folders if (folder / CONFIG).is_file()), None)
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error.strerror}); 'saccade list' prints all names") from error
    ours = shipped().get(name)
    if ours is not None:
        if own is not None and not own.samefile(ours):
            warnings.warn(f"'{path}' is the shipped model; for the folder of that name write ./{path}", stacklevel=3)
        return ours
    if own is not None:
        return own
    if path.exists():
        if runs := sorted(path.glob("seed-*/config.yaml")):
            raise CheckpointError(f"{path} holds several runs: name one of them, such as {runs[0].parent}")
        if (path / "config.yaml").is_file():
            raise CheckpointError(f"{path}: a run without a model yet; continue with 'saccade train … --resume'")
        refuse_foreign(path)
    if name.startswith(("timm:", "hf:")):
        raise CheckpointError(f"'{name}' comes from another library: only saccade look supports it")
    if name in left_out():
        raise CheckpointError(f"this open copy of saccade was built without '{name}' ({left_out()[name]})")
    known = nearest(name, shipped(), listed_by="saccade list") if shipped() else "no models are shipped with this copy"
    raise CheckpointError(f"no model {shown_value(name)} in the zoo and no such folder: {known}")


def files_of(facts: ModelFacts) -> list[str]:
    """Names of the files in the folder of a model with these facts."""
    optional = {VOCABULARY: facts.sentences, INPUTS: facts.inputs is not None}
    return [CONFIG, WEIGHTS, CARD, *(name for name, is_there in optional.items() if is_there)]


def hub_folder(address: str) -> Path:
    """The folder of the model at ``address``, fetched if it is not on this machine, and checked.

    Only the files of a model folder are fetched.
    """
    repository, _, revision = address.removeprefix(HUB).partition("@")
    is_revision = _REVISION.fullmatch(revision) if "@" in address else True
    if not _NAME.fullmatch(repository) or not is_revision or ".." in address:
        raise CheckpointError(f"{address}: not an address of a model; write hf://USER/NAME, or hf://USER/NAME@REVISION")
    client = hub.open_library("huggingface_hub", "a model of the hub", "snapshot_download", "hub")
    patterns = [CONFIG, WEIGHTS, CARD, VOCABULARY, INPUTS]
    try:
        with hub.from_hub(f"the files of hf://{repository}"):
            folder = Path(client.snapshot_download(repository, revision=revision or None, allow_patterns=patterns))
    except DataError:
        raise
    except Exception as error:  # the client has many, some of them of the library that it sends requests with
        raise CheckpointError(f"hf://{repository}: cannot be fetched ({_reason(error)})") from error
    _check(folder)
    return folder


def push_folder(folder: Path, repository: str, *, private: bool = False, message: str = "") -> str:
    """Put the model in ``folder`` on the hub as ``USER/NAME``, in one commit, with its card; returns its address."""
    name = repository.removeprefix(HUB)
    if not _NAME.fullmatch(name):
        raise OutputError(f"'{repository}': not a name on the hub; write USER/NAME")
    client = hub.open_library("huggingface_hub", "a model of the hub", "HfApi", "hub")
    facts = _check(folder)
    if why := hub.why_no_hub():
        raise OutputError(f"hf://{name}: cannot be written, {why}")
    contents: dict[str, str | bytes] = {file: str(folder / file) for file in files_of(facts)}
    contents["README.md"] = _front_page(facts, name).encode()
    changes = [client.CommitOperationAdd(path_in_repo=file, path_or_fileobj=data) for file, data in contents.items()]
    try:
        writer = client.HfApi()
        writer.create_repo(name, private=private, exist_ok=True)
        writer.create_commit(name, changes, commit_message=message or f"Upload {facts.name or facts.architecture}")
    except Exception as error:  # as above
        raise OutputError(
            f"hf://{name}: cannot be written ({_reason(error)}); log in with 'hf auth login', or set HF_TOKEN to a "
            "token that may write there"
        ) from error
    return f"{HUB}{name}"


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


def _check(folder: Path) -> ModelFacts:
    facts = read_facts(folder)
    verify_digest(folder / WEIGHTS, facts.sha256)
    if facts.inputs is not None:
        verify_digest(folder / INPUTS, facts.inputs.sha256)
    return facts


def _front_page(facts: ModelFacts, name: str) -> str:
    """The card as the hub shows it, with the facts by which the hub finds models."""
    is_open = facts.licence == "Apache-2.0" and not facts.research_only
    head = ["library_name: saccade", f"license: {'apache-2.0' if is_open else 'other'}", "tags: [visual-attention]"]
    return "\n".join(["---", *head, "---", "", model_card(replace(facts, name=f"{HUB}{name}"))])


_GALLERY = Path(__file__).parents[1] / "data/gallery"
_PHOTOGRAPHS = _GALLERY.parent / "scenes/packs/backgrounds"
_GLYPHS = "MNIST glyphs CC BY-SA 3.0 (LeCun, Cortes, Burges)"


@dataclass(frozen=True)
class ShippedPicture:
    """One picture to try things with."""

    path: Path
    shows: str
    ask: str  # What a model of its kind can be asked; empty: nothing
    credit: str  # Author and licence


EXAMPLES = {
    "digits": ShippedPicture(_GALLERY / "digits.png", "seven coloured digits on black", "7", _GLYPHS),
    "clutter": ShippedPicture(_GALLERY / "clutter.png", "seven coloured digits among bits of others", "7", _GLYPHS),
    "stripes": ShippedPicture(_GALLERY / "stripes.webp", "discs, one with a mark of fine stripes", "", "generated"),
    "bird": ShippedPicture(
        _GALLERY / "bird.png", "a blackbird", "crown", "Childsplay and Tux Paint, GNU GPL, version 2 or later"
    ),
    "cat": ShippedPicture(_PHOTOGRAPHS / "test" / "cat.jpg", "a cat", "", "Stefan van der Walt, CC0 1.0"),
    "coffee": ShippedPicture(
        _PHOTOGRAPHS / "train" / "coffee.jpg",
        "a cup of coffee",
        "",
        "Rachel Michetti, courtesy of Pikolo Espresso Bar, CC0 1.0",
    ),
    "rocket": ShippedPicture(_PHOTOGRAPHS / "val" / "rocket.jpg", "a rocket takes off", "", "SpaceX, public domain"),
}  # by name


def example(name: str = "digits") -> Path:
    """The file of a picture that ships with saccade, such as ``digits``, ``stripes`` or ``cat`` (:data:`EXAMPLES`).

    >>> example("digits").name
    'digits.png'
    """
    for key, picture in EXAMPLES.items():
        if name in (key, picture.path.name):  # with or without its suffix
            return picture.path
    raise DataError(f"no example '{name}': {nearest(str(name), EXAMPLES)}")
