"""What stands behind ``saccade look``: inputs, streams of pictures, their table."""
