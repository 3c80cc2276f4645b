"""Letters of overlapping groups: items that share one are not told apart."""

from __future__ import annotations

import re
import string

import numpy as np
from numpy.typing import NDArray

__all__ = ["in_runs", "letters_of"]

_ALPHABET = string.ascii_letters


def letters_of(apart: NDArray[np.bool_]) -> list[str]:
    """Return the letters of each item, in order: two items share one unless they are told apart.

    Parameters
    ----------
    apart : (k, k) array of bool
        Symmetric: which pairs are told apart.

    Notes
    -----
    A group is a set of items of which no two are told apart, and that no other item could join.
    Groups are added, beginning with the first pair that shares none yet, until all pairs are
    covered; then those that are not needed are left out. Beyond 52 groups letters carry a number:
    a2, b2, ...

    Examples
    --------
    The first and the last of three are told apart, the one between them from neither:

    >>> letters_of(np.array([[0, 0, 1], [0, 0, 0], [1, 0, 0]], bool))
    ['a', 'ab', 'b']
    """
    k = len(apart)
    alike = ~apart | np.eye(k, dtype=bool)
    covered = np.zeros((k, k), np.int64)
    groups: list[NDArray[np.bool_]] = []
    for i in range(k):
        while (lacking := np.flatnonzero(alike[i, i:] & (covered[i, i:] == 0))).size:
            member = np.zeros(k, bool)
            member[[i, i + int(lacking[0])]] = True
            free = alike[member].all(axis=0)
            while (more := np.flatnonzero(free & ~member)).size:
                # first those that this item still shares no group with
                j = more[np.argmin(covered[i, more] > 0)]
                member[j] = True
                free &= alike[j]
            groups.append(member)
            covered += np.outer(member, member)
    for n in range(len(groups) - 1, -1, -1):
        own = np.outer(groups[n], groups[n])
        if (covered[own] > 1).all():
            covered -= own
            del groups[n]
    groups.sort(key=lambda member: np.flatnonzero(member).tolist())
    names = [_ALPHABET[n % 52] + (str(n // 52 + 1) if n >= 52 else "") for n in range(len(groups))]
    return [
        "".join(name for name, of in zip(names, groups, strict=True) if of[i]) for i in range(k)
    ]


def in_runs(letters: str) -> str:
    """Return the letters of an item for reading: of four and more in a row, the ends.

    Examples
    --------
    >>> in_runs("abcdefyzAB"), in_runs("abc"), in_runs("YZa2b2c2")
    ('a-fy-B', 'abc', 'Y-c2')
    """
    names = re.findall(r"[A-Za-z]\d*", letters)
    at = [_ALPHABET.index(name[0]) + 52 * (int(name[1:] or 1) - 1) for name in names]
    runs: list[list[str]] = []
    for i, name in enumerate(names):
        if i and at[i] == at[i - 1] + 1:
            runs[-1].append(name)
        else:
            runs.append([name])
    return "".join(f"{run[0]}-{run[-1]}" if len(run) > 3 else "".join(run) for run in runs)
