"""What stands behind ``saccade train``: its plan, one run, several side by side."""
