"""Let a generator work one item ahead, in a thread of its own."""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator, Iterator
from typing import cast

from bayesfair.kernels.team import usable_cores

__all__ = ["ahead"]


def ahead[T](items: Iterator[T]) -> Generator[T]:
    """Yield the same items, the next being made while the caller works on this one.

    Reading and decoding leave Python's lock, so this uses a second core. At most two items wait. An
    error of the generator is raised where its item would have come; a caller that stops early stops
    the generator. Where a caller neither goes on nor stops, the thread ends with the program.
    Where one core does all, there is no thread: two would take the cache from each other.

    Examples
    --------
    >>> list(ahead(iter("abc")))
    ['a', 'b', 'c']
    """
    if usable_cores() == 1:
        yield from items
        return
    done = object()
    waiting: queue.Queue[T | object] = queue.Queue(maxsize=1)
    stopped = threading.Event()
    failed: list[BaseException] = []

    def put(item: T | object) -> bool:
        # a daemon would be cut off inside of compiled code, which aborts the whole process
        while not stopped.is_set() and threading.main_thread().is_alive():
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
            if isinstance(items, Generator):
                items.close()
            put(done)

    thread = threading.Thread(target=work, name="bayesfair-read-ahead")
    thread.start()
    try:
        while (item := waiting.get()) is not done:
            yield cast("T", item)
    finally:
        stopped.set()
        thread.join()
    if failed:
        raise failed[0]
