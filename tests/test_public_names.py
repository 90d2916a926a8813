"""The public names: listed in docs/public_names.txt, documented, imported on first use, and free of surprises."""

from __future__ import annotations

import inspect
import subprocess
import sys
import warnings
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

import public_names
import pytest

import saccade
from saccade.cli.docstring import parse_docstring
from saccade.renamed import renamed_arguments

VERBS = (
    "average", "compare", "evaluate", "export", "look", "probe", "report", "reproduce", "score", "serve", "tour",
    "train",
)  # fmt: skip


def test_the_list_of_public_names_is_up_to_date() -> None:
    """A name that came, went or changed its arguments: look at the diff, then run python tools/public_names.py."""
    listed = public_names.FILE.read_text(encoding="utf-8").splitlines()
    found = public_names.lines()
    gone, new = [line for line in listed if line not in found], [line for line in found if line not in listed]
    assert (gone, new) == ([], [])
    assert listed == sorted(listed)


def test_the_list_notices_a_changed_default_and_a_lost_argument() -> None:
    def first(a: int, *, b: int = 1) -> None: ...

    def second(a: int, *, b: int = 2) -> None: ...

    def third(a: int) -> None: ...

    assert len({public_names.kind_of(each) for each in (first, second, third)}) == 3
    assert public_names.kind_of(first) == "function (a, *, b=1)"


def test_packages_open_without_torch() -> None:
    modules = ", ".join(public_names.PACKAGES)
    names = "; ".join(f"dir({package})" for package in public_names.PACKAGES)
    code = f"import sys, {modules}; {names}; print(*sorted({{'torch', 'numpy', 'PIL'}} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.parametrize("package", public_names.PACKAGES)
def test_every_name_is_there_and_documented(package: str) -> None:
    module = import_module(package)
    assert module.__doc__
    assert sorted(set(module.__all__)) == sorted(module.__all__)
    assert set(dir(module)) >= set(module.__all__)
    for name in module.__all__:
        thing = getattr(module, name)
        assert getattr(module, name) is thing
        is_module = isinstance(thing, ModuleType)
        assert is_module or find_spec(f"{package}.{name}") is None, (
            f"{package}.{name} is hidden by a module of that name"
        )
        if inspect.isclass(thing) or inspect.isfunction(thing):
            assert thing.__doc__, f"{package}.{name} has no docstring"


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_says_what_it_takes_gives_and_raises(verb: str) -> None:
    function = getattr(saccade, verb)
    doc = inspect.getdoc(function) or ""
    parameters = [each for each in inspect.signature(function).parameters]
    assert list(parse_docstring(doc).arguments) == parameters
    assert len(parse_docstring(doc).summary) <= 68
    needed = ["Args:", "Raises:", "Example:", *(["Returns:"] if verb != "serve" else [])]
    assert [section for section in needed if section not in doc.splitlines()] == []


@pytest.mark.parametrize(("verb", "options"), [("train", "TrainOptions"), ("look", "LookOptions")])
def test_what_type_checkers_see_of_a_verb_is_its_signature(verb: str, options: str) -> None:
    """Overloads need the arguments once more, as a TypedDict."""
    known = inspect.get_annotations(getattr(import_module(f"saccade.verbs.{verb}"), options))
    own = {"recipe", "out", "seeds"} if verb == "train" else {"sources", "ask"}
    parameters = inspect.signature(getattr(saccade, verb)).parameters.values()
    told = {name: each.__forward_arg__ for name, each in known.items()}
    assert told == {each.name: each.annotation for each in parameters if each.name not in own}


def test_an_unknown_name_names_the_nearest() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'lode'; did you mean 'load'.*'dir\(saccade\)'"):
        saccade.lode  # noqa: B018
    with pytest.raises(AttributeError, match="SoftAttention"):
        saccade.attention.SoftAtention  # noqa: B018


def test_old_names_warn_with_the_new_one() -> None:
    from saccade.data import causal

    with pytest.warns(DeprecationWarning, match="read is now called read_causal_set; the old name goes with 0.3.0"):
        assert causal.read is causal.read_causal_set


def test_old_names_of_arguments_warn_with_the_new_one() -> None:
    @renamed_arguments(tell="on_progress")
    def work(count: int, on_progress: object = None) -> tuple[int, object]:
        return count, on_progress

    with pytest.warns(DeprecationWarning, match="tell of work is now called on_progress") as caught:
        assert work(1, tell=3) == (1, 3)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert work(1, on_progress=3) == (1, 3)
    with pytest.raises(TypeError, match="got 'on_progress' and 'tell'"):
        work(1, on_progress=3, tell=3)
    assert list(inspect.signature(work).parameters) == ["count", "on_progress"]


@pytest.mark.parametrize(("verb", "old"), [("evaluate", "progress"), ("score", "tell"), ("tour", "progress")])
def test_verbs_take_the_arguments_of_0_1_0(verb: str, old: str) -> None:
    with pytest.warns(DeprecationWarning, match="on_progress"), pytest.raises(TypeError):
        getattr(saccade, verb)(**{old: None}, no_such_argument=1)


def test_list_models_takes_a_pattern() -> None:
    from saccade.zoo import shipped

    assert saccade.list_models() == sorted(shipped())
    assert saccade.list_models("hattnet-ctx-m*") == ["hattnet-ctx-mbg", "hattnet-ctx-mdist", "hattnet-ctx-mref"]
    assert saccade.list_models("nothing*") == []
