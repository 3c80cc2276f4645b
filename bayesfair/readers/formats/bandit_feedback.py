"""The `bandit_feedback` dict of Open Bandit Pipeline: actions, rewards, the rule that drew them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.checks import first_where, listed
from bayesfair.base.notices import Notice
from bayesfair.errors import DataError
from bayesfair.readers.formats.json_records import table_of_columns

__all__ = ["feedback_table", "is_feedback"]

_READ = {"action", "reward", "pscore", "position", "pi_b", "context", "n_rounds", "n_actions"}


def is_feedback(source: Any) -> bool:
    """Whether a source is such a dict."""
    return isinstance(source, Mapping) and {"action", "reward"} <= set(source) and bool(
        {"n_rounds", "n_actions", "pi_b"} & set(source)
    )  # fmt: skip


def feedback_table(
    feedback: Mapping[str, Any], name: str = "bandit feedback"
) -> tuple[Any, tuple[Notice, ...]]:
    """Return the rounds as a table: arm, reward, p_{action} or propensity, position, context.

    `pi_b`, (rounds, actions, slots), is the whole rule: of several slots the one in `position`.
    `context`, (rounds, features), becomes columns ``context_0`` and so on.

    Raises
    ------
    DataError
        If parts differ in length or are no numbers, or the rule contradicts `pscore`.
    """
    action = _numbers(feedback, "action", whole=True)
    n = len(action)
    if feedback.get("n_rounds") not in (None, n):
        raise DataError(
            f"n_rounds of {name} is {feedback['n_rounds']}, but it holds {n} actions.",
            kind="shape", column="n_rounds", source=name,
        )  # fmt: skip
    columns: dict[str, Any] = {"arm": action.tolist()}
    columns["reward"] = _numbers(feedback, "reward", n).tolist()
    chance, slot = feedback.get("pscore"), feedback.get("position")
    if slot is not None:
        slot = _numbers(feedback, "position", n, whole=True)
        columns["position"] = slot.tolist()
    if chance is not None:
        chance = _numbers(feedback, "pscore", n)
    columns |= _context(feedback, n, name)
    n_actions, said = _n_actions(feedback, action, name), _left_out(feedback)
    if feedback.get("pi_b") is None:
        if chance is not None:
            columns["propensity"] = chance.tolist()
        if n_actions is not None and n_actions > (met := len(np.unique(action))):
            said = (*said, Notice(
                f"{met} of {n_actions} actions (n_actions) were ever chosen, and no pi_b names the "
                f"others. Pass them all as arms=, from '0' to '{n_actions - 1}', if they could be.",
                kind="bandit_feedback", column="n_actions", n=n_actions,
            ))  # fmt: skip
        return table_of_columns(columns, name), said
    law = _law(feedback["pi_b"], n, slot, name)
    if n_actions not in (None, law.shape[1]):
        raise DataError(
            f"n_actions of {name} is {n_actions}, but pi_b has {law.shape[1]} actions. Correct it, "
            "or leave it out.", kind="shape", column="n_actions", source=name,
        )  # fmt: skip
    rounds = np.arange(n)
    if outside := first_where(action >= law.shape[1]):
        raise DataError(
            f"round {outside.at} of {name}: the action {action[outside.at]} is not among the "
            f"{law.shape[1]} of pi_b.",
            kind="unknown_arm", row=outside.at + 1, column="action", source=name,
        )  # fmt: skip
    if chance is not None:
        if apart := first_where(~(np.abs(law[rounds, action] - chance) <= 1e-6)):
            t = apart.at
            raise DataError(
                f"round {t} of {name}: pscore is {chance[t]:g}, but pi_b "
                f"gives the action {action[t]} {law[t, action[t]]:g}.",
                kind="propensity_apart", row=t + 1, column="pscore", source=name,
            )  # fmt: skip
    for j in range(law.shape[1]):
        columns[f"p_{j}"] = law[:, j].tolist()
    notice = Notice(
        f"the rule of the bandit feedback (pi_b) was read for its {law.shape[1]} actions.",
        kind="bandit_feedback", column="pi_b", n=n,
    )  # fmt: skip
    return table_of_columns(columns, name), (notice, *said)


def _n_actions(feedback: Mapping[str, Any], action: NDArray[Any], name: str) -> int | None:
    """Return how many actions there are, where it is said."""
    n = feedback.get("n_actions")
    if n is None:
        return None
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
        raise DataError(
            f"n_actions of {name} is {n!r}, expected how many actions there are.",
            kind="bad_number", column="n_actions", source=name,
        )  # fmt: skip
    if outside := first_where(action >= n):
        raise DataError(
            f"round {outside.at} of {name}: the action {action[outside.at]} is not among the "
            f"{n} of n_actions, which are counted from 0.",
            kind="unknown_arm", row=outside.at + 1, column="action", source=name,
        )  # fmt: skip
    return int(n)


def _context(feedback: Mapping[str, Any], n: int, name: str) -> dict[str, Any]:
    """Return the features of each round, by column."""
    if feedback.get("context") is None:
        return {}
    found = _array(feedback["context"], "context")
    if found.ndim not in (1, 2) or len(found) != n:
        raise DataError(
            f"context of {name} has shape {found.shape}, expected ({n} rounds, features).",
            kind="shape", column="context", source=name,
        )  # fmt: skip
    features = found.reshape(n, -1).T
    return {f"context_{j}": values.tolist() for j, values in enumerate(features)}


def _left_out(feedback: Mapping[str, Any]) -> tuple[Notice, ...]:
    """Say which parts are not read."""
    rest = [key for key, part in feedback.items() if key not in _READ and part is not None]
    text = f"not read of the bandit feedback: {listed(rest, 6)}."
    return (Notice(text, kind="not_read", column=str(rest[0]), n=len(rest)),) if rest else ()


def _law(pi: Any, n: int, slot: Any, name: str) -> NDArray[np.float64]:
    """Return the rule of each round's slot, ``(rounds, actions)``."""
    law = _array(pi, "pi_b")
    law = law[:, :, None] if law.ndim == 2 else law
    if law.ndim != 3 or len(law) != n or (law.shape[2] > 1 and slot is None):
        raise DataError(
            f"pi_b of {name} has shape {law.shape}, expected ({n} rounds, actions, "
            "slots), with `position` where there are several slots.",
            kind="shape", column="pi_b", source=name,
        )  # fmt: skip
    slot = np.zeros(n, int) if law.shape[2] == 1 else slot
    if (slot >= law.shape[2]).any():
        raise DataError(
            f"position {int(slot.max())} of {name} is none of the {law.shape[2]} slots of pi_b, "
            "which are counted from 0.", kind="shape", column="position", source=name,
        )  # fmt: skip
    return np.ascontiguousarray(law[np.arange(n), :, slot])


