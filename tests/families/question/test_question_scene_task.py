"""The training side of the attribute task: batches by number, the loss, what is refused, the model folder."""

import inspect
import itertools
import math

import pytest
import torch
from PIL import Image
from torch import nn

import saccade.data.scenes.stream as stream
import saccade.families.question.scenes.data as attributes
from saccade.engine.protocol import Trainable
from saccade.engine.recipe import Phase, load_recipe
from saccade.errors import ConfigError, DataError
from saccade.families import families, family
from saccade.families.contract import load_target
from saccade.families.question.losses import CrossEntropy, Default, Reinforce
from saccade.families.question.scenes.task import SceneTask
from saccade.families.question.tables.task import TableTask
from saccade.models.io.facts import read_facts
from saccade.models.io.folder import load_model
from saccade.tasks.task import in_batches

SMALL = {"channels": 4, "hidden": 4, "dropout": 0.0}
TRIPLES = 50


@pytest.fixture(autouse=True)
def _small_splits(monkeypatch):
    """Few scenes are made at a time, and finite splits are short."""
    monkeypatch.setitem(stream._CHUNK, "cpu", 16)
    monkeypatch.setitem(attributes._SIZES["authors"], "train", TRIPLES)
    monkeypatch.setitem(attributes._SIZES["unlimited"], "val", 23)


def new_task(*, protocol="unlimited", seed=0, **data) -> SceneTask:
    return SceneTask(model="soft", model_config=SMALL, data={"glyphs": "pack", **data}, protocol=protocol, seed=seed)


def batches(task, count, *, start=0, **options):
    return list(itertools.islice(task.train_batches(start, **options), count))


def same(one, other) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def joined(parts):
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}


def triples(task, numbers, batch_size):
    """Which triples a finite task's batches hold."""
    return torch.cat([task._members(task.split("train"), number, batch_size) for number in numbers]).tolist()


def test_a_picture_that_is_asked_several_times_comes_once():
    once, thrice = new_task(), new_task(asks=3)
    (plain,), (batch,) = batches(once, 1, batch_size=4), batches(thrice, 1, batch_size=12)
    assert torch.equal(batch["images"], plain["images"])
    assert batch["images"].is_contiguous(memory_format=torch.channels_last)
    assert (len(batch["query"]), len(batch["label"])) == (12, 12)
    assert torch.equal(batch["query"][::3], plain["query"])
    found = thrice.loss(thrice.model.forward_raw(**thrice.inputs(batch)), batch, Default())
    assert found["loss"].requires_grad
    with pytest.raises(ConfigError, match="a batch of 10 cannot be split into scenes that are asked 3 times"):
        batches(thrice, 1, batch_size=10)


def test_pictures_of_a_finite_set_are_varied_anew_each_time_and_fresh_ones_not():
    how = {"area": [0.7, 0.9], "mirror": False}
    plain, varied = new_task(protocol="authors"), new_task(protocol="authors", augment=how)
    data, indices = varied.split("train"), torch.arange(6)
    first, again, later = (varied.training_batch(data, indices, number) for number in (0, 0, 1))
    as_it_is = plain.training_batch(plain.split("train"), indices, 0)
    assert torch.equal(first.images, again.images)
    assert not torch.equal(first.images, later.images)
    assert not torch.allclose(first.images, as_it_is.images, atol=0.05)
    assert torch.equal(first.label, as_it_is.label)
    fresh = new_task(augment=how)
    assert torch.equal(
        fresh.training_batch(fresh.split("train"), indices, 0).images,
        new_task().training_batch(new_task().split("train"), indices, 0).images,
    )


def test_a_finite_split_asks_every_digit_whatever_asks_says():
    one, three = (batches(new_task(protocol="authors", asks=asks), 2, batch_size=10) for asks in (1, 3))
    assert all(same(*pair) for pair in zip(one, three))


