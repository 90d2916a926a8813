"""The scorer of maps: numbers worked out pixel by pixel, whatever the batches, the corner cases, and flat memory."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from saccade import geometry
from saccade.errors import DataError
from saccade.metrics.maps import baselines
from saccade.metrics.maps.baselines import EXCHANGES, Grid, Grids, derangement
from saccade.metrics.maps.localisation import true_positive_strength
from saccade.metrics.maps.points import Clicks
from saccade.metrics.maps.scorer import BASELINES, Baseline, MapScorer, MapScores
from saccade.trace import AttentionTrace, Look


def scored(maps, evidence, objects=None, sizes=()):
    """One MapScores, filled in batches of the given sizes (the rest in one)."""
    scores = MapScores()
    sizes = [*sizes, len(maps) - sum(sizes)]
    parts = zip(
        maps.split(sizes), evidence.split(sizes), [None] * len(sizes) if objects is None else objects.split(sizes)
    )
    for part in parts:
        scores.add(*part)
    return scores


SIZE, CELLS = (8, 6), (4, 2)
FRAME = geometry.scale_shift((SIZE[1] / CELLS[1], SIZE[0] / CELLS[0]), (0.0, 0.0))
GRIDS = Grids((Grid(FRAME, CELLS),))


def drawn(pictures, seed=0):
    """Noise as maps, and what they are compared with: maps (B,H,W), evidence, objects."""
    generator = torch.Generator().manual_seed(seed)
    maps = torch.rand(pictures, *SIZE, generator=generator)
    objects = torch.rand(pictures, *SIZE, generator=generator) < 0.5
    evidence = objects & (torch.rand(pictures, *SIZE, generator=generator) < 0.5)
    evidence[:, 0, 0] = objects[:, 0, 0] = True
    return maps, evidence, objects


def added(maps, evidence, objects=None, sizes=(), groups=None, looks=None, **given):
    """A scorer, filled in batches of the given sizes (the rest in one)."""
    scorer, start = MapScorer(), 0
    for size in [*sizes, len(maps) - sum(sizes)]:
        part = slice(start, start + size)
        start += size
        scorer.add(
            maps[part],
            evidence[part],
            objects=None if objects is None else objects[part],
            groups=None if groups is None else groups[part],
            looks=None if looks is None else [(name, each[part]) for name, each in looks.items()],
            **given,
        )
    return scorer


def test_an_even_map_scores_areas_as_the_uniform_baseline_does():
    _, evidence, objects = drawn(6)
    scorer = added(torch.full((6, *SIZE), 0.2), evidence, objects, grids=GRIDS)
    area = float(evidence.double().mean())
    share = (evidence.flatten(1).sum(1) / objects.flatten(1).sum(1)).double().mean()
    expected = {
        "true_positive_strength": area,
        "pointing": area,
        "iou": area,
        "pr_auc": area,
        "selectivity": float(share),
    }
    assert scorer.total.means() == pytest.approx(expected, abs=1e-6)
    assert scorer.baselines["uniform"].means() == pytest.approx(expected, abs=1e-6)
    assert scorer.baselines["shuffled"].means() == pytest.approx(expected, abs=1e-6)


def test_maps_without_evidence_are_undefined_and_counted():
    maps, evidence, objects = drawn(5)
    evidence[[1, 4]] = False
    scorer = added(maps, evidence, objects, grids=GRIDS)
    kept = torch.tensor([0, 2, 3])
    alone = added(maps[kept], evidence[kept], objects[kept], grids=GRIDS)
    assert len(scorer.groups) == 5
    assert scorer.total.means() == alone.total.means()
    for name in BASELINES:
        if name != "shuffled":
            assert scorer.baselines[name].means() == pytest.approx(alone.baselines[name].means(), abs=1e-6), name
    assert {(each.n, each.undefined, each.images) for each in scorer.intervals().values()} == {(3, 2, 3)}


@pytest.mark.parametrize("broken", [math.nan, math.inf, -0.5])
def test_what_is_no_map_is_refused_by_its_picture_and_nothing_is_kept(broken):
    maps, evidence, objects = drawn(4)
    maps[2, 3, 1] = broken
    scorer = MapScorer()
    with pytest.raises(DataError, match="map of picture 2"):
        scorer.add(maps, evidence, objects=objects)
    assert len(scorer.groups) == 0
    assert scorer.total.means() == {}
    scorer.add(maps[:2], evidence[:2], objects=objects[:2])
    assert scorer.groups.tolist() == [0, 1]


@settings(max_examples=4)
@given(st.lists(st.integers(1, 4), max_size=3), st.booleans(), st.booleans())
def test_batches_do_not_matter_but_for_the_exchange_of_maps(sizes, has_objects, own_grid):
    maps, evidence, objects = drawn(13, seed=len(sizes))
    evidence[5] = False
    given_all = {"objects": objects if has_objects else None, "looks": {"first": maps.flip(0), "second": maps**2}}
    given_all |= {"groups": torch.arange(13) // 2, "grids": GRIDS if own_grid else None}
    whole = added(maps, evidence, **given_all)
    alone = added(maps, evidence, sizes=[*sizes, *[1] * (12 - sum(sizes))], **given_all)
    assert torch.equal(whole.groups, alone.groups)
    assert whole.intervals() == alone.intervals()
    assert "shuffled" not in added(maps, evidence, sizes=[1] * 12, **given_all).baselines
    expected = {"uniform", "centre_gaussian", "shuffled"} | ({"grid_oracle"} if own_grid else set())
    assert whole.baselines.keys() == expected | ({"all_objects", "all_objects_exact"} if has_objects else set())
    pairs = [(whole.total, alone.total), *((whole.by_look[name], alone.by_look[name]) for name in ("first", "second"))]
    pairs += [(held, alone.baselines[name]) for name, held in whole.baselines.items() if name != "shuffled"]
    for one, other in pairs:
        assert one.means() == pytest.approx(other.means(), nan_ok=True, abs=1e-6)
        assert one._counts.undefined == other._counts.undefined == 1


def test_baselines_are_the_maps_of_their_names():
    maps, evidence, objects = drawn(7)
    groups = torch.tensor([3, 3, 1, 1, 1, 9, 9])
    scorer = added(maps, evidence, objects, groups=groups, grids=GRIDS)
    expected = {
        "uniform": baselines.uniform(FRAME, CELLS, SIZE, pictures=7),
        "centre_gaussian": baselines.centre_gaussian(FRAME, CELLS, SIZE, pictures=7),
        "shuffled": torch.cat([maps[derangement(groups, seed=seed)] for seed in range(EXCHANGES)]),
        "all_objects": baselines.all_objects(objects, FRAME, CELLS),
        "all_objects_exact": objects.float(),
        "grid_oracle": baselines.grid_oracle(evidence, FRAME, CELLS),
    }
    assert tuple(scorer.baselines) == BASELINES == tuple(expected)
    for name, each in expected.items():
        times = len(each) // 7
        alone = scored(each, evidence.repeat(times, 1, 1), objects.repeat(times, 1, 1)).means()
        assert scorer.baselines[name].means() == pytest.approx(alone), name


def test_no_picture_lends_its_map_to_itself():
    """Two questions each about three pictures, every map a picture's own pixel: exchanged, not one is right."""
    maps = torch.eye(3).repeat_interleave(2, 0).view(6, 1, 3)
    groups = torch.tensor([5, 5, 2, 2, 7, 7])
    scorer = added(maps, maps > 0, groups=groups)
    assert scorer.total.means()["pointing"] == 1
    assert scorer.baselines["shuffled"].means()["pointing"] == 0
    assert "shuffled" not in added(maps[:3], maps[:3] > 0, groups=groups[:3]).baselines


