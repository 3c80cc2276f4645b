"""What kind of thing a public function takes, checked before it begins.

A function says it beside its parameters, ``@takes(tree=FIT, seed=...)``; whoever passes something
else, too little or a name that is no parameter gets an `OptionError` that says what is needed,
instead of an error from somewhere inside. Values of the right kind are judged where they are used.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from typing import Any, NamedTuple, Self

import numpy as np

from bayesfair.base.checks import as_numbers, did_you_mean, listed, no_seed
from bayesfair.errors import BayesfairError, OptionError

__all__ = [
    "AXES",
    "COUNT",
    "FIT",
    "FLAG",
    "HISTORY",
    "MAPPING",
    "NAMES",
    "NUMBER",
    "NUMBERS",
    "PATH",
    "PLAIN",
    "REWARD",
    "TEXT",
    "TEXT_OR_FALSE",
    "TEXT_OR_MAPPING",
    "Abstract",
    "Kind",
    "constructed",
    "each",
    "instance_of",
    "takes",
    "within",
]


class Kind(NamedTuple):
    """A kind of argument: whether a value is one, and what to call it in a message."""

    holds: Callable[[Any], bool]
    called: str


def instance_of(*names: str, called: str) -> Kind:
    """Return the kind of the classes with these names; they need not be imported.

    Examples
    --------
    >>> instance_of("int", called="a whole number").holds(True)
    True
    """
    return Kind(lambda value: any(c.__name__ in names for c in type(value).__mro__), called)


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, (str, bool, int, float, np.generic))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def _are_numbers(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(_is_plain(v) and not isinstance(v, str) for v in value.values())
    try:
        as_numbers(value, "")
    except BayesfairError:
        return False
    return True


def _are_names(value: Any) -> bool:
    if value is None or isinstance(value, str):
        return True
    if isinstance(value, (bytes, Mapping)) or not isinstance(value, Iterable):
        return False
    if hasattr(value, "columns"):  # a data frame: iterating gives its header
        return False
    return all(isinstance(name, (str, int, np.generic)) for name in value)


PLAIN = Kind(_is_plain, "one word or number")
NUMBER = Kind(_is_number, "a number")
COUNT = Kind(lambda value: _is_number(value) and float(value).is_integer(), "a whole number")
FLAG = Kind(lambda value: isinstance(value, (bool, np.bool_)), "True or False")
REWARD = Kind(
    lambda value: _is_number(value) or FLAG.holds(value), "a number, NaN where it is not known"
)
NUMBERS = Kind(lambda value: value is None or _are_numbers(value), "numbers")
NAMES = Kind(_are_names, "names, in a list")
TEXT = Kind(lambda value: value is None or isinstance(value, str), "text")
TEXT_OR_FALSE = Kind(lambda value: TEXT.holds(value) or value is False, "text, or False for none")
AXES = Kind(lambda value: value is None or hasattr(value, "hlines"), "the axes of matplotlib")
MAPPING = Kind(lambda value: value is None or isinstance(value, Mapping), "a mapping")
TEXT_OR_MAPPING = Kind(
    lambda value: TEXT.holds(value) or isinstance(value, Mapping), "one word, or a mapping"
)
PATH = Kind(lambda value: value is None or isinstance(value, (str, PathLike)), "a path")
FIT = instance_of("DataTree", called="a fit: what bayesfair.fit returned")
HISTORY = instance_of("History", called="a History: read a log with bayesfair.read_history")


def within(
    low: float,
    high: float = np.inf,
    *,
    low_open: bool = False,
    whole: bool = False,
    array: bool = False,
    optional: bool = False,
) -> Kind:
    """Return the kind of finite numbers in a range; of arrays of them, perhaps infinite.

    Examples
    --------
    >>> within(0, 1).called, within(1, whole=True).holds(2.5)
    ('a number in [0, 1]', False)
    """

    def holds(value: Any) -> bool:
        if value is None:
            return optional
        try:
            plain = np.asarray(value)
            if plain.dtype.kind not in "iuf" or (plain.ndim and not array):
                return False
            numbers = plain.astype(np.float64)
        except (TypeError, ValueError, OverflowError):
            return False
        inside = (numbers > low if low_open else numbers >= low) & (numbers <= high)
        if not array:
            inside &= np.isfinite(numbers)
        return bool(np.all(inside & (numbers == np.floor(numbers)) if whole else inside))

    noun = "a whole number" if whole else "numbers" if array else "a number"
    right = ")" if np.isinf(high) and not array else "]"
    if low == -np.inf and high == np.inf:
        return Kind(holds, noun)
    return Kind(holds, f"{noun} in {'(' if low_open else '['}{low:g}, {high:g}{right}")


def each(kind: Kind, *names: str) -> dict[str, Kind]:
    """Return one kind for several parameters."""
    return dict.fromkeys(names, kind)


def takes[**P, R](**kinds: Kind) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator that holds the arguments of a function against their kinds.

    Raises
    ------
    OptionError
        When the function is called: naming the argument, its type, and what it must be; what is
        lacking; or the name that is no parameter.

    Examples
    --------
    >>> @takes(count=NUMBER)
    ... def double(count, *, unit): return f"{2 * count} {unit}"
    >>> double(2, unit="m")
    '4 m'
    >>> double("x", unit="m")
    Traceback (most recent call last):
    bayesfair.errors.OptionError: double: count must be a number, got str 'x'.
    >>> double(2)
    Traceback (most recent call last):
    bayesfair.errors.OptionError: double: unit= is required.
    """

    def checked(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)
        unknown = set(kinds) - set(signature.parameters)
        assert not unknown, f"{function.__name__} has no parameter {unknown}"

        @functools.wraps(function)
        def run(*args: P.args, **options: P.kwargs) -> R:
            try:
                given = signature.bind(*args, **options).arguments
            except TypeError:
                raise _does_not_fit(function.__name__, signature, args, options) from None
            for name, kind in kinds.items():
                if name in given and not kind.holds(given[name]):
                    raise _wrong(function.__name__, name, kind, given[name])
            return function(*args, **options)

        return run

    return checked


