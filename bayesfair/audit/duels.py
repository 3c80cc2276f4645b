"""Audit of who gets compared: smooth and calibrated fairness of a log of duels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesfair.audit.criterion import Criterion, worst_verdict
from bayesfair.audit.duel_beliefs import beliefs_at, checkpoints, options_of
from bayesfair.audit.duel_bounds import (
    frontier_of,
    gaps,
    interval,
    needed_of,
    regret_of,
    regret_per_draw,
    runs,
    smallest,
    verdict_of,
    violations,
    worst_of,
)  # fmt: skip
from bayesfair.audit.duel_chosen import checked_propensity, with_chosen
from bayesfair.audit.duel_log import DuelRounds, duel_rounds, windows_of
from bayesfair.audit.duel_result import DuelAudit, Truth, named, slot_notices
from bayesfair.audit.duel_windows import audit_windows
from bayesfair.checks import as_generator, as_numbers, check_in_range
from bayesfair.errors import ArmError, DataError, OptionError
from bayesfair.kernels.races import race_total_variation

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["audit_comparisons"]

FloatArray = NDArray[np.float64]

_ALPHA = 0.05  # simultaneous error of the limits of windowed shares


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
    eps2: float = 0.05,
    delta: float = 0.05,
    tolerance: float = 1e-9,
    worth: Mapping[str, float] | ArrayLike | None = None,
    fit: xr.DataTree | None = None,
    model: str | None = None,
    prior_sd: float | None = None,
    draws: int | None = None,
    seed: Any = None,
) -> DuelAudit:
    r"""Audit who is compared with whom.

    It answers whether similar items are sampled similarly.

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
        As in `audit`.
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
    * *subjective*: at the posterior mode given the duels before the window of rounds (a plug-in;
      beliefs are refreshed at most 50 times).

    Shares of windows are means over rounds. They can show unfairness: their lower limits hold
    together with probability 95 %. They cannot show that each round was fair, only the windows.

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
    criterion = Criterion(eps1=eps1, eps2=eps2, delta=delta, tolerance=tolerance)
    as_generator(seed)
    rounds = duel_rounds(
        duels,
        slot=slot,
        pair_probability=pair_probability,
        selection_probability=selection_probability,
        offered=offered,
    )
    if rounds.n_items < 2:
        raise DataError("an audit of who is compared needs at least two items.")
    if rounds.selection is not None and window is not None:
        raise OptionError("window= is for logs without probabilities; these have them.")
    chosen = None
    if propensity is not None:
        if rounds.selection is not None:
            raise OptionError("the law of the slot is known; leave propensity= out.")
        chosen = checked_propensity(propensity, duels, rounds)
    truth = _truth(
        rounds, worth=worth, tree=fit, model=model, prior_sd=prior_sd, draws=draws, seed=seed
    )
    if rounds.selection is not None:
        return _full(rounds, criterion, truth)
    # the whole log is one more window: less often on offer throughout, but much sharper
    windows = windows_of(rounds, window, _ALPHA / 2)
    whole = windows_of(rounds, rounds.n_rounds, _ALPHA / 2).where_covered_by(windows)
    audit = audit_windows(rounds, criterion, truth, windows, whole)
    return audit if chosen is None else with_chosen(audit, rounds, truth, chosen)


