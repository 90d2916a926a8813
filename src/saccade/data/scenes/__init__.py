"""Generated scenes: counter-based random numbers, glyphs, layout, rendering, and scenes on disk."""
