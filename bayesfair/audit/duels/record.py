"""What an audit of duels found: a frozen record, from which numbers and reports are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bayesfair.audit.criterion import Criterion, top_verdict
from bayesfair.audit.duels.judge import Judged
from bayesfair.audit.duels.law import Law
from bayesfair.audit.duels.truth import Truth
from bayesfair.audit.log.checks import Check
from bayesfair.base.notices import Notice
from bayesfair.comparisons import DuelLog

__all__ = ["QUESTIONS", "DuelRecord", "fair_between", "verdicts_of"]

QUESTIONS = {
    "subjective": "under the beliefs of each round",
    "objective": "under the true worths",
}
"""The two questions of an audit of duels in words."""


@dataclass(frozen=True, eq=False)
class DuelRecord:
    """What was asked of a log of duels, and what was found.

    Attributes
    ----------
    log : DuelLog
    law : Law
    criterion : Criterion
    truth : Truth
    judged : Judged
    checks : mapping of str to Check
        Whether the log agrees with itself.
    needed : mapping of question to int
        About how many duels like these decide what the log leaves open, where that is known.
    notices : tuple of Notice
    """

    log: DuelLog
    law: Law
    criterion: Criterion
    truth: Truth
    judged: Judged
    checks: Mapping[str, Check]
    needed: Mapping[str, int]
    notices: tuple[Notice, ...]

    @property
    def kind(self) -> str:
        """What was logged: ``full``, ``chosen`` or ``windows``."""
        return self.log.logged

    @property
    def probability_fair(self) -> tuple[float, float]:
        """Limits of the probability that the log is fair under the true worths."""
        return fair_between(self.judged, self.criterion)

    @property
    def verdicts(self) -> dict[str, str]:
        """The verdict of each question."""
        return verdicts_of(self.judged, self.criterion)

    @property
    def verdict(self) -> str:
        """The verdict of the question that was asked for."""
        return top_verdict(**self.verdicts, judge=self.criterion.judge, known=self.truth.known)

    @property
    def consistent(self) -> bool:
        """Whether no test shows that the log contradicts itself."""
        return all(check.passed is not False for check in self.checks.values())


def fair_between(judged: Judged, criterion: Criterion) -> tuple[float, float]:
    """Return limits of the probability that a log is fair under the true worths."""
    most, least = criterion.fair_draws(judged.true.most), criterion.fair_draws(judged.true.least)
    return float(most.mean()), float(least.mean())


def verdicts_of(judged: Judged, criterion: Criterion) -> dict[str, str]:
    """Return the verdict of each question."""
    at, believed = criterion.grid_index, judged.believed
    return {
        "subjective": criterion.believed(float(believed.low[at]), float(believed.high[at])),
        "objective": criterion.verdict_of(*fair_between(judged, criterion)),
    }
