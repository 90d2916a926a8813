"""Models on disk: folder, facts, card, stored weights."""
