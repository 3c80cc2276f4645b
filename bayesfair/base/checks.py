"""One home for the checks that many functions share, and for how messages are worded."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesfair.errors import ArmError, DataError, OptionError

__all__ = [
    "as_generator",
    "as_numbers",
    "as_sequence",
    "check_choice",
    "check_count",
    "check_in_range",
    "check_known",
    "did_you_mean",
    "first_where",
    "listed",
    "no_seed",
    "shown",
]


def listed(names: Iterable[object], limit: int = 8) -> str:
    """Return names quoted and comma-separated, at most ``limit`` of them, the rest counted.

    Examples
    --------
    >>> listed(["a", "b", "c"], limit=2)
    "'a', 'b' and 1 more"
    """
    quoted = [repr(str(name)) for name in names]
    if len(quoted) <= limit:
        return ", ".join(quoted)
    return f"{', '.join(quoted[:limit])} and {len(quoted) - limit} more"


def counted(n: int, noun: str) -> str:
    """Return a number with its noun in the right form.

    Examples
    --------
    >>> counted(1, "such row"), counted(2, "such row")
    ('1 such row', '2 such rows')
    """
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


class First(NamedTuple):
    """The first place where something holds, and at how many places it does."""

    at: int
    n: int


def first_where(holds: NDArray[np.bool_]) -> First | None:
    """Return the first place where something holds, and at how many; None where it never does.

    Examples
    --------
    >>> import numpy as np
    >>> first_where(np.array([3, -1, -2]) < 0)
    First(at=1, n=2)
    """
    places = np.flatnonzero(holds)
    return First(int(places[0]), places.size) if places.size else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `` Did you mean 'x'?`` for the closest known name, or nothing.

    Examples
    --------
    >>> did_you_mean("nroth", ["north", "south"])
    " Did you mean 'north'?"
    """
    if not isinstance(name, str):
        return ""
    known = list(known)
    folded = {k.casefold(): k for k in known}
    close = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.6)
    return f" Did you mean {folded[close[0]]!r}?" if close else ""


def check_choice(value: Any, name: str, options: Sequence[str]) -> str:
    """Return ``value`` if it is one of ``options``, else raise naming them all."""
    if isinstance(value, str) and value in options:
        return value
    hint = did_you_mean(value, options) if isinstance(value, str) else ""
    raise OptionError(f"{name}={shown(value)} is not known. Options: {listed(options, 30)}.{hint}")


def check_known(name: str, known: Sequence[str], what: str = "arm") -> int:
    """Return the position of ``name`` in ``known``, else raise naming the closest."""
    try:
        return list(known).index(name if isinstance(name, str) else "")
    except ValueError:
        raise ArmError(
            f"no {what} {shown(name)}. Known {what}s: {listed(known)}.{did_you_mean(name, known)}"
        ) from None


def check_in_range(
    value: Any,
    name: str,
    low: float,
    high: float,
    *,
    low_open: bool = False,
    high_open: bool = False,
) -> float:
    """Return ``value`` as float if it lies in the interval, else raise naming the interval."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = np.nan
    above = number > low if low_open else number >= low
    below = number < high if high_open else number <= high
    if not (above and below):
        left, right = "(" if low_open else "[", ")" if high_open else "]"
        raise OptionError(
            f"{name}={shown(value)} must be a number in {left}{low:g}, {high:g}{right}."
        )
    return number


def check_count(value: Any, name: str, low: int = 0) -> int:
    """Return ``value`` as int if it is a whole number from ``low`` on, else raise naming it."""
    try:
        number = -1 if isinstance(value, (bool, np.bool_)) else int(value)
        whole = number == value and number >= low
    except (TypeError, ValueError, OverflowError):
        whole = False
    if not whole:
        raise OptionError(
            f"{name}={shown(value)} must be a whole number from {low} on.",
            kind="not_a_count",
            column=name,
            value=shown(value),
        )
    return number


def shown(value: object) -> str:
    """Return a value for a message, short; numbers of thousands of digits have no text.

    Examples
    --------
    >>> shown("a"), shown(10**5000)
    ("'a'", 'a whole number of 16610 bits')
    """
    try:
        text = repr(value)
    except ValueError:
        bits = f" of {value.bit_length()} bits" if isinstance(value, int) else "s among them"
        return f"a whole number{bits}"
    if isinstance(value, str):
        return text
    text = " ".join(text.split())  # a data tree has many lines
    return text if len(text) <= 60 else f"{text[:57]}..."


def as_sequence(value: Any, name: str) -> list[Any]:
    """Return the entries of a sequence as a list.

    Raises
    ------
    DataError
        If it is none.

    Examples
    --------
    >>> as_sequence(("a", "b"), "items")
    ['a', 'b']
    """
    try:
        return list(value)
    except (TypeError, ValueError):
        raise DataError(
            f"{name} must be a sequence, got {type(value).__name__}.",
            kind="no_sequence",
            column=name,
        ) from None


def as_numbers(value: Any, name: str) -> NDArray[np.float64]:
    """Return numbers as an array of float; NaN is a number here.

    Raises
    ------
    DataError
        If there is something else among them.
    """
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise DataError(f"{name}={shown(value)} must hold numbers only.") from None


def as_generator(seed: Any) -> np.random.Generator:
    """Return a generator for an int seed (reproducible) or pass a Generator through.

    Raises
    ------
    OptionError
        If ``seed`` is None or of another type: a result that cannot be repeated is no audit.
    """
    if seed is None:
        raise no_seed("a result that cannot be repeated is no audit")
    if isinstance(seed, np.random.Generator):
        return seed
    if isinstance(seed, (int, np.integer)) and not isinstance(seed, bool) and seed >= 0:
        return np.random.default_rng(int(seed))
    raise OptionError(
        f"seed={seed!r:.60} must be a whole number from 0 on, or a numpy Generator.",
        kind="bad_value",
        column="seed",
        value=seed,
    )


def no_seed(why: str, instead: str = "") -> OptionError:
    """Return the error that asks for a seed, in the same words everywhere.

    Parameters
    ----------
    why : str
        What it is needed for.
    instead : str
        What would do without one, such as ``", or objective=False"``.
    """
    return OptionError(
        f"seed= is required: {why}. Give a whole number from 0 on, or a numpy Generator{instead}.",
        kind="missing_option",
        column="seed",
    )
