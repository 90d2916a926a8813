"""Published errors on bAbI v1.2, as fractions, by (system, ``babi-PROTOCOL-SIZE``).

``task``: one model for each task. ``joint``: one model for all. Rows of systems that are not built here give context.
"""

from __future__ import annotations

from saccade.tasks.published import Published

SUKHBAATAR_2015 = "Sukhbaatar et al. 2015, arXiv:1503.08895, Tables 1 to 3"
KUMAR_2016 = "Kumar et al. 2016, arXiv:1506.07285, Table 1"
XIONG_2016 = "Xiong et al. 2016, arXiv:1603.01417"
HENAFF_2017 = "Henaff et al. 2017, arXiv:1612.03969"
DEHGHANI_2019 = "Dehghani et al. 2019, arXiv:1807.03819"

BEST_OF_TEN = "of ten restarts the one with the lowest training error"

TASKS = (
    "1 supporting fact", "2 supporting facts", "3 supporting facts", "2 argument relations", "3 argument relations",
    "yes/no questions", "counting", "lists and sets", "simple negation", "indefinite knowledge", "basic coreference",
    "conjunction", "compound coreference", "time reasoning", "basic deduction", "basic induction",
    "positional reasoning", "size reasoning", "path finding", "agent's motivation",
)  # fmt: skip
"""What the twenty tasks are called, by number from 1."""


def _row(
    mean: float,
    failed: int | None,
    source: str,
    errors: tuple[float, ...] = (),
    note: str = "as printed in the paper",
) -> Published:
    """A row from percentages: the mean error, how many tasks failed, and the error of every task where it is known."""
    metrics: dict[str, float] = {"mean_error": mean / 100}
    metrics |= {} if failed is None else {"failed_tasks": failed}
    metrics |= {f"accuracy_qa{number}": round(1 - error / 100, 6) for number, error in enumerate(errors, 1)}
    return Published(metrics, source, note)


_PE_1K = (0.1, 21.6, 64.2, 3.8, 14.1, 7.9, 21.6, 12.6, 23.3, 17.4, 4.3, 0.3, 9.9, 1.8, 0.0, 52.1, 50.1, 13.6, 87.4, 0.0)
_JOINT_1K = (0.0, 11.4, 21.9, 13.4, 14.4, 2.8, 18.3, 9.3, 1.9, 6.5, 0.3, 0.1, 0.2, 6.9, 0.0, 2.7, 40.4, 9.4, 88.0, 0.0)
_DMN_1K = (0.0, 1.8, 4.8, 0.0, 0.7, 0.0, 3.1, 3.5, 0.0, 2.5, 0.1, 0.0, 0.2, 0.0, 0.0, 0.6, 40.4, 4.7, 65.5, 0.0)
_BEST_10K = (0.0, 0.3, 2.1, 0.0, 0.8, 0.1, 2.0, 0.9, 0.3, 0.0, 0.1, 0.0, 0.0, 0.1, 0.0, 51.8, 18.6, 5.3, 2.3, 0.0)

PUBLISHED: dict[tuple[str, str], Published] = {
    ("memn2n-bow", "babi-task-1k"): _row(25.1, 15, SUKHBAATAR_2015, note=BEST_OF_TEN),
    ("memn2n-bow", "babi-task-10k"): _row(15.4, 9, SUKHBAATAR_2015, note=BEST_OF_TEN),
    ("memn2n-pe", "babi-task-1k"): _row(20.3, 13, SUKHBAATAR_2015, _PE_1K, BEST_OF_TEN),
    ("memn2n-pe", "babi-task-10k"): _row(9.4, 6, SUKHBAATAR_2015, note=BEST_OF_TEN),
    ("memn2n-ls", "babi-task-1k"): _row(16.3, 12, SUKHBAATAR_2015, note=BEST_OF_TEN),
    ("memn2n-ls", "babi-task-10k"): _row(7.2, 4, SUKHBAATAR_2015, note=BEST_OF_TEN),
    ("memn2n", "babi-task-1k"): _row(13.9, 11, SUKHBAATAR_2015, note=BEST_OF_TEN),
    ("memn2n", "babi-task-10k"): _row(6.6, 4, SUKHBAATAR_2015, note=BEST_OF_TEN),
    ("memn2n-ls-1hop", "babi-joint-1k"): _row(25.8, 17, SUKHBAATAR_2015, note=BEST_OF_TEN),
    ("memn2n-ls-1hop", "babi-joint-10k"): _row(24.5, 16, SUKHBAATAR_2015, note=BEST_OF_TEN),
    ("memn2n-ls-2hops", "babi-joint-1k"): _row(15.6, 11, SUKHBAATAR_2015, note=BEST_OF_TEN),
    ("memn2n-ls-2hops", "babi-joint-10k"): _row(10.9, 7, SUKHBAATAR_2015, note=BEST_OF_TEN),
    ("memn2n-ls", "babi-joint-1k"): _row(13.3, 11, SUKHBAATAR_2015, note=BEST_OF_TEN),
    ("memn2n-ls", "babi-joint-10k"): _row(7.9, 6, SUKHBAATAR_2015, note=BEST_OF_TEN),
    ("memn2n", "babi-joint-1k"): _row(12.4, 11, SUKHBAATAR_2015, _JOINT_1K, BEST_OF_TEN),
    ("memn2n", "babi-joint-10k"): _row(7.5, 6, SUKHBAATAR_2015, note=BEST_OF_TEN),
    ("memn2n-lw", "babi-joint-1k"): _row(15.2, 10, SUKHBAATAR_2015, note=BEST_OF_TEN),
    ("memn2n-lw", "babi-joint-10k"): _row(11.0, 6, SUKHBAATAR_2015, note=BEST_OF_TEN),
    ("story-lstm", "babi-task-1k"): _row(51.3, 20, SUKHBAATAR_2015),
    ("story-lstm", "babi-task-10k"): _row(36.4, 16, SUKHBAATAR_2015),
    ("dmn", "babi-task-1k"): _row(6.4, 2, KUMAR_2016, _DMN_1K, "gates taught by the supporting facts"),
    ("dmn-weak", "babi-task-10k"): _row(11.8, None, XIONG_2016, note="the DMN as its successors ran it again"),
    # context: not built here
    ("memnn", "babi-task-1k"): _row(6.7, 4, SUKHBAATAR_2015, note="taught by the supporting facts"),
    ("memnn", "babi-task-10k"): _row(3.2, 2, SUKHBAATAR_2015, note="taught by the supporting facts"),
    ("memn2n-best", "babi-task-10k"): _row(4.2, 3, HENAFF_2017, _BEST_10K, "best of all variants, task by task"),
    ("dmn-plus", "babi-task-10k"): _row(2.8, 1, XIONG_2016),
    ("entnet", "babi-task-10k"): _row(0.5, None, HENAFF_2017),
    ("universal-transformer", "babi-task-10k"): _row(0.21, 0, DEHGHANI_2019),
    ("universal-transformer", "babi-joint-10k"): _row(0.29, 0, DEHGHANI_2019),
}
