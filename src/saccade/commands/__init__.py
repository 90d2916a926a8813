"""The verbs: one file each, with the Python function, which the command line calls, and how its result is printed."""
