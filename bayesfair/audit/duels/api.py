"""Audit of who gets compared: smooth and calibrated fairness of a log of duels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from bayesfair.audit.criterion import Criterion, eps2_options
from bayesfair.audit.duels.beliefs import path_of
from bayesfair.audit.duels.chosen import checked_propensity, chosen_regret
from bayesfair.audit.duels.findings import choices_check, duel_findings
from bayesfair.audit.duels.judge import Believed, Truly, judge_believed, judge_truly
from bayesfair.audit.duels.law import Windows, law_of, windows_of
from bayesfair.audit.duels.log import DuelRounds, duel_rounds
from bayesfair.audit.duels.numbers import (
    believed_numbers,
    frontier_numbers,
    interval,
    regret_of,
    true_numbers,
)
from bayesfair.audit.duels.opponents import opponent_findings
from bayesfair.audit.duels.result import DuelAudit
from bayesfair.audit.duels.sizes import sizes_of
from bayesfair.audit.duels.truth import truth_of
from bayesfair.base.arguments import takes
from bayesfair.base.checks import as_generator
from bayesfair.errors import DataError, OptionError

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["audit_comparisons"]

_ALPHA = 0.05  # simultaneous error of the limits of windowed shares


@takes()
def audit_comparisons(
    duels: Any,
    *,
    slot: str = "first",
    pair_probability: ArrayLike | None = None,
    selection_probability: ArrayLike | None = None,
    propensity: ArrayLike | None = None,
    offered: ArrayLike | None = None,
    window: int | None = None,
    eps1: float = 2.0,
    eps2: float | None = None,
    delta: float = 0.05,
    tolerance: float = 1e-9,
    from_round: int = 0,
    judge: str = "both",
    worth: Mapping[str, float] | ArrayLike | None = None,
    fit: xr.DataTree | None = None,
    model: str | None = None,
    prior_sd: float | None = None,
    draws: int | None = None,
    seed: Any = None,
) -> DuelAudit:
    r"""Audit who is compared with whom.

    It answers whether similar items are sampled similarly: how often they fill the slot. Whom they
    meet there is not part of the verdict; a notice (kind ``opponents``) says if items of like worth
    met others by different laws.

    Parameters
    ----------
    duels : Comparisons or DuelLog
        Duels in the order in which they were decided: ``read_comparisons(..., keep_rows=True)``,
        or what ``simulate_duels`` returned, whose pair probabilities are used.
    slot : {"first", "mean"}
        What counts as :math:`\pi_t(i)`: the law of the item on the left, or half the probability of
        taking part. Both sum to 1. Where sides are assigned at random the two agree.
    pair_probability : (T, k, k) or (k, k) array, optional
        ``[t, i, j]``: probability that round t puts item i on the left and j on the right. NaN =
        not on offer.
    selection_probability : (T, k) or (k,) array, optional
        Instead: the law of the slot. Without either, it is estimated in windows.
    propensity : (T,) array, optional
        Instead: only the probability with which the item on the left was put there. The regret is
        then an unbiased estimate; smooth fairness is judged from windows. Needs ``slot="first"``.
        The probability of the whole pair does not serve: the law of the slot is a sum over
        opponents, and only one of them was seen.
    offered : (T, k) array of bool, optional
        Which items were on offer. Without it, from NaN; in windows, from an item's first and last
        duel.
    window : int, optional
        Rounds per window of the estimate.
    eps1, eps2, delta, tolerance : float
        As in `audit`; eps2 None = min(0.05, 1/(2k)) for the k items on offer at most in one duel.
    from_round : int
        First duel that is judged, from 0; those before it serve the beliefs and the worths alone.
    judge : {"both", "subjective", "objective"}
        Whose verdict the top one is. ``"both"``: unfair if either is, fair only if both are; with
        known worths the objective one, since what the rule may have known beside the log is then
        no guess.
    worth : mapping or (k,) array, optional
        Known worths; excludes `fit` and `draws`.
    fit : xarray.DataTree, optional
        A posterior of the worths; default: ``fit(duels, model=model, prior_sd=prior_sd)``. The
        beliefs before a round are then modes of the same model: with its prior, scales, order
        effect, treatment of ties and covariates. Excludes `model`, `prior_sd`, `draws`.
    model : {"bradley_terry", "davidson", "plackett_luce"}, optional
        Of the worths, for both halves. Ties need ``"davidson"``, the default where there are ties.
    prior_sd : float
        Standard deviation of the normal prior on each log-worth, for both halves; default 1.
    draws : int
        Of the posterior; default 4000.
    seed : int or numpy Generator
        Required.

    Returns
    -------
    DuelAudit
        ``print`` it for a report; ``to_dict()`` for the numbers, keys as in `audit` with items in
        the place of arms.

    Raises
    ------
    OptionError, DataError, ProbabilityError

    Notes
    -----
    Comparisons identify worths, not reward distributions. The Plackett-Luce marginals are taken to
    be exponential races: :math:`D(r_i \| r_j) = b^{-1/(b-1)} - b^{-b/(b-1)}` for worths in ratio
    :math:`b \ge 1`, and P*(i) is the worth among the items on offer.

    * *objective*: over posterior draws of the worths, or at the known ones.
    * *subjective*: at the posterior mode of the fit's own model given the duels before (a plug-in,
      refreshed at 50 even distances and, early, whenever the log has grown by half).

    Without probabilities only the mean law of a window is known, within limits that hold together
    with probability 95 %. If every duel of a window keeps to its bound, the mean law keeps to the
    mean of the bounds, :math:`|\overline{\pi_i - \pi_j}| \le \epsilon_1 \overline{D_t(i, j)} +
    \epsilon_2`. A gap whose lower limit exceeds that mean shows unfairness in some duel. A window
    whose upper limits stay below is fair in the mean; that each duel was, shares cannot show.
    Between two refreshes a belief counts as anywhere between the two (the gap of every pair of
    log-worths between its two values), so that the mean bound has limits as well: unfair is held
    against its upper one, fair against its lower one. So the first window, in which beliefs start
    flat, does not keep a long log undetermined. Where the log leaves a question open,
    ``n_duels_for_decision`` says about how many duels like these decide it in half of the cases.

    With ``slot="mean"`` and two different items per duel no item can have more than 1/2, so that
    the regret is positive for any rule if one worth exceeds 1/2.

    Examples
    --------
    >>> from bayesfair.comparisons import Comparisons
    >>> items, even = ["a", "b", "c"], (1 - np.eye(3)) / 6
    >>> rng = np.random.default_rng(1)
    >>> pairs = [rng.permutation(3)[:2] for _ in range(60)]
    >>> left, right = ([items[pair[side]] for pair in pairs] for side in (0, 1))
    >>> log = Comparisons.from_duels(left, right, ["left"] * 60, items=items, keep_rows=True)
    >>> audit = audit_comparisons(log, pair_probability=even, seed=1)
    >>> audit.verdict, audit.to_dict()["objective"]["smallest_eps2"]["upper"]
    ('fair', 0.0)
    """
    if seed is None:
        raise OptionError(
            "seed= is required: draws of the worths that cannot be repeated are no audit.",
            kind="missing_option",
            column="seed",
        )
    as_generator(seed)
    asked: dict[str, Any] = {
        "eps1": eps1,
        "delta": delta,
        "tolerance": tolerance,
        "from_round": from_round,
        "judge": judge,
    }
    Criterion(**asked, **eps2_options(eps2, 2))  # what is wrong with it is said before any work
    rounds = duel_rounds(
        duels,
        slot=slot,
        pair_probability=pair_probability,
        selection_probability=selection_probability,
        offered=offered,
    )
    begin = int(from_round)
    _check_sizes(rounds, begin)
    if rounds.selection is not None and window is not None:
        raise OptionError(
            "window= is for logs without probabilities; these have them.",
            kind="unused_option",
            column="window",
            value=window,
        )
    chosen = None
    if propensity is not None:
        if rounds.selection is not None:
            raise OptionError(
                "the law of the slot is known; leave propensity= out.",
                kind="unused_option",
                column="propensity",
            )
        chosen = checked_propensity(propensity, duels, rounds)
    windows = None
    if rounds.selection is None:
        windows = windows_of(rounds, window, _ALPHA / 2, begin)
        if windows.most_offered < 2:
            raise DataError(
                "no two items were on offer throughout a window. Give a smaller window=, or "
                "offered=.",
                kind="no_pair",
            )
    truth = truth_of(
        rounds, worth=worth, tree=fit, model=model, prior_sd=prior_sd, draws=draws, seed=seed
    )
    path = path_of(rounds, truth.beliefs, begin, None if windows is None else windows.start)
    law = law_of(rounds, path.start) if windows is None else windows
    # the whole log is one more window: less often on offer throughout, but much sharper
    whole = None
    if windows is not None:
        whole = windows_of(rounds, rounds.n_rounds, _ALPHA / 2, begin).where_covered_by(windows)
    criterion = Criterion(**asked, **eps2_options(eps2, law.most_offered))
    believed = judge_believed(law, whole, path, criterion)
    true = judge_truly(law, whole, truth.log_worth, criterion)
    subjective = believed_numbers(believed, law, rounds.items, criterion)
    centre = truth.log_worth.mean(axis=0)
    objective = true_numbers(true, law, rounds.items, centre, criterion)
    open_ones = [part for part in (subjective, objective) if part["verdict"] == "undetermined"]
    sizes = None
    if windows is not None and open_ones:
        sizes = sizes_of(rounds, law, truth, path, window=window, alpha=_ALPHA / 2)
    for name, part in (("subjective", subjective), ("objective", objective)):
        asks = sizes is not None and part["verdict"] == "undetermined"
        part["n_duels_for_decision"] = sizes.needed(name, criterion) if asks and sizes else None
    notices = [
        *duel_findings(rounds, law, believed, criterion, estimated=chosen is not None),
        *opponent_findings(rounds, law, truth, criterion),
    ]
    fits, more = choices_check(rounds)
    checks = {"choices": fits}
    notices = [*more, *notices]
    if chosen is not None:
        calibration, checks["propensities"], more = chosen_regret(rounds, truth, path, chosen)
        notices += more
    else:
        calibration = _calibration(law, believed, true, known=truth.known)
    return DuelAudit.make(
        rounds,
        law,
        criterion,
        truth,
        subjective=subjective,
        objective=objective,
        checks=checks,
        calibration=calibration,
        believed=believed.mass,
        p_best=true.mass,
        frontier=frontier_numbers(believed, true, criterion),
        notices=notices,
        chosen=chosen is not None,
    )


def _check_sizes(rounds: DuelRounds, begin: int) -> None:
    if rounds.n_items < 2:
        raise DataError("an audit of who is compared needs at least two items.", kind="few_items")
    if begin >= rounds.n_rounds:
        raise OptionError(
            f"from_round={begin} leaves no duel to judge: the log has {rounds.n_rounds}, counted "
            "from 0.",
            kind="nothing_judged",
            column="from_round",
            value=begin,
        )


def _calibration(law: Windows, believed: Believed, true: Truly, *, known: bool) -> dict[str, Any]:
    """Return the regrets of a logged law, or of the windows' shares with their lower limits."""
    n = int(law.length.sum())
    mean = float(true.regret.mean())
    if law.logged:
        low, high = interval(true.regret)
        return {
            "subjective": regret_of(believed.regret, None, None, n=n, exact=True),
            "objective": regret_of(mean, low, high, n=n, exact=known),
        }
    lower = float(np.quantile(true.lower, 0.025))
    return {
        "subjective": regret_of(believed.regret, believed.lower, None, n=n, exact=False),
        "objective": regret_of(mean, lower, None, n=n, exact=False),
    }
