"""Data that families share: tables, pictures, generated scenes. A family's own data lies in its folder."""
