"""Time several pieces of work in turns, on as many cores as asked for, and compare by medians.

A shared machine is never quiet: processor time counts what a piece of work used, wall time also
what it waited for. Ratios of pieces timed in the same turn are all that may be quoted.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

__all__ = ["Spent", "in_turns", "on_cores", "ratio"]


class Spent(NamedTuple):
    """Seconds that one call took."""

    processor: float
    wall: float


def spent(work: Callable[[], object]) -> Spent:
    """Return what one call takes; one that returns a `Spent` measured itself."""
    wall, processor = time.perf_counter(), time.process_time()
    found = work()
    if isinstance(found, Spent):
        return found
    return Spent(time.process_time() - processor, time.perf_counter() - wall)


@contextlib.contextmanager
def on_cores(n: int) -> Iterator[None]:
    """Let this process use ``n`` of its cores for as long as the block lasts."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, set(sorted(before)[-n:]))
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def in_turns(
    works: dict[str, Callable[[], object]], *, turns: int, seldom: dict[str, int] | None = None
) -> dict[str, list[Spent]]:
    """Call each of ``works`` once in every turn; some only in the first few (``seldom``)."""
    found: dict[str, list[Spent]] = {name: [] for name in works}
    for turn in range(turns):
        for name, work in works.items():
            if turn < (seldom or {}).get(name, turns):
                found[name].append(spent(work))
    return found


def ratio(above: list[Spent], below: list[Spent], kind: str) -> float:
    """Return the median over turns of the ratio of two pieces of work; ``kind`` of the time."""
    pairs = zip(above, below, strict=False)
    return float(np.median([getattr(a, kind) / getattr(b, kind) for a, b in pairs]))


def median(times: list[Spent], kind: str) -> float:
    """Return the median of one piece of work."""
    return float(np.median([getattr(one, kind) for one in times]))
