"""Facts that a model declares: the tokens before its patches, its pooling, its classes, its input size.

A timm model has attributes for it, one of transformers a ``config``; of any other the names of its token parameters
tell. Nothing is guessed from the number of tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from saccade.geometry import Size

_CLASS_TOKENS = frozenset({"cls_token", "class_token", "class_embedding"})
_OTHER_TOKENS = frozenset(
    {"dist_token", "distillation_token", "reg_token", "register_token", "register_tokens", "storage_tokens"}
)
_MEANS = frozenset({"avg", "avgmax", "max", "mean"})


@dataclass(frozen=True)
class Tokens:
    """How many tokens stand before those of the patches, and whether the first is that of the class."""

    prefix: int
    has_class: bool


def bare(model: nn.Module) -> nn.Module:
    """The model inside what parallel training and compilation wrap round it."""
    while True:
        inside = getattr(model, "_orig_mod", None)
        if inside is None and isinstance(model, nn.DataParallel | nn.parallel.DistributedDataParallel):
            inside = model.module
        if not isinstance(inside, nn.Module):
            return model
        model = inside


def is_compiled(model: nn.Module) -> bool:
    """Whether some part of it would run as compiled code, which nobody can watch."""
    return any(
        hasattr(part, "_orig_mod") or getattr(part, "_compiled_call_impl", None) is not None for part in model.modules()
    )


def of_transformers(model: nn.Module) -> bool:
    """Whether it is a model of transformers: it has a config that names its type."""
    return hasattr(getattr(model, "config", None), "model_type")


def picture_part(model: nn.Module, has_other_inputs: bool) -> nn.Module:
    """What takes a picture alone: of a model that takes text too, and is given none, its vision tower."""
    tower = getattr(model, "vision_model", None)
    reads_text = any(hasattr(model, name) for name in ("text_model", "text_decoder", "text_encoder"))
    return tower if isinstance(tower, nn.Module) and reads_text and not has_other_inputs else model


def tokens_of(model: nn.Module, prefix: int | None = None) -> Tokens:
    """The tokens before the patches; ``prefix`` says how many where the model does not."""
    if prefix is not None:
        return Tokens(prefix, prefix > 0)
    tower = getattr(model, "vision_model", None)
    owner = tower if isinstance(tower, nn.Module) else model
    parameters = {name.rpartition(".")[2]: weight for name, weight in owner.named_parameters()}
    has_class = bool(_CLASS_TOKENS & parameters.keys())
    count = getattr(model, "num_prefix_tokens", None)
    if isinstance(count, int):
        return Tokens(count, bool(getattr(model, "has_class_token", has_class or count > 0)))
    others = [parameters[name] for name in _OTHER_TOKENS & parameters.keys()]  # (1,n,D), (n,D) or (D,) each
    count = sum(token.shape[-2] if token.dim() > 1 else 1 for token in others)
    return Tokens(count + has_class, has_class)


def pools_patches(model: nn.Module) -> bool:
    """Whether its answer is made of the mean of all patches, whatever tokens stand before them."""
    if of_transformers(model):
        return bool(getattr(model.config, "use_mean_pooling", False)) and hasattr(model, "classifier")
    return str(getattr(model, "global_pool", "")) in _MEANS and bool(getattr(model, "num_classes", 0))


def layers_of_vision(model: nn.Module) -> int | None:
    """How many layers look at the picture alone, of a model that has layers for text too; otherwise None."""
    config = getattr(model, "config", None)
    return getattr(getattr(config, "vision_config", None), "num_hidden_layers", None)


def logits_of(model: nn.Module, output: object, batch: int) -> Tensor | None:
    """(B,K) scores of the classes that the model says it has; None where what it returns is something else."""
    if of_transformers(model):
        logits, many = getattr(output, "logits", None), getattr(model.config, "num_labels", None)
    else:
        logits, many = output, getattr(model, "num_classes", None)
    is_scores = isinstance(logits, Tensor) and bool(many) and tuple(logits.shape) == (batch, many)
    return logits if is_scores else None


def input_size(model: nn.Module) -> Size | None:
    """(H, W) that the model was made for; None where it does not say."""
    by_timm = _settings(model).get("input_size") or (None,)
    patches = getattr(getattr(model, "patch_embed", None), "img_size", None)
    size = patches or by_timm[1:] or getattr(_vision_config(model), "image_size", None)
    return _pair(size or getattr(model, "image_size", None))


def colours(model: nn.Module) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    """Mean and standard deviation by which its pictures are scaled; None where it does not say."""
    by_timm = _settings(model)
    return (tuple(by_timm["mean"]), tuple(by_timm["std"])) if {"mean", "std"} <= by_timm.keys() else None


def _settings(model: nn.Module) -> dict[str, Any]:
    return getattr(model, "pretrained_cfg", None) or getattr(model, "default_cfg", None) or {}


def patch_grid(model: nn.Module, size: Size) -> Size | None:
    """Patches (h, w) of a picture of ``size``, by the model's own patch size; None where it does not say."""
    patches = getattr(getattr(model, "patch_embed", None), "patch_size", None)
    patch = _pair(patches or getattr(_vision_config(model), "patch_size", None) or getattr(model, "patch_size", None))
    return None if patch is None else (size[0] // patch[0], size[1] // patch[1])


def _vision_config(model: nn.Module) -> Any:
    """The config of a model of transformers, of its vision part where it has several; None of other models."""
    config = getattr(model, "config", None)
    return getattr(config, "vision_config", None) or config


def _pair(value: Any) -> Size | None:
    if isinstance(value, int):
        return value, value
    is_pair = isinstance(value, tuple | list) and len(value) == 2 and all(isinstance(side, int) for side in value)
    return (value[0], value[1]) if is_pair else None
