"""Scores of attention maps: functions of maps and evidence, no model needed."""