def constructed[C: type](cls: C) -> C:
    """Let a call of a class that lacks an argument, or names a strange one, end as one of ours.

    It stands above ``@dataclass``. Calls that fit cost nothing.

    Raises
    ------
    OptionError
        When the class is called: see `takes`.

    Examples
    --------
    >>> @constructed
    ... class Coin:
    ...     def __init__(self, side): self.side = side
    >>> Coin("head").side
    'head'
    >>> Coin()
    Traceback (most recent call last):
    bayesfair.errors.OptionError: Coin: side= is required.
    """
    begin = cls.__init__  # type: ignore[misc]  # of this very class, not of one below it
    whole = inspect.signature(begin)
    signature = whole.replace(parameters=list(whole.parameters.values())[1:])

    @functools.wraps(begin)
    def run(self: Any, *args: Any, **options: Any) -> None:
        try:
            begin(self, *args, **options)
        except TypeError:
            try:
                signature.bind(*args, **options)
            except TypeError:
                raise _does_not_fit(cls.__name__, signature, args, options) from None
            raise  # the call fits: the fault is elsewhere

    type.__setattr__(cls, "__init__", run)
    return cls


class Abstract:
    """A class that others derive from: a call of it, or of one that lacks a method, is ours too.

    Raises
    ------
    OptionError
        When the class is called: naming what it lacks, and the classes below it.

    Examples
    --------
    >>> from abc import ABC, abstractmethod
    >>> class Shape(Abstract, ABC):
    ...     @abstractmethod
    ...     def area(self): ...
    >>> class Square(Shape):
    ...     def area(self): return 1
    >>> Shape()
    Traceback (most recent call last):
    bayesfair.errors.OptionError: Shape is what others derive from, without 'area' of its own. Use
    one of 'Square', or derive a class that has it.
    """

    def __new__(cls, *_args: Any, **_options: Any) -> Self:
        """Return a new object, unless the class is abstract."""
        lacking = sorted(getattr(cls, "__abstractmethods__", ()))
        if lacking:
            below = [c.__name__ for c in cls.__subclasses__()]
            instead = f"Use one of {listed(below)}, or derive" if below else "Derive"
            raise OptionError(
                f"{cls.__name__} is what others derive from, without {listed(lacking)} of its own. "
                f"{instead} a class that has {'it' if len(lacking) == 1 else 'them'}.",
                kind="abstract",
                column=cls.__name__,
            )
        return super().__new__(cls)


def _wrong(function: str, name: str, kind: Kind, value: Any) -> OptionError:
    text = repr(value) if _is_plain(value) and value is not None else ""
    shown = f"{type(value).__name__} {text[:60]}".strip() if value is not None else "None"
    return OptionError(
        f"{function}: {name} must be {kind.called}, got {shown}.",
        kind="wrong_kind",
        column=name,
        value=shown,
    )


def _does_not_fit(
    function: str, signature: inspect.Signature, args: tuple[Any, ...], options: Mapping[str, Any]
) -> OptionError:
    """Say what is lacking or too much in a call."""
    parameters = signature.parameters.values()
    strange = [name for name in options if name not in signature.parameters]
    if strange and not any(p.kind is p.VAR_KEYWORD for p in parameters):
        hint = did_you_mean(strange[0], signature.parameters)
        if not hint and "model_options" in signature.parameters:
            hint = f" One of the model goes into model_options={{{strange[0]!r}: ...}}"
            hint += ", one of its fit into sampler=." if "sampler" in signature.parameters else "."
        return OptionError(
            f"{function} has no option {strange[0]!r}.{hint} Its options are "
            f"{listed(signature.parameters, 30)}.",
            kind="unknown_option",
            column=strange[0],
        )
    places = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    if places and places[0].name == "self":  # a method's own object is no argument of the caller
        places, args = places[1:], args[1:]
    if len(args) > len(places):
        return OptionError(
            f"{function} takes {listed([p.name for p in places])} in this order and everything "
            f"else by name, got {len(args)} arguments.",
            kind="too_many_arguments",
        )
    taken = {p.name for p in places[: len(args)]} | set(options)
    lacking = [
        p.name for p in parameters
        if p.default is p.empty and p.name not in (*taken, "self")
        and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    ]  # fmt: skip
    if lacking == ["seed"]:
        return no_seed(f"{function} draws")
    if lacking:
        said = " and ".join(f"{name}=" for name in lacking)
        return OptionError(
            f"{function}: {said} {'is' if len(lacking) == 1 else 'are'} required.",
            kind="missing_argument",
            column=lacking[0],
        )
    twice = next(name for name in options if name in {p.name for p in places[: len(args)]})
    return OptionError(f"{function}: {twice} was given twice.", kind="twice", column=twice)
