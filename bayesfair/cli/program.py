"""The program: its commands, and how it ends."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Callable
from typing import Annotated, Any

import typer

from bayesfair.base.shown import visible
from bayesfair.base.writing import drop_drafts
from bayesfair.cli.audit import AUDIT_HELP, audit_command
from bayesfair.cli.columns import COLUMNS_HELP, columns_command
from bayesfair.cli.duels import AUDIT_COMPARISONS_HELP, audit_comparisons_command
from bayesfair.cli.examples import examples_command
from bayesfair.cli.fit import FIT_HELP, fit_command
from bayesfair.cli.interrupts import at_interrupt
from bayesfair.cli.model import model_app
from bayesfair.cli.options import grouped
from bayesfair.cli.repeated import App
from bayesfair.cli.simulate import simulate_command
from bayesfair.cli.tools import DEBUG, QUIET, complain, forget_reader, note, say
from bayesfair.cli.warm_up import warm_up_command
from bayesfair.cli.wording import flags_of, in_shell_words

__all__ = ["app", "main"]

app = App(
    name="bayesfair",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Was a sequence of logged decisions fair to its options, and how sure can one be?",
)


def _say_version(wanted: bool) -> None:
    if wanted:
        from bayesfair import __version__

        say(f"bayesfair {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_say_version, is_eager=True),
    ] = False,
) -> None:
    """Take what stands before a command."""


app.callback()(grouped(_root))
app.command(name="audit", help=AUDIT_HELP)(grouped(audit_command))
app.command(name="columns", help=COLUMNS_HELP)(grouped(columns_command))
app.command(name="simulate")(grouped(simulate_command))
app.command(name="fit", help=FIT_HELP)(grouped(fit_command))
app.command(name="audit-comparisons", help=AUDIT_COMPARISONS_HELP)(
    grouped(audit_comparisons_command)
)
app.command(name="examples")(grouped(examples_command))
app.add_typer(model_app, name="model")
app.command(name="warm-up")(grouped(warm_up_command))


def main(run: Callable[[], Any] = app) -> None:
    """Run the command line: bad input ends with one message and status 2, without a traceback."""
    warnings.showwarning = _say_warning
    QUIET.set(False)
    DEBUG.set(False)
    try:
        with at_interrupt(drop_drafts):
            run()
    except ValueError as error:
        from bayesfair.errors import BayesfairError

        if not isinstance(error, BayesfairError):
            raise
        _trace()
        complain(f"{type(error).__name__}: {_in_shell_words(_one_line_names(str(error)))}")
        raise SystemExit(2) from None
    except SystemExit as stop:
        if not isinstance(stop.__context__, BrokenPipeError):
            raise
        forget_reader()  # whoever read the help has left, which is no fault
    except OSError as error:
        _trace()
        name = "" if error.filename is None else f" {str(error.filename)[:200]!r}"
        complain(f"cannot read or write{name}: {error.strerror or error}.")
        raise SystemExit(2) from None


def _trace() -> None:
    """Print where the error that is being handled arose, if that was asked for."""
    if DEBUG.get():
        complain(traceback.format_exc())


def _say_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Print a warning as a sentence for people, without a place in our code."""
    note(f"note: {_in_shell_words(str(message))}")


def _one_line_names(message: str) -> str:
    """Return a message in which a line break in a file's name begins no new line."""
    for word in sys.argv[1:]:
        for name in (word, os.path.basename(word)):
            if not name.isprintable():
                message = message.replace(name, visible(name))
    return message


def _in_shell_words(message: str) -> str:
    """Return a message in the words of the command that was run."""
    commands: dict[str, Any] = getattr(typer.main.get_command(app), "commands", {})
    name = next((word for word in sys.argv[1:] if word in commands), None)
    return in_shell_words(message, flags_of(commands[name]) if name else {})
