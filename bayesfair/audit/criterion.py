"""What is asked of a log: the constants of smooth fairness and how they are judged."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.checks import check_choice, check_in_range
from bayesfair.errors import OptionError
from bayesfair.kernels.stream import TOLERANCES

__all__ = [
    "DIVERGENCE_NAMES",
    "EPS1_GRID",
    "VERDICTS",
    "Criterion",
    "finite_or_text",
    "worst_verdict",
]

DIVERGENCE_NAMES = (
    "total_variation",
    "kl",
    "hellinger",
    "chi2",
    "jensen_shannon",
    "wasserstein",
)
EPS1_GRID = tuple(0.25 * i for i in range(9))
"""eps1 values of the frontier: 0, 0.25, ..., 2, and the one asked for."""

VERDICTS = ("unfair", "undetermined", "not_auditable", "fair")
"""From worst to best."""


@dataclass(frozen=True, kw_only=True)
class Criterion:
    """The (eps1, eps2, delta) criterion and how it is evaluated.

    Parameters
    ----------
    eps1, eps2 : float
        D(pi_i || pi_j) <= eps1 D(r_i || r_j) + eps2 is required; both >= 0, dimensionless for
        total variation.
    delta : float
        In [0, 0.5): the objective verdict is "fair" from probability 1 - delta on, "unfair" up to
        delta.
    divergence, reward_divergence : str
        D between decisions, and D between reward distributions.
    tolerance : float
        Excesses up to eps2 + tolerance are not violations.
    tolerance_given : bool
        Whether the tolerance was asked for; otherwise it follows the resolution of the log.

    Raises
    ------
    OptionError
        Naming the option and its range.
    """

    eps1: float = 2.0
    eps2: float = 0.05
    delta: float = 0.05
    divergence: str = "total_variation"
    reward_divergence: str = "total_variation"
    tolerance: float = 1e-9
    tolerance_given: bool = False

    def __post_init__(self) -> None:
        """Validate the ranges."""
        put = object.__setattr__
        put(self, "eps1", check_in_range(self.eps1, "eps1", 0, 1e6))
        put(self, "eps2", check_in_range(self.eps2, "eps2", 0, 1e6))
        put(self, "delta", check_in_range(self.delta, "delta", 0, 0.5, high_open=True))
        put(self, "tolerance", check_in_range(self.tolerance, "tolerance", 0, 1))
        check_choice(self.divergence, "divergence", DIVERGENCE_NAMES)
        check_choice(self.reward_divergence, "reward_divergence", DIVERGENCE_NAMES)

    @property
    def grid(self) -> tuple[float, ...]:
        """The eps1 values of the frontier, ascending."""
        return tuple(sorted({*EPS1_GRID, self.eps1}))

    @property
    def grid_index(self) -> int:
        """Position of the asked eps1 in `grid`."""
        return self.grid.index(self.eps1)

    def verdict_of(self, probability: float) -> str:
        """Return the objective verdict at a posterior probability of being fair."""
        if probability >= 1 - self.delta:
            return "fair"
        return "unfair" if probability <= self.delta else "undetermined"

    @property
    def counting_eps2(self) -> float:
        """The eps2 above which rounds are counted, less the first tolerance of the ladder.

        Violations are counted for a ladder of tolerances, since the resolution of a log is known
        only at its end. A tolerance that was asked for takes the place of the first rung.
        """
        return self.eps2 + self.tolerance - TOLERANCES[0] if self.tolerance_given else self.eps2

    def count_at(self, counts: NDArray[np.int64]) -> int:
        """Return the violating rounds at `tolerance`, from counts for every rung of the ladder."""
        if self.tolerance_given:
            return int(counts[0])
        ladder = np.array(TOLERANCES)
        step = int(np.searchsorted(ladder, self.tolerance * (1 - 1e-12)))
        return int(counts[min(step, len(ladder) - 1)])

    @property
    def is_total_variation(self) -> bool:
        """Whether both divergences are total variation."""
        return self.divergence == self.reward_divergence == "total_variation"

    def require_same(self, other: Criterion) -> None:
        """Raise unless summaries made under both criteria can be merged."""
        names = ["eps1", "eps2", "delta", "divergence", "reward_divergence", "tolerance_given"]
        if self.tolerance_given and other.tolerance_given:
            names.append("tolerance")
        for name in names:
            if getattr(self, name) != getattr(other, name):
                raise OptionError(
                    f"audits with {name}={getattr(self, name)!r} and {getattr(other, name)!r} "
                    "cannot be merged; make both with the same criterion."
                )


def worst_verdict(*verdicts: str) -> str:
    """Return the worst: unfair, then undetermined, then not_auditable, then fair.

    Examples
    --------
    >>> worst_verdict("fair", "not_auditable")
    'not_auditable'
    """
    return min(verdicts, key=VERDICTS.index)


def finite_or_text(value: Any) -> Any:
    """Return a JSON value: infinities as ``"inf"``/``"-inf"``, NaN as None, numpy as Python."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, int):
        return value
    number = float(value)
    if math.isnan(number):
        return None
    if math.isinf(number):
        return "inf" if number > 0 else "-inf"
    return number
