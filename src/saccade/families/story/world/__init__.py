"""A small world of people, rooms and things that tells stories in the form of bAbI, and a reader of such stories."""
