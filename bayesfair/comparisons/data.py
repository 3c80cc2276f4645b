"""`Comparisons`, and the ways to make one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bayesfair.base.arguments import constructed, takes
from bayesfair.base.checks import as_numbers, as_sequence
from bayesfair.base.labels import labels_of
from bayesfair.base.options import COMPARISON_OPTIONS, KINDS, given, refuse_without_effect
from bayesfair.comparisons.cells import DuelCounts
from bayesfair.comparisons.copies import ComparisonCopies
from bayesfair.comparisons.duels import collapse_counts, collapse_duels, drop_self
from bayesfair.comparisons.outcomes import OUTCOMES, Words
from bayesfair.comparisons.places import RankRules
from bayesfair.comparisons.rankings import (
    collapse_choices,
    collapse_orderings,
    collapse_ranked_rows,
    collapse_ranks,
)
from bayesfair.comparisons.sources import Origin, checked_weight, origin_of
from bayesfair.errors import DataError, OptionError
from bayesfair.typing import Column

__all__ = ["OUTCOMES", "Comparisons", "DuelCounts"]


def _refuse(function: Callable[..., Any], options: Mapping[str, Any], *kinds: str) -> None:
    """Refuse options that have no effect on comparisons of these kinds."""
    what = next(KINDS[kind] for kind in kinds if kind in KINDS)
    refuse_without_effect(given(function, options), kinds, COMPARISON_OPTIONS, what)


@constructed
@dataclass(frozen=True, eq=False, repr=False)
class Comparisons(ComparisonCopies):
    """Validated comparisons of items, as unique cells with their counts.

    Make one with `from_duels`, `from_counts`, `from_win_matrix`, `from_choices`, `from_rankings`,
    `from_ranked_rows`, or from a file with `read_comparisons`.

    Attributes
    ----------
    items : tuple of str
        Labels; declared items without data are among them.
    kind : {"duels", "choices", "rankings"}
    count : (U,) array
        Total weight of each unique cell (its multiplicity where no weights were given).
    square : (U,) array or None
        Sum of the squared weights of each cell. None where weights are whole numbers: these count
        comparisons, others weigh them.
    row : (U,) array of int
        First row of the source that fell into the cell.
    left, right, outcome, first : (U,) arrays of int
        Duels: items, outcome (position in ``("left", "right", "tie", "both_bad")``), and who was
        shown first (1 left, -1 right, 0 neither or unknown).
    sides : bool
        False: `left` and `right` are winner and loser, and nobody knows who stood where.
    start, item, level : arrays of int
        Rankings and choices: cell u holds the positions start[u] .. start[u + 1] - 1 of `item` and
        `level`, best first; equal levels tie, level -1 is the unordered rest below.
    partial : {"subset", "top"} or None
        How rankings of some items were read; None = all items were ranked.
    covariate_names, covariates : tuple of str, (k, C) array
        Item covariates, see `with_covariates`.
    cell : (N,) array of int or None
        Cell of each row of the source in its order, -1 = left out (``keep_rows=True``).
    source, rows_are_lines, n_skipped, notices
        What reports call the data, whether `row` counts lines of a file, rows left out on request,
        what a reader has to know.

    Examples
    --------
    >>> duels = Comparisons.from_duels(["a", "b", "a"], ["b", "c", "c"], ["left", "tie", "left"])
    >>> duels
    Comparisons(memory: 3 duels of 3 items 'a', 'b', 'c', 1 ties, 3 unique)
    """

    # -- constructors --------------------------------------------------------------------------

    @classmethod
    @takes()
    def from_duels(
        cls,
        left: Column,
        right: Column,
        winner: Column | None = None,
        *,
        outcomes: Mapping[object, str] | None = None,
        winner_is: str | None = None,
        first: Column | None = None,
        weight: ArrayLike | None = None,
        ranking: Column | None = None,
        items: Sequence[object] | None = None,
        both_bad: str = "tie",
        unknown: str = "error",
        missing: str = "error",
        source: str | Origin = "memory",
        keep_rows: bool = False,
    ) -> Comparisons:
        """Return comparisons from one row per duel.

        Parameters
        ----------
        left, right : (N,) columns of labels
            The two items.
        winner : (N,) column, optional
            A side (``left``, ``right``, ``model_a``, ``model_b``), ``tie``, ``tie (bothbad)``, or
            the winning item's name. Default: `left` and `right` are winners and losers, which do
            not say who stood where.
        outcomes : mapping of word to {"left", "right", "tie", "both_bad"}, optional
            Replaces these words.
        winner_is : {"side", "item"}, optional
            Needed only if an item is called like a side.
        first : "left", "right" or column, optional
            Who was shown first or played at home: a side or an item's name, empty = neither.
            Without `winner` there are no sides, and items alone will do.
        weight : (N,) array, optional
            Weights >= 0; 0 leaves a row out. Whole numbers count duels. Others weigh them (decay
            with age, importance), which makes no likelihood: a fit gives robust errors and a
            tempered posterior.
        ranking : (N,) column, optional
            Which ranking a duel was cut from. A warning says how many duels are pairs of one
            ranking: they are not independent.
        items : sequence, optional
            All items, also those without data; else the union of the labels seen, sorted.
        both_bad : {"tie", "separate", "drop"}
            What becomes of "both bad" judgements.
        unknown, missing : {"error", "skip"}, {"error", "drop"}
            What happens to rows with unknown outcome words or missing values.
        source : str or Origin
            What messages and reports call the data; with its lines and columns.
        keep_rows : bool
            Keep the order of rows (`cell`), which audits of who is compared with whom need.

        Raises
        ------
        DataError, ArmError, OptionError
            Naming row, value and remedy; unknown words with their counts.

        Examples
        --------
        >>> Comparisons.from_duels(["m1", "base"], ["base", "m1"], ["left", "right"]).win_matrix()
        array([[0., 0.],
               [2., 0.]])
        """
        if winner is None:
            words = {"outcomes": outcomes, "winner_is": winner_is, "both_bad": both_bad,
                     "unknown": unknown}  # fmt: skip
            _refuse(cls.from_duels, words, "winner_loser")
        fields = collapse_duels(
            left,
            right,
            winner,
            words=Words(outcomes, winner_is, both_bad, unknown),
            first=first,
            weight=weight,
            items=items,
            missing=missing,
            source=origin_of(source),
            keep_rows=keep_rows,
            ranking=ranking,
        )
        return cls(**fields)

    @classmethod
    @takes()
    def from_counts(
        cls,
        left: Column,
        right: Column,
        wins_left: ArrayLike,
        wins_right: ArrayLike,
        ties: ArrayLike | None = None,
        *,
        first: Column | None = None,
        weight: ArrayLike | None = None,
        items: Sequence[object] | None = None,
        missing: str = "error",
        source: str | Origin = "memory",
    ) -> Comparisons:
        """Return comparisons from rows of counts (fractions allowed); a pair may have many rows.

        `weight` multiplies the counts of a row; the other options are those of `from_duels`.

        Examples
        --------
        >>> Comparisons.from_counts(["a"], ["b"], [7], [3]).n_comparisons
        10.0
        """
        fields = collapse_counts(
            left,
            right,
            wins_left,
            wins_right,
            ties,
            first=first,
            weight=weight,
            missing=missing,
            items=items,
            source=origin_of(source),
        )
        return cls(**fields)

    @classmethod
    @takes()
    def from_win_matrix(
        cls,
        wins: ArrayLike,
        items: Sequence[object],
        *,
        ties: ArrayLike | None = None,
        source: str | Origin = "memory",
    ) -> Comparisons:
        """Return comparisons from a matrix: entry [i, j] counts how often item i beat item j.

        Parameters
        ----------
        wins : (k, k) array
            Row beats column. A diagonal is dropped with a warning.
        items : sequence
            Labels of rows and columns.
        ties : (k, k) array, optional
            Symmetric, or one triangle with the other zero; each tie counts once per pair.

        Examples
        --------
        >>> Comparisons.from_win_matrix([[0, 3], [1, 0]], ["a", "b"]).win_matrix()
        array([[0., 3.],
               [1., 0.]])
        """
        items = labels_of(as_sequence(items, "items"), "item")
        where, k = origin_of(source), len(items)
        tables = []
        for name, entries in (("wins", wins), ("ties", ties)):
            table = np.zeros((k, k)) if entries is None else as_numbers(entries, name)
            if table.shape != (k, k):
                raise DataError(f"{name} has shape {table.shape}, expected {(k, k)}, one per item.")
            checked = checked_weight(table.ravel(), k * k, where, name)
            tables.append(np.asarray(checked).reshape(k, k))
        won, tied = tables
        if np.array_equal(tied, tied.T):
            tied = np.triu(tied)
        elif np.any(np.minimum(tied, tied.T)):
            raise DataError("ties must be symmetric, or one triangle with the other zero.")
        diagonal = np.diag(won) + np.diag(tied)
        notes = drop_self(diagonal.sum(), items[int(diagonal.argmax())] if k else "")
        i, j = np.nonzero((won + tied) * (1 - np.eye(k)))
        names = np.array(items, dtype=object)
        fields = collapse_counts(
            names[i], names[j], won[i, j], np.zeros(len(i)), tied[i, j], items=items,
            first=None, weight=None, missing="error", source=where, asked=False,
        )  # fmt: skip
        return cls(**fields | {"notices": (*fields["notices"], *notes), "sides": False})

    @classmethod
    @takes()
    def from_choices(
        cls,
        chosen: Column,
        offered: Sequence[Sequence[object]],
        *,
        weight: ArrayLike | None = None,
        items: Sequence[object] | None = None,
        missing: str = "error",
        source: str | Origin = "memory",
    ) -> Comparisons:
        """Return comparisons from choices: one item taken out of the set that was offered.

        A choice without an item, or from an empty set, is `missing`; see `from_duels`. So is one
        from a set that lacks a label, unless two labels or more are filled up at the end.

        Examples
        --------
        >>> Comparisons.from_choices(["a", "b"], [["a", "b", "c"], ["b", "c"]])
        Comparisons(memory: 2 choices of 3 items 'a', 'b', 'c', 2 unique)
        """
        fields = collapse_choices(
            chosen,
            offered,
            items=items,
            weight=weight,
            missing=missing,
            source=origin_of(source),
        )
        return cls(**fields)

    @classmethod
    @takes()
    def from_rankings(
        cls,
        orderings: Sequence[Sequence[object]] | None = None,
        *,
        ranks: ArrayLike | None = None,
        items: Sequence[object] | None = None,
        partial: str | None = None,
        weight: ArrayLike | None = None,
        lowest_is_best: bool = True,
        tie_tolerance: float = 0.0,
        unranked: float | None = None,
        last_tie: str | None = None,
        missing: str = "error",
        source: str | Origin = "memory",
    ) -> Comparisons:
        """Return comparisons from rankings.

        Parameters
        ----------
        orderings : sequence of sequences of labels
            Best first; a list, tuple or set inside is a tie. None, NaN and "" at the end fill a
            row up; before a label they are `missing`.
        ranks : (N, k) array or data frame, optional
            Instead: rank of each item, 1 (or 0) = best, equal = tied, NaN = not ranked.
        items : sequence, optional
            All items; labels of the columns of `ranks`.
        partial : {"subset", "top"}
            Required if a ranking lacks items: were they not on offer, or do they rank below?
        weight : (N,) array, optional
        lowest_is_best : bool
            False: `ranks` holds a quantity of which more is better.
        tie_tolerance : float
            Neighbouring values of `ranks` that differ by no more are tied.
        unranked : float, optional
            The number in `ranks` that stands for "not ranked", such as 0 or ``inf``. No number
            does unless it is named here.
        last_tie : {"tie", "rest"}, optional
            What it means that several items share the last place of a ranking. ``"tie"`` (default):
            they were judged equal. ``"rest"``: they were not ranked, and are below in no order, as
            in choices (chosen = 1, else 0) and in ballots filled up to full length.
        missing : {"error", "drop"}
            What happens to rankings whose weight is missing, or that lack a label before their
            last one. (An item that is not named was not ranked, see `partial`.)

        Raises
        ------
        DataError
            Naming the row: a rank that is infinite or negative, or 0 where other rankings begin
            with 1.
        OptionError
            If `partial` is needed, or 0 and 1 look like choices and `last_tie` is not given.

        Examples
        --------
        >>> Comparisons.from_rankings([["a", "b", "c"], ["c", ["a", "b"]]]).orderings()
        [(('a',), ('b',), ('c',)), (('c',), ('a', 'b'))]
        >>> Comparisons.from_rankings(ranks=[[0, 1, 1, 2]], items=list("abcd")).orderings()
        [(('a',), ('b', 'c'), ('d',))]
        """
        if (orderings is None) == (ranks is None):
            raise OptionError("give either orderings or ranks=.")
        asked: dict[str, Any] = {"lowest_is_best": lowest_is_best, "tie_tolerance": tie_tolerance}
        asked |= {"missing": missing, "unranked": unranked}
        kinds = {
            "orderings" if ranks is None else "ranks",
            "none" if weight is None else "weighted",
        }
        _refuse(cls.from_rankings, asked, *kinds)
        rules = RankRules(partial, last_tie, lowest_is_best, tie_tolerance, unranked)
        places: Any = orderings if ranks is None else ranks
        collapse = collapse_orderings if ranks is None else collapse_ranks
        fields = collapse(
            places,
            items=items,
            rules=rules,
            weight=weight,
            missing=missing,
            source=origin_of(source),
        )
        return cls(**fields)

    @classmethod
    @takes()
    def from_ranked_rows(
        cls,
        ranking: Column,
        item: Column,
        rank: ArrayLike,
        *,
        items: Sequence[object] | None = None,
        partial: str | None = None,
        weight: ArrayLike | None = None,
        lowest_is_best: bool = True,
        tie_tolerance: float = 0.0,
        unranked: float | None = None,
        last_tie: str | None = None,
        missing: str = "error",
        source: str | Origin = "memory",
    ) -> Comparisons:
        """Return comparisons from one row per ranking and item; options as in `from_rankings`.

        Examples
        --------
        >>> Comparisons.from_ranked_rows([1, 1, 2, 2], list("abba"), [1, 2, 1, 2]).n_comparisons
        2.0
        """
        fields = collapse_ranked_rows(
            ranking,
            item,
            rank,
            items=items,
            rules=RankRules(partial, last_tie, lowest_is_best, tie_tolerance, unranked),
            weight=weight,
            missing=missing,
            source=origin_of(source),
        )
        return cls(**fields)
