"""Models on the hub: ``hf://USER/NAME`` is downloaded once, checked, and then used from the cache.

A model folder of the hub is one that ``saccade train`` or ``saccade probe`` wrote. Nothing but its own files is fetched
(:data:`FILES`), so no pickle and no code comes along. The digest of the weights is checked
as for any folder. ``hf://USER/NAME@REVISION`` is a branch, tag or commit.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

from saccade.backbones.hub import from_hub
from saccade.errors import CheckpointError, DataError, MissingExtraError
from saccade.models.facts import CARD, CONFIG, INPUTS, VOCABULARY, WEIGHTS, read_facts
from saccade.untrusted import verify_digest
from saccade.zoo import HUB

FILES = (CONFIG, WEIGHTS, CARD, VOCABULARY, INPUTS)
_NAME = re.compile(r"[\w][\w.-]*/[\w][\w.-]*(@[\w][\w./-]*)?", re.ASCII)


def hub_folder(address: str) -> Path:
    """The folder of the model at ``address``, fetched where it is not on this machine.

    Raises:
        CheckpointError: the address names no model, or what is there is none, or is damaged.
        DataError: it is not on this machine and the hub cannot be reached.
        MissingExtraError: without the extra ``hub``.
    """
    name = address.removeprefix(HUB)
    if not _NAME.fullmatch(name) or ".." in name:
        raise CheckpointError(f"{address}: not an address of a model; write hf://USER/NAME, or hf://USER/NAME@REVISION")
    repository, _, revision = name.partition("@")
    client = _client()
    folder = _fetched(client, repository, revision or None)
    facts = read_facts(folder)
    verify_digest(folder / WEIGHTS, facts.sha256)
    if facts.inputs is not None:
        verify_digest(folder / INPUTS, facts.inputs.sha256)
    return folder


def _fetched(client: Any, repository: str, revision: str | None) -> Path:
    """The folder with the files of ``repository``: what the cache has where the hub cannot be reached."""
    try:
        with from_hub(f"the files of hf://{repository}"):
            return Path(client.snapshot_download(repository, revision=revision, allow_patterns=list(FILES)))
    except DataError:
        raise
    except Exception as error:  # the client has many, some of them of the library that it sends requests with
        reason = " ".join(str(error).split())[:200]
        raise CheckpointError(f"hf://{repository}: cannot be fetched ({type(error).__name__}: {reason})") from error


def _client() -> object:
    try:
        return importlib.import_module("huggingface_hub")
    except ImportError as error:
        found = "it is not installed" if getattr(error, "name", "") == "huggingface_hub" else f"it fails ({error})"
        raise MissingExtraError("a model of the hub", "hub", found) from error
