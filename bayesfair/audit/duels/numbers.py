"""The numbers of an audit of duels as JSON-ready values under fixed keys."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair import __version__
from bayesfair.audit.criterion import finite_or_text
from bayesfair.audit.duels.judge import Truly, worst_pair
from bayesfair.audit.duels.record import DuelRecord
from bayesfair.audit.log.intervals import Estimate
from bayesfair.base.estimates import interval

__all__ = ["duel_numbers"]


def duel_numbers(record: DuelRecord) -> dict[str, Any]:
    """Return what `DuelAudit.to_dict` returns."""
    log, law, criterion, truth = record.log, record.law, record.criterion, record.truth
    regrets = record.judged.regrets
    n = log.n_rounds - criterion.from_round
    calibration: dict[str, Any] = {
        "subjective": _regret(regrets.subjective, n),
        "objective": _regret(regrets.objective, n),
    }
    if regrets.weights is not None:
        calibration |= {
            "effective_sample_size": regrets.weights.effective_size,
            "max_weight": regrets.weights.largest,
            "mean_weight": regrets.weights.mean,
        }
    return {
        "bayesfair": __version__,
        "verdict": record.verdict,
        "subjective": _subjective(record),
        "objective": _objective(record),
        "consistent": record.consistent,
        "checks": {
            name: {"item" if key == "arm" else key: v for key, v in check.to_dict().items()}
            for name, check in record.checks.items()
        },
        "log": {
            "source": log.source,
            "n_rounds": log.n_rounds,
            "n_judged": n,
            "n_items": log.n_items,
            "items": list(log.items),
            "selection": record.kind,
            "slot": log.slot,
            "n_windows": None if law.logged else len(law.windows.start),
            "n_skipped": log.n_skipped,
        },
        "criterion": {
            "eps1": criterion.eps1,
            "eps2": criterion.eps2,
            "eps2_reason": criterion.eps2_reason.replace("arms", "items"),
            "delta": criterion.delta,
            "from_round": criterion.from_round,
            "judge": criterion.judge,
            "divergence": "total_variation",
            "reward_divergence": "total_variation of exponential races",
            "family": "plackett_luce",
            "model": truth.model,
            "prior": truth.prior,
            "method": truth.method,
            "beliefs": truth.beliefs,
            "seed": int(truth.seed) if isinstance(truth.seed, (int, np.integer)) else None,
            "draws": len(truth.log_worth),
            "tolerance": criterion.tolerance,
        },
        "calibration": calibration,
        "items": _items(record),
        "frontier": [
            {
                "eps1": float(e),
                "subjective": float(record.judged.believed.low[at]),
                "objective": _needed(record.judged.true, at),
            }
            for at, e in enumerate(criterion.grid)
        ],
        "notices": [str(notice) for notice in record.notices],
        "findings": [notice.to_dict() for notice in record.notices],
    }


def _subjective(record: DuelRecord) -> dict[str, Any]:
    """Return the keys of the question under the beliefs of each round."""
    found, windows, at = record.judged.believed, record.law.windows, record.criterion.grid_index
    over, worst, items = np.flatnonzero(found.over), found.worst, record.log.items
    return {
        "verdict": record.verdicts["subjective"],
        "smallest_eps2": float(found.low[at]),
        "smallest_eps2_upper": float(found.high[at]),
        "worst": {
            "round": worst.round,
            "item": items[worst.item],
            "item_other": items[worst.other],
        }
        if worst.excess > record.criterion.tolerance
        else None,
        "first_violating_round": int(windows.start[over[0]]) if over.size else None,
        "last_violating_round": int(windows.stop[over[-1]]) - 1 if over.size else None,
        "n_violating_rounds": int(windows.length[over].sum()),
        "n_violating_windows": None if windows.logged else int(over.size),
        "n_duels_for_decision": record.needed.get("subjective"),
    }


def _objective(record: DuelRecord) -> dict[str, Any]:
    """Return the keys of the question under the true worths."""
    found, criterion, logged = record.judged.true, record.criterion, record.law.logged
    low, high = record.probability_fair
    pair = worst_pair(found.gap, record.truth.log_worth.mean(axis=0), criterion.eps1)
    i, j = (record.log.items[x[pair]] for x in np.triu_indices(record.log.n_items, 1))
    violates = found.first >= 0
    return {
        "verdict": record.verdicts["objective"],
        "probability_fair": low if logged else None,
        "probability_fair_lower": low,
        "probability_fair_upper": high,
        "smallest_eps2": _needed(found, criterion.grid_index),
        "worst": {"item": i, "item_other": j, "gap": float(found.shown[pair])},
        "first_violating_round": _of(found.first[violates]),
        "last_violating_round": _of(found.last[violates]),
        "n_violating_rounds": {**(_of(found.n) or {}), "exact": True},
        "n_violating_windows": None if logged else _of(found.n_windows),
        "n_duels_for_decision": record.needed.get("objective"),
    }


def _regret(found: Estimate, n: int) -> dict[str, Any]:
    """Return the keys of a regret per round over `n` rounds."""
    return {
        "regret_total": found.value * n,
        "regret_per_round": found.value,
        "lower": finite_or_text(found.lower),
        "upper": finite_or_text(found.upper),
        "exact": found.exact,
    }


def _needed(found: Truly, column: int) -> dict[str, float]:
    """Return mean and 95 % limits of the smallest eps2 at one eps1, from draws of its limits."""
    return {
        "mean": float(found.plug[:, column].mean()),
        "lower": interval(found.least[:, column])[0],
        "upper": interval(found.most[:, column])[1],
    }


def _of(values: NDArray[Any]) -> dict[str, float] | None:
    """Return mean and 95 % interval over the draws in which there is a value."""
    if not values.size:
        return None
    low, high = interval(values)
    return {"mean": float(values.mean()), "lower": low, "upper": high}


def _items(record: DuelRecord) -> list[dict[str, Any]]:
    log, windows, regrets = record.log, record.law.windows, record.judged.regrets
    first, last = log.seen()
    taken = np.bincount(np.concatenate([log.left, log.right]), minlength=log.n_items)
    if windows.logged:
        filled = (np.nan_to_num(windows.share) * windows.length[:, None]).sum(axis=0)
    else:
        scale = 1.0 if log.slot == "first" else 0.5
        filled = np.asarray(scale * log.taken(slice(int(windows.start[0]), None)))
    mean = filled / windows.length.sum()
    # an item without a window on offer has no chance of being best there, not one of 0
    absent = np.isnan(windows.share).all(axis=0)
    mean[absent & (taken == 0)] = np.nan
    return [
        {
            "item": item,
            "n": int(taken[i]),
            "p_best_subjective": None if absent[i] else finite_or_text(regrets.believed[i]),
            "p_best_objective": None if absent[i] else finite_or_text(regrets.true[i]),
            "selection_mean": None if np.isnan(mean[i]) else float(mean[i]),
            "first_round": int(first[i]) if first[i] >= 0 else None,
            "last_round": int(last[i]) if last[i] >= 0 else None,
        }
        for i, item in enumerate(log.items)
    ]
