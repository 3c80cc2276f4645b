"""Labels that are missing from rankings and from the sets that were offered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.checks import counted
from bayesfair.base.labels import text_of
from bayesfair.base.notices import Notice
from bayesfair.comparisons.sources import Origin, rows_with_missing
from bayesfair.errors import DataError

__all__ = ["gap_of", "is_absent", "is_group", "without_gaps"]


def is_group(entry: object) -> bool:
    """Return whether a place of a ranking holds several items: a tie."""
    return isinstance(entry, (list, tuple, set, frozenset)) or (
        isinstance(entry, np.ndarray) and entry.ndim == 1
    )


def is_absent(entry: object) -> bool:
    """Return whether a label is missing or empty."""
    return not text_of(entry)


def gap_of(entries: Sequence[Any], at_least: int = 0) -> int | None:
    """Return the place of a missing label that is no filling at the end, None if there is none.

    Missing labels behind the last one fill the rows of a table up to one length. Where they leave
    fewer than `at_least` labels (but one), the row lacks what it would say.
    """
    absent = [any(map(is_absent, e)) if is_group(e) else is_absent(e) for e in entries]
    last = len(absent)
    while last and absent[last - 1] and not is_group(entries[last - 1]):
        last -= 1
    if True in absent[:last]:
        return absent.index(True)
    return last if 0 < last < min(at_least, len(absent)) else None


def without_gaps(
    rows: list[list[Any]], gaps: dict[int, int], missing: str, name: str, source: Origin
) -> tuple[NDArray[np.bool_], list[Notice]]:
    """Return which rows lack a label among others, with the notice, or refuse them.

    Raises
    ------
    DataError
        Naming the first such row and place.
    """
    gone = np.isin(np.arange(len(rows)), list(gaps))
    if gaps and missing == "error":
        i = min(gaps)
        raise DataError(
            f"{source.where(i)}, {source.called(name)}: the label at place {gaps[i] + 1} is "
            f"missing ({counted(len(gaps), 'such row')}). Complete it, or leave such rows out with "
            'missing="drop".',
            kind="missing_label",
            row=source.line(i),
            column=source.columns.get(name, name),
            value=gaps[i] + 1,
            source=source.name,
        )
    return rows_with_missing(missing, {name: gone}, source)
