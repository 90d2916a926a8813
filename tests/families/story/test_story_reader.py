"""The rule reader: answers and supporting sentences of hand-written stories, in the order of the official files."""

import pytest

from saccade.families.story.stories import StoryExample
from saccade.families.story.world import answer_of, derive

HELD = ["Mary moved to the bathroom.", "Mary got the milk there.", "Mary went back to the garden."]
DROPPED = [*HELD, "Mary put down the milk.", "Mary travelled to the office."]
FOUND_AGAIN = [*DROPPED, "John journeyed to the garden.", "John took the milk.", "John left the milk there."]
GIFTS = ["Bill gave the milk to Fred.", "Fred handed the milk to Mary.", "Bill passed the apple to Fred."]
TIMES = [
    "Julie went to the school this morning.",
    "Yesterday Julie moved to the office.",
    "This evening Julie travelled to the school.",
    "Julie journeyed to the park this afternoon.",
]
CARRIED = ["Mary got the milk.", "Mary took the apple.", "Mary dropped the milk.", "Mary grabbed the milk there."]
COUPLE = ["Mary and John went to the office.", "Daniel moved to the park.", "Afterwards they moved to the hallway."]
ROOMS = ["The office is north of the kitchen.", "The garden is south of the kitchen.", "The den is east of the garden."]
FEARS = ["Mice are afraid of wolves.", "Emily is a mouse.", "Wolves are afraid of cats.", "Winona is a wolf."]
COLOURS = ["Lily is a swan.", "Lily is gray.", "Greg is a swan.", "Brian is a swan.", "Greg is white."]
SHAPES = ["The triangle is above the pink rectangle.", "The blue square is to the left of the triangle."]
SIZES = ["The box of chocolates fits inside the chest.", "The box is bigger than the chest."]
TIRED = ["Sumit is tired.", "Yann is bored.", "Sumit went back to the bedroom.", "Sumit is thirsty."]
SHE = ["Mary went to the office.", "John moved to the park.", "Following that she went to the hallway."]


@pytest.mark.parametrize(
    ("story", "question", "answer", "supporting"),
    [
        (HELD, "Where is Mary?", "garden", (2,)),
        (HELD, "Where is the milk?", "garden", (1, 2)),
        (DROPPED, "Where is the milk?", "garden", (3, 2)),
        (DROPPED, "Where was the milk before the garden?", "bathroom", (3, 2, 0)),
        (FOUND_AGAIN, "Where is the milk?", "garden", (7, 5)),
        (GIFTS, "Who gave the milk?", "fred", (1,)),
        (GIFTS, "Who gave the milk to Fred?", "bill", (0,)),
        (GIFTS, "Who received the milk?", "mary", (1,)),
        (GIFTS, "What did Bill give to Fred?", "apple", (2,)),
        (GIFTS, "Who did Bill give the apple to?", "fred", (2,)),
        (HELD, "Is Mary in the garden?", "yes", (2,)),
        (HELD, "Is Mary in the bathroom?", "no", (2,)),
        (CARRIED, "How many objects is Mary carrying?", "two", (0, 1, 2, 3)),
        (CARRIED[:3], "How many objects is Mary carrying?", "one", (0, 1, 2)),
        (CARRIED, "What is Mary carrying?", "milk,apple", (0, 2, 3, 1)),
        (["Mary got the milk.", "Mary dropped the milk."], "What is Mary carrying?", "nothing", (0, 1)),
        (GIFTS, "How many objects is Fred carrying?", "one", (0, 1, 2)),
        (["Mary is no longer in the park."], "Is Mary in the park?", "no", (0,)),
        (["Mary is either in the park or the school."], "Is Mary in the school?", "maybe", (0,)),
        (["Mary is either in the park or the school."], "Is Mary in the office?", "no", (0,)),
        (SHE, "Where is Mary?", "hallway", (0, 2)),
        (SHE, "Where is John?", "park", (1,)),
        (COUPLE, "Where is John?", "hallway", (0, 2)),
        (COUPLE, "Where is Daniel?", "park", (1,)),
        (TIMES, "Where was Julie before the school?", "park", (2, 3)),
        (TIMES, "Where was Julie before the park?", "school", (3, 0)),
        (ROOMS, "What is north of the kitchen?", "office", (0,)),
        (ROOMS, "What is the office north of?", "kitchen", (0,)),
        (ROOMS, "What is the kitchen north of?", "garden", (1,)),
        (ROOMS, "How do you go from the office to the garden?", "s,s", (0, 1)),
        (ROOMS, "How do you go from the den to the kitchen?", "w,n", (2, 1)),
        (FEARS, "What is emily afraid of?", "wolf", (1, 0)),
        (FEARS, "What is winona afraid of?", "cat", (3, 2)),
        (COLOURS, "What color is Brian?", "white", (3, 2, 4)),
        (COLOURS[:4], "What color is Brian?", "gray", (3, 0, 1)),
        (COLOURS, "What color is Lily?", "gray", (1,)),
        (SHAPES, "Is the pink rectangle to the right of the blue square?", "yes", (0, 1)),
        (SHAPES, "Is the blue square below the pink rectangle?", "no", (1, 0)),
        (SHAPES, "Is the blue square above the pink rectangle?", "yes", (1, 0)),
        (SIZES, "Does the box fit in the box of chocolates?", "no", (0, 1)),
        (SIZES, "Is the box bigger than the box of chocolates?", "yes", (1, 0)),
        (SIZES, "Does the box of chocolates fit in the chest?", "yes", (0,)),
        (TIRED[:3], "Where will sumit go?", "bedroom", (0,)),
        (TIRED[:3], "Why did sumit go to the bedroom?", "tired", (0,)),
        (TIRED, "Where will sumit go?", "kitchen", (3,)),
        (["Sam walks into the den.", "Sam picks up an apple."], "Where is the apple?", "den", (1, 0)),
    ],
)
def test_answers(story, question, answer, supporting):
    assert derive(story, question) == (answer, supporting)
    assert answer_of(StoryExample(tuple(story), question, "?")) == answer


