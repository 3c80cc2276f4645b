"""Audits of several logs together (``by=``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bayesfair import __version__
from bayesfair.audit.brief import brief_numbers
from bayesfair.audit.criterion import QUESTIONS, worst_verdict
from bayesfair.audit.group_notices import kinds_of, notices_by_kind, tiny_groups
from bayesfair.audit.group_pooling import pooled_numbers
from bayesfair.audit.log.intervals import beta_interval
from bayesfair.audit.log.state import AuditState
from bayesfair.audit.numbers import audit_numbers
from bayesfair.audit.record import Record
from bayesfair.audit.saved.file import Origin
from bayesfair.audit.together import Pass
from bayesfair.base.arguments import TEXT, constructed, takes
from bayesfair.base.checks import check_known
from bayesfair.base.labels import by_label, labels_of, one_label
from bayesfair.base.notices import Notice
from bayesfair.base.shown import MOST_ROWS

__all__ = ["GroupRecord", "with_each"]

_MOST_WHOLE = 1000
"""Groups of which the JSON holds everything; of more it holds short records."""


@constructed
@dataclass(frozen=True, eq=False, repr=False)
class GroupRecord:
    """What audits of several logs (``by=``) found: one record per group, and the share unfair.

    Attributes
    ----------
    audits : mapping of str to Record
        By the group's label. Of hundreds of logs each is made when it is asked for.
    origin : Origin or None
        The saved file that these audits were loaded from, or go on from.
    together : Pass or None
        What one pass over all logs found, where there was one.
    """

    audits: Mapping[str, Record]
    origin: Origin | None = None
    together: Pass | None = None

    def __getitem__(self, label: str) -> Record:
        known = isinstance(label, str) and label in self.audits
        found = label if known else one_label(label, "group", "label")
        check_known(found, tuple(self.audits), "group")
        return self.audits[found]

    def __len__(self) -> int:
        return len(self.audits)

    def __iter__(self) -> Iterator[str]:
        return iter(self.audits)

    def made(self) -> GroupRecord:
        """Return the group with every audit made, for what goes through all of them repeatedly."""
        return self if isinstance(self.audits, dict) else replace(self, audits=dict(self.audits))

    @property
    def unfinished(self) -> bool:
        """Whether the audit was interrupted: `resume` takes the same logs again and goes on."""
        return any(audit.unfinished is not None for audit in self.audits.values())

    @takes(label=TEXT)
    def start_for(self, label: str, arms: Sequence[str]) -> AuditState | None:
        """Return where the next part of a log starts; for a new label the prior of all the others.

        None where the others have no prior in common, or other arms: the default prior.
        """
        arms = labels_of(arms)
        if label in self.audits:
            return self.audits[label].state
        starts = [audit.summary.start for audit in self.audits.values()]
        fresh = starts[0].afresh()
        shared = (fresh.same_as(start.afresh()) for start in starts)
        return fresh if fresh.arms == arms and all(shared) else None

    @property
    def verdict(self) -> str:
        """The worst verdict of all groups."""
        if len(self) > MOST_ROWS:
            return str(self.brief()["verdict"])
        return worst_verdict(*(audit.verdict for audit in self.audits.values()))

    @property
    def consistent(self) -> bool:
        """Whether no test found any of the logs to contradict itself."""
        if len(self) > MOST_ROWS:
            return bool(self.brief()["consistent"])
        return all(audit.consistent for audit in self.audits.values())

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values: the groups, and the share of runs found unfair.

        Up to a thousand groups are whole (``"detail": "whole"``). Of more each has its short record
        (``"detail": "brief"``): verdicts, smallest eps2, regret per round, probability fair,
        rounds, whether it is consistent; the whole of one is ``group[label].to_dict()``.

        The share counts the groups that can be audited; its 95 % interval is that of a
        Beta(1/2, 1/2) prior. ``pooled``: the regret per round over the groups, their spread and
        each of them, partially pooled (normal-normal by value and 95 % interval).
        """
        if len(self) > _MOST_WHOLE:
            return self.brief()
        groups = {label: audit_numbers(audit) for label, audit in self.audits.items()}
        first = next(iter(groups.values()))["criterion"]
        priors = [audit["criterion"]["prior"] for audit in groups.values()]
        return self._numbers("whole", groups, notices_by_kind(groups), first | _priors(priors))

    def brief(self) -> dict[str, Any]:
        """Return `to_dict` with no more of each group than a table of them shows.

        Of thousands of groups it costs a thousandth of the whole; of few it is the whole.
        """
        if len(self) <= MOST_ROWS:
            return self.to_dict()
        found: dict[str, Any] | None = vars(self).get("_brief")
        if found is None:
            first = next(iter(self.audits.values()))
            if self.together is not None:
                groups, priors = self.together.brief(first), [first.prior]
                kinds = kinds_of(self.together, self.audits)
            else:
                groups, priors, said = {}, [], {}
                for label, audit in self.audits.items():
                    groups[label] = brief_numbers(audit)
                    priors.append(audit.prior)
                    said[label] = {"findings": [Notice.of(n).to_dict() for n in audit.findings]}
                kinds = notices_by_kind(said)
            criterion = audit_numbers(first)["criterion"] | _priors(priors)
            found = self._numbers("brief", groups, kinds, criterion)
            object.__setattr__(self, "_brief", found)
        return found

    def _numbers(
        self,
        detail: str,
        groups: dict[str, dict[str, Any]],
        kinds: list[dict[str, Any]],
        criterion: dict[str, Any],
    ) -> dict[str, Any]:
        judged = [a for a in groups.values() if a["verdict"] != "not_auditable"]
        n, bad = len(judged), sum(a["verdict"] == "unfair" for a in judged)
        lower, upper = beta_interval(bad, n) if n else (None, None)
        notices = tiny_groups([audit["log"]["n_rounds"] for audit in groups.values()])
        if n < len(groups):
            notices.append(Notice(
                f"{len(groups) - n} of {len(groups)} groups could not be audited for "
                "smooth fairness and do not count in the share of violating runs.",
                kind="groups_not_audited", n=len(groups) - n,
            ))  # fmt: skip
        objective = all(audit["objective"] is not None for audit in groups.values())
        return {
            "bayesfair": __version__,
            "verdict": worst_verdict(*(audit["verdict"] for audit in groups.values())),
            "consistent": all(audit["consistent"] for audit in groups.values()),
            "subjective": _question(groups, "subjective"),
            "objective": _question(groups, "objective") if objective else None,
            "criterion": criterion,
            "detail": detail,
            "groups": groups,
            "runs": {
                "n": n,
                "n_violating": bad,
                "share": bad / n if n else None,
                "lower": lower,
                "upper": upper,
            },
            "pooled": pooled_numbers(groups, each=detail == "whole"),
            "notices": [str(text) for text in notices],
            "findings": [Notice.of(text).to_dict() for text in notices],
            "notices_by_kind": kinds,
        }


def _question(groups: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the worst verdict of one of the two questions."""
    return {
        "verdict": worst_verdict(*(audit[name]["verdict"] for audit in groups.values())),
        "question": QUESTIONS[name],
    }


def _priors(priors: list[str]) -> dict[str, Any]:
    """Return what stands for the prior where each log has its own."""
    words = list(dict.fromkeys(priors))
    if len(words) == 1:
        return {}
    return {"prior": f"each log has its own, such as: {words[0]}", "prior_learned": None}


def with_each(
    found: Record | GroupRecord, data: Any, change: Callable[[Record, Any], Record]
) -> Record | GroupRecord:
    """Return an audit changed, or each of several; what one pass found of all is left out.

    Parameters
    ----------
    found : Record or GroupRecord
    data : log, or mapping of label to log; None
    change : callable
        Called with an audit and what `data` has of it.
    """
    if isinstance(found, GroupRecord):
        of = by_label(data, "group", "data") if isinstance(data, Mapping) else {}
        audits = {label: change(one, of.get(label)) for label, one in found.audits.items()}
        return replace(found, audits=audits, together=None)
    return change(found, data)
