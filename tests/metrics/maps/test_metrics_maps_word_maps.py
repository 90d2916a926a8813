import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from saccade.errors import DataError, ShapeError
from saccade.metrics import WordScores, uniform_word_strength, word_strength, words_among


def two_captions():
    """Two captions of three words on 2×2 pixels; the second word of the first and the third of the second count."""
    masks = torch.zeros(2, 3, 2, 2, dtype=torch.bool)
    masks[0, 1, 0] = True  # the upper half
    masks[1, 2, 1, 1] = True  # one pixel
    has_mask = torch.tensor([[False, True, False], [False, False, True]])
    maps = torch.full((2, 3, 2, 2), 0.25)
    maps[0, 1] = torch.tensor([[4.0, 2.0], [3.0, 1.0]])
    return maps, masks, has_mask


def test_words_by_hand():
    """6 of 10 on the upper half; a uniform map has a quarter on one pixel of four."""
    maps, masks, has_mask = two_captions()
    found = word_strength(maps, masks, has_mask)
    assert found.isnan().tolist() == (~has_mask).tolist()
    assert found[has_mask].tolist() == pytest.approx([0.6, 0.25])
    assert uniform_word_strength(masks, has_mask)[has_mask].tolist() == pytest.approx([0.5, 0.25])
    assert uniform_word_strength(masks, has_mask).isnan().tolist() == (~has_mask).tolist()


@given(seed=st.integers(0, 1000))
def test_the_uniform_baseline_is_the_score_of_a_constant_map(seed):
    generator = torch.Generator().manual_seed(seed)
    masks = torch.rand(3, 4, 5, 6, generator=generator) < 0.2
    has_mask = torch.rand(3, 4, generator=generator) < 0.6
    constant = word_strength(torch.full(masks.shape, 0.3), masks, has_mask)
    torch.testing.assert_close(uniform_word_strength(masks, has_mask), constant, equal_nan=True)


def test_a_mask_without_a_pixel_has_no_score():
    maps, masks, has_mask = two_captions()
    masks[0] = False
    assert word_strength(maps, masks, has_mask)[0, 1].isnan()
    assert uniform_word_strength(masks, has_mask)[0, 1].isnan()


def test_what_stands_at_other_words_does_not_matter():
    maps, masks, has_mask = two_captions()
    expected = word_strength(maps, masks, has_mask)
    maps[~has_mask] = torch.nan
    torch.testing.assert_close(word_strength(maps, masks, has_mask), expected, equal_nan=True)
    maps[1, 2, 0, 0] = torch.nan
    with pytest.raises(DataError, match="word map of picture 1"):
        word_strength(maps, masks, has_mask)


def test_wrong_shapes_and_types():
    maps, masks, has_mask = two_captions()
    with pytest.raises(ShapeError, match="word maps"):
        word_strength(maps[:, :2], masks, has_mask)
    with pytest.raises(ShapeError, match="has_mask"):
        word_strength(maps, masks, has_mask[:1])
    with pytest.raises(ShapeError, match="word masks"):
        uniform_word_strength(masks[0], has_mask)
    with pytest.raises(DataError, match="word masks: expected bool"):
        uniform_word_strength(masks.float(), has_mask)
    with pytest.raises(DataError, match="has_mask: expected bool"):
        word_strength(maps, masks, has_mask.long())


def test_captions_without_content_words_are_all_nan():
    maps, masks, _ = two_captions()
    assert word_strength(maps, masks, torch.zeros(2, 3, dtype=torch.bool)).isnan().all()


def test_means_are_over_words_not_over_captions_or_batches():
    scores = WordScores()
    words = torch.tensor([[5, 6, 5], [6, 0, -1]])
    kinds = {"colour": [5], "digit": [6, 7], "size": [8]}
    for strength, rows in (([[0.1, 0.3, 0.2]], slice(0, 1)), ([[0.8, math.nan, math.nan]], slice(1, 2))):
        scores.add({"strength": torch.tensor(strength)}, words_among(words[rows], kinds), torch.tensor([rows.start]))
    means = scores.means("strength")
    assert list(means) == ["all", "colour", "digit", "size"]
    assert means["all"].mean == pytest.approx((0.1 + 0.3 + 0.2 + 0.8) / 4)
    assert (means["all"].n, means["all"].undefined) == (4, 2)
    assert means["colour"].mean == pytest.approx(0.15)
    assert means["digit"].mean == pytest.approx(0.55)
    assert math.isnan(means["size"].mean)
    assert means["size"].n == 0


def test_the_interval_counts_pictures():
    """Ten equal words of one picture are one piece of evidence, not ten."""
    scores = WordScores()
    values = torch.tensor([0.2, 0.4, 0.9]).unsqueeze(1).expand(3, 10)
    scores.add({"strength": values}, {}, torch.arange(3))
    found = scores.interval("strength")
    assert (found.n, found.images) == (30, 3)
    assert found.mean == pytest.approx(0.5)
    assert found.low < 0.35
    assert found.high > 0.7


def test_a_batch_that_does_not_fit_is_an_error():
    scores = WordScores()
    strength, kind = torch.zeros(2, 3), torch.zeros(2, 3, dtype=torch.bool)
    with pytest.raises(ShapeError, match="pictures"):
        scores.add({"strength": strength}, {}, torch.arange(3))
    with pytest.raises(ShapeError, match="colour of words"):
        scores.add({"strength": strength}, {"colour": kind[:, :2]}, torch.arange(2))
    scores.add({"strength": strength}, {"colour": kind}, torch.arange(2))
    with pytest.raises(DataError, match="this batch has nothing, the ones before had colour"):
        scores.add({"strength": strength}, {}, torch.arange(2))
