"""How fast the heads of a probe are trained: feature maps a second, and the processor time of the whole grid.

Features are random, 1280 channels on 7×7 cells, as MobileNetV2 has them for 224×224 pixels; the pyramid has its two
finer stages too. A map counts once for each head that learns from it. The time of the grid on 500 pictures is computed
from a few steps of each kind of head: five splits of 300 training pictures, the settings and seeds of the default plan.

python benchmarks/bench_probe.py --threads 2
python benchmarks/bench_probe.py --threads 1 --heads soft,pyramid
"""

from __future__ import annotations

import argparse
import time

import torch

from saccade.backbones.catalog import build_backbone
from saccade.backbones.stages import finer_stages, folded_channels, levels_of
from saccade.models.probe_heads import HEADS, PYRAMID, HeadName, new_head
from saccade.probing.head_stack import fresh_heads, train_heads
from saccade.probing.probe import checked_heads
from saccade.probing.trials import Plan

SHAPE, CLASSES, PICTURES, PIXELS = (1280, 7, 7), 10, 192, (224, 224)
TRAINED = 300
"""Training pictures in each split of 500."""


def seconds_a_step(name: HeadName, members: int, steps: int, rounds: int) -> tuple[float, float]:
    """By the clock and of the processors, the fastest of several rounds."""
    stages = build_backbone("mobilenetv2")
    levels = levels_of(stages, finer_stages(stages, PIXELS)) if name == PYRAMID else ()
    channels = folded_channels(levels) if levels else SHAPE[0]
    shape = (channels, 1, 1) if name == HEADS[0] else (channels, *SHAPE[1:])
    features = torch.randn(PICTURES, *shape).contiguous(memory_format=torch.channels_last)
    labels = torch.randint(CLASSES, (PICTURES,))
    plan = Plan()
    heads = fresh_heads(
        lambda: new_head(name, channels, CLASSES, hidden=plan.hidden, queries=plan.queries, levels=levels),
        range(members),
    )
    learns = torch.ones(members, PICTURES, dtype=torch.bool)
    found = []
    for _ in range(rounds + 1):
        clock, processors = time.perf_counter(), time.process_time()
        train_heads(
            heads,
            lambda numbers: features[numbers],
            labels,
            learns,
            rates=[1e-2] * members,
            decays=[1e-2] * members,
            steps=steps,
            batch_size=plan.batch_size,
        )
        found.append(((time.perf_counter() - clock) / steps, (time.process_time() - processors) / steps))
    clocks, processor_times = zip(*found[1:])  # the first round fills the caches
    return min(clocks), min(processor_times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--heads", default=",".join(HEADS), help="which of them, by commas")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    plan, whole = Plan(), 0.0
    named = options.heads.split(",")
    checked_heads(named)
    for name in (each for each in HEADS if each in named):
        alone, _ = seconds_a_step(name, 1, options.steps, options.rounds)
        rates = plan.linear_rates if name == HEADS[0] else plan.rates
        members = len(rates) * len(plan.decays)
        together, spent = seconds_a_step(name, members, options.steps, options.rounds)
        others = (plan.seeds - 1 + len(plan.shares)) / members  # trained after the grid, with the best setting
        grid = spent * plan.steps_for(TRAINED) * plan.splits * (1 + others)
        whole += grid
        print(
            f"{name:8s} one head {plan.batch_size / alone:9,.0f} maps/s   {members} heads "
            f"{members * plan.batch_size / together:9,.0f} maps/s   grid {grid:6.0f} processor seconds"
        )
    print(f"grid of these heads on 500 pictures: {whole:.0f} processor seconds, {whole / 2:.0f} s on two idle cores")


if __name__ == "__main__":
    main()
