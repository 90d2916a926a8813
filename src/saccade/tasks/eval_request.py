"""What a model is scored on: its own data, with the changes that the evaluation asks for."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from saccade.errors import ConfigError
from saccade.models.facts import ModelFacts


@dataclass(frozen=True)
class EvalRequest:
    """What an evaluation is asked to be made on; None: as the model was trained."""

    data: str | None = None
    protocol: str | None = None
    glyphs: str | None = None
    drawing: str | None = None
    seed: int = 0
    allow_pack: bool = True


def requested_settings(facts: ModelFacts, request: EvalRequest, readers: Collection[str]) -> dict[str, object]:
    """Settings of the data that a model is scored on: its own, with what ``request`` asks for in their place.

    Raises:
        ConfigError: the model was trained on files, which it does not remember, or a protocol or a drawing is named.
    """
    own = facts.data.get("name", "")
    if request.data is None and own in readers:
        raise ConfigError(f"a model does not store where its data is; give `data={own}:PATH`")
    if named := [name for name in ("protocol", "drawing") if getattr(request, name) is not None]:
        raise ConfigError(f"{' and '.join(named)}: a {facts.family} model has no choice of these; leave it out")
    changes = {"name": request.data, "glyphs": request.glyphs, "seed": request.seed}
    settings = {**facts.data, **{key: value for key, value in changes.items() if value is not None}}
    if settings["name"].partition(":")[0] != own.partition(":")[0]:
        settings.pop("options", None)  # other pictures have other options
    return settings
