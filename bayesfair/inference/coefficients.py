"""Exact posteriors of the coefficients of 0/1 arms given features, by weighted draws.

The posterior of an arm is known up to a constant: a normal law before its first reward times the
chance of every known reward, probit or logit, so it is log-concave and has one mode. Draws come
from a t law with five degrees of freedom, whose tails cover those of the posterior.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import special

from bayesfair.kernels.log.needed import log_chances
from bayesfair.typing import Floats

__all__ = ["FEWEST", "KHAT", "ArmPosterior"]

KHAT, FEWEST = 0.7, 400
"""Largest Pareto k-hat, and least effective draws, of weights that are relied on."""

_DF = 5.0
_STEPS = 100


class ArmPosterior(NamedTuple):
    """Known rewards of one arm, and the normal law of its coefficients before them.

    Attributes
    ----------
    model : str
        ``"probit"`` or ``"logit"``.
    rows, reward : (n, d) and (n,) arrays
    mean, spread : (d,) and (d, d) arrays
    """

    model: str
    rows: Floats
    reward: Floats
    mean: Floats
    spread: Floats

    def drawn(
        self, mean: Floats, spread: Floats, n: int, rng: np.random.Generator
    ) -> tuple[Floats, Floats]:
        """Return draws of a t law, (n, d), and the log of the posterior over its density."""
        d = len(mean)
        stretch = np.sqrt(_DF / rng.chisquare(_DF, n))
        z = rng.standard_normal((n, d)) * stretch[:, None]
        theta = mean + z @ np.linalg.cholesky(spread).T
        log_t = -0.5 * (_DF + d) * np.log1p((z * z).sum(axis=1) / _DF)
        away = np.linalg.solve(np.linalg.cholesky(self.spread), (theta - self.mean).T)
        log_ratio = -0.5 * (away * away).sum(axis=0) - log_t
        self.weigh(theta, log_ratio)
        return theta, log_ratio

    def weigh(self, theta: Floats, log_ratio: Floats) -> None:
        """Add the log chance of the rewards under each draw, (n, d), in place."""
        log_chances(self.model, self.rows, self.reward, theta, log_ratio)

    def mode(self, start: Floats) -> tuple[Floats, Floats]:
        """Return the mode of the posterior and its inverse curvature there, by Newton steps."""
        precision, theta = np.linalg.inv(self.spread), start
        value = self._log_density(theta, precision)
        for _ in range(_STEPS):
            slope, bend = self._slopes(theta)
            curvature = precision + (self.rows.T * bend) @ self.rows
            step = np.linalg.solve(curvature, self.rows.T @ slope - precision @ (theta - self.mean))
            size, best = 1.0, value
            while size > 1e-6:  # concave: a short step always gains
                value = self._log_density(theta + size * step, precision)
                if value >= best:
                    break
                size /= 2
            theta = theta + size * step
            if np.abs(size * step).max() < 1e-8:
                break
        return theta, np.linalg.inv(precision + (self.rows.T * self._slopes(theta)[1]) @ self.rows)

    def _log_density(self, theta: Floats, precision: Floats) -> float:
        away, found = theta - self.mean, np.zeros(1)
        log_chances(self.model, self.rows, self.reward, theta[None], found)
        return float(found[0] - 0.5 * away @ precision @ away)

    def _slopes(self, theta: Floats) -> tuple[Floats, Floats]:
        """Return the derivative of each log chance by its z'theta, and minus the second."""
        sign, value = 2.0 * self.reward - 1.0, self.rows @ theta
        if self.model == "logit":
            p = special.expit(value)
            return self.reward - p, p * (1.0 - p)
        t = sign * value
        ratio = np.exp(-0.5 * t * t - 0.5 * np.log(2.0 * np.pi) - special.log_ndtr(t))
        return sign * ratio, ratio * (t + ratio)
