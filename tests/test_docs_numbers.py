"""The README is short and true, and numbers in the sentences of the documents are those of the records."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from systems_table import systems_table

from saccade.recorded import recorded_runs

ROOT = Path(__file__).parent.parent

NUMBERS = {
    "docs/summary.md": {
        "plain HSAL-RL reads 96.2 %": ("hsal-plain-mnist-set-authors", "exact_match", 3),
        "and 94.8 % of the multisets, from": ("hsal-plain-mnist-multiset-authors", "exact_match", 3),
        "improved one reads 98.4 % of the sets": ("hsal-mnist-set-authors", "exact_match", 3),
        "and 98.2 % of the multisets from the same": ("hsal-mnist-multiset-authors", "exact_match", 3),
        "reads 35.7 % and": ("hsal-ce-mnist-set-authors", "exact_match", 3),
        "and 33.3 % with as many": ("hsal-ce-mnist-multiset-authors", "exact_match", 3),
        "improved one reads 99.0 %": ("hsal-mnist-set-unlimited", "exact_match", 3),
        "98.9 % of the multisets (three": ("hsal-mnist-multiset-unlimited", "exact_match", 3),
        "reads 98.8 % of": ("counts-mnist-set-unlimited", "exact_match", 1),
        "and 98.0 % of the multisets.**": ("counts-mnist-multiset-unlimited", "exact_match", 1),
        "system reads 91.3 %": ("hsal-svhn-multiset", "exact_match", 1),
        "plain one 85.2 %": ("hsal-plain-svhn-multiset", "exact_match", 1),
        "the counter 85.1 %": ("counts-svhn-multiset", "exact_match", 1),
        "random order 37.8 %": ("hsal-ce-svhn-multiset", "exact_match", 1),
        "reading order 88.9 %": ("hsal-ordered-svhn-multiset", "exact_match", 1),
        "multiset loss 88.7 %": ("hsal-oracle-svhn-multiset", "exact_match", 1),
        "on birds (1,000 test pictures of CUB, MobileNetV2 at 112 px): 67.7 %": ("racnn-cub", "accuracy", 1),
        "64.5 % when trained alike": ("racnn-centre-cub", "accuracy", 1),
        "true box 69.9 %": ("racnn-box-cub", "accuracy", 1),
        "and reads 98.7 %": ("hsal-ordered-mnist-multiset-unlimited", "exact_match", 1),
        "sparse model answers 99.6 %": ("hattnet-ctx-sparse-mref-unlimited-both-drawing", "accuracy", 1),
        "It lays 71.2 %": ("hattnet-ctx-sparse-mref-unlimited-both-drawing", "true_positive_strength", 1),
        "writes 98.6 % of the sentences": ("sat-soft-scenes-unlimited", "exact_match", 1),
        "Hard attention has 98.3 %": ("sat-hard-scenes-unlimited", "exact_match", 1),
        "mean error 12.1 %": ("memn2n-babi-joint-1k", "mean_error", 1),
        "a task: 6.1 % and 4": ("memn2n-babi-task-10k", "mean_error", 1),
        "of each: 5.7 % and 4": ("dmn-128-babi-joint-1k", "mean_error", 1),
        "190 KB: 6.4 % and 3": ("dmn-babi-joint-1k", "mean_error", 1),
        "is right on 94.77 %": ("ran-56-cifar10-full", "accuracy", 1),
        "a little better: 94.89 %": ("resnet-56-cifar10-full", "accuracy", 1),
        "deeper Attention-92 has 94.79 %": ("ran-92-cifar10-full", "accuracy", 1),
        "its control 94.54 %": ("resnet-92-cifar10-full", "accuracy", 1),
        "all scales 99.6 %": ("racnn-details-unlimited", "accuracy", 1),
        "middle give 32.5 %": ("racnn-centre-details-unlimited", "accuracy", 1),
    },
    "docs/explanation/limits.md": {
        "HAttNet-CTX lays 9.3 %": ("hattnet-ctx-mref-authors-merged-authors-drawing", "true_positive_strength", 5),
        "on MREF and 9.0 %": ("hattnet-ctx-mdist-authors-merged-authors-drawing", "true_positive_strength", 5),
        "HARD lays 12.7 %": ("hard-mref-authors-merged-authors-drawing", "true_positive_strength", 3),
        "and 11.7 % there": ("hard-mdist-authors-merged-authors-drawing", "true_positive_strength", 3),
        "HAttNet-CTX lays 6.8 %": ("hattnet-ctx-mbg-authors-merged-authors-drawing", "true_positive_strength", 1),
        "and HARD 8.9 %": ("hard-mbg-authors-merged-authors-drawing", "true_positive_strength", 1),
        "affine window, answers 37.2 %": ("stn-plain-mref-authors-merged-authors-drawing", "accuracy", 1),
        "right in 67.7 %": ("racnn-cub", "accuracy", 1),
        "trained alike, have 64.5 %": ("racnn-centre-cub", "accuracy", 1),
        "have 69.9 %": ("racnn-box-cub", "accuracy", 1),
        "BLEU-4 of 17.8": ("sat-soft-paper-flickr8k-dev", "bleu_4_nobp", 1),
        "a BLEU-4 of 23.3": ("sat-none-tuned-flickr8k-dev", "bleu_4_nobp", 1),
        "lay 71.2 % there": ("hattnet-ctx-sparse-mref-unlimited-both-drawing", "true_positive_strength", 1),
        "70.7 % on MDIST": ("hattnet-ctx-sparse-mdist-unlimited-mostly-authors-drawing", "true_positive_strength", 1),
        "46.5 % on MBG": ("hattnet-ctx-sparse-mbg-unlimited", "true_positive_strength", 1),
        "bounded window answers 36.2 %": ("stn-mref-unlimited", "accuracy", 1),
        "without a query answers 39.4 %": ("blind-mref-unlimited", "accuracy", 1),
        "answers 77.5 %": ("stn-tuned-mref-unlimited", "accuracy", 1),
        "reads 98.8 % of the sets": ("counts-mnist-set-unlimited", "exact_match", 1),
        "and 98.0 % of the multisets, about": ("counts-mnist-multiset-unlimited", "exact_match", 1),
    },
}
"""Page → words of it → cell, score and seeds whose mean the first number in the words is."""


@pytest.mark.parametrize("page", NUMBERS)
def test_numbers_in_sentences_are_those_of_the_records(page: str) -> None:
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    runs = recorded_runs()
    for words, (cell, metric, seeds) in NUMBERS[page].items():
        assert words in text, words
        held = [run.value(metric) for run in runs if run.name.rpartition("-seed")[0] == cell]
        assert len(held) == seeds, cell
        (digits,) = re.findall(r"\d+\.\d+", words)
        half = 0.5 * 10.0 ** -len(digits.partition(".")[2])
        assert float(digits) == pytest.approx(100 * sum(held) / len(held), abs=1.0001 * half), words


CAPTIONERS = {
    "soft, EfficientNet-Lite0": "sat-soft-tuned-flickr8k-dev",
    "no attention": "sat-none-tuned-flickr8k-dev",
    "soft, the paper's setting": "sat-soft-paper-flickr8k-dev",
    "hard, EfficientNet-Lite0": "sat-hard-tuned-flickr8k-dev",
    "`sat-soft-photos`": "sat-soft-photos-flickr8k-dev",
}


@pytest.mark.parametrize("row", CAPTIONERS)
def test_captions_of_photographs_have_the_recorded_scores(row: str) -> None:
    (line,) = re.findall(rf"^\| {re.escape(row)}.*$", (ROOT / "docs" / "summary.md").read_text("utf-8"), re.MULTILINE)
    runs = [run for run in recorded_runs() if run.name.rpartition("-seed")[0] == CAPTIONERS[row]]
    names = (*(f"bleu_{n}_nobp" for n in range(1, 5)), "meteor")
    means = [100 * sum(run.value(name) for run in runs) / len(runs) for name in names]
    assert re.findall(r"\d+\.\d", line) == [f"{mean:.1f}" for mean in means]


def test_the_readme_fits_two_screens_and_starts_with_a_picture() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 100
    assert lines[0] == "# saccade"
    assert any(line.startswith("![") for line in lines[:6])
    assert sum(line.startswith("<!-- table:") for line in lines) == 1
    for command in ("make run", "make test"):
        assert any(line.startswith(command) for line in lines), command


def test_the_table_of_the_readme_needs_its_records() -> None:
    runs = recorded_runs()
    told = systems_table(runs)
    assert all(re.match(r"\d+\.\d( ± \d+\.\d)?\n\d × [\d,]+$", row[2]) for row in told.rows)
    with pytest.raises(SystemExit, match="has no accuracy of hattnet-ctx"):
        systems_table([run for run in runs if run.system != "hattnet-ctx"])


@pytest.mark.parametrize("page", ["SECURITY.md", "CODE_OF_CONDUCT.md", "CHANGELOG.md", *NUMBERS])
def test_links_lead_somewhere(page: str) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", (ROOT / page).read_text(encoding="utf-8")):
        assert target.startswith("http") or ((ROOT / page).parent / target).exists(), f"{page} links to {target}"
