"""What ships with saccade: model folders, a sub-folder each, found by :mod:`saccade.zoo.folders`."""
