"""The tour's section on a story model: a few stories with its looks, and its scores on generated stories.

Stories are generated here, with the tasks and words of the model's training. The stories of the founding document are
shown if the model knows all of their words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from saccade.families.story.data import GENERATED, StoryDataConfig, generated
from saccade.families.story.page.founding import FOUNDING_STORIES
from saccade.families.story.splits import example_of, in_turn
from saccade.families.story.stories import StoryExample, words_of
from saccade.families.story.task import StoryTask
from saccade.models.io.facts import ModelFacts
from saccade.predict import Predictor, load
from saccade.show.report import Block, Code, KeyFigures, Section, SlotHeat
from saccade.tasks.eval_request import EvalRequest
from saccade.verbs.touring.page import HEADLINE, Progress, Stop
from saccade.verbs.touring.scores import StopScores, as_score, headline

QUICK, FULL = 20, 100  # questions of each task that are scored
SHOWN_QUICK, SHOWN_FULL = 3, 6  # tasks of which a story is shown
METRIC = "accuracy"
SHOWN = {
    METRIC: "right answers",
    "support_hit": "heaviest sentence is a supporting one",
    "support_mass": "weight on supporting sentences",
    "causal_follow": "follows when a supporting sentence goes",
    "causal_hold": "holds when another one goes",
}
"""Scores of the table, where the evaluation has them."""
WHO = {
    "recency": "looking at the last sentence",
    "uniform": "looking evenly",
    "word_overlap": "looking at words of the question",
}
_LEAD = (
    "reads a story, sentence by sentence, and answers a question about it. Each column of a table is one look back at "
    "the story, and its numbers are the weights that the model used. A bar marks the sentences that the answer needs."
)


def stop(name: str, *, quick: bool, device: str, progress: Progress) -> Stop:
    """What there is to see of the model ``name``: a zoo name, a model folder or a run folder."""
    predictor = load(name, device)
    facts, shown = predictor.facts, SHOWN_QUICK if quick else SHOWN_FULL
    title, lead = f"{predictor.name}: questions about a story", f"A model of {facts.parameters:,} parameters {_LEAD}"
    config = generated_config(facts, QUICK if quick else FULL)
    asked = [each for each in in_turn(generated(config, "test")) if knows(facts, each)]
    founding = [_founding(predictor, number) for number in range(len(FOUNDING_STORIES))]
    stories: list[Block] = [each for each in founding if each is not None]
    command = Code(f'saccade look story.txt --ask "Where is the apple?" --model {name}')
    if not asked:
        progress(name, 1, 1)
        text = f"{lead} No generated story is made of its words, so none is shown here."
        return Stop(Section(title, text, [*stories, command]), headline(name, facts, METRIC, None), [])
    given = StoryTask.eval_kwargs(facts, EvalRequest(data=GENERATED))
    given["data"] = {**given["data"], "questions": config.questions, "words": config.words}
    told = StoryTask.evaluate(
        predictor.model, split="test", progress=lambda done, total: progress(name, done, total), **given
    )
    score = as_score(told)
    where = "questions about generated stories, test split, computed just now"
    scores = StopScores.of(score, where, SHOWN, WHO)
    note = f" {score.note[0].upper()}{score.note[1:]}." if score.note else ""
    blocks: list[Block] = [
        KeyFigures(scores.figures((METRIC, "support_hit", "causal_follow"))),
        *(_table(predictor, each) for each in first_of_tasks(asked, shown)),
        *stories,
        scores.table("What was answered, and where it looked"),
        command,
    ]
    row = headline(name, facts, METRIC, score)
    row[HEADLINE.index("metric")] = f"{METRIC} (here: of generated stories)"
    table = scores.plain_table(f"{name}: %, beside other ways to look")
    return Stop(Section(title, lead + note, blocks), row, [table])


def generated_config(facts: ModelFacts, questions: int) -> StoryDataConfig:
    """Generated stories of the tasks and words that a model was taught, ``questions`` of each task."""
    own: dict[str, Any] = {key: facts.data[key] for key in ("tasks", "memory", "words", "seed") if key in facts.data}
    own["tasks"] = tuple(own.get("tasks", ()))
    return StoryDataConfig(name=GENERATED, questions=questions, **own)


def knows(facts: ModelFacts, asked: StoryExample) -> bool:
    """Whether a model knows every word of a question, of its story and of its answer."""
    known = set(facts.answers)
    texts = (*asked.sentences, asked.question)
    answer = asked.answer in known or all(word in known for word in asked.answer.split(","))
    return answer and all(word in known for text in texts for word in words_of(text))


def first_of_tasks(asked: Sequence[StoryExample], many: int) -> list[StoryExample]:
    """One question of each of ``many`` tasks, spread over them; the one with the longest story of its first few."""
    tasks = list(dict.fromkeys(each.task for each in asked))
    chosen = tasks[:: max(1, len(tasks) // many)][:many]
    of_task = {task: [each for each in asked if each.task == task][:5] for task in chosen}
    return [max(own, key=lambda each: len(each.sentences)) for own in of_task.values()]


def _founding(predictor: Predictor, number: int) -> SlotHeat | None:
    """A story of the founding document; None where the model does not know a word of it."""
    story = FOUNDING_STORIES[number]
    if not knows(predictor.facts, story.asked):
        return None
    return _table(predictor, story.asked, incomplete=not story.is_complete)


def _table(predictor: Predictor, asked: StoryExample, *, incomplete: bool = False) -> SlotHeat:
    """A question, its answer and the looks behind it."""
    example = example_of(asked)
    seen = predictor.look(example.source, ask=asked.question)
    verdict = "right" if seen.answer == asked.answer else f"wrong, it is {asked.answer}"
    if incomplete:
        verdict = (
            f"the document says {asked.answer}, which does not follow from these sentences: the story is incomplete"
        )
    said = f"{asked.question} → {seen.answer}, {seen.confidence:.0%} sure: {verdict}. ({asked.where})"
    return SlotHeat(seen.slot_grid, said)
