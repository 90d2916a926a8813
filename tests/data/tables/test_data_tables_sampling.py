"""Splits and samples by a hash of the name: fair, whole pictures, whatever the order of the rows."""

from pathlib import Path

import pytest

from saccade.data.examples import hashed_share, sample_pictures, sample_rows

DATA = Path("/data")
PICTURES = [Path(f"/data/{number:04}.jpg") for number in range(400)]


def test_a_table_sorted_by_label_gives_both_labels_their_share():
    """The first 100 of 400 rows would all have the first label; the sample has about as many of each (sd 4)."""
    found = sample_rows(PICTURES, DATA, 100)
    assert len(found) == 100
    assert 35 <= int((found < 200).sum()) <= 65


def test_rows_about_one_picture_stay_together_but_for_the_last():
    images = [picture for picture in PICTURES[:50] for _ in range(3)]
    found = sample_rows(images, DATA, 20)
    counts = sorted(sum(images[row] == picture for row in found.tolist()) for picture in set(images))
    assert counts == [0] * 43 + [2] + [3] * 6


@pytest.mark.parametrize(("count", "pictures"), [(0, 0), (30, 30), (60, 50), (999, 50)])
def test_each_picture_comes_once_before_any_comes_twice(count, pictures):
    images = [picture for picture in PICTURES[:50] for _ in range(3)]
    words = ["crown", "bill", "belly"] * 50
    found = sample_pictures(images, DATA, words, count).tolist()
    assert len(found) == min(count, 150)
    assert len({images[row] for row in found}) == pictures
    assert found == sorted(found)


def test_equal_names_in_folders_are_a_sample_of_both_and_the_root_does_not_matter():
    """Frames of videos: by their names alone, a sample would hold the same frames of all videos."""
    places = [f"{video:02}/{frame:02}.jpg" for video in range(20) for frame in range(20)]
    here, there = ([Path(root) / place for place in places] for root in ("/data", "/mnt/a/b"))
    found = sample_rows(here, Path("/data"), 100)
    assert found.tolist() == sample_rows(there, Path("/mnt/a/b"), 100).tolist()
    assert len({int(row) % 20 for row in found}) > 15  # by names: 5 frames of each video
    words = ["crown", "bill"] * 200
    swept = [sample_pictures(images, root, words, 60) for images, root in ((here, DATA), (there, Path("/mnt/a/b")))]
    assert swept[0].tolist() == swept[1].tolist()


def test_shares_are_pinned():
    assert hashed_share("a.png") == pytest.approx(0.4962016, abs=1e-7)
