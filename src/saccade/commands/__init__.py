"""The commands: one file a verb, with its function and what it prints."""
