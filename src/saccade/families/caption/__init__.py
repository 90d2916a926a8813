"""Captions: a sentence about a picture, with a look for every word."""
