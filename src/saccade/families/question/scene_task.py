"""Query-guided attributes: a picture and a query in, one answer out ("what colour is the 7?").

The training side: batches as a function of their number alone, the loss, the quick validation, the model folder.
The scoring side is :mod:`saccade.families.question.scene_scores`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from saccade.config import from_dict
from saccade.data.examples import Example, seen_masks
from saccade.data.pictures.augment import augment
from saccade.data.scenes.drawing import drawing_of
from saccade.data.scenes.glyphs import pack_if_missing
from saccade.data.scenes.hashing import derive_seed
from saccade.data.scenes.kernels import renderer_description
from saccade.data.scenes.layout import SceneLayout
from saccade.data.tables.splits import Split
from saccade.errors import ConfigError
from saccade.families.question.scenes import SPEC, SceneBatch, SceneData, SceneDataConfig
from saccade.families.question.scores import SceneScoring
from saccade.families.question.task import Loss, QuestionTask
from saccade.geometry import Size
from saccade.metrics.result import Evaluation, evaluation
from saccade.models.base import QueryModel
from saccade.models.facts import ModelFacts
from saccade.tasks.data_parts import Entries, glyph_entries, photograph_entries
from saccade.tasks.evaluate import Progress, evaluate
from saccade.tasks.picture_task import filled_in
from saccade.tasks.task import OpenedSplit, config_of

FEW = "the nine photographs that ship: enough to try things out, too few to compare with any table"
"""Said of a run on MBG that had no others, in its log, its card and the tables."""


_NOT_NOTED = (("drawing", '"blend"'), ("planted", '"none"'), ("absent", "0.0"))


class SceneTask(QuestionTask):
    """Trains one attribute model on generated scenes.

    Args:
        model: name of the model, as its family declares it.
        model_config: settings of the model.
        data: settings of :class:`SceneDataConfig` (name, glyphs, seed of the scenes).
        protocol: sizes and splits; overrides that of ``data``.
        seed: of the weights, of the order of a finite training set, and of fresh training scenes. Validation and test
            scenes do not depend on it, so that runs with different seeds are scored on the same pictures.
    """

    data_settings = SceneDataConfig

    @classmethod
    def configure(cls, settings: Mapping[str, Any], protocol: str | None = None) -> SceneDataConfig:
        """The protocol of a recipe overrides that of its data."""
        return from_dict(SceneDataConfig, dict(settings) | ({"protocol": protocol} if protocol else {}), where="data")

    @classmethod
    def read(cls, config: Any) -> None:
        """Scenes are drawn."""
        return None

    def model_settings(self, model_config: Mapping[str, object]) -> dict[str, Any]:
        """With questions for digits that are absent there is one answer more."""
        decided = {"answers": len(self.data_config.answers)} if self.data_config.absent else {}
        return filled_in(model_config, decided, "the data")

    def network_size(self) -> Size:
        """That of the scenes."""
        side = SPEC.size
        return side, side

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.protocol = str(self.data_config.protocol)

    def summary(self) -> str:
        """The photographs behind the digits, the drawing if it is not saccade's own, and what makes scenes on a GPU.

        The photographs that ship are too few to conclude anything from. A first scene shows whether the kernels build.
        """
        told = [f"{name}: {value}" for name, value in self.training_notes().items()]
        if self.data_config.drawing != "blend":
            told.append(f"drawing: {self.data_config.drawing}")
        if self.device.type == "cuda":
            self.split("train").stream.scenes(torch.zeros(1, dtype=torch.int64))
            told.append(f"scenes are made on {self.device} by {renderer_description(self.device, self.size[0])}")
        return "; ".join(told)

    def training_notes(self) -> dict[str, str]:
        """The photographs behind the training scenes, by name."""
        taught = super().training_notes()
        if self.data_config.name != "mbg":
            return taught
        name = str(self.split("train").backgrounds)
        return {"photographs": f"{name} ({FEW})" if name.startswith("shipped-") else name, **taught}

    def extra_data_parts(self) -> dict[str, Entries]:
        """The glyphs of the scenes, and the photographs behind them."""
        config = self.data_config
        found = {"glyphs": glyph_entries(config.glyphs)}
        if config.name == "mbg":
            found["backgrounds"] = photograph_entries(config.backgrounds, self.on_progress)
        return found

    def data_parts(self) -> dict[str, Entries]:
        """All that a run learns from; what older runs did not note is left out where it is as it was then."""
        parts = super().data_parts()
        return {**parts, "settings": [entry for entry in parts["settings"] if entry not in _NOT_NOTED]}

    def make_split(self, name: str) -> SceneData:
        """One split of the scenes, on the device; fresh training scenes are drawn anew for each seed."""
        config = self.data_config
        if name == "train" and config.protocol == "unlimited":
            config = replace(config, seed=config.seed + self.seed)
        return SceneData(config, cast(Split, name), device=self.device)

    def checked_loss(self, loss: Loss, data: str) -> Loss:
        """Any loss, but that evidence of scenes does not follow pictures that are varied."""
        if loss.evidence_weight and self.data_config.augment is not None:
            raise ConfigError(
                "loss: evidence_weight: the evidence of scenes is not varied with them; data.augment=null"
            )
        return super().checked_loss(loss, data)

    @property
    def asks(self) -> int:
        """Questions about each fresh scene; a finite set has its questions one by one."""
        return self.data_config.asks if self.data_config.protocol == "unlimited" else 1

    def training_batch(self, data: SceneData, indices: Tensor, number: int) -> SceneBatch:
        """The triples ``indices`` (B,); of fresh scenes, each picture once for all that is asked of it.

        Those of a finite set are varied if the settings say how; their layouts are not, which training does not see.
        """
        asks = self.data_config.asks if data.size is None else 1
        if len(indices) % asks:
            raise ConfigError(f"a batch of {len(indices)} cannot be split into scenes that are asked {asks} times each")
        made = data.take(indices, together=asks)
        if data.size is not None and self.data_config.augment is not None:
            varied, _ = augment(made.images, self.data_config.augment, derive_seed(self.seed, number))
            return replace(made, images=varied)
        if asks == 1:
            return made
        return replace(made, images=made.images.contiguous(memory_format=torch.channels_last))

    def distinct_numbers(self, data: SceneData, count: int) -> Tensor:
        """One triple of each scene."""
        return data.one_per_scene(count)

    @classmethod
    def evaluate(  # type: ignore[override]
        cls,
        model: nn.Module,
        data: Mapping[str, object],
        split: str,
        *,
        facts: ModelFacts | None = None,
        limit: int | None = None,
        sweeps: int = 200,
        twins: int = 100,
        allow_pack: bool = False,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> Evaluation:
        """Every score of ``model`` on a split, as plain numbers; see ``saccade.commands.evaluate``.

        All are of questions for digits that are there. A model that learned to say that one is not there is also asked
        for digits that are not: ``accuracy_absent``.
        """
        config = from_dict(SceneDataConfig, data, where="data")
        device = next(model.parameters()).device
        chosen, absent = (
            SceneData(replace(config, absent=share), cast(Split, split), device=device, allow_pack=allow_pack)
            for share in (0.0, 1.0)
        )
        scoring = SceneScoring(
            cast(QueryModel, model),
            chosen,
            limit=limit,
            sweeps=sweeps,
            twins=twins,
            absent=absent if config.absent else None,
        )
        return evaluation(
            evaluate(scoring, progress),
            data=config.name,
            split=split,
            glyphs=chosen.glyphs.name,
            backgrounds=chosen.backgrounds,
            drawing=config.drawing,
            protocol=config.protocol,
            seed=config.seed,
        )

    @classmethod
    def open_split(
        cls,
        settings: Mapping[str, Any],
        split: Split,
        *,
        facts: ModelFacts | None = None,
        count: int | None = None,
        progress: Progress | None = None,
    ) -> OpenedSplit:
        """Generated scenes, each with its first question; for a model's own look, they do without MNIST."""
        settings, remark = (settings, "") if facts is None else pack_if_missing(settings, split)
        scenes = SceneData(config_of(SceneDataConfig, settings), split, allow_pack=True)
        return OpenedSplit(lambda many: scene_examples(scenes, many), remark)

    @classmethod
    def write_split(
        cls,
        settings: Mapping[str, object],
        split: Split,
        count: int,
        out: Path,
        *,
        start: int = 0,
        progress: Progress | None = None,
    ) -> Path:
        """Write scenes as PNGs and ``scenes.jsonl``.

        Each line holds file, seed, split, index, glyphs, background, drawing and objects (class, colour, rgb, box,
        scale).
        """
        config = config_of(SceneDataConfig, settings)
        stream = SceneData(config, split, allow_pack=True).stream
        material = {"glyphs": stream.glyphs.name, "background": stream.spec.background.name}

        def facts(layout: SceneLayout, scene: int, file: str) -> dict[str, object]:
            index = int(layout.index[scene])
            named = {"file": file, "seed": config.seed, "split": split, "index": index}
            drawn = {"drawing": drawing_of(config.drawing, index), "objects": layout[scene : scene + 1].facts()[0]}
            return {**named, **material, **drawn}

        what = f"{config.name} {split} ({config.protocol})"
        return stream.write_scenes(facts, what, range(start, start + count), Path(out), progress)


def scene_examples(data: SceneData, count: int) -> list[Example]:
    """The first ``count`` scenes, each with its first question."""
    batch = data.take(data.one_per_scene(count))
    asked = zip(batch.query.tolist(), batch.label.tolist())
    return [
        Example(image, data.answers[label], seen_masks(mask[None]), data.queries[query])
        for image, mask, (query, label) in zip(batch.images, batch.evidence(), asked)
    ]
