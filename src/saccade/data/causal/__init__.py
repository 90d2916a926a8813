"""Causal sets: scenes with their twins, drawn, written to disk and read back, to score maps from any tool.

``saccade data make causal --count 10000 --out DIR`` writes such a set, :func:`read_causal_set` reads it:

>>> from saccade.data import read_causal_set                   # doctest: +SKIP
>>> for scene in read_causal_set("DIR"):                       # doctest: +SKIP
...     scene.image, scene.question, scene.answer, scene.masks, scene.twins["target_moved"].image

One question asks for the colour of a digit, the *target*. A second one asks for the *other* object: among those that
can be moved, the one whose area is nearest to the target's. Each scene has seven twins:

======================================  ================================================================================
target_recoloured, other_recoloured      one of the other four colours, drawn by the seed
target_moved, other_moved                onto free ground, 16 px or more away along x or y (see ``scenes/twins.py``)
target_removed, other_removed            gone
background_changed                       another background; for scenes on black, the distractors of MDIST
======================================  ================================================================================

The folder:

=================  =====================================================================================================
causal.json         facts of the set: format, version, settings, counts, digest
truth.jsonl         one scene a line, see :mod:`saccade.data.causal.truth`
images/ID.png       the scene; ``images/ID-TWIN.png`` its twins
masks/ID.png        grey values: 0 is background, k + 1 is object k of the scene; ``masks/ID-TWIN.png`` for twins in
                    which an object was moved or removed. ``truth.jsonl`` names the mask of every picture
README.md           the data card
=================  =====================================================================================================

A map is called ``PICTURE__QUERY``, as in ``00000012__7.npy`` or ``00000012-target_moved__7.npy``.
"""
