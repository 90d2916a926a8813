"""Nothing outside a family's folder asks which family it is: neither Python nor the page's scripts.

Each rule names what is wrong in one file. One test applies all of them to every file outside the folders of families;
another shows each rule files that break it. The main rule goes by literals: the name of a family, a model, a recipe or
data may not stand in code at all, unless ``ALLOWED`` says why. The names come from the registry. The models themselves,
``models/*.py``, are left out of the rules on literals and classes; ``models/io/`` is not.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

import saccade
from saccade.families import FAMILIES, data_entries, families, models, recipes
from saccade.zoo import shipped

PACKAGE = Path(saccade.__file__).parent
BASES = {"AttentionModel", "ImageModel", "ImageOnlyModel", "LabelModel", "QueryModel"}
"""What models have in common; a task may ask for one of these, what shows and serves them may not."""
NEUTRAL = {*BASES, "PictureModel", "Task", "PictureTask", "LabelTask", "Responder", "BaseModel", "ServedModel"}
"""Classes that belong to no family: of models (one by its old name too), tasks and responders, of pydantic,
and of the server's store."""
ABOVE = ("predict.py", "sighting.py", "cli/", "verbs/", "show/", "web/", "engine/", "zoo/", "recorded/")
FORMER = {"attribute"}
"""What families were called in old files."""
SHARED = {name for name, held in data_entries().items() if len(held) > 1}
"""Readers that several families know: csv, jsonl."""
NAMES = {*families(), *FORMER, *models(), *shipped(), *recipes(), *data_entries()} - SHARED
"""Names of families, and of models, recipes and data, each of which belongs to one family."""
ASKED = re.compile(r"(^|[._\"'])(family|task|architecture)([\"']?[\])])?(\.name)?$")
"""The end of an expression that gives a family, or the name of a model: ``facts.family``, ``recipe["task"]``."""
TEXT_TESTS = {"startswith", "endswith", "removeprefix", "removesuffix", "match", "fullmatch", "search", "fnmatch"}
"""Calls that test a part of a text."""

KIND_OF_LOOK = "a kind of look, not the model of that name"
RECORD_KEY = "the key of records and views under which the question stands"
PAGE_STATE = "what is asked: a key of the page's state"
WORD = "the English word, in a sentence"
DEFAULT_MODEL = "the default of the model; any other name works the same"
SCHEMA_1 = "what a recipe of schema 1 says"
ALLOWED: dict[str, dict[str, str]] = {
    "attention/gaussian.py": {"soft": KIND_OF_LOOK},
    "attention/hard.py": {"hard": KIND_OF_LOOK},
    "attention/soft.py": {"soft": KIND_OF_LOOK},
    "looks.py": {"soft": KIND_OF_LOOK, "hard": KIND_OF_LOOK},
    "tracing/asking.py": {"soft": KIND_OF_LOOK},
    "tracing/gathering.py": {"soft": KIND_OF_LOOK},
    "__init__.py": {"probe": "the verb, not the model of that name"},
    "verbs/look.py": {"soft-mref": DEFAULT_MODEL},
    "data/fetch.py": {"cifar10": "the list of all downloads by name"},
    "data/tables/reader_for_path.py": {"causal": "the reader of folders that hold causal.json"},
    "engine/recipe_versions.py": {
        "soft": "a loss of schema 1, not the model",
        "hard": "a loss of schema 1, not the model",
        "question": SCHEMA_1,
        "attribute": SCHEMA_1,
        "multiset": SCHEMA_1,
        "caption": SCHEMA_1,
        "scenes": SCHEMA_1,
    },
    "metrics/text/stems.py": {"ies": "the end of an English word"},
    "models/io/facts.py": {"question": "model folders of schema 1 named a task", "attribute": "that task"},
    "families/__init__.py": {name: "the one dictionary that lists families" for name in FAMILIES},
    "probing/page.py": {"question": WORD},
    "probing/pictures.py": {"question": WORD},
    "scale/dataset.py": {"soft-mref": DEFAULT_MODEL},
    "scale/look_folder.py": {"question": RECORD_KEY, "soft": KIND_OF_LOOK},
    "scale/looking.py": {"soft-mref": DEFAULT_MODEL},
    "scale/rows.py": {"question": RECORD_KEY},
    "scale/schema.py": {"question": RECORD_KEY},
    "show/report_sources.py": {"question": RECORD_KEY},
    "sighting.py": {"question": RECORD_KEY, "caption": "part of a file's name: further sentences of one answer"},
    "web/views.py": {"question": RECORD_KEY},
    "web/static/js/composer.js": {"question": PAGE_STATE},
    "web/static/js/page.js": {"question": PAGE_STATE},
    "web/static/js/questions.js": {"question": PAGE_STATE},
    "web/static/js/saved_look.js": {"question": RECORD_KEY},
    "web/static/js/engine/looker.js": {
        "soft": "a network that the page can compute; weights name it as their kind",
        "hattnet": "a network that the page can compute; weights name it as their kind",
    },
}
"""File → literal → why it may stand there. Only the rules on literals heed it."""

