"""What stands behind ``saccade tour``: its scenes, scores and page."""
