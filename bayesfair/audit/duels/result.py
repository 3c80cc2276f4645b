"""The result of an audit of duels: the numbers under fixed keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from bayesfair.audit.criterion import Criterion, finite_or_text, top_verdict
from bayesfair.audit.duels.law import Windows
from bayesfair.audit.duels.log import DuelRounds, seen_from_to
from bayesfair.audit.duels.text import render
from bayesfair.audit.duels.truth import Truth
from bayesfair.audit.log.checks import Check
from bayesfair.base.notices import Notice, unique

__all__ = ["DuelAudit"]


@dataclass(frozen=True, eq=False, repr=False)
class DuelAudit:
    """A finished audit of who gets compared.

    Attributes
    ----------
    numbers : dict
        What `to_dict` returns.
    windows : Windows or None
        Shares of the slot per window with their limits, where these stand for probabilities.
    """

    numbers: dict[str, Any]
    windows: Windows | None = None

    @classmethod
    def make(
        cls,
        rounds: DuelRounds,
        law: Windows,
        criterion: Criterion,
        truth: Truth,
        *,
        subjective: dict[str, Any],
        objective: dict[str, Any],
        checks: Mapping[str, Check],
        calibration: dict[str, Any],
        believed: NDArray[np.float64],
        p_best: NDArray[np.float64],
        frontier: list[dict[str, Any]],
        notices: list[Notice],
        chosen: bool,
    ) -> Self:
        """Put the parts together."""
        import bayesfair

        said = unique((*rounds.notices, *truth.notices, *notices))
        windows = None if law.logged else law
        numbers: dict[str, Any] = {
            "bayesfair": vars(bayesfair)["__version__"],
            "verdict": top_verdict(
                subjective["verdict"],
                objective["verdict"],
                judge=criterion.judge,
                known=truth.known,
            ),
            "subjective": subjective,
            "objective": objective,
            "consistent": all(check.passed is not False for check in checks.values()),
            "checks": {name: _check(check) for name, check in checks.items()},
            "log": {
                "source": rounds.source,
                "n_rounds": rounds.n_rounds,
                "n_judged": rounds.n_rounds - criterion.from_round,
                "n_items": rounds.n_items,
                "items": list(rounds.items),
                "selection": "chosen" if chosen else "full" if law.logged else "windows",
                "slot": rounds.slot,
                "n_windows": None if windows is None else len(law.start),
                "n_skipped": rounds.n_skipped,
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
            "items": _items(rounds, law, believed, p_best),
            "frontier": frontier,
            "notices": [str(text) for text in said],
            "findings": [text.to_dict() for text in said],
        }
        return cls(numbers, windows)

    @property
    def verdict(self) -> str:
        """``fair``, ``unfair`` or ``undetermined``: of the question that `judge` names.

        ``judge="both"``: the worse of subjective and objective; the objective one where the worths
        are known.
        """
        return str(self.numbers["verdict"])

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers, JSON-ready; keys as in `Audit.to_dict`, items in place of arms."""
        return self.numbers

    def __str__(self) -> str:
        return render(self.numbers)

    def __repr__(self) -> str:
        log = self.numbers["log"]
        return f"DuelAudit({log['source']}: {log['n_rounds']} duels, {self.verdict})"


def _check(check: Check) -> dict[str, Any]:
    """Return the JSON values of a test, its arm called an item."""
    return {"item" if name == "arm" else name: value for name, value in check.to_dict().items()}


def _items(
    rounds: DuelRounds,
    law: Windows,
    believed: NDArray[np.float64],
    p_best: NDArray[np.float64],
) -> list[dict[str, Any]]:
    first, last = seen_from_to(rounds)
    taken = np.bincount(rounds.left, minlength=rounds.n_items) + np.bincount(
        rounds.right, minlength=rounds.n_items
    )
    n = law.length.sum()
    if law.logged:
        mean = (np.nan_to_num(law.share) * law.length[:, None]).sum(axis=0) / n
    else:
        scale = 1.0 if rounds.slot == "first" else 0.5
        mean = scale * rounds.taken(slice(int(law.start[0]), None)) / n
    return [
        {
            "item": item,
            "n": int(taken[i]),
            "p_best_subjective": finite_or_text(believed[i]),
            "p_best_objective": finite_or_text(p_best[i]),
            "selection_mean": finite_or_text(mean[i]),
            "first_round": int(first[i]) if first[i] >= 0 else None,
            "last_round": int(last[i]) if last[i] >= 0 else None,
        }
        for i, item in enumerate(rounds.items)
    ]
