"""Scores of attention over the slots of a memory, such as the sentences of a story: functions of weights and facts."""
