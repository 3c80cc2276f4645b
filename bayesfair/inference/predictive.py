"""Posterior predictive laws of the arms from weighted draws, round by round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from bayesfair import rewards
from bayesfair.base.notices import Notice
from bayesfair.inference.refit import Draws
from bayesfair.rewards.base import Rewards

__all__ = ["PredictiveLaw"]

FloatArray = NDArray[np.float64]

_MAX_COUNT = 400  # counts up to here have a level of their own
_N_CELLS = 128  # equally likely cells of a continuous reward


class PredictiveLaw:
    """Predictive laws of all rounds, filled piece by piece.

    Bernoulli and finite rewards are exact in form: the law is the weighted mean of the draws'. A
    mixture of Poisson or normal laws over draws is none itself: its mass on cells is kept, fine
    where the draws of the first and the last fit put theirs.
    """

    def __init__(
        self, family: str, arms: tuple[str, ...], level: FloatArray, edge: FloatArray,
        n_rounds: int,
    ) -> None:  # fmt: skip
        self.family, self.arms, self.level, self.edge = family, arms, level, edge
        self._recent: dict[Any, FloatArray] = {}
        self.table = np.empty((n_rounds, len(arms), len(level)))

    @classmethod
    def of(cls, ends: Sequence[Draws], n_rounds: int, reward: FloatArray) -> PredictiveLaw:
        """Return an empty table whose levels suit the draws of the given fits."""
        family, arms = ends[0].family, ends[0].arms
        if family == "bernoulli":
            level = np.array([1.0])
            return cls(family, arms, level, level, n_rounds)
        if family == "finite":
            assert ends[0].level is not None
            return cls(family, arms, ends[0].level, ends[0].level, n_rounds)
        if family == "poisson":
            rate = max(float(np.quantile(draws.reads["rate"], 0.999)) for draws in ends)
            top = int(max(rate + 8 * np.sqrt(rate) + 10, np.nanmax(reward, initial=0)))
            step = -(-(top + 1) // _MAX_COUNT)
            edge = np.arange(0, top + step, step, dtype=float)  # first count of each cell
            return cls(family, arms, edge + (step - 1) / 2, edge, n_rounds)
        share = (np.arange(_N_CELLS) + 0.5) / _N_CELLS
        points = []
        for draws in ends:
            sd = draws.reads["sd"].ravel()
            mean = draws.reads["mean"].ravel()
            # a quantile of the predictive per draw, shuffled over draws by a fixed stride
            uniform = (np.arange(len(sd)) * 0.6180339887498949 + 0.5 / len(sd)) % 1
            points.append(np.quantile(mean + sd * special.ndtri(uniform), share))
        level = np.unique(np.concatenate(points))
        return cls(family, arms, level, (level[1:] + level[:-1]) / 2, n_rounds)

    @property
    def notices(self) -> tuple[str, ...]:
        """What to say of the form of the laws."""
        if self.family == "normal" or (self.family == "poisson" and self.level[0] > 0):
            return (
                Notice(
                    f"predictive laws of {self.family} rewards are kept as probabilities of "
                    f"{len(self.level)} cells; divergences between arms are those of the cells.",
                    kind="cells",
                    n=len(self.level),
                ),
            )
        return ()

    def put(
        self, rounds: NDArray[np.int64], weight: FloatArray, fits: Sequence[Draws], time_bin: int
    ) -> None:
        """Store the law of some rounds: weighted over the pooled draws of `fits`."""
        start = 0
        law = np.zeros(self.table.shape[1:])
        for draws in fits:
            part = weight[start : start + draws.size]
            law += np.tensordot(part, self._mass(draws, time_bin), axes=(0, 0))
            start += draws.size
        self.table[rounds] = law

    def _mass(self, draws: Draws, time_bin: int) -> FloatArray:
        """Return the mass of each level under each draw, ``(N, k, L)``."""
        # rounds come in order: only the two fits around the current one are needed
        key = (id(draws), time_bin)
        if key not in self._recent:
            if len(self._recent) >= 2:
                del self._recent[next(iter(self._recent))]
            self._recent[key] = self._compute(draws.at_bin(time_bin))
        return self._recent[key]

    def _compute(self, reads: dict[str, FloatArray]) -> FloatArray:
        if self.family == "bernoulli":
            return reads["theta"][..., None]
        if self.family == "finite":
            return reads["probability"]
        if self.family == "poisson":
            # P(count < edge) = Q(edge, rate); the last cell holds the tail
            rate = reads["rate"][..., None]
            below = np.where(self.edge > 0, special.gammaincc(np.maximum(self.edge, 1), rate), 0.0)
            return np.diff(below, axis=-1, append=1.0)
        z = (self.edge - reads["mean"][..., None]) / reads["sd"][..., None]
        return np.diff(special.ndtr(z), axis=-1, prepend=0.0, append=1.0)

    def rewards(self) -> Rewards:
        """Return the laws, batch ``(T,)``."""
        if self.family == "bernoulli":
            return rewards.Bernoulli(np.clip(self.table[..., 0], 0.0, 1.0), arms=self.arms)
        mass = np.maximum(self.table, 0.0)
        mass /= mass.sum(axis=-1, keepdims=True)
        return rewards.Finite(self.level, mass, arms=self.arms)
