"""``python -m probeval``: the command line."""

from probeval.cli import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
