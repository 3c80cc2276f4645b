"""Posterior predictive laws of the arms from weighted draws, round by round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.notices import Notice
from bayesfair.families import Family
from bayesfair.inference.refit import Draws
from bayesfair.rewards.base import Rewards
from bayesfair.typing import Floats

__all__ = ["PredictiveLaw"]


class PredictiveLaw:
    """Predictive laws of all rounds, filled piece by piece.

    Bernoulli and finite rewards are exact in form: the law is the weighted mean of the draws'. A
    mixture of Poisson or normal laws over draws is none itself: its mass on cells is kept, fine
    where the draws of the first and the last fit put theirs.
    """

    def __init__(
        self, family: Family, arms: tuple[str, ...], level: Floats, edge: Floats,
        n_rounds: int,
    ) -> None:  # fmt: skip
        self.family, self.arms, self.level, self.edge = family, arms, level, edge
        self._recent: dict[Any, Floats] = {}
        self.table = np.empty((n_rounds, len(arms), len(level)))

    @classmethod
    def of(cls, ends: Sequence[Draws], n_rounds: int, reward: Floats) -> PredictiveLaw:
        """Return an empty table whose levels suit the draws of the given fits."""
        family = ends[0].family
        cells = family.cells([draws.reads for draws in ends], ends[0].level, reward)
        return cls(family, ends[0].arms, *cells, n_rounds)

    @property
    def notices(self) -> tuple[str, ...]:
        """What to say of the form of the laws."""
        if not np.array_equal(self.level, self.edge):
            return (
                Notice(
                    f"predictive laws of {self.family.name} rewards are kept as probabilities of "
                    f"{len(self.level)} cells; divergences between arms are those of the cells.",
                    kind="cells",
                    n=len(self.level),
                ),
            )
        return ()

    def put(
        self, rounds: NDArray[np.int64], weight: Floats, fits: Sequence[Draws], time_bin: int
    ) -> None:
        """Store the law of some rounds: weighted over the pooled draws of `fits`."""
        start = 0
        law = np.zeros(self.table.shape[1:])
        for draws in fits:
            part = weight[start : start + draws.size]
            law += np.tensordot(part, self._mass(draws, time_bin), axes=(0, 0))
            start += draws.size
        self.table[rounds] = law

    def _mass(self, draws: Draws, time_bin: int) -> Floats:
        """Return the mass of each level under each draw, ``(N, k, L)``."""
        # rounds come in order: only the two fits around the current one are needed
        key = (id(draws), time_bin)
        if key not in self._recent:
            if len(self._recent) >= 2:
                del self._recent[next(iter(self._recent))]
            self._recent[key] = self.family.mass(draws.at_bin(time_bin), self.edge)
        return self._recent[key]

    def rewards(self) -> Rewards:
        """Return the laws, batch ``(T,)``."""
        return self.family.of_mass(self.table, self.level, self.arms)
