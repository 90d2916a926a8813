"""Views as models of every kind give them, made by hand."""

import base64
import io
from typing import Any

import numpy as np
from PIL import Image

SIDE = 4  # cells each way of looks that are read label by label, 10 pixels each


def encoded(*values: float) -> str:
    return base64.b64encode(np.array(values, dtype="<f4").tobytes()).decode()


def view(looks: list[dict[str, Any]], size: tuple[int, int] = (40, 20), **more: Any) -> dict[str, Any]:
    """A view on a grey picture of ``size`` (width, height)."""
    buffer = io.BytesIO()
    Image.new("RGB", size, (75, 75, 75)).save(buffer, "PNG")
    png = f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"
    return {
        "schema": "saccade.view/1", "model": "a model", "question": None, "answer": "a dog", "kind": "label",
        "confidence": 0.5, "alternatives": [], "labels": None, "words": None, "total": None, "evidence": None,
        "scores": None, "picture": {"width": size[0], "height": size[1], "png": png}, "looks": looks, **more,
    }  # fmt: skip


def look(name: str, **more: Any) -> dict[str, Any]:
    """A look of one step over two cells."""
    return {
        "name": name, "kind": "soft", "role": "multiplier", "norm": "softmax", "steps": 1, "grid": [1, 2],
        "frame": [[20, 0, 0], [0, 20, 0]], "dtype": "float32", "active": None, "gain": None, "choice": None,
        "emits": None, "box": None, **more,
    }  # fmt: skip


def multiset() -> dict[str, Any]:
    """Three labels in four steps, two glimpses each; the last two glimpses fell on one cell."""

    def repeated(name: str, steps: int, active: int, **more: Any) -> dict[str, Any]:
        """Step t has all its weight on cell t."""
        weights = encoded(*np.eye(SIDE * SIDE)[:steps].flatten())
        place = {"grid": [SIDE, SIDE], "frame": [[10, 0, 0], [0, 10, 0]], "weights": weights}
        return look(name, steps=steps, active=[step < active for step in range(steps)], role="input", **place) | more

    glimpses = {"kind": "hard", "role": "policy", "choice": [0, 15, 5, 10, 6, 6, 0, 0]}
    return view(
        [
            repeated("saliency", 4, 3),
            repeated("covert", 4, 3, role="multiplier"),
            repeated("priority", 4, 3),
            repeated("glimpse", 8, 6, **glimpses),
            repeated("inhibited", 4, 3),
        ],
        (40, 40),
        answer="{3, 3, 7}",
        kind="labels",
        total={"grid": [1, 1], "frame": [[40, 0, 0], [0, 40, 0]], "weights": encoded(1), "dtype": "float32"},
        labels=[["3", 0.9], ["7", 0.8], ["3", 0.7]],
    )
