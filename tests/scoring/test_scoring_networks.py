"""Strangers' networks: opened from files, names and memory; what is wrong with them is said in one line."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

import saccade
from planted_photographs import Reads, reads_object
from saccade.errors import ConfigError
from saccade.scoring.networks import NetworkOptions, open_network


class Labels(nn.Module):
    def forward(self, images):
        return images.mean((2, 3))


def file_of(folder, text):
    path = folder / "my_net.py"
    path.write_text("from torch import nn\nfrom planted_photographs import reads_object\n" + text)
    return path


def test_a_file_is_run_and_may_import_its_neighbours(tmp_path):
    (tmp_path / "beside_it.py").write_text("from planted_photographs import reads_object as made\n")
    path = tmp_path / "net.py"
    path.write_text("from beside_it import made\nmodel = made()\ndef build(gain=1):\n    return made()\n")
    for name in (f"{path}:build", f"{path}:model", str(path)):
        network = open_network(name, NetworkOptions(device="cpu"))
        assert isinstance(network.module, Reads)
        assert network.size == (64, 64)
    assert network.name == str(path)


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        ("def build(): return reads_object()", "biuld", "did you mean 'build'"),
        ("def build(): return 1 / 0", "build", r"build\(\) failed \(ZeroDivisionError"),
        ("def build(: pass", "build", "running it failed"),
        ("def build(): return nn.Sequential(nn.Flatten(), nn.Linear(9, 2))", "build", "cannot take pictures"),
        (
            "def build(): return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 1))",
            "build",
            "two classes",
        ),
    ],
)
def test_what_is_wrong_with_a_file_is_said_in_a_line(tmp_path, text, name, said):
    with pytest.raises(ConfigError, match=said) as error:
        open_network(f"{file_of(tmp_path, text)}:{name}", NetworkOptions(device="cpu"))
    assert "\n" not in str(error.value)


def test_size_and_colours_are_what_the_model_says():
    network = Labels()
    plain = open_network(network, NetworkOptions(device="cpu"))
    assert plain.size == (224, 224)
    laid = "pictures laid in undistorted, the rest grey"
    assert plain.facts == f"input 224 × 224 (it says no size), {laid}, colours from 0 to 1"
    network.default_cfg = {"input_size": (3, 40, 40), "mean": (0.5, 0.4, 0.3), "std": (0.1, 0.2, 0.5)}
    said = open_network(network, NetworkOptions(device="cpu"))
    assert said.facts == f"input 40 × 40 (as the model says), {laid}, colours scaled by its own mean and deviation"
    image, canvas = said.prepare(np.full((20, 20, 3), 255, np.uint8))
    torch.testing.assert_close(image[:, 0, 0], torch.tensor([5.0, 3.0, 1.4]))
    torch.testing.assert_close(canvas[:, :2].diagonal(), torch.tensor([0.5, 0.5], dtype=torch.float64))
    torch.testing.assert_close(said.black.flatten(), torch.tensor([-5.0, -2.0, -0.6]))
    assert open_network(network, NetworkOptions(size=56, device="cpu")).size == (56, 56)


def test_the_module_is_left_as_it_was():
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.AdaptiveAvgPool2d(1), nn.Flatten()).train()
    network[1].eval()
    before = network[1].running_mean.clone()
    opened = open_network(network, NetworkOptions(size=16, device="cpu"))
    with opened.evaluating():
        assert not network.training
    assert [part.training for part in (network, network[0], network[1])] == [True, True, False]
    torch.testing.assert_close(network[1].running_mean, before)


def test_a_model_of_ours_that_answers_with_a_label_is_a_classifier(tmp_path):
    predictor = saccade.load("ran-56-cifar10", "cpu")
    network = open_network(predictor, NetworkOptions(device="cpu"))
    picture = np.random.default_rng(0).integers(0, 255, (32, 32, 3), dtype=np.uint8)
    seen = predictor.look(picture)
    logits = network.logits(network.prepare(picture)[0][None])
    assert predictor.facts.answers[int(logits.argmax())] == seen.answer
    assert float(logits.softmax(-1).max()) == pytest.approx(seen.confidence, abs=0.05)


def test_maps_of_a_stranger_are_scored_against_masks(tmp_path):
    for number in range(3):
        mask = np.zeros((64, 64), np.uint8)
        mask[20:34, 10 * number : 10 * number + 14] = 255
        pixels = np.full((64, 64, 3), 120, np.uint8)
        pixels[mask > 0] = (230, 30, 30)
        for folder, values in (("pictures", pixels), ("masks", mask)):
            (tmp_path / folder).mkdir(exist_ok=True)
            Image.fromarray(values).save(tmp_path / folder / f"cat{number}.png")
    found = saccade.score(tmp_path / "pictures", tmp_path / "masks", method="gradcam", model=reads_object())
    assert found.scores["true_positive_strength"].mean == pytest.approx(1, abs=0.01)
    assert found.counts["scored"] == 3


def test_pictures_are_laid_in_whole_or_stretched():
    """A white strip at the right edge of a wide picture lies at the right edge of the input only if stretched."""
    picture = np.zeros((8, 16, 3), np.uint8)
    picture[:, 12:] = 255
    for fit, top in (("inside", 0.5), ("stretch", 0.0)):
        image, canvas = open_network(Labels(), NetworkOptions(size=16, fit=fit, device="cpu")).prepare(picture)
        assert float(image[0, 0, 0]) == pytest.approx(top)
        assert float(image[0, 8, 15]) == 1
        corner = canvas @ torch.tensor([16.0, 16.0, 1.0], dtype=canvas.dtype)  # of the input, in pixels of the picture
        assert corner.tolist() == ([16, 12] if fit == "inside" else [16, 8])
