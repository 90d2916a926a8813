"""Variants: what was changed in words, and the curve of the sparse gates."""

import pytest

from fake_runs import fake_run
from saccade.families.question.reproduction.ablations import ablation_table, changed, penalty_curve, penalty_table

FRESH = {"protocol": "unlimited", "glyphs": "disjoint"}


def variant(*sets, **options):
    command = " ".join(["saccade train hattnet-ctx-mref", *(f"--set '{text}'" for text in sets), "--out runs/x"])
    return fake_run("hattnet-ctx", **FRESH, command=command, **options)


@pytest.mark.parametrize(
    ("sets", "words"),
    [
        (["model.config.norm_after_gates=false"], "no BatchNorm after the gates"),
        (["model.config.context=5"], "gates see 5×5 cells"),
        (["model.config.gated=[stage3]"], "gates after stage3 only"),
        (["model.config.gated=[]"], "no gates"),
        (["model.config.gate_penalty=0.1", "data.glyphs=disjoint"], "gate penalty 0.1"),
        (["model.config.spread_penalty=0.03"], "spread penalty 0.03"),
        (["phases.0.optimizer.lr=5e-3", "phases.0.steps=12000"], "learning rate 5e-3, 12000 steps"),
        (["phases.0.optimizer.weight_decay=0.1", "precision=auto", "compile=true"], "weight decay 0.1, precision auto"),
        (["ema=0.99", "start=null"], "weights averaged with decay 0.99, from nothing"),
        (["accumulate=2"], "accumulate=2"),
        ([], "its-own-name"),
    ],
)
def test_what_was_changed(sets, words):
    assert changed(variant(*sets, name="its-own-name")) == words


def test_a_variant_stands_below_the_plain_runs_of_its_cell():
    plain = [fake_run("hattnet-ctx", **FRESH, seed=seed, accuracy=0.99) for seed in range(2)]
    elsewhere = fake_run("hattnet-ctx", accuracy=0.5)
    table = ablation_table([*plain, elsewhere], [variant("model.config.context=5", accuracy=0.98)])
    assert [line[1] for line in table.rows] == ["as the recipe has it\n2 × 10,000", "gates see 5×5 cells\n1 × 10,000"]
    assert [line[2] for line in table.rows] == ["99.00±0.00", "98.00"]


def test_seeds_of_one_variant_share_a_row():
    found = [variant("model.config.context=5", seed=seed, accuracy=value) for seed, value in ((0, 0.97), (1, 0.99))]
    (line,) = ablation_table([], found).rows
    assert line[2] == "98.00±1.41"


def test_the_curve_of_the_gates_takes_what_differs_in_the_penalty_alone():
    plain = fake_run("hattnet-ctx", **FRESH, accuracy=0.99, strength=0.1)
    sparse = fake_run(
        "hattnet-ctx-sparse", **FRESH, model="hattnet-ctx", config={"spread_penalty": 0.1}, accuracy=0.985
    )
    others = [
        variant(config={"spread_penalty": 1.0, "dropout": 0.0}, accuracy=0.97, strength=0.4),
        variant(config={"spread_penalty": 0.3, "norm_after_gates": False}),
        variant(config={"spread_penalty": 0.5, "gate_penalty": 0.1}),
        variant(config={"spread_penalty": 0.1}, accuracy=0.1, name="hattnet-ctx-mref-again"),
        fake_run("soft", **FRESH),
        fake_run("hattnet-ctx", "mdist", **FRESH),
    ]
    points = penalty_curve([plain, sparse], others)
    assert [point.penalty for point in points] == [0.0, 0.1, 1.0]
    assert points[1].accuracy.mean == 0.985, "a recorded run comes before a variant of the same seed"
    assert [line[4] for line in penalty_table(points).rows] == ["+0.00", "+0.50", "+2.00"]
    assert penalty_table(points[1:]).rows[0][4] == "–", "nothing to lose against"


def test_the_curve_compares_what_was_trained_equally_long():
    plain = fake_run("hattnet-ctx", **FRESH, accuracy=0.99)
    short = [variant(config={"spread_penalty": price}, steps=500, accuracy=0.9) for price in (0.1, 0.2, 0.3)]
    assert [point.penalty for point in penalty_curve([plain], short)] == [0.0]
    short.append(variant(config={}, steps=500, accuracy=0.95))
    points = penalty_curve([plain], short)
    assert [point.penalty for point in points] == [0.0, 0.1, 0.2, 0.3]
    assert points[0].accuracy.mean == 0.95
    assert penalty_curve([], []) == []
