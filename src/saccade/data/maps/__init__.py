"""Maps from any tool and the truth they are compared with, read from untrusted files."""
