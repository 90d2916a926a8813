"""What describes the inputs of a trained model: likeness and temperature, kept in its folder, told with every look."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

import saccade
from saccade.errors import CheckpointError
from saccade.metrics.labels import error_of, fitted_temperature, helpful_temperature
from saccade.models.facts import INPUTS, Preprocessing
from saccade.models.folder import load_model, save_model, store_as
from saccade.models.likeness import ALPHA, LARGEST, Likeness, fit_likeness
from saccade.models.soft import SoftModel
from saccade.tasks.describing import CHOOSING, describe_inputs
from saccade.tasks.task import HeldOut
from tiny_models import tiny_facts, tiny_model


def draws(count: int, many: int, seed: int, shift: float = 0.0) -> Tensor:
    """Correlated features (count,many)."""
    generator = torch.Generator().manual_seed(seed)
    common = torch.randn(count, 1, generator=generator)
    return common + torch.randn(count, many, generator=generator) + shift


@pytest.mark.parametrize("many", [6, 3 * LARGEST + 1], ids=["few", "folded"])
def test_false_alarms_are_as_rare_as_they_should_be_and_foreign_inputs_are_found(many: int) -> None:
    found = fit_likeness(draws(1000, many, 0), draws(1000, many, 1))
    own, foreign = found.p_values(draws(4000, many, 2)), found.p_values(draws(200, many, 3) * 4)
    assert 0.004 < float((own <= ALPHA).double().mean()) < 0.02
    assert float(own.mean()) == pytest.approx(0.5, abs=0.03)  # p-values of the right kind are even
    assert float((foreign <= ALPHA).double().mean()) > 0.9


def test_a_p_value_counts_the_scores_that_are_no_smaller_and_never_understates() -> None:
    held_out = draws(999, 4, 1)
    found = fit_likeness(draws(500, 4, 0), held_out)
    scores = found.score(held_out)
    asked = draws(300, 4, 2, shift=0.5)
    exact = torch.tensor([(1 + int((scores >= score).sum())) / 1000 for score in found.score(asked)]).double()
    told = found.p_values(asked)
    assert (told >= exact - 0.0011).all()  # scores are stored in single precision
    tail = exact <= 0.1  # where every score is kept
    torch.testing.assert_close(told[tail], exact[tail], atol=0.0011, rtol=0)
    assert float((told - exact).max()) <= 0.021  # every twentieth of the others is kept


def test_equal_scores_count_all_so_that_what_is_always_the_same_is_like() -> None:
    """Features that never change, and inputs of which many are one picture, are of the right kind."""
    same = torch.ones(500, 4)
    assert fit_likeness(same, same).p_values(same[:1]).tolist() == [1.0]
    blank = draws(1, 4, 9).repeat(600, 1) + 3
    first, second = (torch.cat([draws(500, 4, seed), blank]) for seed in (0, 1))
    found = fit_likeness(first, second)
    exact = (1 + int((found.score(second) >= found.score(blank[:1])).sum())) / 1101
    assert float(found.p_values(blank[:1])) >= exact > 0.5


def test_stored_and_read_back_it_says_the_same() -> None:
    found = fit_likeness(draws(300, 80, 0), draws(300, 80, 1))
    again = Likeness.from_tensors(found.to_tensors(), "file")
    asked = draws(50, 80, 2)
    assert torch.equal(found.p_values(asked), again.p_values(asked))
    assert again.n == 300
    assert sum(each.numel() * each.element_size() for each in found.to_tensors().values()) < 8_000


@pytest.mark.parametrize(
    "change",
    [
        {"scores": None},
        {"spread": torch.zeros(5)},
        {"spread": torch.ones(4)},
        {"whitening": torch.zeros(3)},
        {"centre": torch.full((5,), float("nan"))},
        {"scores": torch.linspace(9, 0, 205)},
    ],
)
def test_a_damaged_file_is_refused(change: dict[str, Tensor | None]) -> None:
    tensors = fit_likeness(draws(300, 5, 0), draws(300, 5, 1)).to_tensors()
    tensors = {name: each for name, each in (tensors | change).items() if each is not None}
    with pytest.raises(CheckpointError, match="file"):
        Likeness.from_tensors(tensors, "file")


SIDE = 24


def drawn(count: int, seed: int) -> torch.Tensor:
    """Dark pictures (count,3,H,W) with one bright square of a colour."""
    random = np.random.default_rng(seed)
    images = torch.zeros(count, 3, SIDE, SIDE)
    for image in images:
        x, y = random.integers(0, SIDE - 8, 2)
        image[:, y : y + 8, x : x + 8] = torch.tensor(random.uniform(0.6, 1, 3)).float()[:, None, None]
    return images


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of three answers that knows what its inputs look like."""
    place = tmp_path_factory.mktemp("models") / "tiny"
    torch.manual_seed(0)
    facts = tiny_facts(preprocessing=Preprocessing((SIDE, SIDE)), data={"name": "mref"})
    save_model(tiny_model(SoftModel), place, facts)
    random = torch.Generator().manual_seed(0)
    held = HeldOut(
        drawn(400, 0), torch.randint(4, (400,), generator=random), torch.randint(3, (400,), generator=random)
    )
    told = describe_inputs(place, [held], "squares")
    assert told.startswith("fit: measured by")
    return place


