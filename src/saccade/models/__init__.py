"""Models: one file per system, composed of mechanisms and a backbone; ``catalog`` lists them without torch."""
