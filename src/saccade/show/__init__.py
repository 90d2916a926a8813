"""Pictures of attention: overlays, filmstrips, tables of memory, curves, and reports that open offline.

Everything here reads traces (or saved records) and pictures, and never reaches into a model. Maps are rescaled for
display in ``scaling`` and nowhere else, and whatever is drawn says by which rule. Only ``curves`` needs matplotlib,
and it is imported when a curve is drawn.
"""
