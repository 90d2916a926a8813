"""What ``saccade.trace_of`` costs on a ViT-S/14 of 224 pixels (random weights), beside keeping all weights.

Four ways take turns in one process: a plain forward pass; ``trace_of`` with the class token's rows; ``trace_of`` with
all rows; and the usual way, attention computed eagerly and every layer's weights kept. Printed are the least processor
time of several rounds, the bytes of the weights that are kept, and the largest tensor that a pass makes.

python benchmarks/bench_trace_of.py --rounds 5 --batch 4
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

import saccade

WIDTH, HEADS, LAYERS, PATCH, SIZE = 384, 6, 12, 14, 224


class Block(nn.Module):
    """A layer whose attention is fused, or eager and then kept."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)])
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))
        self.kept: Tensor | None = None
        self.is_eager = False

    def forward(self, tokens: Tensor) -> Tensor:
        """(B,N,D) → (B,N,D)."""
        batch, count, _ = tokens.shape
        q, k, v = self.qkv(self.norms[0](tokens)).reshape(batch, count, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        if self.is_eager:
            self.kept = (q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5).softmax(-1)  # (B,h,N,N)
            made = self.kept @ v
        else:
            made = F.scaled_dot_product_attention(q, k, v)
        tokens = tokens + self.out(made.transpose(1, 2).reshape(batch, count, WIDTH))
        return tokens + self.mlp(self.norms[1](tokens))


class ViT(nn.Module):
    """The sizes of ViT-S/14."""

    def __init__(self) -> None:
        super().__init__()
        self.num_prefix_tokens, self.num_classes = 1, 1000
        self.patches = nn.Conv2d(3, WIDTH, PATCH, PATCH)
        self.cls_token = nn.Parameter(torch.randn(1, 1, WIDTH))
        self.blocks, self.head = nn.Sequential(*(Block() for _ in range(LAYERS))), nn.Linear(WIDTH, 1000)

    def forward(self, images: Tensor) -> Tensor:
        """(B,3,H,W) → logits (B,1000)."""
        tokens = self.patches(images).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.cls_token.expand(len(tokens), -1, -1), tokens], 1)
        return self.head(self.blocks(tokens)[:, 0])


class Largest(TorchDispatchMode):
    """Remembers the bytes of the largest tensor that was made."""

    bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        if isinstance(made, Tensor):
            self.bytes = max(self.bytes, made.numel() * made.element_size())
        return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batch", type=int, default=4)
    options = parser.parse_args()
    torch.manual_seed(0)
    model, images = ViT().eval(), torch.randn(options.batch, 3, SIZE, SIZE)

    def plain() -> list[Tensor]:
        with torch.no_grad():
            model(images)
        return []

    def traced(rows: str) -> list[Tensor]:
        return [look.weights for look in saccade.trace_of(model, images, rows=rows).looks if look.weights is not None]

    def eager() -> list[Tensor]:
        for block in model.blocks:
            block.is_eager = True
        plain()
        kept = [block.kept for block in model.blocks]
        for block in model.blocks:
            block.is_eager, block.kept = False, None
        return kept

    ways: dict[str, Callable[[], list[Tensor]]] = {
        "plain forward pass": plain,
        "trace_of, class token": lambda: traced("class"),
        "trace_of, all rows": lambda: traced("all"),
        "eager, all weights kept": eager,
    }
    spent: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(options.rounds + 1):
        for name, way in ways.items():
            began = time.process_time()
            way()
            spent[name].append(time.process_time() - began)
    for name, way in ways.items():
        kept = sum(each.numel() * each.element_size() for each in way())
        with Largest() as largest:
            way()
        least = min(spent[name][1:])  # the first round fills the caches
        more = least / min(spent["plain forward pass"][1:]) - 1
        print(
            f"{name:24s} {1000 * least:8.0f} ms of the processor ({more:+.0%})   kept {kept / 1e6:8.2f} MB   "
            f"largest tensor {largest.bytes / 1e6:6.2f} MB"
        )


if __name__ == "__main__":
    main()
