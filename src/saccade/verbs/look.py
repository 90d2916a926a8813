"""``look``: ask a model about pictures or stories and see where it looked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, overload

from saccade.checks import check_numbers, check_reals

if TYPE_CHECKING:
    from saccade.errors import DataError
    from saccade.families.responder import Question
    from saccade.sighting import Sighting


class LookOptions(TypedDict, total=False):
    """What may be said of a look besides what is looked at and asked; see :func:`look`."""

    model: str | Path
    out: str | Path | None
    filmstrip: bool | None
    cells: bool
    parquet: bool
    beam: int | None
    captions: int | None
    length_penalty: float | None
    layers: str | Sequence[int] | None
    rollout: bool | None
    batch_size: int
    offline: bool
    device: str
    on_bad: Callable[[Any, DataError], None] | None


@overload
def look(
    sources: list[Any] | tuple[Any, ...], ask: Question | None = None, **options: Unpack[LookOptions]
) -> list[Sighting]: ...


@overload
def look(sources: str | Path | Any, ask: Question | None = None, **options: Unpack[LookOptions]) -> Sighting: ...


def look(
    sources: str | Path | Any,
    ask: Question | None = None,
    *,
    model: str | Path = "soft-mref",
    out: str | Path | None = None,
    filmstrip: bool | None = None,
    cells: bool = False,
    parquet: bool = False,
    beam: int | None = None,
    captions: int | None = None,
    length_penalty: float | None = None,
    layers: str | Sequence[int] | None = None,
    rollout: bool | None = None,
    batch_size: int = 32,
    offline: bool = False,
    device: str = "auto",
    on_bad: Callable[[Any, DataError], None] | None = None,
) -> Sighting | list[Sighting]:
    """Ask a model about pictures or stories, and see where it looked.

    A model that takes no question needs no ``ask``. timm:NAME and hf:NAME are vision transformers of other libraries
    with their published weights: the heads of the last layer show what its class token, or its pooling head, looked at.
    One without a classifier gives no answer. For more pictures than fit into memory there are ``look_many`` of
    ``saccade.load(model)``, and ``saccade.look_folder``, which writes rows to Parquet.

    Args:
        sources: pictures or stories (.txt), folders of them, or globs. In Python one picture or a list: paths, bytes,
            PIL images, arrays, tensors. Folders and globs stand in a list.
        ask: the question. One that the model knows; of a story, any. None: none.
        model: zoo name, folder, hf://…, timm:NAME or hf:NAME. hf://USER/NAME is a model folder that somebody shares on
            the hub.
        out: folder to write to. Each picture gets its looks (PNG) and a record (JSON + safetensors), and several get a
            table, looks.csv. None: nothing is written.
        filmstrip: save every look side by side, or one overlay. None: by the kind of answer. Captions, multisets, masks
            that add and nested crops are saved as filmstrips.
        cells: in a filmstrip, the model's cells as they are.
        parquet: with ``out``, the table as looks.parquet too.
        beam: captions followed side by side. 1 is greedy. None: 5.
        captions: captions of each picture. None: 1.
        length_penalty: captions are ranked by log p / length^this. None: 0.
        layers: of timm:NAME and hf:NAME: last, all, or numbers such as 1,6,12. None: last.
        rollout: of these, attention rollout too. It is derived from the attention; the model does not use it. None:
            off.
        batch_size: how many go through the model together.
        offline: fetch no weights from the hubs of timm and transformers.
        device: where to compute: auto, cpu, cuda, cuda:N or mps.
        on_bad: called with a source that cannot be read and its error, and the rest goes on. None: the error is raised.

    Returns:
        Of one picture what was seen; of a list a list, in order.

    Raises:
        CheckpointError: there is no such model.
        DataError: a source cannot be read, or the model does not know the question.
        ConfigError: an option is not for this model.
        OutputError: ``out`` cannot be written.

    Example:
        >>> seen = saccade.look("scene.png", ask=7)              # doctest: +SKIP
        >>> seen.answer, seen.confidence, seen.looked_at         # doctest: +SKIP
        >>> saccade.look(["photos/"], model="crown-cub")         # doctest: +SKIP
    """
    from saccade.verbs.looking.stream import expanded, stream_looks

    check_numbers(least=1, batch_size=batch_size, beam=beam, captions=captions)
    check_reals(length_penalty=length_penalty)
    if offline:
        from saccade.backbones.hub import work_offline

        work_offline()
    from saccade.predict import load

    predictor = load(model, device)
    is_list = isinstance(sources, (list, tuple))
    several: Sequence[Any] = sources if isinstance(sources, (list, tuple)) else [sources]
    seen = stream_looks(
        predictor,
        expanded(predictor, several, may_be_several=is_list),
        ask,
        out=None if out is None else Path(out),
        filmstrip=filmstrip,
        cells=cells,
        parquet=parquet,
        batch_size=batch_size,
        on_bad=on_bad,
        beam=beam,
        captions=captions,
        length_penalty=length_penalty,
        layers=layers,
        rollout=rollout,
    )
    return list(seen) if is_list else next(iter(seen))
