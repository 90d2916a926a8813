"""``python -m saccade`` is the command ``saccade``."""

from saccade.commands.door import main

if __name__ == "__main__":
    main()
