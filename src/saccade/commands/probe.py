"""``probe``: heads compared on the features of a frozen backbone, with one's own labelled pictures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from saccade.commands.verb import Command, Remark, checked, print_table, say
from saccade.config import Within

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
    ask: Sequence[str] | None = None,
    splits: Annotated[int, Within(3, 20)] = 5,
    seeds: Annotated[int, Within(1, 20)] = 3,
    steps: Annotated[int | None, Within(1)] = None,
    epochs: Annotated[int | None, Within(1)] = None,
    batch_size: Annotated[int, Within(1)] = 64,
    untrained: bool = False,
    evidence_weight: float = 0.0,
    offline: bool = False,
    on_progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> Probe:
    """Find out whether attention is worth it on your own pictures.

    It trains small heads on a frozen backbone and compares them with a linear one. It writes a model folder for look,
    serve and export, a page with the verdict, and results.json. A backbone features:FOLDER has no network, so the head
    is written in place of a model.

    Args:
        data: folder of class folders, a table, or READER:PATH.
        out: folder for the model, the page and results.json. It must be new or empty, or hold the same probe.
        backbone: mobilenetv2, compact …, timm:NAME, hf:NAME, features:FOLDER. 'saccade list backbones' has all names.
        through: last stage of the backbone. None: all stages.
        size: side of the network input in pixels.
        heads: heads to compare with linear. The linear head is always among them. None: all of them.
        keep: head of the model. None: the attention head best on validation.
        ask: questions to probe, of data that has some. None: all of them.
        splits: splits of the pictures.
        seeds: trainings in each split.
        steps: batches to learn from. None: 10 epochs, at least 150.
        epochs: or how often to see all pictures. None: see ``steps``.
        batch_size: pictures in a batch.
        untrained: random weights, as a control. A backbone without published weights has no others.
        evidence_weight: teach attention heads to look at boxes and masks, with this weight.
        offline: fetch no weights from the hubs of timm and transformers.
        on_progress: called with what is going on, how far it is, and how far it goes.

    Returns:
        The verdict, the scores of every head (``results``), and the folder. ``saccade.load(result.folder)`` is the
        model.

    Example:
        >>> print(saccade.probe("photos/", out="runs/probe").verdict)  # doctest: +SKIP
    """
    given = dict(locals())
    from saccade.probing.heads import Plan
    from saccade.probing.probe import probe_pictures

    plan = Plan(**{part.name: given[part.name] for part in fields(Plan) if part.name in given})
    return probe_pictures(str(data), plan, out, ask=ask, offline=offline, on_progress=on_progress)


def show(written: Probe, given: Mapping[str, Any], remark: Remark) -> None:
    """Print the rivals and the verdict."""
    from saccade.probing.probe import HEAD

    rows = [
        (
            row.title,
            f"{100 * row.score.mean:.1f} ± {100 * row.score.half:.1f}",
            "" if row.difference is None else f"{100 * row.difference.mean:+.1f} ± {100 * row.difference.half:.1f}",
        )
        for row in written.result.trials.values()
    ]
    title = f"{given['backbone']} on {written.results['data']}, test accuracy in %"
    print_table(title, ("rival", "accuracy", "less linear"), rows)
    say(written.verdict)
    if written.results["data"] != given["data"]:
        remark(f"{given['data']} is read as {written.results['data']}")
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
