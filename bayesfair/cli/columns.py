"""The command ``bayesfair columns``: what would be read as what, before anything is audited."""

from __future__ import annotations

import shlex
from typing import Annotated

import typer

from bayesfair.cli.options import COLUMNS_OUTPUT, LOG_COLUMNS, Values, is_written
from bayesfair.cli.tools import check_targets, write

__all__ = ["COLUMNS_HELP", "columns_command"]

COLUMNS_HELP = """Show what `bayesfair audit` would read as what, with the first rows.

Every column of the log stands in the table. The last line names each part, with all options that
were given. A log that would be refused is shown too, and then refused (exit status 2), as far as
its header and its first 2000 rows show.

Example: `bayesfair examples ecmo && bayesfair columns ecmo.csv`

Other columns: `bayesfair columns log.parquet --arm item_id --reward click`
"""


def columns_command(  # noqa: D103 - the help is COLUMNS_HELP
    shell: typer.Context,
    log: Annotated[str, typer.Argument(help="A file, a folder or a glob; - for standard input.")],
    columns: Annotated[Values, LOG_COLUMNS],
    output: Annotated[Values, COLUMNS_OUTPUT],
) -> None:
    from dataclasses import replace

    from bayesfair.readers.log.preview import preview

    check_targets({"--json": output.json_file}, read=log)
    found = preview(log, **vars(columns))
    text = str(replace(found, options={}))
    if found.options:
        words = ["bayesfair", "audit", f"./{log}" if log.startswith("-") and log != "-" else log]
        for name, value in found.options.items():
            as_given = shell.params[name] if is_written(shell, name) else value
            words += [f"--{name.replace('_', '-')}", str(as_given)]
        text += f"\n\n{shlex.join(words)}"
    write(found.to_dict(), text, output.json_file, shell)
    if found.problem is not None:
        raise found.problem
