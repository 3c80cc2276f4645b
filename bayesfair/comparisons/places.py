"""What a column of ranks means: where counting begins, who is not ranked, what a last tie says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.checks import counted, first_where
from bayesfair.base.notices import Notice
from bayesfair.comparisons.sources import Origin
from bayesfair.errors import DataError, OptionError

_FEW_LEVELS = 7  # more steps than this hardly any scale of ratings has

__all__ = ["RankRules", "last_place_notices", "ranks_as_places"]


class RankRules(NamedTuple):
    """What ranks and their lack mean; see `Comparisons.from_rankings`."""

    partial: str | None = None
    last_tie: str | None = None
    lowest_is_best: bool = True
    tie_tolerance: float = 0.0
    unranked: float | None = None


def ranks_as_places(
    rank: NDArray[np.float64],
    ranking: NDArray[Any],
    where: Callable[[int], str],
    row: Callable[[int], int | None],
    *,
    rules: RankRules,
    source: Origin,
) -> tuple[NDArray[np.bool_], NDArray[np.float64], list[Notice]]:
    """Return which entries are ranked, a number for each of these (low = best), and notices.

    Parameters
    ----------
    rank : (N,) array
        As they stand in the source, none of them NaN.
    ranking : (N,) array of int
        Which ranking each entry belongs to.
    where, row : functions of int
        Names an entry (row and item); its line in the source, None if it has none.
    rules : RankRules
    source : Origin

    Raises
    ------
    DataError
        For a rank that is infinite or negative, and where some rankings count from 0, others not:
        0 is never taken for "not ranked" unasked.
    OptionError
        For choices written as ranks.
    """
    lowest_is_best, unranked, last_tie = rules.lowest_is_best, rules.unranked, rules.last_tie
    if unranked is not None and not isinstance(unranked, (int, float, np.number)):
        raise OptionError(
            f"unranked={unranked!r} must be the number that stands for items that are not ranked, "
            "such as 0.",
            kind="option_value",
            column="unranked",
            value=unranked,
        )
    kept = np.ones(len(rank), bool) if unranked is None else rank != unranked
    value, group = rank[kept], ranking[kept]
    entry = np.flatnonzero(kept)

    def refuse(bad: NDArray[np.bool_], remedy: str) -> None:
        if wrong := first_where(bad):
            i = int(entry[wrong.at])
            more = f" ({wrong.n} such ranks)" if wrong.n > 1 else ""
            raise DataError(
                f"{where(i)} is {rank[i]:g}{more}. {remedy}",
                kind="rank",
                column="rank",
                value=float(rank[i]),
                source=source.name,
                row=row(i),
            )

    refuse(
        np.isinf(value),
        "If it stands for items that are not ranked, say unranked="
        f"{'inf' if (value[np.isinf(value)] > 0).all() else '-inf'}; else give a finite rank.",
    )
    if not lowest_is_best:
        _refuse_choices(value, group, last_tie)
        return kept, -value, []

    def check_first_places(
        value: NDArray[np.float64], group: NDArray[Any], entry: NDArray[Any]
    ) -> None:
        """Refuse numbers of which no ranking has a first place: ratings, or other quantities."""
        if not len(value):
            return
        best = np.full(int(group.max()) + 1, np.inf)
        np.minimum.at(best, group, value)
        at_best = value == best[group]
        tied = np.bincount(group[at_best], minlength=len(best))
        # several that share the first place may all have its mean, or the last of the places
        some, ways = tied > 0, (best == (tied + 1) / 2, best == tied)
        if (best == 1).any() or any(way[some].all() for way in ways):
            return
        i = int(entry[np.flatnonzero(at_best & (group == group[0]))[0]])
        raise DataError(
            f"{where(i)} is {rank[i]:g}, the lowest of this ranking, and no ranking has a 1. Ranks "
            "count from 1 = best. If more is better (ratings, points), say lowest_is_best=False; "
            "of a quantity of which less is better (times), give its negative with that.",
            kind="no_first_place",
            column="rank",
            value=float(rank[i]),
            source=source.name,
            row=row(i),
        )

    low = float(value.min(initial=0.0))
    refuse(
        value < 0,
        f"Ranks count from 1 or 0 = best. If {low:g} stands for items that are not ranked, say "
        f"unranked={low:g}; for a quantity of which more is better say lowest_is_best=False.",
    )
    _refuse_choices(value, group, last_tie)
    if low > 0 or not (value == 0).any():
        check_first_places(value, group, entry)
        return kept, value, _few_levels(value, group)
    best = np.full(int(ranking.max(initial=0)) + 1, np.inf)
    np.minimum.at(best, group, value)
    if differs := first_where((best[group] > 0) & (value == best[group])):
        zero, other = int(entry[np.argmax(value == 0)]), int(entry[differs.at])
        raise DataError(
            f"{where(zero)} is 0, but in another ranking the best is {rank[other]:g} "
            f"({where(other)}). If 0 stands for items that are not ranked, say unranked=0; if "
            "it is the best place, let every ranking count from 0.",
            kind="rank",
            column="rank",
            value=0.0,
            source=source.name,
            row=row(zero),
        )
    note = Notice(
        "Ranks count from 0: 0 is read as the best place. If it stands for items that are not "
        "ranked, say unranked=0.",
        kind="ranks_from_zero",
        n=int((value == 0).sum()),
    )
    return kept, value, [note]


def _few_levels(value: NDArray[np.float64], group: NDArray[Any]) -> list[Notice]:
    """Say that every ranking has ties on one scale of few numbers: these may be ratings."""
    levels = np.unique(value)
    found = np.unique(group)
    pairs = np.unique(np.stack([group, value]), axis=1)
    size, different = np.bincount(group)[found], np.bincount(pairs[0].astype(int))[found]
    if len(found) < 2 or len(levels) > _FEW_LEVELS or (levels % 1).any():
        return []
    if (different == size).any() or len(levels) < 2:
        return []
    return [
        Notice(
            f"All of {len(found)} rankings have ties, on a scale of {len(levels)} numbers from "
            f"{levels[0]:g} to {levels[-1]:g}, and 1 is read as best. If they are ratings of which "
            "more is better, say lowest_is_best=False.",
            kind="ratings_as_ranks",
            n=len(found),
        )
    ]


def _refuse_choices(value: NDArray[np.float64], group: NDArray[Any], last_tie: str | None) -> None:
    """Refuse 0 and 1 for "chosen" as ranks: nothing says that the others are equal."""
    if last_tie is not None or not len(value) or not np.isin(value, (0.0, 1.0)).all():
        return
    ones = np.bincount(group, value)
    size = np.bincount(group)
    if (ones[size > 0] == 1).all() and (size > 2).any():
        raise OptionError(
            "these ranks are 0 and 1, with one 1 in every ranking, which looks like choices: 1 = "
            "chosen, 0 = offered and not chosen. For these say lowest_is_best=False and "
            'last_tie="rest": the others are not equal, only not chosen. If they are ranks, say '
            'last_tie="tie".',
            kind="choices_as_ranks",
            column="last_tie",
        )


def last_place_notices(n_last: tuple[int, int], n: int, last_tie: str | None) -> list[Notice]:
    """Return what to say of last places that items share.

    Parameters
    ----------
    n_last : pair of int
        In how many rankings items share the last place, in how many that is the unordered rest.
    n : int
        How many rankings there are.
    last_tie : {"tie", "rest"}, optional
        What was asked for.
    """
    tied, rest = n_last
    if rest:
        return [
            Notice(
                f"In {counted(rest, 'ranking')} the items that share the last place are read as "
                "not ranked: they rank below, in no order.",
                kind="last_tie_rest",
                n=rest,
            )
        ]
    if last_tie is None and 2 * tied > n:
        return [
            Notice(
                f"In {counted(tied, 'ranking')} items share the last place, which counts as "
                "evidence that they are equal. If it stands for items that were not ranked, say "
                'last_tie="rest".',
                kind="last_tie",
                n=tied,
            )
        ]
    return []
