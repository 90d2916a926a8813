"""Photographs with twins as truth: what one is for a network, the scores of a method, and what came of it."""
