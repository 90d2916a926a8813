"""What every test starts from: full float32 precision, one thread, a fixed seed, and one table of tolerances."""

import functools
import random
from collections.abc import Callable, Iterator
from contextlib import suppress

import numpy as np
import pytest
import torch
from hypothesis import settings
from torch import Tensor

torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False
torch.set_num_threads(1)

# Wall-clock deadlines make tests flaky on shared machines; the same examples every time make failures repeatable.
settings.register_profile("saccade", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("saccade")

# How near is equal, by the type of the computed tensor.
TOLERANCE: dict[torch.dtype, dict[str, float]] = {
    torch.float64: {"rtol": 1e-9, "atol": 1e-10},
    torch.float32: {"rtol": 1e-5, "atol": 1e-6},
    torch.bfloat16: {"rtol": 2e-2, "atol": 1e-2},
    torch.float16: {"rtol": 2e-3, "atol": 1e-3},
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="with the tests that are marked long")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Files with slow tests come first, so that no worker is left alone with one of them at the end."""
    if not config.getoption("--all"):
        long = [item for item in items if item.get_closest_marker("long")]
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in long]
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.fixture(autouse=True)
def _fixed_seed() -> None:
    """Every test draws the same numbers whatever ran before it."""
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def one_onnx_registry() -> Iterator[None]:
    """torch reads what it knows of ONNX anew at every export, from the source of 500 functions; here once for all."""
    with pytest.MonkeyPatch.context() as patch:
        with suppress(ImportError, AttributeError):  # these names are torch's own, and may change
            from torch.onnx._internal.exporter._registration import onnxscript_apis

            patch.setattr(onnxscript_apis, "get_torchlib_ops", functools.cache(onnxscript_apis.get_torchlib_ops))
        yield


@pytest.fixture(scope="session")
def assert_near() -> Callable[..., None]:
    """``assert_near(actual, expected)``: equal within the table above; ``expected`` may be nested lists."""

    def check(actual: Tensor, expected: Tensor | list | float, **loosen: float) -> None:
        wanted = torch.as_tensor(expected, dtype=actual.dtype, device=actual.device)
        exact = {"rtol": 0.0, "atol": 0.0}
        torch.testing.assert_close(actual, wanted, **{**TOLERANCE.get(actual.dtype, exact), **loosen})

    return check
