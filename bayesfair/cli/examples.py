"""The command ``bayesfair examples``: the bundled data, and copies of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bayesfair.base.writing import write_bytes
from bayesfair.cli.tools import check_targets, say
from bayesfair.errors import OptionError

__all__ = ["examples_command"]


def examples_command(
    name: Annotated[
        str | None, typer.Argument(help="Write a copy of this one; default: list them all.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="File of the copy; default NAME.csv, here.")
    ] = None,
) -> None:
    """List the data that come with the package, or write a copy of one, which is a plain file.

    Example: `bayesfair examples`

    Example: `bayesfair examples ecmo --out trial.csv`
    """
    from bayesfair import examples

    if name is None:
        if out is not None:
            raise OptionError(
                f"--out {str(out)!r} needs the NAME of what to copy; bayesfair examples lists "
                "them.",
                kind="unused_option",
                column="out",
                value=str(out),
            )
        for one in examples.names():
            command = "audit" if one in examples.LOGS else "fit"
            say(f"{one:<10} {examples.ABOUT[one]}\n{'':<10} bayesfair {command} --example {one}")
        return
    content = examples.path(name).read_bytes()
    target = Path(f"{name}.csv") if out is None else out
    check_targets({"--out": target}, read=examples.path(name))
    if target.is_file() and target.read_bytes() != content:
        raise OptionError(
            f"{str(target)!r} exists and is another file; name a new one with --out.",
            kind="target",
            column="out",
            value=str(target),
        )
    write_bytes(target, content)
    say(f"{target}: {examples.ABOUT[name]}")
