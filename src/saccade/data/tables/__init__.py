"""Tables of one's own data: rows, splits, leaks between splits, and readers by name."""
