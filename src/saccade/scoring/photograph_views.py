"""Photographs and their twins as a network takes them, and where things are; read ahead of the scoring.

Axes: R pictures of a photograph (itself, then its twins), N candidates, K objects, H and W pixels.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.data.causal import SCENE
from saccade.data.causal.photographs import Photograph
from saccade.scoring.networks import Network

_AT_ONCE = 32  # pictures that go through the network together
_AHEAD = 6  # photographs that are read while others are scored


class View(NamedTuple):
    """A photograph with its twins, as the network takes them, and where things are."""

    photograph: Photograph
    names: tuple[str, ...]  # ``scene``, then its twins
    inputs: Tensor  # (R,3,h,w)
    canvas: Tensor  # (2,3): network input → picture
    edges: Tensor  # (R,H,W): Sobel edges
    target: Tensor  # (1,H,W) bool
    target_new: Tensor | None  # (1,H,W) bool: after its move
    candidates: tuple[int, ...]  # the pictures without them
    masks: Tensor  # (1,N,H,W) bool: of the candidates
    objects: Tensor  # (1,K,H,W) bool

    def twins(self, change: str, *, other: bool = False) -> list[int]:
        """The numbers of the twins with that change; ``other``: not those of the target."""
        twins, target = self.photograph.twins, self.photograph.target
        numbered = [(number, twins[name]) for number, name in enumerate(self.names) if name in twins]
        return [number for number, twin in numbered if twin.change == change and not (other and twin.object == target)]

    @property
    def without_target(self) -> int:
        """The number of the twin without the target."""
        return self.names.index(f"removed-{self.photograph.target}")


def view_of(photograph: Photograph, network: Network) -> View:
    """Read a photograph and its twins."""
    pictures = {SCENE: photograph, **photograph.twins}
    images = [picture.image for picture in pictures.values()]  # (H,W,3) each
    prepared = [network.prepare(image) for image in images]
    labels = torch.from_numpy(photograph.label_map.copy())  # (H,W)
    objects = torch.stack([labels == number + 1 for number in range(len(photograph.objects))])  # (K,H,W)
    free = labels == 0
    masks: dict[int, Tensor] = {}
    for number, twin in enumerate(photograph.twins.values(), 1):
        if twin.change == "removed" and twin.object is not None:
            masks[number] = objects[twin.object]
        elif twin.change == "empty":
            masks[number] = torch.from_numpy(twin.changed.copy()) & free
            free = free & ~masks[number]  # masks of candidates do not overlap
    masks = {number: mask for number, mask in masks.items() if bool(mask.any())}
    new = None
    if "moved" in photograph.twins:
        new = torch.from_numpy(photograph.twins["moved"].label_map == photograph.target + 1)[None]
    return View(
        photograph,
        tuple(pictures),
        torch.stack([image for image, _ in prepared]),
        prepared[0][1],
        sobel(torch.from_numpy(np.stack(images))),
        objects[photograph.target][None],
        new,
        tuple(masks),
        torch.stack(list(masks.values()) or [objects[photograph.target]])[None],
        objects[None],
    )


def sobel(images: Tensor) -> Tensor:
    """How steep pictures (R,H,W,3) are, by Sobel's two filters on their mean colour; the border pixels go on."""
    red, green, blue = images.float().unbind(-1)
    grey = F.pad((red + green + blue)[:, None] / 3, (1, 1, 1, 1), mode="replicate")[:, 0]  # (R,H+2,W+2)
    right, down = grey[:, :, 2:] - grey[:, :, :-2], grey[:, 2:] - grey[:, :-2]  # (R,H+2,W), (R,H,W+2)
    across = right[:, :-2] + 2 * right[:, 1:-1] + right[:, 2:]  # (R,H,W)
    along = down[:, :, :-2] + 2 * down[:, :, 1:-1] + down[:, :, 2:]  # (R,H,W)
    return torch.hypot(across, along)


def read_ahead(photographs: Iterable[Photograph], read: Callable[[Photograph], View]) -> Iterator[View]:
    """The views in order; a few are read by threads while others are scored."""
    waiting: deque[Any] = deque()
    with ThreadPoolExecutor(2, thread_name_prefix="saccade-reading") as pool:
        for photograph in photographs:
            waiting.append(pool.submit(read, photograph))
            if len(waiting) > _AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def chunks(views: Iterable[View]) -> Iterator[list[View]]:
    """Views together that have about as many pictures as go through a network at once."""
    chunk: list[View] = []
    for view in views:
        chunk.append(view)
        if sum(len(other.names) for other in chunk) >= _AT_ONCE:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
