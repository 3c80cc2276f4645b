"""Options that an audit of the data at hand would not use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bayesfair.base.options import AUDIT_OPTIONS, refuse_without_effect
from bayesfair.history.logs import logs_in

__all__ = ["refuse_unused"]


def refuse_unused(asked: Mapping[str, Any], data: Any, *, drawn: bool) -> None:
    """Refuse options that have no effect on what is asked of these logs.

    Parameters
    ----------
    asked : mapping of str to value
        Options that were given.
    data : History, HistoryScan, or mapping of label to them
    drawn : bool
        Whether there are draws.

    Raises
    ------
    OptionError
        Naming the option and what it needs.
    """
    objective = bool(asked.get("objective", True))
    kinds = {str(getattr(log, "selection", "")) for log in logs_in(data)}
    kinds |= {"objective"} if objective else set()
    kinds |= {"drawn"} if drawn else set()
    what = "an audit" if objective else "an audit without objective part"
    if "full" not in kinds:
        what += " of a log without the probabilities of all arms"
    refuse_without_effect(asked, kinds, AUDIT_OPTIONS, what)
