"""Questions about a picture: one answer, or several labels, to a query."""
