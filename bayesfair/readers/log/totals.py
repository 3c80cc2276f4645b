"""Tables of totals, one row for many choices of an arm, which are no log of choices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bayesfair.errors import DataError
from bayesfair.readers.files.tables import Source
from bayesfair.readers.log.columns import Layout
from bayesfair.readers.values.values import meant_numbers, rewards

__all__ = ["refuse_totals"]

_NAMES = frozenset((
    "n", "trials", "count", "impressions", "views", "shown", "plays", "pulls", "attempts",
    "exposures", "visits",
))  # fmt: skip
_BEFORE = ("n_", "num_", "number_of_", "total_")
_ROWS = 2000


def refuse_totals(source: Source, layout: Layout, asked: Mapping[str, Any]) -> None:
    """Refuse a log whose first rows are totals: so many trials, so many of them a success.

    Parameters
    ----------
    source : Source
        The log.
    layout : Layout
        Which column plays which part.
    asked : mapping
        All `LogOptions`; with ``round=False`` nothing is looked for.

    Raises
    ------
    DataError
        Naming the first row, the column of the trials and what is needed.
    """
    maybe = [name for name in layout.unused if _bare(name) in _NAMES]
    if not maybe or asked["round"] is not None:
        return
    head = source.sample([layout.reward, *maybe], _ROWS)
    if head is None or not head.num_rows:
        return
    decimal = asked["decimal"]
    try:
        paid = rewards(head.column(layout.reward), str, decimal=decimal, mapping=asked["rewards"])
    except DataError:
        return  # said when it is read, with the row
    known = ~np.isnan(paid)
    if not known.any() or not _counts(paid[known]) or paid[known].max() <= 1:
        return
    for name in maybe:
        trials = meant_numbers(head.column(name), decimal=decimal)
        if trials is None or not _counts(trials) or (trials[known] < paid[known]).any():
            continue
        t = int(np.argmax(known))
        raise DataError(
            f"row {source.first_row + t} of {source.name}: column {name!r} is {trials[t]:g} and "
            f"the reward (column {layout.reward!r}) is {paid[t]:g}, and in all of the first "
            f"{head.num_rows} rows {name!r} is a whole number not below the reward. That looks "
            "like totals, and an audit needs each decision: one row per choice, with its own "
            "reward. If each row is one decision all the same, pass round=False.",
            kind="totals", row=source.first_row + t, column=name, value=float(trials[t]),
            source=source.name,
        )  # fmt: skip


def _bare(name: str) -> str:
    found = name.strip().casefold()
    return next((found[len(b) :] for b in _BEFORE if found.startswith(b)), found)


def _counts(values: Any) -> bool:
    return bool((np.isfinite(values) & (values >= 0) & (values == np.floor(values))).all())
