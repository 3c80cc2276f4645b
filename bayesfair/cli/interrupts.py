"""Ctrl-C ends a command within a second, whatever it is doing.

Python's own handling waits until compiled code returns, which can take many seconds. A thread that
the system's signal wakes at once gives the command a moment to end by itself, and then ends it:
every output is written beside its place and then put there, so nothing is left half written.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator

from bayesfair.base.writing import drop_drafts
from bayesfair.cli.tools import complain

__all__ = ["INTERRUPTED", "at_interrupt", "end_promptly"]

INTERRUPTED = 130
"""Exit status of a command that Ctrl-C ended, as shells have it."""

GRACE = 0.4
"""Seconds that a command has to end by itself."""

_last_words: list[Callable[[], str | None]] = []


@contextlib.contextmanager
def at_interrupt(act: Callable[[], str | None]) -> Iterator[None]:
    """Within the block, let ``act`` run before an interrupted command is ended.

    Parameters
    ----------
    act : callable
        Keeps what has been done so far; called from another thread, while compiled code may still
        run. Returns a sentence for the user, or None.
    """
    _last_words.append(act)
    try:
        yield
    finally:
        _last_words.remove(act)


def end_promptly() -> None:
    """From now on, end the process a moment after Ctrl-C, even in the middle of a kernel."""
    if threading.current_thread() is not threading.main_thread() or os.name == "nt":
        return  # there, only Python's own handling is to be had
    wake, ring = os.pipe()
    os.set_blocking(ring, False)
    signal.set_wakeup_fd(ring, warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(wake,), daemon=True).start()


def _watch(wake: int) -> None:
    while number := os.read(wake, 1):
        if number[0] == signal.SIGINT:
            # a command that ends by itself takes the process, and this thread, with it
            time.sleep(GRACE)
            _end()


def _end() -> None:
    try:
        for act in tuple(_last_words):
            said = act()
            if said:
                complain(said)
        drop_drafts()
        complain("interrupted.")
    finally:
        os._exit(INTERRUPTED)
