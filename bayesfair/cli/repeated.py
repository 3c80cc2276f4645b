"""Options that are given twice: lists are joined, everything else is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from bayesfair.errors import OptionError

__all__ = ["App"]


class App(typer.Typer):
    """A program in whose commands no value of an option is passed over.

    A command (see `bayesfair.cli.options.grouped`) says which of its options hold lists.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(cls=_Commands, **options)

    def command(self, name: str | None = None, **options: Any) -> Callable[..., Any]:
        """Return what makes a function a command; see `typer.Typer.command`."""
        return super().command(name, cls=_Command, **options)


class _Command(TyperCommand):
    def make_parser(self, ctx: Any) -> Any:
        return _each_value(self, super().make_parser, ctx)


class _Commands(TyperGroup):
    def make_parser(self, ctx: Any) -> Any:
        return _each_value(self, super().make_parser, ctx)


def _each_value(command: Any, make_parser: Callable[[Any], Any], context: Any) -> Any:
    """Return the parser of a command, which sees every value of an option, not only the last."""
    options = [p for p in command.get_params(context) if p.param_type_name == "option"]
    once = [p for p in options if not p.multiple]
    for parameter in once:
        parameter.multiple = True
    try:
        parser = make_parser(context)
    finally:
        for parameter in once:
            parameter.multiple = False
    lists: frozenset[str] = getattr(command.callback, "lists", frozenset())
    parse = parser.parse_args

    def parse_args(args: list[str]) -> Any:
        values, *rest = parse(args)
        for parameter in once:
            if given := values.get(parameter.name):
                plain = context.resilient_parsing or parameter.is_eager  # completion, --help
                values[parameter.name] = (
                    given[-1] if plain else _one(parameter, given, joined=parameter.name in lists)
                )
        return (values, *rest)

    parser.parse_args = parse_args
    return parser


def _one(parameter: Any, given: list[Any], *, joined: bool) -> Any:
    """Return the one value of an option that was given."""
    if joined:
        return ",".join(given)
    if len(given) == 1:
        return given[0]
    flag, *_ = parameter.opts
    off = (*parameter.secondary_opts, flag)[0]
    shown = [(flag if on else off) if parameter.is_flag else repr(on) for on in given]
    raise OptionError(
        f"{flag} was given {len(given)} times, and only one can be meant: {', '.join(shown)}. Give "
        "it once.",
        kind="given_twice", column=parameter.name, value=tuple(given),
    )  # fmt: skip
