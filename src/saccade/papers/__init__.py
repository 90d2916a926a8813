"""The founding papers: their numbers, what was measured here, and the command behind each row.

Numbers are data: ``published.csv`` beside this file holds the papers', ``results/`` of the repository holds ours.
"""
