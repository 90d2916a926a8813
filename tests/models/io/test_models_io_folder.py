"""Model folders and vocabularies: what is written is read; those of strangers are refused before they cost anything."""

import dataclasses
import hashlib
import json
import os
import pickle
import struct
from pathlib import Path
from typing import get_type_hints

import pytest
import torch

from caption_stubs import WORDS, save_tiny_captioner
from saccade.errors import CheckpointError, ConfigError
from saccade.families import families, model_spec
from saccade.families.caption.vocabulary import Vocabulary
from saccade.files import MAX_FILE
from saccade.models import folder as model_folder
from saccade.models.facts import VOCABULARY, Score, model_card, read_facts
from saccade.models.folder import SPARE, load_matching, load_model, save_model
from saccade.models.soft import SoftModel
from tiny_models import change_weights, edit_config, example_batch, replace_weights, save_tiny, tiny_facts, tiny_model


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return save_tiny(tmp_path / "tiny")


def test_a_saved_model_answers_bit_for_bit_as_before(tmp_path: Path) -> None:
    torch.manual_seed(3)
    model = tiny_model(SoftModel)
    model.head.norm.running_mean += 0.3  # buffers count too
    facts = save_model(model, tmp_path / "m", tiny_facts(seed=3, scores=(Score("mref", "test", 10),)))
    loaded, read = load_model(tmp_path / "m")
    inputs, _ = example_batch(SoftModel, 4, 0)
    assert torch.equal(loaded(**inputs).logits, model.eval()(**inputs).logits)
    assert read == facts
    assert read.parameters == sum(p.numel() for p in model.parameters())
    assert not loaded.training
    assert not any(p.requires_grad for p in loaded.parameters())
    assert sorted(path.name for path in (tmp_path / "m").iterdir()) == ["card.md", "config.json", "model.safetensors"]


def test_a_model_with_nan_is_not_saved(tmp_path: Path) -> None:
    model = tiny_model(SoftModel)
    model.head.classify.bias.data[0] = float("nan")
    with pytest.raises(CheckpointError, match=r"head\.classify\.bias"):
        save_model(model, tmp_path / "m", tiny_facts())
    assert not (tmp_path / "m").exists()


def test_bad_facts_are_not_saved(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="queries"):
        tiny_facts(queries=("1", "1", "2", "3"))
    with pytest.raises(ValueError, match="answers"):
        tiny_facts(answers=())
    with pytest.raises(ConfigError, match=r"preprocessing.*fill"):
        save_model(tiny_model(SoftModel), tmp_path / "m", tiny_facts(preprocessing={"size": [3, 3], "fill": 7}))


def test_a_pickle_is_refused_and_never_run(folder: Path, tmp_path: Path) -> None:
    proof = tmp_path / "proof"

    class Attack:
        def __reduce__(self):
            return os.system, (f"touch {proof}",)

    bomb = pickle.dumps(Attack())
    for name in ("pytorch_model.bin", "model.pt", "weights.PKL", "last.ckpt"):
        alone = tmp_path / f"foreign-{name}"
        alone.mkdir()
        (alone / name).write_bytes(bomb)
        with pytest.raises(CheckpointError, match="run code"):
            load_model(alone)
        with pytest.raises(CheckpointError, match="run code"):
            load_model(alone / name)
        (folder / name).write_bytes(bomb)
        with pytest.raises(CheckpointError, match=name):
            load_model(folder)
        (folder / name).unlink()
    replace_weights(folder, bomb)  # a pickle under a good name, with a digest that fits
    with pytest.raises(CheckpointError, match=r"model\.safetensors"):
        load_model(folder)
    assert not proof.exists()


def test_the_digest_is_checked_before_anything_is_parsed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = bytearray((folder / "model.safetensors").read_bytes())
    data[-1] ^= 1
    (folder / "model.safetensors").write_bytes(data)
    monkeypatch.setattr("safetensors.safe_open", None)
    for sha256 in (read_facts(folder).sha256, ""):
        edit_config(folder, sha256=sha256)
        with pytest.raises(CheckpointError, match="SHA-256"):
            load_model(folder)


