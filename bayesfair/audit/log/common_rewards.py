"""One reward family, and the same values, for all logs that are audited together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.audit.log.start import few_strays, refuse_strays
from bayesfair.audit.log.state import check_log, parts_of
from bayesfair.audit.question import Question
from bayesfair.families import FAMILIES, may_have_levels
from bayesfair.families.choose import enough_levels, family_of_levels
from bayesfair.families.finite import seen_levels
from bayesfair.history.logs import Logs
from bayesfair.readers.log.scan import HistoryScan, iter_rewards

__all__ = ["common_rewards"]


def common_rewards(logs: Mapping[Any, Any], question: Question) -> Question:
    """Let all logs have one family, that of their rewards together, and the same values.

    What only the rewards tell is taken from a first pass over them, in memory that does not grow
    with the logs; so logs read whole and logs read in parts are asked the same.

    Raises
    ------
    DataError
        If all rewards are 0 or 1 but a few, which then are more likely a code for missing.
    """
    family = question.family
    if question.support is not None or question.earlier is not None or not may_have_levels(family):
        return question
    levels, n, n_strays = np.empty(0), 0, 0
    for seen in _observed(logs):
        n += seen.size
        n_strays += int(np.count_nonzero((seen != 0) & (seen != 1)))
        levels = np.union1d(levels, seen)
        if family == "auto":
            levels = enough_levels(levels)
    if family == "auto":
        if few_strays(n_strays, n):
            _refuse_first_stray(logs, n_strays, n)
        family = family_of_levels(levels, n)[0]
    support = seen_levels(levels) if FAMILIES[family].has_levels else None
    return replace(question, family=family, support=support)


def _observed(logs: Mapping[Any, Any]) -> Iterator[NDArray[np.float64]]:
    """Yield the observed rewards of all logs; several scans of one source are read together."""
    if isinstance(logs, Logs):
        reward = logs.together.rounds.reward
        yield reward[~np.isnan(reward)]
        return
    yield from iter_rewards([log for log in logs.values() if isinstance(log, HistoryScan)])
    for log in logs.values():
        check_log(log)
        if not isinstance(log, HistoryScan):
            for part in parts_of(log):
                yield part.reward[~np.isnan(part.reward)]


def _refuse_first_stray(logs: Mapping[Any, Any], n: int, seen: int) -> None:
    for log in logs.values():
        for part in parts_of(log):
            refuse_strays(part, n, seen)
