"""What the family is: one declaration, which the entry point in ``pyproject.toml`` names. It needs no torch."""

from pathlib import Path

from saccade.families import DataEntry, Family, ModelSpec

FAMILY = Family(
    name="dots",
    title="a picture in, the number of dots on it out",
    folder=Path(__file__).parent,
    reads="saccade.families.pictures:PICTURES",
    models={"dots": ModelSpec("dots.model:DotsModel", "counts dots with one soft attention", "an example")},
    data={"dots": DataEntry("generator", "0 to 5 dots on grey, 48 × 48", "Apache-2.0", "made on the fly")},
    task="dots.data:DotsTask",
    headline=("accuracy",),
)
