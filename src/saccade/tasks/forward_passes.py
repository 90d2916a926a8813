"""Forward passes for scores: batches of examples, a few pictures at a time, and each picture encoded only once.

On a CPU whole batches are scored side by side, in threads of one core each: a pass of a few pictures is too little for
several cores. Each batch is computed as it would be alone, so results do not depend on the number of threads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from itertools import islice
from typing import TypeVar, cast

import torch
from torch import Tensor

from saccade.geometry import Size
from saccade.models.base import Given, ImageOnlyModel, QueryModel
from saccade.trace import AttentionTrace, ModelOutput, joined

BATCH = 250
"""Examples that are scored together."""
AT_ONCE = {"cpu": 10, "cuda": 1000}  # pictures of 100×100 pixels in one forward pass: a CPU's caches hold few
_AT_ONCE_ELSEWHERE = 250
_PIXELS = 100 * 100
MAX_THREADS = 4
"""Each thread holds a batch with all its maps, some 300 MB of 250 questions."""

Item = TypeVar("Item")
Result = TypeVar("Result")


def numbers_in_batches(total: int, batch_size: int) -> Iterator[Tensor]:
    """The numbers 0 … total − 1; what is left over joins the last batch: alone it could be all of one picture."""
    start = 0
    while start < total:
        end = start + batch_size if total - start >= 2 * batch_size else total
        yield torch.arange(start, end)
        start = end


def answers_of(trace: AttentionTrace) -> Tensor:
    """The answer ids (B,…) of a trace."""
    return cast(Tensor, trace.answer)


def in_parts(model: QueryModel | ImageOnlyModel, images: Tensor, *more: Tensor, threads: int = 1) -> ModelOutput:
    """What ``forward_raw`` gives for all pictures (and queries), computed a few at a time.

    Scalars are left out, and so are features, attended or not: no score reads them, and they are most of the bytes.

    Args:
        model: in eval mode.
        images: (B,3,H,W).
        more: what else ``forward_raw`` takes, (B,…) each.
        threads: in how many threads parts are computed side by side; in more than one, for inference alone.
    """
    together = at_once(images, model.network_size)
    inputs = zip(*(torch.split(tensor, together) for tensor in (images, *more)))

    def forward(given: tuple[Tensor, ...]) -> ModelOutput:
        with nullcontext() if threads == 1 else torch.inference_mode():
            return model.forward_raw(_laid_out(given[0]), *given[1:])

    return joined(thread_map(forward, inputs, threads))


def encoded(encode: Callable[[Tensor], Tensor], images: Tensor) -> Tensor:
    """What ``encode`` makes of all pictures (B,3,H,W), computed a few at a time: (B,…)."""
    parts = [encode(_laid_out(part)) for part in torch.split(images, at_once(images))]
    return parts[0] if len(parts) == 1 else torch.cat(parts)


class EncodedPictures:
    """Pictures (P,3,H,W) that a model has seen, to be asked about as often as one likes."""

    def __init__(self, model: QueryModel, images: Tensor) -> None:
        self.model, self.images, self.together = model, images, at_once(images)
        self.encoding = encoded(model.encode, images)  # (P,…)

    def ask(self, query: Tensor, picture: Tensor | None = None, *, attention: Given | None = None) -> ModelOutput:
        """What :func:`in_parts` gives for the queries (B,).

        Args:
            query: what is asked.
            picture: (B,) number of the picture that each query is about; None: each about one of its own, in order.
            attention: weights (B,…) by the name of their look, in the place of the model's own.
        """
        few = len(query) <= 3 * self.together // 2  # a small part that is left over is slow

        def split(tensor: Tensor) -> tuple[Tensor, ...]:
            return (tensor,) if few else torch.split(tensor, self.together)

        seen = split(self.encoding) if picture is None else map(self._of, split(picture))
        if not attention:
            return joined(self.model.ask(*part) for part in zip(seen, split(query)))
        names, weights = attention.keys(), zip(*map(split, attention.values()))
        given = (dict(zip(names, part)) for part in weights)
        return joined(self.model.ask(*part, attention=own) for *part, own in zip(seen, split(query), given))

    def _of(self, picture: Tensor) -> Tensor:
        """The encodings (B,…) of the pictures (B,)."""
        if self.encoding.device.type != "cpu":
            return self.encoding[picture]
        # The channels lie together here: seen so, each encoding is one piece of memory and copied as such.
        return self.encoding.movedim(1, -1).index_select(0, picture).movedim(-1, 1)


def distinct(numbers: Tensor) -> tuple[Tensor, Tensor]:
    """Where each different one of the ``numbers`` (B,) stands first (P,), and which of them each is (B,).

    >>> distinct(torch.tensor([7, 7, 3, 7]))
    (tensor([2, 0]), tensor([1, 1, 0, 1]))
    """
    found, which = torch.unique(numbers, return_inverse=True)  # (P,), (B,)
    places = torch.arange(len(numbers), device=numbers.device)  # (B,)
    first = torch.full_like(found, len(numbers), dtype=places.dtype).scatter_reduce(0, which, places, "amin")
    return first, which


def at_once(images: Tensor, size: Size | None = None) -> int:
    """How many of the pictures (B,3,H,W) go through a model together; ``size``: as large as its networks see them."""
    height, width = images.shape[-2:] if size is None else size
    pixels = height * width
    return max(1, AT_ONCE.get(images.device.type, _AT_ONCE_ELSEWHERE) * _PIXELS // pixels)


def _laid_out(images: Tensor) -> Tensor:
    """The pictures with their channels together on a CPU, whose convolutions and poolings are then twice as fast."""
    return images.contiguous(memory_format=torch.channels_last) if images.device.type == "cpu" else images


def thread_count(device: torch.device) -> int:
    """How many batches are scored at once: on a CPU as many as torch has threads, four at most; else one."""
    return min(MAX_THREADS, torch.get_num_threads()) if device.type == "cpu" else 1


def thread_map(work: Callable[[Item], Result], items: Iterable[Item], threads: int) -> Iterator[Result]:
    """``work(item)`` of each item, in their order; a few are under way at a time.

    Args:
        work: called in several threads at once, with autograd as it is by default.
        items: taken one by one, when a thread is free.
        threads: 1 computes in this thread, with all the cores that torch has.
    """
    if threads <= 1:
        yield from map(work, items)
        return
    cores = torch.get_num_threads()
    remaining, under_way = iter(items), deque[Future[Result]]()
    pool = ThreadPoolExecutor(threads, "scoring", lambda: torch.set_num_threads(max(1, cores // threads)))
    try:
        under_way.extend(pool.submit(work, item) for item in islice(remaining, threads + 1))
        while under_way:
            result = under_way.popleft().result()
            under_way.extend(pool.submit(work, item) for item in islice(remaining, 1))
            yield result
    finally:
        pool.shutdown(cancel_futures=True)  # waits for the batches under way, and begins no other
        torch.set_num_threads(cores)  # a thread that set its own number changed that of threads to come
