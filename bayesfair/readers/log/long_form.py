"""Read a log with one row per round *and arm* as what it says: one row per round, with its rule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.arrow_arrays import taken
from bayesfair.base.checks import counted
from bayesfair.base.label_encoder import LabelEncoder, in_order_met
from bayesfair.base.notices import Notice
from bayesfair.errors import DataError, OptionError
from bayesfair.readers.files.frames import open_frame
from bayesfair.readers.files.headers import missing_column
from bayesfair.readers.files.tables import Source
from bayesfair.readers.log.columns import names_in
from bayesfair.readers.log.found_probabilities import find_share
from bayesfair.readers.values.values import meant_numbers, numbers, rewards, truths

__all__ = ["one_row_per_round"]


def one_row_per_round(source: Source, asked: Mapping[str, Any]) -> tuple[Source, dict[str, Any]]:
    """Return the log with one row per round, and the options that read it.

    Parameters
    ----------
    source : Source
        The log, one row per round and arm on offer.
    asked : mapping
        All `LogOptions`. `round` numbers the rounds (within the groups of `by`), `chosen` marks the
        row of the chosen arm (None: it is the one with a reward), `propensity` holds the
        probability of each row's arm.

    Returns
    -------
    Source
        The rows of the chosen arms, in the order in which their rounds begin, with a column for
        each arm: its probability, empty where it was not on offer, or whether it was on offer.
    dict
        Options that have changed: which columns these are.

    Raises
    ------
    DataError
        Naming the first row that does not fit: an arm twice in a round, no arm chosen, or two.
    """
    import pyarrow as pa

    names = _columns(source, asked)
    arm, round, chosen, chance = (names[n] for n in ("arm", "round", "chosen", "propensity"))
    table, column = source.whole()

    def refuse(at: int, name: str, what: str, kind: str) -> DataError:
        return DataError(
            f"{column(name)[1](at)}: {what}", kind=kind, row=source.first_row + at, column=name,
            source=source.name,
        )  # fmt: skip

    encoder = LabelEncoder("arm", asked["arms"])
    (arm_of,) = encoder.settled(encoder.encode(*column(arm)))
    key = LabelEncoder("round").encode(*column(round)).astype(np.int64)
    for codes, name in ((arm_of, arm), (key, round)):
        if (gone := np.flatnonzero(codes < 0)).size:
            raise refuse(int(gone[0]), name, "empty. Fill it in.", "missing_label")
    if names["by"]:
        group = LabelEncoder("group").encode(*column(names["by"])).astype(np.int64)
        key += (group + 1) * (int(key.max()) + 1)
    round_of, first = in_order_met(key)
    k, n = len(encoder.labels), len(first)
    pair = round_of * k + arm_of
    order = np.argsort(pair, kind="stable")
    if (twice := np.flatnonzero(pair[order][1:] == pair[order][:-1])).size:
        at = int(order[twice[0] + 1])
        what = f"arm {encoder.labels[arm_of[at]]!r} stands twice in its round. Keep one of the rows"
        raise refuse(at, arm, f"{what}.", "duplicate_arm")
    if chosen:
        mark = truths(*column(chosen))
    else:
        paid = rewards(*column(names["reward"]), decimal=asked["decimal"], mapping=asked["rewards"])
        mark = ~np.isnan(paid)
    times = np.bincount(round_of[mark], minlength=n)
    if (odd := np.flatnonzero(times != 1)).size:
        at = int(first[odd[0]])
        how = "no arm" if not times[odd[0]] else f"{times[odd[0]]} arms"
        by_reward = "" if chosen else " (by its reward: name the column with chosen=...)"
        raise refuse(
            at, round,
            f"the round that begins here has {how} chosen{by_reward} "
            f"({counted(len(odd), 'such round')}). Each round needs one.", "not_one_chosen",
        )  # fmt: skip
    rows = np.flatnonzero(mark)
    rows = rows[np.argsort(round_of[rows])]
    for name in (c for c in names_in(asked["context"]) if c in source.header):
        seen = LabelEncoder("context").encode(*column(name))
        if (odd := np.flatnonzero(seen != seen[rows][round_of])).size:
            what = "differs from the chosen arm's row of the same round: it belongs to the arm, not"
            raise refuse(int(odd[0]), name, f"{what} to the round.", "context_of_arm")
    notices: list[str] = []
    if chance is None and asked["propensity"] is None:
        free = {c: table.column(c) for c in source.header if c not in _used(asked, names)}
        chance, notices = _share(source.name, free, asked["decimal"], round_of)
    pattern = source.free("p_{arm}" if chance else "offered_{arm}", encoder.labels)
    wide: NDArray[Any] = np.full((n, k), np.nan) if chance else np.zeros((n, k), dtype=np.bool_)
    wide[round_of, arm_of] = numbers(*column(chance), decimal=asked["decimal"]) if chance else True
    dropped = {chosen, chance}
    columns = {c: taken(table.column(c), rows) for c in source.header if c not in dropped}
    for label, values in zip(encoder.labels, wide.T, strict=True):
        columns[pattern.replace("{arm}", label)] = pa.array(values, from_pandas=True)
    frame = open_frame(pa.table(columns))
    assert frame is not None
    name = f"the rounds of {source.name}"
    notice = Notice(
        f"{len(table)} rows of {source.name}, one per round and arm, were read as {n} rounds; rows "
        "are counted in rounds.",
        kind="long_form",
        column=round,
        n=n,
    )
    role = "probabilities" if chance else "offered"
    changed = {role: pattern, "propensity": False, "arms": encoder.labels}
    said = (*source.notices, notice, *notices)
    return Source(name, frame.header, 1, (frame,), said), changed


def _share(
    source: str, free: Mapping[str, Any], decimal: str, round_of: NDArray[np.int64]
) -> tuple[str | None, list[str]]:
    """Return the column of the probabilities that no option names, and what is to be said of it."""
    numeric = {c: meant_numbers(values, decimal=decimal) for c, values in free.items()}
    held = {c: values for c, values in numeric.items() if values is not None}
    found = find_share(source, free, held, round_of)
    return (None, []) if found is None else (found[0], [found[1]])


def _used(asked: Mapping[str, Any], names: Mapping[str, Any]) -> set[str]:
    """Return the columns that options name."""
    single = ("order", "known_at", "known_until", "unique", "user", "keep_prob")
    several = [name for role in ("context", "by") for name in names_in(asked[role])]
    return {str(c) for c in (*names.values(), *(asked[s] for s in single), *several) if c}


def _columns(source: Source, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the column of each part, None where there is none."""
    if asked["probabilities"] or asked["offered"]:
        option = "probabilities" if asked["probabilities"] else "offered"
        raise OptionError(
            f"{option}={asked[option]!r} names columns of logs with one row per round; with round= "
            "the rows themselves say it, with propensity= as the probability of each row's arm.",
            kind="unused_option",
            column=option,
            value=asked[option],
        )
    default = "propensity" if "propensity" in source.header else None
    names = {name: asked[name] for name in ("round", "arm", "reward", "chosen", "propensity", "by")}
    if names["propensity"] is None:
        names["propensity"] = default
    for option, name in names.items():
        if name and name not in source.header:
            raise missing_column(name, option, source.name, source.header)
    return names
