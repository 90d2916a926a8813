"""The table of the README: each system with its main score, the published one, and one sentence of what to know.

Every number in it, also in its sentences, is read from docs/results or from the published tables of the families.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from saccade.recorded import Measured, RecordedRun, measure
from saccade.tasks.published import published_rows
from saccade.verbs.plain_table import PlainTable

Figure = tuple[str, str]
"""A cell and a score: the name of its records up to ``-seed``, and a metric in them."""

COLUMNS = ("system", "task and score, %", "measured", "published", "what to know")
NOTE = (
    "Measured: mean of the seeds ± standard deviation; below it, seeds × test examples. In brackets: published under "
    "other conditions, given for context."
)


@dataclass(frozen=True)
class Row:
    """One system."""

    label: str
    task: str
    main: Figure
    sentence: str
    """With ``{name}`` for each of ``figures`` and ``published``, which are put in as percentages."""
    figures: Mapping[str, Figure] = field(default_factory=dict)
    published: tuple[str, str, str] | None = None
    """Family, system and data set of the paper's row for ``main``."""
    is_comparable: bool = True
    """Whether the paper's number was made under the same conditions."""
    published_figures: Mapping[str, tuple[str, str, str, str]] = field(default_factory=dict)
    """Like ``figures``: family, system, data set and metric."""


_CTX = "hattnet-ctx-mref-authors-merged-authors-drawing"
_SPARSE = "hattnet-ctx-sparse-mref-unlimited-both-drawing"
_STRENGTH = "true_positive_strength"

ROWS = (
    Row(
        "HAttNet-CTX, Seo et al. 2016",
        "colour of the digit asked for (MREF): accuracy",
        (_CTX, "accuracy"),
        "Answers a little less often than published, and lays {here} % of its map on the digit, not {there} %: Table "
        "1b does not reproduce.",
        {"here": (_CTX, _STRENGTH)},
        ("question", "hattnet-ctx", "mref"),
        published_figures={"there": ("question", "hattnet-ctx", "mref", _STRENGTH)},
    ),
    Row(
        "HAttNet-CTX with our sparse gates",
        "the same, on fresh scenes",
        (_SPARSE, "accuracy"),
        "Lays {here} % of its map on the digit; an even map lays {even} % there.",
        {"here": (_SPARSE, _STRENGTH), "even": (f"{_SPARSE}|uniform", _STRENGTH)},
    ),
    Row(
        "STN, bounded window",
        "the same, on fresh scenes",
        ("stn-mref-unlimited", "accuracy"),
        "Worse than a model that never hears the question ({blind} %); our tuned STN has {tuned} %.",
        {"blind": ("blind-mref-unlimited", "accuracy"), "tuned": ("stn-tuned-mref-unlimited", "accuracy")},
        ("question", "stn", "mref"),
        is_comparable=False,
    ),
    Row(
        "HSAL-RL, Welleck et al. 2017",
        "all digits of a picture (MNIST multisets): exact match",
        ("hsal-plain-mnist-multiset-authors", "exact_match"),
        "Ours has a small backbone at 100 px, not an ImageNet ResNet-34 at 224 px. On fresh scenes our improved one "
        "has {improved} %, a counter without attention {counter} %: attention is not needed here.",
        {
            "improved": ("hsal-mnist-multiset-unlimited", "exact_match"),
            "counter": ("counts-mnist-multiset-unlimited", "exact_match"),
        },
        ("multiset", "hsal", "mnist-multiset"),
        is_comparable=False,
    ),
    Row(
        "Show, Attend and Tell, soft, Xu et al. 2015",
        "captions of photographs (Flickr8k): BLEU-4",
        ("sat-soft-tuned-flickr8k-dev", "bleu_4_nobp"),
        "Ours trains an EfficientNet-Lite0 and is scored on dev pictures; without attention it has {none} %, with the "
        "paper's frozen VGG-19 {paper} %; the shipped 8 MB model has {shipped} %.",
        {
            "none": ("sat-none-tuned-flickr8k-dev", "bleu_4_nobp"),
            "paper": ("sat-soft-paper-flickr8k-dev", "bleu_4_nobp"),
            "shipped": ("sat-soft-photos-flickr8k-dev", "bleu_4_nobp"),
        },
        ("caption", "sat-soft", "flickr8k"),
        is_comparable=False,
    ),
    Row(
        "MemN2N, Sukhbaatar et al. 2015",
        "questions about stories (bAbI, 1,000 a task): mean error",
        ("memn2n-babi-joint-1k", "mean_error"),
        "Best of ten restarts, as in the paper; with 10,000 questions a task {more} %, published: {more_published} %; "
        "our training file of task 3 is generated.",
        {"more": ("memn2n-babi-task-10k", "mean_error")},
        ("story", "memn2n", "babi-joint-1k"),
        published_figures={"more_published": ("story", "memn2n", "babi-task-10k", "mean_error")},
    ),
    Row(
        "DMN, Kumar et al. 2016",
        "the same",
        ("dmn-128-babi-joint-1k", "mean_error"),
        "Ours learns all tasks together and reads in both directions; trained task by task it errs more, {task} %.",
        {"task": ("dmn-babi-task-1k", "mean_error")},
        ("story", "dmn", "babi-task-1k"),
        is_comparable=False,
    ),
    Row(
        "Residual attention, Wang et al. 2017",
        "labels (CIFAR-10): accuracy",
        ("ran-56-cifar10-full", "accuracy"),
        "By a schedule of our own. A residual network of its size without attention, trained alike, has {plain} %; the "
        "masks are almost flat.",
        {"plain": ("resnet-56-cifar10-full", "accuracy")},
        ("classify", "ran-56", "cifar10"),
    ),
    Row(
        "RA-CNN, Fu et al. 2017",
        "labels (generated fine details): accuracy",
        ("racnn-details-unlimited", "accuracy"),
        "Crops in the middle give {middle} %: the learned zoom does the work. On birds, which the paper uses, it has "
        "{birds} %, crops in the middle {birds_middle} %: one run, and chance can explain the gain.",
        {
            "middle": ("racnn-centre-details-unlimited", "accuracy"),
            "birds": ("racnn-cub", "accuracy"),
            "birds_middle": ("racnn-centre-cub", "accuracy"),
        },
    ),
)