def as_picture(images: torch.Tensor) -> list[np.ndarray]:
    return list(images.mul(255).byte().permute(0, 2, 3, 1).numpy())


def test_own_pictures_are_like_and_foreign_ones_are_unlike(folder: Path) -> None:
    model = saccade.load(folder, "cpu")
    own = [seen.fit for seen in model.look_many(as_picture(drawn(100, 1)), ask=0)]
    noise = CHOOSING["noise"](drawn(20, 2), torch.Generator().manual_seed(1))
    foreign = [seen for seen in model.look_many(as_picture(noise), ask=0)]
    assert sum(fit.unlike is True for fit in own) <= 6
    assert all(fit.p is not None for fit in own)
    assert all(seen.unlike is True for seen in foreign)
    told = foreign[0].to_json()
    assert told["fit"]["verdict"] == "unlike"
    assert told["fit"]["warning"] == "this model was trained on drawn digits, so its answer here means little"
    assert told["notes"][-1] == told["fit"]["warning"]
    assert "means little" in foreign[0]._repr_html_()
    all_asked = model.ask_all(model.encode(as_picture(noise)[0]))
    assert {seen.fit.verdict for seen in all_asked} == {"unlike"}


def test_confidences_are_calibrated_and_answers_and_logits_stay(folder: Path) -> None:
    picture = as_picture(drawn(1, 5))[0]
    model = saccade.load(folder, "cpu")
    temperature = model.facts.calibration.temperature
    assert temperature == 20  # random labels: the model may not be sure of anything
    seen = model.look(picture, ask=1)
    plain, facts = load_model(folder)
    before = saccade.predict.Predictor(plain, dataclasses.replace(facts, calibration=None)).look(picture, ask=1)
    assert (seen.answer, [word for word, _ in seen.alternatives]) == (
        before.answer, [word for word, _ in before.alternatives]
    )  # fmt: skip
    assert seen.full_answer.raw_confidence == before.confidence
    images = torch.from_numpy(picture).permute(2, 0, 1)[None].float() / 255
    logits = plain(images, torch.tensor([1])).logits[0]
    assert seen.confidence == pytest.approx(float((logits / temperature).softmax(-1).max()))
    told = seen.to_json()
    assert (told["calibrated"], told["raw_confidence"]) == (True, pytest.approx(before.confidence, abs=1e-6))


def test_statistics_of_other_weights_are_refused_or_dropped(folder: Path, tmp_path: Path) -> None:
    model, facts = load_model(folder)
    saved = save_model(model, tmp_path / "copy", facts)
    assert saved.inputs is None
    assert store_as(tmp_path / "copy", "float16").calibration is None
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    for file in folder.iterdir():
        (damaged / file.name).write_bytes(file.read_bytes())
    (damaged / INPUTS).write_bytes((folder / INPUTS).read_bytes()[:-1] + b"x")
    with pytest.raises(CheckpointError, match=r"inputs\.safetensors"):
        saccade.load(damaged, "cpu")
    (damaged / INPUTS).unlink()
    with pytest.raises(CheckpointError, match=r"inputs\.safetensors"):
        saccade.load(damaged, "cpu")


def test_a_temperature_puts_confidences_right() -> None:
    generator = torch.Generator().manual_seed(0)
    truth = torch.randint(5, (4000,), generator=generator)
    logits = torch.randn(4000, 5, generator=generator)
    logits[torch.arange(4000), truth] += 1.5
    overconfident = 4 * logits  # the logits that would be right, times four
    temperature = fitted_temperature(overconfident, truth)
    assert error_of(overconfident, truth) > 0.15
    assert error_of(overconfident / temperature, truth) < 0.04
    assert fitted_temperature(2 * overconfident, truth) == pytest.approx(2 * temperature, rel=1e-3)
    holds = torch.nn.functional.one_hot(truth, 5)
    assert fitted_temperature(overconfident, holds) > 1


def test_a_temperature_is_kept_where_it_helps_answers_that_it_was_not_fitted_on() -> None:
    generator = torch.Generator().manual_seed(0)
    logits = 2 * torch.randn(2000, 5, generator=generator)
    labels = torch.multinomial(logits.softmax(1), 1, generator=generator)[:, 0]  # as sure as it is right
    assert helpful_temperature(logits, labels) == 1.0
    assert fitted_temperature(logits, labels) != 1.0
    assert helpful_temperature(3 * logits, labels) == pytest.approx(3, rel=0.1)
    assert helpful_temperature(logits / 3, labels) == pytest.approx(1 / 3, rel=0.1)
    assert helpful_temperature(3 * logits[:3], labels[:3]) == 1.0  # too few to tell
    assert helpful_temperature(logits, logits.argmax(1)) == 1.0  # all are right: no T is small enough
