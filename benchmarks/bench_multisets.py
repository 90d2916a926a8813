"""Reading a multiset: one picture at the shipped sizes on one thread, and what a step of training asks of a GPU.

One thread, because two wait for each other whenever somebody else has one of two cores.

Kernels are counted, not timed, and need no GPU: a step of two pictures runs here, and every operation that a GPU would
launch counts once, however many pictures there are. CUDA has a fused GRU cell, so that it launches fewer.

python benchmarks/bench_multisets.py
"""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Callable

import torch
from PIL import Image
from torch.utils._python_dispatch import TorchDispatchMode

from saccade.losses import hsal_expected_loss, hsal_loss
from saccade.models.hsal import HsalConfig, HsalModel
from saccade.models.io.facts import ModelFacts, Preprocessing
from saccade.predict import Predictor

FREE = {
    "view", "_unsafe_view", "expand", "t", "transpose", "slice", "select", "squeeze", "unsqueeze", "as_strided",
    "detach", "split", "unsafe_split", "split_with_sizes", "permute", "alias", "unbind", "empty", "empty_like",
    "promote_types",
}  # fmt: skip
"""Operations that only look at memory otherwise, or reserve it."""


class Launches(TorchDispatchMode):
    """Counts what would be launched."""

    def __init__(self) -> None:
        super().__init__()
        self.by_name: Counter[str] = Counter()

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        name = operation.name().split("::")[1].split(".")[0]
        if name not in FREE:
            self.by_name[name] += 1
        return operation(*args, **(kwargs or {}))

    @property
    def total(self) -> int:
        """So far."""
        return self.by_name.total()


def milliseconds(work: Callable[[], object], repeats: int = 30) -> float:
    times = []
    for _ in range(repeats + 5):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times[5:])


def one_picture(name: str, config: HsalConfig) -> None:
    torch.manual_seed(0)
    facts = ModelFacts(
        architecture="hsal", model={}, family="multiset", queries=(), answers=tuple("0123456789"),
        preprocessing=Preprocessing(tuple(config.input_size)),
    )  # fmt: skip
    predictor = Predictor(HsalModel(config), facts)
    picture = Image.effect_noise(config.input_size[::-1], 60).convert("RGB")
    print(f"look, warm, {name:34s}{milliseconds(lambda: predictor.look(picture)):8.1f} ms")


def launches(name: str, loss: Callable[..., dict[str, torch.Tensor]]) -> None:
    model = HsalModel(HsalConfig()).train()
    model.backbone.eval()
    for parameter in (*model.backbone.parameters(), *model.single.parameters()):
        parameter.requires_grad_(False)
    images, labels = torch.rand(2, 3, 100, 100), torch.tensor([[3, 3, 7, -1], [1, -1, -1, -1]])
    counts = {}
    with Launches() as counter:
        encoding = model.encode(images)
        counts["backbone"] = counter.total
        raw = model.answer(encoding)
        counts["rollout"] = counter.total
        found = loss(raw, labels, entropy_weight=0.01)["loss"]
        counts["loss"] = counter.total
        found.backward()
        counts["backward"] = counter.total
    told, before = [], 0
    for part, total in counts.items():
        told.append(f"{part} {total - before}")
        before = total
    print(f"kernels of a step, {name}: {before} ({', '.join(told)})")


def main() -> None:
    torch.set_num_threads(1)
    one_picture("digits (4 labels)", HsalConfig())
    one_picture("house numbers (6 labels)", HsalConfig(most=6))
    one_picture("paper (ResNet-34, 224 × 224)", HsalConfig(backbone="resnet34", input_size=(224, 224), hidden=512))
    launches("draws", hsal_loss)
    launches("means", hsal_expected_loss)


if __name__ == "__main__":
    main()