def systems_table(runs: Sequence[RecordedRun], rows: Sequence[Row] = ROWS) -> PlainTable:
    """One line a system."""
    return PlainTable("", COLUMNS, [_line(row, runs) for row in rows], NOTE)


def _line(row: Row, runs: Sequence[RecordedRun]) -> list[str]:
    held = _measured(row.main, runs)
    spread = "" if held.std is None else f" ± {100 * held.std:.1f}"
    measured = f"{_percent(held.mean)}{spread}\n{len(held.seeds)} × {held.n:,}"
    published = "–"
    if row.published is not None:
        published = _percent(_published((*row.published, row.main[1])))
        published = published if row.is_comparable else f"({published})"
    numbers = {name: _percent(_measured(figure, runs).mean) for name, figure in row.figures.items()}
    numbers |= {name: _percent(_published(key)) for name, key in row.published_figures.items()}
    return [row.label, row.task, measured, published, row.sentence.format(**numbers)]


def _measured(figure: Figure, runs: Sequence[RecordedRun]) -> Measured:
    """The mean over the seeds of a cell; ``CELL|BASELINE`` is a baseline of it."""
    name, metric = figure
    cell, _, baseline = name.partition("|")
    found = measure((run for run in runs if run.name.rpartition("-seed")[0] == cell), metric, of=baseline or None)
    if found is None:
        raise SystemExit(f"docs/results has no {metric} of {name}, which the table of the README shows")
    return found


def _published(key: tuple[str, str, str, str]) -> float:
    family, system, data, metric = key
    return published_rows(family)[system, data].metrics[metric]


def _percent(value: float) -> str:
    return f"{100 * value:.1f}"