@pytest.mark.parametrize("protocol", ["unlimited", "authors"])
def test_a_batch_is_a_function_of_its_number(protocol):
    """Started anywhere, in another task, after other batches: batch n stays batch n."""
    whole = batches(new_task(protocol=protocol), 8, batch_size=7)
    for start in (1, 3, 6, 7):  # 7 is the border of an epoch of fifty
        later = batches(new_task(protocol=protocol), 8 - start, start=start, batch_size=7)
        assert all(same(one, other) for one, other in zip(whole[start:], later))
    task = new_task(protocol=protocol)
    again = [batches(task, 1, start=number, batch_size=7)[0] for number in (7, 0, 4)]
    assert all(same(one, whole[number]) for one, number in zip(again, (7, 0, 4)))
    assert not same(whole[0], whole[1])


@pytest.mark.parametrize("protocol", ["unlimited", "authors"])
def test_ranks_together_see_the_batch_of_one(protocol):
    task = new_task(protocol=protocol)
    for number, one in enumerate(batches(task, 5, batch_size=12)):
        parts = [batches(task, 1, start=number, batch_size=4, rank=rank, world_size=3)[0] for rank in range(3)]
        assert same(joined(parts), one)


def test_ranks_see_in_one_batch_what_one_sees_in_several():
    task = new_task()
    ranks = [batches(task, 1, start=1, batch_size=5, rank=rank, world_size=2)[0] for rank in range(2)]
    assert same(joined(ranks), joined(batches(task, 2, start=2, batch_size=5)))


def test_an_epoch_visits_each_triple_at_most_once_and_the_next_in_another_order():
    task = new_task(protocol="authors")
    per_epoch = task.steps_per_epoch(8)
    assert per_epoch == TRIPLES // 8
    first, second = (triples(task, range(epoch * per_epoch, (epoch + 1) * per_epoch), 8) for epoch in (0, 1))
    for order in (first, second):
        assert len(set(order)) == len(order) == per_epoch * 8
        assert set(order) <= set(range(TRIPLES))
    assert first != second
    assert first != sorted(first)
    assert triples(new_task(protocol="authors"), [0], TRIPLES) != list(range(TRIPLES))
    assert sorted(triples(task, [0], TRIPLES)) == list(range(TRIPLES))


def test_seeds_order_a_finite_set_and_draw_fresh_scenes_but_never_what_is_scored():
    zero, one = (new_task(protocol="authors", seed=seed) for seed in (0, 1))
    assert triples(zero, [0], 20) != triples(one, [0], 20)
    assert zero.split("train").seed == one.split("train").seed  # the same set in another order
    zero, one = (new_task(seed=seed) for seed in (0, 1))
    fresh = [batches(task, 1, batch_size=8)[0] for task in (zero, one)]
    assert not torch.equal(fresh[0]["images"], fresh[1]["images"])
    for split in ("val", "test"):
        scored = [task.split(split).take(torch.arange(6)).images for task in (zero, one)]
        assert torch.equal(*scored)


def test_training_and_validation_share_no_scene():
    task = new_task()
    seeds = {task.split(split).seed for split in ("train", "val", "test")}
    assert len(seeds) == 3


def test_scenes_of_another_data_seed_are_others():
    assert (
        new_task(seed=0).split("val").seed
        != SceneTask(model="soft", model_config=SMALL, data={"glyphs": "pack", "seed": 5}).split("val").seed
    )


def test_a_batch_larger_than_the_set_is_refused():
    task = new_task(protocol="authors")
    assert len(batches(task, 1, batch_size=TRIPLES)[0]["label"]) == TRIPLES
    for options in ({"batch_size": TRIPLES + 1}, {"batch_size": 26, "world_size": 2}):
        with pytest.raises(DataError, match=rf"batch of 5[12] is larger than the {TRIPLES} training examples"):
            batches(task, 1, **options)


def test_fresh_scenes_have_no_epochs():
    assert new_task().steps_per_epoch(8) is None


def test_in_batches_goes_through_a_finite_split_once():
    data = new_task().split("val")
    parts = list(in_batches(data, 10))
    assert [len(part) for part in parts] == [10, 10, 3]
    asked = [pair for part in parts for pair in zip(part.scene.tolist(), part.object.tolist())]
    assert asked == sorted(set(asked))  # every digit of a scene once, in order
    with pytest.raises(DataError, match="no end"):
        next(in_batches(new_task().split("train"), 10))


