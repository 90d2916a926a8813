"""Vision models of the transformers library as backbones (extra ``transformers``): their token grids become one stage.

``hf:NAME`` is a model of the hub, or a folder that transformers wrote. Its stage is "features", the last hidden state
as a map (B,C,h,w). Tokens in front of the grid (class, distillation, registers) are taken off; the first of them, where
the model has a class token, is kept beside the map. Of a model for pictures and text, the vision part is used.

Building a model downloads its configuration if it is not on this machine. No code from a repository is ever run.
Pictures of another size than in training are accepted if the model can interpolate its position embeddings. Frames are
found as in :mod:`saccade.backbones.timm_adapter`.
"""

from __future__ import annotations

import importlib
import inspect
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from saccade.backbones.hub import from_hub, open_library
from saccade.backbones.stages import IMAGENET_MEAN, IMAGENET_STD, Chain, Normalise, Stages
from saccade.errors import ConfigError
from saccade.geometry import Size

# Parameters of tokens that stand in front of a grid.
_IN_FRONT = ("cls_token", "class_embedding", "distillation_token", "register_tokens")


class TokenGrid(nn.Module):
    """The last hidden state of a network, tokens (B,T,C) or a map, as a map of cells of ``reduction`` pixels a side."""

    def __init__(self, network: nn.Module, reduction: int, has_class_token: bool) -> None:
        super().__init__()
        self.network, self.reduction, self.has_class_token = network, reduction, has_class_token
        takes = inspect.signature(network.forward).parameters
        self._options: dict[str, Any] = dict.fromkeys({"interpolate_pos_encoding"} & takes.keys(), True)
        self._shuffles = "noise" in takes  # a masked autoencoder sorts its patches by noise
        self._takes_patches = "spatial_shapes" in takes  # of pictures of any shape side by side, as SigLIP 2 NaFlex
        own = _own_parameters(network)
        self._before = sum(own[name].numel() // own[name].shape[-1] for name in _IN_FRONT if name in own)  # P

    def forward(self, images: Tensor) -> Tensor:
        """(B,3,H,W) → (B,C,h,w)."""
        return self._split(images)[0]

    def with_class_token(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """The map (B,C,h,w) and the class token (B,C)."""
        features, prefix = self._split(images)
        return features, prefix[:, 0]

    def _split(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """The map (B,C,h,w) and the tokens before it (B,P,C)."""
        height, width = images.shape[-2:]
        grid = (height // self.reduction, width // self.reduction)
        options = dict(self._options)
        if self._shuffles:
            order = torch.arange(grid[0] * grid[1], dtype=images.dtype, device=images.device)
            options["noise"] = order.expand(images.shape[0], -1)  # (B,h·w): as they lie
        if self._takes_patches:
            images = self._as_patches(images, grid)  # (B,h·w,s·s·3)
            shapes = torch.tensor(grid).expand(images.shape[0], 2)
            options |= {"spatial_shapes": shapes, "pixel_attention_mask": None}  # none is filled up
        try:
            hidden = self.network(pixel_values=images, **options).last_hidden_state
        except (ValueError, RuntimeError) as error:  # such as: input image size doesn't match model
            side = getattr(getattr(self.network, "config", None), "image_size", None)
            is_size = side is not None and min(grid) >= 1 and (height, width) != (side, side)
            if isinstance(error, RuntimeError) and (not is_size or isinstance(error, torch.OutOfMemoryError)):
                raise
            why = error if isinstance(error, ValueError) else f"its position embeddings are for {side}×{side}"
            raise ConfigError(f"this model cannot take pictures of {height}×{width} pixels: {why}; set size") from error
        if hidden.dim() == 4:
            return hidden, hidden.new_zeros(hidden.shape[0], 0, hidden.shape[1])
        if hidden.shape[1] != self._before + grid[0] * grid[1]:  # such as: it pads the picture
            raise ConfigError(
                f"of {height}×{width} pixels this model makes {hidden.shape[1]} tokens, not {self._before} "
                f"and {grid[0]}·{grid[1]} cells; set size to a multiple of {self.reduction}, or choose another model"
            )
        cells = hidden[:, self._before :].transpose(1, 2)  # (B,C,h·w)
        return cells.reshape(cells.shape[0], cells.shape[1], *grid), hidden[:, : self._before]

    def _as_patches(self, images: Tensor, grid: Size) -> Tensor:
        """(B,3,H,W) → (B,h·w,s·s·3): each patch row by row, its colours last."""
        side = self.reduction
        whole = images[..., : grid[0] * side, : grid[1] * side]
        patches = whole.reshape(-1, 3, grid[0], side, grid[1], side).permute(0, 2, 4, 3, 5, 1)  # (B,h,w,s,s,3)
        return patches.reshape(len(images), grid[0] * grid[1], -1)


def transformers_stages(name: str) -> Stages:
    """The model ``name`` with fresh weights as one stage; its configuration alone is fetched."""
    config = hf_config(name)
    with torch.random.fork_rng(devices=[]):
        with usable(name):
            network = open_hf().AutoModel.from_config(config)
        return _as_stages(network, config, name)


def transformers_weights(name: str) -> dict[str, Tensor]:
    """The published weights of the model ``name``, as the library's own client finds or downloads them."""
    config = hf_config(name)
    with torch.random.fork_rng(devices=[]):
        network = hf_network(name, open_hf().AutoModel)
    return dict(_as_stages(network, config, name).state_dict())


def open_hf() -> Any:
    """The transformers library, without its progress bars, which would stand between ours."""
    library = open_library("transformers", "an hf: model", "AutoModel")
    importlib.import_module("transformers.utils.logging").disable_progress_bar()
    return library


@contextmanager
def usable(name: str) -> Iterator[None]:
    """What the library says against the model ``name``, as a ConfigError in one line."""
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError, ImportError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ConfigError(f"hf:{name} cannot be used ({reason}); choose another vision model") from error


@contextmanager
def _fetching(name: str, what: str) -> Iterator[str]:
    """Where the library finds the model ``name``: in a folder, or by its name in the hub, which is then guarded."""
    folder = Path(name).expanduser()
    is_folder = folder.is_dir()
    with nullcontext() if is_folder else from_hub(f"{what} of hf:{name}"), usable(name):
        yield str(folder) if is_folder else name


def hf_config(name: str) -> Any:
    """The configuration of the model ``name``; a DataError within seconds where it cannot be had."""
    library = open_hf()
    if not name:
        raise ConfigError("hf: needs the name of a model, such as hf:facebook/dinov2-small, or hf:FOLDER")
    with _fetching(name, "the settings") as place:
        return library.AutoConfig.from_pretrained(place, trust_remote_code=False)


def hf_network(name: str, auto: Any, **options: Any) -> Any:
    """The model ``name`` with its weights, as the class ``auto`` of the library builds it."""
    with _fetching(name, "the weights") as place:
        return auto.from_pretrained(place, use_safetensors=True, trust_remote_code=False, **options)


def hf_colours(name: str) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    """Mean and standard deviation of each colour that the model ``name`` wants; None where it does not say."""
    processing = importlib.import_module("transformers.image_processing_base").ImageProcessingMixin
    with _fetching(name, "the colours") as place:
        try:
            settings, _ = processing.get_image_processor_dict(place)
            mean, std = (tuple(float(value) for value in settings[key]) for key in ("image_mean", "image_std"))
        except (OSError, ValueError, KeyError, TypeError):
            return None
    return (mean, std) if len(mean) == len(std) == 3 and all(std) else None


def _as_stages(network: Any, config: Any, name: str) -> Stages:
    config = getattr(config, "vision_config", config)
    network = getattr(network, "vision_model", network)
    if "pixel_values" not in inspect.signature(network.forward).parameters:
        raise ConfigError(f"hf:{name} ({type(network).__name__}) takes no pictures; choose a vision model")
    if hasattr(config, "mask_ratio"):
        network.config.mask_ratio = 0.0
    network.eval()
    mean, std = hf_colours(name) or (IMAGENET_MEAN, IMAGENET_STD)
    reduction, channels, has_token = _probed(network, config, name)
    grid = TokenGrid(network, reduction, has_token)
    stages: OrderedDict[str, nn.Module] = OrderedDict(features=Chain([Normalise(mean, std), grid], reduction))
    return Stages(stages, {"features": channels})


def _probed(network: Any, config: Any, name: str) -> tuple[int, int, bool]:
    """Pixels along a cell, channels, and whether there is a class token."""
    patch, depths = getattr(config, "patch_size", None), getattr(config, "depths", None)
    sizes = getattr(config, "hidden_sizes", None)
    if sizes:  # a network in stages: its stem makes the grid 4 times coarser, then by 2 from stage to stage
        return 4 * 2 ** (len(sizes) - 1), int(sizes[-1]), False
    if patch is None:
        kind = type(network).__name__
        raise ConfigError(f"hf:{name} ({kind}) does not state its patch size; choose another model")
    side = int(patch[0] if isinstance(patch, list | tuple) else patch)
    if depths:  # patches are merged from stage to stage
        return side * 2 ** (len(depths) - 1), int(config.hidden_size), False
    names = _own_parameters(network).keys()
    return side, int(config.hidden_size), bool(names & {"cls_token", "class_embedding"})


def _own_parameters(network: nn.Module) -> dict[str, Tensor]:
    """By the last part of their names, without those of a head."""
    named = network.named_parameters()
    return {key.rpartition(".")[2]: parameter for key, parameter in named if "head." not in key}
