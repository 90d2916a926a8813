"""The arithmetic behind the GPU figures, and the tables that are made of them."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
from gpu_tables import gpu_figures, gpu_kernels

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def device_busy() -> ModuleType:
    path = ROOT / "benchmarks" / "device_busy.py"
    spec = importlib.util.spec_from_file_location("device_busy", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["device_busy"] = module
    spec.loader.exec_module(module)
    return module


def test_kernels_that_overlap_are_counted_once(device_busy: ModuleType) -> None:
    spans = [
        device_busy.Span(0, 10, "a"),
        device_busy.Span(2, 4, "inside"),
        device_busy.Span(8, 15, "overlapping"),
        device_busy.Span(16, 20, "soon after"),  # a gap of 1 µs is none
        device_busy.Span(100, 130, "late"),
    ]
    busy, gaps = device_busy.covered(spans)
    assert busy == 15 + 4 + 30
    assert dict(gaps) == {"soon after → late": 80}
    assert device_busy.covered([]) == (0, {})


def test_the_costliest_kernels_come_first(device_busy: ModuleType) -> None:
    spans = [device_busy.Span(0, 1000, "a"), device_busy.Span(0, 2500, "b"), device_busy.Span(3000, 3500, "b")]
    first, second = device_busy.top(spans, per_step=2000.0)
    assert first == {"kernel": "b", "share": 0.75, "ms": 1.5, "runs": 2}
    assert second["share"] == 0.25


def test_names_of_kernels_keep_what_is_applied(device_busy: ModuleType) -> None:
    name = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3>>"
    assert device_busy.short(f"{name}(int, at::native::CUDAFunctor_add<float>)") == (
        "vectorized_elementwise_kernel CUDAFunctor_add"
    )
    assert device_busy.short("triton_poi_fused_add_0") == "triton_poi_fused_add_0"
    assert device_busy.short("Memcpy DtoD (Device -> Device)") == "Memcpy DtoD"


MACHINE = {"device": "NVIDIA H200", "torch": "2.11.0", "when": "2026-11-16"}
BUSY = {
    "label": "SOFT", "recipe": "soft-mref", "phase": "main", "busy": 0.934, "step_ms": 6.5, "kernels_per_step": 310.0,
    "examples_per_second": 157_538.0, "top": [{"kernel": "conv | x", "share": 0.41, "ms": 2.6, "runs": 400}],
    "gaps": [{"between": "a → b", "ms": 0.2}], "compiled": True,
}  # fmt: skip


def test_tables_say_what_was_recorded_and_leave_out_what_was_not() -> None:
    report = {
        "sections": {
            "busy": {"machine": MACHINE, "rows": [BUSY, {**BUSY, "label": "HARD", "compiled": False}]},
            "seeds": {"machine": MACHINE, "skipped": "no --seeds"},
            "start": {"machine": {**MACHINE, "when": "2026-11-17"}, "error": "no"},
        }
    }
    figures = gpu_figures(report)
    assert (
        "| training SOFT: share of the time in which the device computes | 93.4 % (a step 6.50 ms, 157,538 " in figures
    )
    assert "| training HARD, not compiled: share of the time in which" in figures
    assert "`benchmarks/gpu.py --only busy`" in figures
    assert figures.endswith("NVIDIA H200, torch 2.11.0; 2026-11-16.\n")
    assert "seeds" not in figures
    kernels = gpu_kernels(report)
    assert "| conv / x | 2.600 ms | 41.0 % |" in kernels
    assert "longer gaps 0.20 ms" in kernels
    assert gpu_figures({}) == gpu_kernels({}) == "Nothing is recorded yet.\n"