def test_it_is_what_the_engine_trains():
    """Every method of the protocol is there, and can be called with the protocol's arguments."""
    task = new_task()
    assert isinstance(task.model, nn.Module)
    for name, asked in inspect.getmembers(Trainable, inspect.isfunction):
        if name.startswith("_"):
            continue
        given = inspect.signature(getattr(SceneTask, name)).parameters
        wanted = inspect.signature(asked).parameters
        assert [(each.name, each.kind, each.default) for each in given.values()] == [
            (each.name, each.kind, each.default) for each in wanted.values()
        ], name


def test_inputs_feed_the_model_and_no_label_leaks():
    task = new_task()
    batch = batches(task, 1, batch_size=3)[0]
    assert set(task.inputs(batch)) == {"images", "query", "asks"}
    assert task.model.forward_raw(**task.inputs(batch))["logits"].shape == (3, 5)


@pytest.mark.parametrize("loss", [Default(), CrossEntropy()])
def test_loss_hand_worked(loss):
    """Equal logits: log 2 of two answers. Odds 3:1 for the wrong one: −log 1/4. Arg-max right once in two."""
    raw = {"logits": torch.tensor([[1.0, 1.0], [math.log(3), 0.0]])}
    found = new_task().loss(raw, {"label": torch.tensor([0, 1])}, loss)
    assert set(found) == {"loss", "accuracy"}
    assert float(found["loss"]) == pytest.approx((math.log(2) + math.log(4)) / 2)
    assert float(found["accuracy"]) == 0.5


def drawn(probabilities, log_prob=(-1.0, -2.0)):
    """What a model that draws two locations gives for one picture: the share of the right answer at each."""
    shares = torch.tensor([[[share, 1 - share] for share in probabilities]])
    sampled = torch.tensor([log_prob], requires_grad=True)
    return {
        "logits": shares[:, 0].log(),
        "sampled_logits": shares.log().requires_grad_(),
        "sampled_log_prob": sampled,
        "entropy": torch.tensor([math.log(4)]),
    }


@pytest.mark.parametrize("loss", [Default(), Reinforce()])
def test_drawn_locations_are_taught_by_what_they_answer(loss):
    """Shares 1/2 and 1/8 of the right answer: rewards −log 2 and −log 8, each the other's baseline, 2·log 2 apart.

    The bound is their mean, −2·log 2; four cells equally likely have an entropy of 2·log 2, weighed with 0.002.
    """
    raw = drawn((0.5, 0.125))
    found = new_task().loss(raw, {"label": torch.tensor([0])}, loss)
    assert found["loss"].item() == pytest.approx(2 * math.log(2) * (1 - 0.002))
    found["loss"].backward()
    advantage = 2 * math.log(2)
    assert raw["sampled_log_prob"].grad.tolist() == [pytest.approx([-advantage / 2, advantage / 2])]
    assert raw["sampled_logits"].grad.abs().sum() > 0


def test_the_entropy_of_draws_counts_as_much_as_is_asked_for():
    found = new_task().loss(drawn((0.5, 0.125)), {"label": torch.tensor([0])}, Reinforce(entropy=0.5))
    assert found["loss"].item() == pytest.approx(2 * math.log(2) * (1 - 0.5))


def test_drawn_locations_can_be_left_untaught():
    raw = drawn((0.5, 0.125))
    found = new_task().loss(raw, {"label": torch.tensor([0])}, CrossEntropy())
    assert float(found["loss"]) == pytest.approx(math.log(2))
    assert not found["loss"].requires_grad


def test_reinforce_needs_a_model_that_draws():
    with pytest.raises(ConfigError, match="draws no locations in training; take model 'hard' with estimator: reinf"):
        new_task().loss({"logits": torch.zeros(1, 5)}, {"label": torch.tensor([0])}, Reinforce())


