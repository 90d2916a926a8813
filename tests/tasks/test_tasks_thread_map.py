"""Batches side by side: the order of results, errors, and the threads that torch has afterwards."""

from __future__ import annotations

import threading

import pytest
import torch

from saccade.families.question.scenes import SceneData, SceneDataConfig
from saccade.families.question.scores import SceneScoring
from saccade.models.hattnet import HAttNetConfig, HAttNetModel
from saccade.tasks import evaluate as module
from saccade.tasks.evaluate import evaluate, thread_count, thread_map


def test_results_come_in_the_order_of_the_items_from_several_threads() -> None:
    second, used = threading.Event(), set()

    def work(number: int) -> int:
        used.add(threading.get_ident())
        if number == 0:
            assert second.wait(30)  # the second ends first, which takes two at once
        if number == 1:
            second.set()
        return number * number

    assert list(thread_map(work, range(7), 2)) == [number * number for number in range(7)]
    assert len(used) == 2
    assert threading.get_ident() not in used


def test_an_error_ends_it_and_begins_no_other() -> None:
    begun = []

    def work(number: int) -> int:
        begun.append(number)
        if number == 1:
            raise ValueError("the second")
        return number

    results = thread_map(work, range(100), 2)
    assert next(results) == 0
    with pytest.raises(ValueError, match="the second"):
        next(results)
    assert len(begun) <= 4


def test_the_cores_are_shared_and_given_back() -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        inside = set(thread_map(lambda _: torch.get_num_threads(), range(4), 2))
        assert inside == {1}
        assert torch.get_num_threads() == 2
        later: list[int] = []
        thread = threading.Thread(target=lambda: later.append(torch.get_num_threads()))
        thread.start()
        thread.join()
        assert later == [2]  # and so do threads that come after it
        assert thread_count(torch.device("cpu")) == 2
        assert thread_count(torch.device("cuda")) == 1
    finally:
        torch.set_num_threads(before)


def test_scores_do_not_depend_on_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    model = HAttNetModel(HAttNetConfig(channels=4, hidden=4)).eval()
    data = SceneData(SceneDataConfig(glyphs="pack"), "test")
    found = []
    for threads in (1, 3):
        monkeypatch.setattr("saccade.families.question.scores.thread_count", lambda device, n=threads: n)
        told: list[tuple[int, int]] = []
        scoring = SceneScoring(model, data, limit=100, sweeps=4)
        scoring.together = 25
        found.append(evaluate(scoring, lambda *each, told=told: told.append(each)))
        assert told == [(25, 100), (50, 100), (75, 100), (100, 100)]
    assert found[0] == found[1]
    assert found[0]["counts"]["deletion"] == 4
    assert module.MAX_THREADS >= 2
