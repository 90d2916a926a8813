"""Classification: a picture in, one label out, and no question."""
