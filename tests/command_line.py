"""The one way in which tests run a command: in this process, as a shell would."""

from __future__ import annotations

import functools
import sys
from typing import Any, NamedTuple

import pytest
import typer.main

from bayesfair.cli.program import main
from bayesfair.errors import BayesfairError

# A shell builds the commands once for each that it runs; they keep nothing, so one build does.
typer.main.get_command = functools.cache(typer.main.get_command)


class _Seen(NamedTuple):
    status: int
    out: str
    err: str


class Done(_Seen):
    """Exit status, standard output, standard error; and the error, where one ended the command."""

    error: BayesfairError | None = None


def run(capsys: Any, *arguments: object) -> Done:
    """Run ``bayesfair ARGUMENTS``."""
    status, error = 0, None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["bayesfair", *map(str, arguments)])
        try:
            main()
        except SystemExit as stop:
            status = int(stop.code or 0)
            if isinstance(stop.__context__, BayesfairError):
                error = stop.__context__
    done = Done(status, *capsys.readouterr())
    done.error = error
    return done
