"""Documents do what they say: Python and doctests run, commands are real, links lead somewhere, tables are current."""

import doctest
import importlib
import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tables
import torch
import typer
from PIL import Image
from typer.core import TyperGroup
from typer.testing import CliRunner

import saccade
from saccade.commands.door import app
from saccade.data import read_table
from saccade.data.tables.readers import Reader
from saccade.engine.recipe import load_recipe
from saccade.errors import MissingExtraError
from saccade.families import DataEntry, ModelSpec, classify, model_spec
from saccade.families.classify.data import LABEL_READERS
from saccade.families.question import MODELS, scenes
from saccade.zoo.folders import resolve, shipped
from tiny_models import tiny_model
from typed import typed

ROOT = Path(__file__).parent.parent
# Pages of recorded numbers: their commands take hours.
GENERATED = {"docs/results.md", "docs/benchmarks.md", "docs/board.md"}
PAGES = sorted({path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")} - GENERATED)
# Verbs that take a second. Commands of other verbs are read as the verb reads them, and not run.
RUN = {"look", "score", "report", "list", "data make", "data show"}
EXPORT = "docs/how-to/export.md"  # Its blocks need exported models, see below.
OTHERS = ["README.md", "CONTRIBUTING.md", "TESTING.md", "SECURITY.md"]
# Numbers of a page that a test makes smaller: page → old → new.
SMALLER = {
    "docs/how-to/score-maps.md": {
        "--count 50 ": "--count 3 ",
        "--count 20 ": "--count 3 ",
    },
    "docs/how-to/scenes.md": {
        "--count 10000 ": "--count 3 ",
        "--count 500 ": "--count 2 ",
        "--count 100 ": "--count 2 ",
        "--count 50 ": "--count 2 ",
    },
    "docs/how-to/own-pictures.md": {"torch.arange(32)": "torch.arange(2)"},
}
# Words of commands that cannot run here, and why.
ELSEWHERE = {
    "timm:": "needs the extra timm and published weights",
    "hf:": "needs the extra transformers and published weights",
    "cub:": "needs CUB-200-2011",
    "flickr8k:": "needs Flickr8k",
    "svhn:": "needs SVHN",
    "ray": "needs a cluster",
    "s3://": "needs a store",
    "runs/": "needs a run of the reader's",
    "dots": "needs the family of examples/dots, see tests/families/test_families_registry.py",
}
# Python blocks that cannot run here: a line in them, and why.
NOT_RUN = {"import ray": "needs Ray"}


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    language: str
    text: str
    line: int


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page, in order; those of directives, as ``{fields}``, are not code."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = re.finditer(r"^( *)```(\w+)\n(.*?)^\1```$", text, re.DOTALL | re.MULTILINE)
    return [Block(each[2], _dedented(each[3], each[1]), text[: each.start()].count("\n") + 2) for each in found]


def _dedented(text: str, indent: str) -> str:
    return "\n".join(line.removeprefix(indent) for line in text.splitlines()) + "\n"


def commands(text: str) -> Iterator[list[str]]:
    """What stands behind ``saccade`` in a shell block, one command at a time."""
    for line in text.replace("\\\n", " ").splitlines():
        for command in " ".join(shlex.quote(word) for word in shlex.split(line, comments=True)).split(" '&&' "):
            words = shlex.split(command.split(" '>' ")[0])
            if words[:1] == ["saccade"] and not any("$" in word for word in words):  # of a script
                yield words[1:]


def run_python(block: Block, page: str, names: dict[str, Any]) -> None:
    """Run a block with the names of the blocks before it; errors name the page and its line."""
    code = "\n" * (block.line - 1) + block.text
    exec(compile(code, page, "exec"), names)


@pytest.fixture(scope="session")
def readers_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that a reader is said to have: pictures, tables, stories."""
    folder = tmp_path_factory.mktemp("reader")
    digits, cat = saccade.example("digits"), saccade.example("cat")
    shutil.copy(digits, folder / "scene.png")
    with Image.open(cat) as photo:
        small = photo.convert("RGB").resize((120, 90))
    small.save(folder / "photo.jpg")
    small.save(folder / "photo.png")
    (folder / "pictures").mkdir()
    (folder / "masks").mkdir()
    for number in range(2):
        shutil.copy(digits, folder / "pictures" / f"{number}.png")
        mask = Image.new("L", (100, 100))
        mask.paste(255, (20, 30, 60, 70))
        mask.save(folder / "masks" / f"{number}.png")
    for kind in ("cat", "dog"):
        (folder / "photos" / kind).mkdir(parents=True)
        for number in range(8):
            part = small.rotate(10 * number + (kind == "dog"))
            part.save(folder / "photos" / kind / f"{number}.jpg")
    rows = [f"photos/{kind}/{number}.jpg" for kind in ("cat", "dog") for number in range(8)]
    splits = ["train"] * 4 + ["val"] * 2 + ["test"] * 2
    table = [
        f"{row},crown,{'red' if 'cat' in row else 'black'},{splits[n % 8]},5 5 60 60" for n, row in enumerate(rows)
    ]
    for name in ("my", "birds", "my_birds"):
        (folder / f"{name}.csv").write_text("\n".join(["image,query,label,split,box", *table]) + "\n")
    labels = [f"{row},cup; cup,{splits[n % 8]}" for n, row in enumerate(rows)]
    (folder / "shelf.csv").write_text(
        "\n".join(["image,labels,split", *labels]).replace("cup; cup", "cup; plate") + "\n"
    )
    story = "Mary took the apple.\nMary went to the kitchen.\n"
    (folder / "story.txt").write_text(story)
    (folder / "stories").mkdir()
    (folder / "stories" / "one.txt").write_text(story)
    (folder / "runs" / "soft").mkdir(parents=True)
    shutil.copytree(resolve("soft-mref"), folder / "runs" / "soft" / "model")
    return folder


def text_of(page: str, block: Block) -> str:
    """The block with smaller numbers."""
    text = block.text
    for old, new in SMALLER.get(page, {}).items():
        text = text.replace(old, new)
    return text


def test_tables_are_current(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["tables.py", "--check"])
    assert tables.main() == 0, capsys.readouterr().out


def test_readme_python_block_runs(tmp_path, monkeypatch, capsys):
    """The block of the README, word for word, in an empty folder: it prints what it says."""
    monkeypatch.chdir(tmp_path)
    block = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[1]
    exec(compile(block, "README.md", "exec"), {})
    printed = capsys.readouterr().out.splitlines()[0].split()
    told = re.search(r'# "(\w+)", ([\d.]+)', block)
    assert (printed[0], f"{float(printed[1]):.2f}") == told.groups()
    assert any((tmp_path / "out").glob("*.png"))


WITH_PYTHON = [page for page in PAGES if page != EXPORT and any(block.language == "python" for block in blocks(page))]


@pytest.mark.parametrize("page", WITH_PYTHON)
def test_its_code_runs(page: str, readers_files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From top to bottom, in a reader's folder: every block of Python, and the quick commands between them."""
    folder = tmp_path / "reader"
    shutil.copytree(readers_files, folder)
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)
    names: dict[str, Any] = {"__name__": "page"}
    for block in blocks(page):
        if block.language == "python" and not any(line in block.text for line in NOT_RUN):
            if file := re.match(r"# (\w+\.py)\n", block.text):
                Path(file[1]).write_text(block.text)
            try:
                run_python(Block("python", text_of(page, block), block.line), page, names)
            except saccade.DataError as error:
                if "saccade data get" in str(error):
                    pytest.skip(str(error))
                raise
        elif block.language == "bash":
            for words in commands(text_of(page, block)):
                is_quick = words[0] in RUN or " ".join(words[:2]) in RUN
                if is_quick and not any(part in " ".join(words) for part in ELSEWHERE):
                    done = CliRunner().invoke(app, [part for word in words for part in sorted(glob(word)) or [word]])
                    assert done.exit_code == 0, f"{page}: saccade {' '.join(words)}\n{done.output}"


def read_as_the_verb_does(words: list[str]) -> dict[str, Any]:
    """The settings that a verb would be called with; it is not."""
    command: Any = typer.main.get_command(app)
    while isinstance(command, TyperGroup):
        command = command.get_command(typer.Context(command), words.pop(0))
    return command.make_context("saccade", words).params


def test_commands_name_verbs_options_recipes_phases_and_models_that_there_are() -> None:
    told = [
        (page, words)
        for page in ("README.md", *PAGES)
        for block in blocks(page)
        for words in (commands(block.text) if block.language == "bash" else ())
        if not any("dots" in word for word in words)  # of a family that is not installed
    ]
    assert len(told) > 100
    for page, words in told:
        options = read_as_the_verb_does(list(words))
        if words[0] == "train" and options["recipe"]:
            recipe = load_recipe(options["recipe"], protocol=options["protocol"], overrides=options["overrides"] or [])
            assert {*(options["phases"] or [])} <= {phase.name for phase in recipe.phases}, (page, words)
        several = options.get("model") if isinstance(options.get("model"), list) else [options.get("model")]
        models = [*several, options.get("start"), *(options.get("models") or [])]
        elsewhere = ("runs/", "timm:", "hf:", "my_net.py:")  # what a reader made, and models of other libraries
        named = {model for model in models if isinstance(model, str) and not model.startswith(elsewhere)}
        assert named <= {*shipped()}, (page, words)


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and the site make them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    plain = (re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", each).lower() for each in headings)
    return {re.sub(r"[^\w\- ]", "", each).replace(" ", "-") for each in plain}


def test_links_and_named_files_exist() -> None:
    wrong = []
    rooms = "|".join(path.name for path in (ROOT / "src" / "saccade").iterdir() if path.is_dir())
    for page in (*OTHERS, *PAGES, *sorted(GENERATED)):
        text = re.sub(r"^```.*?^```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)", text):
            if target.startswith(("http", "mailto")):
                continue
            place = (ROOT / page).parent / target if target else ROOT / page
            if not place.exists() or (anchor and place.suffix == ".md" and anchor not in anchors(place)):
                wrong.append(f"{page} links to {target}#{anchor}")
        for named in re.findall(rf"`((?:{rooms})/[\w/-]+\.\w+)`", text):
            if not (ROOT / "src" / "saccade" / named).exists():
                wrong.append(f"{page} names {named}")
    assert wrong == []


def tiny_export(folder: Path, name: str, **facts: Any) -> Any:
    """A small model of the catalog with random weights, exported into ``folder``; the model itself, to compare with."""
    from saccade.config import to_dict
    from saccade.families import family_of_model
    from saccade.models.folder import save_model
    from tiny_models import tiny_facts

    model = tiny_model(name, 0).eval()
    with torch.no_grad():
        for parameter in (each for name, each in model.named_parameters() if name == "decoder.words.weight"):
            parameter.mul_(30)  # so that the words of a caption differ
    known = {"architecture": name, "family": family_of_model(name).name, "model": to_dict(model.config)}
    save_model(model, folder / "source", tiny_facts(**{**known, "queries": ()} | facts))
    saccade.export(folder / "source", folder / "out")
    return saccade.load(folder / "source", "cpu")


@pytest.mark.long
@pytest.mark.usefixtures("one_onnx_registry")
def test_exported_models_run_as_the_page_runs_them(tmp_path, monkeypatch, capsys):
    """The script of the page, word for word, says what the models themselves say."""
    pytest.importorskip("onnxruntime", reason="needs the extra 'export'")
    pytest.importorskip("onnxscript", reason="needs the extra 'export'")
    words = ("", "apple", "is", "kitchen", "mary", "the", "took", "went", "where")
    kinds = {
        "question": ("soft", {"queries": ("7", "1", "2", "north")}),
        "classifier": ("probe", {}),
        "captioner": ("sat-soft", {"answers": ("", "(unknown)", "red", "green", "blue"), "sentences": True}),
        "story": ("memn2n", {"answers": words, "preprocessing": None}),
    }
    models = {}
    (tmp_path / "onnx").mkdir()
    for kind, (name, facts) in kinds.items():
        models[kind] = tiny_export(tmp_path / kind, name, **facts)
        (tmp_path / kind / "out").rename(tmp_path / "onnx" / kind)
    monkeypatch.chdir(tmp_path)
    for seed, file in enumerate(("scene.png", "photo.png")):
        pixels = np.random.default_rng(seed).integers(0, 256, (31, 34, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(file)
    names: dict[str, Any] = {}
    for block in (each for each in blocks(EXPORT) if each.language == "python"):
        run_python(block, EXPORT, names)
    printed = capsys.readouterr().out.splitlines()
    seen = models["question"].look("scene.png", "7")
    assert printed[0].split()[0] == seen.answer
    assert float(printed[0].split()[1]) == pytest.approx(seen.confidence, abs=1e-4)
    assert printed[2] == models["classifier"].look("photo.png").answer
    said = models["captioner"].look("scene.png", beam=1)
    assert printed[3] == said.answer
    told = models["story"].look(["Mary took the apple.", "Mary went to the kitchen."], "Where is the apple?")
    assert printed[4] == told.answer
    last = names["seen"][names["facts"]["looks"][-1]["outputs"]["weights"]][0]
    np.testing.assert_allclose(last, told.trace.looks[-1].weights[0].numpy(), atol=1e-4)


FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
PACKAGE = Path(saccade.__file__).parent
# The modules with examples that run, found by their text: no other module is imported.
MODULES = sorted(
    ".".join(("saccade", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
    for path in PACKAGE.rglob("*.py")
    if any(">>> " in line and "+SKIP" not in line for line in path.read_text("utf-8").splitlines())
)
EXTRAS = {"timm", "torchvision", "fastapi", "uvicorn", "pydantic", "onnx", "onnxruntime", "captum", "h5py", "ray"}


def test_examples() -> None:
    assert {"saccade.errors", "saccade.config", "saccade.attention.soft"} <= set(MODULES)
    wrong = []
    for name in MODULES:
        try:
            result = doctest.testmod(importlib.import_module(name), optionflags=FLAGS)
        except (MissingExtraError, ModuleNotFoundError) as error:
            if isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] not in EXTRAS:
                raise
            continue
        if result.failed or not result.attempted:
            wrong.append(name)
    assert wrong == []


TINY = {"phases.0.steps": 2, "phases.0.validate_every": 2, "batch_size": 4}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder from which modules are imported."""
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("yours", None)


def shown(heading: str, package: Path, **names: object) -> list[tuple[str, Any]]:
    """Write the file that a section shows; the entries that its lines make, in which ``names`` are known."""
    section = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split(f"## {heading}\n")[1].split("\n## ")[0]
    file, *lines = (textwrap.dedent(code) for code in re.findall(r" *```python\n(.*?)```", section, re.DOTALL))
    (package / "yours.py").write_text(file, encoding="utf-8")
    known = {**vars(__import__("yours")), **names}
    return [entry for line in lines for entry in eval(f"{{{line.replace('models.', '')}}}", known).items()]


def test_a_model_is_a_file_and_a_line(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ((name, spec),) = shown("Add a model", package, ModelSpec=ModelSpec)
    monkeypatch.setitem(MODELS, name, spec)
    monkeypatch.setitem(scenes._SIZES["unlimited"], "val", 20)
    assert model_spec(name).load().__module__ == "yours"
    done = saccade.train(
        "soft-mref", out=package / "run", overrides={**TINY, "model.name": name, "data.glyphs": "pack"}, device="cpu"
    )
    assert saccade.load(done.out).model.look_names


def test_a_reader_is_a_function_and_two_lines(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (name, reader), entry = shown("Add a reader", package, Reader=Reader, DataEntry=DataEntry)
    monkeypatch.setitem(LABEL_READERS, name, reader)
    monkeypatch.setitem(classify.DATA, *entry)
    for number in range(30):
        label = "red" if number % 2 else "dark"
        Image.new("RGB", (20, 20), (8 * number, 0, 0)).save(package / f"{label}_{number}.png")
    table = read_table(f"{name}:{package}")
    assert (table.answers, len(table.rows)) == (("dark", "red"), 30)
    show = typed("data", "show", f"{name}:{package}", "--out", package / "sheet.png")
    assert show.exit_code == 0, show.stderr
