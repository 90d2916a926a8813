"""Where generated scenes come from, in words for the catalog of data; read without torch."""

from __future__ import annotations

LICENCE = "generator Apache-2.0; MNIST glyphs CC BY-SA 3.0 (LeCun, Cortes, Burges)"
GET = "made on the fly; training on MNIST's own glyphs needs `saccade data get mnist`"
DOWNLOAD = "mnist"
"""What ``saccade data get`` fetches for it."""
