"""The command ``saccade``, and ``python -m saccade``."""

import sys

from saccade.quick_imports import preload_torch


def main() -> None:
    """Run the command; the libraries of torch are loaded while the command line is imported."""
    preload_torch(sys.argv[1:])
    from saccade.cli import main as run

    run()


if __name__ == "__main__":
    main()
