"""The mean of the weights of several models: worked out by hand, the same in any order, and of a model with itself."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from saccade.config import to_dict
from saccade.families import family_of_model, model_spec
from saccade.models.io.facts import WEIGHTS, ModelFacts, Part, Preprocessing, StoredType
from saccade.models.io.folder import load_model, save_model
from saccade.verbs.mean_weights import least_alike, mean_model

pytestmark = pytest.mark.filterwarnings("ignore:.*as much as unrelated weights")  # drawn weights are not
FAMILIES = ("soft", "hsal", "sat-soft")
"""One of each task: attributes, multisets, captions."""


def save(folder: Path, architecture: str, change: Callable[[Tensor], None], dtype: StoredType = "float32") -> Path:
    """The tiny model of ``architecture``, every floating tensor of which ``change`` has filled."""
    spec = model_spec(architecture)
    model: nn.Module = spec.resolve()(spec.resolve().tiny())
    config = model.config
    said = next(getattr(config, name) for name in ("answers", "classes", "vocabulary") if hasattr(config, name))
    facts = ModelFacts(
        architecture=architecture,
        model=to_dict(config),
        family=family_of_model(architecture).name,
        queries=tuple(map(str, range(getattr(config, "queries", 0)))),
        answers=tuple(map(str, range(said))),
        preprocessing=Preprocessing(getattr(config, "input_size", (31, 34))),
        dtype=dtype,
    )
    with torch.no_grad():
        for tensor in model.state_dict().values():
            if tensor.is_floating_point():
                change(tensor)
    save_model(model, folder, facts)
    return folder


def drawn(seed: int) -> Callable[[Tensor], None]:
    """Weights of many sizes, some of them so small that float16 keeps nothing but their sign."""
    generator = torch.Generator().manual_seed(seed)

    def fill(tensor: Tensor) -> None:
        tensor.normal_(generator=generator).mul_(10.0 ** (-9 * torch.rand(tensor.shape, generator=generator)))

    return fill


def mean(folders: Sequence[Path], shares: Sequence[float]) -> nn.Module:
    digests = [load_model(folder)[1].sha256 for folder in folders]
    return mean_model(folders, [Part("x", share, digest) for share, digest in zip(shares, digests, strict=True)])


@pytest.mark.parametrize("architecture", FAMILIES)
def test_the_mean_by_hand(tmp_path: Path, architecture: str) -> None:
    """Of 1, 4 and −2: (1 + 4 − 2) / 3 = 1, and with shares of a half, a quarter and a quarter 0.5 + 1 − 0.5 = 1 too."""
    ones, fours = (save(tmp_path / str(n), architecture, lambda tensor, n=n: tensor.fill_(n)) for n in (1, 4))
    minus = save(tmp_path / "-2", architecture, lambda tensor: tensor.fill_(-2))
    for folders, shares, expected in (
        ([ones, fours], [0.5, 0.5], 2.5),
        ([ones, fours, minus], [1 / 3] * 3, 1.0),
        ([ones, fours, minus], [0.5, 0.25, 0.25], 1.0),
        ([fours, minus], [0.75, 0.25], 2.5),
    ):
        floating = [tensor for tensor in mean(folders, shares).state_dict().values() if tensor.is_floating_point()]
        assert floating
        assert all(bool((tensor == expected).all()) and tensor.dtype == torch.float32 for tensor in floating)


def test_statistics_are_averaged_and_counts_are_the_first_models(tmp_path: Path) -> None:
    def save_counted(name: str, variance: float, batches: int) -> Path:
        folder = save(tmp_path / name, "soft", lambda tensor: tensor.fill_(variance))
        model, facts = load_model(folder)
        for key, tensor in model.state_dict().items():
            if key.endswith("num_batches_tracked"):
                tensor.fill_(batches)
        save_model(model, folder, facts)
        return folder

    folders = [save_counted("a", 2.0, 30), save_counted("b", 4.0, 7)]
    for order in (folders, folders[::-1]):
        state = mean(order, [0.5, 0.5]).state_dict()
        statistics = [tensor for name, tensor in state.items() if "running_" in name]
        assert statistics
        assert all(bool((tensor == 3).all()) for tensor in statistics)
        counts = [int(tensor) for name, tensor in state.items() if name.endswith("num_batches_tracked")]
        assert set(counts) == {30 if order is folders else 7}


@pytest.mark.parametrize("architecture", FAMILIES)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_the_mean_of_a_model_with_itself_is_the_model_bit_for_bit(
    tmp_path: Path, architecture: str, dtype: StoredType
) -> None:
    folder = save(tmp_path / "a", architecture, drawn(0), dtype)
    before = (folder / WEIGHTS).read_bytes()
    for shares in ([0.5, 0.5], [1 / 3] * 3, [0.1, 0.2, 0.7], [1 / 7] * 7):
        save_model(mean([folder] * len(shares), shares), tmp_path / "mean", load_model(folder)[1])
        assert (tmp_path / "mean" / WEIGHTS).read_bytes() == before


@pytest.mark.parametrize("architecture", FAMILIES)
def test_the_order_does_not_matter(tmp_path: Path, architecture: str) -> None:
    folders = [save(tmp_path / str(seed), architecture, drawn(seed)) for seed in range(3)]
    shares = dict(zip(folders, (0.2, 0.3, 0.5)))
    first, *others = (
        mean(order, [shares[folder] for folder in order]).state_dict() for order in itertools.permutations(folders)
    )
    assert all(torch.equal(state[name], tensor) for state in others for name, tensor in first.items())


def test_the_models_themselves_stay_as_they_are(tmp_path: Path) -> None:
    folders = [save(tmp_path / str(seed), "soft", drawn(seed)) for seed in range(2)]
    before = [(folder / WEIGHTS).read_bytes() for folder in folders]
    mean(folders, [0.5, 0.5])
    assert [(folder / WEIGHTS).read_bytes() for folder in folders] == before


def test_the_least_alike_by_hand() -> None:
    """(1, 1) and (1, 0) in every pair of numbers: cosine 1 / √2; biases, small matrices and equal ones do not count."""
    one = {"a": torch.ones(2, 500), "b": torch.ones(40, 40), "bias": torch.ones(2000), "few": torch.ones(3, 3)}
    half = torch.tensor([1.0, 0.0]).repeat(2, 250)
    other = {"a": half, "b": torch.ones(40, 40), "bias": -torch.ones(2000), "few": -torch.ones(3, 3)}
    assert least_alike(one, other) == ("a", pytest.approx(0.5**0.5))
    assert least_alike(one, {**other, "b": -torch.ones(40, 40)}) == ("b", pytest.approx(-1.0))
    assert least_alike(one, one) is None


@given(seed=st.integers(0, 999), scale=st.floats(0.01, 100.0))
def test_two_drawn_apart_are_alike_by_chance_alone_and_two_tuned_from_one_are_not(seed: int, scale: float) -> None:
    torch.manual_seed(seed)
    start, apart = {"w": torch.randn(50, 40)}, {"w": scale * torch.randn(50, 40)}
    tuned = {"w": scale * (start["w"] + torch.randn(50, 40))}
    assert abs(least_alike(start, apart)[1]) < 0.1
    assert least_alike(start, tuned)[1] > 0.6


def test_a_warning_tells_of_runs_that_did_not_begin_together(tmp_path: Path) -> None:
    folders = [save(tmp_path / name, "sat-soft", drawn(seed)) for seed, name in enumerate("ab")]
    with pytest.warns(UserWarning, match=r"b and .*a differ in '[\w.]+' as much as unrelated weights do \(cosine"):
        mean(folders, [0.5, 0.5])
    near = save(tmp_path / "near", "sat-soft", lambda tensor, fill=drawn(0): (fill(tensor), tensor.mul_(1.1)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mean([folders[0], near], [0.5, 0.5])
