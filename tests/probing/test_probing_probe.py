"""``saccade.Probe``: a classifier as scikit-learn has them, its verdict on planted pictures, and its saved model."""

import copy
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import saccade
from saccade.errors import ConfigError, DataError

SMALL: dict[str, Any] = {
    "backbone": "compact", "through": "layer2", "size": 32, "splits": 3, "seeds": 1, "steps": 60, "hidden": 8,
    "rates": (3e-2,), "linear_rates": (1e-2, 1e-1), "decays": (1e-2,), "shares": (), "device": "cpu",
}  # fmt: skip


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SACCADE_HOME", str(tmp_path_factory.mktemp("home")))


def made_up(kind: str, count: int = 90) -> tuple[list[Image.Image], np.ndarray]:
    """Pictures of two classes.

    ``colour``: the whole picture is a little red or green. ``nothing``: labels are drawn by lot.
    """
    generator, pictures = np.random.default_rng(0), []
    labels = generator.permutation(np.arange(count) % 2)
    for label in labels:
        pixels = generator.integers(0, 90, (32, 32, 3))
        if kind == "colour":
            pixels[..., label] += 40
        pictures.append(Image.fromarray(pixels.astype(np.uint8)))
    return pictures, labels


@pytest.fixture(scope="module")
def colours(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, list[Image.Image], np.ndarray]:
    """A probe that learned from pictures in memory; the pictures and their labels."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SACCADE_HOME", str(tmp_path_factory.mktemp("home")))
        pictures, labels = made_up("colour")
        return saccade.Probe(**SMALL, heads=["cross"]).fit(pictures, labels), pictures, labels


def test_it_predicts_what_the_saved_model_answers(colours: Any, tmp_path: Path) -> None:
    probe, pictures, _ = colours
    shares, answers = probe.predict_proba(pictures[:6]), probe.predict(np.stack(pictures[:6]))
    model = saccade.load(probe.save(tmp_path / "out").folder, "cpu")
    seen = [model.look(picture) for picture in pictures[:6]]
    assert [look.answer for look in seen] == [str(answer) for answer in answers]
    assert [look.confidence for look in seen] == pytest.approx(shares.max(1), abs=1e-6)
    assert shares.sum(1) == pytest.approx(np.ones(6))
    for look, found in zip(seen, probe.evidence(pictures[:6])):
        assert found.shape == (32, 32)
        np.testing.assert_allclose(found, look.map(), atol=1e-5)
    assert (tmp_path / "out" / "report.html").is_file()


def test_classes_keep_their_type_and_order(tmp_path: Path) -> None:
    pictures, labels = made_up("colour", 36)
    numbers = np.where(labels == 1, 10, 9)  # as words, 10 comes first
    probe = saccade.Probe(**{**SMALL, "steps": 2}, heads=["cross"]).fit([np.array(one) for one in pictures], numbers)
    assert probe.classes_.tolist() == [9, 10]
    assert {*probe.predict(pictures)} <= {9, 10}
    files = []
    for number, picture in enumerate(pictures):
        files.append(tmp_path / f"{number}.png")
        picture.save(files[-1])
    again = saccade.Probe(**{**SMALL, "steps": 2}, heads=["cross"]).fit(files, numbers)
    np.testing.assert_allclose(again.predict_proba(files[:3]), probe.predict_proba(pictures[:3]), atol=1e-6)
    assert again.predict(tmp_path).shape == (36,)  # a folder


def test_what_it_cannot_do_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="headz"):
        saccade.Probe(headz=["cross"])
    with pytest.raises(ConfigError, match="splits"):
        saccade.Probe(splits=2).fit(*made_up("colour", 12))
    with pytest.raises(ConfigError, match="fit first"):
        saccade.Probe().predict([])
    with pytest.raises(ConfigError, match="fit first"):
        saccade.Probe().save(tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(DataError, match="2 labels"):
        saccade.Probe(**SMALL).fit(made_up("colour", 3)[0], [0, 1])


def test_it_predicts_the_same_after_it_was_pickled(colours: Any, tmp_path: Path) -> None:
    probe, pictures, labels = colours
    copied = pickle.loads(pickle.dumps(probe))
    np.testing.assert_array_equal(copied.predict_proba(pictures[:6]), probe.predict_proba(pictures[:6]))
    np.testing.assert_array_equal(copied.evidence(pictures[:1])[0], probe.evidence(pictures[:1])[0])
    assert copied.predict(pictures[:6]).tolist() == probe.predict(pictures[:6]).tolist()
    assert (copied.verdict, copied.get_params()) == (probe.verdict, probe.get_params())
    with pytest.raises(ConfigError, match="without its pictures"):
        pickle.loads(pickle.dumps(copied)).save(tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert pickle.loads(pickle.dumps(saccade.Probe(**SMALL))).get_params() == saccade.Probe(**SMALL).get_params()
    elsewhere = copy.copy(probe)
    elsewhere.plan = replace(probe.plan, device="cuda:99")  # no machine here has that
    back = pickle.loads(pickle.dumps(elsewhere))
    assert back.predict(pictures[:6]).tolist() == probe.predict(pictures[:6]).tolist()
    again = copied.fit(pictures, labels).save(tmp_path / "out")
    assert again.verdict == probe.verdict


def test_labels_of_another_type_are_no_score_of_zero(colours: Any) -> None:
    probe, pictures, labels = colours
    assert probe.score(pictures[:6], labels[:6]) == probe.score(pictures[:6], labels[:6].astype(float))
    with pytest.raises(ConfigError, match="same type"):
        probe.score(pictures[:6], labels[:6].astype(str))


@pytest.mark.parametrize("option", [{"size": 96}, {"through": "layer2"}, {"untrained": True}])
def test_maps_computed_elsewhere_have_no_network_to_change(option: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no network"):
        saccade.Probe(backbone=f"features:{tmp_path}", **option).fit(*made_up("colour", 12))


def test_a_file_comes_once_whatever_it_is_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    files = [f"{number}.png" for number in range(4)]
    for file, picture in zip(files, made_up("colour", 4)[0]):
        picture.save(file)
    again = tmp_path / files[1]
    with pytest.raises(DataError, match="two labels, 'b' and 'a'"):
        saccade.Probe(**SMALL).fit([*files, again], [*"abab", "a"])
    with pytest.raises(DataError, match="comes twice, as number 1 and number 4"):
        saccade.Probe(**SMALL).fit([*files, again], [*"abab", "b"], groups=range(5))


def test_scikit_learn_takes_it_as_its_own(colours: Any) -> None:
    base = pytest.importorskip("sklearn.base")
    pipeline, selection = pytest.importorskip("sklearn.pipeline"), pytest.importorskip("sklearn.model_selection")
    _, pictures, labels = colours
    quick = saccade.Probe(**{**SMALL, "steps": 20}, heads=["cross"])
    copied = base.clone(quick)
    assert copied.get_params() == quick.get_params()
    assert base.is_classifier(copied)
    assert copied.set_params(seeds=2).get_params()["seeds"] == 2
    assert quick.get_params()["seeds"] == 1
    assert base.clone(saccade.Probe()).get_params()["backbone"] == "mobilenetv2"
    chained = pipeline.Pipeline([("probe", quick)]).fit(pictures, labels)
    assert (chained.predict(pictures[:4]) == quick.predict(pictures[:4])).all()
    scores = selection.cross_val_score(quick, np.stack(pictures), labels, cv=2)
    assert scores.mean() > 0.7
