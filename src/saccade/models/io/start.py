"""Starts from another model's weights: tensors that match by name and shape are loaded, the others stay as they are.

Use it to train a new head on a trained backbone, to continue with other answers, or to repeat a later phase of a
recipe.
"""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

from saccade.errors import ConfigError


def load_matching(model: nn.Module, weights: Mapping[str, Tensor], where: str) -> tuple[str, ...]:
    """Give ``model`` those of ``weights`` that fit it.

    Args:
        model: whatever it has begun with.
        weights: by the name of their place.
        where: what they come from, for messages.

    Returns:
        The places that keep what they had.

    Raises:
        ConfigError: no weight that can be learned fits.
    """
    places = model.state_dict()
    fitting = {
        name: weights[name] for name, own in places.items() if name in weights and weights[name].shape == own.shape
    }
    if not fitting.keys() & {name for name, _ in model.named_parameters()}:
        raise ConfigError(
            f"start: nothing of {where} fits this model, which has {_few(list(places))} where that has "
            f"{_few(list(weights))}; start from a model of the same kind and sizes"
        )
    model.load_state_dict(fitting, strict=False)
    return tuple(name for name in places if name not in fitting)


def _few(names: list[str]) -> str:
    return ", ".join(names[:2]) + (" …" if len(names) > 2 else "")
