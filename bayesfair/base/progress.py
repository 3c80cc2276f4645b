"""How far work is: one meaning of ``progress=`` for all functions that can take long."""

from __future__ import annotations

import functools
import inspect
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from bayesfair.errors import OptionError

__all__ = ["Steps", "following", "steps", "tells"]

Told = Callable[[int, int | None, str], object]

_TOLD: ContextVar[Told | None] = ContextVar("told", default=None)


@contextmanager
def following(progress: Any) -> Iterator[None]:
    """Let `progress` be told of all work within; None and False leave that as it was.

    Parameters
    ----------
    progress : bool or callable, optional
        True: a line on stderr, with rate and time left, from the first second on (where stderr is
        no terminal, a line every ten seconds). A function is called as ``progress(done, total,
        what)``: how many are done, of how many (None: not known), of what, such as "rounds".

    Raises
    ------
    OptionError
        If it is anything else.
    """
    if progress is None or progress is False:
        yield
        return
    if progress is not True and not _takes_three(progress):
        raise OptionError(
            "progress must be True, False or a function that takes (done, total, what), got "
            f"{type(progress).__name__} {progress!r:.60}.",
            kind="wrong_kind",
            column="progress",
            value=progress,
        )
    line = None if callable(progress) else _Line()
    before = _TOLD.set(progress if line is None else line)
    try:
        yield
    finally:
        _TOLD.reset(before)
        if line is not None:
            line.clear()


def tells[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """Let a function with the option ``progress=`` tell how far it is, see `following`."""

    @functools.wraps(function)
    def run(*args: P.args, **options: P.kwargs) -> R:
        with following(options.get("progress")):
            return function(*args, **options)

    return run


def _takes_three(progress: Any) -> bool:
    if not callable(progress):
        return False
    try:
        inspect.signature(progress).bind(1, 2, "rounds")
    except ValueError:  # a built-in one that does not tell
        return True
    except TypeError:
        return False
    return True


class Steps:
    """Work of so many parts; whoever follows is told of those that are done.

    Parameters
    ----------
    what : str
        Of what the parts are, in the plural.
    total : int, optional
    told : callable, optional

    Attributes
    ----------
    done : int
        How many are done; those of before are set, not told.
    heard : bool
        Whether anybody follows.
    """

    def __init__(self, what: str, total: int | None = None, told: Told | None = None) -> None:
        self._what, self._total, self._told = what, total, told
        self.done, self.heard = 0, told is not None

    def add(self, n: int = 1) -> None:
        """Tell that so many more are done."""
        self.done += n
        if self._told is not None:
            self._told(self.done, self._total, self._what)


def steps(what: str, total: int | None = None) -> Steps:
    """Return work that is told to whoever follows, see `following`.

    Examples
    --------
    >>> steps("rounds", 10).heard
    False
    >>> with following(print):
    ...     steps("rounds", 10).add(3)
    3 10 rounds
    """
    return Steps(what, total, _TOLD.get())


class _Line:
    """A line on stderr that says how far the work is, how fast, and how long it will take."""

    def __init__(self) -> None:
        self._terminal = sys.stderr is not None and sys.stderr.isatty()
        self._what: str | None = None
        self._began = self._said = 0.0
        self._first = self._width = 0

    def __call__(self, done: int, total: int | None, what: str) -> None:
        now = time.monotonic()
        if what != self._what or done < self._first:
            # what was done before the first call took time that nobody measured
            self._what, self._began, self._said, self._first = what, now, now, done
            return
        waited = now - self._said
        if sys.stderr is None or waited < ((0.1 if self._width else 1.0) if self._terminal else 10):
            return
        self._said = now
        text = _words(done, total, what, (done - self._first) / (now - self._began))
        if self._terminal:
            sys.stderr.write(f"\r{text.ljust(self._width)}")
            self._width = len(text)
        else:
            sys.stderr.write(f"{text}\n")
        sys.stderr.flush()

    def clear(self) -> None:
        """Leave no trace on a terminal."""
        if self._width:
            sys.stderr.write(f"\r{' ' * self._width}\r")
            sys.stderr.flush()


def _words(done: int, total: int | None, what: str, rate: float) -> str:
    text = f"{done} of {total} {what}" if total else f"{done} {what}"
    text += f", {rate:.{0 if rate >= 10 else 1}f} a second"
    if not total or rate <= 0 or done > total:
        return text
    left = round((total - done) / rate)
    minutes, seconds = divmod(left, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{text}, {hours}:{minutes:02}:{seconds:02} left"
