"""``python -m probeval``: the command line."""

from probeval.cli import main

if __name__ == "__main__":
    main()
