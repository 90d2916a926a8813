"""Garbage collection rests while packages are imported, and is as it was afterwards."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from saccade.quick_imports import preload_torch, quick_imports


@pytest.mark.parametrize("on", [True, False])
def test_the_collector_is_left_as_it_was_found(on: bool) -> None:
    was_on, frozen = gc.isenabled(), gc.get_freeze_count()
    try:
        (gc.enable if on else gc.disable)()
        with pytest.raises(ImportError, match="False"), quick_imports():
            raise ImportError(gc.isenabled())
        assert gc.isenabled() is on
    finally:
        (gc.enable if was_on else gc.disable)()
    assert gc.get_freeze_count() == frozen  # the process is not ours alone


def test_a_command_does_not_look_through_what_it_imported() -> None:
    code = (
        "import gc; from saccade.quick_imports import process_is_a_command, quick_imports\n"
        "process_is_a_command()\n"
        "with quick_imports(): import decimal\n"
        "print(gc.get_freeze_count() > 1000, gc.isenabled())"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["True", "True"]


@pytest.mark.parametrize(
    "words", ["", "--version", "look --help", "train -h", "list", "data make mref", "--debug doctor", "report out"]
)
def test_commands_that_need_no_torch_do_not_load_it(words: str) -> None:
    assert preload_torch(words.split()) is None


@pytest.mark.skipif(sys.platform != "linux", reason="loaded in advance on Linux alone")
@pytest.mark.parametrize("words", ["look picture.png --ask 7", "--debug evaluate soft-mref"])
def test_the_libraries_of_torch_are_loaded_before_it_is_imported(words: str) -> None:
    code = (
        "import sys; from saccade.quick_imports import preload_torch\n"
        f"preload_torch({words.split()!r}).join()\n"
        "print('torch' in sys.modules, 'libtorch_cpu' in open('/proc/self/maps').read())\n"
        "import torch; print(float(torch.ones(2).sum()))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["False", "True", "2.0"]


def test_what_is_loaded_already_is_not_loaded_again() -> None:
    code = "import torch; from saccade.quick_imports import preload_torch; print(preload_torch(['look']))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["None"]
