"""What docs/stability.md promises: later files are refused, and what 0.1.0 documented can still be imported."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest
import torch

import saccade
from saccade.config import check_schema
from saccade.engine.checkpoint import FACTS, read_checkpoint
from saccade.engine.data_note import FILE, read_note
from saccade.engine.recipe import load_recipe
from saccade.errors import ConfigError, SaccadeError
from saccade.models.io.facts import InputsNote, read_facts
from saccade.scale.schema import METADATA, parse_metadata
from saccade.verbs.training.plan import read_runs
from tiny_models import save_tiny

DOCUMENTED = {
    "saccade": ("AttentionTrace", "SoftAttention", "load", "metrics", "score", "trace_of"),
    "saccade.attention": ("frame_of",),
    "saccade.attention.given": ("grid_of",),
    "saccade.attention.soft": ("SoftAttention", "soft_look"),
    "saccade.backbones": ("build_backbone",),
    "saccade.backbones.pretrained": ("load_imagenet",),
    "saccade.data.causal": ("read",),
    "saccade.data.pictures.feature_cache": ("FeatureCache",),
    "saccade.data.pictures.labelled": ("DrawnPictures", "LabelledBatch"),
    "saccade.data.pictures.reading": ("as_float",),
    "saccade.data.scenes.hashing": ("distinct_below", "hash_u32", "uniform_below"),
    "saccade.data.scenes.render": ("render",),
    "saccade.families.caption.data": ("CaptionData", "CaptionDataConfig"),
    "saccade.families.contract": ("DataEntry", "Family", "ModelSpec"),
    "saccade.families.multiset.data": ("MultisetData", "MultisetDataConfig"),
    "saccade.families.question.scenes.data": ("SceneData", "SceneDataConfig"),
    "saccade.families.question.tables.data": ("TableData", "TableDataConfig"),
    "saccade.families.reading": ("Reads",),
    "saccade.metrics.intervals": ("mean_interval",),
    "saccade.metrics.maps.baselines": ("uniform",),
    "saccade.metrics.maps.localisation": ("true_positive_strength",),
    "saccade.metrics.maps.scorer": ("MapScores",),
    "saccade.models.base": ("Given", "PictureModel", "Raw"),
    "saccade.models.io.folder": ("load_model", "save_model", "store_as"),
    "saccade.models.picture_query": ("AnswerHead", "act"),
    "saccade.scale": ("look", "read"),
    "saccade.show.contact_sheet": ("contact_sheet",),
    "saccade.show.overlay": ("overlay",),
    "saccade.tasks.label_task": ("LabelTask",),
    "saccade.trace": ("AttentionTrace", "Look"),
    "saccade.verbs.compare": ("side_by_side",),
    "saccade.zoo": ("resolve",),
}
"""What the guide, the notebooks and the examples of 0.1.0 import."""
RENAMED = {"read", "Reads", "PictureModel", "act"}


@pytest.mark.parametrize("module", DOCUMENTED)
def test_what_0_1_0_documented_can_be_imported(module: str) -> None:
    for name in DOCUMENTED[module]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert getattr(import_module(module), name) is not None
        told = [
            str(each.message) for each in caught if each.category is DeprecationWarning and name in str(each.message)
        ]
        is_renamed = name in RENAMED and module != "saccade.scale"
        assert len(told) == int(is_renamed), told


def newer_model(home: Path) -> object:
    folder = save_tiny(home / "model")
    change(folder / "config.json", schema_version=99)
    return read_facts(folder)


def newer_record(home: Path) -> object:
    predictor = saccade.load(save_tiny(home / "model"), "cpu")
    predictor.look(torch.zeros(3, 9, 9), ask=1).save(home / "records")
    (path,) = (home / "records").glob("*.json")
    change(path, schema_version=99)
    return saccade.read_record(path)


def newer_recipe(home: Path) -> object:
    (home / "own.yaml").write_text("extends: soft-mref\nschema_version: 99\n")
    return load_recipe(home / "own.yaml")


def newer_checkpoint(home: Path) -> object:
    (home / FACTS).write_text(json.dumps({"format": "saccade-checkpoint", "schema_version": 99}))
    return read_checkpoint(home)


def newer_data_note(home: Path) -> object:
    (home / FILE).write_text(json.dumps({"schema_version": 99, "accepted": [], "parts": {}}))
    return read_note(home)


def newer_runs(home: Path) -> object:
    (home / "runs.json").write_text(json.dumps({"schema_version": 99}))
    return read_runs(home)


def newer_rows(home: Path) -> object:
    return parse_metadata(
        {METADATA: json.dumps({"format": "saccade-looks", "schema_version": 99}).encode()}, "a.parquet"
    )


def newer_causal_set(home: Path) -> object:
    from saccade.data import read_causal_set

    (home / "causal.json").write_text(json.dumps({"format": 99}))
    return read_causal_set(home)


def newer_inputs(home: Path) -> object:
    try:
        return InputsNote("encoding", "scenes", "mref", 1, 1, sha256="", schema_version=99)
    except ValueError as error:  # read_facts makes it an error of the folder
        raise ConfigError(str(error)) from error


def newer_vocabulary(home: Path) -> object:
    from saccade.models.io.facts import VOCABULARY, _read_words

    (home / VOCABULARY).write_text(json.dumps({"schema_version": 99, "words": []}))
    return _read_words(home / VOCABULARY)


def change(path: Path, **values: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


@pytest.mark.parametrize(
    "read",
    [newer_model, newer_record, newer_recipe, newer_checkpoint, newer_data_note, newer_runs, newer_rows,
     newer_causal_set, newer_inputs, newer_vocabulary],
    ids=lambda read: read.__name__,
)  # fmt: skip
def test_every_reader_refuses_a_later_version(read: Callable[[Path], object], tmp_path: Path) -> None:
    """The error names the version that was found and the one that is read, and says what to do."""
    with pytest.raises(SaccadeError, match=r"99.*(?:upgrade it|update)"):
        read(tmp_path)


def test_a_version_of_today_and_earlier_ones_are_read() -> None:
    check_schema(1, 2, what="x")
    check_schema(2, 2, what="x")
    for wrong in (None, True, "2"):
        with pytest.raises(ConfigError, match="not a file that saccade wrote"):
            check_schema(wrong, 2, what="x")


def test_a_model_folder_of_schema_1_is_read(tmp_path: Path) -> None:
    folder = save_tiny(tmp_path / "model")
    values = json.loads((folder / "config.json").read_text())
    family = values.pop("family")
    (folder / "config.json").write_text(json.dumps(values | {"schema_version": 1, "task": "attribute"}))
    assert read_facts(folder).family == family
