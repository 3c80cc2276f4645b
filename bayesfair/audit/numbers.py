"""The numbers of an audit as JSON-ready values under fixed keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.audit.criterion import QUESTIONS, finite_or_text
from bayesfair.audit.log.context_findings import thin_share
from bayesfair.audit.log.intervals import Estimate, regret_of
from bayesfair.audit.log.monte_carlo import monte_carlo_numbers
from bayesfair.audit.log.prior_findings import learned_numbers
from bayesfair.base.estimates import interval
from bayesfair.base.labels import in_order
from bayesfair.base.notices import Notice
from bayesfair.inference.carried import Carried
from bayesfair.inference.contract import label_of

if TYPE_CHECKING:
    from bayesfair.audit.record import Record

__all__ = ["arm_numbers", "audit_numbers", "calibration_numbers"]


def audit_numbers(audit: Record) -> dict[str, Any]:
    """Return what `Audit.to_dict` returns."""
    summary, criterion, question = audit.summary, audit.criterion, audit.question
    sums, n = summary.sums, summary.sums.n_rounds
    out: dict[str, Any] = {
        "bayesfair": audit.version,
        "verdict": audit.verdict,
        "subjective": _subjective(audit),
        "objective": _objective(audit),
        "consistent": audit.consistent,
        "checks": {name: check.to_dict() for name, check in audit.checks.items()},
        "log": {
            "source": summary.facts.source,
            "n_rounds": summary.n_rounds,
            "n_judged": n,
            "n_arms": len(summary.arms),
            "arms": list(summary.arms),
            "selection": summary.selection,
            "order": "time" if summary.facts.by_time else "rows",
            "n_skipped": summary.facts.n_skipped,
            "n_unobserved": int(sums.n_unobserved.sum()),
            "unused_columns": list(summary.facts.unused_columns),
        },
        "criterion": {
            "eps1": criterion.eps1,
            "eps2": criterion.eps2,
            "eps2_reason": criterion.eps2_reason,
            "delta": criterion.delta,
            "divergence": criterion.divergence,
            "reward_divergence": criterion.reward_divergence,
            "family": audit.family,
            "model": audit.model,
            "prior": audit.prior,
            "prior_learned": learned_numbers(summary, criterion),
            "beliefs_model": label_of(question.beliefs_model or "conjugate"),
            "missing": _missing(summary),
            "seed": question.seed,
            "draws": question.draws,
            "tolerance": criterion.tolerance,
            "from_round": criterion.from_round,
            "judge": criterion.judge,
            "propensity_draws": criterion.propensity_draws,
        },
        "calibration": calibration_numbers(audit),
        "arms": arm_numbers(audit),
        "frontier": _frontier(audit),
        "notices": [str(notice) for notice in audit.findings],
        "findings": [Notice.of(notice).to_dict() for notice in audit.findings],
    }
    if audit.arm_groups is not None:
        out["arm_groups"] = audit.arm_groups.table(criterion, summary.cells.values())
    if summary.start.given_context:
        out |= {"context": _context(audit), "cells": _cells(audit)}
    if criterion.propensity_draws is not None:
        out["monte_carlo"] = monte_carlo_numbers(summary, audit.probability_fair_between)
    return out | audit.extra


def _missing(summary: Any) -> str:
    """Return how missing rewards were treated: a log that was read in memory may lack some."""
    said = summary.facts.missing
    return "unobserved" if said == "error" and summary.sums.n_unobserved.any() else said


def _context(audit: Record) -> dict[str, Any]:
    """Return what beliefs are given, and what the log amounts to against beliefs that are not."""
    summary, criterion = audit.summary, audit.criterion
    checks = () if audit.objective is None else audit.objective.certificates
    without = None
    if summary.without is not None:
        known, n = summary.selection != "none", summary.sums.n_rounds
        needed = summary.without.needed
        without = {
            "smallest_eps2": finite_or_text(needed) if audit.auditable else None,
            "subjective_verdict": criterion.believed(needed if audit.auditable else None),
            "regret_per_round": summary.without.regret / n if known and n else None,
        }
    return {
        "columns": list(summary.start.beliefs.columns),
        "model": summary.start.beliefs.model,
        "n_cells": len(summary.contexts),
        "thin_share": thin_share(summary),
        "without": without,
        "switched": isinstance(summary.start.beliefs.shared, Carried),
        "certificates": [{
            "n_rounds": check.n_rounds,
            "khat": finite_or_text(check.khat.max()),
            "effective_draws": float(check.ess.min()),
            "refitted": [arm for arm, x in zip(summary.arms, check.refitted, strict=True) if x],
            "difference": check.difference,
            "share_of_rounds": check.share,
        } for check in checks],
    }  # fmt: skip


def _cells(audit: Record) -> list[dict[str, Any]]:
    """Return the table of contexts."""
    summary, criterion, full = audit.summary, audit.criterion, audit.auditable
    true = {} if audit.objective is None else audit.objective.cells
    found = []
    of = summary.end.beliefs.featured
    labels = in_order(summary.contexts)
    for label in labels if of is None else of.design.in_order(labels):
        seen = summary.contexts[label]
        needed = seen.needed if full else None
        under = true.get(label)
        regret = None if under is None else under.regret
        estimate = regret_of(summary.selection, seen.n_rounds, seen.regret)
        found.append({
            "context": label,
            "n_rounds": seen.n_rounds,
            "subjective_verdict": audit.believed(needed),
            "smallest_eps2": finite_or_text(needed),
            "n_violating_rounds": criterion.count_at(seen.n_violating) if full else None,
            "regret_per_round": None if estimate is None else estimate.value,
            "regret_total": None if estimate is None else estimate.value * seen.n_rounds,
            "probability_fair": None if under is None else finite_or_text(under.probability_fair),
            "regret_per_round_objective": None if regret is None else regret.value,
        })  # fmt: skip
    return found


def calibration_numbers(audit: Record) -> dict[str, Any]:
    """Return the fairness regret under both, and the weights where one probability was logged."""
    summary = audit.summary
    n = summary.sums.n_rounds
    lower_subjective = lower_objective = None
    if summary.selection == "none" and n:
        distance, noise = summary.share_distance()
        lower_subjective = max(distance - noise, 0.0)
        if audit.objective is not None and audit.objective.lower_bound is not None:
            low = float(np.quantile(audit.objective.lower_bound, 0.025))
            lower_objective = max(low - noise, 0.0)
    weights = summary.terms.weights
    ess = weights.total**2 / weights.squares if weights.n and weights.squares else None
    return {
        "subjective": _calibration(audit, audit.regret, lower_subjective),
        "objective": _calibration(audit, audit.regret_objective, lower_objective),
        "effective_sample_size": finite_or_text(ess),
        "max_weight": finite_or_text(weights.largest) if weights.n else None,
        "mean_weight": finite_or_text(weights.total / weights.n) if weights.n else None,
    }


def _calibration(audit: Record, estimate: Estimate | None, lower: float | None) -> dict[str, Any]:
    if estimate is None:
        return {
            "regret_total": None,
            "regret_per_round": None,
            "lower": finite_or_text(lower),
            "upper": None,
            "exact": False,
        }
    return {
        "regret_total": finite_or_text(estimate.value * audit.summary.sums.n_rounds),
        "regret_per_round": finite_or_text(estimate.value),
        "lower": finite_or_text(estimate.lower),
        "upper": finite_or_text(estimate.upper),
        "exact": estimate.exact,
    }


def _worst(audit: Record) -> dict[str, Any] | None:
    worst = audit.summary.pairs.worst
    if worst is None or worst.arm < 0:
        return None
    found = {
        "round": worst.round,
        "row": worst.row,
        "arm": audit.summary.arms[worst.arm],
        "arm_other": audit.summary.arms[worst.arm_other],
    }
    # a row means nothing without its file, where the log came in several
    return found if worst.source == audit.summary.facts.source else found | {"source": worst.source}


def _subjective(audit: Record) -> dict[str, Any]:
    found = audit.violations
    return {
        "verdict": audit.subjective_verdict,
        "question": QUESTIONS["subjective"],
        "n_violating_rounds": None if found is None else found.n,
        "first_violating_round": None if found is None or found.first < 0 else found.first,
        "last_violating_round": None if found is None or found.last < 0 else found.last,
        "smallest_eps2": finite_or_text(audit.smallest_eps2),
        "worst": _worst(audit),
    }


def _objective(audit: Record) -> dict[str, Any] | None:
    objective = audit.objective
    if objective is None:
        return None
    needed, found = objective.smallest_eps2, objective.violations
    eps2 = n = first = last = None
    if needed is not None:
        eps2 = _spread(needed[:, audit.criterion.grid_index])
    if found is not None:
        n = _spread(found.n) | {"exact": objective.counted, "draws": len(found.n)}
        violates = found.first >= 0
        if violates.any():  # a draw without a violating round has no first one
            first, last = _spread(found.first[violates]), _spread(found.last[violates])
    return {
        "verdict": audit.objective_verdict,
        "question": QUESTIONS["objective"],
        "probability_fair": finite_or_text(audit.probability_fair),
        "converged": audit.converged,
        "n_violating_rounds": n,
        "first_violating_round": first,
        "last_violating_round": last,
        "smallest_eps2": eps2,
    }


def arm_numbers(audit: Record) -> list[dict[str, Any]]:
    """Return the table of arms."""
    summary = audit.summary
    sums, n = summary.sums, max(summary.sums.n_rounds, 1)
    observed = sums.plays - sums.n_unobserved
    best = None if audit.objective is None else audit.objective.p_best_mean
    shares = sums.selection if summary.selection == "full" else sums.plays
    known = summary.selection != "chosen"
    return [
        {
            "arm": arm,
            "n": int(sums.plays[i]),
            "n_unobserved": int(sums.n_unobserved[i]),
            "reward_mean": float(sums.reward_total[i] / observed[i]) if observed[i] else None,
            "p_best_subjective": float(sums.p_best[i] / n) if sums.n_rounds else None,
            "p_best_objective": None if best is None or not sums.n_rounds else float(best[i]),
            "selection_mean": float(shares[i] / n) if known and sums.n_rounds else None,
        }
        for i, arm in enumerate(summary.arms)
    ]


def _frontier(audit: Record) -> list[dict[str, Any]]:
    needed = None if audit.objective is None else audit.objective.smallest_eps2
    return [
        {
            "eps1": eps1,
            "subjective": finite_or_text(audit.summary.pairs.frontier[e])
            if audit.auditable
            else None,
            "objective": None if needed is None else _spread(needed[:, e]),
        }
        for e, eps1 in enumerate(audit.criterion.grid)
    ]


def _spread(draws: NDArray[Any]) -> dict[str, Any]:
    lower, upper = interval(draws)
    return {
        "mean": finite_or_text(draws.mean()),
        "lower": finite_or_text(lower),
        "upper": finite_or_text(upper),
    }
