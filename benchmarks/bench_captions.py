"""Captions on one thread: training against computing all anew for each word, a beam over many pictures against one.

Processor time, not the clock's: others may be at work on the machine. Both ways take turns, so that what slows one
slows the other; medians. Beside each ratio of training stands that of the arithmetic alone: no way of computing the
same sums can be further ahead than by what it leaves out and by how well the rest is batched.

python benchmarks/bench_captions.py
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from saccade.losses import caption_cross_entropy
from saccade.models.caption_decoder import CaptionDecoder, EncodedImage, LstmState
from saccade.models.caption_decoding import decode


class Sizes(NamedTuple):
    """Of a decoder and what it is given."""

    cells: int
    """Of a side of the square grid."""
    channels: int
    embed: int
    hidden: int
    attention: int
    vocabulary: int
    words: int

    def decoder(self) -> CaptionDecoder:
        """A new one, the same each time."""
        torch.manual_seed(0)
        return CaptionDecoder(
            self.vocabulary, self.channels, embed=self.embed, hidden=self.hidden, attention=self.attention,
            kind="soft", gate=True, deep_output=True, dropout=0.0,
        )  # fmt: skip

    def features(self, pictures: int) -> Tensor:
        """Of as many pictures: (B,L,D)."""
        return torch.rand(pictures, self.cells**2, self.channels)


SIZES = {
    "scenes, sat-soft-scenes: 13×13×96, 128 units, 23 words": Sizes(13, 96, 64, 128, 64, 23, 12),
    "the paper, sat-soft: VGG-19, 14×14×512, 1,024 units, 10,000 words": Sizes(14, 512, 512, 1024, 512, 10_000, 12),
    "tutorial: ResNet-101, 14×14×2048, 512 units, 9,490 words": Sizes(14, 2048, 512, 512, 512, 9_490, 20),
}
TRAINING_BATCH, PICTURES, WIDTH = 16, 64, 5
REPEATS = 3


class Features:
    """A captioner on features that are encoded already."""

    def __init__(self, decoder: CaptionDecoder, cells: int) -> None:
        self.decoder, self.grid = decoder, (cells, cells)

    def init_state(self, encoding: Tensor) -> tuple[EncodedImage, LstmState]:
        """As :class:`saccade.models.caption_decoding.Captioner` has it."""
        return self.decoder.init_state(encoding, self.grid)

    def next_word(self, scene: EncodedImage, memory: LstmState, before: Tensor, generator=None):
        """As it has it."""
        return self.decoder.next_word(scene, memory, before)


def at_once(decoder: CaptionDecoder, features: Tensor, words: Tensor, cells: int) -> Tensor:
    scene, memory = decoder.init_state(features, (cells, cells))
    return decoder.teacher_force(scene, memory, words).logits


def word_by_word(decoder: CaptionDecoder, features: Tensor, words: Tensor, cells: int) -> Tensor:
    """The same model, as it is often written: cells are projected and the vocabulary is scored for each word."""
    scene, memory = decoder.init_state(features, (cells, cells))
    before = F.pad(words[:, :-1], (1, 0), value=-1)  # (B,T)
    logits = []
    for step in range(words.shape[1]):
        if step:
            scene = EncodedImage(scene.features, decoder.scorer.project_features(scene.features))
        said = decoder.next_word(scene, memory, before[:, step : step + 1])
        memory = said.memory
        logits.append(said.logits)
    return torch.cat(logits, dim=1)


def milliseconds(*ways: Callable[[], object]) -> list[float]:
    """The median time of each of the ``ways``, which take turns."""
    times: list[list[float]] = [[] for _ in ways]
    for _ in range(REPEATS):
        for way, taken in zip(ways, times):
            start = time.process_time()
            way()
            taken.append(1e3 * (time.process_time() - start))
    return [statistics.median(taken) for taken in times]


def arithmetic(way: Callable[[], object]) -> int:
    """Multiplications and additions of all products of matrices."""
    with FlopCounterMode(display=False) as counter:
        way()
    return counter.get_total_flops()


def training(name: str, sizes: Sizes) -> None:
    decoder, features = sizes.decoder(), sizes.features(TRAINING_BATCH)
    words = torch.randint(2, sizes.vocabulary, (TRAINING_BATCH, sizes.words))

    def step(run: Callable[..., Tensor]) -> Tensor:
        decoder.zero_grad(set_to_none=True)
        logits = run(decoder, features, words, sizes.cells)
        caption_cross_entropy(logits, words).backward()
        return logits.detach()

    apart = float((step(at_once) - step(word_by_word)).abs().max())
    most = arithmetic(lambda: step(word_by_word)) / arithmetic(lambda: step(at_once))
    fast, slow = milliseconds(lambda: step(at_once), lambda: step(word_by_word))
    print(f"training step, {name}: {fast:.0f} ms, word by word {slow:.0f} ms, {slow / fast:.1f} × "
          f"(arithmetic {most:.1f} ×), apart {apart:.0e}")  # fmt: skip


def beam(name: str, sizes: Sizes) -> None:
    model, encoding = Features(sizes.decoder().eval(), sizes.cells), sizes.features(PICTURES)

    def find(part: Tensor) -> Tensor:
        return decode(model, part, method="beam", width=WIDTH, longest=sizes.words).words

    def one_by_one() -> Tensor:
        return torch.cat([find(one) for one in encoding.split(1)])

    same = torch.equal(find(encoding), one_by_one())
    fast, slow = milliseconds(lambda: find(encoding), one_by_one)
    print(f"beam of {WIDTH} over {PICTURES}, {name}: {fast:.0f} ms, one by one {slow:.0f} ms, {slow / fast:.1f} ×, "
          f"same words: {same}")  # fmt: skip


def main() -> None:
    torch.set_num_threads(1)
    for name, sizes in SIZES.items():
        training(name, sizes)
    for name, sizes in SIZES.items():
        beam(name, sizes)


if __name__ == "__main__":
    main()
