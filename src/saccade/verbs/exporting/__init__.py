"""What stands behind ``saccade export``: the graph, its steps, the check against torch."""