def test_truncated_huge_header_and_overlap_are_refused(folder: Path) -> None:
    good = (folder / "model.safetensors").read_bytes()
    overlap = json.dumps({
        "a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
        "b": {"dtype": "F32", "shape": [2], "data_offsets": [4, 12]},
    }).encode()  # fmt: skip
    beyond = json.dumps({"a": {"dtype": "F32", "shape": [2**62, 2**62], "data_offsets": [0, 4]}}).encode()
    heads = (struct.pack("<Q", len(head)) + head + bytes(12) for head in (overlap, beyond, b'{"a": []}'))
    for data in (b"", good[: len(good) // 2], struct.pack("<Q", 2**60) + good[8:], *heads):
        replace_weights(folder, data)
        with pytest.raises(CheckpointError, match=r"model\.safetensors"):
            load_model(folder)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("head.classify.weight", torch.zeros(3, 9)),
        ("head.classify.weight", torch.zeros(3, 8, dtype=torch.float16)),
        ("head.classify.weight", torch.full((3, 8), float("nan"))),
        ("head.classify.weight", None),
        ("stranger", torch.zeros(1)),
    ],
)
def test_tensors_that_do_not_fit_are_named(folder: Path, name: str, value: torch.Tensor | None) -> None:
    change_weights(folder, lambda tensors: tensors.pop(name) if value is None else tensors.update({name: value}))
    with pytest.raises(CheckpointError, match=f"'{name}'"):
        load_model(folder)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"schema_version": 99}, "schema_version 99"),
        ({"architecture": "sfot"}, "soft"),
        ({"queries": ["1", "2"]}, "2 queries, .* 4"),
        ({"preprocessing": {"size": [0, 3]}}, "size"),
    ],
)
def test_a_wrong_config_says_where(folder: Path, changes: dict, word: str) -> None:
    edit_config(folder, **changes)
    with pytest.raises(CheckpointError, match=word) as caught:
        load_model(folder)
    assert "config.json" in str(caught.value)


def test_missing_parts(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "bare").mkdir()
    (folder / "model.safetensors").unlink()
    for place, name in ((folder, "model.safetensors"), (tmp_path / "gone", "gone"), (folder / "card.md", "card.md"),
                        (tmp_path / "bare", "config.json")):  # fmt: skip
        with pytest.raises(CheckpointError, match=name):
            load_model(place)


def test_labels_in_a_card_are_text_and_not_markup() -> None:
    labels = ("<script>alert(1)</script>", "[free](http://evil.example)", "a\n# heading", "x|y", "**b** &amp; `c`")
    card = model_card(
        dataclasses.replace(tiny_facts(), answers=labels, queries=('7"); import os #\n```',), sha256="ab" * 32)
    )
    assert "<script" not in card
    assert "\n# heading" not in card
    (told,) = [line for line in card.splitlines() if line.startswith("- answers: ")]
    assert r"\[free\](http://evil.example), a \# heading, x\|y, \*\*b\*\* &amp;amp; \`c\`" in told
    (used,) = [line for line in card.splitlines() if line.startswith("seen = ")]
    assert used.endswith(r"""ask="7\"); import os #\n```")""")
    assert "red, green" in model_card(dataclasses.replace(tiny_facts(), answers=("red", "green"), sha256="ab" * 32))


def built(name: str = "soft", seed: int = 0, **settings: object) -> torch.nn.Module:
    torch.manual_seed(seed)
    return model_spec(name).build({"channels": 4, "depth": 2, "hidden": 8, **settings})


def test_what_fits_is_taken_and_the_rest_keeps_its_own() -> None:
    old, new = built(), built(seed=1, answers=7)
    before = {name: tensor.clone() for name, tensor in new.state_dict().items()}
    left = load_matching(new, old.state_dict(), "old")
    assert left == ("head.classify.weight", "head.classify.bias")
    for name, tensor in new.state_dict().items():
        assert torch.equal(tensor, before[name] if name in left else old.state_dict()[name]), name


@pytest.fixture
def teller(tmp_path: Path) -> Path:
    return save_tiny_captioner(tmp_path / "teller")


def test_words_lie_beside_the_configuration_and_come_back(teller: Path) -> None:
    assert "answers" not in json.loads((teller / "config.json").read_text())
    held = json.loads((teller / VOCABULARY).read_text())
    assert held == {"schema_version": 1, "words": list(Vocabulary.of_model(held["words"]).entries)}
    _, facts = load_model(teller)
    assert (facts.answers, facts.sentences) == (WORDS, True)


