"""What the family is: one declaration, which the entry point in ``pyproject.toml`` names. It needs no torch."""

from pathlib import Path

from saccade.families import DataEntry, Family, ModelSpec


def model():
    """The class of the model."""
    from dots.model import DotsModel

    return DotsModel


class DotsFamily(Family):
    """The task is imported when somebody trains, scores or shows."""

    def task(self):
        """Training, scoring and showing."""
        from dots.data import DotsTask

        return DotsTask


FAMILY = DotsFamily(
    name="dots",
    title="a picture in, the number of dots on it out",
    folder=Path(__file__).parent,
    models={"dots": ModelSpec(model, "counts dots with one soft attention", "an example")},
    data={"dots": DataEntry("generator", "0 to 5 dots on grey, 48 × 48", "Apache-2.0", "made on the fly")},
    headline=("accuracy",),
)
