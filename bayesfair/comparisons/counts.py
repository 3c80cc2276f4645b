"""Whether columns of counts are wins and ties: totals, percent, and pairs told twice."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.checks import counted
from bayesfair.base.notices import Notice
from bayesfair.comparisons.sources import Origin
from bayesfair.errors import DataError
from bayesfair.typing import Floats

__all__ = ["check_total", "count_notices"]


def check_total(left: Floats, right: Floats, ties: Floats, *, source: Origin) -> None:
    """Refuse ties that are the number of duels: the sum of both wins in every row.

    Raises
    ------
    DataError
        If there are two rows or more, and each has duels.
    """
    total = left + right
    if len(total) < 2 or not (total > 0).all() or not np.array_equal(ties, total):
        return
    raise DataError(
        f"{source.called('ties')} of {source.name} is the sum of both wins in every row: it looks "
        "like the number of duels, not of ties. Leave it out. If so many were ties, give these in "
        "rows of their own, with 0 wins.",
        kind="total_as_ties",
        column=source.columns.get("ties", "ties"),
        source=source.name,
    )


def count_notices(names: Sequence[NDArray[np.object_]], counts: Sequence[Floats]) -> list[Notice]:
    """Say that counts look like percent, or that every pair stands there in both directions.

    Parameters
    ----------
    names : two (N,) arrays of labels
        Left, right.
    counts : three (N,) arrays
        Wins of left, of right, and ties.
    """
    left, right, ties = counts
    found = []
    n = len(left)
    if n > 1 and (left + right + ties == 100).all():
        found.append(Notice(
            f"The counts of all {n} rows sum to 100. If they are percent, each row counts as 100 "
            "duels here: give the numbers of duels, or intervals come out too narrow.",
            kind="percent_as_counts", n=n,
        ))  # fmt: skip
    if not np.array_equal(np.sort(left), np.sort(right)):
        return found
    rows = zip(*names, left.tolist(), right.tolist(), ties.tolist(), strict=True)
    once: dict[tuple[object, ...], int] = {}
    for a, b, won, lost, tied in rows:
        if a != b:
            once[a, b, won, lost, tied] = once.get((a, b, won, lost, tied), 0) + 1
    if once and all(once.get((b, a, y, x, t)) == m for (a, b, x, y, t), m in once.items()):
        pairs = {frozenset(key[:2]) for key in once}
        found.append(Notice(
            f"Every pair stands there in both directions, with the same counts turned round "
            f"({counted(len(pairs), 'pair')}). If these are the same duels told twice, keep one "
            "row of each: intervals come out too narrow.",
            kind="mirrored_counts", n=len(pairs),
        ))  # fmt: skip
    return found
