"""What an audit should find of each rule, and how firmly that is known."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bayesfair.base.arguments import constructed, takes, within
from bayesfair.base.checks import check_choice
from bayesfair.base.html import Shown
from bayesfair.errors import OptionError
from bayesfair.families import Family, family_named
from bayesfair.policies.calibrated import SDTS, CalibratedOracle, FairSDTS, SDTSMixture
from bayesfair.policies.classic import EpsilonGreedy, Softmax, Uniform
from bayesfair.policies.duels import FairSDDTS
from bayesfair.policies.exploration import union_C

__all__ = ["Guarantee", "guarantee"]


@constructed
@dataclass(frozen=True)
class Guarantee(Shown):
    """Smooth fairness of a rule under total variation; unpacks as ``(eps1, eps2, delta)``.

    Parameters
    ----------
    eps1, eps2, delta : float
        In a share of at least 1 - delta of runs, every round satisfies
        ``|pi_i - pi_j| <= eps1 TV(r_i, r_j) + eps2`` for every pair.
    kind : str
        ``"subjective"``: r is the subjective marginal before the round; ``"objective"``: the truth.
    status : str
        ``"proved"``, ``"observed"`` (no counterexample in simulation), ``"claimed"`` (by the paper,
        proof not given) or ``"trivial"`` (true of every rule, or of this one by its range).
    note : str
        Conditions, in a sentence.
    """

    eps1: float
    eps2: float
    delta: float
    kind: str
    status: str
    note: str = ""

    def __iter__(self) -> Iterator[float]:
        """Unpack as ``eps1, eps2, delta``."""
        return iter((self.eps1, self.eps2, self.delta))


_ALWAYS = "no guarantee is known; probabilities never differ by more than 1"
_INDEPENDENT = "arms independent under the belief, history before the round"


@takes(n_arms=within(1, 1e9, whole=True, optional=True), n_levels=within(1, 1e9, whole=True))
def guarantee(
    policy: Any,
    *,
    kind: str | None = None,
    family: str = "bernoulli",
    n_arms: int | None = None,
    n_levels: int = 2,
) -> Guarantee:
    """Return the ``(eps1, eps2, delta)`` that an audit of the rule should find.

    Parameters
    ----------
    policy : Policy or FairSDDTS
        The rule.
    kind : str, optional
        ``"subjective"`` or ``"objective"``; default the one the rule is made for.
    family : str
        Reward family: the constants for Bernoulli rewards are half those in general.
    n_arms : int, optional
        k; needed where C is a number, ``"sqrt"`` or the paper's, to say what it buys.
    n_levels : int
        L, for finite rewards.

    Returns
    -------
    Guarantee
        With ``status``. It is for beliefs updated after every round under the default prior, and
        for exact logged probabilities. For a rule without any, ``(0, 1, 0)``.

    Raises
    ------
    OptionError
        If something needed is missing.

    Examples
    --------
    >>> from bayesfair.policies import SDTS, FairSDTS
    >>> eps1, eps2, delta = guarantee(SDTS(), family="finite")
    >>> eps1, eps2, delta
    (2.0, 0.0, 0.0)
    >>> guarantee(FairSDTS(eps2=0.1, delta=0.05)).status
    'proved'
    """
    of = family_named(family)
    if kind is not None:
        check_choice(kind, "kind", ("subjective", "objective"))
    wanted = kind or ("objective" if isinstance(policy, _OBJECTIVE) else "subjective")
    found = _whatever_the_rewards(policy, wanted)
    if found is None and wanted == "subjective":
        found = _subjective(policy, of)
    elif found is None and isinstance(policy, FairSDTS):
        found = _fair_sd_ts(policy, of, n_arms, n_levels)
    elif found is None:
        found = _objective(policy, of)
    return found or Guarantee(0.0, 1.0, 0.0, wanted, "trivial", _ALWAYS)


def _whatever_the_rewards(policy: Any, kind: str) -> Guarantee | None:
    if isinstance(policy, Uniform):
        return Guarantee(0.0, 0.0, 0.0, kind, "proved", "all arms alike")
    if isinstance(policy, EpsilonGreedy):
        note = "no arm has less than epsilon / k"
        return Guarantee(0.0, 1 - policy.epsilon, 0.0, kind, "trivial", note)
    return None


def _subjective(policy: Any, family: Family) -> Guarantee | None:
    kind = "subjective"
    if isinstance(policy, SDTSMixture):
        eps1 = family.constant * policy.weight_for(family.name)
        return Guarantee(eps1, 0.0, 0.0, kind, "proved", _INDEPENDENT)
    if isinstance(policy, (SDTS, FairSDTS)):
        return Guarantee(family.constant, 0.0, 0.0, kind, "proved", _INDEPENDENT)
    if isinstance(policy, Softmax) and family.binary:
        note = "pi_i - pi_j <= tanh(|m_i - m_j| / (2 temperature))"
        return Guarantee(0.5 / policy.temperature, 0.0, 0.0, kind, "proved", note)
    return None


def _objective(policy: Any, family: Family) -> Guarantee | None:
    if isinstance(policy, CalibratedOracle):
        return Guarantee(family.constant, 0.0, 0.0, "objective", "proved", "independent arms")
    if isinstance(policy, FairSDDTS) and policy.C == "paper":
        note = "the paper states it without proof; TV of the exponential races behind the worths"
        return Guarantee(2.0, 2 * policy.eps2, policy.delta, "objective", "claimed", note)
    return None


_OBJECTIVE = (FairSDTS, CalibratedOracle, FairSDDTS)


def _fair_sd_ts(
    policy: FairSDTS, family: Family, n_arms: int | None, n_levels: int
) -> Guarantee | None:
    if family.n_values(n_levels) is None:
        return None
    eps1 = family.constant
    eps2, status = 2 * policy.eps2, "proved"
    note = "for the empirical frequencies; the prior adds at most 1/(n+1), n = floor(C)+1"
    if policy.C == "union-with-prior":
        note = ""
    elif policy.C != "union":
        if n_arms is None:
            raise OptionError(f"C={policy.C!r}: give n_arms=, on which its guarantee depends.")
        constant = policy.exploration_constant(n_arms, family.name, n_levels)
        needed = union_C(1.0, policy.delta, n_arms=n_arms, family=family.name, n_levels=n_levels)
        reached = math.sqrt(needed / constant) if constant > 0 else math.inf
        if policy.C not in ("paper", "paper-worst-case"):
            eps2 = 2 * reached  # what the corrected formula says of this C
        elif reached > policy.eps2:
            eps1, status = 2.0, "observed"
            note = "the proof lacks a union bound over arms; never violated in simulation"
    if eps2 >= 1:
        return None
    return Guarantee(eps1, eps2, policy.delta, "objective", status, note)
