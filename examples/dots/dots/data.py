"""The pictures: up to five dots, a mask of all of them as evidence, and the task on them."""

from dataclasses import dataclass

import torch
from torch import Tensor

from saccade.data import DrawnPictures, LabelledBatch, distinct_below, hash_u32, uniform_below
from saccade.families import LabelTask

MOST = 5
SQUARES = 3  # each way; a square holds at most one dot


@dataclass(frozen=True)
class Dots(DrawnPictures):
    """Settings of the data, and how it is drawn."""

    name: str = "dots"
    side: int = 48
    answers = tuple(map(str, range(MOST + 1)))

    def draw(self, seed: int, numbers: Tensor) -> LabelledBatch:
        """The pictures ``numbers`` (B,); each is a function of (seed, number), whatever batch it is made in."""

        def bits(kind: int, *shape: int) -> Tensor:
            place = torch.arange(torch.Size(shape).numel(), device=numbers.device)
            return hash_u32(seed, numbers[:, None], kind, place).unflatten(1, shape)

        step = self.side // SQUARES
        count = uniform_below(bits(0, 1), MOST + 1)  # (B,1)
        square = distinct_below(bits(1, MOST), SQUARES**2, count[:, 0])  # (B,5)
        corner = torch.stack([square % SQUARES, square // SQUARES], dim=-1) * step  # (B,5,2) as (x, y)
        radius = step // 5 + uniform_below(bits(2, MOST), step // 5)  # (B,5)
        centre = corner + radius[..., None] + uniform_below(bits(3, MOST, 2), step - 1 - 2 * radius[..., None])
        pixel = torch.arange(self.side, device=numbers.device)  # (S,)
        x, y = ((pixel - centre[..., axis, None]) ** 2 for axis in (0, 1))  # (B,5,S) each
        reach = torch.where(torch.arange(MOST, device=numbers.device) < count, radius**2, -1)  # (B,5); -1: no such dot
        dot = y[..., :, None] + x[..., None, :] <= reach[..., None, None]  # (B,5,S,S)
        colour, grey = 0.5 + bits(4, MOST, 3) / 2**33, bits(5, 1, 1, 1) / 2**34  # (B,5,3), (B,1,1,1)
        painted = torch.einsum("bkc,bkhw->bchw", colour, dot.float())  # (B,3,S,S)
        return LabelledBatch(painted + grey * ~dot.any(1, keepdim=True), count[:, 0], dot.any(1))


class DotsTask(LabelTask):
    """Training, scoring and showing: all of it is the default of pictures with one label."""

    name = "dots"
    data_settings = Dots
