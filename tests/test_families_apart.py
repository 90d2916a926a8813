"""Nothing outside a family's folder asks which family it is: neither Python nor the page's scripts.

Each rule names what is wrong in one file. One test applies all of them to every file outside the folders of families;
another shows each rule files that break it. ``models/`` holds the models themselves and is read by the rules on tables
and comparisons only.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import get_args

import pytest

import saccade
from saccade.families import FAMILIES, data_entries, models, recipes
from saccade.trace import Kind

PACKAGE = Path(saccade.__file__).parent
BASES = {"AttentionModel", "ImageModel", "PictureModel", "QueryModel"}
"""What models have in common; a task may ask for one of these, what shows and serves them may not."""
ABOVE = ("predict.py", "sighting.py", "cli/", "verbs/", "show/", "web/", "engine/", "zoo/", "recorded/")
FORMER = {"attribute"}
"""What families were called in old files."""
FAMILY_NAMES = {*FAMILIES, *FORMER}
OTHER_WORDS = {*get_args(Kind), *FAMILIES}
"""Names of models and data that mean something else as well: kinds of looks, "scenes" of any kind."""
NAMES = {*models(), *recipes(), *data_entries()} - OTHER_WORDS - {"csv", "jsonl", "scenes"}
"""Names of models, recipes and data: each belongs to one family."""
ASKED = re.compile(r"(^|[._\"'])(family|task|architecture)([\"']?[\])])?(\.name)?$")
"""The end of an expression that gives a family, or the name of a model: ``facts.family``, ``recipe["task"]``."""

MIGRATIONS = {
    "engine/recipe_versions.py": "recipes of schema 1 named a task where a family stands now",
    "models/io/facts.py": "model folders of schema 1 did so too",
}
"""Files that read what old files say; each with its reason."""


# ---------------------------------------------------------------- the rules for Python: (path, tree) → what is wrong

Rule = Callable[[str, ast.Module], Iterator[str]]


def names_in(node: ast.expr) -> set[str]:
    """The last parts of names in an expression: of ``a.B`` it is B; tuples and unions are looked into."""
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)} | {
        each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)
    }


def is_concrete(name: str) -> bool:
    return name.endswith("Model") and name not in BASES


def no_model_class_is_asked_for(path: str, tree: ast.Module) -> Iterator[str]:
    """No isinstance, issubclass, type() or match on a model class."""
    if path.startswith("models/"):
        return
    forbidden = BASES if path.startswith(ABOVE) else set()
    for node in ast.walk(tree):
        classes: set[str] = set()
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"isinstance", "issubclass"}:
            classes = names_in(node.args[1])
        elif isinstance(node, ast.MatchClass):
            classes = names_in(node.cls)
        elif isinstance(node, ast.Compare) and "type(" in ast.unparse(node):
            classes = names_in(node)
        elif isinstance(node, ast.Dict):
            classes = {name for key in node.keys if isinstance(key, ast.Name) for name in names_in(key)}
        for name in sorted(classes):
            if is_concrete(name) or name in forbidden:
                yield f"line {node.lineno}: asks for {name}"


def no_family_is_compared_with_a_name(path: str, tree: ast.Module) -> Iterator[str]:
    """No ``facts.family == "caption"``, no ``task in ("a", "b")``, no match on one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            literals = [each for side in sides for each in ast.walk(side) if isinstance(each, ast.Constant)]
            asked = any(ASKED.search(ast.unparse(side)) for side in sides if not isinstance(side, ast.Constant))
            words = [each.value for each in literals if isinstance(each.value, str) and each.value not in KEYS]
            if asked and words:
                yield f"line {node.lineno}: {ast.unparse(node)}"
        elif isinstance(node, ast.Match) and ASKED.search(ast.unparse(node.subject)):
            yield f"line {node.lineno}: match {ast.unparse(node.subject)}"


KEYS = {"family", "task", "architecture", ""}
"""Keys under which a file keeps the name; ``values["family"] == name`` compares no literal."""


