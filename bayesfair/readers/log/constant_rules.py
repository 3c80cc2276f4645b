"""Assemble the rule of a span of rounds from the chosen arms' probabilities in it.

Where two arms or more were never chosen in a span they share what the others leave: their own
probabilities stay unknown, and so do all pairs with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

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
    """Return the log with a column of probabilities for every arm, and the options that read it.

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
        If an arm has two probabilities in one span (naming both rows), or probabilities of a
        span sum to more than 1, or to less where every arm was chosen.
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
    pi, found = _completed(pi, own, logged, asked, source, source.first_row + first)
    unknown = own & np.isnan(pi)
    said = _said(within, layout, encoder.labels, found, own, unknown, np.bincount(span))
    pattern = source.free("p_{arm}", encoder.labels)
    for label, values in zip(encoder.labels, pi.T, strict=True):
        name = pattern.replace("{arm}", label)
        table = table.append_column(name, pa.array(values[span]))
    frame = open_frame(table)
    assert frame is not None
    opened = Source(
        source.name, frame.header, source.first_row, (frame,),
        (*source.notices, *layout.notices, said),
    )  # fmt: skip
    changed = {
        "probabilities": pattern,
        "propensity": layout.propensity if unknown.any() else False,
        "arms": encoder.labels,
    }
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


class _Found(NamedTuple):
    """How many probabilities of arms that were not chosen in a span are 0, and what is left."""

    zero: int
    rest: int


def _completed(
    pi: _Floats,
    own: NDArray[np.bool_],
    logged: _Floats,
    asked: Mapping[str, Any],
    source: Source,
    first_row: NDArray[np.int64],
) -> tuple[_Floats, _Found]:
    """Fill in the arms that were not chosen in a span, where the sum tells what they had."""
    resolution = resolution_of(logged)
    seen = np.isfinite(pi)
    total = np.nansum(pi, axis=1)
    allowed = asked["probability_tolerance"]
    allowed = rounding_of_sums(seen.sum(axis=1), resolution.row_decimals) if allowed is None else (
        np.full(len(pi), allowed)
    )  # fmt: skip
    lost = own & ~seen
    over = total > 1 + allowed
    short = total < 1 - allowed
    if wrong := first_where(over | (short & ~lost.any(axis=1))):
        raise ProbabilityError(
            f"row {first_row[wrong.at]} of {source.name}: of the span that begins here the "
            f"probabilities of the arms chosen in it sum to {total[wrong.at]:.6g}, expected 1. "
            "Name the arms that were never chosen with arms=..., or spans within which the rule "
            f"was constant (constant_within=). ({counted(wrong.n, 'such span')} of {len(pi)}.)",
            kind="not_covered", row=int(first_row[wrong.at]), column="constant_within",
            value=float(total[wrong.at]),
        )  # fmt: skip
    left = np.round(np.maximum(1 - total, 0.0), min(resolution.row_decimals, 12))
    one = short & (lost.sum(axis=1) == 1)
    rest = np.where(short, np.where(one, left, np.nan), 0.0)[:, None]
    pi = np.where(own, np.where(seen, pi, rest), np.nan)
    return pi, _Found(int((lost & ~short[:, None]).sum()), int(one.sum()))


def _said(
    within: list[str],
    layout: Layout,
    labels: tuple[str, ...],
    found: _Found,
    own: NDArray[np.bool_],
    unknown: NDArray[np.bool_],
    rounds: NDArray[np.int64],
) -> Notice:
    """Say what was assembled, and of how many pairs of arms both probabilities are known."""
    n = len(own)
    text = (
        f"The rule was assembled from the chosen arms' probabilities (column "
        f"{layout.propensity!r}) in {counted(n, 'span')}, within which it did not change as "
        f"constant_within= says ({listed(within)})"
    )
    partly = unknown.any(axis=1)
    if partly.any():
        every, known = (m * (m - 1) // 2 for m in (own.sum(axis=1), (own & ~unknown).sum(axis=1)))
        never = [label for label, off in zip(labels, unknown.any(axis=0), strict=True) if off]
        text += (
            f". In {int(partly.sum())} of them two arms or more were not chosen and share an "
            f"unknown rest ({listed(never)}): {int(known.sum())} of {int(every.sum())} pairs of "
            f"arms are covered ({int(known @ rounds)} of {int(every @ rounds)}, counted in every "
            "round), and are audited; of the others there are bounds."
        )
    else:
        text += f": all {len(labels)} arms are covered."
    if found.rest:
        text += (
            f" {found.rest} times the one arm that was not chosen has what the others leave of 1."
        )
    if found.zero:
        text += (
            f" {found.zero} times an arm was not chosen and the others sum to 1: it has "
            "probability 0."
        )
    kind = "rule_covered" if partly.any() else "rule_assembled"
    return Notice(text, kind=kind, column=layout.propensity, n=n)
