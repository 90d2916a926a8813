"""Scores of captions: functions of strings, or of word ids for rewards."""
