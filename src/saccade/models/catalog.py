"""Every model by name: one dictionary, readable without importing torch.

A model joins saccade by a line here; the common test suite, ``saccade list``, recipes and the zoo find it by that line.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from saccade.config import from_dict
from saccade.errors import ConfigError, nearest

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class ModelSpec:
    """What is known of a model before it is built."""

    target: str
    """``module:Class``; the class has ``Config``, ``tiny()`` and ``example_batch(count, seed)``."""
    task: str
    """The task that trains and scores it."""
    summary: str
    paper: str
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Settings in which this entry differs from the defaults of its class; what is given comes before them."""

    def resolve(self) -> Any:
        """The model class."""
        module, _, name = self.target.partition(":")
        return getattr(importlib.import_module(module), name)

    def build(self, config: Mapping[str, Any] | None = None, *, where: str = "model") -> nn.Module:
        """The model, from a dictionary of its settings; ``where`` these stand is said of one that is wrong."""
        cls = self.resolve()
        settings = from_dict(cls.Config, {**self.defaults, **(config or {})}, where=where)
        try:
            model: nn.Module = cls(settings)
        except (ValueError, RuntimeError, ArithmeticError) as error:  # sizes that no layer can have
            raise ConfigError(f"a model of these settings cannot be built: {error}; found {settings}") from error
        return model

    def tiny(self) -> Any:
        """The configuration of a size for tests."""
        return replace(self.resolve().tiny(), **self.defaults)


CATALOG: dict[str, ModelSpec] = {
    "stn": ModelSpec(
        target="saccade.models.stn:StnModel",
        task="attribute",
        summary="a spatial transformer that cuts out what it was asked for",
        paper="Jaderberg et al. 2015, arXiv:1506.02025, as the baseline of Seo et al. 2016, arXiv:1606.02393",
    ),
    "stn-tuned": ModelSpec(
        target="saccade.models.stn_tuned:StnTunedModel",
        task="attribute",
        summary="the same, changed until it uses its query: attention points, and half of the picture is the most",
        paper="after the baseline STN of Seo et al. 2016, arXiv:1606.02393, which did not",
    ),
    "soft": ModelSpec(
        target="saccade.models.soft:SoftModel",
        task="attribute",
        summary="one soft attention on the last feature map",
        paper="Seo et al. 2016, arXiv:1606.02393",
    ),
    "hard": ModelSpec(
        target="saccade.models.hard:HardModel",
        task="attribute",
        summary="one hard attention on the last feature map, its location summed out or sampled",
        paper="Seo et al. 2016, arXiv:1606.02393",
    ),
    "hattnet": ModelSpec(
        target="saccade.models.hattnet:HAttNetModel",
        task="attribute",
        summary="a gate after every stage, a soft attention on the last",
        paper="Seo et al. 2016, arXiv:1606.02393",
    ),
    "hattnet-ctx": ModelSpec(
        target="saccade.models.hattnet:HAttNetModel",
        task="attribute",
        summary="hattnet whose gates see their local context",
        paper="Seo et al. 2016, arXiv:1606.02393",
        defaults={"context": 3},
    ),
    "cross": ModelSpec(
        target="saccade.models.cross:CrossModel",
        task="attribute",
        summary="control: one dot-product attention on the last feature map",
        paper="Vaswani et al. 2017, arXiv:1706.03762, on the stack of Seo et al. 2016",
    ),
    "film": ModelSpec(
        target="saccade.models.film:FilmModel",
        task="attribute",
        summary="control: the query scales and shifts every stage, no attention",
        paper="Perez et al. 2018, arXiv:1709.07871, on the stack of Seo et al. 2016",
    ),
    "blind": ModelSpec(
        target="saccade.models.blind:BlindModel",
        task="attribute",
        summary="control: the stack of SOFT without the query",
        paper="control for Seo et al. 2016, arXiv:1606.02393",
    ),
    "hsal": ModelSpec(
        target="saccade.models.hsal:HsalModel",
        task="multiset",
        summary="reads a multiset of labels, one salient region and a few glimpses at a time",
        paper="Welleck et al. 2017, arXiv:1711.05165",
    ),
    "multiset-counts": ModelSpec(
        target="saccade.models.multiset_counts:MultisetCountsModel",
        task="multiset",
        summary="control: counts every label on the activations of hsal, no attention",
        paper="control for Welleck et al. 2017, arXiv:1711.05165",
    ),
    "sat-soft": ModelSpec(
        target="saccade.models.sat:SatModel",
        task="caption",
        summary="says a caption word by word, each from a soft look at the picture",
        paper="Xu et al. 2015, arXiv:1502.03044",
    ),
    "sat-hard": ModelSpec(
        target="saccade.models.sat:SatModel",
        task="caption",
        summary="says a caption word by word, each from one cell, drawn in training",
        paper="Xu et al. 2015, arXiv:1502.03044",
        defaults={"attention_kind": "hard"},
    ),
}


def model_spec(name: str) -> ModelSpec:
    """The entry called ``name``, or a ConfigError that names the nearest."""
    if name not in CATALOG:
        raise ConfigError(f"no model '{name}': {nearest(name, CATALOG)}")
    return CATALOG[name]
