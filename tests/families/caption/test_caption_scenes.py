"""Captioned scenes: reproducible to the bit, never ambiguous, and the sentence says what is there."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from saccade.data.scenes.drawing import COLOURS, render
from saccade.data.scenes.glyphs import glyphs_for
from saccade.data.scenes.layout import SceneLayout
from saccade.errors import DataError
from saccade.families.caption.scenes import (
    MARGIN,
    SCENE_VOCABULARY,
    SIDES,
    check_words,
    describe,
    sample_captioned,
    scene_spec,
    scene_vocabulary,
)
from scene_digests import layout_digest

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def sample(numbers: torch.Tensor, size: int = 100, seed: int = 0, empty: float = 0.0) -> SceneLayout:
    return sample_captioned(scene_spec(size, empty), glyphs_for("train", "pack"), seed, numbers)


def said(layout: SceneLayout) -> list[str]:
    return [SCENE_VOCABULARY.decode(words) for words in describe(layout)[0].tolist()]


@pytest.fixture(scope="module")
def thousand() -> SceneLayout:
    return sample(torch.arange(1000))


@pytest.mark.parametrize("size", [40, 100, 137, 400])
def test_one_sentence_is_true_by_a_margin(size):
    layout = sample(torch.arange(5000), size)
    percent = layout.side[layout.present]
    small, large = ([bound * size // 100 for bound in bounds] for bounds in SIDES)
    assert set(percent.unique().tolist()) == {*range(small[0], small[1] + 1), *range(large[0], large[1] + 1)}
    for edge in (layout.x, layout.y):
        assert (edge >= 0).all()
        assert (edge + layout.side <= size)[layout.present].all()
    two = layout[(layout.count == 2).nonzero().squeeze(1)]
    across, down = ((2 * edge + two.side).diff(dim=1).squeeze(1) for edge in (two.x, two.y))  # half pixels
    assert ((down.abs() - across.abs()).abs() >= 2 * (MARGIN * size // 100)).all()
    above = down.abs() > across.abs()
    assert (down[above] > 0).all()  # the first is the upper one …
    assert (across[~above] > 0).all()  # … or the left one
    gap = torch.where(above, two.y[:, 1] - two.y[:, 0] - two.side[:, 0], two.x[:, 1] - two.x[:, 0] - two.side[:, 0])
    assert (gap >= 0).all()
    assert (two.classes[:, 0] != two.classes[:, 1]).all()


def test_sentences_say_what_is_there(thousand):
    """Each sentence spelled out by hand from the layout."""

    def phrase(b: int, k: int) -> str:
        size = "small" if thousand.side[b, k] <= 27 else "large"
        return f"a {size} {COLOURS[int(thousand.colour[b, k])]} {DIGITS[int(thousand.classes[b, k])]}"

    for b, sentence in enumerate(said(thousand)):
        if not thousand.present[b, 1]:
            assert sentence == phrase(b, 0)
            continue
        x0, y0, x1, y1 = (thousand.boxes[b, :, :2] * 2 + thousand.side[b, :, None]).flatten().tolist()
        relation = "above" if abs(y1 - y0) > abs(x1 - x0) else "left of"
        assert sentence == f"{phrase(b, 0)} {relation} {phrase(b, 1)}"


def test_content_words_name_their_digit(thousand):
    words, names = describe(thousand)
    assert words.shape == names.shape == (1000, 11)
    relations = {"a", "above", "left", "of", "<end>"}
    for b in range(200):
        seen = 0
        for word, name in zip(words[b].tolist(), names[b].tolist()):
            text = "" if word < 0 else SCENE_VOCABULARY[word]
            seen += text == "a"
            assert name == (-1 if not text or text in relations else seen - 1)
    ends = (words == 0).long().argmax(1)
    assert ((words == 0).sum(1) == 1).all()
    assert torch.equal((words == -1), torch.arange(11) > ends[:, None])


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**40), share=st.floats(0, 1), more=st.floats(0, 1))
def test_empty_scenes_leave_the_others_as_they_are(seed, share, more):
    share, more = sorted((share, more))
    full, some, bare = (sample(torch.arange(40), seed=seed, empty=each) for each in (0.0, share, more))
    kept = (some.count > 0).nonzero().squeeze(1)
    assert layout_digest(some[kept]) == layout_digest(full[kept])
    assert torch.equal(render(some)[kept], render(full)[kept])
    assert not (bare.present & ~some.present).any()  # a larger share empties more scenes, never others instead


def test_of_an_empty_scene_nothing_is_said_shown_or_named():
    layout = sample(torch.arange(30), empty=1.0)
    words, names = describe(layout)
    assert words.tolist() == [[23, 0, *[-1] * 9]] * 30
    assert set(said(layout)) == {"nothing"}
    assert (names == -1).all()
    assert not render(layout).any()
    assert not layout.masks().any()


def test_words_keep_their_numbers_and_models_without_the_last_their_sentences(thousand):
    old = scene_vocabulary(empty=False)
    assert scene_vocabulary(empty=True) == SCENE_VOCABULARY
    assert SCENE_VOCABULARY.entries == (*old.entries, "nothing")
    assert len(old) == 23
    full, short = (describe(thousand, each) for each in (SCENE_VOCABULARY, old))
    assert torch.equal(full[0], short[0])
    assert torch.equal(full[1], short[1])
    with pytest.raises(DataError, match="has no 'nothing' to say of empty ones"):
        check_words(old, empty=True)
