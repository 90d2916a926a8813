"""Questions about generated scenes: their data, task, scores, changes and re-rendered twins."""
