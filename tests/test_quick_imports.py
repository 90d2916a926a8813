"""Garbage collection rests while packages are imported, and is as it was afterwards."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from saccade.quick_imports import quick_imports


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
