"""Generated pictures whose class depends on a small detail."""
