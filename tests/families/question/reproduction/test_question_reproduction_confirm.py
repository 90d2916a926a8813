"""Whether a score measured here agrees with the record."""

from fake_runs import fake_run
from saccade.families.question.reproduction.confirm import verdict


def test_verdicts():
    run = fake_run(accuracy=0.90, half_width=0.006)
    assert verdict(0.91, (0.90, 0.92), run) == "agrees with the record"
    # 1.5 · √(0.01² + 0.006²) = 0.0175
    assert verdict(0.917, (0.907, 0.927), run) == "agrees with the record"
    assert verdict(0.918, (0.908, 0.928), run) == "differs from the record by +1.8 points"
    assert verdict(0.91, (0.9, 0.92), None) == "its run is not among the records"
    assert "no interval" in verdict(0.91, (0.9, 0.92), fake_run(half_width=None))
    other = fake_run(data="mbg", backgrounds="bsds500", accuracy=0.5)
    assert "not comparable" in verdict(0.5, (0.4, 0.6), other, "shipped-3")
    assert verdict(0.5, (0.4, 0.6), other, "bsds500") == "agrees with the record"
    same = fake_run(data="mbg", backgrounds="backgrounds-test-100-ee467d42", accuracy=0.5)
    assert verdict(0.5, (0.4, 0.6), same, "bsds500-test-100-ee467d42") == "agrees with the record", "the same pixels"