def _truth(
    rounds: DuelRounds,
    *,
    worth: Any,
    tree: Any,
    model: str | None,
    prior_sd: float | None,
    draws: int | None,
    seed: Any,
) -> Truth:
    """Return the worths of the objective half and the model of the beliefs."""
    given = {"model": model, "prior_sd": prior_sd, "draws": draws}
    if prior_sd is not None:
        check_in_range(prior_sd, "prior_sd", 0, np.inf, low_open=True, high_open=True)
    if draws is not None:
        check_in_range(draws, "draws", 1, 1e8)
    own: dict[str, Any] = {"model": model, "prior_sd": 1.0 if prior_sd is None else prior_sd}
    _check_model(model)
    if worth is not None:
        if tree is not None or draws is not None:
            raise OptionError("worth= is the known truth; it excludes fit= and draws=.",
                              kind="unused_option", column="worth")  # fmt: skip
        beliefs = options_of(rounds.comparisons, tree=None, **own)[0]
        return Truth(_known(rounds, worth), "known worths", "none", "known", seed, beliefs)
    if tree is None:
        from bayesfair.inference import fit as fit_worths

        n_draws = 4000 if draws is None else draws
        tree = fit_worths(rounds.comparisons, **own, draws=n_draws, seed=seed)
    else:
        for name, value in given.items():
            if value is not None:
                raise OptionError(
                    f"{name}={value!r} belongs to a fit that is made here; fit= has its own.",
                    kind="unused_option",
                    column=name,
                )
    if not hasattr(tree, "children"):
        raise OptionError(f"fit={tree!r:.60} must be a tree that bayesfair.fit returned.")
    _check_model(tree.attrs.get("model"))
    if "posterior" not in tree.children:
        raise OptionError("fit= has no draws; give the fit a finite prior_sd.")
    if "log_worth" not in tree["posterior"]:
        raise OptionError("fit= holds no log_worth; it must be a fit of comparisons.")
    found = tree["posterior"].to_dataset()["log_worth"]
    known = [str(item) for item in found["item"].values]
    lacking = [item for item in rounds.items if item not in known]
    if lacking:
        raise ArmError(f"fit= has no item {lacking[0]!r}.")
    values = found.transpose("chain", "draw", "item").values.reshape(-1, len(known))
    at = [known.index(item) for item in rounds.items]
    beliefs, notices = options_of(rounds.comparisons, tree=tree)
    model_name, prior, method = (
        str(tree.attrs.get(name, "not said")) for name in ("model", "prior", "method")
    )
    return Truth(values[:, at], model_name, prior, method, seed, beliefs, tuple(notices))


def _check_model(model: Any) -> None:
    if model == "thurstone":
        raise OptionError(
            "the audit needs Plackett-Luce worths; thurstone has normal performances. Use "
            "model='bradley_terry' or 'davidson'.",
            kind="wrong_model",
            column="model",
            value=model,
        )


def _known(rounds: DuelRounds, worth: Any) -> FloatArray:
    """Return the logarithms of known worths, ``(1, k)``."""
    if isinstance(worth, Mapping):
        lacking = [item for item in rounds.items if item not in worth]
        if lacking:
            raise ArmError(f"worth= has no value for {lacking[0]!r} ({len(lacking)} lacking).")
        worth = [worth[item] for item in rounds.items]
    value = as_numbers(worth, "worth")
    if value.shape != (rounds.n_items,) or not np.all(np.isfinite(value) & (value > 0)):
        raise DataError(f"worth= must be {rounds.n_items} positive finite numbers.")
    return np.asarray(np.log(value)[None, :])


