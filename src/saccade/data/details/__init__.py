"""Generated pictures whose class hangs on a small detail."""
