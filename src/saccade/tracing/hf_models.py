"""Published transformers of the transformers library (extra ``transformers``), by their name on the hub or a folder.

Weights are read from safetensors alone: a pickle can run code. No code comes from the hub.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch

from saccade.backbones.hub import from_hub
from saccade.errors import ConfigError, DataError, MissingExtraError, SaccadeError
from saccade.tracing.model_facts import input_size
from saccade.tracing.published import Published, distinct, numbered


def hf_published(name: str) -> Published:
    """The model ``name`` with its weights; a DataError within seconds where they cannot be had."""
    if not name:
        raise ConfigError("hf: needs the name of a model, such as hf:google/vit-base-patch16-224, or hf:FOLDER")
    library = _transformers()
    is_folder = Path(name).is_dir()
    with nullcontext() if is_folder else from_hub(f"the weights of hf:{name}"):
        try:
            config, network, scaling = _load(library, name, is_folder)
        except (OSError, ValueError, KeyError, ImportError, RuntimeError) as error:
            said = str(error).strip().partition("\n")[0]
            raise DataError(f"hf:{name} cannot be loaded ({said}); name a vision model with safetensors") from error
    size = input_size(network)
    mean, std = scaling.get("image_mean"), scaling.get("image_std")
    if size is None or mean is None or std is None:
        lacking = "the size of its input" if size is None else "its colours (no preprocessor_config.json)"
        raise ConfigError(
            f"hf:{name} does not say {lacking}; in Python trace_of takes its tensor, or size=, mean=, std="
        )
    return Published(network, f"hf:{name}", size, tuple(mean), tuple(std), classes=_classes(config, network))


def _load(library: Any, name: str, is_folder: bool) -> tuple[Any, Any, dict[str, Any]]:
    """Config, network and how pictures are scaled."""
    config = library.AutoConfig.from_pretrained(name, local_files_only=is_folder)
    is_classifier = any("ForImageClassification" in each for each in config.architectures or ())
    auto = library.AutoModelForImageClassification if is_classifier else library.AutoModel
    with _without_bars(library.utils.logging):
        network = auto.from_pretrained(
            name, config=config, use_safetensors=True, dtype=torch.float32, local_files_only=is_folder
        )
    processing = importlib.import_module("transformers.image_processing_base").ImageProcessingMixin
    try:
        scaling, _ = processing.get_image_processor_dict(name, local_files_only=is_folder)
    except OSError:
        scaling = {}
    return config, network, scaling


@contextmanager
def _without_bars(logging: Any) -> Iterator[None]:
    """Load without the library's own progress bars, which would stand between ours."""
    was_on = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if was_on:
            logging.enable_progress_bar()


def _transformers() -> object:
    try:
        library = importlib.import_module("transformers")
        library.AutoModel  # noqa: B018 - its parts load late, and may not
        return library
    except SaccadeError:
        raise
    except ModuleNotFoundError as error:
        found = "it is not installed" if error.name == "transformers" else f"transformers does not load ({error})"
        raise MissingExtraError("a model of transformers", "transformers", found) from error
    except (ImportError, RuntimeError) as error:
        found = f"transformers does not load ({error})"
        raise MissingExtraError("a model of transformers", "transformers", found) from error


def _classes(config: Any, network: Any) -> tuple[str, ...]:
    """Names of its classes, by number; none of a model without a head."""
    if not type(network).__name__.endswith("ForImageClassification"):
        return ()
    words = [str(config.id2label.get(number, "")) for number in range(config.num_labels)]
    if all(word in ("", f"LABEL_{number}") for number, word in enumerate(words)):
        return numbered(config.num_labels)
    return distinct([word.split(",")[0] or f"class {number}" for number, word in enumerate(words)])
