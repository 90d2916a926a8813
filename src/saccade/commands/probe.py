"""``probe``: heads compared on the features of a frozen backbone, with one's own labelled pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from saccade.commands.verb import Command, Remark, checked, print_table, say
from saccade.config import Within
from saccade.progress import OnProgress, no_progress

if TYPE_CHECKING:
    from saccade.probing.probe import Probe


@checked
def probe(
    data: str | Path,
    *,
    out: Path | str,
    backbone: str = "mobilenetv2",
    through: str | None = None,
    size: Annotated[int, Within(16, 1024)] = 224,
    heads: Sequence[str] | None = None,
    keep: str | None = None,
    grid: bool = False,
    shots: bool = False,
    ask: Sequence[str] | None = None,
    splits: Annotated[int, Within(3, 20)] = 5,
    seeds: Annotated[int, Within(1, 20)] = 3,
    steps: Annotated[int | None, Within(1)] = None,
    epochs: Annotated[int | None, Within(1)] = None,
    batch_size: Annotated[int, Within(1)] = 64,
    untrained: bool = False,
    evidence_weight: float = 0.0,
    device: str = "auto",
    offline: bool = False,
    on_progress: OnProgress = no_progress,
) -> Probe:
    """Find out whether attention is worth it on your own pictures.

    It trains small heads on a frozen backbone and compares them with a linear one. It writes a model folder for look,
    serve and export, a page with the verdict, and results.json. By default it compares one attention head and one
    pyramid with few settings. A backbone features:FOLDER has no network, so the head is written in place of a model.

    Args:
        data: folder of class folders, a table, or READER:PATH.
        out: folder for the model, the page and results.json. It must be new or empty, or hold the same probe.
        backbone: mobilenetv2, compact …, timm:NAME, hf:NAME, features:FOLDER. 'saccade list backbones' has all names.
        through: last stage of the backbone. None: all stages.
        size: side of the network input in pixels.
        heads: heads to compare with linear. None: cross and pyramid.
        keep: head of the model. None: the attention head best on validation.
        grid: compare all heads, over 8 settings each. It takes several times as long.
        shots: also train on 1, 2, 5 and 10 pictures of each class.
        ask: questions to probe, of data that has some. None: all of them.
        splits: splits of the pictures.
        seeds: trainings in each split.
        steps: batches to train on. None: 10 epochs, at least 150.
        epochs: or passes over all pictures. None: see ``steps``.
        batch_size: pictures in a batch.
        untrained: random weights, as a control. A backbone without published weights has no others.
        evidence_weight: teach attention heads to look at boxes and masks, with this weight.
        device: where to compute: auto, cpu, cuda, cuda:N or mps.
        offline: fetch no weights from the hubs of timm and transformers.
        on_progress: called with the present part, the share of all work done, and 1.

    Returns:
        The verdict, the scores of every head (``results``), and the folder. ``saccade.load(result.folder)`` is the
        model.

    Example:
        >>> print(saccade.probe("photos/", out="runs/probe").verdict)  # doctest: +SKIP
    """
    arguments = dict(locals())
    from saccade.probing.folder import check_folder
    from saccade.probing.plan import Plan
    from saccade.probing.probe import Probe

    learner = Probe(**{part.name: arguments[part.name] for part in fields(Plan) if part.name in arguments})
    check_folder(Path(out), learner.described(data, ask))  # before it works for minutes
    return learner.fit(data, ask=ask, on_progress=on_progress).save(out)


def show(written: Probe, arguments: Mapping[str, Any], remark: Remark) -> None:
    """Print the rivals and the verdict."""
    from saccade.probing.folder import HEAD

    rows = [
        (
            row.title,
            row.score.percent(),
            "" if row.difference is None else row.difference.percent(signed=True),
        )
        for row in written.result.trials.values()
    ]
    title = f"{arguments['backbone']} on {written.results['data']}: test accuracy in % (95 % interval)"
    print_table(title, ("rival", "accuracy", "less linear"), rows)
    say(written.verdict)
    if written.results["data"] != arguments["data"]:
        remark(f"{arguments['data']} is read as {written.results['data']}")
    for text in written.pictures.remarks:
        remark(text)
    head = written.folder / HEAD
    remark(f"wrote {written.report} and " + (f"the head {head}" if head.is_file() else f"the model {written.folder}"))


COMMAND = Command(
    probe,
    show,
    names={"out": "-o"},
    commas=frozenset({"heads", "ask"}),
    words={"data": "DATA"},
    example="saccade probe --data photos/ --out runs/probe",
)
