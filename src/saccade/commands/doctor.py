"""What is installed, what is missing, and how to get it."""

from __future__ import annotations

import importlib.metadata
import platform
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from saccade.commands.verb import Command, Remark, print_table, say, warn
from saccade.errors import DISTRIBUTION
from saccade.files import cache_home

_REQUIREMENT = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?[^;]*?(?:;.*extra\s*==\s*['\"]([^'\"]+)['\"])?\s*$")


def doctor() -> dict[str, Any]:
    """Check the installation: packages, devices, shipped models.

    ``problems`` lists what keeps saccade from working.
    """
    from saccade import __version__
    from saccade.families.registry import broken_families, families

    core, extras = _packages()
    missing = [name for name, version in core.items() if version is None]
    zoo = _zoo()
    devices, makers, meteor = _machine()
    return {
        "saccade": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": core,
        "devices": devices,
        "scene_makers": makers,
        "extras": {
            extra: {"missing": lacking, "get": f"pip install '{DISTRIBUTION}[{extra}]'" if lacking else None}
            for extra, lacking in extras.items()
        },
        "programs": {"METEOR 1.5": meteor},
        "cache": {"folder": str(cache_home()), "holds": dict(sorted(_cached().items()))},
        "zoo": zoo,
        "families": list(families()),
        "problems": _foreign()
        + [f"{name} is not installed: pip install {DISTRIBUTION}" for name in missing]
        + [f"{name}: {state}" for name, state in zoo.items() if state != "whole"]
        + [f"the family {name} does not load: {reason}" for name, reason in broken_families().items()],
    }


def _packages() -> tuple[dict[str, str | None], dict[str, list[str]]]:
    """(core package → version, extra → packages of it that are missing)."""
    try:
        declared = importlib.metadata.requires(DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:  # run from a source folder: only what it cannot do without
        declared = ["torch", "numpy", "pillow", "safetensors", "pyyaml", "typer", "rich"]
    core: dict[str, str | None] = {}
    extras: dict[str, list[str]] = {}
    for name, extra in (match.groups() for match in map(_REQUIREMENT.match, declared) if match):
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            version = None
        if extra is None:
            core[name] = version
        else:
            extras.setdefault(extra, []).extend([] if version else [name])
    return core, extras


def _foreign() -> list[str]:
    """A problem where another project's ``saccade`` is installed too: both write into one folder ``saccade``."""
    try:
        other = importlib.metadata.distribution("saccade")
    except importlib.metadata.PackageNotFoundError:
        return []
    return [
        f"saccade {other.version} is another project and overwrites files of {DISTRIBUTION}: "
        f"pip uninstall saccade && pip install --force-reinstall --no-deps {DISTRIBUTION}"
    ]


def _machine() -> tuple[list[str], dict[str, str], str]:
    """Devices, what makes generated scenes on each, and whether METEOR itself can score captions."""
    try:
        import torch

        from saccade.data.scenes.drawing import render
        from saccade.data.scenes.glyphs import glyphs_for
        from saccade.data.scenes.kernels import renderer_description
        from saccade.data.scenes.layout import SceneSpec
        from saccade.data.scenes.sampler import sample_layout
        from saccade.metrics.text.meteor import meteor_missing
    except ImportError as error:
        reason = f"torch does not load: {error}"
        return [reason], {"cpu": reason}, reason
    devices = [f"cpu ({torch.get_num_threads()} threads)"]
    makers = {"cpu": renderer_description(torch.device("cpu"))}
    for number in range(torch.cuda.device_count()):
        device = torch.device("cuda", number)
        devices.append(f"{device} ({torch.cuda.get_device_name(number)})")
        try:
            render(sample_layout(SceneSpec(), glyphs_for("test", "pack"), 0, torch.arange(1, device=device)))
        except RuntimeError as error:
            makers[str(device)] = f"nothing: {str(error).partition(chr(10))[0]}"
        else:
            makers[str(device)] = renderer_description(device)
    return devices, makers, meteor_missing() or "ready"


def _cached() -> Counter[str]:
    sizes = Counter[str]()
    for path in cache_home().glob("*/**/*"):
        if path.is_file():
            sizes[path.relative_to(cache_home()).parts[0]] += path.stat().st_size
    return sizes


def _zoo() -> dict[str, str]:
    """Shipped model → "whole", or what is wrong with it."""
    from saccade.errors import CheckpointError
    from saccade.files import verify_digest
    from saccade.models.facts import WEIGHTS, read_facts
    from saccade.zoo.folders import shipped

    states = {}
    for name, folder in shipped().items():
        try:
            verify_digest(folder / WEIGHTS, read_facts(folder).sha256)
            states[name] = "whole"
        except CheckpointError as error:
            states[name] = str(error)
    return states


def show(state: Mapping[str, Any], arguments: Mapping[str, Any], remark: Remark) -> None:
    """Print what there is, and the problems."""
    say(f"saccade {state['saccade']}, Python {state['python']}, {state['platform']}\n")
    cache = state["cache"]
    extras = [(name, ", ".join(row["missing"]), row["get"] or "complete") for name, row in state["extras"].items()]
    tables: list[tuple[str, tuple[str, ...], Iterable[Sequence[object]]]] = [
        ("packages", ("package", "version"), state["packages"].items()),
        ("devices", ("device",), [(device,) for device in state["devices"]]),
        ("generated scenes", ("device", "made by"), state["scene_makers"].items()),
        ("extras", ("extra", "missing", "get it with"), extras),
        ("programs", ("program", "state"), state["programs"].items()),
        (f"cache {cache['folder']}", ("name", "bytes"), cache["holds"].items()),
        ("shipped models", ("model", "weights"), state["zoo"].items()),
    ]
    for title, columns, rows in tables:
        if rows:
            print_table(title, columns, list(rows))
        else:
            say(f"{title}: none\n")
    for problem in state["problems"]:
        warn(f"problem: {problem}")
    if not state["problems"]:
        say("all is well")


COMMAND = Command(doctor, show, code=lambda state: 2 if state["problems"] else 0, example="saccade doctor")
