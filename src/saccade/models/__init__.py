"""Models: one file per system, composed of mechanisms and a backbone; each ``family.py`` lists its own."""
