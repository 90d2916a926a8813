"""The recipes of captions cut down to a few steps: trained, scored, asked."""

import json
from pathlib import Path

import pytest
import torch
from PIL import Image
from safetensors.torch import load_file
from typer.testing import CliRunner

import saccade
from caption_stubs import captioned_files, short_splits
from saccade.commands.door import app
from saccade.errors import ConfigError
from saccade.models.facts import read_facts

SIZES = "embed: 4, hidden: 8, attention: 4, dropout: 0.0, longest: 12"
TINY = (
    "data.glyphs=pack",
    "data.size=[48, 48]",
    f"model.config={{backbone: small, through: stage2, {SIZES}}}",
    "batch_size=4",
    "log_every=2",
    "checkpoint_every=1",
    "phases.0.steps=4",
    "phases.0.validate_every=2",
    "phases.0.schedule.warmup=0",
)
FILES = (
    "data.size=[40, 48]",
    "data.at_least=1",
    f"model.config={{backbone: small, through: stage2, pretrained: false, {SIZES}}}",
    "batch_size=4",
    "log_every=1",
    "phases.0.epochs=2",
)
runner = CliRunner()


@pytest.fixture(autouse=True, scope="module")
def _short(tmp_path_factory: pytest.TempPathFactory):
    with short_splits(), pytest.MonkeyPatch.context() as patch:
        patch.setenv("SACCADE_HOME", str(tmp_path_factory.mktemp("home")))
        yield


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run; not to be changed."""
    out = tmp_path_factory.mktemp("runs") / "sat"
    return saccade.train("sat-soft-scenes", out=out, overrides=TINY, device="cpu", quiet=True).out


def test_files_are_trained_on_kept_features_and_scored(tmp_path: Path) -> None:
    table = f"csv:{captioned_files(tmp_path / 'files', 16)}"
    out = saccade.train("sat-hard", data=table, out=tmp_path / "run", overrides=FILES, device="cpu", quiet=True).out
    states = [load_file(next(path.glob("*.safetensors"))) for path in sorted((out / "checkpoints").iterdir())]
    changed = {
        name.split("/")[1].split(".")[0]
        for name in states[0]
        if name.startswith("model/") and not torch.equal(states[0][name], states[-1][name])
    }
    assert changed == {"decoder", "baseline"}  # the encoder rests
    facts = read_facts(out / "model")
    assert facts.data["name"] == facts.recipe["data"]["name"] == "csv"
    with pytest.raises(ConfigError, match="give `data=csv:PATH`"):
        saccade.evaluate(out, device="cpu")
    found = saccade.evaluate(out, data=table, device="cpu")
    assert (found["data"], found["protocol"], found["beam"]) == ("csv", "official", 5)
    assert found["counts"]["altered_pictures"] == found["n"] == 2
    words = len(facts.answers) - 2  # but for the end and the unknown word
    assert f", {words} words; an epoch is " in (out / "log.txt").read_text(encoding="utf-8").splitlines()[0]


def test_look_prints_captions_and_writes_strips(run: Path, tmp_path: Path) -> None:
    Image.new("RGB", (80, 60), "grey").save(tmp_path / "a.png")
    command = ["look", f"{tmp_path / 'a.png'}", "--model", f"{run}", "--device", "cpu", "--captions", "3"]
    told = runner.invoke(app, [*command, "--json"])
    assert told.exit_code == 0, told.output
    found = json.loads(told.output)
    assert found["answer"] == " ".join(entry["word"] for entry in found["words"])
    assert len(found["other_captions"]) == 2
    shown = runner.invoke(app, [*command, "--out", str(tmp_path / "out"), "--cells"])
    assert shown.exit_code == 0, shown.output
    assert "asked" not in shown.output
    assert shown.output.count("a.png") == 3  # a row for every caption
    names = sorted(path.name for path in (tmp_path / "out").glob("*.png"))
    assert names == ["a-caption-2.png", "a-caption-3.png", "a.png"]
