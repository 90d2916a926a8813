"""Passes in parts and pictures encoded once give what one plain pass gives, for every kind of query model."""

import pytest
import torch
import torch.nn.functional as F

from saccade.families.question.scores import sweep_areas
from saccade.metrics.maps.faithfulness import deletion_and_insertion
from saccade.tasks import evaluate as forward_passes
from saccade.tasks.evaluate import EncodedPictures, distinct, in_parts
from tiny_models import example_batch, named, tiny_model

QUERY_MODELS = ("soft", "hard", "stn", "stn-tuned", "hattnet", "hattnet-ctx", "cross", "film", "vit", "blind")


def tiny(name):
    return tiny_model(name, 1).eval()


def batch(model, count=6):
    inputs, _ = example_batch(type(model), count, 0)
    images = inputs["images"]
    return images, torch.arange(len(images)) % 4


@pytest.fixture(autouse=True)
def two_at_once(monkeypatch):
    """So that six pictures are several parts, and an odd number leaves one over."""
    monkeypatch.setattr(forward_passes, "at_once", lambda images, size=None: 2)


@torch.no_grad()
@pytest.mark.parametrize("name", QUERY_MODELS)
def test_in_parts_is_the_whole_without_its_features(name):
    model = tiny(name)
    images, query = (each[:5] for each in batch(model))
    whole, parts = model.forward_raw(images, query), in_parts(model, images, query)
    expected = {key: tensor for key, tensor in named(whole).items() if not key.endswith((".values", ".context"))}
    assert len(expected) < len(named(whole))
    assert named(parts).keys() == expected.keys()
    for key, tensor in named(parts).items():
        torch.testing.assert_close(tensor, expected[key], rtol=1e-5, atol=1e-6)
    assert [look.name for look in model.wrap(parts, images.shape[-2:]).trace.looks]


@torch.no_grad()
def test_parts_in_several_threads_are_the_same_and_can_be_changed():
    model = tiny("hattnet-ctx")
    images, query = (each[:5] for each in batch(model))
    apart, together = (named(in_parts(model, images, query, threads=threads)) for threads in (3, 1))
    assert apart.keys() == together.keys()
    for key, tensor in apart.items():
        torch.testing.assert_close(tensor, together[key])
        tensor.add_(1)  # no tensor of inference mode, which would refuse


@torch.no_grad()
@pytest.mark.parametrize("name", QUERY_MODELS)
def test_a_picture_encoded_once_answers_every_question_about_it(name):
    model = tiny(name)
    images, _ = batch(model)
    picture, query = torch.tensor([2, 0, 2, 2, 1]), torch.tensor([0, 1, 2, 3, 0])
    shared, apart = EncodedPictures(model, images[:3]).ask(query, picture), in_parts(model, images[picture], query)
    for found, expected in zip(named(shared).values(), named(apart).values(), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
    in_turn = EncodedPictures(model, images[:3]).ask(query[:3])
    torch.testing.assert_close(in_turn.logits, in_parts(model, images[:3], query[:3]).logits)


@torch.no_grad()
def test_pictures_are_encoded_as_often_as_they_differ():
    model, seen = tiny("soft"), []
    images, query = batch(model)
    encode = model.encode
    model.encode = lambda part: seen.append(len(part)) or encode(part)
    several = EncodedPictures(model, images[:3])
    several.ask(query[:5], torch.tensor([0, 0, 1, 2, 2]))
    several.ask(query[:5], torch.tensor([2, 2, 2, 2, 2]))
    assert seen == [2, 1]


@pytest.mark.parametrize(
    ("numbers", "first", "which"),
    [([7, 7, 3, 7], [2, 0], [1, 1, 0, 1]), ([5], [0], [0]), ([1, 2, 3], [0, 1, 2], [0, 1, 2]), ([4, 4], [0], [0, 0])],
)
def test_distinct(numbers, first, which):
    found = distinct(torch.tensor(numbers))
    assert (found[0].tolist(), found[1].tolist()) == (first, which)


@torch.no_grad()
@pytest.mark.parametrize("fill", [0.0, "picture"])
def test_sweeps_of_shared_pictures_are_those_of_each_question_alone(fill):
    model = tiny("hattnet-ctx")
    images, _ = batch(model)
    images, picture, query = images[:3], torch.tensor([0, 2, 0, 1, 2, 0]), torch.tensor([0, 1, 2, 3, 0, 1])
    maps = torch.rand(3, *images.shape[-2:], generator=torch.Generator().manual_seed(0))
    filled = images.roll(1, 0) if fill == "picture" else fill
    answers = model.forward_raw(images[picture], query).logits.argmax(-1)
    found = sweep_areas(model, images, maps, query, answers, picture, fill=filled)

    def probability(altered, which):
        logits = model.forward_raw(altered, query[which]).logits
        return logits.softmax(-1).gather(1, answers[which, None]).squeeze(1)

    alone = filled[picture] if fill == "picture" else fill
    curves = deletion_and_insertion(probability, images[picture], maps[picture], fill=alone)
    for name, curve in zip(("deletion", "insertion"), curves):
        torch.testing.assert_close(found[name], curve.area, rtol=0, atol=1e-6)
        assert len(found[name].unique()) > 1


@torch.no_grad()
def test_an_altered_picture_is_encoded_once_for_all_its_questions():
    model, seen = tiny("soft"), []
    images, _ = batch(model)
    encode, query = model.encode, torch.tensor([0, 1, 2, 3])
    model.encode = lambda part: seen.append(len(part)) or encode(part)
    maps = torch.ones(1, *images.shape[-2:])
    sweep_areas(model, images[:1], maps, query, torch.zeros(4, dtype=torch.int64), torch.zeros(4).long(), fill=0.0)
    assert sum(seen) == 21 + 19  # four questions; insertion knows both of its ends from deletion


@torch.no_grad()
def test_many_labels_are_swept_by_their_own_probability():
    """The sigmoid of one label, not its share among all."""
    model = tiny("soft")
    images, _ = batch(model)
    model.multi_label = True
    logits = model.forward_raw(images[:1], torch.tensor([1])).logits
    label = logits.argmax(-1)
    maps = torch.ones(1, *images.shape[-2:])
    asked = torch.tensor([1]), label, torch.tensor([0])
    found = sweep_areas(model, images[:1], maps, *asked, fill=images[:1])  # the fill is the picture: nothing changes
    torch.testing.assert_close(found["deletion"], F.sigmoid(logits.amax(1)), rtol=0, atol=1e-6)