MIGRATIONS = {
    "engine/recipe_versions.py": "recipes of schema 1 named a task where a family stands now",
    "models/io/facts.py": "model folders of schema 1 did so too",
}
"""Files that compare what old files say; each with its reason."""


class Found(NamedTuple):
    """What is wrong in one place."""

    line: int
    word: str
    what: str


def begins_or_ends_a_name(text: str) -> bool:
    """Whether a text is the beginning or the end of a name, of three letters or more."""
    return len(text) >= 3 and any(name.startswith(text) or name.endswith(text) for name in NAMES)


def looks_for_a_name(expression: str) -> bool:
    """Whether a word of a regular expression is such a part: ``^(capt|x)``."""
    return any(begins_or_ends_a_name(word) for word in re.findall(r"[A-Za-z][\w-]+", expression))


Rule = Callable[[str, ast.Module], Iterator[Found]]


def names_in(node: ast.expr) -> set[str]:
    """The last parts of names in an expression: of ``a.B`` it is B; tuples and unions are looked into."""
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)} | {
        each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)
    }


def is_concrete(name: str) -> bool:
    return re.fullmatch(r"[A-Z]\w*(Model|Task|Responder)", name) is not None and name not in NEUTRAL


def is_model(path: str) -> bool:
    """Whether a file is of the models themselves."""
    return path.startswith("models/") and not path.startswith("models/io/")


def no_class_of_a_family_is_asked_for(path: str, tree: ast.Module) -> Iterator[Found]:
    """No isinstance, issubclass, type() or match on the class of a model, a task or a responder; no import of one."""
    if is_model(path):
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
        elif isinstance(node, ast.ImportFrom):
            classes = {alias.name for alias in node.names if is_concrete(alias.name)}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and is_concrete(node.value):
            classes = {node.value}  # type(model).__name__ == "SatModel"
        for name in sorted(classes):
            if is_concrete(name) or name in forbidden:
                yield Found(node.lineno, name, f"asks for {name}")


