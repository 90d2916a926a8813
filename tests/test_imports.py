"""Imports point downward, families do not know one another, and ``import saccade`` stays light."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import saccade

PACKAGE = Path(saccade.__file__).parent
# A room may import rooms of its own line and of the lines above it.
LAYERS = (
    {"root"},
    {"families"},  # what a family declares; a family's own folder stands lower down
    {"attention", "backbones", "losses", "metrics", "data", "show"},
    {"models"},
    {"tasks", "tracing"},
    {"families/*"},
    {"engine", "zoo"},
    {"sighting", "predict"},
    {"papers", "probing", "scoring", "adapters", "web"},
    {"commands", "__main__"},
)
RANK = {room: rank for rank, rooms in enumerate(LAYERS) for room in rooms}
SHARED = {"answering"}  # Files of ``families`` that serve the families and may import data and models.
ABOVE = {"page"}  # Parts of a family that use the verbs; nobody imports them by name.


def room(parts: list[str]) -> str:
    """The room of a module, from the parts of its name below ``saccade``."""
    if parts[0] == "families" and len(parts) > 1:
        if (PACKAGE / "families" / parts[1]).is_dir():
            own = parts[2] if len(parts) > 2 else ""
            return "commands" if own in ABOVE else "families/*"
        return "tasks" if parts[1] in SHARED else "families"
    return parts[0] if parts[0] in RANK else "root"


def imported(path: Path) -> Iterator[list[str]]:
    """The modules of saccade that a file imports when it runs, as parts of their names below ``saccade``."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[1:] for alias in node.names if alias.name.startswith("saccade."))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "saccade":
            below = node.module.split(".")[1:]
            yield from ([*below, alias.name] for alias in node.names)


def test_imports_point_downward() -> None:
    wrong = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = list(path.relative_to(PACKAGE).with_suffix("").parts)
        if parts[-1] == "__init__":  # public names, and parts of a family, are imported on first use
            continue
        here = room(parts)
        for other in imported(path):
            if RANK[room(other)] > RANK[here]:
                wrong.append(f"{'/'.join(parts)} ({here}) imports {'.'.join(other)} ({room(other)})")
            if here == "families/*" == room(other) and other[1] != parts[1]:
                wrong.append(f"{'/'.join(parts)} imports another family: {'.'.join(other)}")
    assert not wrong, "\n".join(["", *wrong])


def loaded_after(statement: str) -> set[str]:
    """The top-level modules that a fresh interpreter has loaded after ``statement``."""
    code = f"{statement}\nimport sys\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_saccade_loads_no_torch() -> None:
    assert not loaded_after("import saccade") & {"torch", "numpy", "PIL", "matplotlib", "lightning_fabric", "typer"}


def test_models_need_no_extra() -> None:
    unwanted = {"matplotlib", "lightning_fabric", "fastapi", "timm", "torchvision", "typer"}
    assert not loaded_after("import saccade.models.soft, saccade.record, saccade.trace") & unwanted