@pytest.mark.parametrize(
    "content",
    [
        None, "not json", "[1]", '{"schema_version": 1}', '{"schema_version": 9, "words": []}',
        '{"schema_version": 1, "words": []}', '{"schema_version": 1, "words": ["a", "a", "b", "c", "d"]}',
        '{"schema_version": 1, "words": [1, 2, 3, 4, 5]}',
    ],
)  # fmt: skip
def test_a_damaged_vocabulary_is_refused(teller: Path, content: str | None) -> None:
    path = teller / VOCABULARY
    path.unlink() if content is None else path.write_text(content)
    with pytest.raises(CheckpointError, match=str(teller)):
        read_facts(teller)


def test_words_must_be_as_many_as_the_model_has(teller: Path) -> None:
    (teller / VOCABULARY).write_text(json.dumps({"schema_version": 1, "words": [*WORDS, "owl"]}))
    with pytest.raises(CheckpointError, match=r"6 vocabulary, .* 5"):
        load_model(teller)


SETTINGS = {"queries": 4, "answers": 3}


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many numbers each tensor has that is given memory while a model is loaded."""
    sizes: list[int] = []
    real = torch.empty

    def counted(*size, **options):
        tensor = real(*size, **options)
        if not tensor.is_meta:
            sizes.append(tensor.numel())
        return tensor

    monkeypatch.setattr(torch, "empty", counted)
    return sizes


def header_of(**entries: list[int]) -> bytes:
    """The head of a weights file with float32 tensors of these shapes."""
    at, header = 0, {}
    for name, shape in entries.items():
        end = at + 4 * torch.Size(shape).numel()
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, end]}
        at = end
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text


def test_no_number_of_a_model_is_without_a_range() -> None:
    """Each whole number that settings may hold is refused when it is 2^60 or below 0."""
    for family in families().values():
        for name, spec in family.models.items():
            config = spec.load().Config
            for field, hint in get_type_hints(config).items():
                for value in (2**60, -1) if hint is int else ():
                    with pytest.raises(ConfigError, match=field):
                        spec.build({field: value}, where=name)


@pytest.mark.parametrize("change", [{"channels": 8192}, {"channels": 8192, "depth": 6}, {"queries": 10**6}])
def test_a_large_model_with_a_small_file_costs_no_memory(folder: Path, made: list[int], change: dict) -> None:
    edit_config(folder, model={**SETTINGS, **change})
    with pytest.raises(CheckpointError, match=r"config\.json"):
        load_model(folder)
    assert sum(made) < 2 * SPARE


def test_maps_beyond_all_memory_are_refused(folder: Path, tmp_path: Path) -> None:
    model = SoftModel(SoftModel.Config(queries=4, answers=3, channels=80, depth=1, hidden=8))
    facts = tiny_facts(model={**SETTINGS, "channels": 80, "depth": 1, "hidden": 8})
    model_folder.save_model(model, tmp_path / "wide", facts)
    load_model(tmp_path / "wide")
    edit_config(tmp_path / "wide", preprocessing={"size": [4096, 4096]})
    with pytest.raises(CheckpointError, match=r"stage 'stage1' makes 335,\d+,\d+ numbers"):
        load_model(tmp_path / "wide")


def test_pipes_and_devices_are_refused_unread(folder: Path) -> None:
    for name, said in (("model.safetensors", "not a regular file"), ("config.json", "not a regular file")):
        path = folder / name
        kept = path.read_bytes()
        for make in (os.mkfifo, lambda place: os.symlink("/dev/zero", place)):
            path.unlink()
            make(path)
            with pytest.raises(CheckpointError, match=said):
                load_model(folder)
        path.unlink()
        path.mkdir()
        with pytest.raises(CheckpointError, match="Is a directory"):
            load_model(folder)
        path.rmdir()
        path.write_bytes(kept)
    load_model(folder)


def test_a_large_file_is_refused_unread(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its size, by a header that does not account for its bytes, and by one of another model."""
    path = folder / "model.safetensors"
    monkeypatch.setattr(Path, "read_bytes", None)
    head = header_of(stranger=[2**25])
    for content, size in ((path.open("rb").read(), 2**40), (path.open("rb").read(), 2**27), (head, len(head) + 2**27)):
        with path.open("wb") as file:
            file.write(content)
            file.truncate(size)
        if size < MAX_FILE:
            with path.open("rb") as file:
                edit_config(folder, sha256=hashlib.file_digest(file, "sha256").hexdigest())
        with pytest.raises(CheckpointError, match=r"model\.safetensors"):
            load_model(folder)
