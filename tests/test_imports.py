"""The folder list is the architecture: imports point one way, and some modules are never imported at all.

Each rule is a function that names what is wrong in one file. One test applies all of them to every file of the package
and lists all offenders at once; another shows each rule a file that breaks it.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import saccade

PACKAGE = Path(saccade.__file__).parent

# Room → rooms it may import from (lazily or not); every room may import from itself. A room is a folder or a file of
# the package. The folder of families has four, see room_of_module.
CORE = {
    "errors",
    "checks",
    "lazy_names",
    "short_repr",
    "untrusted",
    "tensor_file",
    "yaml_text",
    "config",
    "owner",
    "atomic",
    "lock",
    "cache",
    "geometry",
    "looks",
    "trace",
    "record",
    "devices",
    "quick_imports",
    "answer",
    "likeness",
    "renamed",
}
NETWORKS = {"attention", "backbones", "models"}
AROUND = {"data", "losses", "metrics", "show"}
FAMILIES = {"families", "families/shared"}
HELD = {"tasks", "engine", "zoo", "recorded", "sighting", "predict", "probing", "scoring", "tracing"}
TOP = {"tour", "scene_tour", "page", "query_model", "reproduction"}
"""Files and folders of a family that stand above the rest of it."""
ALLOWED: dict[str, set[str]] = {
    # the floor: numbers, files and the one result type
    "errors": set(),
    "checks": {"errors"},
    "lazy_names": {"errors", "quick_imports", "renamed"},
    "short_repr": set(),
    "untrusted": set(),
    "tensor_file": {"errors", "untrusted"},
    "yaml_text": {"untrusted"},
    "config": {"errors", "untrusted"},
    "owner": set(),
    "atomic": {"errors", "owner"},
    "lock": {"errors", "owner", "atomic"},
    "cache": {"errors"},
    "devices": {"errors"},
    "quick_imports": set(),
    "geometry": {"errors", "untrusted"},
    "looks": {"errors", "short_repr", "geometry"},
    "trace": {"errors", "short_repr", "geometry", "looks"},
    "record": {"errors", "short_repr", "untrusted", "tensor_file", "config", "atomic", "geometry", "trace"},
    "answer": set(),
    "likeness": {"errors"},
    "renamed": set(),
    # networks: mechanisms, then what they are composed into
    "attention": CORE,
    "backbones": CORE | {"attention"},
    "models": CORE | {"attention", "backbones", "families"},
    # what stands around the networks and reads traces; none of these knows a model
    "data": CORE,
    "losses": CORE,
    "metrics": CORE,
    "show": CORE,
    # what declares families, and what they share: how inputs are read, answers put into words, splits opened
    "families": {"errors", "config", "data", "lazy_names"},
    "families/shared": CORE | {"families", "data", "models"},
    # where they meet; the engine knows tasks by protocol only
    "tasks": CORE | NETWORKS | AROUND | FAMILIES,
    "engine": CORE | {"families"},
    # frozen backbones under comparison: features, rivals, verdict; it knows labelled pictures, and no family
    "probing": CORE | NETWORKS | AROUND | {"tasks"},
    # maps of strangers and their truth: it knows no model at all
    "scoring": CORE | AROUND,
    # transformers that others wrote, watched while they run
    "tracing": CORE | NETWORKS | {"data"} | FAMILIES,
    # a family: its data, losses, scores, task
    "families/*": CORE | NETWORKS | AROUND | FAMILIES | {"tasks"},
    # what a user holds
    "zoo": CORE | NETWORKS | AROUND | {"tasks", "engine"},
    "recorded": CORE | {"models", "engine"},
    "sighting": CORE | AROUND | FAMILIES,
    "predict": CORE | NETWORKS | AROUND | FAMILIES | {"zoo", "sighting", "tracing"},
    "scale": CORE | NETWORKS | AROUND | FAMILIES | HELD,
    "web": CORE | NETWORKS | AROUND | FAMILIES | HELD | {"scale"},
    "verbs": CORE | NETWORKS | AROUND | FAMILIES | HELD | {"scale", "web"},
    # what a family adds to the tour, the page and the tables of papers uses all of that; nobody imports it by name
    "families/top": CORE | NETWORKS | AROUND | FAMILIES | HELD | {"families/*", "web", "verbs"},
    # the doors
    "cli": CORE | NETWORKS | AROUND | FAMILIES | HELD | {"scale", "web", "verbs"},
    "__main__": {"cli"},
}
NO_ROOM = {"__version__"}  # names of the package itself
FACADES = {
    f"{name}/__init__.py" for name in ("attention", "backbones", "data", "families", "metrics", "models", "scale")
}
"""Files with public names, which are imported on first use (``saccade.lazy_names``)."""


def room(path: str) -> str:
    """The room of a file, given by its path below the package; "__init__" for the package itself."""
    return room_of_module(path.removesuffix(".py").removesuffix("/__init__").split("/"))


def room_of_module(parts: list[str]) -> str:
    """The room of a module, given by the parts of its name below saccade.

    In ``families``, the registry, the contract and each ``family.py`` are the floor; other files beside them are shared
    by families; of a family's folder, :data:`TOP` stands above the rest.
    """
    if parts[0] != "families" or len(parts) == 1:
        return parts[0]
    folder, name = PACKAGE / "families", parts[1]
    if (folder / name).is_dir():
        own = parts[2] if len(parts) > 2 else ""
        return "families" if own == "family" else "families/top" if own in TOP else "families/*"
    return "families/shared" if name != "contract" and (folder / f"{name}.py").is_file() else "families"


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
    rooms = {room_of_module(part[1:]) for part in parts if part[0] == "saccade" and len(part) > 1}
    return rooms - NO_ROOM


Rule = Callable[[str, str, ast.Module], Iterator[str]]


def _without_type_checking(tree: ast.Module) -> ast.Module:
    """The file without its names for type checkers."""
    kept = [node for node in tree.body if not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")]
    return ast.Module(kept, [])


def imports_point_one_way(path: str, text: str, tree: ast.Module) -> Iterator[str]:
    here = room(path)
    if here == "__init__":  # the public names, loaded lazily, come from everywhere
        return
    if path in FACADES:  # and so do those of its packages; what they execute is checked as in any file
        tree = _without_type_checking(tree)
    if here not in ALLOWED:
        yield f"a new room '{here}': say in the table ALLOWED what it may know"
        return
    known = ALLOWED[here] | {here}
    for wrong in sorted(imported_rooms(tree) - known):
        yield f"{here} must not know {wrong}"


def families_keep_to_themselves(path: str, text: str, tree: ast.Module) -> Iterator[str]:
    parts = path.split("/")
    if room(path) not in {"families/*", "families/top"}:
        return
    for name in sorted(imported_modules(tree)):
        found = name.split(".")
        is_other = found[:2] == ["saccade", "families"] and len(found) > 2 and found[2] != parts[1]
        if is_other and (PACKAGE / "families" / found[2]).is_dir():
            yield f"the family '{parts[1]}' must not know '{found[2]}'"


def imports_are_absolute(path: str, text: str, tree: ast.Module) -> Iterator[str]:
    for name in sorted(imported_modules(tree)):
        if name.startswith("."):
            yield f"relative import '{name}'"


def nothing_can_unpickle(path: str, text: str, tree: ast.Module) -> Iterator[str]:
    """Neither pickle and its relatives, nor torch.load and torch.save, which are pickle."""
    modules = imported_modules(tree)
    first = {name.split(".")[0] for name in modules}
    used = first & {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
    used |= modules & {"torch.load", "torch.save"}
    calls = {
        f"{node.value.id}.{node.attr}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    }
    if path == "backbones/torch_file.py":  # published weights, once their digest is right
        calls_made = [ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Call)]
        loads = [call for call in calls_made if call.startswith("torch.load(")]
        if all("weights_only=True" in call for call in loads):
            calls -= {"torch.load"}
    for name in sorted(used | calls & {"torch.load", "torch.save", "torch.hub"}):
        yield f"uses {name}"


def torchvision_only_behind_the_timm_adapter(path: str, text: str, tree: ast.Module) -> Iterator[str]:
    if "timm" not in Path(path).stem:
        for name in sorted({name.split(".")[0] for name in imported_modules(tree)} & {"torchvision", "timm"}):
            yield f"imports {name}"


def files_stay_readable(path: str, text: str, tree: ast.Module) -> Iterator[str]:
    if Path(path).name in {"utils.py", "util.py", "helpers.py", "misc.py", "common.py"}:
        yield "a name that says nothing"
    if len(text.splitlines()) > 450:
        yield f"{len(text.splitlines())} lines, at most 450: split it, one idea per file"


def files_say_what_they_do(path: str, text: str, tree: ast.Module) -> Iterator[str]:
    if not ast.get_docstring(tree):
        yield "a module starts with a sentence about what it does"


def no_asserts_for_users_and_no_bare_except(path: str, text: str, tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            yield f"line {node.lineno}: an assert; raise an error of saccade.errors"
        if isinstance(node, ast.ExceptHandler) and node.type is None:
            yield f"line {node.lineno}: bare except"


def only_the_doors_print(path: str, text: str, tree: ast.Module) -> Iterator[str]:
    if room(path) in {"cli", "__main__"}:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
            yield f"line {node.lineno}: library code does not print"


BROKEN: dict[Rule, list[tuple[str, str]]] = {
    imports_point_one_way: [
        ("models/x.py", "import saccade.verbs.look"),
        ("engine/x.py", "def f():\n    from saccade import predict"),
        ("families/contract.py", "from saccade.models.soft import SoftModel"),
        ("families/question/family.py", "from saccade.families.question.task import QuestionTask"),
        ("families/reading.py", "from saccade.families.question.task import QuestionTask"),
        ("families/contract.py", "from saccade.families.reading import InputReader"),
        ("families/question/task.py", "from saccade.cli import main"),
        ("families/question/task.py", "from saccade.predict import load"),
        ("families/question/task.py", "from saccade.families.question.tour import stop"),
        ("families/question/tour.py", "from saccade.cli import main"),
        ("models/soft.py", "from saccade.families.reading import InputReader"),
        ("predict.py", "from saccade.families.question.task import QuestionTask"),
        ("verbs/tour.py", "from saccade.families.question.tour import stop"),
        ("data/__init__.py", "from saccade.families.question.scenes.data import SceneData"),
        ("data/gallery.py", "if TYPE_CHECKING:\n    from saccade.families.contract import Family"),
        ("garage/x.py", ""),
    ],
    families_keep_to_themselves: [
        ("families/caption/readers.py", "from saccade.families.question.readers import READERS"),
        ("families/caption/tour.py", "from saccade.families import question"),
    ],
    imports_are_absolute: [("models/x.py", "from . import y"), ("models/x.py", "from ..a import b")],
    nothing_can_unpickle: [
        ("data/x.py", "import pickle"),
        ("data/x.py", "from joblib import load"),
        ("data/x.py", "from torch import load"),
        ("data/x.py", "import torch\ntorch.save(1, 2)"),
        ("data/x.py", "import torch\ntorch.load(1, weights_only=True)"),
        ("backbones/torch_file.py", "import torch\ntorch.load(1)"),
        ("backbones/torch_file.py", "import torch\ntorch.load(1, weights_only=True)\ntorch.load(2)"),
    ],
    torchvision_only_behind_the_timm_adapter: [
        ("backbones/x.py", "import torchvision.ops"),
        ("backbones/x.py", "def f():\n    import timm"),
    ],
    files_stay_readable: [("data/utils.py", ""), ("data/x.py", "x = 1\n" * 451)],
    files_say_what_they_do: [("data/x.py", "x = 1")],
    no_asserts_for_users_and_no_bare_except: [
        ("data/x.py", "def f(x):\n    assert x"),
        ("data/x.py", "try:\n    pass\nexcept:\n    pass"),
    ],
    only_the_doors_print: [("verbs/x.py", "def f():\n    print(1)")],
}
"""Each rule, with files that break it."""


@pytest.fixture(scope="module")
def files() -> dict[str, tuple[str, ast.Module]]:
    """Text and syntax tree of every file of the package, by its path below it."""
    texts = {path.relative_to(PACKAGE).as_posix(): path.read_text("utf-8") for path in sorted(PACKAGE.rglob("*.py"))}
    assert len(texts) > 200  # or they were looked for in the wrong place
    return {path: (text, ast.parse(text)) for path, text in texts.items()}


@pytest.mark.parametrize("rule", BROKEN, ids=lambda rule: rule.__name__)
def test_the_package_keeps_the_rule(rule: Rule, files: dict[str, tuple[str, ast.Module]]) -> None:
    wrong = [f"{path}: {what}" for path, (text, tree) in files.items() for what in rule(path, text, tree)]
    assert not wrong, "\n".join(["", *wrong])


@pytest.mark.parametrize("rule", BROKEN, ids=lambda rule: rule.__name__)
def test_the_rule_finds_what_breaks_it(rule: Rule) -> None:
    for path, text in BROKEN[rule]:
        assert list(rule(path, text, ast.parse(text))), f"nothing found in {path}: {text}"


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


def test_the_folder_of_families_has_four_rooms() -> None:
    declare = ["families/__init__.py", "families/contract.py", "families/question/family.py"]
    assert {room(path) for path in declare} == {"families"}
    shared = ["families/reading.py", "families/responder.py", "families/pictures.py", "families/labels.py"]
    assert {room(path) for path in shared} == {"families/shared"}
    inside = ["families/question/__init__.py", "families/question/task.py", "families/caption/splits.py"]
    assert {room(path) for path in inside} == {"families/*"}
    above = ["families/question/tour.py", "families/caption/reproduction/table1.py", "families/multiset/page.py"]
    assert {room(path) for path in above} == {"families/top"}
    assert imported_rooms(ast.parse("from saccade.families.contract import Family")) == {"families"}
    assert imported_rooms(ast.parse("from saccade.families import contract, FAMILIES")) == {"families"}
    assert imported_rooms(ast.parse("from saccade.families import family, families")) == {"families"}
    assert imported_rooms(ast.parse("from saccade.families import question")) == {"families/*"}
    assert imported_rooms(ast.parse("from saccade.families import reading")) == {"families/shared"}
    assert imported_rooms(ast.parse("from saccade.families.question.task import QuestionTask")) == {"families/*"}
    assert imported_rooms(ast.parse("from saccade.families.question.tour import stop")) == {"families/top"}
    assert room("data/tables/rows.py") == "data"
    assert room("predict.py") == "predict"
    assert room("__init__.py") == "__init__"


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


def clocks_in(tree: ast.Module) -> list[str]:
    """Where a test reads a clock or sleeps: it would depend on how busy the machine is."""
    wrong = [f"imports {name}" for name in sorted(imported_modules(tree)) if name.split(".")[0] in {"time", "timeit"}]
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "wait_for_timeout":
            wrong.append(f"line {node.lineno}: wait_for_timeout")
        if (
            isinstance(node, ast.Call)
            and ast.unparse(node.func).endswith("sleep")
            and [*map(ast.unparse, node.args)] != ["0"]
        ):
            wrong.append(f"line {node.lineno}: {ast.unparse(node)}")
    return wrong


def test_no_test_has_a_clock() -> None:
    """Work is counted, threads wait for events, and a clock is replaced; a deadline only ends what hangs."""
    folder = Path(__file__).parent
    found = {path: clocks_in(ast.parse(path.read_text("utf-8"))) for path in sorted(folder.rglob("*.py"))}
    wrong = [f"{path.relative_to(folder)}: {what}" for path, clocks in found.items() for what in clocks]
    assert not wrong, "\n".join(["", *wrong])
    for bad in ("import time", "from time import monotonic", "page.wait_for_timeout(9)", "asyncio.sleep(0.1)"):
        assert clocks_in(ast.parse(bad)), bad
    assert not clocks_in(ast.parse("asyncio.sleep(0)"))
