"""The corpus of every fuzz target and a few drawn inputs: each is accepted, or refused in one line.

``make fuzz`` does the same for minutes, with deadlines and a bound on memory. Here are none: a machine may be busy.
"""

from pathlib import Path

import pytest

pytest.importorskip("fastapi")

from fuzzing import Inputs
from targets import TARGETS

SEED = 17
DRAWN = 60
MAX_OF_CORPUS = 90
"""Inputs of a long corpus are taken evenly; ``make fuzz`` takes all."""


@pytest.mark.no_cover
@pytest.mark.parametrize("name", TARGETS)
def test_no_input_ends_in_a_traceback_and_a_good_one_is_accepted(name: str, tmp_path: Path) -> None:
    inputs = Inputs(TARGETS[name](tmp_path), SEED, slow=False)
    corpus = len(inputs.corpus)
    good = [number for number, (title, _) in enumerate(inputs.corpus) if title.startswith("good")][:3]
    assert good or name == "recipes"
    assert all(inputs.outcome(number).result == "accepted" for number in good)
    others = (*range(0, corpus, -(-corpus // MAX_OF_CORPUS)), *range(corpus, corpus + DRAWN))
    outcomes = [inputs.outcome(number) for number in others]
    bad = [outcome for outcome in outcomes if outcome.result == "traceback"]
    assert not bad, f"{len(bad)} of {len(outcomes)}, the first is '{bad[0].name}':\n{bad[0].told}"
    assert {outcome.result for outcome in outcomes} == {"accepted", "refused"}, "inputs of one kind only try nothing"
