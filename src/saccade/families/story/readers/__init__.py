"""Readers of stories: bAbI, tables and texts of one's own, and what a request sends."""
