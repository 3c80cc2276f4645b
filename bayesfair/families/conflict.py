"""Rewards far outside what their prior expects: exact tails of the prior predictive laws.

Per arm, of all its rewards together, see `Family.tails`. Two-sided, at .001 over the number of
tests: rewards that come from the prior are noticed in at most one log of a thousand. Of a prior
that was learned from the rewards these tails are no exact probabilities; there only arms far from
the others, or far more spread, are looked for.
"""

from __future__ import annotations

from collections.abc import Sequence

from bayesfair.base.checks import counted
from bayesfair.base.notices import Notice
from bayesfair.families.base import Family
from bayesfair.typing import Floats

__all__ = ["prior_conflicts"]

_LEVEL = 0.001
_SHOWN = 3  # arms


def prior_conflicts(
    prior: Floats,
    posterior: Floats,
    family: Family,
    arms: Sequence[str],
    support: Floats,
    *,
    learned: bool = False,
) -> list[Notice]:
    """Return a notice where rewards lie far outside the prior predictive.

    Parameters
    ----------
    prior, posterior : (k, p) arrays
        Conjugate parameters before and after the rewards, which they tell.
    family : Family
        Whose `tails` are looked at.
    arms : sequence of str
        Labels.
    support : (L,) array
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
    >>> import numpy as np
    >>> from bayesfair.families import FAMILIES
    >>> normal, prior = FAMILIES["normal"], np.array([[0.0, 1, 1, 1], [0.0, 1, 1, 1]])
    >>> posterior = np.array([[250.0, 6, 3.5, 37500], [0.1, 6, 3.5, 3]])  # five rewards near 300
    >>> found = prior_conflicts(prior, posterior, normal, ["a", "b"], np.empty(0))
    >>> [notice.column for notice in found]
    ['a']
    """
    tests = list(family.tails(prior, posterior, support, _LEVEL, learned=learned))
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
