"""Imports point downward, families do not know one another, and ``import saccade`` stays light."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import saccade

PACKAGE = Path(saccade.__file__).parent
# A room may import rooms of its own line and of the lines under it, as docs/architecture.md has them.
LAYERS = (
    {"commands", "__main__"},
    {"web", "adapters", "scoring", "probing", "papers"},
    {"predict", "sighting"},
    {"engine", "zoo"},
    {"families/*"},
    {"tasks", "tracing"},
    {"models"},
    {"families"},  # what a family declares, and the registry; a family's own folder stands above
    {"attention", "backbones", "losses", "metrics", "data", "show"},
    {"root"},
)
RANK = {room: rank for rank, rooms in enumerate(LAYERS) for room in rooms}  # from the top
SHARED = {"answering", "page"}  # Files of ``families`` that serve the families and may import models.


def room(parts: list[str]) -> str:
    """The room of a module, from the parts of its name below ``saccade``."""
    if parts[:1] == ["families"] and len(parts) > 1:
        if (PACKAGE / "families" / parts[1]).is_dir():
            return "families/*"
        return "tasks" if parts[1] in SHARED else "families"
    return parts[0] if parts and parts[0] in RANK else "root"


def imported(path: Path) -> Iterator[list[str]]:
    """The modules of saccade that a file imports, as parts of their names below ``saccade``.

    Not among them is what stands below ``if TYPE_CHECKING:`` in ``__init__.py``, public names that are loaded on first
    use, and in the declaration of a family, what its methods return.
    """
    tree = ast.parse(path.read_text("utf-8"))
    public = {
        id(node)
        for block in tree.body
        if path.name in ("__init__.py", "registry.py") and isinstance(block, ast.If)
        for node in ast.walk(block)
    }
    for node in ast.walk(tree):
        if id(node) in public:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[1:] for alias in node.names if alias.name.startswith("saccade."))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "saccade":
            below = node.module.split(".")[1:]
            yield from ([*below, alias.name] for alias in node.names)


# A family's defaults are loaded when they are asked for.
LATE = {("families/registry", "families.answering")}


def test_imports_point_downward() -> None:
    wrong = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = list(path.relative_to(PACKAGE).with_suffix("").parts)
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        here, file = room(parts), "/".join(parts)
        for other in imported(path):
            if RANK[room(other)] < RANK[here] and (file, ".".join(other[:2])) not in LATE:
                wrong.append(f"{file} ({here}) imports {'.'.join(other)} ({room(other)})")
            if here == "families/*" == room(other) and other[1] != parts[1]:
                wrong.append(f"{file} imports another family: {'.'.join(other)}")
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
