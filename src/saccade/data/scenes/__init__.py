"""Generated scenes: counter-based random numbers, glyphs, layout, rendering, and scenes on disk."""

LICENCE = "generator Apache-2.0; MNIST glyphs CC BY-SA 3.0 (LeCun, Cortes, Burges)"
GET = "made on the fly; training on MNIST's own glyphs needs `saccade data get mnist`"
# What ``saccade data get`` fetches for it.
DOWNLOAD = "mnist"
