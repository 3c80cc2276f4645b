"""Audits of several logs together (``by=``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bayesfair.audit.criterion import QUESTIONS, worst_verdict
from bayesfair.audit.log.intervals import beta_interval
from bayesfair.audit.log.state import AuditState
from bayesfair.audit.result import Audit
from bayesfair.audit.saved.file import Origin
from bayesfair.base.checks import check_known
from bayesfair.base.labels import one_label
from bayesfair.base.notices import Notice

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["AuditGroup"]


@dataclass(frozen=True, eq=False, repr=False)
class AuditGroup:
    """Audits of several logs (``by=``): one per group, and the share of runs that violate.

    Attributes
    ----------
    audits : dict of str to Audit
        By the group's label.
    origin : Origin or None
        The saved file that these audits were loaded from, or go on from.
    """

    audits: dict[str, Audit]
    origin: Origin | None = None

    def __getitem__(self, label: str) -> Audit:
        known = isinstance(label, str) and label in self.audits
        found = label if known else one_label(label, "group", "label")
        check_known(found, tuple(self.audits), "group")
        return self.audits[found]

    def __len__(self) -> int:
        return len(self.audits)

    @property
    def unfinished(self) -> bool:
        """Whether the audit was interrupted: `resume` takes the same logs again and goes on."""
        return any(audit.unfinished is not None for audit in self.audits.values())

    def start_for(self, label: str, arms: Sequence[str]) -> AuditState | None:
        """Return where the next part of a log starts; for a new label the prior of all the others.

        None where the others have no prior in common, or other arms: the default prior.
        """
        if label in self.audits:
            return self.audits[label].state
        starts = [audit.summary.start for audit in self.audits.values()]
        fresh = starts[0].afresh()
        shared = (fresh.same_as(start.afresh()) for start in starts)
        return fresh if fresh.arms == tuple(arms) and all(shared) else None

    def resume(
        self,
        data: Mapping[str, Any],
        *,
        objective: bool | None = None,
        draws: int | None = None,
        seed: Any = None,
        progress: Callable[[int], None] | None = None,
        partial: Any = None,
    ) -> AuditGroup:
        """Return the audits of these logs together with their next parts; see `Audit.resume`.

        A label that has no next part stays as it is; a new one starts from the prior.
        """
        from bayesfair.audit.parts import resume

        return resume(
            self, data, objective=objective, draws=draws, seed=seed, progress=progress,
            partial=partial,
        )  # fmt: skip

    @property
    def tree(self) -> xr.DataTree:
        """One node per group, as `Audit.tree`; the group's label is its attribute ``label``."""
        from bayesfair.audit.saved.tables import to_tree

        return to_tree(self)

    def save(self, path: Any, *, rounds: bool = False) -> None:
        """Write all audits to one NetCDF file; see `Audit.save`."""
        from bayesfair.audit.saved.storage import save_audit

        save_audit(self, path, rounds=rounds)

    @property
    def verdict(self) -> str:
        """The worst verdict of all groups."""
        return worst_verdict(*(a.verdict for a in self.audits.values()))

    @property
    def consistent(self) -> bool:
        """Whether no test found any of the logs to contradict itself."""
        return all(audit.consistent for audit in self.audits.values())

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values: the groups, and the share of runs found unfair.

        The share counts the groups that can be audited; its 95 % interval is that of a
        Beta(1/2, 1/2) prior.
        """
        from bayesfair import __version__

        groups = {label: audit.to_dict() for label, audit in self.audits.items()}
        judged = [a for a in self.audits.values() if a.verdict != "not_auditable"]
        n, bad = len(judged), sum(a.verdict == "unfair" for a in judged)
        lower, upper = beta_interval(bad, n) if n else (None, None)
        notices = []
        if n < len(self.audits):
            notices.append(Notice(
                f"{len(self.audits) - n} of {len(self.audits)} groups could not be audited for "
                "smooth fairness and do not count in the share of violating runs.",
                kind="groups_not_audited", n=len(self.audits) - n,
            ))  # fmt: skip
        first = next(iter(groups.values()))
        return {
            "bayesfair": __version__,
            "verdict": self.verdict,
            "consistent": self.consistent,
            "subjective": {
                "verdict": worst_verdict(*(a.subjective_verdict for a in self.audits.values())),
                "question": QUESTIONS["subjective"],
            },
            "objective": self._objective(),
            "criterion": first["criterion"] | self._priors(),
            "groups": groups,
            "runs": {
                "n": n,
                "n_violating": bad,
                "share": bad / n if n else None,
                "lower": lower,
                "upper": upper,
            },
            "notices": [str(text) for text in notices],
            "findings": [Notice.of(text).to_dict() for text in notices],
        }

    def _priors(self) -> dict[str, Any]:
        """Return what stands for the prior where each log has its own."""
        words = list(dict.fromkeys(audit.settings.prior for audit in self.audits.values()))
        if len(words) == 1:
            return {}
        return {"prior": f"each log has its own, such as: {words[0]}", "prior_learned": None}

    def _objective(self) -> dict[str, Any] | None:
        """Return the worst objective verdict; None where the objective part was left out."""
        if any(a.objective is None for a in self.audits.values()):
            return None
        return {
            "verdict": worst_verdict(*(a.objective_verdict for a in self.audits.values())),
            "question": QUESTIONS["objective"],
        }

    def __str__(self) -> str:
        from bayesfair.audit.group_text import render_group

        return render_group(self.to_dict())

    def __repr__(self) -> str:
        from bayesfair.audit.log.verdict_words import regret_words

        return (
            f"AuditGroup({len(self.audits)} logs: {self.verdict}, {regret_words(self.to_dict())})"
        )
