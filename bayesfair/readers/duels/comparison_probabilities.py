"""Columns of probabilities that stand beside duels: of the left item, or of every item."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.checks import listed
from bayesfair.errors import DataError, OptionError
from bayesfair.readers.duels.arena import open_json
from bayesfair.readers.duels.comparison_rows import load
from bayesfair.readers.duels.comparisons import JSON_SUFFIXES
from bayesfair.readers.duels.preflib import SUFFIXES
from bayesfair.readers.files.headers import missing_column
from bayesfair.readers.files.tables import open_source, single_file

__all__ = ["DuelProbabilities", "header_of", "read_duel_probabilities"]


class DuelProbabilities(NamedTuple):
    """What a log says of the rule, in the order asked for; None = not logged."""

    propensity: NDArray[np.float64] | None
    selection: NDArray[np.float64] | None


def _opened(source: Any, delimiter: str | None) -> Any:
    if isinstance(source, (str, os.PathLike)) and isinstance(os.fspath(source), str):
        path = Path(os.fspath(source))
        suffixes = {suffix.lower() for suffix in path.suffixes}
        if suffixes & set(SUFFIXES):
            raise OptionError(f"{path.name} holds rankings; who is compared is a matter of duels.")
        if JSON_SUFFIXES & suffixes:
            return open_json(single_file(source, "JSON"))
    return open_source(source, delimiter=delimiter)


def header_of(source: Any, *, delimiter: str | None = None) -> tuple[str, ...]:
    """Return the columns of a source."""
    return tuple(map(str, _opened(source, delimiter).header))


def read_duel_probabilities(
    source: Any,
    items: Sequence[str],
    *,
    propensity: str | None = None,
    probabilities: str | None = None,
    order: str | None = None,
    delimiter: str | None = None,
) -> DuelProbabilities:
    """Return the logged probabilities of each duel.

    Parameters
    ----------
    source : path or data frame
    items : sequence of str
    propensity : str, optional
        Column: with which probability the item on the left was put there.
    probabilities : str, optional
        Name of the columns that hold the law of the slot, such as ``"p_{item}"``; empty = not on
        offer.
    order : str, optional
        Column to sort by, as in `read_comparisons`.
    delimiter : str, optional

    Raises
    ------
    DataError
        If a column lacks, or holds something that is no number, with its row.
    """
    opened = _opened(source, delimiter)
    used = {"propensity": propensity} if propensity else {}
    if probabilities:
        columns = [probabilities.replace("{item}", item) for item in items]
        lacking = [column for column in columns if column not in opened.header]
        if lacking:
            raise DataError(
                f"{opened.name} has no column {listed(lacking)}: the law of the slot needs one per "
                "item. Add them, or name the columns with probabilities=."
            )
        used |= {f"probabilities[{i}]": column for i, column in enumerate(columns)}
    for option, column in (*used.items(), *([("order", order)] if order else [])):
        if column not in opened.header:
            raise missing_column(column, option, opened.name, opened.header)
    if not used:
        return DuelProbabilities(None, None)
    rows = load(opened, used | ({"order": order} if order else {}), order)
    law = None
    if probabilities:
        law = np.stack([np.asarray(rows.number(column)) for column in columns], axis=1)
    return DuelProbabilities(rows.number(propensity or None), law)
