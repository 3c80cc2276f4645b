"""Beliefs given features of a round: what every arm pays at them, learned from all rounds."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
from scipy import special

from bayesfair.history import History
from bayesfair.history.context import Context
from bayesfair.history.design import Design
from bayesfair.kernels.log.coefficients import Coefficients, run_coefficients
from bayesfair.rewards import Bernoulli, Rewards, StudentT
from bayesfair.typing import Floats, Ints

__all__ = ["FAMILY_OF", "PRIOR_SD", "Featured"]

FAMILY_OF = {"linear": "normal", "probit": "bernoulli", "logit": "bernoulli"}
"""Which rewards each is of."""

PRIOR_SD = {"probit": 1.0, "logit": 1.5}
"""Of every coefficient."""


class Featured(NamedTuple):
    """What the rounds have in common: features, and beliefs on the coefficients of every arm.

    Attributes
    ----------
    model : str
        Of `FAMILY_OF`.
    design : Design
    beliefs : Coefficients
    """

    model: str
    design: Design
    beliefs: Coefficients

    @classmethod
    def start(cls, model: str, context: Context, prior: Floats, *, from_data: bool) -> Self:
        """Return the beliefs before the first round; ``prior`` is that of normal rewards."""
        design = Design.start(context)
        if model in PRIOR_SD:
            prior = np.tile([0.0, PRIOR_SD[model] ** -2, 1.0, 1.0], (len(prior), 1))
        d = len(design.names)
        linear = model == "linear"
        beliefs = Coefficients.start(prior, d, linear=linear, from_data=linear and from_data)
        return cls(model, design, beliefs)

    def afresh(self) -> Self:
        """Return the beliefs before the first round of another log."""
        design = self.design._replace(levels=())
        old, d = self.beliefs, len(design.names)
        linear = self.model == "linear"
        new = Coefficients.start(old.prior, d, linear=linear, from_data=old.from_data)
        return self._replace(design=design, beliefs=new)

    def over(self, part: History, *, laws: bool = True) -> tuple[Rewards | None, Self]:
        """Return the laws believed before each round of a part, and what is believed after it."""
        assert part.context is not None
        design = self.design.widened(part.context)
        before = self.beliefs.widened(len(design.names))
        rows = design.rows(part.context)
        found, after = run_coefficients(
            self.model, before, rows, part.arm, part.reward, part.known_at, laws=laws
        )
        rewards: Rewards | None = None
        if laws and self.model == "linear":
            rewards = StudentT(*np.moveaxis(found, -1, 0), arms=part.arms)
        elif laws:
            rewards = Bernoulli(found[:, :, 0], arms=part.arms)
        return rewards, self._replace(design=design, beliefs=after)

    def settled(self) -> Coefficients:
        """Return the beliefs once every reward is known."""
        nothing = np.empty((0, self.beliefs.mean.shape[1])), np.empty(0, np.int32), np.empty(0)
        return run_coefficients(self.model, self.beliefs, *nothing, None, everything=True)[1]

    def draws(self, n: int, order: Ints, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Return draws of the coefficients, (n, k, d), and of the noise, (n, k), arm after arm."""
        found = self.settled()
        k, d = found.mean.shape
        theta, sd = np.empty((n, k, d)), np.ones((n, k))
        for i in order:
            root = np.linalg.cholesky(found.spread[i])
            if self.model == "linear":
                sd[:, i] = np.sqrt(found.scale[i] / rng.gamma(found.shape[i], size=n))
            away = rng.standard_normal((n, d)) @ root.T
            theta[:, i] = found.mean[i] + sd[:, i, None] * away
        return theta, sd

    def chance(self, value: Floats) -> Floats:
        """Return the probability of a reward of 1."""
        found = special.ndtr(value) if self.model == "probit" else special.expit(value)
        return np.asarray(found)

    @property
    def words(self) -> str:
        """The prior in words, but for that of an intercept of measurements."""
        numbers = [c for c, known in zip(self.design.columns, self.design.numeric, strict=True)
                   if known]  # fmt: skip
        of = "an intercept"
        if numbers:
            of += f", {', '.join(numbers)} (centred and scaled by the first rounds)"
        if not self.design.numeric.all():
            others = [c for c in self.design.columns if c not in numbers]
            of += f", an indicator of each value of {', '.join(others)}"
        return of
