"""Groups of columns that may be the probabilities of arms, by their names and by their sums."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.labels import clean_label
from bayesfair.readers.log.nested import SLACK

__all__ = ["are_marks", "inverse_averages", "most", "one_in_sum", "parts_of", "patterns_of"]

_ENDING = re.compile(r"((?<=[\W_])[^\W_]+|\d+)$")


def one_in_sum(matrix: NDArray[np.float64], *, named: bool) -> bool:
    """Whether rows are probabilities: each of them, or most where the name or fractions say so."""
    if named:  # where nothing is known, nothing speaks against it
        matrix = matrix[~np.isnan(matrix).all(axis=1)]
    inside = (np.isnan(matrix) | ((matrix >= 0) & (matrix <= 1 + 1e-6))).all(axis=1)
    sums = inside & (np.abs(np.nansum(matrix, axis=1) - 1) <= SLACK)
    parts = sums & ((matrix > 0) & (matrix < 1)).any(axis=1)
    return bool(len(sums)) and bool(sums.all() or most(sums if named else parts))


def patterns_of(header: Sequence[str], seen: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return patterns under which every arm that was seen has a column: label -> column."""
    found: dict[str, dict[str, str]] = {}
    if len(seen) < 2:
        return found
    present = set(header)
    first = seen[0]
    for column in header:
        start = column.find(first)
        while start >= 0:
            before, after = column[:start], column[start + len(first) :]
            if all(f"{before}{label}{after}" in present for label in seen):
                labels = {
                    clean_label(c[len(before) : len(c) - len(after)]): c
                    for c in header
                    if len(c) > len(before) + len(after)
                    and c.startswith(before)
                    and c.endswith(after)
                }
                found[f"{before}{{arm}}{after}"] = {k: v for k, v in labels.items() if k}
            start = column.find(first, start + 1)
    return found


def parts_of(total: int, numbers: Mapping[str, Any], k: int) -> list[tuple[str, ...]]:
    """Return columns that sum to `total`: k side by side, or all of k or more with like names."""
    held = [c for c, values in numbers.items() if not np.isnan(values).all()]
    alike: dict[str, list[str]] = {}
    for name in held:
        alike.setdefault(_ENDING.sub("", name), []).append(name)
    groups = [names for names in alike.values() if len(names) >= max(k, 2)]
    groups += [held[i : i + k] for i in range(len(held) - k + 1)] if k > 1 else []
    return [
        group for group in dict.fromkeys(map(tuple, groups))
        if one_in_sum(matrix := np.column_stack([numbers[c] for c in group]) / total, named=False)
        and not are_marks(matrix)
    ]  # fmt: skip


def inverse_averages(k: int, values: NDArray[np.float64]) -> bool:
    """Whether numbers in (0, 1] have inverses with mean k, as those of drawn arms have: of 50 on.

    The mean of 1 / p over draws from p is the number of arms that may be drawn.
    """
    held = values[~np.isnan(values)]
    if len(held) < 50 or k < 2 or not ((held > 0) & (held <= 1)).all():
        return False
    inverse = 1 / held
    error = inverse.std() / np.sqrt(len(held))
    return bool(error < 0.15 * k and abs(inverse.mean() - k) <= 3 * error + 1e-6 * k)


def are_marks(values: NDArray[np.float64]) -> bool:
    """Whether all that is known is 0 or 1."""
    return bool(np.isin(values[~np.isnan(values)], (0, 1)).all())


def most(holds: NDArray[np.bool_]) -> bool:
    """Whether it holds for more than half of them."""
    return 2 * int(np.count_nonzero(holds)) > len(holds)
