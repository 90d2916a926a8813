"""Maps: attention that a caller gives to a model, and maps and marks that are drawn over a picture."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fuzzing import RefusedError, Target
from mutate import odd

import saccade
from saccade.show.overlay import overlay
from tiny_models import save_tiny

DTYPES = ("float16", "float32", "float64", "int8", "int64", "uint8", "uint16", "bool", "complex64")
Case = tuple[str, Any]
"""given or drawn, and the map."""


class Maps(Target):
    name = "maps"
    deadline = 5.0

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.predictor = saccade.load(save_tiny(folder / "tiny"), "cpu")
        self.picture = np.zeros((31, 34, 3), np.uint8)
        self.encoded = self.predictor.encode(self.picture)
        (self.look,) = self.predictor.ask(self.encoded, "1").trace.as_given().items()

    def corpus(self) -> Mapping[str, Any]:
        name, own = self.look
        shape = tuple(own.shape)
        maps: dict[str, Any] = {
            "own": own, "NaN": torch.full(shape, torch.nan), "infinite": torch.full(shape, torch.inf),
            "zero": torch.zeros(shape),
            "negative": -torch.ones(shape), "huge": torch.full(shape, 3e38), "tiny": torch.full(shape, 1e-45),
            "empty": torch.zeros(0),
            "no cells": torch.zeros(1, 0, 0), "one cell": torch.ones(1, 1), "scalar": torch.tensor(1.0), "text": "abc",
            "none": None,
            "list": [[1.0, 0.0], [0.0]], "nested": [[[[1]]]], "object": np.array([object()]),
            "strings": np.array([["a"]]), "mapping": {},
            "half": torch.ones(shape).half(), "complex": torch.ones(shape, dtype=torch.complex64),
            "whole": torch.ones(shape, dtype=torch.int64),
            "dates": np.array([["2020-01-01"]], "datetime64[D]"), "long": np.ones((1, 100_000)),
            "subnormal": np.full((3, 3), 1e-320),
            "10^400": [[10**400]], "seven axes": torch.ones(1, 1, 1, 1, 1, 1, 1),
            "meta": torch.ones(shape, device="meta"),
        }  # fmt: skip
        found: dict[str, Case] = {f"given {title}": ("given", {name: value}) for title, value in maps.items()}
        found |= {f"drawn {title}": ("drawn", value) for title, value in maps.items()}
        wrong = {"no look": {}, "another look": {"x": own}, "number": {5: own}, "several": {name: own, "x": own}}
        return found | {f"given {title}": ("given", given) for title, given in wrong.items()}

    def drawn(self, rng: random.Random) -> Case:
        name, own = self.look
        kind = rng.choice(("given", "drawn"))
        if rng.random() < 0.2:
            value = odd(rng)
        else:
            own_shape, other = tuple(own.shape), tuple(rng.choice((0, 1, 2, 3, 40)) for _ in range(rng.randrange(5)))
            shape = rng.choice((own_shape, other))
            numbers = np.random.default_rng(rng.randrange(2**32)).normal(0, 10 ** rng.uniform(-40, 38), shape)
            with np.errstate(all="ignore"):
                value = numbers.astype(rng.choice(DTYPES))
            if value.size and value.dtype.kind in "fc":
                value.reshape(-1)[rng.randrange(value.size)] = rng.choice((0, 1, -1, np.nan, np.inf))
        return kind, {rng.choice((name, name, name, "x", "total")): value} if kind == "given" else value

    def run(self, case: Case) -> None:
        kind, value = case
        if kind == "given":
            self.predictor.ask(self.encoded, "1", attention=value)
        else:
            _check_numbers(value)
            overlay(self.picture, value)


def _check_numbers(value: Any) -> None:
    """What numpy cannot read as numbers is refused by its own words, before anything of ours sees it."""
    try:
        np.asarray(value.detach().cpu().float() if isinstance(value, torch.Tensor) else value, dtype=np.float32)
    except (TypeError, ValueError, OverflowError, NotImplementedError) as error:
        raise RefusedError(str(error) or type(error).__name__) from error
