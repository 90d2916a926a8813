"""Tasks: where data, model, loss and metric meet. What the tasks of all families share."""
