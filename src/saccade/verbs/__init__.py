"""What a user can ask for, as Python functions: the command line parses, calls them and prints."""