def _full(rounds: DuelRounds, criterion: Criterion, truth: Truth) -> DuelAudit:
    assert rounds.selection is not None
    selection, eps1 = rounds.selection, np.array(criterion.grid)
    start, length = runs(selection)
    limit = criterion.eps2 + criterion.tolerance
    at = criterion.grid_index
    # subjective: beliefs of the window in which a round lies
    ends = checkpoints(rounds.n_rounds)
    beliefs = beliefs_at(rounds, ends, truth.beliefs)
    frontier, violating, regret = np.zeros(len(eps1)), 0, 0.0
    worst: tuple[float, int, int, int] = (0.0, 0, 0, 0)
    believed = np.zeros(rounds.n_items)
    for c, begin in enumerate(ends.tolist()):
        end = int(ends[c + 1]) if c + 1 < len(ends) else rounds.n_rounds
        part = selection[begin:end]
        first, run = runs(part)
        rows = part[first]
        frontier = np.maximum(frontier, smallest(gaps(rows), beliefs[c : c + 1], eps1)[0])
        divergence = race_total_variation(beliefs[c][:, None] - beliefs[c])
        top, place = violations(rows, criterion.eps1 * divergence)
        violating += int(run[top > limit].sum())
        r = int(top.argmax())
        if top[r] > worst[0]:
            i, j = divmod(int(place[r]), rounds.n_items)
            i, j = (i, j) if rows[r, i] >= rows[r, j] else (j, i)
            worst = (float(top[r]), begin + int(first[r]), i, j)
        total, mass = regret_per_draw(rows, run, beliefs[c : c + 1])
        regret += float(total[0])
        believed += mass * (end - begin)
    # objective
    rows = selection[start]
    gap = gaps(rows)
    needed = smallest(gap, truth.log_worth, eps1)
    fair = float((needed[:, at] <= limit).mean())
    totals, p_best = regret_per_draw(rows, length, truth.log_worth)
    per_round = interval(totals / rounds.n_rounds)
    objective_verdict = verdict_of(fair, fair, criterion)
    subjective_verdict = "fair" if frontier[at] <= limit else "unfair"
    mean = np.nansum(np.where(np.isnan(rows), 0.0, rows) * length[:, None], axis=0) / length.sum()
    exact = len(truth.log_worth) == 1
    return DuelAudit.make(
        rounds,
        criterion,
        truth,
        verdict=worst_verdict(subjective_verdict, objective_verdict),
        subjective={
            "smallest_eps2": float(frontier[at]),
            "worst": named(rounds, worst) if worst[0] > 0 else None,
            "n_violating_rounds": violating,
            "verdict": subjective_verdict,
        },
        objective={
            "probability_fair": fair,
            "probability_fair_lower": fair,
            "probability_fair_upper": fair,
            "smallest_eps2": needed_of(needed, needed, needed, at),
            "worst": worst_of(rounds.items, gap, gap, truth.log_worth.mean(axis=0), criterion.eps1),
            "verdict": objective_verdict,
        },
        calibration={
            "subjective": regret_of(regret, regret / rounds.n_rounds, None, None, True),
            "objective": regret_of(
                float(totals.mean()),
                per_round["mean"],
                per_round["lower"],
                per_round["upper"],
                exact,
            ),
        },
        p_best=p_best,
        believed=believed / rounds.n_rounds,
        selection_mean=mean,
        frontier=frontier_of(eps1, frontier, needed, needed, needed),
        windows=None,
        notices=[*_play_notices(rounds), *slot_notices(rounds)],
    )


def _play_notices(rounds: DuelRounds) -> list[str]:
    """Compare how often each item filled the slot with the sum of its probabilities."""
    assert rounds.selection is not None
    scale = 1 if rounds.slot == "first" else 2
    p = np.clip(np.nan_to_num(rounds.selection) * scale, 0.0, 1.0)
    expected, variance = p.sum(axis=0), (p * (1 - p)).sum(axis=0)
    if rounds.slot == "mean" and (rounds.left == rounds.right).any():
        return []  # an item compared with itself counts twice: no such simple variance
    z = (rounds.taken(slice(None)) - expected) / np.sqrt(np.maximum(variance, 1e-12))
    # two-sided p < .001 / k by the normal tail
    from scipy.special import ndtri

    bound = float(-ndtri(0.0005 / rounds.n_items))
    bad = np.flatnonzero(np.abs(z) > bound)
    if not bad.size:
        return []
    i = int(bad[np.argmax(np.abs(z[bad]))])
    return [
        f"the logged probabilities do not match the duels: {rounds.items[i]!r} filled the slot "
        f"{int(rounds.taken(slice(None))[i])} times, expected {expected[i]:.1f} (z = {z[i]:.1f}; "
        f"{bad.size} of {rounds.n_items} items beyond {bound:.1f}). Check sides and logging."
    ]
