"""``python -m bayesfair``: the command line."""

from bayesfair.cli import main

if __name__ == "__main__":
    main()
