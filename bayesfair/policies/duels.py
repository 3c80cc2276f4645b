"""The paper's rule for duels, Fair_SD_DTS, with its open readings made explicit."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, fields, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.arguments import COUNT, REWARD, Kind, constructed, instance_of, takes, within
from bayesfair.base.checks import check_choice, check_in_range
from bayesfair.errors import BayesfairWarning, DataError
from bayesfair.policies import exploration

__all__ = ["DuelState", "FairSDDTS", "mle_worth", "paper_worth"]

_ITEMS = within(2, 1e9, whole=True)._replace(called="a whole number: a duel needs two items")
_POSITION = within(0, whole=True)
_STATE = instance_of("DuelState", called="a DuelState, as start and update return it")
_PAIRS = Kind(
    lambda value: isinstance(value, np.ndarray) and value.ndim >= 2 and value.dtype.kind in "iuf",
    "an array of pair probabilities, (..., k, k)",
)


@constructed
@dataclass(frozen=True, eq=False)
class DuelState:
    """What a duelling rule knows before a round.

    Parameters
    ----------
    wins : (k, k) array
        ``wins[i, j]``: known duels that item i won against item j.
    exploration : float
        A pair with at most this many known duels is still to be explored.
    """

    wins: NDArray[np.float64]
    exploration: float

    @property
    def n_items(self) -> int:
        """Number of items, k."""
        return int(self.wins.shape[0])


def paper_worth(wins: NDArray[np.float64], smoothing: float = 0.5) -> NDArray[np.float64]:
    r"""Return the paper's estimate of P(item is first), one value per item.

    .. math:: \hat P_i = \frac{1}{1 + \sum_{j \ne i} (1/\tilde p_{ij} - 1)}, \qquad
              \tilde p_{ij} = \frac{w_{ij} + s}{w_{ij} + w_{ji} + 2s}

    Parameters
    ----------
    wins : (k, k) array
        ``wins[i, j]``: duels that i won against j.
    smoothing : float
        s >= 0, half-wins added to each side; with 0, a pair never compared counts as 1/2.

    Returns
    -------
    (k,) array
        Sums to at most 1, and to 1 only where the frequencies are consistent with worths; one
        minus the sum measures the inconsistency, it is not a probability.

    Notes
    -----
    :math:`|\hat P_i - P_i| \le \sum_j |\tilde p_{ij} - p_{ij}|`, proved, for errors of any size.

    Examples
    --------
    >>> paper_worth(np.array([[0, 60, 75], [40, 0, 66], [25, 34, 0]]), smoothing=0).sum() <= 1
    np.True_
    """
    total = wins + wins.T + 2 * smoothing
    with np.errstate(divide="ignore", invalid="ignore"):
        p = np.where(total > 0, (wins + smoothing) / total, 0.5)
        odds = np.where(np.eye(wins.shape[0], dtype=bool), 0.0, 1 / p - 1)
        return np.asarray(1 / (1 + odds.sum(axis=1)))


def mle_worth(wins: NDArray[np.float64], smoothing: float = 0.5) -> NDArray[np.float64]:
    """Return the Bradley-Terry worths of most likely wins, `smoothing` half-wins added per side.

    Parameters
    ----------
    wins : (k, k) array
        ``wins[i, j]``: duels that i won against j.
    smoothing : float
        > 0, so that the maximum exists whatever the graph of wins.

    Returns
    -------
    (k,) array
        Positive, sums to 1.

    Examples
    --------
    >>> mle_worth(np.array([[0.0, 3.0], [1.0, 0.0]]), smoothing=1e-9).round(6)
    array([0.75, 0.25])
    """
    k = wins.shape[0]
    won = wins + smoothing * (1 - np.eye(k))
    total = won + won.T
    log_worth = np.zeros(k)
    for _ in range(100):
        p = 1 / (1 + np.exp(log_worth[None, :] - log_worth[:, None]))
        gradient = (won - total * p).sum(axis=1)
        weight = total * p * (1 - p)
        hessian = np.diag(weight.sum(axis=1)) - weight
        step = np.linalg.solve(hessian + 1 / k, gradient)  # 1/k: the sum of log worths is free
        # concave, but a full Newton step can overshoot where p is near 0 or 1
        log_worth += step * min(1.0, 2.0 / max(float(np.abs(step).max()), 1e-300))
        log_worth -= log_worth.mean()
        if np.abs(step).max() < 1e-11:
            break
    worth = np.exp(log_worth - log_worth.max())
    return np.asarray(worth / worth.sum())


@constructed
@dataclass(frozen=True)
class FairSDDTS:
    r"""Fair_SD_DTS: explore all pairs evenly, then select by the estimated chance of being first.

    Parameters
    ----------
    C : float or str
        Pairs with at most C known duels are to be explored: while there is one, all unordered
        pairs are equally likely, in either order. ``"paper"``: :math:`k^2` times the constant for
        single arms, its O() read as 1.
    eps2, delta : float
        For ``C="paper"`` only.
    exploitation : str
        The paper leaves open how two items are selected. ``"A"``: two independent draws from
        :math:`\hat P`, possibly the same item twice, which teaches nothing. ``"B"``: the top two
        of a sampled ranking, so two different items. ``"C"``: the left item from :math:`\hat P`,
        its challenger uniformly among the others.
    slot : str
        What counts as :math:`\pi_t(i)`: ``"first"`` (law of the left item) or ``"mean"`` (half the
        probability of taking part).
    estimator : str
        ``"paper"`` (normalised; see `paper_worth`) or ``"mle"`` (Bradley-Terry, `mle_worth`).
    smoothing : float
        Half-wins added to each side of each pair; > 0 for ``"mle"``.

    Notes
    -----
    Under ``"A"``, and under ``"C"`` with ``slot="first"``, the slot's law is :math:`\hat P`, so
    fairness regret is sublinear. Under ``"B"``, and under ``"C"`` with ``slot="mean"``, no item can
    have the share P* asks for if that exceeds about 1/2: regret is linear even with the true
    worths. Only simulated; the paper's proof is not given.

    References
    ----------
    .. [1] Liu et al. (2017), arXiv:1707.01875, Algorithm 3.

    Examples
    --------
    >>> rule = FairSDDTS(C=0)
    >>> state = rule.start(3)
    >>> rule.pair_probability(state).round(4)
    array([[0.    , 0.1667, 0.1667],
           [0.1667, 0.    , 0.1667],
           [0.1667, 0.1667, 0.    ]])
    >>> rule.selection_probability(state).round(4)
    array([0.3333, 0.3333, 0.3333])
    """

    name: ClassVar[str] = "fair_sd_dts"
    C: float | str = 50.0
    eps2: float = 0.1
    delta: float = 0.1
    exploitation: str = "A"
    slot: str = "first"
    estimator: str = "paper"
    smoothing: float = 0.5

    def __post_init__(self) -> None:
        """Validate once."""
        if isinstance(self.C, str):
            check_choice(self.C, "C", ("paper",))
        else:
            check_in_range(self.C, "C", 0, math.inf, high_open=True)
        check_in_range(self.eps2, "eps2", 0, math.inf, low_open=True, high_open=True)
        check_in_range(self.delta, "delta", 0, 1, low_open=True)
        check_choice(self.exploitation, "exploitation", ("A", "B", "C"))
        check_choice(self.slot, "slot", ("first", "mean"))
        check_choice(self.estimator, "estimator", ("paper", "mle"))
        low_open = self.estimator == "mle"
        check_in_range(self.smoothing, "smoothing", 0, math.inf, low_open=low_open, high_open=True)

    @takes(n_items=_ITEMS)
    def exploration_constant(self, n_items: int) -> float:
        """Return C as a number."""
        if not isinstance(self.C, str):
            return float(self.C)
        return exploration.paper_duel_C(self.eps2, self.delta, n_arms=n_items)

    @takes(n_items=_ITEMS, n_rounds=COUNT)
    def for_run(self, n_items: int, n_rounds: int) -> Self:
        """Return the rule; warn if exploration would fill the run."""
        constant = self.exploration_constant(n_items)
        needed = n_items * (n_items - 1) // 2 * (math.floor(constant) + 1)
        if needed >= n_rounds:
            warnings.warn(
                f"{self.name}: exploration needs at least {needed} duels (C = {constant:.6g} for "
                f"each of {n_items * (n_items - 1) // 2} pairs), the run has {n_rounds}: it "
                "explores throughout. Give a smaller C.",
                BayesfairWarning,
                stacklevel=3,
            )
        return self

    @takes(n_items=_ITEMS)
    def start(self, n_items: int) -> DuelState:
        """Return the state before the first duel of ``n_items`` >= 2 items."""
        return DuelState(np.zeros((n_items, n_items)), self.exploration_constant(n_items))

    @takes(state=_STATE)
    def exploring(self, state: DuelState) -> bool:
        """Return whether some pair has at most C known duels."""
        duels = state.wins + state.wins.T
        np.fill_diagonal(duels, np.inf)
        return bool(duels.min() <= state.exploration)

    @takes(state=_STATE)
    def worth(self, state: DuelState) -> NDArray[np.float64]:
        r"""Return :math:`\hat P`, normalised, ``(k,)``; uniform where every estimate is 0."""
        if self.estimator == "mle":
            return mle_worth(state.wins, self.smoothing)
        estimate = paper_worth(state.wins, self.smoothing)
        total = estimate.sum()
        return estimate / total if total > 0 else np.full(state.n_items, 1 / state.n_items)

    @takes(state=_STATE)
    def pair_probability(self, state: DuelState) -> NDArray[np.float64]:
        """Return P(left = i, right = j), ``(k, k)``, exact given the known duels; sums to 1."""
        k = state.n_items
        others = 1 - np.eye(k)
        if self.exploring(state):
            return others / (k * (k - 1))
        p = self.worth(state)
        if self.exploitation == "A":
            return np.outer(p, p)
        if self.exploitation == "C":
            return p[:, None] * others / (k - 1)
        rest = np.outer(p, p) * others
        left = rest.sum(axis=1, keepdims=True)
        # an item with worth 1 leaves nothing to the others: its rival is drawn evenly
        even = others / (k - 1)
        return np.asarray(p[:, None] * np.where(left > 0, rest / np.where(left > 0, left, 1), even))

    @takes(state=_STATE)
    def selection_probability(self, state: DuelState) -> NDArray[np.float64]:
        r"""Return :math:`\pi_t(i)` of the chosen `slot`, ``(k,)``; sums to 1."""
        return self.slot_probability(self.pair_probability(state))

    @takes(pairs=_PAIRS)
    def slot_probability(self, pairs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the law of the chosen `slot` from pair probabilities ``(..., k, k)``."""
        first = pairs.sum(axis=-1)
        return first if self.slot == "first" else (first + pairs.sum(axis=-2)) / 2

    @takes(state=_STATE, left=_POSITION, right=_POSITION, outcome=REWARD)
    def update(self, state: DuelState, left: int, right: int, outcome: float) -> DuelState:
        """Return the state after a duel: `outcome` 1 = left won, 0 = right won, NaN = not known.

        Raises
        ------
        DataError
            If the outcome is something else, or there is no such item. A duel of an item with
            itself teaches nothing.
        """
        if max(left, right) >= state.n_items:
            raise DataError(
                f"left={left!r}, right={right!r}: positions of the {state.n_items} items count "
                "from 0."
            )
        if left == right or np.isnan(outcome):
            return state
        if outcome not in (0.0, 1.0):
            raise DataError(f"outcome {outcome!r} of a duel must be 1 (left won) or 0 (right won).")
        wins = state.wins.copy()
        wins[left, right] += outcome
        wins[right, left] += 1 - outcome
        return replace(state, wins=wins)

    def describe(self) -> str:
        """Return name and parameters in one line."""
        parts = [f"{f.name}={getattr(self, f.name)!r}" for f in fields(self)]
        return f"{self.name}({', '.join(parts)})"
