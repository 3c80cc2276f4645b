"""The program: its commands, and how it ends."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import typer

from bayesfair.cli.audit import AUDIT_HELP, audit_command
from bayesfair.cli.duels import AUDIT_COMPARISONS_HELP, audit_comparisons_command
from bayesfair.cli.fit import FIT_HELP, fit_command
from bayesfair.cli.simulate import simulate_command

__all__ = ["app", "main"]

app = typer.Typer(
    name="bayesfair",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    help="Was a sequence of logged decisions fair to its options, and how sure can one be?",
)


@app.callback()
def _root() -> None:
    """Make commands, not one command (typer would fold a single one into the program)."""


app.command(name="audit", help=AUDIT_HELP)(audit_command)
app.command(name="simulate")(simulate_command)
app.command(name="fit", help=FIT_HELP)(fit_command)
app.command(name="audit-comparisons", help=AUDIT_COMPARISONS_HELP)(audit_comparisons_command)


def main(run: Callable[[], Any] = app) -> None:
    """Run the command line: bad input ends with one message and status 2, without a traceback."""
    try:
        run()
    except ValueError as error:
        from bayesfair.errors import BayesfairError

        if not isinstance(error, BayesfairError):
            raise
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except OSError as error:
        name = "" if error.filename is None else f" {str(error.filename)[:200]!r}"
        print(f"cannot read or write{name}: {error.strerror or error}.", file=sys.stderr)
        raise SystemExit(2) from None
