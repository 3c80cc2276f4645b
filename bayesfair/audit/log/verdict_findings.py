"""What has to be known of a verdict: a criterion that cannot fail, rounds not judged, estimates."""

from __future__ import annotations

from bayesfair.audit.criterion import Criterion, default_eps2
from bayesfair.audit.log.summary import Summary
from bayesfair.audit.truth.objective import Objective
from bayesfair.base.checks import counted
from bayesfair.base.notices import Notice

__all__ = ["verdict_findings"]


def verdict_findings(
    summary: Summary, criterion: Criterion, objective: Objective | None
) -> list[Notice]:
    """Return the notices that belong to the verdict rather than to the log."""
    found = [*_not_judged(summary, criterion), *_cannot_fail(summary, criterion)]
    if criterion.eps2_arms is not None and default_eps2(summary.most_offered) < criterion.eps2:
        k = summary.most_offered
        found.append(
            Notice(
                f"eps2 stays {criterion.eps2:g}, fixed where the log begins for "
                f"{criterion.eps2_arms} arms; for the {k} arms on offer at most in a round by now "
                f"it would be {default_eps2(k):g}. Audit the whole log again to have it so, or "
                "give eps2=.",
                kind="eps2_kept",
                column="eps2",
                value=criterion.eps2,
                n=k,
            )
        )
    if objective is not None and not objective.counted:
        judged = summary.pairs.judged
        n = 0 if judged is None else len(judged.round)
        found.append(
            Notice(
                "In how many rounds the rule violates under the true rewards, the first and the "
                f"last are estimated from {n} of {summary.sums.n_rounds} rounds, the earliest ones "
                "without a gap; whether any round violates is exact.",
                kind="estimated_violations",
                n=summary.sums.n_rounds,
            )
        )
    return found


def _not_judged(summary: Summary, criterion: Criterion) -> list[Notice]:
    """Say which rounds served the beliefs alone."""
    first, judged = criterion.from_round, summary.sums.n_rounds
    skipped = summary.n_rounds - judged
    if not judged:
        return [
            Notice(
                f"No round is judged: from_round={first}, and the log ends with round "
                f"{summary.end.n_rounds - 1} so far.",
                kind="nothing_judged",
                column="from_round",
                value=first,
                n=skipped,
            )
        ]
    if not skipped:
        return []
    return [
        Notice(
            f"The {counted(skipped, 'round')} before round {first} served the beliefs alone "
            f"(from_round={first}): every number is of the {counted(judged, 'round')} from there "
            "on.",
            kind="from_round",
            column="from_round",
            value=first,
            n=skipped,
        )
    ]


def _cannot_fail(summary: Summary, criterion: Criterion) -> list[Notice]:
    """Say that no pair of arms differs by more than eps2 allows, whatever their rewards."""
    several = summary.selection == "full" and summary.most_offered > 1
    largest = float(summary.pairs.frontier[criterion.grid.index(0.0)])
    if not several or largest + criterion.band > criterion.allowed:
        return []
    regret = summary.terms.regret.total / summary.sums.n_rounds
    differences = ("total_variation", "wasserstein")  # of two-outcome laws: of their probabilities
    unit = "" if criterion.divergence in differences else f" ({criterion.divergence})"
    return [
        Notice(
            "This criterion cannot fail here: in no round do the selection probabilities of two "
            f"arms on offer differ by more than {largest:.4g}{unit}, and eps2 = {criterion.eps2:g} "
            "allows that even to arms with the same rewards. The verdict does not tell how the "
            f"chances follow the rewards; the fairness regret under the beliefs, {regret:.4f} per "
            "round, does.",
            kind="cannot_fail",
            column="eps2",
            value=largest,
            n=summary.sums.n_rounds,
        )
    ]
