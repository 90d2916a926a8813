"""The verbs as Python functions; the command line parses options, calls them and prints."""
