"""What is said of each of many logs: a short record, under the keys of `Audit.to_dict`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bayesfair.audit.criterion import finite_or_text
from bayesfair.audit.numbers import calibration_numbers

if TYPE_CHECKING:
    from bayesfair.audit.record import Record

__all__ = ["brief_numbers", "brief_record"]

_CALIBRATION = ("regret_per_round", "lower", "upper", "exact")
_LOG = ("source", "n_rounds", "n_judged", "n_unobserved", "n_skipped", "selection", "order")


def brief_record(
    verdicts: tuple[str, str, str | None],
    smallest_eps2: Any,
    probability_fair: Any,
    consistent: bool,
    tolerance: float,
    regret: tuple[Any, ...],
    log: tuple[Any, ...],
) -> dict[str, Any]:
    """Return the short record of one log.

    Parameters
    ----------
    verdicts : tuple
        At the top, under the beliefs, under the true rewards (None = left out).
    smallest_eps2, probability_fair : float, str or None
    consistent : bool
    tolerance : float
        The one that was used: logs differ in it where it follows from their own resolution.
    regret : tuple
        Regret per round under the beliefs, its lower and upper limit, whether it is exact.
    log : tuple
        Source, rounds, those judged, without a reward, left out; what was logged; order.
    """
    top, believed, true = verdicts
    objective = {"verdict": true, "probability_fair": probability_fair}
    return {
        "verdict": top,
        "subjective": {"verdict": believed, "smallest_eps2": smallest_eps2},
        "objective": None if true is None else objective,
        "consistent": consistent,
        "criterion": {"tolerance": tolerance},
        "calibration": {"subjective": dict(zip(_CALIBRATION, regret, strict=True))},
        "log": dict(zip(_LOG, log, strict=True)),
    }


def brief_numbers(audit: Record) -> dict[str, Any]:
    """Return the short record of an audit."""
    facts, sums, calibration = audit.summary.facts, audit.summary.sums, calibration_numbers(audit)
    true = None if audit.objective is None else audit.objective_verdict
    found = brief_record(
        (audit.verdict, audit.subjective_verdict, true),
        finite_or_text(audit.smallest_eps2),
        finite_or_text(audit.probability_fair),
        audit.consistent,
        audit.criterion.tolerance,
        tuple(calibration["subjective"][name] for name in _CALIBRATION),
        (
            facts.source, audit.summary.n_rounds, sums.n_rounds, int(sums.n_unobserved.sum()),
            facts.n_skipped, audit.summary.selection, "time" if facts.by_time else "rows",
        ),
    )  # fmt: skip
    if audit.summary.selection == "chosen":
        name = "effective_sample_size"
        found["calibration"][name] = calibration[name]
    judged_by_truth = audit.criterion.judge == "objective" or audit.model == "truth"
    if true is not None and judged_by_truth:
        regret = calibration["objective"]
        found["calibration"]["objective"] = {name: regret[name] for name in _CALIBRATION}
    for name in ("prior_sensitivity", "modelled", "across", "covered"):
        if name in audit.extra:
            found[name] = audit.extra[name]
    return found