def literals_in(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Texts that stand in code, with their lines; docstrings do not. Of an f-string, the words between its fields."""
    texts = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in texts:
            yield node.lineno, node.value.strip(".:/-_") if id(node) in parts else node.value
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "dict":
            yield from ((node.lineno, keyword.arg) for keyword in node.keywords if keyword.arg)


def parts_looked_for(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Texts that are looked for at the beginning, at the end or inside of another."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in TEXT_TESTS:
            held: list[ast.expr] = list(node.args)
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn)):
            held = [node.left]
        else:
            continue
        for each in (each for part in held for each in ast.walk(part)):
            if isinstance(each, ast.Constant) and isinstance(each.value, str):
                yield node.lineno, each.value


def no_literal_names_a_family(path: str, tree: ast.Module) -> Iterator[Found]:
    """No text in code that is the name of a family, a model, a recipe or data; no test for a part of one."""
    if is_model(path):
        return
    for line, text in literals_in(tree):
        if text in NAMES:
            yield Found(line, text, f"the name '{text}'")
    for line, text in parts_looked_for(tree):
        if text not in NAMES and (begins_or_ends_a_name(text) or looks_for_a_name(text)):
            yield Found(line, text, f"a test for '{text}', part of a name")


def no_family_is_compared_with_a_name(path: str, tree: ast.Module) -> Iterator[Found]:
    """No ``facts.family == "caption"``, no ``task.startswith("a")``, no match on one, no table looked up by one."""
    for node in ast.walk(tree):
        asked = False
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            literals = [each for side in sides for each in ast.walk(side) if isinstance(each, ast.Constant)]
            words = [each.value for each in literals if isinstance(each.value, str) and each.value not in KEYS]
            asked = bool(words) and any(is_asked(side) for side in sides if not isinstance(side, ast.Constant))
        elif isinstance(node, ast.Match):
            asked = is_asked(node.subject)
        elif isinstance(node, ast.Subscript):
            asked = isinstance(node.value, ast.Dict) and is_asked(node.slice)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            held = node.func.value
            asked = (node.func.attr in TEXT_TESTS and is_asked(held)) or (
                node.func.attr == "get" and isinstance(held, ast.Dict) and any(map(is_asked, node.args))
            )
        if asked:
            yield Found(node.lineno, "", ast.unparse(node).splitlines()[0])


def is_asked(node: ast.expr) -> bool:
    return ASKED.search(ast.unparse(node)) is not None


KEYS = {"family", "task", "architecture", ""}
"""Keys under which a file keeps the name; ``values["family"] == name`` compares no literal."""


def no_family_is_imported(path: str, tree: ast.Module) -> Iterator[Found]:
    """No import from inside a family's folder, and no text that names a module there.

    ``saccade.data`` lends users the data of families under short names; it imports them when a user asks for one.
    """
    if path == "data/__init__.py":
        block = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
        tree = ast.Module([node for node in tree.body if node not in block], [])
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
            if found := inside.search(name):
                yield Found(node.lineno, found[1], f"names {found[0]}")


BROKEN: dict[Rule, list[tuple[str, str]]] = {
    no_class_of_a_family_is_asked_for: [
        ("tasks/x.py", "isinstance(model, SatModel)"),
        ("tasks/x.py", "isinstance(model, (int, sat.SatModel))"),
        ("tasks/x.py", "isinstance(model, int | HsalModel)"),
        ("verbs/x.py", "issubclass(kind, QueryModel)"),
        ("predict.py", "type(model) is SoftModel"),
        ("web/x.py", "KINDS = {SoftModel: 'soft'}"),
        ("show/x.py", "match model:\n    case SoftModel():\n        pass"),
        ("verbs/x.py", "type(m).__name__ == 'SatModel'"),
        ("verbs/x.py", "isinstance(task, CaptionTask)"),
        ("verbs/x.py", "isinstance(self.responder, CaptionResponder)"),
        ("verbs/x.py", "from saccade.models.sat import SatModel"),
    ],
    no_family_is_compared_with_a_name: [
        ("verbs/x.py", "facts.family == 'caption'"),
        ("verbs/x.py", "'caption' if task != 'x' else 0"),
        ("verbs/x.py", "facts['family'] in ('caption', 'multiset')"),
        ("verbs/x.py", "facts.get('task') == 'attribute'"),
        ("verbs/x.py", "'caption' == predictor.family.name"),
        ("verbs/x.py", "facts.architecture == 'hsal'"),
        ("verbs/x.py", "facts.architecture.startswith('own')"),
        ("sighting.py", "{'question': f}.get(facts.family)"),
        ("sighting.py", "{'question': f}[facts.family]"),
        ("verbs/x.py", "match facts.family:\n    case 'caption':\n        pass"),
    ],
    no_literal_names_a_family: [
        ("web/x.py", "{'question': 1, 'caption': 2}"),
        ("web/x.py", "{'mref': 1, 'mnist-set': 2}"),
        ("web/x.py", "if name in ('hsal', 'hattnet'):\n    pass"),
        ("verbs/x.py", "kind = facts.family\nif kind == 'caption':\n    pass"),
        ("verbs/x.py", "name = predictor.family.name\nmatch name:\n    case 'caption':\n        pass"),
        ("verbs/x.py", "facts.family.startswith('capt')"),
        ("verbs/x.py", "facts.architecture.startswith('hsal')"),
        ("verbs/x.py", "predictor.name.startswith(('hattnet', 'x'))"),
        ("verbs/x.py", "re.match('^(caption|x)$', name)"),
        ("verbs/x.py", "re.search('^capt', name)"),
        ("verbs/x.py", "'capt' in name"),
        ("verbs/x.py", "predictor.name == 'soft-mref'"),
        ("verbs/x.py", "{'caption': f}.get(facts.family)"),
        ("verbs/x.py", "T = {}\nT['caption'] = 1"),
        ("verbs/x.py", "dict(question=1)"),
        ("verbs/x.py", "dict(caption=1)"),
        ("verbs/x.py", "family(name) is families()['caption']"),
        ("verbs/x.py", "facts.data['name'] == 'mref'"),
        ("verbs/x.py", "recipe.data_name == 'mref'"),
        ("verbs/x.py", "importlib.import_module(f'saccade.families.{name}.caption')"),
        ("models/io/x.py", "kind == 'caption'"),
    ],
    no_family_is_imported: [
        ("data/__init__.py", "from saccade.families.question.scenes.data import SceneData"),
        ("predict.py", "from saccade.families.caption.decode import decode"),
        ("cli/x.py", "def f():\n    import saccade.families.question.task"),
        ("data/x.py", "from saccade.families import multiset"),
        ("verbs/x.py", "load_target('saccade.families.caption.tour:stop')"),
    ],
}
"""Each rule, with files that break it."""
FINE = [
    "isinstance(model, ImageOnlyModel)",
    "record.family == facts.family",
    "look.kind == 'gate'",
    "values['family'] == name",
    "'family' in values",
    "def f():\n    'caption'",
    "error('no caption was said')",
    "words.startswith('a ')",
    "show(caption=words)",
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


def is_allowed(path: str, rule: Rule, found: Found) -> bool:
    """Whether one of the lists above gives the reason."""
    if rule is no_literal_names_a_family:
        return found.word in ALLOWED.get(path, {})
    if rule is no_family_is_compared_with_a_name:
        return path in MIGRATIONS
    return rule is no_family_is_imported and path == "families/__init__.py"


@pytest.mark.parametrize("rule", BROKEN, ids=lambda rule: rule.__name__)
def test_no_file_outside_knows_a_family(rule: Rule, files: dict[str, ast.Module]) -> None:
    wrong = [
        f"{path}:{found.line}: {found.what}"
        for path, tree in files.items()
        for found in rule(path, tree)
        if not is_allowed(path, rule, found)
    ]
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
            others = [found.what for found in named if found.word != name]
            assert not others, f"{path.relative_to(PACKAGE)}: {others}"


TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
    |(?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
    |(?P<template>`(?:\\.|[^`\\])*`)
    |(?P<regex>/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n\[])+/)
    |(?P<word>[\w$]+)
    |(?P<sign>\S)""",
    re.VERBOSE | re.DOTALL,
)
SCRIPT_TESTS = {"startsWith", "endsWith", "includes", "indexOf", "match", "test", "search", "RegExp"}
OF_FAMILY = r"\b(?:family|task|architecture)\b"
SCRIPT_ASKS = re.compile(
    rf"""{OF_FAMILY}\s*[!=]=(?!=*\s*[\w.?]*{OF_FAMILY})         # compared, but not with that of another model
    |\[[\w.?]*{OF_FAMILY}\]                                    # looked up
    |\bswitch\s*\([^)]*{OF_FAMILY}
    |{OF_FAMILY}\??\.(?:{"|".join(sorted(SCRIPT_TESTS))})\(    # tested for a part
    |\]\.(?:includes|indexOf)\([\w.?]*{OF_FAMILY}\)            # looked for in a list""",
    re.VERBOSE,
)


