"""Models that know the scenes they are asked about, so that their scores are known beforehand."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade import geometry
from saccade.backbones import small_stack
from saccade.families.question.scenes import SceneBatch
from saccade.models.base import QueryModel
from saccade.trace import Act, Look, ModelOutput

COLOURS, SIZE = 5, (100, 100)


class OneLook(QueryModel):
    """Sees the pixels themselves, and has one look, at the cells that ``frame`` lays over the picture."""

    def __init__(self, frame: Tensor) -> None:
        super().__init__()
        self.anchor = nn.Parameter(torch.zeros(1))  # says where the model lives
        self.frame = frame

    def encode(self, images: Tensor) -> Tensor:
        return images

    def looks(self, output: ModelOutput) -> tuple[Look, ...]:
        return (Look("cell", "soft", "multiplier", output.acts["cell"].weights, norm="softmax", frame=self.frame),)


class Clairvoyant(OneLook):
    """Recognises scenes and their re-renderings by their pixels, and answers from their layout.

    Perfect: it names the colour of the digit asked for and looks at the one of 4×4 cells (of the small stack) whose
    projection has the largest share of its weight on that digit, found by trying all sixteen.
    """

    def __init__(self, batch: SceneBatch) -> None:
        stack = small_stack(channels=1)
        super().__init__(stack.frames["stage4"])
        self.grid = stack.grid(SIZE)["stage4"]
        number = self.grid[0] * self.grid[1]
        self.cells = geometry.project(torch.eye(number).unflatten(1, self.grid), self.frame, SIZE)  # (16,H,W)
        self.masks = batch.layout.masks()  # (B,N,H,W)
        self.known: dict[bytes, tuple[int, Tensor, Tensor]] = {}
        for version in (batch, batch.recolour_target(), batch.recolour_other(), batch.remove_other()):
            classes = version.layout.classes.where(version.layout.present, -1)  # (B,N)
            for row, image in enumerate(version.images):
                self.known[self._key(image)] = row, classes[row], version.layout.colour[row]

    @staticmethod
    def _key(image: Tensor) -> bytes:
        return image.contiguous().numpy().tobytes()

    def ask(self, encoding: Tensor, query: Tensor) -> ModelOutput:
        """Look every scene up."""
        seen = [self.see(*self.known[self._key(image)], int(asked)) for image, asked in zip(encoding, query)]
        answer, weights = (torch.stack(column) for column in zip(*seen))
        return ModelOutput(10.0 * F.one_hot(answer, COLOURS), {"cell": Act(weights=weights)})

    def see(self, row: int, classes: Tensor, colour: Tensor, query: int) -> tuple[Tensor, Tensor]:
        """Answer id () and weights (4,4) for one scene: digits ``classes`` (N,), −1 where none, in ``colour`` (N,)."""
        slot = int((classes == query).nonzero())
        mask = self.masks[row, slot]
        shares = (self.cells * mask).sum((1, 2)) / self.cells.sum((1, 2))  # (16,)
        return colour[slot], F.one_hot(shares.argmax(), len(shares)).float().unflatten(0, self.grid)


class Blind(Clairvoyant):
    """Never reads the query: answers the most frequent colour, looks everywhere alike."""

    def see(self, row: int, classes: Tensor, colour: Tensor, query: int) -> tuple[Tensor, Tensor]:
        """The most frequent colour of the digits that are there."""
        frequent = torch.bincount(colour[classes >= 0], minlength=COLOURS).argmax()
        return frequent, torch.full(self.grid, 1 / (self.grid[0] * self.grid[1]))
