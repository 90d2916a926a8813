"""What the crops of RA-CNN cost beside its three networks, and how fast the pictures of ``details`` are drawn.

A step is forward and backward of all scales. The crops are two masks and two bilinear readings with their gradients.
On a GPU the clock of the device is used, on a CPU processor time; the fastest of several repeats.

python benchmarks/bench_zoom.py [--device cuda] [--batch 256]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import torch

from saccade.attention.zoom import box_theta, nested, zoom
from saccade.data.details.layout import sample_details
from saccade.data.details.render import render_details
from saccade.models.racnn import RacnnConfig, RacnnModel


def seconds(work: Callable[[], object], device: torch.device, repeats: int) -> float:
    """The fastest of ``repeats``, after one to get warm."""
    work()
    found = []
    for _ in range(repeats):
        if device.type == "cuda":
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            work()
            end.record()
            torch.cuda.synchronize()
            found.append(start.elapsed_time(end) / 1e3)
        else:
            began = time.process_time()
            work()
            found.append(time.process_time() - began)
    return min(found)


def main() -> None:
    """Print the share of the crops in a step, and pictures drawn a second."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--repeats", type=int, default=5)
    told = parser.parse_args()
    device = torch.device(told.device)
    model = RacnnModel(RacnnConfig()).to(device).train()
    numbers = torch.arange(told.batch, device=device)
    images = render_details(sample_details(0, numbers)).float() / 255
    box = torch.full((told.batch, 2, 3), 0.5, device=device)
    box[..., 2] = 0.25

    def step() -> None:
        model.zero_grad()
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            raw = model.forward_raw(images)
        (raw["scale_logits"].sum() + raw["logits"].sum()).backward()

    def crops() -> None:
        outer, inner = box.clone().requires_grad_().unbind(1)
        theta = box_theta(outer)
        first, mask = zoom(images, theta, outer[:, 2], model.config.crop)
        second, finer = zoom(images, nested(theta, box_theta(inner)), inner[:, 2], model.config.crop)
        (first * mask.unsqueeze(1) + second * finer.unsqueeze(1)).sum().backward()

    whole, part = (seconds(work, device, told.repeats) for work in (step, crops))
    drawn = seconds(lambda: render_details(sample_details(0, numbers)), device, told.repeats)
    print(f"step of {told.batch}: {1e3 * whole:.1f} ms, of which crops {1e3 * part:.1f} ms ({part / whole:.1%})")
    print(f"pictures of details: {told.batch / drawn:,.0f} a second")


if __name__ == "__main__":
    main()