def no_table_goes_by_family(path: str, tree: ast.Module) -> Iterator[str]:
    """No dictionary, set or list of the names of families; none of the names of their models and data."""
    for node in ast.walk(tree):
        keys = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", [])
        words = {key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str)}
        for kind, known in (("families", FAMILY_NAMES), ("models or data", NAMES)):
            if len(found := words & known) > 1:
                yield f"line {node.lineno}: a table of {kind}: {', '.join(sorted(found))}"


def no_family_is_imported(path: str, tree: ast.Module) -> Iterator[str]:
    """No import from inside a family's folder, and no text that names a module there."""
    inside = re.compile(rf"\bsaccade\.families\.({'|'.join(FAMILIES)})\b")
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "saccade.families":
            named = [f"saccade.families.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            named = [node.module or ""]
        elif isinstance(node, ast.Import):
            named = [alias.name for alias in node.names]
        else:
            named = [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) else []
        for name in named:
            if inside.search(name):
                yield f"line {node.lineno}: names {inside.search(name)[0]}"


BROKEN: dict[Rule, list[tuple[str, str]]] = {
    no_model_class_is_asked_for: [
        ("tasks/x.py", "isinstance(model, SatModel)"),
        ("tasks/x.py", "isinstance(model, (int, sat.SatModel))"),
        ("tasks/x.py", "isinstance(model, int | HsalModel)"),
        ("verbs/x.py", "issubclass(kind, QueryModel)"),
        ("predict.py", "type(model) is SoftModel"),
        ("web/x.py", "KINDS = {SoftModel: 'soft'}"),
        ("show/x.py", "match model:\n    case SoftModel():\n        pass"),
    ],
    no_family_is_compared_with_a_name: [
        ("verbs/x.py", "facts.family == 'caption'"),
        ("verbs/x.py", "'caption' if task != 'x' else 0"),
        ("verbs/x.py", "facts['family'] in ('caption', 'multiset')"),
        ("verbs/x.py", "facts.get('task') == 'attribute'"),
        ("verbs/x.py", "'caption' == predictor.family.name"),
        ("verbs/x.py", "facts.architecture == 'hsal'"),
        ("verbs/x.py", "match facts.family:\n    case 'caption':\n        pass"),
    ],
    no_table_goes_by_family: [
        ("web/x.py", "{'question': 1, 'caption': 2}"),
        ("web/x.py", "{'mref': 1, 'mnist-set': 2}"),
        ("web/x.py", "if name in ('hsal', 'hattnet'):\n    pass"),
    ],
    no_family_is_imported: [
        ("predict.py", "from saccade.families.caption.decode import decode"),
        ("cli/x.py", "def f():\n    import saccade.families.question.task"),
        ("data/x.py", "from saccade.families import multiset"),
        ("verbs/x.py", "load_target('saccade.families.caption.tour:stop')"),
    ],
}
"""Each rule, with files that break it."""
FINE = [
    "isinstance(model, PictureModel)",
    "record.family == facts.family",
    "look.kind == 'hard'",
    "values['family'] == name",
    "'family' in values",
    "{'question': seen.question, 'answer': seen.answer}",
    "from saccade.families import family, families",
    "from saccade.families.contract import Family",
]
"""What no rule may find fault with, in a file of ``tasks/``."""


@pytest.fixture(scope="module")
def files() -> dict[str, ast.Module]:
    """Every file outside the folders of families, by its path below the package."""
    paths = {path.relative_to(PACKAGE).as_posix(): path for path in sorted(PACKAGE.rglob("*.py"))}
    outside = {path: file for path, file in paths.items() if not is_inside(path)}
    assert len(outside) > 200  # or they were looked for in the wrong place
    return {path: ast.parse(file.read_text("utf-8")) for path, file in outside.items()}


def is_inside(path: str) -> bool:
    """Whether a file belongs to one family: the registry, the contract and what families share do not."""
    return path.startswith(tuple(f"families/{name}/" for name in FAMILIES))


def is_registry(path: str, rule: Rule) -> bool:
    """The one dictionary that lists families."""
    return path == "families/__init__.py" and rule in (no_table_goes_by_family, no_family_is_imported)


@pytest.mark.parametrize("rule", BROKEN, ids=lambda rule: rule.__name__)
def test_no_file_outside_knows_a_family(rule: Rule, files: dict[str, ast.Module]) -> None:
    checked = {path: tree for path, tree in files.items() if path not in MIGRATIONS and not is_registry(path, rule)}
    wrong = [f"{path}: {what}" for path, tree in checked.items() for what in rule(path, tree)]
    assert not wrong, "\n".join(["", *wrong])


@pytest.mark.parametrize("rule", BROKEN, ids=lambda rule: rule.__name__)
def test_the_rule_finds_what_breaks_it(rule: Rule) -> None:
    for path, text in BROKEN[rule]:
        assert list(rule(path, ast.parse(text))), f"nothing found in {path}: {text}"


def test_what_is_fine_is_left_alone() -> None:
    for text in FINE:
        assert not [what for rule in BROKEN for what in rule("tasks/x.py", ast.parse(text))], text


def test_one_family_does_not_know_another() -> None:
    for name in FAMILIES:
        for path in sorted((PACKAGE / "families" / name).rglob("*.py")):
            named = no_family_is_imported("", ast.parse(path.read_text("utf-8")))
            others = [what for what in named if f"saccade.families.{name}" not in what]
            assert not others, f"{path.relative_to(PACKAGE)}: {others}"


# ---------------------------------------------------------------- scripts


def compared_in(script: str) -> Iterator[str]:
    """Names of families, models and data that a script compares something with."""
    literal = r"""(["'`])([\w-]+)\{}"""
    behind = re.findall(r"(?:[=!]==?|\bcase)\s*" + literal.format(1), script)
    before = re.findall(literal.format(1) + r"\s*[=!]==?", script)
    looked_up = re.findall(r"\.(?:includes|has|startsWith|indexOf)\(\s*(?:" + literal.format(1) + r")\s*\)", script)
    yield from (word for _, word in [*behind, *before] if word in FAMILY_NAMES | NAMES)
    yield from (word for _, word in looked_up if word in NAMES | FORMER)  # "question" is a key of the page's state too


def scripts() -> dict[str, str]:
    """The scripts of the page and of reports."""
    found = {path.relative_to(PACKAGE).as_posix(): path for path in sorted(PACKAGE.rglob("*.js"))}
    return {path: file.read_text("utf-8") for path, file in found.items() if not is_inside(path)}


def test_no_script_compares_with_a_family_or_a_model() -> None:
    assert len(scripts()) > 30
    wrong = {path: list(compared_in(text)) for path, text in scripts().items()}
    assert not {path: words for path, words in wrong.items() if words}


@pytest.mark.parametrize(
    "script",
    [
        'if (model.task === "caption") draw();',
        "const asks = 'attribute' == model?.task;",
        "switch (task) { case `multiset`: break; }",
        'if (names.includes("hattnet")) draw();',
        'return kind !== "hsal";',
    ],
)
def test_the_reader_of_scripts_finds_comparisons(script: str) -> None:
    assert list(compared_in(script))


def test_the_reader_of_scripts_leaves_the_rest() -> None:
    for script in ('look.kind === "hard"', 'element("label", { "aria-label": "question" })', 'state.question === ""'):
        assert not list(compared_in(script))


def test_the_allowances_are_current(files: dict[str, ast.Module]) -> None:
    """A file that no longer knows a family must leave its list, or it could begin again unseen."""
    python = {path for path, tree in files.items() if any(what for rule in BROKEN for what in rule(path, tree))}
    assert not MIGRATIONS.keys() - python, "take these off the list MIGRATIONS"
