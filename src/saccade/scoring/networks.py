"""A classifier of pictures from anywhere, and how a picture becomes its input.

======================  ==============================================================================================
``FILE.py:NAME``        what ``NAME()`` of a file of yours returns: its code is run
``timm:NAME``           a model of timm with its published weights
``hf:NAME``             a model of transformers with its published weights
a zoo name or folder    a model of ours that answers with a label
in Python               also a torch module, or what :func:`saccade.load` returns
======================  ==============================================================================================

A network takes pictures (B,3,H,W) and returns logits (B,K), or an object that has them as ``logits``. Size and colours
are those of ``pretrained_cfg``, ``default_cfg`` or the facts of our models, otherwise 224 × 224 with colours from 0 to
1. A picture is laid into it whole, the border filled with grey.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from saccade.data.pictures.reading import prepare, read_picture
from saccade.errors import ConfigError, DataError, nearest
from saccade.geometry import Fit, Size, fit_inside, fit_stretched
from saccade.models.folder import pick_device
from saccade.predict import Predictor, load
from saccade.tracing.model_facts import colours, input_size
from saccade.tracing.published import SOURCES, is_published

SIZE = 224
_PLAIN = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)


@dataclass(frozen=True, eq=False)
class Network:
    """A classifier, and how a picture becomes its input."""

    module: nn.Module  # its input, as it takes it → logits (B,K)
    name: str
    size: Size
    mean: tuple[float, ...]
    std: tuple[float, ...]
    facts: str  # its size and colours and where they come from, in words
    device: torch.device
    fill: float = 0.5
    fitted: Callable[[Size, Size], Fit] = fit_inside
    classes: tuple[str, ...] = ()  # what its answers are called, by number; of a stranger's network the numbers

    def logits(self, images: Tensor) -> Tensor:
        """Inputs (B,3,H,W) → (B,K) in float32."""
        output = self.module(images)
        logits = getattr(output, "logits", output)
        if not isinstance(logits, Tensor) or logits.dim() != 2 or len(logits) != len(images) or logits.shape[1] < 2:
            found = tuple(logits.shape) if isinstance(logits, Tensor) else type(output).__name__
            raise ConfigError(
                f"'{self.name}' returns {found} for pictures {tuple(images.shape)}, not logits (B,K) of two classes or "
                "more; wrap it in a module that does"
            )
        return logits.float()

    def logit_of(self, images: Tensor, classes: Tensor) -> Tensor:
        """Inputs (B,3,H,W) and a class (B,) of each → its logit (B,)."""
        return self.logits(images).gather(1, classes[:, None])[:, 0]

    def prepare(self, picture: Any) -> tuple[Tensor, Tensor]:
        """A picture as the network takes it (3,h,w), and the canvas (2,3): network input → picture."""
        framed, canvas, _ = prepare(read_picture(picture), self.size, self.fill, self.fitted)
        mean, std = (torch.tensor(values).view(3, 1, 1) for values in (self.mean, self.std))
        return (framed - mean) / std, canvas

    @property
    def black(self) -> Tensor:
        """A black pixel as the network takes it (1,3,1,1)."""
        mean, std = (torch.tensor(values, device=self.device).view(1, 3, 1, 1) for values in (self.mean, self.std))
        return -mean / std

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """In eval mode; afterwards the module is as before."""
        was_training = [part for part in self.module.modules() if part.training]
        self.module.eval()
        try:
            yield
        finally:
            for part in was_training:
                part.training = True


@dataclass(frozen=True)
class NetworkOptions:
    """What a user may say of a network."""

    layer: str | None = None  # where CAMs are made, see :mod:`.attribution`
    size: int | None = None  # the side of its input, in place of what it says
    fit: str = "inside"  # how pictures are laid into it: ``inside``, undistorted beside grey, or ``stretch``
    device: str = "auto"


def open_network(model: Any, options: NetworkOptions) -> Network:
    """The classifier ``model``, see the module."""
    place, size, name, fill = pick_device(options.device), options.size, str(model), 0.5
    stated: Size | None
    classes: tuple[str, ...] = ()
    if is_published(model):
        source, _, rest = str(model).partition(":")
        published = SOURCES[source](rest)
        module, stated, scaling = published.network, published.size, (published.mean, published.std)
    elif isinstance(model, nn.Module) or is_file(model):
        module = model if isinstance(model, nn.Module) else built(str(model))
        name = type(module).__name__ if isinstance(model, nn.Module) else name
        stated, own = input_size(module), colours(module)
        scaling = _PLAIN if own is None else own
    else:
        predictor: Predictor = load(model, place) if isinstance(model, (str, Path)) else model
        if not isinstance(predictor, Predictor):
            raise ConfigError(
                f"model: expected FILE.py:NAME, timm:NAME, hf:NAME, a model of ours or a torch module, found "
                f"{type(model).__name__}"
            )
        preprocessing = predictor.facts.preprocessing
        if preprocessing is None or predictor.facts.queries:
            lacks = "reads no picture" if preprocessing is None else "needs a question"
            raise ConfigError(f"'{predictor.name}' is no classifier of pictures: it {lacks}; choose another model")
        module, name, scaling = predictor.model, predictor.name, _PLAIN
        stated, fill, classes = preprocessing.size, preprocessing.fill, predictor.facts.answers
    sides = stated or (SIZE, SIZE) if size is None else (size, size)
    by = "--size" if size is not None else "as the model says" if stated else "it says no size"
    scaled = "colours from 0 to 1" if scaling == _PLAIN else "colours scaled by its own mean and deviation"
    laid, fitted = (
        ("stretched", fit_stretched) if options.fit == "stretch" else ("laid in undistorted, the rest grey", fit_inside)
    )
    facts = f"input {sides[0]} × {sides[1]} ({by}), pictures {laid}, {scaled}"
    network = Network(module.to(place), name, sides, *scaling, facts=facts, device=place, fill=fill, fitted=fitted)
    with network.evaluating(), torch.no_grad():
        try:
            outputs = network.logits(network.black.expand(2, 3, *sides)).shape[1]
        except (RuntimeError, ValueError, TypeError, AssertionError, NotImplementedError) as error:
            raise ConfigError(
                f"'{name}' cannot take pictures (2,3,{sides[0]},{sides[1]}): {' '.join(str(error).split())[:200]}; set "
                "`size`, or wrap it in a module that takes them"
            ) from error
    return replace(network, classes=classes or tuple(map(str, range(outputs))))


def is_file(name: object) -> bool:
    """Whether ``name`` means a name in a Python file.

    >>> is_file("my_net.py:build"), is_file("my_net.py"), is_file("soft-mref")
    (True, True, False)
    """
    return isinstance(name, (str, Path)) and re.search(r"\.py(:\w+)?$", str(name)) is not None


def named_in(name: str, default: str) -> Any:
    """What ``FILE.py:NAME`` means, ``default`` where there is no name; the code of the file is run."""
    text, _, attribute = name.rpartition(":") if not name.endswith(".py") else (name, "", "")
    path, attribute = Path(text).expanduser(), attribute or default
    if not path.is_file():
        raise DataError(f"{path}: no such file; check the path")
    module_name = f"saccade_file_{path.stem}"
    module = ModuleType(module_name)
    module.__file__ = str(path)
    sys.modules[module_name] = module  # dataclasses look their module up
    sys.path.insert(0, str(path.parent.absolute()))  # it may import its neighbours
    try:
        SourceFileLoader(module_name, str(path)).exec_module(module)
    except Exception as error:  # it is anyone's code
        raise ConfigError(f"{path}: running it failed ({type(error).__name__}: {error}); mend it") from error
    finally:
        sys.path.remove(str(path.parent.absolute()))
    if not hasattr(module, attribute):
        names = [word for word, value in vars(module).items() if callable(value) and not word.startswith("_")]
        raise ConfigError(f"{path}: no '{attribute}' in it; {nearest(attribute, names)}")
    return getattr(module, attribute)


def built(name: str) -> nn.Module:
    """The module that ``FILE.py:NAME`` is or returns."""
    module = named_in(name, "build")
    if not isinstance(module, nn.Module):
        needed = inspect.signature(module).parameters.values() if callable(module) else ()
        is_needed = [
            one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD) for one in needed
        ]
        if not callable(module) or any(is_needed):
            raise ConfigError(f"{name}: expected a function that is called with nothing and returns a torch module")
        try:
            module = module()
        except Exception as error:  # it is anyone's code
            raise ConfigError(f"{name}() failed ({type(error).__name__}: {error}); mend it") from error
    if not isinstance(module, nn.Module):
        raise ConfigError(f"{name}: expected a torch module, found {type(module).__name__}")
    return module
