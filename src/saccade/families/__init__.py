"""One folder per kind of question."""
