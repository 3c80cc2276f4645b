"""What the rule saw as numbers: a row of features for each round."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.checks import listed
from bayesfair.errors import DataError
from bayesfair.history.cells import no_context
from bayesfair.history.context import Context
from bayesfair.history.history import History
from bayesfair.typing import Floats

__all__ = ["Design", "design_of"]

_FIRST = 100
"""So many rounds tell the location and the scale of a column, and its bins."""

_MOST = 200
"""Features: what is kept of an arm grows with their square."""

_MOST_LABELS = 10
"""Numbers among the labels of a column that is none of numbers."""

_MOST_CUT = 6
"""Columns of numbers that are cut into bins; one alone into quarters, more into halves."""


class Design(NamedTuple):
    """How columns of a context become features.

    A column whose values are all numbers is a feature, centred and scaled by the first rounds; any
    other has an indicator for each of its values, in the order of their coming.

    Attributes
    ----------
    columns : tuple of str
        Names.
    location, scale : (c,) array
        Mean and standard deviation of each column of numbers; NaN for others.
    cuts, cut_of : (m,) array
        Where columns of numbers are cut into bins, of which an audit has a table, and the column.
    levels : tuple of str
    level_of : (n,) array of int
        Values that have an indicator, and their column.
    """

    columns: tuple[str, ...]
    location: Floats
    scale: Floats
    cuts: Floats
    cut_of: NDArray[np.int64]
    levels: tuple[str, ...]
    level_of: NDArray[np.int64]

    @classmethod
    def start(cls, context: Context) -> Design:
        """Return the features by the first rounds of a log."""
        n, width = min(len(context), _FIRST), len(context.columns)
        location, scale = np.full(width, np.nan), np.full(width, np.nan)
        values = [_numbers(context, j, n) for j in range(width)]
        many = sum(found is not None for found in values)
        cuts, cut_of = [np.empty(0)], [np.empty(0, np.int64)]
        for j, found in enumerate(values):
            if found is None:
                _refuse_mixed(context, j, n)
            if found is None or not n:
                continue
            location[j], scale[j] = found.mean(), found.std() or 1.0
            shares = (0.25, 0.5, 0.75) if many == 1 else (0.5,)
            own = np.unique(np.quantile(found, shares))
            own = own[own > found.min()] if many <= _MOST_CUT else own[:0]
            cuts.append(own)
            cut_of.append(np.full(len(own), j))
        nothing = np.empty(0, np.int64)
        of = np.concatenate(cuts), np.concatenate(cut_of)
        return cls(context.columns, location, scale, *of, (), nothing)

    @property
    def numeric(self) -> NDArray[np.bool_]:
        """Which columns are numbers, (c,)."""
        return ~np.isnan(self.location)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features, d of them, intercept first."""
        numbers = [name for name, known in zip(self.columns, self.numeric, strict=True) if known]
        return ("1", *numbers, *(f"{self.columns[j]}={value}" for j, value in self._indicators))

    @property
    def _indicators(self) -> list[tuple[int, str]]:
        return list(zip(self.level_of.tolist(), self.levels, strict=True))

    def widened(self, context: Context) -> Design:
        """Return the features with indicators of the values that are new."""
        known, more = set(self._indicators), []
        for j in np.flatnonzero(~self.numeric).tolist():
            codes = context.codes[:, j]
            found, first = np.unique(codes, return_index=True)
            more += [(int(t), j, context.labels[j][c]) for c, t in zip(found, first, strict=True)]
        new = [(j, value) for _, j, value in sorted(more) if (j, value) not in known]
        if (n := len(self.names) + len(new)) > _MOST:
            most = max(set(self.level_of.tolist() + [j for j, _ in new]),
                       key=lambda j: len(context.labels[j]))  # fmt: skip
            raise DataError(
                f"the context has {n} features, and {self.columns[most]!r} has most of them, one "
                f"for each of its values: at most {_MOST} can be learned. Leave it out, or give "
                "coarser values; context_model='pooled' is for many values of rewards 0 and 1.",
                kind="too_many_features", column=self.columns[most], value=n,
            )  # fmt: skip
        return self._replace(
            levels=(*self.levels, *(value for _, value in new)),
            level_of=np.concatenate([self.level_of, np.array([j for j, _ in new], np.int64)]),
        )

    def rows(self, context: Context) -> Floats:
        """Return the features of each round, (T, d), intercept first.

        Raises
        ------
        DataError
            If a value of a column of numbers is none.
        """
        out = np.zeros((len(context), len(self.names)))
        out[:, 0] = 1.0
        at = 1
        for j in np.flatnonzero(self.numeric).tolist():
            out[:, at] = (self._column(context, j) - self.location[j]) / self.scale[j]
            at += 1
        for j, value in self._indicators:
            if value in context.labels[j]:
                out[:, at] = context.codes[:, j] == context.labels[j].index(value)
            at += 1
        return out

    def bins(self, context: Context) -> Context:
        """Return the context with the bins of its numbers as labels."""
        codes, labels = context.codes.copy(), list(context.labels)
        for j in np.flatnonzero(self.numeric).tolist():
            cuts = self.cuts[self.cut_of == j]
            codes[:, j] = np.searchsorted(cuts, self._column(context, j), side="right")
            labels[j] = tuple(_spans(cuts))
        return Context(context.columns, codes, tuple(labels))

    def in_order(self, labels: Iterable[str]) -> list[str]:
        """Return names of contexts with bins: numbers by the place of the bin, others as text."""

        def place(label: str) -> str:
            label += ", "
            for j in np.flatnonzero(self.numeric).tolist():
                of = f"{self.columns[j]}=" if len(self.columns) > 1 else ""
                for at, span in enumerate(_spans(self.cuts[self.cut_of == j])):
                    label = label.replace(f"{of}{span}, ", f"{of}{at}, ")
            return label

        return sorted(labels, key=place)

    def _column(self, context: Context, j: int) -> Floats:
        values = _numbers(context, j, len(context))
        if values is None:
            some = context.codes[:, j]
            wrong = next(v for v in map(context.labels[j].__getitem__, some) if not _is_number(v))
            raise DataError(
                f"the context {self.columns[j]!r} was numbers in the first part of the log, and "
                f"{wrong!r} is none: give it as a number, or begin with labels "
                f"({listed(self.columns)}).",
                kind="not_a_number", column=self.columns[j], value=wrong,
            )  # fmt: skip
        return values


