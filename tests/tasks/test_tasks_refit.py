"""The refit of a classifier: where its gradient is zero, what the model makes of it, and what a training gains."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor

import saccade
from saccade.errors import ConfigError
from saccade.families.question.tables import TableData, TableDataConfig
from saccade.models.folder import load_model
from saccade.models.question_head import QuestionHeadModel
from saccade.tasks import rivals
from saccade.tasks.refit import DECAY, fitted
from tiny_models import tiny_model


def rows(questions: int) -> tuple[Tensor, Tensor, Tensor]:
    """Features (60,4) of unlike sizes, questions and labels (60,) of 3 answers."""
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(60, 4, generator=generator).double() * torch.tensor([1.0, 5.0, 0.1, 1.0]) + 2
    query, label = (torch.randint(count, (60,), generator=generator) for count in (questions, 3))
    return features, query, label


def test_one_question_has_the_classifier_of_the_linear_rival(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rivals, "DECAY", DECAY)
    features, query, label = rows(1)
    standard = (features - features.mean(0)) / features.std(0) / 2
    own = fitted(features, query, label, 1, 3, terms=True, prior=True).logits(features, query).softmax(1)
    torch.testing.assert_close(own, rivals.logistic(standard, label, standard, 3).softmax(1), rtol=0, atol=1e-4)


@pytest.mark.parametrize("several", [False, True])
def test_questions_share_weights_and_have_their_own(several: bool) -> None:
    """Xᵀ(y − p) / N = λ W over all rows, and over those of a question, = λ U_q n_q / N."""
    features, query, label = rows(2)
    truth = F.one_hot(label, 3).double()
    if several:
        truth[::2, 0] = 1
    found = fitted(features, query, truth if several else label, 2, 3, terms=True, prior=True)
    assert found.terms is not None
    inputs = (features - features.mean(0)) / features.std(0) / 2
    logits = found.logits(features, query)
    missed = truth - (logits.sigmoid() if several else logits.softmax(1))  # (N,K)
    torch.testing.assert_close(DECAY * 2 * found.weight, missed.T @ inputs / 60, rtol=0, atol=1e-4)
    for question in (0, 1):
        own = query == question
        by_hand = missed[own].T @ inputs[own] / 60
        torch.testing.assert_close(DECAY * 2 * found.terms[question] * own.double().mean(), by_hand, rtol=0, atol=1e-4)
        torch.testing.assert_close(missed[own].sum(0), torch.zeros(3).double(), rtol=0, atol=1e-2)


@pytest.mark.parametrize(("prior", "terms"), [(True, True), (False, True), (True, False)])
def test_the_model_then_answers_by_it(prior: bool, terms: bool) -> None:
    model = tiny_model(QuestionHeadModel, 0, prior=prior).double().eval()
    if not terms:
        model.terms = None
    generator = torch.Generator().manual_seed(0)
    features, query = torch.randn(60, 8, generator=generator).double(), torch.arange(60) % 4
    label = torch.randint(3, (60,), generator=generator)
    found = fitted(features, query, label, 4, 3, terms=terms, prior=prior)
    model.set_classifier(*found)
    logits = model.classify(features, F.one_hot(query, 4).double())
    torch.testing.assert_close(logits, found.logits(features, query))


SPLITS = {"train": 96, "val": 24, "test": 200}
CELLS, SIDE = 4, 48


def write_pictures(folder: Path, *, marked: bool) -> Path:
    """Pictures of 4 × 4 grey cells in red and green, called after what the mean says, or the cell that is marked."""
    random = np.random.default_rng(3)
    table = [("image", "label", "split")]
    for split, count in SPLITS.items():
        for number in range(count):
            cells = random.random((CELLS, CELLS, 3)) * 0.6 + 0.2
            cells[..., 2] *= 0.1
            more = number % 2
            if marked:
                row, column = random.integers(CELLS, size=2)
                cells[row, column] = [0.9 - 0.8 * more, 0.1 + 0.8 * more, 1]
            else:
                cells[..., more] += 0.08
            name = f"{split}{number}.png"
            Image.fromarray((cells * 255).astype(np.uint8)).resize((SIDE, SIDE), Image.Resampling.NEAREST).save(
                folder / name
            )
            table.append((name, ("red", "green")[more], split))
    with (folder / "table.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(table)
    return folder / "table.csv"


def shown(self: QuestionHeadModel, images: Tensor) -> Tensor:
    """The colours of the cells, and channels that say nothing: (B,8,4,4)."""
    colours = F.avg_pool2d(images, SIDE // CELLS)
    noise = torch.frac(1e4 * colours.sum(1, keepdim=True) * torch.arange(1, 6)[:, None, None].sqrt())  # (B,5,4,4)
    return torch.cat([colours, noise], 1)


@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.filterwarnings("ignore:csv")
def test_a_head_equals_a_linear_classifier_and_beats_it_where_places_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, marked: bool
) -> None:
    monkeypatch.setenv("SACCADE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(QuestionHeadModel, "encode", shown)
    table = write_pictures(tmp_path, marked=marked)
    small = ["model.config.backbone=small", "model.config.pretrained=false", "model.config.scored_at=null"]
    small += ["model.config.channels=8", "model.config.depth=2", f"data.size=[{SIDE},{SIDE}]"]
    saccade.train("attributes-head", data=f"csv:{table}", out=tmp_path / "run", overrides=small, quiet=True)
    model, _ = load_model(tmp_path / "run" / "model")
    data = {
        split: TableData(TableDataConfig(f"csv:{table}", size=(SIDE, SIDE)), split).take(torch.arange(count))
        for split, count in SPLITS.items()
    }
    train, test = data["train"], data["test"]
    with torch.no_grad():
        answer = model.eval().forward_raw(test.images, test.query).logits.argmax(1)
    own = float((answer == test.label).double().mean())
    means = [shown(model, each.images).mean((2, 3)).double() for each in (train, test)]
    inputs = [(each - means[0].mean(0)) / means[0].std(0) / 8**0.5 for each in means]
    linear = float((rivals.logistic(inputs[0], train.label, inputs[1], 2).argmax(1) == test.label).double().mean())
    if marked:
        assert own > linear + 0.15
    else:
        assert linear > 0.8
        assert own >= linear - 0.03


def test_a_model_that_cannot_be_fitted_is_refused(tmp_path: Path) -> None:
    table = write_pictures(tmp_path, marked=False)
    small = ["model.name=soft", "model.config={backbone: small, depth: 2}", f"data.size=[{SIDE},{SIDE}]"]
    with pytest.raises(ConfigError, match=r"phase 'main': refit: model 'soft' .*; set phases.N.refit to null"):
        saccade.train("attributes-head", data=f"csv:{table}", out=tmp_path / "run", overrides=small, quiet=True)
    assert not (tmp_path / "run").exists()
