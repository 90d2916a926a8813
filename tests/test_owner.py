"""Whose file it is, and whether that process still runs."""

from __future__ import annotations

import os
import re

import pytest

from dead_writers import dead_tag
from saccade import owner


def test_this_process_runs() -> None:
    tag = owner.own_tag()
    assert re.fullmatch(owner.TAG, tag)
    assert not owner.is_gone(tag)


def test_a_process_that_ended_is_gone() -> None:
    assert owner.is_gone(dead_tag())


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="the system does not tell when processes started")
def test_a_number_that_is_used_again_is_another_process() -> None:
    pid, started, machine = owner.own_tag().split("-")
    assert owner.is_gone(f"{pid}-{int(started) + 1}-{machine}")


def test_a_process_whose_start_is_hidden_is_not_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """As ``hidepid`` hides the processes of other users."""
    tag, dead = owner.own_tag(), dead_tag()
    monkeypatch.setattr(owner, "started", lambda pid: 0)
    assert not owner.is_gone(tag)
    assert owner.is_gone(dead)


def test_a_number_that_no_process_has_is_gone() -> None:
    assert not owner.is_running(10**20, 1)


def test_of_another_machine_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    tag = dead_tag()
    monkeypatch.setattr(owner, "host", lambda: "elsewhere")
    assert not owner.is_gone(tag)


@pytest.mark.parametrize("tag", ["", "x", "1-2", "99999999999999999999-1-00000000"])
def test_what_is_no_tag_is_left_alone(tag: str) -> None:
    assert not owner.is_gone(tag)


def test_the_first_process_runs_although_it_is_not_ours() -> None:
    assert owner.is_running(1, owner.started(1))
