"""What other libraries need to use saccade: formats and clusters."""
