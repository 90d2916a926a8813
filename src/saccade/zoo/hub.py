"""Models on the hub of Hugging Face: ``hf://USER/NAME`` is a model folder, fetched once and kept in its cache."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from saccade.backbones import hub
from saccade.errors import CheckpointError, DataError, OutputError
from saccade.files import verify_digest
from saccade.models.facts import CARD, CONFIG, INPUTS, VOCABULARY, WEIGHTS, ModelFacts, model_card, read_facts

HUB = "hf://"  # the address of a model on the hub starts with it
_NAME = re.compile(r"[\w][\w.-]*/[\w][\w.-]*", re.ASCII)  # USER/NAME
_REVISION = re.compile(r"[\w][\w./-]*", re.ASCII)


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
    client = _client("snapshot_download")
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
    client = _client("HfApi")
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


def _client(part: str) -> Any:
    return hub.open_library("huggingface_hub", "a model of the hub", part, "hub")


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
