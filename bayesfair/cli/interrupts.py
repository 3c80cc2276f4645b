"""Ctrl-C ends a command within a second, whatever it is doing, with one word and one status.

Python's own handling waits until compiled code returns, which can take many seconds, and raises its
exception wherever the program happens to be, a clean-up or an import included. Here a thread that
the system's signal wakes at once says what was kept, removes drafts, and ends the process: every
output is written beside its place and then put there, so nothing is left half written.

Nothing else of the package is imported here: the handling stands before the heavy imports begin.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator

__all__ = ["INTERRUPTED", "at_interrupt", "complete", "end_promptly", "say_interrupted"]

INTERRUPTED = 130
"""Exit status of a command that Ctrl-C ended, as shells have it."""

PAUSE = 0.4
"""Seconds for which the command's own work rests, so that it does not end meanwhile."""

_last_words: list[Callable[[], object]] = []
_begun = threading.Event()


@contextlib.contextmanager
def at_interrupt(act: Callable[[], object]) -> Iterator[None]:
    """Within the block, let ``act`` run before an interrupted command is ended; the latest first.

    Parameters
    ----------
    act : callable
        Keeps what has been done so far, and says so; called from another thread, while compiled
        code may still run.
    """
    _last_words.append(act)
    try:
        yield
    finally:
        _last_words.remove(act)


def end_promptly() -> None:
    """From now on, end the process at Ctrl-C, even in the middle of a kernel."""
    if threading.current_thread() is not threading.main_thread() or os.name == "nt":
        return  # there, only Python's own handling is to be had
    wake, ring = os.pipe()
    os.set_blocking(ring, False)
    signal.set_wakeup_fd(ring, warn_on_full_buffer=False)
    signal.signal(signal.SIGINT, _rest)
    threading.Thread(target=_watch, args=(wake,), daemon=True).start()  # hears what came before it


def complete() -> None:
    """From now on Ctrl-C does nothing: all is done and said, only Python is still to end.

    If it came before, the process ends here.
    """
    if threading.current_thread() is not threading.main_thread() or os.name == "nt":
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whatever came before is handled first
    if _begun.is_set():
        threading.Event().wait()


def say_interrupted() -> None:
    """Say the one word that every interrupted command ends with."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):
            if sys.stderr.isatty():
                sys.stderr.write("\x1b[?25h")  # a progress bar hides the cursor
            print("interrupted.", file=sys.stderr, flush=True)


def _rest(*_: object) -> None:
    """Hold the main thread up: no exception lands where it cannot be handled."""
    _begun.set()
    time.sleep(PAUSE)


def _watch(wake: int) -> None:
    while number := os.read(wake, 1):
        if number[0] == signal.SIGINT:
            _end()


def _end() -> None:
    try:
        for act in reversed(tuple(_last_words)):
            with contextlib.suppress(Exception):  # one that fails must not keep others from theirs
                act()
        say_interrupted()
    finally:
        os._exit(INTERRUPTED)
