"""Published tables made anew, one file per part: the tables, the figures, what is confirmed and trained on the way."""