@pytest.mark.parametrize("estimator", ["marginal", "reinforce"])
def test_hard_attention_is_trained_by_either_estimator(estimator):
    task = SceneTask(model="hard", model_config=SMALL | {"estimator": estimator}, data={"glyphs": "pack"})
    batch = batches(task, 1, batch_size=6)[0]
    found = task.loss(task.model.train().forward_raw(**task.inputs(batch)), batch, Default())
    found["loss"].backward()
    assert set(found) == {"loss", "accuracy"}
    assert task.model.attention.scorer.to_score.weight.grad.abs().sum() > 0


def test_validation_hand_worked():
    """A model that always gives its first answer the odds e : 1 : 1 : 1 : 1."""

    class Constant(nn.Module):
        network_size = None

        def forward_raw(self, images, query):
            return {"logits": torch.tensor([[1.0, 0.0, 0.0, 0.0, 0.0]]).expand(len(query), 5)}

    task = new_task()
    labels = task.split("val").take(torch.arange(23)).label
    share = float((labels == 0).double().mean())
    found = task.validate(Constant())
    assert found["accuracy"] == pytest.approx(share)
    assert found["loss"] == pytest.approx(math.log(math.e + 4) - share, rel=1e-5)
    assert set(found) == set(task.metric_names())


def test_models_are_a_function_of_their_seed_and_leave_the_generator_alone():
    before = torch.get_rng_state()
    task = new_task(seed=3)
    again, other = task.new_model(3), task.new_model(4)
    assert torch.equal(torch.get_rng_state(), before)
    state = task.model.state_dict()
    assert all(torch.equal(state[name], value) for name, value in again.state_dict().items())
    assert not all(torch.equal(state[name], value) for name, value in other.state_dict().items())


def test_moving_makes_splits_anew():
    task = new_task()
    before = task.split("val")
    assert task.split("val") is before
    task.to(torch.device("cpu"))
    assert task.split("val") is not before
    assert task.split("val").device.type == "cpu"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"model": "sfot"}, "no model 'sfot': did you mean 'soft'"),
        ({"model_config": {"chanels": 4}}, "unknown setting 'model.config.chanels': did you mean 'channels'"),
        ({"model_config": {"channels": "many"}}, "model.config.channels: expected int"),
        ({"data": {"nmae": "mref"}}, "unknown setting 'data.nmae': did you mean 'name'"),
        ({"data": {"name": "mreff"}}, "name: found 'mreff'; did you mean 'mref'"),
        ({"data": {"glyphs": "pakc"}}, "data.glyphs: found 'pakc'; did you mean 'pack'"),
        ({"protocol": "author"}, "data.protocol: found 'author'; did you mean 'authors'"),
        ({"seed": -1}, "seed: .*found -1"),
        ({"seed": 1 << 40}, "seed: .*found 1099511627776"),
    ],
)
def test_wrong_settings_are_named(settings, words):
    with pytest.raises(ConfigError, match=words):
        SceneTask(**{"model": "soft", "model_config": SMALL, "data": {"glyphs": "pack"}, **settings})


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"loss": "cross_entrpy"}, "phase 'main': loss 'cross_entrpy': did you mean 'cross_entropy'"),
        ({"loss": {"name": "reinforce", "entrpy": 1}}, "unknown setting 'loss.entrpy': did you mean 'entropy'"),
        ({"loss": {"name": "reinforce", "entropy": -1}}, "entropy"),
        ({"loss": {"name": "reinforce", "entropy": "much"}}, "loss.entropy: expected float, found str 'much'"),
        (
            {"loss": {"name": "cross_entropy", "entropy": 1}},
            "unknown setting 'loss.entropy': choose from evidence_weight",
        ),
        ({"loss": "reinforce:0.1"}, r"did you mean 'reinforce'.* as in {name: reinforce, entropy: …}"),
        ({"data": "objects"}, "data 'objects': choose from default"),
    ],
)
def test_phases_that_cannot_be_are_refused(settings, words):
    with pytest.raises(ConfigError, match=words):
        new_task().phase_loss(Phase(steps=1, **settings))


def test_the_loss_of_a_phase_is_built_from_its_settings():
    task = new_task()
    assert task.phase_loss(Phase(steps=1)) == Default()
    assert task.phase_loss(Phase(steps=1, loss="cross_entropy")) == CrossEntropy()
    assert task.phase_loss(Phase(steps=1, loss={"name": "reinforce", "entropy": 1})) == Reinforce(entropy=1.0)


