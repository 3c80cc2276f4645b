"""Which items are linked by comparisons, in plain words, before anything is fitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.arguments import constructed
from bayesfair.base.checks import listed
from bayesfair.base.html import Shown
from bayesfair.base.notices import Notice
from bayesfair.kernels.orders.graph import components

__all__ = ["Connectivity", "connectivity_of"]


@constructed
@dataclass(frozen=True)
class Connectivity(Shown):
    """Links between items.

    Attributes
    ----------
    weak_components, strong_components : tuple of tuples of str
        Items linked by any chain of comparisons; items linked by wins in both directions (a tie
        counts as both). Largest first; items without data are left out.
    never_lose, never_win, no_data : tuple of str
        Compared items without a loss, without a win (ties apart), and items never compared.
    tie_links : tuple of tuples of str
        What weak components that hang together by ties alone would fall into without them.
    island : (k,) array of int
        Weak component of each item, -1 = no data. Items on different islands are compared by the
        prior alone.
    """

    weak_components: tuple[tuple[str, ...], ...]
    strong_components: tuple[tuple[str, ...], ...]
    never_lose: tuple[str, ...]
    never_win: tuple[str, ...]
    no_data: tuple[str, ...]
    tie_links: tuple[tuple[str, ...], ...]
    island: NDArray[np.int32]

    @property
    def mle_exists(self) -> bool:
        """Whether Bradley-Terry and Plackett-Luce worths can be estimated without a prior."""
        return len(self.strong_components) == 1 and not self.no_data

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    def sentences(self) -> tuple[Notice, ...]:
        """Return the findings in plain words; one sentence if there is nothing to worry about."""
        found = []
        if self.no_data:
            were = "was" if len(self.no_data) == 1 else "were"
            text = f"No data: {listed(self.no_data)} {were} never compared."
            found.append(Notice(text, kind="no_data", n=len(self.no_data)))
        if len(self.weak_components) > 1:
            parts = "; ".join(listed(part, 4) for part in self.weak_components[:4])
            more = len(self.weak_components) - 4
            rest = f"; and {more} more" if more > 0 else ""
            found.append(Notice(
                f"{len(self.weak_components)} islands without a comparison between them: "
                f"{parts}{rest}. Between islands only the prior speaks.",
                kind="islands", n=len(self.weak_components),
            ))  # fmt: skip
        if self.tie_links:
            more = len(self.tie_links) - 4
            rest = f"; and {more} more" if more > 0 else ""
            found.append(Notice(
                f"Ties are the only link between {len(self.tie_links)} groups: "
                f"{'; '.join(listed(part, 4) for part in self.tie_links[:4])}{rest}.",
                kind="tie_links", n=len(self.tie_links),
            ))  # fmt: skip
        if self.never_lose:
            text = f"Never lost: {listed(self.never_lose)}."
            found.append(Notice(text, kind="never_lost", n=len(self.never_lose)))
        if self.never_win:
            text = f"Never won: {listed(self.never_win)}."
            found.append(Notice(text, kind="never_won", n=len(self.never_win)))
        one_way = self._linked_one_way()
        if one_way:
            within = "" if len(self.weak_components) == 1 else " within islands"
            found.append(Notice(
                f"Wins and losses link {one_way} groups of items{within} one way only, so the "
                "worths between them have no maximum-likelihood estimate.",
                kind="one_way_links", n=one_way,
            ))  # fmt: skip
        linked = Notice(
            "Every item is linked to every other by wins in both directions (a tie counts as "
            "both): all worths can be estimated.",
            kind="linked",
        )
        return tuple(found) or (linked,)

    def _linked_one_way(self) -> int:
        """Return how many groups are linked to another of their island, all of them one way."""
        island = {item: i for i, part in enumerate(self.weak_components) for item in part}
        groups = [island[part[0]] for part in self.strong_components]
        return sum(groups.count(i) for i in set(groups) if groups.count(i) > 1)


def _named(
    labels: NDArray[np.int32], items: Sequence[str], keep: NDArray[np.bool_]
) -> tuple[tuple[str, ...], ...]:
    groups: dict[int, list[str]] = {}
    for item in np.flatnonzero(keep).tolist():
        groups.setdefault(int(labels[item]), []).append(items[item])
    return tuple(tuple(groups[label]) for label in sorted(groups))


def connectivity_of(
    items: Sequence[str],
    winner: NDArray[np.int32],
    loser: NDArray[np.int32],
    tied: NDArray[np.int32],
    tied_other: NDArray[np.int32],
) -> Connectivity:
    """Return the connectivity of labelled edges; see `bayesfair.kernels.orders.graph.components`.

    Examples
    --------
    >>> e = np.array([], dtype=np.int32)
    >>> found = connectivity_of("abc", np.array([0, 1]), np.array([1, 0]), e, e)
    >>> found.sentences()[0]
    "No data: 'c' was never compared."
    """
    parts = components(len(items), winner, loser, tied, tied_other)
    seen = ~parts.no_data
    weak = _named(parts.weak, items, seen)
    without = _named(parts.weak_without_ties, items, seen)
    whole = set(weak)

    def where(flags: NDArray[np.bool_]) -> tuple[str, ...]:
        return tuple(items[i] for i in np.flatnonzero(flags).tolist())

    return Connectivity(
        weak_components=weak,
        strong_components=_named(parts.strong, items, seen),
        never_lose=where(parts.never_lose),
        never_win=where(parts.never_win),
        no_data=where(parts.no_data),
        tie_links=tuple(part for part in without if part not in whole),
        island=np.where(seen, parts.weak, np.int32(-1)),
    )
