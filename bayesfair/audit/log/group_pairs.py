"""What is kept of the pairs of arms between and within groups of arms."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.audit.criterion import Criterion
from bayesfair.audit.log.cells import FullCell
from bayesfair.errors import OptionError

__all__ = ["GroupPairs"]


@dataclass(frozen=True, eq=False)
class GroupPairs:
    """What is kept of the pairs between and within groups of arms, for G pairs of groups.

    Attributes
    ----------
    member : (k,) tuple of str
        Group of each arm.
    smallest_eps2 : (G,) array
        Largest excess at the asked eps1 under the beliefs, cut at 0.
    n_violating : (G, len(TOLERANCES)) array of int
        Violating rounds, for every tolerance of the ladder.
    """

    member: tuple[str, ...]
    smallest_eps2: NDArray[np.float64]
    n_violating: NDArray[np.int64]

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The pairs of groups, in the order of the other attributes."""
        return list(combinations_with_replacement(sorted(set(self.member)), 2))

    def between(self, one: str, other: str) -> NDArray[np.bool_]:
        """Return the pairs of arms (k, k) of two groups, or within one."""
        member = np.array(self.member)
        mask = np.outer(member == one, member == other)
        mask |= mask.T
        np.fill_diagonal(mask, False)
        return np.asarray(mask)

    def merged(self, later: GroupPairs) -> GroupPairs:
        """Return those of both parts.

        Raises
        ------
        OptionError
            If the arms are grouped in another way.
        """
        if self.member != later.member:
            raise OptionError(
                "the two audits group the arms in different ways; give both the same arm_groups."
            )
        return GroupPairs(
            self.member,
            np.maximum(self.smallest_eps2, later.smallest_eps2),
            self.n_violating + later.n_violating,
        )

    def table(self, criterion: Criterion, cells: Iterable[Any]) -> list[dict[str, Any]]:
        """Return one entry per pair of groups, for `Audit.to_dict`."""
        maxima = [cell.maxima for cell in cells if isinstance(cell, FullCell)]
        entries = []
        for g, (one, other) in enumerate(self.pairs):
            mask, smallest = self.between(one, other), float(self.smallest_eps2[g])
            largest = [float(m[mask].max(initial=0.0)) for m in maxima if mask.any()]
            entries.append(
                {
                    "group": one,
                    "group_other": other,
                    "n_pairs": int(mask.sum()) // 2,
                    "smallest_eps2": smallest,
                    "n_violating_rounds": criterion.count_at(self.n_violating[g]),
                    "verdict": criterion.believed(smallest),
                    "largest_difference": max(largest, default=None),
                }
            )
        return entries
