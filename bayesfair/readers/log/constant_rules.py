"""Assemble the whole rule of a span of rounds from the chosen arms' probabilities in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.checks import counted, first_where, listed
from bayesfair.base.label_encoder import LabelEncoder
from bayesfair.base.notices import Notice
from bayesfair.errors import OptionError, ProbabilityError
from bayesfair.history.probabilities import clipped_propensity, resolution_of, rounding_of_sums
from bayesfair.readers.files.frames import open_frame
from bayesfair.readers.files.headers import missing_column
from bayesfair.readers.files.tables import Source
from bayesfair.readers.log.columns import Layout, names_in
from bayesfair.readers.values.times import NUMBER, duration, order_values
from bayesfair.readers.values.values import numbers

__all__ = ["with_assembled_rule"]

_AGREE = 1e-6  # how far apart values of one arm may lie: as sums from 1
type _Floats = NDArray[np.float64]


def with_assembled_rule(
    source: Source, asked: Mapping[str, Any], layout: Layout, *, by_group: bool
) -> tuple[Source, dict[str, Any]]:
    """Return the log with a probability of every arm, and the options that read it.

    Parameters
    ----------
    source : Source
        The log, with the probability of the chosen arm in each row.
    asked : mapping
        All `LogOptions`; `constant_within` names columns within whose values (and within groups)
        the rule did not change, or a duration.
    layout : Layout
        Which column plays which part.
    by_group : bool
        Whether each group has its own arms.

    Raises
    ------
    OptionError
        If the whole rule was logged, nothing of it, or no times are there to count a duration in.
    ProbabilityError
        If an arm has two probabilities in one span (naming both rows), probabilities of a
        span sum to more than 1, or leave room for two arms or more that were never chosen in it.
    """
    import pyarrow as pa

    within = names_in(asked["constant_within"])
    if layout.probabilities or not layout.propensity:
        there = "the probabilities of all arms are there" if layout.probabilities else (
            "no probability of the chosen arm is there (propensity=)"
        )  # fmt: skip
        raise OptionError(
            f"constant_within={asked['constant_within']!r} assembles a rule from the chosen arms' "
            f"probabilities, but in {source.name} {there}. Leave it out.",
            kind="option_without_effect", column="constant_within",
        )  # fmt: skip
    table, column = source.whole()
    n = table.num_rows
    encoder = LabelEncoder("arm", asked["arms"])
    (arm,) = encoder.settled(encoder.encode(*column(layout.arm)))
    chance = numbers(*column(layout.propensity), decimal=asked["decimal"])
    span = np.zeros(n, np.int64)
    for name in [*within, *([layout.by] if layout.by else [])]:
        seconds = duration(name)
        if name not in source.header and seconds is not None:
            codes = _windows(column, layout, asked, seconds)
        elif name not in source.header:
            raise missing_column(name, "constant_within", source.name, source.header)
        else:
            codes = LabelEncoder("span").encode(*column(name)).astype(np.int64)
        codes = np.unique(codes, return_inverse=True)[1]
        span = np.unique(span * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)[1]
    known = np.flatnonzero((arm >= 0) & np.isfinite(chance))
    where = column(layout.propensity)[1]
    logged, _ = clipped_propensity(chance[known], lambda i: where(int(known[i])))
    k, size = len(encoder.labels), int(span.max(initial=0)) + 1
    low, high = np.full((size, k), np.inf), np.full((size, k), -np.inf)
    at = span[known], arm[known]
    np.minimum.at(low, at, logged)
    np.maximum.at(high, at, logged)
    agree = asked["probability_tolerance"]
    agree = _AGREE if agree is None else agree
    wrong = (high - low) > agree
    if wrong.any():
        t = int(known[wrong[at]][0])
        same = known[(at[0] == span[t]) & (at[1] == arm[t])]
        other = int(same[np.abs(chance[same] - chance[t]) > agree][0])
        raise ProbabilityError(
            f"{where(other)}: the probability of arm "
            f"{encoder.labels[arm[t]]!r} is {chance[other]:g}, but {chance[t]:g} in row "
            f"{source.first_row + t} of the same span ({counted(int(wrong.sum()), 'such arm')} "
            f"over all spans). The rule was not constant within "
            f"{listed(within)}: name columns or a duration within which it was, or leave "
            "constant_within= out and have the chosen arms' probabilities audited.",
            kind="not_constant", row=source.first_row + other, column=layout.propensity,
            value=float(chance[other]),
        )  # fmt: skip
    pi = np.full((size, k), np.nan)
    pi[at] = (low[at] + high[at]) / 2
    first = np.unique(span, return_index=True)[1]
    own = np.ones((size, k), np.bool_)
    if by_group:
        group = LabelEncoder("group").encode(*column(str(layout.by)))
        met = np.zeros((int(group.max()) + 2, k), np.bool_)  # -1: refused when it is read
        met[group[known], arm[known]] = True
        own = met[group[first]]
    pi, zero, rest = _completed(
        pi, own, logged, asked, encoder.labels, source, source.first_row + first
    )
    pattern = source.free("p_{arm}", encoder.labels)
    for label, values in zip(encoder.labels, pi.T, strict=True):
        name = pattern.replace("{arm}", label)
        table = table.append_column(name, pa.array(values[span]))
    frame = open_frame(table)
    assert frame is not None
    opened = Source(
        source.name, frame.header, source.first_row, (frame,),
        (*source.notices, *layout.notices, _said(within, layout, size, encoder.labels, zero, rest)),
    )  # fmt: skip
    changed = {"probabilities": pattern, "propensity": False, "arms": encoder.labels}
    return opened, changed


def _windows(
    column: Any, layout: Layout, asked: Mapping[str, Any], seconds: float
) -> NDArray[np.int64]:
    """Return the number of each row's window of the clock."""
    option = f"constant_within={asked['constant_within']!r}"
    if not layout.order:
        raise OptionError(
            f"{option} is a duration, and there are no times. Name their column with order=..., or "
            "name columns within which the rule was constant.",
            kind="needs_time", column="constant_within",
        )  # fmt: skip
    values, kind = order_values(*column(layout.order), decimal=asked["decimal"])
    if kind == NUMBER or not seconds:
        raise OptionError(
            f"{option}: a duration above 0 needs times, and column {layout.order!r} holds numbers "
            "of no known unit." if seconds else f"{option} is no duration above 0.",
            kind="needs_time", column="constant_within",
        )  # fmt: skip
    micro = values.astype("datetime64[us]").astype(np.int64)
    return np.asarray(micro // round(seconds * 1e6), np.int64)


def _completed(
    pi: _Floats,
    own: NDArray[np.bool_],
    logged: _Floats,
    asked: Mapping[str, Any],
    labels: tuple[str, ...],
    source: Source,
    first_row: NDArray[np.int64],
) -> tuple[_Floats, int, int]:
    """Fill in the arms that were not chosen in a span, where the sum tells what they had.

    Also how many such probabilities are 0, and how many are what the others left.
    """
    resolution = resolution_of(logged)
    seen = np.isfinite(pi)
    total = np.nansum(pi, axis=1)
    allowed = asked["probability_tolerance"]
    allowed = rounding_of_sums(seen.sum(axis=1), resolution.row_decimals) if allowed is None else (
        np.full(len(pi), allowed)
    )  # fmt: skip
    lost = own & ~seen
    n_lost = lost.sum(axis=1)
    over = total > 1 + allowed
    short = total < 1 - allowed
    if wrong := first_where(over | (short & (n_lost != 1))):
        gone = [label for label, off in zip(labels, lost[wrong.at], strict=True) if off]
        k, m = int(own[wrong.at].sum()), len(gone)
        what = f"the probabilities of the arms chosen in it sum to {total[wrong.at]:.6g}"
        if over[wrong.at] or not gone:
            why = (
                ", expected 1. Name the arms that were never chosen with arms=..., or spans "
                "within which the rule was constant (constant_within=)."
            )
        else:
            uncovered = m * (k - m) + m * (m - 1) // 2
            why = (
                f", and how {listed(gone)} share the rest is not known: {uncovered} of "
                f"{k * (k - 1) // 2} pairs of arms are not covered. Name longer spans, or "
                "leave constant_within= out and have the chosen arms' probabilities audited."
            )
        raise ProbabilityError(
            f"row {first_row[wrong.at]} of {source.name}: of the span that begins here {what}{why} "
            f"({counted(wrong.n, 'such span')} of {len(pi)}.)",
            kind="not_covered", row=int(first_row[wrong.at]), column="constant_within",
            value=float(total[wrong.at]),
        )  # fmt: skip
    left = np.round(np.maximum(1 - total, 0.0), min(resolution.row_decimals, 12))
    rest = np.where(own, np.where(short, left, 0.0)[:, None], np.nan)
    return np.where(seen, pi, rest), int((lost & ~short[:, None]).sum()), int(short.sum())


def _said(
    within: list[str], layout: Layout, n: int, labels: tuple[str, ...], zero: int, rest: int
) -> Notice:
    text = (
        f"The rule was assembled from the chosen arms' probabilities (column "
        f"{layout.propensity!r}) in {counted(n, 'span')}, within which it did not change as "
        f"constant_within= says ({listed(within)}): all {len(labels)} arms are covered."
    )
    if rest:
        text += f" {rest} times the one arm that was not chosen has what the others leave of 1."
    if zero:
        text += (
            f" {zero} times an arm was not chosen and the others sum to 1: it has probability 0."
        )
    return Notice(text, kind="rule_assembled", column=layout.propensity, n=n)
