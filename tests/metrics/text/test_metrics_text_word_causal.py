import torch

from saccade.metrics import same_caption, word_follow

A, RED, BLUE, SEVEN, TWO = 2, 3, 4, 5, 6  # ids; 0 is the end, −1 is padding


def captions(*rows):
    width = max(len(row) for row in rows)
    return torch.tensor([[*row, *[-1] * (width - len(row))] for row in rows])


def follow(before, after, place=1, new=BLUE, old=RED):
    count = len(before)
    places, new_words, old_words = (torch.full((count,), value) for value in (place, new, old))
    return word_follow(before, after, place=places, new_word=new_words, old_word=old_words)


def test_what_can_become_of_a_caption():
    before = captions(*[[A, RED, SEVEN, 0]] * 6)
    after = captions(
        [A, BLUE, SEVEN, 0],  # follows and holds
        [A, RED, SEVEN, 0],  # did not notice
        [A, BLUE, TWO, 0],  # follows, but the digit changed as well
        [A, BLUE, SEVEN, A, RED, TWO, 0],  # follows, and goes on talking
        [A, BLUE, 0],  # follows, and stops early
        [0],  # says nothing
    )
    found = follow(before, after)
    assert found.followed.tolist() == [1, 0, 1, 1, 1, 0]
    assert found.held.tolist() == [1, 1, 0, 0, 0, 0]
    assert found.causal_follow.tolist() == [1, 0, 0, 0, 0, 0]


def test_the_place_tells_two_objects_of_one_colour_apart():
    before = captions([A, RED, SEVEN, A, RED, TWO, 0])
    wrong_one = captions([A, BLUE, SEVEN, A, RED, TWO, 0])
    assert follow(before, wrong_one, place=1).causal_follow.item() == 1
    assert follow(before, wrong_one, place=4).causal_follow.item() == 0


def test_a_first_caption_that_was_wrong_can_still_be_followed():
    before, after = captions([A, BLUE, TWO, 0], [A, RED, SEVEN, 0]), captions(*[[A, BLUE, TWO, 0]] * 2)
    assert follow(before, after).causal_follow.tolist() == [1, 0]


def test_what_comes_after_the_end_does_not_count():
    before, after = captions([A, RED, 0, 9, 9]), captions([A, BLUE, 0])
    assert follow(before, after).causal_follow.item() == 1


def test_same_caption():
    truth = captions([A, RED, SEVEN, 0], [A, RED, 0], [A, RED, SEVEN, 0])
    said = torch.tensor([[A, RED, SEVEN, 0, 7, 7], [A, RED, SEVEN, 0, -1, -1], [A, RED, SEVEN, A, 0, -1]])
    assert same_caption(said, truth).tolist() == [1, 0, 0]
