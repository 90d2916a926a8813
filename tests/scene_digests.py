"""A short digest of drawn scenes, to compare them to the bit."""

from __future__ import annotations

import hashlib

from saccade.data.scenes.layout import GlyphLayout


def layout_digest(layout: GlyphLayout) -> str:
    content = hashlib.sha256()
    for name, tensor in layout.tensors().items():
        content.update(name.encode() + tensor.contiguous().numpy().tobytes())
    return content.hexdigest()[:8]
