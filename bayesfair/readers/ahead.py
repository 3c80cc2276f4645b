"""Let a generator work one item ahead, in a thread of its own."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import cast

__all__ = ["ahead"]


def ahead[T](items: Iterator[T]) -> Iterator[T]:
    """Yield the same items, the next being made while the caller works on this one.

    Reading and decoding leave Python's lock, so this uses a second core. At most two items wait. An
    error of the generator is raised where its item would have come; a caller that stops early stops
    the generator.

    Examples
    --------
    >>> list(ahead(iter("abc")))
    ['a', 'b', 'c']
    """
    done = object()
    waiting: queue.Queue[T | object] = queue.Queue(maxsize=1)
    stopped = threading.Event()
    failed: list[BaseException] = []

    def put(item: T | object) -> bool:
        while not stopped.is_set():
            try:
                waiting.put(item, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def work() -> None:
        try:
            for item in items:
                if not put(item):
                    break
        except BaseException as error:  # raised again in the caller's thread
            failed.append(error)
        finally:
            put(done)

    thread = threading.Thread(target=work, name="bayesfair-read-ahead", daemon=True)
    thread.start()
    try:
        while (item := waiting.get()) is not done:
            yield cast("T", item)
    finally:
        stopped.set()
        thread.join()
    if failed:
        raise failed[0]
