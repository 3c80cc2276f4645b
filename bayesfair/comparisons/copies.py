"""Changed copies of comparisons: with covariates, without items or ties, rankings as pairs."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.arguments import takes
from bayesfair.base.checks import as_numbers, check_known, listed
from bayesfair.base.labels import by_label, label_order, labels_of
from bayesfair.base.notices import Notice
from bayesfair.comparisons.cells import ComparisonCells
from bayesfair.errors import ArmError, BayesfairWarning, DataError

__all__ = ["ComparisonCopies"]


@dataclass(frozen=True, eq=False, repr=False)
class ComparisonCopies(ComparisonCells):
    """Methods of `Comparisons` that return a changed copy."""

    @takes()
    def with_covariates(self, covariates: Mapping[str, Any]) -> Self:
        """Return a copy that carries item covariates.

        Parameters
        ----------
        covariates : mapping of name to (mapping of item to number, or sequence in item order)

        Raises
        ------
        ArmError, DataError
            If an item has no value, or a value is not finite.

        Examples
        --------
        >>> from bayesfair.comparisons import Comparisons
        >>> duels = Comparisons.from_counts(["a"], ["b"], [7], [3])
        >>> duels.with_covariates({"size": {"a": 1.5, "b": 2.0}}).covariates
        array([[1.5],
               [2. ]])
        """
        if not isinstance(covariates, Mapping):
            raise DataError(
                "covariates must be a mapping of names to values per item, got "
                f"{type(covariates).__name__}.",
                kind="covariates",
                column="covariates",
            )
        columns = []
        for name, given in covariates.items():
            if isinstance(given, Mapping):
                values = by_label(given, "item", f"covariate {name!r}")
                lacking = [item for item in self.items if item not in values]
                if lacking:
                    raise ArmError(f"covariate {name!r} has no value for {listed(lacking)}.")
                entries: Any = [values[item] for item in self.items]
            else:
                entries = given
            column = as_numbers(entries, f"covariate {name!r}")
            if column.shape != (self.n_items,) or not np.isfinite(column).all():
                raise DataError(
                    f"covariate {name!r} must give one finite number for each of the "
                    f"{self.n_items} items, got shape {column.shape}."
                )
            columns.append(column)
        table = np.stack(columns, axis=1) if columns else None
        return replace(self, covariate_names=tuple(map(str, covariates)), covariates=table)

    def in_label_order(self) -> Self:
        """Return the same comparisons with their items in the order of their labels.

        Examples
        --------
        >>> from bayesfair.comparisons import Comparisons
        >>> Comparisons.from_win_matrix([[0, 3], [1, 0]], ["b", "a"]).in_label_order().win_matrix()
        array([[0., 1.],
               [3., 0.]])
        """
        order = label_order(self.items)
        if np.array_equal(order, np.arange(self.n_items)):
            return self
        place = np.argsort(order).astype(np.int32)
        new = replace(
            self,
            items=tuple(self.items[i] for i in order),
            covariates=None if self.covariates is None else self.covariates[order],
        )
        if self.kind != "duels":
            below = np.where(self.level < 0, np.iinfo(np.int32).max, self.level)
            by = np.lexsort((place[self.item], below, self._position_cell()))
            return replace(new, item=place[self.item][by], level=self.level[by])
        left, right = place[self.left], place[self.right]
        by = np.lexsort((self.first, self.outcome, right, left))  # as cells are ever sorted
        cell = None
        if self.cell is not None:
            moved = np.append(np.argsort(by), -1).astype(np.int32)
            cell = moved[self.cell]
        return replace(
            new,
            left=left[by],
            right=right[by],
            outcome=self.outcome[by],
            first=self.first[by],
            count=self.count[by],
            square=None if self.square is None else self.square[by],
            row=self.row[by],
            cell=cell,
        )

    def without(self, *items: str) -> Self:
        """Return a copy without some items: their duels go, rankings close the gap.

        Examples
        --------
        >>> from bayesfair.comparisons import Comparisons
        >>> Comparisons.from_rankings([["a", "b", "c"]]).without("b").orderings()
        [(('a',), ('c',))]
        """
        items = labels_of(items, "item")
        gone = [check_known(item, self.items, "item") for item in items]
        keep = np.ones(self.n_items, bool)
        keep[gone] = False
        new = np.cumsum(keep, dtype=np.int32) - np.int32(1)
        emptied = self.set_aside(*items)
        return replace(
            emptied,
            items=tuple(item for item, kept in zip(self.items, keep, strict=True) if kept),
            covariates=None if self.covariates is None else self.covariates[keep],
            left=new[emptied.left],
            right=new[emptied.right],
            item=new[emptied.item],
            notices=(
                *self.notices,
                Notice(
                    f"{listed(items)} {'was' if len(items) == 1 else 'were'} left out on request.",
                    kind="items_left_out",
                    n=len(items),
                ),
            ),
        )

    def set_aside(self, *items: str) -> Self:
        """Return a copy in which some items have no data, as `without` but still among the items.

        Examples
        --------
        >>> from bayesfair.comparisons import Comparisons
        >>> Comparisons.from_rankings([["a", "b", "c"]]).set_aside("b").connectivity().no_data
        ('b',)
        """
        keep = np.ones(self.n_items, bool)
        known = labels_of(items, "item")
        keep[[check_known(item, self.items, "item") for item in known]] = False
        if self.kind == "duels":
            return self._only_cells(keep[self.left] & keep[self.right])
        at = keep[self.item]
        cell = self._position_cell()
        size = np.bincount(cell[at], minlength=len(self.count))
        ranked = np.bincount(cell[at & (self.level >= 0)], minlength=len(self.count))
        whole = (size > 1) & (ranked > 0)
        at &= whole[cell]
        return replace(
            self,
            item=self.item[at],
            level=self.level[at],
            start=np.concatenate([[0], np.cumsum(size[whole])]).astype(np.int64),
            count=self.count[whole],
            square=None if self.square is None else self.square[whole],
            row=self.row[whole],
            cell=None,
        )

    @takes()
    def with_counts(self, count: NDArray[np.float64]) -> Self:
        """Return a copy in which each unique cell occurs `count` times, ``(U,)``; 0 = not at all.

        Examples
        --------
        >>> from bayesfair.comparisons import Comparisons
        >>> duels = Comparisons.from_counts(["a"], ["b"], [7], [3])
        >>> duels.with_counts(np.array([2.0, 0.0])).win_matrix()
        array([[0., 2.],
               [0., 0.]])
        """
        count = as_numbers(count, "count")
        if count.shape != self.count.shape or not ((count >= 0) & np.isfinite(count)).all():
            raise DataError(
                f"count must give one number from 0 on for each of the {len(self.count)} unique "
                f"cells, got shape {count.shape}.",
                kind="counts",
                column="count",
            )
        kept = count > 0
        square = self.square
        if square is not None:  # as if so much of every weight were left
            ratio = np.divide(count, self.count, out=np.zeros_like(count), where=self.count > 0)
            square = square * ratio
        return replace(self, count=count, square=square)._only_cells(kept)

    def _only_cells(self, at: NDArray[np.bool_]) -> Self:
        """Return a copy of the unique cells that are marked."""
        cell = None
        if self.cell is not None:
            new = np.where(at, np.cumsum(at) - 1, -1).astype(np.int32)
            cell = np.where(self.cell < 0, np.int32(-1), np.append(new, np.int32(-1))[self.cell])
        common: dict[str, Any] = {"count": self.count[at], "row": self.row[at], "cell": cell}
        common["square"] = None if self.square is None else self.square[at]
        if self.kind == "duels":
            return replace(
                self,
                left=self.left[at],
                right=self.right[at],
                outcome=self.outcome[at],
                first=self.first[at],
                **common,
            )
        size = np.diff(self.start)
        positions = np.repeat(at, size)
        return replace(
            self,
            item=self.item[positions],
            level=self.level[positions],
            start=np.concatenate([[0], np.cumsum(size[at])]).astype(np.int64),
            **common,
        )

    def without_ties(self) -> Self:
        """Return duels without the tied ones, and a notice of how many these were.

        Examples
        --------
        >>> from bayesfair.comparisons import Comparisons
        >>> duels = Comparisons.from_counts(["a", "b"], ["b", "c"], [7, 0], [3, 0], [2, 4])
        >>> duels.without_ties().connectivity().no_data
        ('c',)
        """
        n = self.n_ties
        if self.kind != "duels" or not n:
            return self
        note = Notice(
            f"{n:.12g} of {self.n_comparisons:.12g} duels {'is a tie' if n == 1 else 'are ties'}; "
            "left out on request, they count nowhere.",
            kind="ties_left_out",
            n=n,
        )
        kept = self._only_cells(self.outcome != 2)
        return replace(kept, notices=(*self.notices, note))

    def to_duels(self) -> Self:
        """Return rankings broken into pairs, with a warning: the pairs are not independent.

        Standard errors from broken rankings are too small (a ranking of m items gives m (m - 1) / 2
        pairs, but m - 1 choices).
        """
        if self.kind == "duels":
            return self
        warnings.warn(
            "breaking rankings into pairs treats the pairs of one ranking as independent: standard "
            "errors come out too small. Prefer model='plackett_luce' on the rankings.",
            BayesfairWarning,
            stacklevel=2,
        )
        won, tied = self.win_matrix(), np.triu(self.tie_matrix())
        a, b = np.nonzero(won)
        c, d = np.nonzero(tied)
        square = None
        if self.square is not None:
            second = replace(self, count=self.square)
            square = np.concatenate([second.win_matrix()[a, b], np.triu(second.tie_matrix())[c, d]])
        outcome = np.concatenate([np.zeros(len(a), np.int8), np.full(len(c), 2, np.int8)])
        return replace(
            self,
            kind="duels",
            left=np.concatenate([a, c]).astype(np.int32),
            right=np.concatenate([b, d]).astype(np.int32),
            outcome=outcome,
            first=np.zeros(len(outcome), np.int8),
            sides=False,
            count=np.concatenate([won[a, b], tied[c, d]]),
            square=square,
            row=np.zeros(len(outcome), np.int64),
            start=self.start[:0],
            item=self.item[:0],
            level=self.level[:0],
            partial=None,
            notices=(
                *self.notices,
                Notice(
                    "Rankings were broken into pairs: intervals are too narrow.",
                    kind="dependent_pairs",
                ),
            ),
        )
