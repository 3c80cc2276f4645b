"""The command line, ``bayesfair`` or ``python -m bayesfair``: Ctrl-C is handled before it loads."""

from bayesfair.cli.interrupts import complete, end_promptly

__all__ = ["run"]


def run() -> None:
    """Run the command line; Ctrl-C is handled from here on, through the imports to the end."""
    end_promptly()
    from bayesfair.cli.program import main

    try:
        main()
    finally:
        complete()


if __name__ == "__main__":
    run()
