"""Logs of which rounds were left out by chance."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.checks import counted, first_where
from bayesfair.errors import DataError
from bayesfair.typing import Where

__all__ = ["kept_chances", "refuse_thinned"]


def kept_chances(values: NDArray[np.float64] | None, where: Where) -> NDArray[np.float64] | None:
    """Return the chances that rounds were kept, checked; None where all were.

    Raises
    ------
    DataError
        Naming the first that is none.
    """
    if values is None or (values == 1).all():
        return None
    if wrong := first_where(~((values > 0) & (values <= 1))):
        raise DataError(
            f"{where(wrong.at)}: keep_prob is {values[wrong.at]:g}, and the chance that a round "
            "was kept is "
            f"above 0 and at most 1 ({counted(wrong.n, 'such round')}). Correct it.",
            kind="bad_keep_prob",
            column="keep_prob",
            value=float(values[wrong.at]),
        )
    return values


def refuse_thinned(log: Any, what: str) -> None:
    """Refuse what needs every decision of the rule.

    Raises
    ------
    DataError
        If rounds of the log were left out by chance.
    """
    if getattr(log, "keep_prob", None) is not None:
        raise DataError(
            f"{what} needs every decision, and {log.source} was thinned: its rounds were kept with "
            f"chances from {log.keep_prob.min():g} to {log.keep_prob.max():g} (keep_prob). What "
            "the rule had seen before each round cannot be followed. Use the full log; from this "
            "one, bayesfair.value.policy_value estimates what a rule that is known (uniform, or "
            "its probabilities) would have earned.",
            kind="thinned",
            column="keep_prob",
            source=log.source,
        )
