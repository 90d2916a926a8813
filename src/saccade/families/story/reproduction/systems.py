"""The systems in the tables of memory networks: how each is trained, and how they differ from the papers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """A system of the tables."""

    system: str
    label: str
    recipe: str = ""
    """What trains it; empty for a system that is not built here."""
    changes: tuple[str, ...] = ()
    """``key=value`` in which it differs from the recipe."""
    protocols: tuple[str, ...] = ()
    """How it is trained; empty: as its published rows say."""


_LARGE = ("model.config.size=128", "model.config.embedding=96", "data.memory=130", "phases.0.epochs=60")

ROWS = (
    Row("memn2n-bow", "MemN2N, bags of words", "memn2n-bow"),
    Row("memn2n-pe", "MemN2N PE", "memn2n-pe"),
    Row("memn2n-ls", "MemN2N PE LS", "memn2n-ls"),
    Row("memn2n", "MemN2N PE LS RN", "memn2n"),
    Row("memn2n-ls-1hop", "MemN2N PE LS, 1 hop", "memn2n-ls", ("model.config.hops=1",)),
    Row("memn2n-ls-2hops", "MemN2N PE LS, 2 hops", "memn2n-ls", ("model.config.hops=2",)),
    Row("memn2n-lw", "MemN2N PE LS LW", "memn2n-lw"),
    Row("dmn", "DMN, supervised", "dmn", protocols=("task", "joint")),
    Row("dmn-128", "DMN, supervised, 128 units", "dmn", _LARGE),
    Row("dmn-weak", "DMN, weakly supervised", "dmn-weak", protocols=("task",)),
    Row("story-lstm", "LSTM", "story-lstm"),
    Row("memnn", "context: MemNN, supervised"),
    Row("memn2n-best", "context: MemN2N, best of all variants"),
    Row("dmn-plus", "context: DMN+"),
    Row("entnet", "context: EntNet"),
    Row("universal-transformer", "context: Universal Transformer"),
)
LEGEND = (
    "Errors in percent on the official test files of bAbI v1.2 (en), 1,000 questions of each task; in brackets the "
    "tasks with more than 5 % error. Kept: one of the restarts, chosen without the test files: of MemN2N the one with "
    "the lowest training error, as published; of the others the one with the best validation, at its best epoch. "
    "Mean: over all restarts at the end of training, with their standard deviation; restart r of a system that is "
    "trained task by task is restart r of every task. PE position encoding, LS linear start, RN random noise, LW "
    "layer-wise tying. Differences from the papers. MemN2N: the held-out tenth of the training questions is whole "
    "stories; every question is seen once in an epoch (the authors' code draws them with replacement); the loss is "
    "the mean over a batch, with learning rates and clipping scaled to give the same steps; a gradient is clipped by "
    "its Frobenius norm; linear start ends after a fixed number of epochs, as in the authors' code; the time of a "
    "sentence is a vector of its own; a tie in training error goes to the better validation; all 1,000 test questions "
    "count (the authors' code drops the last 8). DMN: embeddings begin at random, not at GloVe; the paper does not "
    "state its sizes; supervised means that the gates were taught the supporting facts. The supervised one reads each "
    "sentence by itself and then all of them in both directions, as DMN+ does, makes an episode a weighted sum of "
    "facts, and is trained on stories from which three in ten of the sentences that the answer does not need are left "
    "out; the published one is trained task by task. The weakly supervised one reads words in one run, as the paper "
    "does. LSTM: one run, untuned. The kept weights of MemN2N on all tasks are stored as float16, those of DMN on all "
    "tasks as int8. Some test questions are in the training file too, with the same story: "
    "they are bAbI's own (at 1k, 124 of task 4 and 118 of task 20). * The pack has no 10k "
    "training file of this task: its training questions were generated, so the mean of the other tasks is told too. "
    "Context rows are published numbers of systems that are not built here. Memory networks are far behind the best "
    "of today; what they have is hops that can be seen."
)
