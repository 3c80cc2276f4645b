"""What a log is to a family: its coded rewards, their statistics, its prior and posterior."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesfair.base.checks import first_where
from bayesfair.base.notices import Notice
from bayesfair.errors import OptionError
from bayesfair.families.base import Family, Known
from bayesfair.families.choose import family_of_levels
from bayesfair.families.conflict import prior_conflicts
from bayesfair.families.learned import LearnedPrior
from bayesfair.families.priors import prior_table
from bayesfair.history import History
from bayesfair.typing import Floats

__all__ = [
    "choose_family",
    "coded_of",
    "earlier_counts",
    "known_of",
    "posterior_of",
    "prior_notices",
    "prior_of",
]


def choose_family(history: History) -> tuple[str, str]:
    """Return the reward family that the observed rewards suggest, and a sentence saying why.

    Examples
    --------
    >>> choose_family(History(["a", "b", "a"], [5, 3, 4]))[0]
    'finite'
    """
    reward = history.reward
    levels, n = np.array([0.0, 1.0]), int(np.count_nonzero(~np.isnan(reward)))
    times = np.array([np.count_nonzero(reward == level) for level in levels])
    if times.sum() < n:
        return family_of_levels(np.unique(reward[~np.isnan(reward)]), n)
    return family_of_levels(levels[times > 0], n)  # mostly so: nothing needs to be sorted


def coded_of(
    history: History, family: Family, support: Floats, *, remedy: str | None = None
) -> Floats:
    """Return the rewards of a log as beliefs learn from them; see `Family.coded`."""
    return family.coded(
        history.reward, support, history.where_reward, column=history.reward_column,
        rows=history.row, remedy=remedy,
    )  # fmt: skip


def known_of(history: History, family: Family, support: Any = None) -> tuple[Known, Floats]:
    """Return the statistics of all observed rewards, and the levels of a finite reward.

    Parameters
    ----------
    support : (L,) array, optional
        All levels that a reward can take; default those seen (0 and 1 for a 0/1 log).

    Raises
    ------
    DataError
        Naming the first reward that the family cannot hold.
    """
    levels = family.levels(support, history.reward)
    coded = coded_of(history, family, levels)
    seen = ~np.isnan(history.reward)
    arm, (pulls, total) = history.arm[seen], history.counts()
    # deviations from the mean first: the textbook difference of squares cancels for large means
    squares = (history.reward[seen] - (total / np.maximum(pulls, 1))[arm]) ** 2
    spread = np.bincount(arm, weights=squares, minlength=history.n_arms).astype(np.float64)
    shape = history.n_arms, len(levels) or len(family.parameters)
    return Known(pulls, total, spread, family.sums(arm, coded[seen], shape)), levels


def earlier_counts(history: History, family: Family, *, whole: bool) -> Floats:
    """Return (successes, failures) seen before the log began, ``(k, 2)``; zeros if none.

    Raises
    ------
    OptionError
        If there are some and rewards are not 0 or 1, or they are not whole numbers where the model
        needs counts.
    """
    counts = history.prior_counts
    if counts is None or not counts.any():
        return np.zeros((history.n_arms, 2))
    if not family.binary:
        raise OptionError(
            f"earlier outcomes are given as (successes, failures), which the {family.name} family "
            "cannot use; give prior= to the fit instead."
        )
    if whole and (broken := first_where((counts != np.rint(counts)).any(axis=1))):
        i = broken.at
        raise OptionError(
            f"earlier outcomes of arm {history.arms[i]!r} are {counts[i].tolist()}; this model "
            "needs whole numbers of successes and failures."
        )
    return np.asarray(counts)


def prior_of(
    history: History, family: Family, prior: Any, n_levels: int | None = None
) -> tuple[Floats, LearnedPrior | None]:
    """Return the table of the prior for a whole log, and what it was learned from, if it was.

    Examples
    --------
    >>> from bayesfair.families import FAMILIES
    >>> log = History(["a", "b", "a"], [300.0, 302.0, 304.0])
    >>> prior_of(log, FAMILIES["normal"], None)[0].round(2).tolist()
    [[302.0, 1.0, 1.0, 8.79], [302.0, 1.0, 1.0, 8.79]]
    """
    if prior is not None or not family.learns_prior:
        return prior_table(prior, family, history.arms, n_levels), None
    learned = LearnedPrior.of(history.reward, history.known_at)
    return learned.table(history.n_arms), learned


def posterior_of(
    history: History, family: Family, *, prior: Any = None, support: Any = None
) -> tuple[Floats, Floats, Floats]:
    """Return the parameters of prior and posterior, ``(k, p)`` each, and the levels.

    Outcomes from before the log count as data.

    Examples
    --------
    >>> from bayesfair.families import FAMILIES
    >>> log = History(["a", "b", "a"], [1, 0, 0])
    >>> posterior_of(log, FAMILIES["bernoulli"])[1]
    array([[1.5, 1.5],
           [0.5, 1.5]])
    """
    known, levels = known_of(history, family, support)
    earlier = earlier_counts(history, family, whole=False)
    table, _ = prior_of(history, family, prior, len(levels) or None)
    begin = table + earlier if family.binary else table
    return table, family.posterior(begin, known), levels


def prior_notices(
    history: History, family: Family, *, prior: Any = None, support: Any = None
) -> list[Notice]:
    """Say where the prior was learned, and where rewards lie far outside of it."""
    before, after, levels = posterior_of(history, family, prior=prior, support=support)
    _, learned = prior_of(history, family, prior, before.shape[1])
    found = [] if learned is None else [learned.notice()]
    return found + prior_conflicts(
        before, after, family, history.arms, levels, learned=learned is not None
    )