def test_further_baselines_and_clicks_count_where_they_know_something():
    maps, evidence, _ = drawn(4)
    corner = torch.zeros(4, *SIZE)
    corner[:, 0, 0] = 1
    points = torch.tensor([[0.5, 0.5], [0.5, 0.5], [0.5, 0.5], [math.nan, math.nan]])
    clicks = Clicks.at(points, torch.tensor([[0.0, 0.0, 1.0, 1.0]]).expand(4, 4), SIZE)  # near: the pixel alone
    known = torch.tensor([True, False, True, True])
    scorer = MapScorer()
    scorer.add(
        maps, evidence, grids=GRIDS, looks=[("one", corner)], clicks=clicks, beside={"corner": Baseline(corner, known)}
    )
    in_corner = (maps[:, 0, 0] / maps.sum((1, 2)))[:3].mean().item()
    assert scorer.total.means()["attention_near"] == pytest.approx(in_corner, rel=1e-5)
    assert scorer.by_look["one"].means()["attention_near"] == 1
    assert scorer.baselines["corner"]["attention_near"].isnan().tolist() == [False, True, False, True]
    assert scorer.baselines["corner"]["pointing"].isnan().tolist() == [False, True, False, False]
    best = baselines.grid_oracle(corner > 0, FRAME, CELLS)
    expected = float(true_positive_strength(best, corner > 0)[0])
    assert scorer.baselines["grid_oracle"].means()["attention_near"] == pytest.approx(expected)


