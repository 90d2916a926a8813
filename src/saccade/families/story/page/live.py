"""Facts for the live page about story models: examples for its editor, and the weights of MemN2N, which it can run.

The page's side of it lies in ``js``: ``panel.js`` is the editor, ``runtime.js`` computes MemN2N. A DMN needs ``saccade
serve``.
"""

from __future__ import annotations

import copy

import torch

from saccade.config import to_dict
from saccade.errors import ConfigError
from saccade.families.story.page.examples import examples
from saccade.families.story.readers.sent import CHARACTERS, SENTENCES
from saccade.models.io.facts import ModelFacts
from saccade.models.memn2n import MemN2NModel
from saccade.predict import Predictor
from saccade.web.weights import matrix, page_facts


def panel_facts(facts: ModelFacts) -> dict[str, object]:
    """What the editor must know of a model: the limits of a story, and stories to begin with."""
    return {
        "sentences": SENTENCES,
        "characters": CHARACTERS,
        "examples": [to_dict(each) for each in examples(facts.answers)],
    }


def page_model(predictor: Predictor) -> dict[str, object]:
    """The facts and weights of ``predictor``'s model as plain values, which ``network`` of the runtime takes.

    Raises:
        ConfigError: for a model that the runtime cannot compute.
    """
    model = predictor.model
    if not isinstance(model, MemN2NModel):
        raise ConfigError(
            f"'{predictor.name}' ({predictor.facts.architecture}) does not run inside a page; memn2n does, "
            "any other model runs behind 'saccade serve'"
        )
    model = copy.deepcopy(model).cpu().float().requires_grad_(False)
    nothing = torch.zeros(1, model.config.memory, 1, dtype=torch.long)  # (B,S,J)
    trace = model(nothing, nothing[:, 0]).trace
    is_layerwise = model.config.tying == "layerwise"
    layers = {
        "config": to_dict(model.config),
        "embed": [matrix(table, exact=True) for table in model.embed],
        "time": [matrix(table, exact=True) for table in model.time],
        "carry": matrix(model.carry, exact=True) if is_layerwise else None,
        "output": matrix(model.output, exact=True) if is_layerwise else None,
    }
    return {**page_facts(predictor, "memn2n", trace), "layers": layers}
