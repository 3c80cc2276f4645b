"""Conjugate priors per reward family: their defaults, and how a user gives others, arm by arm.

Bernoulli rewards, ratings and counts have a fixed default. Measurements come in units that no fixed
prior can know: theirs is centred and scaled by the first 20 known rewards of the log, see
`LearnedPrior`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.checks import check_choice, counted, did_you_mean, listed
from bayesfair.base.labels import by_label
from bayesfair.base.notices import Notice
from bayesfair.errors import ArmError, OptionError
from bayesfair.kernels.log.conjugate import FIRST, location_and_scale

if TYPE_CHECKING:
    from bayesfair.history import History

__all__ = [
    "DEFAULT_PRIOR",
    "PRIOR_PARAMETERS",
    "LearnedPrior",
    "describe_prior",
    "history_prior",
    "prior_table",
]

#: Default parameters, in the order of `PRIOR_PARAMETERS`; those of ``normal`` in units of location
#: and scale, which the first rewards tell.
DEFAULT_PRIOR: dict[str, tuple[float, ...]] = {
    "bernoulli": (0.5, 0.5),
    "finite": (0.5,),
    "poisson": (0.5, 0.5),
    "normal": (0.0, 1.0, 1.0, 1.0),
}

#: Names of the parameters; for ``finite`` one concentration, or one per level.
PRIOR_PARAMETERS: dict[str, tuple[str, ...]] = {
    "bernoulli": ("alpha", "beta"),
    "finite": ("concentration",),
    "poisson": ("shape", "rate"),
    "normal": ("mean", "kappa", "shape", "scale"),
}

_LAW = {
    "bernoulli": "theta ~ Beta({})",
    "finite": "probability ~ Dirichlet({})",
    "poisson": "rate ~ Gamma(shape, rate = {})",
    "normal": "(mean, sd) ~ normal-inverse-gamma(mean, kappa, shape, scale = {})",
}


@dataclass(frozen=True, eq=False)
class LearnedPrior:
    """The default prior of measurements, from the first known rewards of a log, whatever their arm.

    Mean = their median, kappa 1, shape 1, scale = spread^2, where spread is 1.4826 times the median
    absolute deviation from the median (if that is 0, 1.2533 times the mean absolute deviation). The
    first 20 count; if they are all equal, the first other reward as well.

    Attributes
    ----------
    reward : (n,) array
        The first known rewards, in the order in which they became known.

    Examples
    --------
    >>> learned = LearnedPrior(np.array([300.0, 302.0, 301.0, 305.0]))
    >>> learned.location, learned.spread, learned.settled
    (301.5, 1.4826, False)
    """

    reward: NDArray[np.float64]

    @classmethod
    def of(cls, history: History) -> LearnedPrior:
        """Return the prior of a whole log."""
        seen = ~np.isnan(history.reward)
        reward = history.reward[seen]
        if history.known_at is not None:
            reward = reward[np.argsort(history.known_at[seen], kind="stable")]
        return cls(np.empty(0)).after(*reward[:FIRST], *_first_other(reward))

    def after(self, *rewards: float) -> LearnedPrior:
        """Return the prior once more rewards are known, in the order in which they became so."""
        found = self.reward
        for reward in rewards:
            if found.size >= FIRST and (reward == found[0] or self._differ(found)):
                continue
            found = np.append(found, reward)
        return self if found is self.reward else LearnedPrior(found)

    @staticmethod
    def _differ(reward: NDArray[np.float64]) -> bool:
        return bool(reward.size and np.ptp(reward) > 0)

    @property
    def location(self) -> float:
        """Their median; 0 before the first."""
        return float(location_and_scale(self.reward)[0]) if self.reward.size else 0.0

    @property
    def spread(self) -> float:
        """Their robust standard deviation; 0 as long as no two of them differ."""
        return float(location_and_scale(self.reward)[1]) if self.reward.size else 0.0

    @property
    def is_open(self) -> bool:
        """Whether no two rewards differ yet: then there is no scale, and all arms are alike."""
        return not self._differ(self.reward)

    @property
    def settled(self) -> bool:
        """Whether no later reward changes it."""
        return self.reward.size >= FIRST and not self.is_open

    def table(self, k: int) -> NDArray[np.float64]:
        """Return the parameters, ``(k, 4)``; in the unit 1 as long as there is no scale."""
        _, kappa, shape, scale = DEFAULT_PRIOR["normal"]
        spread = 1.0 if self.is_open else self.spread
        return np.tile([self.location, kappa, shape, scale * spread**2], (k, 1))

    def words(self) -> str:
        """Say where location and scale come from."""
        n = self.reward.size
        if not n:
            return "to be centred and scaled by the first known rewards, of which there are none"
        if self.is_open:
            return (
                f"centred by the {counted(n, 'known reward')}, which tell no scale since no two of "
                "them differ: in the unit 1"
            )
        more = "" if self.settled else f" (fewer than {FIRST} are known)"
        return (
            f"centred and scaled by the first {n} known rewards{more}: median {self.location:g}, "
            f"robust standard deviation {self.spread:.4g}"
        )

    def notice(self, rounds: tuple[int, int] | None = None, more: str = "") -> Notice:
        """Return the notice of what rests on this prior.

        Parameters
        ----------
        rounds : (int, int), optional
            First and last of the rounds whose beliefs rest on part of the rewards only.
        more : str
            What else is to be said of these rounds.
        """
        said = [f"The prior of these measurements is {self.words()}."]
        if rounds is not None and rounds[0] <= rounds[1]:
            said.append(
                f"The beliefs of rounds {rounds[0]} to {rounds[1]} rest on those known by then "
                "alone, and the prior was learned anew with each; as long as no two differ, every "
                f"arm has the same law and P* is shared evenly.{more}"
            )
        return Notice(
            " ".join([*said, "prior= gives another prior."]),
            kind="prior_learned",
            column="prior",
            value=[self.location, self.spread],
            n=self.reward.size,
        )


def _first_other(reward: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the first reward that differs from all before it, where that is not a first one."""
    other = np.flatnonzero(reward != reward[0])[:1] if reward.size else np.empty(0, np.int64)
    return reward[other[other >= FIRST]]


