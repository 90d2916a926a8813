"""Words of a story in one run: how models that read word by word see a story of sentences."""

from __future__ import annotations

import torch

from saccade.models.dmn import DMNModel
from saccade.models.story import in_one_run
from tiny_models import tiny_model


def test_it_is_what_a_stable_sort_gives() -> None:
    generator = torch.Generator().manual_seed(0)
    words = torch.randint(0, 4, (50, 40), generator=generator)
    order = (words == 0).to(torch.uint8).argsort(dim=1, stable=True)
    assert torch.equal(in_one_run(words), words.gather(1, order))


def test_facts_do_not_depend_on_how_sentences_are_padded() -> None:
    torch.manual_seed(0)
    model = tiny_model(DMNModel).eval()
    story = torch.tensor([[[1, 5, 0], [2, 6, 0], [0, 0, 0], [0, 0, 0]], [[3, 0, 0], [1, 7, 2], [4, 5, 0], [0, 0, 0]]])
    wide = torch.nn.functional.pad(story, (0, 4))
    assert torch.equal(model.encode(story)["facts"], model.encode(wide)["facts"])
    assert torch.equal(model.encode(story, length=8)["facts"][:, :3], model.encode(story)["facts"][:, :3])
