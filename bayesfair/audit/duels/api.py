"""Audit of who gets compared: smooth and calibrated fairness of a log of duels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from bayesfair.audit.criterion import Criterion, eps2_options
from bayesfair.audit.duels.beliefs import checkpoints, path_of
from bayesfair.audit.duels.findings import (
    choices_check,
    duel_findings,
    propensities_check,
    sides_unknown,
)
from bayesfair.audit.duels.judge import judge as judge_log
from bayesfair.audit.duels.law import law_of
from bayesfair.audit.duels.opponents import opponent_findings
from bayesfair.audit.duels.record import DuelRecord
from bayesfair.audit.duels.result import DuelAudit
from bayesfair.audit.duels.sizes import duels_needed
from bayesfair.audit.duels.truth import truth_of
from bayesfair.base.arguments import takes
from bayesfair.base.checks import as_generator
from bayesfair.base.notices import Notice, unique
from bayesfair.base.progress import tells
from bayesfair.comparisons import Comparisons, DuelLog, one_law
from bayesfair.errors import DataError, OptionError
from bayesfair.typing import Progress, Seed

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["audit_comparisons"]


@takes()
@tells
def audit_comparisons(
    duels: Comparisons | DuelLog,
    *,
    slot: str | None = None,
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
    seed: Seed | None = None,
    sampler: Mapping[str, Any] | None = None,
    progress: Progress = None,
) -> DuelAudit:
    r"""Audit who is compared with whom.

    It answers whether similar items are sampled similarly: how often they fill the slot. Whom they
    meet there is not part of the verdict; a notice (kind ``opponents``) says if items of like worth
    met others by different laws.

    Parameters
    ----------
    duels : DuelLog or Comparisons
        Duels in the order in which they were decided: what `read_duels` or `simulate_duels`
        returned, or ``Comparisons.from_duels(..., keep_rows=True)``. Probabilities given here take
        the place of the log's own.
    slot : {"first", "mean"}, optional
        What counts as :math:`\pi_t(i)`: the law of the item on the left, or half the probability of
        taking part. Both sum to 1. Where sides are assigned at random the two agree. Default: that
        of the log, which is ``"first"``, and ``"mean"`` of duels of winner and loser: these do not
        say who stood on the left (a notice of kind ``sides_unknown``).
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
    sampler : mapping, optional
        Of the fit that is made here, as in `bayesfair.fit`; excluded by `worth` and `fit`.
    progress : bool or callable, optional
        How many chains of the fit and beliefs before rounds are done, as in `audit`.

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
    as_generator(seed)
    asked: dict[str, Any] = {
        "eps1": eps1,
        "delta": delta,
        "tolerance": tolerance,
        "from_round": from_round,
        "judge": judge,
    }
    Criterion(**asked, **eps2_options(eps2, 2))  # what is wrong with it is said before any work
    given = {
        "pair_probability": pair_probability,
        "selection_probability": selection_probability,
        "propensity": propensity,
        "offered": offered,
    }
    log = _log_of(duels, slot, {name: v for name, v in given.items() if v is not None})
    _check_sizes(log, int(from_round))
    cuts = checkpoints(log.n_rounds, int(from_round))
    law = law_of(log, cuts, window)
    truth = truth_of(
        log, worth=worth, tree=fit, model=model, prior_sd=prior_sd, draws=draws, seed=seed,
        sampler=sampler,
    )  # fmt: skip
    path = path_of(log, truth.beliefs, np.union1d(cuts, law.edges))
    criterion = Criterion(**asked, **eps2_options(eps2, law.windows.most_offered))
    judged = judge_log(log, law, path, truth, criterion)
    needed, unknown = duels_needed(log, law, truth, path, judged, criterion)
    fits, notices = choices_check(log)
    checks = {"choices": fits}
    if slot is None and not log.comparisons.sides:
        notices.append(sides_unknown(log))
    notices += [
        *duel_findings(log, law, judged, criterion),
        *unknown,
        *opponent_findings(log, law.windows, truth, criterion),
    ]
    if judged.regrets.weights is not None:
        checks["propensities"], more = propensities_check(judged.regrets.weights)
        notices += more
    said = unique((*log.comparisons.notices, *truth.notices, *notices))
    return DuelAudit(
        DuelRecord(log, law, criterion, truth, judged, checks, needed, tuple(map(Notice.of, said)))
    )


def _log_of(duels: Comparisons | DuelLog, slot: str | None, given: dict[str, Any]) -> DuelLog:
    """Return the log, with what is given of its rule beside it."""
    one_law(given.get("pair_probability"), given.get("selection_probability"))
    own: dict[str, Any] = {} if slot is None else {"slot": slot}
    if isinstance(duels, Comparisons):
        return DuelLog.from_comparisons(duels, **given, **own)
    if not isinstance(duels, DuelLog):
        raise OptionError(
            f"audit_comparisons needs a DuelLog or Comparisons, got {type(duels).__name__}. Read "
            "duels with bayesfair.read_duels.",
            kind="wrong_kind",
            column="duels",
        )
    if {"pair_probability", "selection_probability"} & given.keys():
        given = {"pair_probability": None, "selection_probability": None} | given
    return replace(duels, **given, **own)


def _check_sizes(log: DuelLog, begin: int) -> None:
    if not log.n_rounds:
        raise DataError(
            "the log holds no duel, so nothing can be audited: give one with rows.",
            kind="empty",
            source=log.source,
        )
    if log.n_items < 2:
        raise DataError(
            "an audit of who is compared needs at least two items: read all duels of the log.",
            kind="few_items",
        )
    if begin >= log.n_rounds:
        raise OptionError(
            f"from_round={begin} leaves no duel to judge: the log has {log.n_rounds}, counted "
            "from 0.",
            kind="nothing_judged",
            column="from_round",
            value=begin,
        )
