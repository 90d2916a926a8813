import subprocess
import sys

import pytest
import torch

import saccade.metrics
from saccade.metrics import (
    Accuracy,
    MeanScore,
    PrAuc,
    correct,
    mean_defined,
    pr_counts,
    selectivity,
    true_positive_strength,
)


def batch(seed=0, pictures=10):
    generator = torch.Generator().manual_seed(seed)
    maps = torch.rand(pictures, 6, 5, generator=generator)
    evidence = torch.rand(pictures, 6, 5, generator=generator) < 0.3
    evidence[:, 0, 0] = True
    evidence[3] = False
    return maps, evidence


def test_importing_the_package_does_not_import_torchmetrics():
    code = "import sys, saccade.metrics; sys.exit('torchmetrics' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_public_name_exists():
    for name in saccade.metrics.__all__:
        assert getattr(saccade.metrics, name) is not None
    with pytest.raises(AttributeError, match="nothing_like_it"):
        _ = saccade.metrics.nothing_like_it


def test_accuracy_equals_the_function():
    answers, truth = torch.tensor([0, 1, 2, 3]), torch.tensor([0, 1, 2, 0])
    metric = Accuracy()
    metric.update(answers[:3], truth[:3])
    metric.update(answers[3:], truth[3:])
    found = metric.compute()
    assert found["mean"].item() == correct(answers, truth).mean().item()
    assert found["n"].item() == 4


def test_mean_score_equals_the_function_and_counts_the_undefined():
    maps, evidence = batch()
    metric = MeanScore(true_positive_strength)
    for part in (slice(0, 4), slice(4, 10)):
        metric.update(maps[part], evidence[part])
    expected = mean_defined(true_positive_strength(maps, evidence))
    found = metric.compute()
    assert found["mean"].item() == pytest.approx(expected.mean, rel=1e-6)
    assert (found["n"].item(), found["undefined"].item()) == (9, 1) == expected[1:]


def test_mean_score_takes_functions_of_three_arguments():
    maps, evidence = batch()
    objects = torch.ones_like(evidence)
    metric = MeanScore(selectivity)
    metric.update(maps, evidence, objects)
    assert metric.compute()["mean"].item() == pytest.approx(mean_defined(selectivity(maps, evidence, objects)).mean)


def test_pr_auc_equals_the_function():
    maps, evidence = batch()
    metric = PrAuc()
    for part in (slice(0, 4), slice(4, 10)):
        metric.update(maps[part], evidence[part])
    found = metric.compute()
    assert found["pr_auc"].item() == pr_counts(maps, evidence).auc
    assert (found["n"].item(), found["undefined"].item()) == (9, 1)


@pytest.mark.parametrize(
    "make", [PrAuc, lambda: MeanScore(true_positive_strength)], ids=["pr_auc", "mean_score"]
)  # fmt: skip
def test_two_halves_merged_equal_the_whole(make):
    maps, evidence = batch()
    whole, first, second = make(), make(), make()
    whole.update(maps, evidence)
    first.update(maps[:5], evidence[:5])
    second.update(maps[5:], evidence[5:])
    first.merge_state(second)
    for name, value in whole.compute().items():
        assert first.compute()[name].item() == pytest.approx(value.item(), rel=1e-9)


def test_forward_gives_the_batch_and_keeps_the_total_and_reset_forgets():
    maps, evidence = batch()
    metric = MeanScore(true_positive_strength)
    alone = metric(maps[:3], evidence[:3])
    assert alone["n"].item() == 3
    metric(maps[4:], evidence[4:])
    assert metric.compute()["n"].item() == 9
    metric.reset()
    metric.update(maps[:1], evidence[:1])
    assert metric.compute()["n"].item() == 1


def _count_in_a_process(rank, port, results):
    import torch.distributed as dist

    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    maps, evidence = batch()
    half = slice(0, 5) if rank == 0 else slice(5, 10)
    metric = PrAuc()
    metric.update(maps[half], evidence[half])
    found = {name: value.item() for name, value in metric.compute().items()}
    if rank == 0:
        results.put(found)
    dist.destroy_process_group()


@pytest.mark.slow
def test_two_processes_agree_with_one():
    import socket

    import torch.multiprocessing as mp

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    context = mp.get_context("spawn")
    results = context.SimpleQueue()
    workers = [context.Process(target=_count_in_a_process, args=(rank, port, results)) for rank in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0, 0]
    whole = PrAuc()
    maps, evidence = batch()
    whole.update(maps, evidence)
    assert results.get() == {name: value.item() for name, value in whole.compute().items()}