def tokens_of(script: str) -> Iterator[tuple[int, str, str]]:
    """Line, kind and text of each token; comments are left out, and what a template computes comes behind it."""
    place, before = 0, ""
    while match := TOKEN.search(script, place):
        kind, text = str(match.lastgroup), match[0]
        if kind == "regex" and (before == ")" or before == "]" or re.fullmatch(r"(?!return$|case$)[\w$]+", before)):
            kind, text = "sign", "/"  # it divides
        place = match.start() + len(text)
        line = script.count("\n", 0, match.start()) + 1
        if kind == "comment":
            continue
        before = text
        yield line, kind, text
        if kind == "template":
            for inner in re.findall(r"\$\{(.*?)\}", text, re.DOTALL):
                yield from ((line, *token) for _, *token in tokens_of(inner))


def asked_in(script: str) -> Iterator[Found]:
    """Where a script names a family, a model, a recipe or data, asks for a model's class, or compares a family.

    Names are texts, regular expressions and keys of objects.
    """
    for number, line in enumerate(script.splitlines(), start=1):
        if SCRIPT_ASKS.search(line) and not line.lstrip().startswith(("//", "*", "/*")):
            yield Found(number, "", line.strip())
    tokens = [*tokens_of(script), (0, "", "")]
    before, second = "", ""
    for (line, kind, text), (_, _, behind) in pairwise(tokens):
        word = text[1:-1] if kind in {"text", "template", "regex"} else text
        is_test = before == "(" and second in SCRIPT_TESTS
        if kind == "regex":
            is_name = looks_for_a_name(word)
        elif kind in {"text", "template"}:
            is_name = word in NAMES or is_concrete(word) or (is_test and begins_or_ends_a_name(word))
        else:
            is_key = kind == "word" and behind == ":" and before in {"{", ","}
            is_name = (is_key and word in NAMES) or (before == "instanceof" and is_concrete(word))
        if is_name:
            yield Found(line, word, f"names '{word}'")
        before, second = text, before


