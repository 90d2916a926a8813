"""Tables of your own data: rows, splits, leaks between splits, and readers by name."""