def design_of(history: History) -> tuple[tuple[str, ...], Floats]:
    """Return the names of the features of a log, and a row of them for each round, (T, d).

    Raises
    ------
    DataError
        If it has no context.
    """
    if history.context is None:
        raise no_context(history, "has coefficients for its features")
    design = Design.start(history.context).widened(history.context)
    return design.names, design.rows(history.context)


def _refuse_mixed(context: Context, j: int, n: int) -> None:
    """Raise where a column has many numbers and something else: that is no column of labels."""
    values = [context.labels[j][c] for c in context.codes[:n, j]]
    other = [t for t, value in enumerate(values) if not _is_number(value)]
    if len(set(values)) - len({values[t] for t in other}) > _MOST_LABELS:
        raise DataError(
            f"the context {context.columns[j]!r} is numbers, but for {values[other[0]]!r} in "
            f"round {other[0]}: as a feature it must be a number in every round. Mend the value, "
            "or leave the round out.",
            kind="not_a_number", column=context.columns[j], value=values[other[0]],
        )  # fmt: skip


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def _numbers(context: Context, j: int, n: int) -> Floats | None:
    """Return the first values of a column as numbers; None where one of them is none."""
    codes = context.codes[:n, j]
    try:
        values = np.array(context.labels[j], dtype=np.float64)[codes]
    except ValueError:
        if not all(_is_number(context.labels[j][c]) for c in np.unique(codes)):
            return None
        values = np.array([float(context.labels[j][c]) for c in codes])
    return values if np.isfinite(values).all() else None


def _spans(cuts: Floats) -> Iterator[str]:
    """Yield names of the intervals between cuts."""
    shown = [f"{cut:.4g}" for cut in cuts]
    if len(set(shown)) < len(shown):
        shown = [repr(float(cut)) for cut in cuts]
    if not shown:
        yield "any"
        return
    yield f"below {shown[0]}"
    for low, high in pairwise(shown):
        yield f"{low} to {high}"
    yield f"{shown[-1]} or more"