def _numbers(
    feedback: Mapping[str, Any], key: str, n: int | None = None, *, whole: bool = False
) -> NDArray[Any]:
    """Return one number for each round; actions and slots are whole and counted from 0."""
    found = _array(feedback[key], key)
    if found.ndim != 1 or not found.size or n not in (None, len(found)):
        wanted = "at least one number" if n is None else f"{n} numbers, one for each action"
        raise DataError(
            f"{key!r} of the bandit feedback has shape {found.shape}, expected {wanted}.",
            kind="shape", column=key,
        )  # fmt: skip
    if not whole:
        return found
    if odd := first_where(~((found >= 0) & (found < 2**53) & (found == np.floor(found)))):
        raise DataError(
            f"round {odd.at} of the bandit feedback: {key} {found[odd.at]:g} is no number that "
            "counts from "
            "0.", kind="bad_number", row=odd.at + 1, column=key, value=float(found[odd.at]),
        )  # fmt: skip
    return found.astype(np.int64)


def _array(values: Any, key: str) -> NDArray[np.float64]:
    """Return nested lists of numbers, or an array, as floats; None is missing."""
    if _are_numbers(values):
        try:
            return np.asarray(values, dtype=np.float64)
        except (ValueError, TypeError, OverflowError):
            pass
    raise DataError(
        f"{key!r} of the bandit feedback holds something else than numbers, or rows of different "
        "lengths.", kind="bad_number", column=key,
    )  # fmt: skip


def _are_numbers(values: Any) -> bool:
    """Whether nested lists hold numbers alone: NumPy takes text and yes and no for numbers too."""
    if isinstance(values, (list, tuple)):
        return all(map(_are_numbers, values))
    if isinstance(values, np.ndarray) and values.dtype != object:
        return values.dtype.kind in "iuf"
    if isinstance(values, np.ndarray):
        return _are_numbers(values.tolist())
    if hasattr(values, "to_numpy"):  # a column of a data frame
        return _are_numbers(values.to_numpy())
    return values is None or (
        isinstance(values, (int, float, np.number)) and not isinstance(values, bool)
    )