def stepped(pictures=4, steps=3):
    maps, evidence, _ = drawn(pictures * steps)
    _, _, objects = drawn(pictures, seed=1)
    counts = torch.arange(pictures * steps).view(pictures, steps) % 5 != 0
    return maps.unflatten(0, (pictures, steps)), evidence.unflatten(0, (pictures, steps)), objects, counts


@pytest.mark.parametrize("shared", [True, False])
def test_steps_that_count_are_scored_as_maps_of_their_picture(shared):
    maps, evidence, objects, counts = stepped()
    shifts = [geometry.scale_shift((3.0, 2.0), (0.0, 0.0 if shared else 0.5 * row)) for row in range(4)]
    grids = Grids((Grid(torch.stack(shifts), CELLS),))
    rows = counts.nonzero()[:, 0]
    looks = [("other", maps.flip(-1))]
    scorer, flat = MapScorer(), MapScorer()
    given_all = {"groups": torch.tensor([4, 5, 6, 7]), "objects": objects, "grids": grids}
    scorer.add(maps, evidence, steps=counts, looks=looks, **given_all)
    flat.add(
        maps[counts], evidence[counts], groups=given_all["groups"][rows], objects=objects[rows], grids=grids.at(rows),
        looks=[("other", maps.flip(-1)[counts])],
    )  # fmt: skip
    assert scorer.groups.tolist() == (4 + rows).tolist()
    assert scorer.intervals() == flat.intervals()
    assert scorer.by_look["other"].means() == flat.by_look["other"].means()
    for name in BASELINES:
        assert scorer.baselines[name].means() == pytest.approx(flat.baselines[name].means(), abs=1e-6), name


@pytest.mark.parametrize("total", ["product", "last"])
def test_a_trace_gives_its_total_its_looks_and_its_grid(total):
    _, evidence, objects = drawn(3)
    looks = [
        Look("coarse", "gate", "multiplier", torch.rand(3, *CELLS), frame=FRAME),
        Look("fine", "gate", "multiplier", torch.rand(3, *SIZE), frame=geometry.identity()),
        Look("memory", "slots", "input", torch.rand(3, 5)),
    ]
    size = torch.tensor(SIZE).expand(3, 2)
    trace = AttentionTrace(tuple(looks), image_size=size, total=total)
    read, given_all = MapScorer(), MapScorer()
    read.add_trace(trace, evidence, objects=objects, groups=torch.arange(3))
    given_all.add(
        trace.image_map("total"), evidence, objects=objects, groups=torch.arange(3),
        grids=Grids((Grid(FRAME, CELLS), Grid(geometry.identity(), SIZE)), total),
        looks=[(name, trace.image_map(name)) for name in ("coarse", "fine")],
    )  # fmt: skip
    assert read.intervals() == given_all.intervals()
    for one, other in ((read.by_look, given_all.by_look), (read.baselines, given_all.baselines)):
        assert {name: held.means() for name, held in one.items()} == {
            name: held.means() for name, held in other.items()
        }
    alone = MapScorer()
    alone.add_trace(AttentionTrace(tuple(looks[:1]), image_size=size), evidence)
    assert alone.by_look == {}
    assert MapScorer().by_look is None
