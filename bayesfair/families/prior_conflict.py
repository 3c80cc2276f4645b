"""Rewards far outside what their prior expects: exact tails of the prior predictive laws.

Per arm, of all its rewards together: successes are beta-binomial, the counts of each level of a
rating too, the sum of counts is negative binomial; of measurements the mean is Student t, and their
variance over scale / shape has an F law. Two-sided, at .001 over the number of tests: rewards that
come from the prior are noticed in at most one log of a thousand. Of a prior that was learned from
the rewards these tails are no exact probabilities; there only arms far from the others, or far
more spread, are looked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from bayesfair.base.checks import counted
from bayesfair.base.notices import Notice
from bayesfair.kernels.laws.prior_tails import beta_binomial_tail

__all__ = ["prior_conflicts"]

_LEVEL = 0.001
_SHOWN = 3  # arms

Floats = NDArray[np.float64]


class _Test(NamedTuple):
    p: float
    arm: int
    what: str  # was observed


def prior_conflicts(
    prior: Floats,
    posterior: Floats,
    family: str,
    arms: Sequence[str],
    support: Floats | None = None,
    *,
    learned: bool = False,
) -> list[Notice]:
    """Return a notice where rewards lie far outside the prior predictive.

    Parameters
    ----------
    prior, posterior : (k, p) arrays
        Conjugate parameters before and after the rewards, which they tell.
    family : str
        Of `bayesfair.families.priors.PRIOR_PARAMETERS`.
    arms : sequence of str
        Labels.
    support : (L,) array, optional
        Levels of a finite reward.
    learned : bool
        Whether the prior is that of measurements which was learned from the first of them. Their
        spread holds the distance between arms too: arms that spread less are no surprise.

    Returns
    -------
    list of Notice
        None or one, of kind ``prior_conflict``, naming the arms, the most extreme first; its
        ``value`` is the smallest tail probability, ``n`` the number of arms.

    Examples
    --------
    >>> prior = np.array([[0.0, 1, 1, 1], [0.0, 1, 1, 1]])
    >>> posterior = np.array([[250.0, 6, 3.5, 37500], [0.1, 6, 3.5, 3]])  # five rewards near 300
    >>> [notice.column for notice in prior_conflicts(prior, posterior, "normal", ["a", "b"])]
    ['a']
    """
    if family == "normal":
        tests = list(_normal(prior, posterior, learned=learned))
    else:
        tests = list(_COUNTED[family](prior, posterior, support))
    small = [test for test in tests if test.p < _LEVEL / len(tests)]
    first = {test.arm: test for test in sorted(small, key=lambda test: (-test.p, -test.arm))}
    worst = sorted(first.values(), key=lambda test: (test.p, test.arm))
    if not worst:
        return []
    which = "; ".join(f"{arms[test.arm]!r}: {test.what}" for test in worst[:_SHOWN])
    more = f"; and {len(worst) - _SHOWN} more" if len(worst) > _SHOWN else ""
    return [
        Notice(
            f"The rewards of {counted(len(worst), 'arm')} lie far outside what the prior expects "
            f"({which}{more}; tail probability {worst[0].p:.1e}). Where few rewards are known, "
            "beliefs and P* are those of the prior rather than of the log: give prior= in the "
            "units of these rewards.",
            kind="prior_conflict",
            column=str(arms[worst[0].arm]),
            value=worst[0].p,
            n=len(worst),
        )
    ]


def _bernoulli(prior: Floats, posterior: Floats, support: Floats | None) -> Iterator[_Test]:
    counts = np.rint(posterior - prior)
    n_tests = int((counts.sum(axis=1) > 0).sum())
    for i, (won, lost) in enumerate(counts.tolist()):
        if won + lost > 0:
            p = beta_binomial_tail(won, won + lost, *prior[i], _LEVEL / n_tests)
            yield _Test(p, i, f"{won:.0f} successes of {won + lost:.0f}")


def _finite(prior: Floats, posterior: Floats, support: Floats | None) -> Iterator[_Test]:
    counts = np.rint(posterior - prior)
    n_levels = prior.shape[1]
    n_tests = int((counts.sum(axis=1) > 0).sum()) * n_levels
    if n_levels == 1:
        return
    for i, row in enumerate(counts):
        n, total = float(row.sum()), float(prior[i].sum())
        for level in range(n_levels if n else 0):
            a = float(prior[i, level])
            p = beta_binomial_tail(row[level], n, a, total - a, _LEVEL / n_tests)
            name = f"level {level}" if support is None else f"{support[level]:g}"
            yield _Test(p, i, f"{name} in {row[level]:.0f} of {n:.0f}")


def _poisson(prior: Floats, posterior: Floats, support: Floats | None) -> Iterator[_Test]:
    for i, (total, n) in enumerate(np.rint(posterior - prior).tolist()):
        if n > 0:
            shape, rate = prior[i].tolist()
            low = special.betainc(shape, total + 1, rate / (rate + n))
            high = special.betainc(total, shape, n / (rate + n)) if total > 0 else 1.0
            yield _Test(float(2 * min(low, high)), i, f"mean {total / n:.4g} of {n:.0f}")


def _normal(prior: Floats, posterior: Floats, *, learned: bool) -> Iterator[_Test]:
    for i, ((m, kappa, a, b), (end, weight, _, scale)) in enumerate(
        zip(prior.tolist(), posterior.tolist(), strict=True)
    ):
        n = round(weight - kappa)
        if n < 1:
            continue
        mean = m + (end - m) * weight / n
        z = (mean - m) / np.sqrt(b / a * (1 / kappa + 1 / n))
        yield _Test(float(2 * special.stdtr(2 * a, -abs(z))), i, f"mean {mean:.4g} of {n}")
        shift = 0.5 * kappa * n * (mean - m) ** 2 / weight
        squares = 2 * (scale - b - shift)
        # equal rewards were rounded or stand for something else; and what cancels is no spread
        if n > 1 and squares > 1e-9 * (b + shift):
            ratio = squares / (n - 1) * a / b
            high = special.fdtrc(n - 1, 2 * a, ratio)
            low = 1.0 if learned else special.fdtr(n - 1, 2 * a, ratio)
            sd = np.sqrt(squares / (n - 1))
            yield _Test(float(2 * min(low, high)), i, f"standard deviation {sd:.4g} of {n}")


_COUNTED = {"bernoulli": _bernoulli, "finite": _finite, "poisson": _poisson}
