"""What is asked of a log: the constants of smooth fairness and how they are judged."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesfair.base.checks import check_choice, check_count, check_in_range
from bayesfair.errors import OptionError
from bayesfair.kernels.log.part_result import ROUNDING, TOLERANCES
from bayesfair.typing import Flags, Floats

__all__ = [
    "COMPARISONS",
    "DIFFERENCES",
    "DIVERGENCE_NAMES",
    "EPS1_GRID",
    "JUDGES",
    "QUESTIONS",
    "VERDICTS",
    "Criterion",
    "believed_verdict",
    "check_judge",
    "default_eps2",
    "eps2_options",
    "finite_or_text",
    "top_verdict",
    "verdict_of",
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

COMPARISONS = 1e9
"""Of two arms in a round, for which Monte Carlo error is allowed at once."""

DIFFERENCES = ("total_variation", "wasserstein")
LARGEST_EPS2 = 0.05
"""The default eps2, wherever no more than ten arms are on offer in a round."""

JUDGES = ("both", "subjective", "objective")
"""Which of the two questions the top verdict answers."""

QUESTIONS = {
    "subjective": "under the beliefs of each round",
    "objective": "under the true rewards",
}
"""The two questions of an audit, in the words that text, report and JSON share."""

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
    eps2_arms : int or None
        The number of arms that the default eps2 was made for, fixed where the log begins; None
        where eps2 was asked for.
    from_round : int
        First round that is judged, counted from the start of the log; the rounds before it serve
        the beliefs alone.
    judge : str
        ``"both"``, ``"subjective"`` or ``"objective"``: whose verdict is the top one.
    propensity_draws : int or None
        The logged probabilities are shares of so many Monte Carlo draws; None = exact.

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
    eps2_arms: int | None = None
    from_round: int = 0
    judge: str = "both"
    propensity_draws: int | None = None

    def __post_init__(self) -> None:
        """Validate the ranges."""
        put = object.__setattr__
        put(self, "eps1", check_in_range(self.eps1, "eps1", 0, 1e6))
        put(self, "eps2", check_in_range(self.eps2, "eps2", 0, 1e6))
        put(self, "delta", check_in_range(self.delta, "delta", 0, 0.5, high_open=True))
        put(self, "tolerance", check_in_range(self.tolerance, "tolerance", 0, 1))
        put(self, "from_round", check_count(self.from_round, "from_round"))
        check_choice(self.judge, "judge", JUDGES)
        check_choice(self.divergence, "divergence", DIVERGENCE_NAMES)
        check_choice(self.reward_divergence, "reward_divergence", DIVERGENCE_NAMES)
        if self.propensity_draws is not None:
            n = check_count(self.propensity_draws, "propensity_draws", 2)
            put(self, "propensity_draws", n)
            if self.divergence not in DIFFERENCES:
                raise OptionError(
                    f"propensity_draws={n} and divergence={self.divergence!r} exclude each other: "
                    "how far Monte Carlo error moves a divergence is bounded for differences of "
                    f"probabilities alone ({', '.join(DIFFERENCES)}).",
                    kind="excluded", column="propensity_draws", value=n,
                )  # fmt: skip

    @property
    def eps2_reason(self) -> str:
        """Why eps2 is what it is, in words."""
        k = self.eps2_arms
        if k is None:
            return "asked for"
        if default_eps2(k) == LARGEST_EPS2:
            return (
                f"the default for up to 10 arms on offer in a round, min({LARGEST_EPS2:g}, 1/(2k))"
            )
        return (
            f"the default min({LARGEST_EPS2:g}, 1/(2k)) for the {k} arms on offer at most in one "
            "round"
        )

    @property
    def grid(self) -> tuple[float, ...]:
        """The eps1 values of the frontier, ascending."""
        return tuple(sorted({*EPS1_GRID, self.eps1}))

    @property
    def grid_index(self) -> int:
        """Position of the asked eps1 in `grid`."""
        return self.grid.index(self.eps1)

    def fair_draws(self, smallest_eps2: Floats, error: float = 0.0) -> Flags:
        """Return which draws keep to the criterion, from the eps2 they need, ``(draw, grid)``.

        With ``error`` as if each needed so much more.
        """
        return np.asarray(smallest_eps2[:, self.grid_index] + error <= self.allowed)

    def verdict_of(self, probability: float, upper: float | None = None) -> str:
        """Return the objective verdict at a probability of being fair, see `verdict_of`."""
        return verdict_of(probability, self.delta, upper)

    def believed(self, needed: float | None, upper: float | None = None) -> str:
        """Return the subjective verdict of a smallest eps2, see `believed_verdict`."""
        if needed is not None and upper is None and self.band:
            needed, upper = max(needed - self.band, 0.0), needed + self.band
        return believed_verdict(needed, self.allowed, upper)

    @property
    def band(self) -> float:
        """How far Monte Carlo error moves differences of logged probabilities; 0 = exact.

        Hoeffding's bound for the shares of n draws, at 95 % for 10^9 comparisons of two arms in a
        round at once, so that it is the same for every part of a log.
        """
        n = self.propensity_draws
        return 0.0 if n is None else math.sqrt(2 * math.log(2 * COMPARISONS / 0.05) / n)

    @property
    def certain(self) -> float:
        """The excess of logged probabilities above which a round violates for certain."""
        return self.allowed + self.band

    @property
    def counting_eps2(self) -> float:
        """The eps2 above which rounds are counted, less the first tolerance of the ladder.

        Violations are counted for a ladder of tolerances, since the resolution of a log is known
        only at its end. A tolerance that was asked for takes the place of the first rung.
        """
        given = self.tolerance - TOLERANCES[0] if self.tolerance_given else 0.0
        return self.eps2 + given + self.band

    def count_at(self, counts: NDArray[Any]) -> int:
        """Return the violating rounds at `tolerance`, from counts for every rung of the ladder."""
        if self.tolerance_given:
            return int(counts[0])
        ladder = np.array(TOLERANCES)
        step = int(np.searchsorted(ladder, self.tolerance * (1 - 1e-12)))
        return int(counts[min(step, len(ladder) - 1)])

    def at_resolution(self, unit: float) -> Criterion:
        """Return the criterion with the tolerance used for probabilities logged to `unit`."""
        return replace(self, tolerance=float(self.tolerances(unit)))

    def tolerances(self, units: ArrayLike) -> Floats:
        """Return the tolerance that is used for each resolution: as asked for, or not below it."""
        units = np.asarray(units, np.float64)
        finer = self.tolerance_given | (units <= self.tolerance)
        return np.where(finer, self.tolerance, units + ROUNDING)

    @property
    def allowed(self) -> float:
        """The largest excess that does not violate."""
        return self.eps2 + self.tolerance

    @property
    def is_total_variation(self) -> bool:
        """Whether both divergences are total variation."""
        return self.divergence == self.reward_divergence == "total_variation"

    def require_same(self, other: Criterion) -> None:
        """Raise unless summaries made under both criteria can be merged."""
        names = ["eps1", "eps2", "delta", "divergence", "reward_divergence", "tolerance_given"]
        names += ["from_round", "propensity_draws"]
        if self.tolerance_given and other.tolerance_given:
            names.append("tolerance")
        for name in names:
            if getattr(self, name) != getattr(other, name):
                raise OptionError(
                    f"audits with {name}={getattr(self, name)!r} and {getattr(other, name)!r} "
                    "cannot be merged; make both with the same criterion."
                )


def default_eps2(k: int) -> float:
    """Return the eps2 for ``k`` arms on offer in one round: min(0.05, 1/(2k)).

    Among k arms probabilities are of the order of 1/k. An allowance that does not shrink with k is
    one that rules over many arms cannot fail, whatever they do.

    Examples
    --------
    >>> default_eps2(2), default_eps2(10), default_eps2(50)
    (0.05, 0.05, 0.01)
    """
    return min(LARGEST_EPS2, 1 / (2 * max(k, 1)))


def eps2_options(eps2: float | None, k: int) -> dict[str, Any]:
    """Return ``eps2`` and ``eps2_arms`` of a `Criterion`: as asked for, or the default for ``k``.

    Examples
    --------
    >>> eps2_options(None, 50), eps2_options(0.1, 50)
    ({'eps2': 0.01, 'eps2_arms': 50}, {'eps2': 0.1, 'eps2_arms': None})
    """
    if eps2 is not None:
        return {"eps2": eps2, "eps2_arms": None}
    return {"eps2": default_eps2(k), "eps2_arms": k}


def check_judge(judge: str, objective: bool) -> None:
    """Raise if the verdict is asked of a part that is left out."""
    if judge == "objective" and not objective:
        raise OptionError(
            "judge='objective' asks for the verdict of the part that objective=False leaves out; "
            "leave one of them out.",
            kind="options_exclude",
            column="judge",
            value=judge,
        )


def top_verdict(
    subjective: str, objective: str | None, *, judge: str = "both", known: bool = False
) -> str:
    """Return the verdict of an audit from those of its two questions.

    Parameters
    ----------
    subjective, objective : str
        The two verdicts; objective None where that part was left out.
    judge : str
        Which of them counts; ``"both"``: unfair if either is, fair only if both are.
    known : bool
        Whether the true rewards are known: then ``"both"`` is the objective one, since what the
        rule may have known beside the log is no longer a guess.

    Examples
    --------
    >>> top_verdict("unfair", "fair"), top_verdict("fair", "undetermined")
    ('unfair', 'undetermined')
    >>> top_verdict("unfair", "fair", known=True), top_verdict("unfair", "fair", judge="objective")
    ('fair', 'fair')
    """
    if objective is None or judge == "subjective":
        return subjective
    if known or judge == "objective":
        return objective
    return worst_verdict(subjective, objective)


def verdict_of(probability: float, delta: float, upper: float | None = None) -> str:
    """Return the objective verdict at a probability of being fair, see `Criterion`.

    With ``upper`` the probability is known to lie between the two.

    Examples
    --------
    >>> verdict_of(0.97, 0.05), verdict_of(0.01, 0.05), verdict_of(0.01, 0.05, 0.3)
    ('fair', 'unfair', 'undetermined')
    """
    if probability >= 1 - delta:
        return "fair"
    return "unfair" if (probability if upper is None else upper) <= delta else "undetermined"


def believed_verdict(needed: float | None, allowed: float, upper: float | None = None) -> str:
    """Return the subjective verdict of a smallest eps2; ``not_auditable`` where there is none.

    With ``upper`` the smallest eps2 is known to lie between the two.

    Examples
    --------
    >>> believed_verdict(0.04, 0.05), believed_verdict(0.06, 0.05), believed_verdict(0, 0.05, 0.06)
    ('fair', 'unfair', 'undetermined')
    """
    if needed is None:
        return "not_auditable"
    if (needed if upper is None else upper) <= allowed:
        return "fair"
    return "unfair" if upper is None or needed > allowed else "undetermined"


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