def history_prior(
    prior: Any, family: str, history: History, n_levels: int | None = None
) -> tuple[NDArray[np.float64], LearnedPrior | None]:
    """Return `prior_table` for a whole log, and what it was learned from, if it was.

    Examples
    --------
    >>> from bayesfair.history import History
    >>> log = History(["a", "b", "a", "b"], [300.0, 302.0, 301.0, 305.0])
    >>> table, learned = history_prior(None, "normal", log)
    >>> table[0].round(3), learned.settled
    (array([301.5  ,   1.   ,   1.   ,   2.198]), False)
    """
    if family != "normal" or prior is not None:
        return prior_table(prior, family, history.arms, n_levels), None
    learned = LearnedPrior.of(history)
    return learned.table(history.n_arms), learned


def prior_table(
    prior: Any, family: str, arms: Sequence[str], n_levels: int | None = None
) -> NDArray[np.float64]:
    """Return the parameters of the conjugate prior, one row per arm.

    Parameters
    ----------
    prior : None, sequence, (k, p) array or mapping of arm to sequence
        None is the default of the family. One row serves every arm; a mapping may leave arms out,
        which then keep `DEFAULT_PRIOR`.
    family : {"bernoulli", "finite", "poisson", "normal"}
        Reward family; decides what the parameters are (`PRIOR_PARAMETERS`).
    arms : sequence of str
        Labels, k of them.
    n_levels : int, optional
        Number of levels of a finite family: one concentration is used for each of them.

    Returns
    -------
    (k, p) array of float
        Always float: integer parameters would overflow in narrow integer types.

    Raises
    ------
    OptionError, ArmError
        Naming the arm, the parameter, its value and what is allowed.

    Examples
    --------
    >>> prior_table({"b": (1, 9)}, "bernoulli", ["a", "b"])
    array([[0.5, 0.5],
           [1. , 9. ]])
    """
    check_choice(family, "family", tuple(DEFAULT_PRIOR))
    k = len(arms)
    names = PRIOR_PARAMETERS[family]
    width = len(names) if family != "finite" else int(n_levels or 1)
    if isinstance(prior, Mapping):
        given = by_label(prior, "arm", "prior")
        unknown = [arm for arm in given if arm not in arms]
        if unknown:
            raise ArmError(
                f"prior names {listed(unknown)}, not among the arms {listed(arms)}."
                f"{did_you_mean(unknown[0], arms)}",
                kind="unknown_arm",
                column="prior",
                value=unknown[0],
            )
        rows = [_row(given.get(arm, DEFAULT_PRIOR[family]), width, names, arm) for arm in arms]
        table = np.array(rows, dtype=np.float64).reshape(k, width)
    elif np.ndim(DEFAULT_PRIOR[family] if prior is None else prior) < 2:
        row = _row(DEFAULT_PRIOR[family] if prior is None else prior, width, names, "every arm")
        table = np.tile(row, (k, 1))
    else:
        if len(prior) != k:
            raise OptionError(
                f"prior has {len(prior)} rows, expected one per arm for {k} arms {listed(arms)}."
            )
        rows = [_row(row, width, names, arm) for row, arm in zip(prior, arms, strict=True)]
        table = np.array(rows, dtype=np.float64).reshape(k, width)
    _check_positive(table, family, names, arms)
    return table


