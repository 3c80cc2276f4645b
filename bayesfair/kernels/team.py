"""Share blocks of work among threads, for kernels that leave Python's lock."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

__all__ = ["Team", "usable_cores"]


def usable_cores() -> int:
    """Return how many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


class Team:
    """The calling thread and ``workers`` - 1 others, for as long as the ``with`` block lasts.

    The caller works too: a new thread may take a millisecond to start, and no core waits for it.

    Examples
    --------
    >>> done = np.zeros(5)
    >>> def work(which):
    ...     done[which] += 1
    >>> with Team(2) as team:
    ...     team.share(work, 5)
    >>> done
    array([1., 1., 1., 1., 1.])
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._pool = ThreadPoolExecutor(workers - 1) if workers > 1 else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def share(self, run: Callable[[NDArray[np.int64]], None], n_blocks: int) -> None:
        """Call ``run`` with all of 0..n_blocks-1, a few at a time, whichever thread is free.

        An error of any share is raised here, after those begun have ended.
        """
        if self._pool is None:
            run(np.arange(n_blocks))
            return
        # large shares first, single blocks last: cores are not equally free, yet all end together
        shares, left = deque[NDArray[np.int64]](), np.arange(n_blocks)
        while left.size:
            size = max(1, left.size // (2 * self.workers))
            shares.append(left[:size])
            left = left[size:]

        def work() -> None:
            while True:
                try:
                    share = shares.popleft()
                except IndexError:
                    return
                try:
                    run(share)
                except BaseException:
                    shares.clear()
                    raise

        others = [self._pool.submit(work) for _ in range(self.workers - 1)]
        try:
            work()
        finally:
            for other in others:
                other.result()