@pytest.fixture(scope="module")
def scripts() -> dict[str, str]:
    """The scripts of the page, outside the folders of families."""
    found = {path.relative_to(PACKAGE).as_posix(): path for path in sorted(PACKAGE.rglob("*.js"))}
    texts = {path: file.read_text("utf-8") for path, file in found.items() if not is_inside(path)}
    assert len(texts) > 30  # or they were looked for in the wrong place
    return texts


def test_no_script_asks_which_family_it_is(scripts: dict[str, str]) -> None:
    wrong = [
        f"{path}:{found.line}: {found.what}"
        for path, text in scripts.items()
        for found in asked_in(text)
        if found.word not in ALLOWED.get(path, {})
    ]
    assert not wrong, "\n".join(["", *wrong])


@pytest.mark.parametrize(
    "script",
    [
        'if (model.task === "caption") draw();',
        "const asks = 'attribute' == model?.task;",
        "switch (kind) { case `multiset`: break; }",
        "switch (model.family) {",
        "const title = TITLES[model.family];",
        "model?.task === TASK",
        "({ attribute: 1 })[view.kind]",
        'if (names.includes("hattnet")) draw();',
        'return kind !== "hsal";',
        "const kinds = {question: a, other: b};",
        "const draw = {caption: f}[kind];",
        "const draw = {caption: f}[model.family];",
        "const draw = {own: f}[model.family];",
        '["question","caption"].includes(model.family)',
        '["own","mine"].includes(model.family)',
        "kind.match(/caption/)",
        "if (/^capt/.test(kind)) draw();",
        "return /caption|x/.test(kind);",
        'name.startsWith("soft")',
        'name.startsWith("capt")',
        'model.family.startsWith("own")',
        "if (model.architecture !== OWN && other.architecture) draw();",
        'names.find((name) => name.startsWith("hattnet-ctx"))',
        'name === "soft-mref"',
        'data === "mref"',
        'show(`${kind === "caption" ? 1 : 2}`)',
        "network instanceof SoftModel",
        'network.constructor.name === "SoftModel"',
    ],
)
def test_the_reader_of_scripts_finds_what_asks(script: str) -> None:
    assert list(asked_in(script))


@pytest.mark.parametrize(
    "script",
    [
        'look.kind === "gate"',
        'element("label", { "aria-label": "what is asked" })',
        'state.question === ""',
        "other.architecture !== first.architecture",
        '// a model of "caption" is drawn here\nf();',
        '/* { caption: f } */ f("a caption of words");',
        "const scenes = mode ? model.scenes : null;",
        "const part = (a + b) / caption / 2;",
        '"A multiset": example("3", [',
        'names.startsWith("a ")',
    ],
)
def test_the_reader_of_scripts_leaves_the_rest(script: str) -> None:
    assert not list(asked_in(script))


def test_the_allowances_are_current(files: dict[str, ast.Module], scripts: dict[str, str]) -> None:
    """What no longer occurs must leave its list, or it could begin again unseen."""
    held = {path: {found.word for found in no_literal_names_a_family(path, tree)} for path, tree in files.items()}
    held |= {path: {found.word for found in asked_in(text)} for path, text in scripts.items()}
    gone = [f"{path}: {word}" for path, words in ALLOWED.items() for word in words.keys() - held.get(path, set())]
    assert not gone, f"take these off the list ALLOWED: {gone}"
    comparing = {path for path, tree in files.items() if any(no_family_is_compared_with_a_name(path, tree))}
    assert not MIGRATIONS.keys() - comparing, "take these off the list MIGRATIONS"
    assert list(no_family_is_imported("", files["families/__init__.py"]))
