"""Stories as tensors: the same slots as a story asked alone, answers of several words, facts that are dropped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from saccade.families.story.reading import StoryItem, memory_of
from saccade.families.story.stories import StoryExample
from saccade.families.story.task import StoryTask, gate_loss
from saccade.families.story.tensors import Sizes, StoryTensors, sizes_of
from saccade.models.dmn import DMNConfig, DMNModel
from tiny_models import example_batch

WORDS = ("", "garden", "in", "is", "john", "kitchen", "living", "mary", "room", "where")


def tensors(*asked: StoryExample, memory: int = 3, by_word: bool = False) -> StoryTensors:
    sizes = sizes_of(asked, memory)
    return StoryTensors(asked, WORDS, Sizes(memory, 8, sizes.answer_words), by_word=by_word)


@pytest.mark.parametrize("memory", [1, 2, 3, 5])
def test_a_story_takes_the_same_slots_in_a_batch_and_alone(memory: int) -> None:
    told = ("Mary in garden.", "Nobody knows.", "John in kitchen.", "Strange sounds.", "Mary in living room.")
    held = tensors(StoryExample(told, "Where is Mary?", "garden", (0, 4)), memory=memory).take(torch.tensor([0]))
    alone = memory_of(StoryItem(told), {word: at for at, word in enumerate(WORDS) if word}, memory)
    found = [tuple(word for word in slot if word) for slot in held["story"][0].tolist()]
    assert [slot for slot in found if slot] == list(alone.ids)
    assert held["count"].tolist() == [len(alone.ids)]
    needed = [slot for slot, place in enumerate(alone.places) if place in (0, 4)]
    assert [slot for slot in held["supporting"][0].tolist() if slot >= 0] == needed


def test_an_answer_of_two_words_needs_both() -> None:
    batch = tensors(StoryExample(("Mary in living room.",), "Where is Mary?", "living room"), by_word=True)
    assert batch.take(torch.tensor([0]))["answer"].tolist() == [[WORDS.index("living"), WORDS.index("room")]]


def test_facts_that_the_memory_holds_are_taught_in_their_order() -> None:
    told = tuple(f"{name} in garden." for name in ("Mary", "John", "Mary", "John"))
    batch = tensors(StoryExample(told, "Where is Mary?", "garden", (0, 2, 3)), memory=2).take(torch.tensor([0]))
    assert batch["supporting"].tolist() == [[0, 1]]  # sentence 0 is dropped; 2 and 3 are slots 0 and 1
    scores = torch.full((1, 3, 3), -20.0)
    for number, slot in enumerate((0, 1, 2)):  # fact, fact, end
        scores[0, number, slot] = 0.0
    assert float(gate_loss(scores, batch["supporting"], batch["count"])) == pytest.approx(0, abs=1e-6)
    wrong = scores[:, [2, 1, 0]]
    assert float(gate_loss(wrong, batch["supporting"], batch["count"])) > 10


def test_a_last_pass_that_chooses_a_sentence_is_not_active() -> None:
    torch.manual_seed(0)
    model = DMNModel(DMNConfig(words=9, memory=4, size=8, embedding=8, passes=2, gate="softmax", stops=True)).eval()
    inputs, _ = example_batch(DMNModel, 8, 0)
    count = (inputs["story"] != 0).any(-1).sum(1)
    chosen = torch.nn.functional.one_hot(torch.zeros(8, dtype=torch.long), 5).float()
    ended = torch.nn.functional.one_hot(count, 5).float()
    for given, is_active in ((chosen, False), (ended, True)):
        trace = model(**inputs, attention={"pass1": chosen, "pass2": given}).trace
        assert trace.look("pass1").active.all()
        assert (trace.look("pass2").active == is_active).all()
    assert not model(**inputs, attention={"pass1": ended}).trace.look("pass2").active.any()


def table(folder: Path, answer: str = "garden") -> Path:
    rows = [
        {"story": [f"Mary in {place}.", f"John in {s}{n}."], "question": "Where is Mary?", "answer": place, "split": s}
        for n in range(6)
        for s, place in (("train", answer if n == 0 else "garden"), ("val", "kitchen"))
    ]
    path = folder / "own.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + '{"story": 3}\n', encoding="utf-8")
    return path


def task(path: Path) -> StoryTask:
    return StoryTask(model="memn2n", model_config={}, data={"name": f"jsonl:{path}"})


def test_a_run_notes_every_question_that_it_learns_from(tmp_path: Path) -> None:
    before = task(table(tmp_path)).extra_data_parts()["questions"]
    after = task(table(tmp_path, answer="kitchen")).extra_data_parts()["questions"]
    assert [name for name, _ in before] == ["train questions, 6 in all", "val questions, 6 in all"]
    assert before[0] != after[0]
    assert before[1] == after[1]
