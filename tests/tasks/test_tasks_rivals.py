"""Linear rivals: that they are logistic regressions, what they are told, and that evaluations name them."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.data import read_table
from saccade.families import family, model_spec
from saccade.families.question.tables import TableData, TableDataConfig
from saccade.families.question.task import QuestionTask
from saccade.tasks import rivals
from saccade.tasks.rivals import DECAY, Rivals, linear_rivals, logistic
from small_tables import write_table
from tiny_models import publish, withdraw


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SACCADE_HOME", str(tmp_path / "home"))


def test_a_logistic_regression_is_where_its_gradient_is_zero() -> None:
    """Xᵀ(y − p) / M = decay · W, and Σ(y − p) = 0 for the bias."""
    torch.manual_seed(0)
    features, label = torch.randn(40, 3), torch.randint(3, (40,))
    probes = torch.cat([torch.eye(3), torch.zeros(1, 3)])  # their logits are the weights and the bias
    logits = logistic(features, label, torch.cat([features, probes]), 3)
    missed = F.one_hot(label, 3) - logits[:40].softmax(1)  # (M,K)
    weights = logits[40:43] - logits[43]  # (C,K)
    torch.testing.assert_close(DECAY * weights, features.T @ missed / 40, rtol=0, atol=1e-4)
    torch.testing.assert_close(missed.sum(0), torch.zeros(3), rtol=0, atol=1e-2)


def test_several_labels_at_once_are_answers_by_themselves() -> None:
    features = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0]])
    assert ((logistic(features, features.clone(), features, 2) > 0) == (features > 0)).all()


def asked_rivals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, noise: float = 0.0, learned: int | None = None
) -> tuple[Rivals, TableData]:
    """Rivals on the test part of a table, of a backbone whose features are the two colours of the picture, or noise.

    ``learned`` is how many training rows there are; None: all.
    """
    publish(monkeypatch)
    table = write_table(tmp_path / "table")
    config = TableDataConfig(f"csv:{table}", size=(48, 48))
    read = read_table(config.name, "question")
    test = TableData(config, "test", read)
    rows = tuple(row for row in read.rows if row.split == "train")[:learned]
    words = {"queries": test.queries, "answers": test.answers}
    train = TableData(config, "train", replace(read, rows=rows, as_found=rows), **words)

    def pooled(split: TableData, rows: Tensor, *_: object) -> Tensor:
        seen = {}
        for number in range(split.size):
            row = split.rows[number]
            at = 3 * (row.query == "lower") + split.answers.index(row.label)
            seen.setdefault(int(split.picture[number]), torch.zeros(6))[at] = 1.0
        features = torch.stack([seen[int(split.picture[row])] for row in rows])
        generator = torch.Generator().manual_seed(split.size)
        return features * (noise == 0) + noise * torch.randn(features.shape, generator=generator)

    monkeypatch.setattr(rivals, "pooled", pooled)
    model = model_spec("soft").build({"backbone": "mobilenetv2", "pretrained": True, "through": "block2"})
    numbers = torch.arange(test.size)
    asked = {split.split: QuestionTask.asked(split) for split in (train, test)}
    return linear_rivals(model, test, numbers, train, asked, lambda what, done, total: None), test


def test_a_rival_for_each_question_beats_one_that_is_not_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found, test = asked_rivals(tmp_path, monkeypatch)
    assert float(found.right["linear"].mean()) == 1.0
    differ = torch.tensor([
        len({row.label for row in test.rows if row.image == one.image}) == 2 for one in test.rows
    ])  # fmt: skip
    assert float(found.right["question_blind"][differ].mean()) <= 0.5


def test_rivals_learn_nothing_from_noise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found, test = asked_rivals(tmp_path, monkeypatch, noise=1.0)
    assert test.size == 18
    assert all(float(right.mean()) < 0.75 for right in found.right.values())  # 1/3, give or take three deviations


def test_one_training_row_is_enough_for_its_own_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found, test = asked_rivals(tmp_path, monkeypatch, learned=1)
    assert found.right["linear"].tolist() == [row.label == "red" for row in test.rows]


def evaluated(tmp_path: Path, *, pretrained: bool = True, **settings: object) -> dict[str, object]:
    table = write_table(tmp_path / "pictures")
    torch.manual_seed(0)
    sizes = {"queries": 2, "answers": 3, "hidden": 4}
    deep = {"backbone": "mobilenetv2", "pretrained": True, "scored_at": "finer"}
    model = model_spec("question-head").build({**sizes, **(deep if pretrained else {"depth": 2, "channels": 8})})
    if pretrained:
        model.load_pretrained()
    data = {"name": f"csv:{table}", "size": (64, 64), **settings}
    return QuestionTask.evaluate(model.eval(), data, "test", sweeps=0)


def test_an_evaluation_has_the_rivals_of_a_published_backbone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(monkeypatch)
    result = json.loads(json.dumps(evaluated(tmp_path)))
    assert {"linear", "question_blind"} <= result["baselines"].keys()
    assert result["baselines"]["linear"].keys() == {"accuracy"}
    assert result["against"]["answers"]["rival"] in result["baselines"]
    assert "note" not in result
    assert set(result["against"]["answers"]["by_question"]) == {"upper", "lower"}


def test_rivals_need_no_kept_features(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither where none are wanted, nor where the cache folder cannot be used."""
    publish(monkeypatch)
    fresh = evaluated(tmp_path, features_mb=0)["baselines"]
    features = tmp_path / "home" / "features"
    assert not features.exists()
    assert {"linear", "question_blind"} <= fresh.keys()  # type: ignore[attr-defined]
    features.parent.mkdir(exist_ok=True)
    features.write_text("a file")
    assert evaluated(tmp_path)["baselines"] == fresh


def test_without_its_weights_a_note_says_how_to_get_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(monkeypatch)
    monkeypatch.setattr("saccade.models.question_head.QuestionHeadModel.load_pretrained", lambda self: None)
    withdraw(monkeypatch)
    result = evaluated(tmp_path)
    assert "linear" not in result["baselines"]
    assert "no linear rival: the ImageNet weights of 'mobilenetv2' are not on this machine" in str(result["note"])


def test_labels_have_one_linear_rival(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(monkeypatch)
    table = write_table(tmp_path / "pictures")
    lines = table.read_text().splitlines()
    upper = [lines[0].replace("query,", "")] + [line.replace(",upper,", ",") for line in lines if ",upper," in line]
    table.write_text("\n".join(upper))
    task = family("classify").task()
    torch.manual_seed(0)
    model = model_spec("probe").build({"backbone": "mobilenetv2", "pretrained": True, "answers": 3}).eval()
    result = task.evaluate(model, {"name": f"csv:{table}", "size": (64, 64)}, "test")
    assert result["baselines"]["linear"].keys() == {"accuracy"}
    assert "question_blind" not in result["baselines"]
