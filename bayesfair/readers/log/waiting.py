"""Rewards that may come late: missing ones are 0 once a waiting time has passed, unknown before."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.checks import counted
from bayesfair.base.notices import Notice
from bayesfair.base.options import no_effect
from bayesfair.readers.log.reading import Reading, bad_waiting
from bayesfair.readers.log.rounds import Rounds
from bayesfair.readers.values.times import duration

__all__ = ["waited", "waits_for_nothing"]


def waited(
    reading: Reading, rounds: Rounds, known_at: NDArray[np.int64] | None
) -> tuple[Rounds, NDArray[np.int64] | None, list[Notice]]:
    """Return the rounds with 0 where the waiting time has passed, and when each reward is known.

    Parameters
    ----------
    reading : Reading
        How the log is read; `waiting` is given.
    rounds : Rounds
        In order.
    known_at : (n,) array of int or None
        First round that may use each reward, as far as the log says it.

    Raises
    ------
    OptionError
        If there is no order in which time could pass, or in other units.
    """
    given, order, column = reading.waiting, rounds.order, reading.layout.order
    missing = np.isnan(rounds.reward) & (rounds.arm >= 0)
    if order is None:
        raise bad_waiting(given, "needs the time of each round: name its column with order=...")
    is_time, n = order.dtype.kind == "M", len(rounds)
    if is_time != isinstance(given, str):
        kind = (
            "times: give a duration such as '7d'" if is_time else "numbers: give one of its units"
        )
        raise bad_waiting(given, f"cannot be held against column {column!r}, which holds {kind}")
    seconds = duration(given) if isinstance(given, str) else None
    span: Any = given if seconds is None else np.timedelta64(round(seconds * 1e6), "us")
    over = order + span
    first = np.maximum(np.searchsorted(order, over, side="left"), np.arange(1, n + 1))
    passed = missing & (over <= order[-1])
    known = np.arange(1, n + 1) if known_at is None else known_at
    late = ~missing & (known > first)
    known = np.where(passed, first, known)
    filled = replace(rounds, reward=np.where(passed, 0.0, rounds.reward))
    shown = given if isinstance(given, str) else f"{given:g} of {column!r}"
    said = []
    if missing.any():
        said.append(Notice(
            f"{counted(int(passed.sum()), 'reward')} of the {missing.sum()} missing counted as 0, "
            f"known once {shown} had passed since the round (waiting=).",
            kind="waited", column=reading.layout.reward, value=given, n=int(passed.sum()),
        ))  # fmt: skip
    if late.any():
        said.append(Notice(
            f"{counted(int(late.sum()), 'reward')} became known later than {shown} after the round "
            "(waiting=): a rule that took what was missing for 0 then had to correct it, and is "
            "held here as if it had gone on waiting. A longer waiting time would leave none.",
            kind="late_rewards", column=reading.layout.known_at, n=int(late.sum()),
        ))  # fmt: skip
    return filled, known.astype(np.int64), said


def waits_for_nothing(reading: Reading, *, lacks: bool) -> list[Notice]:
    """Return the notice that `waiting` had nothing to do, unless a reward is missing."""
    if reading.waiting is None or lacks:
        return []
    return [no_effect("waiting", reading.waiting, "no reward is missing")]