@pytest.mark.parametrize(
    ("story", "question"),
    [
        ([], "Where is Mary?"),
        (HELD, "Where is John?"),
        (HELD, "Where is the apple?"),
        (HELD, "Where was the milk before the bathroom?"),
        (HELD, "What is John carrying?"),
        (["Mary got the milk."], "Where is the milk?"),
        (["Mary is not in the park."], "Is Mary in the office?"),
        (["Mary is not in the park."], "Where is Mary?"),
        ([*HELD, "Mary is no longer in the garden."], "Where is the milk?"),
        (HELD, "Why did Mary go?"),
        (HELD, "Why did Mary go to the garden?"),
        (ROOMS, "What is west of the kitchen?"),
        (ROOMS, "How do you go from the office to the attic?"),
        (ROOMS, "How do you go from the office to the office?"),
        (FEARS[1:], "What is emily afraid of?"),
        (COLOURS[2:4], "What color is Brian?"),
        (SHAPES, "Is the red square above the triangle?"),
        (SIZES[:1], "Is the box bigger than the chest?"),
        (["She went to the office."], "Where is Mary?"),
        (["The sun shines."], "Where is Mary?"),
    ],
)
def test_what_a_story_does_not_tell_has_no_answer(story, question):
    assert derive(story, question) is None


def test_answers_follow_an_edited_story():
    asked = StoryExample(tuple(DROPPED), "Where is the milk?", "garden", (3, 2))
    without = tuple(sentence for at, sentence in enumerate(DROPPED) if at != 2)
    assert answer_of(asked) == "garden"
    assert answer_of(StoryExample(without, asked.question, "?")) == "bathroom"


def test_answers_follow_exchanged_names():
    exchange = {"Mary": "John", "John": "Mary"}
    story = ["Mary went to the office.", "John moved to the park.", "Mary got the milk.", "John took the apple."]
    other = [" ".join(exchange.get(word, word) for word in sentence.split()) for sentence in story]
    for question, answers in {
        "Where is Mary?": ("office", "park"),
        "What is Mary carrying?": ("milk", "apple"),
    }.items():
        assert (derive(story, question).answer, derive(other, question).answer) == answers
