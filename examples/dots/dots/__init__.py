"""How many dots are on the picture? A family of saccade in a package of its own."""