def _row(values: Any, width: int, names: tuple[str, ...], arm: str) -> NDArray[np.float64]:
    try:
        row = np.atleast_1d(np.asarray(values, dtype=np.float64))
    except (TypeError, ValueError):
        raise OptionError(f"prior of {arm!r} is {values!r}; expected numbers {names}.") from None
    if row.shape == (1,) and len(names) == 1:
        row = np.full(width, row[0])
    if row.shape != (width,):
        expected = f"({', '.join(names)})" if len(names) > 1 else f"1 or {width} concentrations"
        raise OptionError(f"prior of {arm!r} is {values!r}; expected {expected}.")
    return row


def _check_positive(
    table: NDArray[np.float64], family: str, names: tuple[str, ...], arms: Sequence[str]
) -> None:
    free = np.array([family == "normal" and name == "mean" for name in names])
    free = np.broadcast_to(free, table.shape[1:]) if len(names) == 1 else free
    bad = ~np.isfinite(table) | (~free & (table <= 0))
    if bad.any():
        i, j = (int(v) for v in np.argwhere(bad)[0])
        name = names[j] if len(names) > 1 else names[0]
        raise OptionError(
            f"prior {name} of arm {arms[i]!r} is {table[i, j]:g}; it must be finite"
            f"{'' if free[j] else ' and above 0'}."
        )


def describe_prior(
    table: NDArray[np.float64],
    family: str,
    arms: Sequence[str],
    learned: LearnedPrior | None = None,
) -> str:
    """Return one line that states the prior, for reports and attributes; whence it was learned.

    Examples
    --------
    >>> describe_prior(prior_table(None, "bernoulli", ["a", "b"]), "bernoulli", ["a", "b"])
    'theta ~ Beta(0.5, 0.5), every arm, independent'
    """
    rows = [_numbers(row) for row in table]
    if len(set(rows)) <= 1:
        shown = rows[0] if rows else _numbers(np.array(DEFAULT_PRIOR[family]))
        whence = "" if learned is None else f", {learned.words()}"
        return f"{_LAW[family].format(shown)}, every arm, independent{whence}"
    parts = [f"{arm}: {row}" for arm, row in list(zip(arms, rows, strict=True))[:8]]
    more = f"; and {len(rows) - 8} more" if len(rows) > 8 else ""
    return f"{_LAW[family].format('...')}, per arm {'; '.join(parts)}{more}"


def _numbers(row: NDArray[np.float64]) -> str:
    if row.size > 4 and np.all(row == row[0]):
        return f"{row[0]:g} for each of {row.size} levels"
    return ", ".join(f"{value:g}" for value in row)
