"""Readers of stories: bAbI, your own tables and texts, and stories sent to the server."""
