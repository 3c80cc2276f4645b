"""Unique cells of comparisons and what can be read off them; the base of `Comparisons`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.arguments import COUNT, FLAG, takes
from bayesfair.base.checks import check_choice, check_in_range, listed
from bayesfair.base.html import Shown
from bayesfair.comparisons.connectivity import Connectivity, connectivity_of
from bayesfair.comparisons.outcomes import OUTCOMES
from bayesfair.errors import DataError, OptionError
from bayesfair.kernels.log.rows import fixed
from bayesfair.kernels.orders.duels import DuelCounts
from bayesfair.kernels.orders.graph import ranking_edges, ranking_matrices
from bayesfair.kernels.orders.plackett_luce_stages import (
    LARGEST_TIE,
    Chains,
    chains_of_pairs,
    chains_of_rankings,
)

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ComparisonCells", "DuelCounts"]


@dataclass(frozen=True, eq=False, repr=False)
class ComparisonCells(Shown):
    """Fields and queries of `Comparisons`, which documents them."""

    items: tuple[str, ...]
    kind: str
    count: NDArray[np.float64]
    square: NDArray[np.float64] | None = None
    row: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    left: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    right: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    outcome: NDArray[np.int8] = field(default_factory=lambda: np.zeros(0, np.int8))
    first: NDArray[np.int8] = field(default_factory=lambda: np.zeros(0, np.int8))
    sides: bool = True
    start: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    item: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    level: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    partial: str | None = None
    covariate_names: tuple[str, ...] = ()
    covariates: NDArray[np.float64] | None = None
    cell: NDArray[np.int32] | None = None
    source: str = "memory"
    rows_are_lines: bool = False
    n_skipped: int = 0
    notices: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        check_choice(self.kind, "kind", ("duels", "choices", "rankings"))
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            if isinstance(value, np.ndarray):
                object.__setattr__(self, name, fixed(value))

    # -- what it holds -------------------------------------------------------------------------

    @property
    def n_items(self) -> int:
        """Number of items, k, those without data included."""
        return len(self.items)

    @property
    def n_comparisons(self) -> float:
        """Number of comparisons: total weight, "both bad" kept apart not counted."""
        return float(self.count[self.used].sum())

    @property
    def n_ties(self) -> float:
        """Number of ties: tied duels, or rankings in which items share a place."""
        if self.kind == "duels":
            return float(self.count[self.outcome == 2].sum())
        return float(self.count[self._has_tie()].sum())

    @takes(u=COUNT)
    def where(self, u: int) -> str:
        """Name the first row of a unique cell: ``row 19 of log.csv``, or its 0-based position."""
        u = int(check_in_range(u, "u", 0, len(self.row) - 1))
        if self.rows_are_lines:
            return f"row {int(self.row[u])} of {self.source}"
        return f"comparison {int(self.row[u])} of {self.source} (0-based)"

    @property
    def used(self) -> NDArray[np.bool_]:
        """Cells that are comparisons: all but "both bad" kept apart, ``(U,)``."""
        return self.outcome != 3 if self.kind == "duels" else np.ones(len(self.count), bool)

    def _position_cell(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(len(self.count)), np.diff(self.start))

    def _same_level(self) -> NDArray[np.bool_]:
        """Positions whose next position shares their place."""
        cell = self._position_cell()
        same = np.zeros(len(self.item), bool)
        same[:-1] = (
            (self.level[1:] == self.level[:-1]) & (cell[1:] == cell[:-1]) & (self.level[:-1] >= 0)
        )
        return same

    def _has_tie(self) -> NDArray[np.bool_]:
        has = np.zeros(len(self.count), bool)
        has[self._position_cell()[self._same_level()]] = True
        return has

    def item_counts(self) -> NDArray[np.float64]:
        """Return the number of comparisons that each item took part in, ``(k,)``."""
        if self.kind != "duels":
            weight = np.repeat(self.count, np.diff(self.start))
            return np.bincount(self.item, weight, self.n_items).astype(np.float64)
        used = self.used
        both = np.concatenate([self.left[used], self.right[used]])
        return np.bincount(both, np.tile(self.count[used], 2), self.n_items).astype(np.float64)

    @takes(by_first=FLAG, squared=FLAG)
    def duel_counts(
        self, *, ties: str = "keep", by_first: bool = True, squared: bool = False
    ) -> DuelCounts:
        """Return outcomes per unordered pair.

        Parameters
        ----------
        ties : {"keep", "half", "drop", "refuse"}
            Keep them apart, count each as half a win for both sides, leave them out, or raise if
            there are any.
        by_first : bool
            Tell apart who was shown first.
        squared : bool
            Return sums of squared weights instead (see `square`), ties apart in any case; the
            cells are the same.

        Raises
        ------
        OptionError
            If these are no duels, or there are ties to be refused.
        """
        check_choice(ties, "ties", ("keep", "half", "drop", "refuse"))
        if self.kind != "duels":
            raise OptionError(
                f"these are {self.kind}, not duels. Use a model for rankings, "
                "model='plackett_luce', or break them into pairs with to_duels()."
            )
        if ties == "refuse" and self.n_ties:
            raise OptionError(
                f"{self.n_ties:.12g} of {self.n_comparisons:.12g} duels are ties, for which this "
                'model has no term. Use model="davidson", or say ties="half" (half a win each) or '
                'ties="drop".'
            )
        used = self.used
        if ties == "drop":
            used = used & (self.outcome != 2)
        swap = self.left > self.right
        low = np.where(swap, self.right, self.left)[used].astype(np.int64)
        high = np.where(swap, self.left, self.right)[used]
        first = (np.where(swap, -self.first, self.first) if by_first else 0 * self.first)[used]
        outcome = np.where(swap & (self.outcome < 2), 1 - self.outcome, self.outcome)[used]
        key, cell = np.unique((low * self.n_items + high) * 3 + first + 1, return_inverse=True)
        table = np.zeros((3, len(key)))
        square = self.count if self.square is None else self.square
        np.add.at(table, (outcome, cell), (square if squared else self.count)[used])
        if ties == "half" and not squared:
            table[:2] += table[2] / 2
            table[2] = 0
        pair = key // 3
        return DuelCounts(
            (pair // self.n_items).astype(np.int32),
            (pair % self.n_items).astype(np.int32),
            (key % 3 - 1).astype(np.int8),
            *table,
        )

    def chains(self, *, ties: str = "refuse") -> Chains:
        """Return the choice sets of the Plackett-Luce likelihood.

        Duels become sets of two; `ties` as in `duel_counts`. Ties in rankings are averaged over
        their orders.
        """
        if self.kind == "duels":
            if isinstance(ties, str) and ties == "keep":
                raise OptionError("Plackett-Luce has no term for tied duels; see duel_counts.")
            pairs = self.duel_counts(ties=ties, by_first=False)
            a, b = pairs.left, pairs.right
            count = np.concatenate([pairs.wins_left, pairs.wins_right])
            return chains_of_pairs(
                np.concatenate([a, b]), np.concatenate([b, a]), count, self.n_items
            )
        self._require_small_ties()
        return chains_of_rankings(self.item, self.level, self.start, self.count, self.n_items)

    def _require_small_ties(self) -> None:
        """Refuse a place that more items share than the average over their orders can take."""
        same = self._same_level()
        begins = np.flatnonzero(same & ~np.concatenate([[False], same[:-1]]))
        if not begins.size:
            return
        # a run of marks is followed by its last member, which is not marked
        ends = np.flatnonzero(~same)
        size = ends[np.searchsorted(ends, begins)] - begins + 1
        large = np.flatnonzero(size > LARGEST_TIE)
        if not large.size:
            return
        at, n = int(begins[large[0]]), int(size[large[0]])
        u = int(self._position_cell()[at])
        last = at + n == self.start[u + 1]
        rest = ', or say last_tie="rest" if they share the last place for not being ranked'
        raise DataError(
            f"{self.where(u)}: {n} items share one place; the average over their orders is offered "
            f"up to {LARGEST_TIE}. Rank them further, or leave this ranking out"
            f"{rest if last else ''}.",
            kind="large_tie",
            row=int(self.row[u]) if self.rows_are_lines else None,
            value=n,
            source=self.source,
        )

    def choice_sets(
        self, *, ties: str = "refuse"
    ) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
        """Return `chains` as padded rows, for models written with whole arrays.

        Returns
        -------
        index, weight : (S, L) arrays
            Items of each chain, best first, padded with k; how often the set from a position to the
            end was chosen from (0 = never).
        wins : (k,) array
            How often each item was chosen.
        """
        chains = self.chains(ties=ties)
        return *chains.padded(), chains.wins

    def standard_covariates(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return covariates centred and divided by their standard deviations, and these.

        ``(k, C)`` and ``(C,)``. A covariate that is the same for all items stays centred, at 0.
        """
        if self.covariates is None:
            return np.zeros((self.n_items, 0)), np.zeros(0)
        spread = self.covariates.std(axis=0)
        spread = np.where(spread > 0, spread, 1.0)
        return (self.covariates - self.covariates.mean(axis=0)) / spread, spread

    def _won_and_lost(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return winner and loser of the cells of duels that were decided."""
        left_first = self.outcome == 0
        a = np.where(left_first, self.left, self.right)
        b = np.where(left_first, self.right, self.left)
        return a[self.outcome < 2], b[self.outcome < 2]

    def win_matrix(self) -> NDArray[np.float64]:
        """Return how often item i came before item j, ``(k, k)``; ties apart."""
        if self.kind == "duels":
            table = np.zeros((self.n_items, self.n_items))
            np.add.at(table, self._won_and_lost(), self.count[self.outcome < 2])
            return table
        return ranking_matrices(self.item, self.level, self.start, self.count, self.n_items)[0]

    def tie_matrix(self) -> NDArray[np.float64]:
        """Return how often items i and j shared a place, ``(k, k)``, symmetric."""
        if self.kind == "duels":
            table = np.zeros((self.n_items, self.n_items))
            tied = self.outcome == 2
            np.add.at(table, (self.left[tied], self.right[tied]), self.count[tied])
            return table + table.T
        return ranking_matrices(self.item, self.level, self.start, self.count, self.n_items)[1]

    def orderings(self) -> list[tuple[tuple[str, ...], ...]]:
        """Return the distinct orderings, best first, each place a tuple of labels.

        The unordered rest of a choice or a top ranking is left out.

        Raises
        ------
        OptionError
            If these are duels, which `win_matrix` counts.
        """
        if self.kind == "duels":
            raise OptionError("these are duels, not rankings: see win_matrix() and tie_matrix().")
        result = []
        for u in range(len(self.count)):
            places: dict[int, list[str]] = {}
            for p in range(self.start[u], self.start[u + 1]):
                if self.level[p] >= 0:
                    places.setdefault(int(self.level[p]), []).append(self.items[self.item[p]])
            result.append(tuple(tuple(place) for place in places.values()))
        return result

    def text(self, u: int) -> str:
        """Return a unique comparison as ``a > b``, ``a = b``, or a ranking, best first.

        Of duels with an order it says who was first, as in ``a > b (b first)``. The unordered rest
        of a choice or a top ranking stands in braces.
        """
        names = self.items
        if self.kind == "duels":
            a, b = names[self.left[u]], names[self.right[u]]
            outcome = int(self.outcome[u])
            if outcome == 1:
                a, b = b, a
            first = {0: "", 1: f" ({names[self.left[u]]} first)",
                     -1: f" ({names[self.right[u]]} first)"}[int(self.first[u])]  # fmt: skip
            return f"{a} {'=' if outcome >= 2 else '>'} {b}{first}"
        places: dict[int, list[str]] = {}
        for p in range(self.start[u], self.start[u + 1]):
            places.setdefault(int(self.level[p]), []).append(names[self.item[p]])
        rest = places.pop(-1, [])
        parts = [" = ".join(place) for place in places.values()]
        return " > ".join([*parts, f"{{{', '.join(rest)}}}"] if rest else parts)

    def to_dataframe(self) -> pd.DataFrame:
        """Return one row per unique comparison: its text (``a > b``), and how often it stands."""
        import pandas as pd

        texts = [self.text(u) for u in range(len(self.count))]
        found = pd.DataFrame({"comparison": texts, "count": self.count})
        if self.kind == "duels":
            found["outcome"] = np.array(OUTCOMES)[self.outcome]
        return found

    def connectivity(self) -> Connectivity:
        """Return which items are linked, who never lost or won, and who has no data."""
        if self.kind == "duels":
            tied = self.outcome == 2
            won, lost = self._won_and_lost()
            return connectivity_of(self.items, won, lost, self.left[tied], self.right[tied])
        edges = ranking_edges(self.item, self.level, self.start)
        return connectivity_of(self.items, *edges)

    def __repr__(self) -> str:
        n = self.n_comparisons
        parts = [f"{n:.12g} {self.kind} of {self.n_items} items {listed(self.items, 5)}"]
        parts += [f"{self.n_ties:.12g} ties"] if self.n_ties else []
        parts += [f"partial={self.partial!r}"] if self.partial else []
        parts.append(f"{len(self.count)} unique")
        parts += [f"{len(self.notices)} notices"] if self.notices else []
        return f"Comparisons({self.source}: {', '.join(parts)})"
