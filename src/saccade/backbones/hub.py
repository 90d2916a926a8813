"""Loads timm, transformers and huggingface_hub, and checks within a second whether their hub can be reached.

Without a network their client retries for minutes. So the hub is checked first. If it does not answer, or with
``--offline``, the client uses its cache alone, and a missing file is an error.
"""

from __future__ import annotations

import importlib
import os
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from saccade.errors import DataError, MissingExtraError

_SWITCHES = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
_PATIENCE = 1.0  # seconds


def work_offline() -> None:
    """Fetch nothing from the hub from now on, nor in processes that are started."""
    for switch in _SWITCHES:
        os.environ[switch] = "1"


@contextmanager
def offline() -> Iterator[None]:
    """Fetch nothing from the hub for the length of a block, nor in processes that it starts."""
    before = {switch: os.environ.get(switch) for switch in _SWITCHES}
    work_offline()
    try:
        yield
    finally:
        for switch, value in before.items():
            if value is None:
                os.environ.pop(switch, None)
            else:
                os.environ[switch] = value


def is_offline() -> bool:
    """Whether nothing may be fetched from the hub."""
    return any(os.environ.get(switch, "").upper() in ("1", "ON", "YES", "TRUE") for switch in _SWITCHES)


def why_no_hub() -> str | None:
    """Why weights cannot be fetched now; None where the hub answers."""
    if is_offline():
        return "fetching is off (by `offline` or HF_HUB_OFFLINE)"
    place = os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
    through = os.environ.get("HTTPS_PROXY") or os.environ.get("https_proxy")
    address = urlsplit(through or place)
    outcomes: list[str | None] = []

    def ask() -> None:
        try:
            port = address.port or (80 if address.scheme == "http" else 443)
            socket.create_connection((address.hostname or "", port), timeout=_PATIENCE).close()
            outcomes.append(None)
        except (OSError, ValueError) as error:
            outcomes.append(str(error))

    asking = threading.Thread(target=ask, daemon=True)  # looking up a name has no timeout of its own
    asking.start()
    asking.join(2 * _PATIENCE)
    why = outcomes[0] if outcomes else "no answer"
    return None if why is None else f"{address.hostname} cannot be reached ({why})"


def open_library(name: str, feature: str, part: str = "__name__", extra: str = "") -> Any:
    """The library ``name``, by default of an extra of that name, with a ``part`` that may load late."""
    try:
        library = importlib.import_module(name)
        getattr(library, part)
        return library
    except (ImportError, RuntimeError) as error:
        is_absent = isinstance(error, ModuleNotFoundError) and error.name == name
        why = "it is not installed" if is_absent else f"{name} does not load ({error})"
        if isinstance(error, RuntimeError):  # "operator torchvision::nms does not exist"
            why += "; where torchvision does not fit torch, install the one that was built for this torch, then"
        raise MissingExtraError(feature, extra or name, why) from error


@contextmanager
def from_hub(what: str) -> Iterator[None]:
    """Run the client of the hub to fetch ``what``, offline if the hub cannot be reached; a DataError where it fails."""
    why = why_no_hub()
    if why is None:
        yield
        return
    constants = sys.modules.get("huggingface_hub.constants")  # read when it was imported
    was = getattr(constants, "HF_HUB_OFFLINE", None)
    if constants is not None:
        constants.HF_HUB_OFFLINE = True  # type: ignore[attr-defined]  # a module found by its name
    try:
        with offline():
            yield
    except Exception as error:  # each library has its own
        raise DataError(
            f"{what} are not on this machine, and {why}; fetch them once with a network, or set HF_ENDPOINT"
        ) from error
    finally:
        if constants is not None:
            constants.HF_HUB_OFFLINE = was  # type: ignore[attr-defined]  # as above