def test_a_model_that_answers_no_queries_is_refused(monkeypatch):
    class Spec:
        def resolve(self):
            return nn.Linear

    monkeypatch.setattr("saccade.tasks.task.model_spec", lambda name: Spec())
    with pytest.raises(ConfigError, match="needs one that answers queries"):
        new_task()


def test_tasks_are_found_by_name():
    task = load_target(family("question").task)
    assert task.for_data("mref") is SceneTask
    assert task.for_data("csv:my.csv") is TableTask
    assert all(load_target(each.task).name == name for name, each in families().items())
    with pytest.raises(ConfigError, match="no family 'qestion': did you mean 'question'"):
        family("qestion")


def test_the_model_folder_says_how_it_was_made(tmp_path):
    task = new_task(seed=2)
    task.save_model(task.model, tmp_path / "m", {"recipe": {"name": "r"}, "revision": "abc", "step": 7, "minutes": 0.5})
    model, facts = load_model(tmp_path / "m")
    assert all(torch.equal(value, task.model.state_dict()[name]) for name, value in model.state_dict().items())
    expected = {"name": "mref", "glyphs": "pack", "backgrounds": None, "protocol": "unlimited", "asks": 1}
    assert facts.data == expected | {"planted": "none", "absent": 0.0, "drawing": "blend", "augment": None, "seed": 0}
    assert (facts.architecture, facts.family, facts.seed, facts.protocol) == ("soft", "question", 2, "unlimited")
    assert facts.model["channels"] == 4
    assert (facts.recipe, facts.revision) == ({"name": "r"}, "abc")
    assert facts.training == {"step": 7, "minutes": 0.5}
    assert facts.queries == tuple("0123456789")
    assert facts.answers == ("green", "yellow", "white", "red", "blue")
    assert facts.preprocessing.size == (100, 100)


def test_a_run_on_the_shipped_photographs_says_so_in_its_log_and_its_card(tmp_path, monkeypatch):
    monkeypatch.setenv("SACCADE_HOME", str(tmp_path / "empty"))
    task = new_task(name="mbg")
    assert task.summary().startswith("photographs: shipped-train-4-3b287d7b (the nine photographs that ship")
    task.save_model(task.model, tmp_path / "model", {})
    card = (tmp_path / "model" / "card.md").read_text(encoding="utf-8")
    assert "- photographs: shipped-train-4-3b287d7b (the nine photographs that ship" in card


def test_other_photographs_are_named_and_other_scenes_have_none(tmp_path):
    for number in range(12):
        Image.new("RGB", (160, 120), (number * 20, 0, 0)).save(tmp_path / f"{number}.png")
    assert (
        new_task(name="mbg", backgrounds=str(tmp_path)).summary().startswith(f"photographs: {tmp_path.name}-train-10-")
    )
    assert "ship" not in new_task(name="mbg", backgrounds=str(tmp_path)).summary()
    assert (new_task().summary(), new_task().training_notes()) == ("", {})


def test_the_drawing_of_a_run_is_in_its_log_its_data_note_and_its_card(tmp_path):
    task = new_task(drawing="authors")
    assert task.summary() == "drawing: authors"
    assert ("drawing", '"authors"') in task.data_parts()["settings"]
    task.save_model(task.model, tmp_path / "model", {})
    assert "- data.drawing: authors\n" in (tmp_path / "model" / "card.md").read_text(encoding="utf-8")
    assert read_facts(tmp_path / "model").data["drawing"] == "authors"


SCENE_RECIPES = [name for name in family("question").recipes() if name.endswith(("-mref", "-mdist", "-mbg", "-fast"))]


@pytest.mark.parametrize("recipe", SCENE_RECIPES)
def test_recipes_draw_as_the_authors_with_their_sizes_and_blend_fresh_scenes(recipe):
    drawn = [load_recipe(recipe, protocol=protocol).data.get("drawing") for protocol in ("authors", "unlimited")]
    assert drawn == ["authors", None]
