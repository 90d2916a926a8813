"""Maps that anyone made, and the truth they are compared with, read from files of strangers."""
