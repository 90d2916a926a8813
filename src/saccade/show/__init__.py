"""Pictures of attention: overlays, filmstrips, tables of memory, curves, and reports that open offline.

Everything here reads traces (or saved records) and pictures, and never reaches into a model. Only curves need
matplotlib.
"""
