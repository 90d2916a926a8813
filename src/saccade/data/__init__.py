"""Data that families share: tables, pictures, generated scenes. What one family reads lies in its own folder."""
