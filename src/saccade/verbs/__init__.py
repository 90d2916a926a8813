"""What a user can ask for, as Python functions: each verb of the command line is a thin call to one of these."""
