"""The folder list is the architecture: imports point one way, and some modules are never imported at all."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import saccade

PACKAGE = Path(saccade.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))

# Room → rooms it may import from (lazily or not); every room may import from itself.
CORE = {"errors", "config", "atomic", "cache", "geometry", "trace", "record", "devices"}
NETWORKS = {"attention", "backbones", "models"}
AROUND = {"data", "losses", "metrics", "show"}
ALLOWED: dict[str, set[str]] = {
    # the floor: numbers, files and the one result type
    "errors": set(),
    "config": {"errors"},
    "atomic": {"errors"},
    "cache": {"errors"},
    "devices": {"errors"},
    "geometry": {"errors"},
    "trace": {"errors", "geometry"},
    "record": {"errors", "config", "atomic", "geometry", "trace"},
    # networks: mechanisms, then what they are composed into
    "attention": CORE,
    "backbones": CORE | {"attention"},
    "models": CORE | {"attention", "backbones"},
    # what stands around the networks and reads traces; none of these knows a model
    "data": CORE,
    "losses": CORE,
    "metrics": CORE,
    "show": CORE,
    # where they meet; the engine knows tasks by protocol only
    "tasks": CORE | NETWORKS | AROUND,
    "engine": CORE,
    # what a user holds
    "zoo": CORE | NETWORKS | AROUND | {"tasks", "engine"},
    "recorded": CORE | {"models", "engine"},
    "sighting": CORE | AROUND,
    "predict": CORE | NETWORKS | AROUND | {"zoo", "sighting"},
    "web": CORE | NETWORKS | AROUND | {"tasks", "engine", "zoo", "recorded", "sighting", "predict"},
    "verbs": CORE | NETWORKS | AROUND | {"tasks", "engine", "zoo", "recorded", "sighting", "predict", "web"},
    # the doors
    "cli": CORE | NETWORKS | AROUND | {"tasks", "engine", "zoo", "recorded", "sighting", "predict", "verbs", "web"},
    "__main__": {"cli"},
}
NO_ROOM = {"__version__"}  # names of the package itself


def room(file: Path) -> str:
    """The first part of a module's name below saccade; "__init__" for the package itself."""
    first = file.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def imported_modules(tree: ast.AST) -> set[str]:
    """The dotted names that a file imports anywhere in it: at the top, in functions, for type checkers."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{'.' * node.level}{node.module or ''}.{alias.name}" for alias in node.names}
    return found


def imported_rooms(tree: ast.AST) -> set[str]:
    """The rooms of saccade among them."""
    parts = [name.split(".") for name in imported_modules(tree)]
    return {part[1] for part in parts if part[0] == "saccade" and len(part) > 1} - NO_ROOM


def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


by_file = pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PACKAGE)))


# ---------------------------------------------------------------- the direction


@by_file
def test_imports_point_one_way(file: Path) -> None:
    here = room(file)
    if here == "__init__":  # the public names, loaded lazily, come from everywhere
        return
    assert here in ALLOWED, f"a new room '{here}': say in this table what it may know"
    wrong = imported_rooms(parsed(file)) - ALLOWED[here] - {here}
    assert not wrong, f"{here} must not know {', '.join(sorted(wrong))}"


@by_file
def test_imports_are_absolute(file: Path) -> None:
    assert not [name for name in imported_modules(parsed(file)) if name.startswith(".")]


def test_the_table_has_no_circle() -> None:
    """Rooms can be put in an order in which each knows only earlier ones."""
    left = {here: known - {here} for here, known in ALLOWED.items()}
    while left:
        free = {here for here, known in left.items() if not known & left.keys()}
        assert free, f"these know each other: {sorted(left)}"
        left = {here: known for here, known in left.items() if here not in free}


def test_the_reader_of_imports_sees_all_forms() -> None:
    code = "import saccade.data.x\nfrom saccade import trace\ndef f():\n    from saccade.models.soft import SoftModel\n"
    assert imported_rooms(ast.parse(code)) == {"data", "trace", "models"}
    assert imported_rooms(ast.parse("from saccade import __version__\nimport torch.nn")) == set()
    assert imported_modules(ast.parse("from . import x")) == {"..x"}


# ---------------------------------------------------------------- what must stay out


def loaded_after(statement: str) -> set[str]:
    """The top-level modules that a fresh interpreter has loaded after ``statement``."""
    code = f"{statement}\nimport sys\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_saccade_does_not_import_torch() -> None:
    assert not loaded_after("import saccade") & {"torch", "numpy", "PIL", "matplotlib", "lightning_fabric", "typer"}


def test_the_catalog_is_read_without_torch() -> None:
    assert "torch" not in loaded_after("from saccade.families import models; assert models()")


def test_backbones_are_listed_without_torch() -> None:
    assert "torch" not in loaded_after("from saccade.backbones.catalog import BACKBONES; assert BACKBONES")


def test_models_need_no_extra() -> None:
    unwanted = {"matplotlib", "lightning_fabric", "fastapi", "timm", "torchvision", "typer"}
    assert not loaded_after("import saccade.models.soft, saccade.record, saccade.trace") & unwanted


@by_file
def test_nothing_can_unpickle(file: Path) -> None:
    """Neither pickle and its relatives, nor torch.load and torch.save, which are pickle."""
    tree = parsed(file)
    modules = {name.split(".")[0] for name in imported_modules(tree)}
    assert not modules & {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
    assert not imported_modules(tree) & {"torch.load", "torch.save"}
    calls = {
        f"{node.value.id}.{node.attr}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    }
    if file == PACKAGE / "backbones" / "torch_file.py":  # published weights, once their digest is right
        calls_made = [ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Call)]
        loads = [call for call in calls_made if call.startswith("torch.load(")]
        assert all("weights_only=True" in call for call in loads)
        calls -= {"torch.load"}
    assert not calls & {"torch.load", "torch.save", "torch.hub"}


@by_file
def test_torchvision_only_behind_the_timm_adapter(file: Path) -> None:
    if "timm" in file.stem:
        return
    assert not {name.split(".")[0] for name in imported_modules(parsed(file))} & {"torchvision", "timm"}


# ---------------------------------------------------------------- what files are like


@by_file
def test_files_stay_readable(file: Path) -> None:
    assert file.name not in {"utils.py", "util.py", "helpers.py", "misc.py", "common.py"}
    lines = file.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 450, "split it: one idea per file"


@by_file
def test_files_say_what_they_do(file: Path) -> None:
    assert ast.get_docstring(parsed(file)), "a module starts with a sentence about what it does"


@by_file
def test_no_asserts_for_users_and_no_bare_except(file: Path) -> None:
    for node in ast.walk(parsed(file)):
        assert not isinstance(node, ast.Assert), f"line {node.lineno}: raise an error of saccade.errors"
        assert not (isinstance(node, ast.ExceptHandler) and node.type is None), f"line {node.lineno}: bare except"


@by_file
def test_only_the_doors_print(file: Path) -> None:
    if room(file) in {"cli", "__main__"}:
        return
    for node in ast.walk(parsed(file)):
        is_print = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
        assert not is_print, f"line {node.lineno}: library code does not print"
