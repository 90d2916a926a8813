"""Pictures that ship: they are what their names say."""

import json

import pytest
from PIL import Image

import saccade
from saccade.data.scenes.photographs import SHIPPED
from saccade.errors import DataError
from saccade.zoo import EXAMPLES, example


def test_every_example_opens_by_name_and_by_file_name():
    assert set(EXAMPLES) == {"digits", "clutter", "stripes", "bird", "cat", "coffee", "rocket"}
    for name, each in EXAMPLES.items():
        assert saccade.example(name) == example(each.path.name) == each.path
        with Image.open(each.path) as picture:
            assert min(picture.size) >= 100
    with pytest.raises(DataError, match=r"no example 'cta': did you mean 'cat'\? \(choices: bird, cat"):
        example("cta")


def test_photographs_are_credited_as_where_they_lie():
    told = json.loads((SHIPPED / "attribution.json").read_text())["photographs"]
    credit = {each["file"]: f"{each['author']}, {each['licence']}" for each in told}
    photographs = [each for each in EXAMPLES.values() if each.path.suffix == ".jpg"]
    assert [each.credit for each in photographs] == [
        credit[str(each.path.relative_to(SHIPPED))] for each in photographs
    ]
    assert "CC BY" not in str([each.credit for each in photographs])  # nothing to say wherever such a picture is shown
