"""Scores of answers: accuracy, average precision, multisets."""
