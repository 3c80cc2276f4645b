"""The record of an audit: what was asked, what was found, and the verdicts that follow."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesfair import __version__
from bayesfair.audit.criterion import Criterion, top_verdict
from bayesfair.audit.log.checks import Check, contradictions, log_checks
from bayesfair.audit.log.context_findings import context_model_of
from bayesfair.audit.log.group_pairs import GroupPairs
from bayesfair.audit.log.intervals import Estimate, regret_of
from bayesfair.audit.log.monte_carlo import with_monte_carlo
from bayesfair.audit.log.state import AuditState
from bayesfair.audit.log.summary import Summary
from bayesfair.audit.question import Question
from bayesfair.audit.saved.file import Origin
from bayesfair.audit.saved.unfinished import Unfinished
from bayesfair.audit.truth.objective import Objective
from bayesfair.base.arguments import constructed
from bayesfair.base.notices import Notice

if TYPE_CHECKING:
    import xarray as xr


__all__ = ["Record", "ViolatingRounds", "with_extra"]


class ViolatingRounds(NamedTuple):
    """How many rounds violate, the first and the last of them (-1 = none)."""

    n: int
    first: int
    last: int


@constructed
@dataclass(frozen=True, eq=False, repr=False)
class Record:
    """What an audit of one log found; `bayesfair.audit.result.Audit` adds what can be done with it.

    Attributes
    ----------
    question : Question
        What was asked.
    summary : Summary
        What is kept of the log.
    objective : Objective or None
        Per draw of the true rewards.
    regret_objective : Estimate or None
        Objective fairness regret per round.
    findings : tuple of str
        Notices.
    prior : str
        The prior in words.
    version : str
        Of bayesfair, which made it.
    extra : dict
        Further keys of `to_dict`.
    fitted : xarray.DataTree or None
        The draws of the model of the true rewards, as `bayesfair.fit` returned them, where there
        was one; not kept in files.
    arm_groups : GroupPairs or None
        Pairs between and within groups of arms.
    data : History, HistoryScan, KeptRounds or None
        The log, or every round of it as read from a file; None where neither is at hand.
    origin : Origin or None
        The saved file that this audit was loaded from, or goes on from.
    unfinished : Unfinished or None
        What is still to be done, if the audit was interrupted: `resume` does it.
    """

    question: Question
    summary: Summary
    objective: Objective | None
    regret_objective: Estimate | None
    findings: tuple[str, ...]
    prior: str
    version: str = __version__
    extra: dict[str, Any] = field(default_factory=dict)
    fitted: xr.DataTree | None = None
    arm_groups: GroupPairs | None = None
    data: Any = None
    origin: Origin | None = None
    unfinished: Unfinished | None = None

    # -- what was asked ------------------------------------------------------------------------

    @cached_property
    def criterion(self) -> Criterion:
        """What was asked, with the tolerance that was used."""
        return self.summary.tolerated(self.question.criterion)

    @property
    def family(self) -> str:
        """The reward family of the conjugate beliefs."""
        return self.summary.start.family

    @property
    def context_model(self) -> str | None:
        """How beliefs are given the context; None for beliefs that know none."""
        return context_model_of(self.summary)

    @property
    def model(self) -> str | None:
        """Where the true rewards are from: ``truth``, ``conjugate``, a model; None: left out."""
        return None if self.objective is None else self.question.model_name

    # -- the log itself --------------------------------------------------------------------------

    @cached_property
    def checks(self) -> dict[str, Check]:
        """Tests of the log by name, each with its statistic, p-value and whether it passed."""
        return log_checks(self.summary)

    @property
    def consistent(self) -> bool:
        """Whether no test found the log to contradict itself (an unseen context does not)."""
        return not contradictions(self.checks)

    # -- numbers -------------------------------------------------------------------------------

    @property
    def state(self) -> AuditState:
        """Beliefs after the last round: ``prior=`` of the audit of the log's next part."""
        return self.summary.end

    @property
    def auditable(self) -> bool:
        """Whether smooth fairness can be audited: it needs the whole rule, and judged rounds."""
        return self.summary.selection == "full" and self.summary.sums.n_rounds > 0

    @property
    def covered(self) -> dict[str, Any] | None:
        """What is known of pairs of arms where the rule is known in part, as in `to_dict`."""
        return self.extra.get("covered")

    @property
    def smallest_eps2(self) -> float | None:
        """Smallest eps2 that every round satisfies at eps1 under its beliefs."""
        return (
            float(self.summary.pairs.frontier[self.criterion.grid_index])
            if self.auditable
            else None
        )

    @property
    def violations(self) -> ViolatingRounds | None:
        """Number, first and last (-1 = none) of the violating rounds under the beliefs."""
        if not self.auditable:
            return None
        return ViolatingRounds(*(self.criterion.count_at(x) for x in self.summary.pairs.violations))

    @property
    def n_violating_rounds(self) -> int | None:
        """Rounds whose excess is above eps2 + tolerance, under the beliefs."""
        return None if self.violations is None else self.violations.n

    @property
    def subjective_verdict(self) -> str:
        """``fair``, ``unfair`` or ``not_auditable``; exact, delta plays no part.

        Beliefs of a filter that is known to be off decide nothing: ``undetermined``.
        """
        if self.covered is not None:
            return str(self.covered["subjective"]["verdict"])
        return self.believed(self.smallest_eps2)

    def believed(self, needed: float | None) -> str:
        """Return the verdict under the beliefs of a smallest eps2; None: not auditable."""
        found = self.criterion.believed(needed)
        return found if self.beliefs_hold or needed is None else "undetermined"

    @cached_property
    def beliefs_hold(self) -> bool:
        """False where the filter was found apart from the posterior, and nothing took its place."""
        return not any(Notice.of(found).kind == "filter_apart" for found in self.findings)

    @cached_property
    def probability_fair(self) -> float | None:
        """Share of draws of the true rewards under which every round is fair."""
        if self.objective is None or self.objective.smallest_eps2 is None:
            return None
        if self.objective.cells and self.context_model == "cells":  # independent: the product
            return self.objective.probability_fair
        return float(self.criterion.fair_draws(self.objective.smallest_eps2).mean())

    @property
    def probability_fair_between(self) -> tuple[float, float] | None:
        """Limits of `probability_fair` where the logged probabilities have Monte Carlo error."""
        band, found = self.criterion.band, self.objective
        if not band or found is None or found.smallest_eps2 is None:
            return None
        least, most = (
            float(self.criterion.fair_draws(found.smallest_eps2, error).mean())
            for error in (band, -band)
        )
        return least, most

    @property
    def converged(self) -> bool:
        """False where the draws of a model were taken although they did not converge."""
        return not any(Notice.of(found).kind == "unconverged" for found in self.findings)

    @property
    def objective_verdict(self) -> str:
        """``fair``, ``unfair``, ``undetermined`` or ``not_auditable``.

        Draws that did not converge decide nothing: with them it is ``undetermined``.
        """
        probability = self.probability_fair
        if probability is None and self.covered is not None and self.covered["objective"]:
            return str(self.covered["objective"]["verdict"])
        if probability is None:
            return "not_auditable"
        low, high = self.probability_fair_between or (probability, None)
        return self.criterion.verdict_of(low, high) if self.converged else "undetermined"

    @property
    def verdict(self) -> str:
        """That of both questions, or of the one that ``judge`` names.

        Unfair if either is, fair only if both are; the objective one where the true rewards are
        known, the subjective one where the objective part was left out.
        """
        return top_verdict(
            self.subjective_verdict,
            None if self.objective is None else self.objective_verdict,
            judge=self.criterion.judge,
            known=self.model == "truth",
        )

    @property
    def regret(self) -> Estimate | None:
        """Subjective fairness regret per round; None where no probabilities were logged."""
        summary = self.summary
        found = regret_of(summary.selection, summary.sums.n_rounds, summary.terms.regret)
        return with_monte_carlo(found, summary)

    # -- views ---------------------------------------------------------------------------------

    def series(self) -> dict[str, NDArray[Any]]:
        """Return cumulative regret and plays, thinned for plotting.

        Returns
        -------
        dict
            ``round`` (n,): rounds seen; ``regret`` (n,): cumulative subjective fairness regret;
            ``plays`` (n, k): cumulative plays.
        """
        s = self.summary.terms.series
        marks = s.stride * np.arange(1, len(s.regret) + 1)
        if not len(marks) or marks[-1] != s.n_rounds:
            return {
                "round": np.append(marks, s.n_rounds),
                "regret": np.append(s.regret, s.last_regret),
                "plays": np.vstack([s.plays, s.last_plays]),
            }
        return {"round": marks, "regret": s.regret, "plays": s.plays}


def with_extra[R: Record](audit: R, name: str, numbers: Any) -> R:
    """Return an audit whose `to_dict` has these numbers under a further key."""
    return replace(audit, extra=audit.extra | {name: numbers})
