"""Captions on one thread: training against computing all anew for each word, a beam over many pictures against one.

Processor time, not the clock's: others may be at work on the machine.

python benchmarks/bench_captions.py
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.losses import caption_cross_entropy
from saccade.models.caption_decoder import CaptionDecoder, Memory, Scene
from saccade.models.caption_decoding import decode

SIZES = {
    # name: cells, channels, units, vocabulary, words
    "scenes: 7×7×128, 40 words": (7, 128, 128, 40, 12),
    "scenes, finer: 13×13×96, 40 words": (13, 96, 128, 40, 12),
    "paper: VGG-19, 14×14×512, 10,000 words": (14, 512, 512, 10_000, 12),
    "tutorial: ResNet-101, 14×14×2048, 9,490 words": (14, 2048, 512, 9_490, 20),
}
TRAINING_BATCH, PICTURES, WIDTH = 16, 64, 5


class Features:
    """A captioner on features that are encoded already."""

    def __init__(self, decoder: CaptionDecoder, side: int) -> None:
        self.decoder, self.grid = decoder, (side, side)

    def begin(self, encoding: Tensor) -> tuple[Scene, Memory]:
        """As :class:`saccade.models.caption_decoding.Captioner` has it."""
        return self.decoder.begin(encoding, self.grid)

    def say(self, scene: Scene, memory: Memory, before: Tensor, generator=None):
        """As it has it."""
        return self.decoder.say(scene, memory, before)


def new_decoder(channels: int, units: int, vocabulary: int) -> CaptionDecoder:
    torch.manual_seed(0)
    return CaptionDecoder(
        vocabulary, channels, embed=units, hidden=units, attention=units, kind="soft", gate=True, deep_output=True,
        dropout=0.0,
    )  # fmt: skip


def at_once(decoder: CaptionDecoder, features: Tensor, words: Tensor, side: int) -> Tensor:
    scene, memory = decoder.begin(features, (side, side))
    return decoder.tell(scene, memory, words).logits


def word_by_word(decoder: CaptionDecoder, features: Tensor, words: Tensor, side: int) -> Tensor:
    """The same model, as it is often written: cells are projected and the vocabulary is scored for each word."""
    scene, memory = decoder.begin(features, (side, side))
    before = F.pad(words[:, :-1], (1, 0), value=-1)  # (B,T)
    logits = []
    for step in range(words.shape[1]):
        if step:
            scene = Scene(scene.features, decoder.scorer.see(scene.features))
        said = decoder.say(scene, memory, before[:, step : step + 1])
        memory = said.memory
        logits.append(said.logits)
    return torch.cat(logits, dim=1)


def milliseconds(work: Callable[[], object], repeats: int) -> float:
    times = []
    for _ in range(repeats + 1):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return 1e3 * statistics.median(times[1:])


def training(name: str, side: int, channels: int, units: int, vocabulary: int, length: int) -> None:
    decoder = new_decoder(channels, units, vocabulary)
    features = torch.rand(TRAINING_BATCH, side * side, channels)
    words = torch.randint(2, vocabulary, (TRAINING_BATCH, length))

    def step(run: Callable[..., Tensor]) -> Tensor:
        decoder.zero_grad(set_to_none=True)
        logits = run(decoder, features, words, side)
        caption_cross_entropy(logits, words).backward()
        return logits

    apart = float((step(at_once) - step(word_by_word)).detach().abs().max())
    fast, slow = milliseconds(lambda: step(at_once), 3), milliseconds(lambda: step(word_by_word), 3)
    print(f"training step, {name}: {fast:.0f} ms, word by word {slow:.0f} ms, {slow / fast:.1f} ×, apart {apart:.0e}")


def beam(name: str, side: int, channels: int, units: int, vocabulary: int, length: int) -> None:
    decoder = new_decoder(channels, units, vocabulary).eval()
    model, encoding = Features(decoder, side), torch.rand(PICTURES, side * side, channels)

    def find(part: Tensor) -> Tensor:
        return decode(model, part, method="beam", width=WIDTH, longest=length).words

    same = torch.equal(find(encoding), torch.cat([find(one) for one in encoding.split(1)]))
    fast = milliseconds(lambda: find(encoding), 2)
    slow = milliseconds(lambda: [find(one) for one in encoding.split(1)], 1)
    print(f"beam of {WIDTH} over {PICTURES}, {name}: {fast:.0f} ms, one by one {slow:.0f} ms, {slow / fast:.1f} ×, "
          f"same words: {same}")  # fmt: skip


def main() -> None:
    torch.set_num_threads(1)
    for name, sizes in SIZES.items():
        training(name, *sizes)
    for name, sizes in SIZES.items():
        beam(name, *sizes)


if __name__ == "__main__":
    main()
