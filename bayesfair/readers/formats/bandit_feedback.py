"""The `bandit_feedback` dict of Open Bandit Pipeline: actions, rewards, the rule that drew them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bayesfair.base.notices import Notice
from bayesfair.errors import DataError
from bayesfair.readers.formats.json_records import table_of_columns

__all__ = ["feedback_table", "is_feedback"]


def is_feedback(source: Any) -> bool:
    """Whether a source is such a dict."""
    return isinstance(source, Mapping) and {"action", "reward"} <= set(source) and bool(
        {"n_rounds", "n_actions", "pscore", "pi_b"} & set(source)
    )  # fmt: skip


def feedback_table(feedback: Mapping[str, Any]) -> tuple[Any, tuple[Notice, ...]]:
    """Return the rounds as a table: arm, reward, p_{action} or propensity, and position.

    `pi_b`, (rounds, actions, slots), is the whole rule: of several slots the one in `position`.

    Raises
    ------
    DataError
        If parts differ in length, or the rule contradicts `pscore`.
    """
    name = "bandit feedback"
    action = np.asarray(feedback["action"])
    n = len(action)
    columns: dict[str, Any] = {"arm": action.tolist()}
    columns["reward"] = np.asarray(feedback["reward"], dtype=np.float64).tolist()
    pi, chance, slot = (feedback.get(key) for key in ("pi_b", "pscore", "position"))
    if slot is not None:
        slot = np.asarray(slot)
        columns["position"] = slot.tolist()
    if pi is None:
        if chance is not None:
            columns["propensity"] = np.asarray(chance, dtype=np.float64).tolist()
        return table_of_columns(columns, name), ()
    law = np.asarray(pi, dtype=np.float64)
    law = law[:, :, None] if law.ndim == 2 else law
    if law.ndim != 3 or len(law) != n or (law.shape[2] > 1 and slot is None):
        raise DataError(
            f"pi_b of the bandit feedback has shape {law.shape}, expected ({n} rounds, actions, "
            "slots), with `position` where there are several slots.",
            kind="shape", column="pi_b",
        )  # fmt: skip
    rounds = np.arange(n)
    law = law[rounds, :, np.zeros(n, int) if law.shape[2] == 1 else slot]
    if chance is not None:
        apart = np.abs(law[rounds, action] - np.asarray(chance, dtype=np.float64))
        if (apart > 1e-6).any():
            t = int(np.argmax(apart))
            raise DataError(
                f"round {t} of the bandit feedback: pscore is {np.asarray(chance)[t]:g}, but pi_b "
                f"gives the action {action[t]} {law[t, action[t]]:g}.",
                kind="propensity_apart", row=t + 1, column="pscore",
            )  # fmt: skip
    for j in range(law.shape[1]):
        columns[f"p_{j}"] = law[:, j].tolist()
    notice = Notice(
        f"the rule of the bandit feedback (pi_b) was read for its {law.shape[1]} actions.",
        kind="bandit_feedback", column="pi_b", n=n,
    )  # fmt: skip
    return table_of_columns(columns, name), (notice,)
