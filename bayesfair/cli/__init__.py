"""The command line; the only place that prints. Heavy imports happen inside the commands."""

from bayesfair.cli.program import app, main

__all__ = ["app", "main"]
