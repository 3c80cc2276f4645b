"""Checks of logged probabilities: the one home of their tolerances, messages and rounding.

Logs are written with a few decimals or as float32. What was lost there is the *resolution*: it
widens the tolerance of a verdict, with a notice, and never more than the log itself shows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.checks import counted, first_where
from bayesfair.base.notices import Notice
from bayesfair.errors import ProbabilityError
from bayesfair.kernels.log.rows import decimals_of, look_at_rows

__all__ = [
    "Repairs",
    "Resolution",
    "checked_rows",
    "clipped_propensity",
    "resolution_of",
    "rounding_of_sums",
    "units_of",
]

_MAX_DECIMALS = 12
# numbers to the power of an array are rounded otherwise on some processors than the literals
_UNITS = np.array([float(f"1e-{d}") for d in range(_MAX_DECIMALS + 1)] + [0.0])
# A rule that learns logs many different values. A handful of round ones (0.25; 0.95 and 0.05; 1/16)
# is how the rule was designed, not how it was rounded.
_FEW = 20
# Whole numbers and tenths show next to nothing of a rule; rounding as coarse as that is no excuse.
_COARSE, _MOST_COARSE_ERROR = 1, 0.02


@dataclass(frozen=True)
class Repairs:
    """What was put right within the tolerance, counted; mergeable over the parts of a log.

    Attributes
    ----------
    n_rescaled : int
        Rows of probabilities that did not sum to 1 exactly.
    largest : float
        Largest difference of such a sum from 1.
    n_clipped : int
        Propensities above 1 by at most 1e-6.
    """

    n_rescaled: int = 0
    largest: float = 0.0
    n_clipped: int = 0

    def merged(self, other: Repairs) -> Repairs:
        """Return the repairs of both parts."""
        return Repairs(
            self.n_rescaled + other.n_rescaled,
            max(self.largest, other.largest),
            self.n_clipped + other.n_clipped,
        )

    def sentences(self) -> list[Notice]:
        """Return notices that state the repairs."""
        found = []
        if self.n_rescaled:
            verb = "was" if self.n_rescaled == 1 else "were"
            found.append(Notice(
                f"{counted(self.n_rescaled, 'row')} of selection probabilities did not sum to 1 "
                f"exactly (largest difference {self.largest:.1e}) and {verb} rescaled.",
                kind="rescaled", value=self.largest, n=self.n_rescaled,
            ))  # fmt: skip
        if self.n_clipped:
            many = (
                "1 propensity lay" if self.n_clipped == 1 else f"{self.n_clipped} propensities lay"
            )
            text = f"{many} above 1 by at most 1e-6; set to 1."
            found.append(Notice(text, kind="clipped", n=self.n_clipped))
        return found


@dataclass(frozen=True)
class Resolution:
    """How finely probabilities were logged; mergeable over the parts of a log.

    Attributes
    ----------
    decimals : int
        Most decimals seen, 13 if more than 12.
    single : bool
        Values are float32 (exactly representable in single precision, and not few decimals).
    values : frozenset of float
        The different values, while they are few.
    """

    decimals: int = 0
    single: bool = True
    values: frozenset[float] = frozenset()

    def merged(self, other: Resolution) -> Resolution:
        """Return the resolution of both parts together."""
        return Resolution(
            max(self.decimals, other.decimals),
            self.single and other.single,
            self.values if len(self.values) > _FEW else self.values | other.values,
        )

    @property
    def row_decimals(self) -> int:
        """Decimals used for the default tolerance of row sums."""
        return 7 if self.single and self.decimals > 7 else self.decimals

    @property
    def unit(self) -> float:
        """Largest error of a difference of two logged values; 0 where they are exact."""
        exact = self.decimals <= 2 or _dyadic(self.values) or _even(self.values)
        if len(self.values) <= _FEW and exact:
            return 0.0
        if self.single and self.decimals > 6:
            return 2.0**-23
        return float(_UNITS[min(self.decimals, _MAX_DECIMALS + 1)])


def _dyadic(values: frozenset[float]) -> bool:
    """Whether all values are multiples of 2^-10: designed, and exact in binary."""
    return all((value * 1024).is_integer() for value in values)


def _even(values: frozenset[float]) -> bool:
    """Whether there is one value, 1 of so many arms: that is what it was meant to be."""
    return len(values) == 1 and all(v > 0 and v * round(1 / v) == 1 for v in values)


def _significant(flat: NDArray[np.float64]) -> int:
    """Return the most significant digits that a value has, 13 if more than 12."""
    return int(_significant_each(flat).max(initial=0))


def _significant_each(flat: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the significant digits of every value; 0 where it is 0."""
    size = np.abs(flat)
    there = size > np.finfo(np.float64).tiny  # below, the power of ten is 0
    found = np.zeros(len(flat), np.int64)
    mantissa = size[there] / 10.0 ** np.floor(np.log10(size[there]))  # in [1, 10)
    found[there] = 1 + _decimals_each(mantissa)
    return found


_SAMPLED = 2000
_LONG = 100_000  # values from which on one compiled pass pays


def resolution_of(values: NDArray[Any]) -> Resolution:
    """Return how finely ``values`` were logged."""
    values = np.asarray(values).ravel()
    sample = _finite(values[:: max(1, values.size // _SAMPLED)])
    single = values.dtype == np.float32 or _are_single(sample)
    if not single:
        few, decimals = _few_values(sample), _decimals(sample)
        if decimals > _MAX_DECIMALS and len(few) > _FEW:
            return Resolution(decimals, False, few)  # no other value could add to this
        values = _finite(values)
        decimals = _decimals(values, start=decimals)
        if decimals > 6 and _significant(sample) < decimals:  # written with significant digits
            decimals = min(decimals, _significant(values))
        return Resolution(decimals, False, _few_values(values))
    values = _finite(values)
    if _are_single(values):
        # 0.1 stored as float32 is not 0.1: look at the shortest decimal form of the sample instead
        decimals = _decimals(np.array([float(str(np.float32(v))) for v in sample]))
        return Resolution(decimals, True, _few_values(values))
    return Resolution(_decimals(values), False, _few_values(values))


def rows_and_resolution(
    pi: NDArray[np.float64], arm: NDArray[np.int32], logged: NDArray[Any]
) -> tuple[float, Resolution]:
    """Return how far rows of ``(T, k)`` probabilities sum from 1 at most, and how fine they are.

    The distance is that of `look_at_rows`, infinite for short logs. One pass is enough where all
    have as few decimals as a sample of them; ``logged`` holds them as they were given.
    """
    if pi.size < _LONG or logged.dtype != np.float64:
        return np.inf, resolution_of(logged)
    sample = _finite(pi.ravel()[:: max(1, pi.size // _SAMPLED)])
    decimals = _decimals(sample)
    plain = decimals <= 6 and not _are_single(sample)
    error, finer = look_at_rows(pi, arm, decimals if plain else 0)
    if not plain or finer or not np.isfinite(error):
        return error, resolution_of(logged)
    return error, Resolution(decimals, False, _few_values(pi.ravel()))


def _finite(values: NDArray[Any]) -> NDArray[np.float64]:
    values = values.astype(np.float64, copy=False)
    finite = np.isfinite(values)
    return values if finite.all() else values[finite]


def _are_single(values: NDArray[np.float64]) -> bool:
    with np.errstate(over="ignore"):  # scores may be anything
        return bool(np.all(values.astype(np.float32).astype(np.float64) == values))


def _few_values(flat: NDArray[np.float64]) -> frozenset[float]:
    for size in (1000, flat.size):  # usually settled by the first thousand
        distinct = np.unique(flat[:size])
        if distinct.size > _FEW or size >= flat.size:
            break
    return frozenset(distinct[: _FEW + 1].tolist())


def _decimals(flat: NDArray[np.float64], start: int = 0) -> int:
    """Return the most decimals that a value has, at least ``start`` (known to be needed)."""
    return int(_decimals_each(flat, start).max(initial=start))


def _decimals_each(flat: NDArray[np.float64], start: int = 0) -> NDArray[np.int8]:
    """Return the decimals of every value, at least ``start``, 13 if more than 12."""
    return decimals_of(flat, start, _MAX_DECIMALS)


_SAMPLED_FROM = 4000  # values from which on `resolution_of` looks at a sample first


def units_of(
    values: NDArray[np.float64], bounds: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the resolution of many parts of a table at once.

    Parameters
    ----------
    values : (n, k) array
        Probabilities as they were logged, all finite.
    bounds : (G + 1,) array of int
        Part g has the rows bounds[g] to bounds[g + 1] - 1, at least one.

    Returns
    -------
    units : (G,) array
        `Resolution.unit` of each part.
    n_values : (G,) array of int
        How many different values it has.
    """
    flat, edges = values.ravel(), bounds * values.shape[1]
    starts, sizes = edges[:-1], np.diff(edges)
    order = np.lexsort((flat, np.repeat(np.arange(len(sizes)), sizes)))
    new = np.append(True, np.diff(flat[order]) != 0)
    new[starts] = True
    n_values = np.add.reduceat(new.astype(np.int64), starts)
    decimals = np.maximum.reduceat(_decimals_each(flat), starts)
    significant = np.maximum.reduceat(_significant_each(flat), starts)
    with np.errstate(over="ignore"):
        single = np.logical_and.reduceat(flat.astype(np.float32) == flat, starts)
    dyadic = np.logical_and.reduceat(flat * 1024 == np.rint(flat * 1024), starts)
    few = n_values <= _FEW
    unknown = (decimals > _MAX_DECIMALS) & ~few
    shorter = ~unknown & (decimals > 6) & (significant < decimals)
    decimals = np.where(shorter, np.minimum(decimals, significant), decimals)
    units = _UNITS[np.minimum(decimals, _MAX_DECIMALS + 1)]
    first = np.where(flat[starts] > 0, flat[starts], np.nan)
    even = (n_values == 1) & (first * np.rint(1 / first) == 1)
    units[few & ((decimals <= 2) | dyadic | even)] = 0.0
    known: dict[bytes, float] = {}
    for g in np.flatnonzero((single & ~(few & dyadic)) | (sizes >= _SAMPLED_FROM)).tolist():
        part = flat[edges[g] : edges[g + 1]]
        key = np.unique(part).tobytes() if len(part) < _SAMPLED_FROM else b""
        if key not in known or not key:
            known[key] = resolution_of(part).unit
        units[g] = known[key]
    return units, n_values


def _refuse_scale(
    value: float, where: str, what: str, *, logarithms: bool, column: str | None = None
) -> None:
    """Raise for a value that is no probability, guessing what it is instead."""
    fields: dict[str, Any] = {"kind": "bad_probability", "column": column, "value": value}
    if logarithms and value < 0:
        raise ProbabilityError(
            f"{where}: {what} is {value:g}, and none is above 0. These look like logarithms "
            f"(exp({value:g}) = {np.exp(value):.4g}); take exp() before the audit.",
            **fields,
        )
    if value > 1:
        percent = 1.5 < value <= 100
        hint = "These look like percent" if percent else "If these are scores"
        hint += "; divide by 100." if percent else ", divide by the row's sum."
        raise ProbabilityError(
            f"{where}: {what} is {value:g}, above 1. A probability lies in [0, 1]. {hint}",
            **fields,
        )
    raise ProbabilityError(
        f"{where}: {what} is {value:g}, below 0. A probability lies in [0, 1]; "
        "correct the log, nothing is clipped.",
        **fields,
    )


def rounding_of_sums(n: NDArray[np.int64], decimals: int) -> NDArray[np.float64]:
    """Return how far rounding can move sums of ``n`` numbers written with so many decimals.

    Half a unit of the last decimal for each of them, and at least 1e-6.

    Examples
    --------
    >>> rounding_of_sums(np.array([2, 10]), 2).tolist()
    [0.01, 0.05]
    """
    error = n / 2 * 10.0**-decimals
    if decimals <= _COARSE:
        error = np.minimum(error, _MOST_COARSE_ERROR)
    return np.asarray(np.maximum(error, 1e-6))


def checked_rows(
    pi: NDArray[np.float64],
    arm: NDArray[np.int32],
    arms: Sequence[str],
    where: Callable[[int], str],
    *,
    tolerance: float | None,
    resolution: Resolution,
) -> tuple[NDArray[np.float64], Repairs]:
    """Return selection probabilities whose rows sum to 1, and how many were rescaled.

    Parameters
    ----------
    pi : (T, k) array
        Logged probabilities; NaN = arm not on offer.
    arm : (T,) array of int
        Chosen arm per round.
    arms : sequence of str
        Labels.
    where : callable
        Names a round for messages.
    tolerance : float or None
        Allowed distance of a row sum from 1; None = what rounding can cause (`rounding_of_sums`).
    resolution : Resolution
        How finely the values were logged.

    Returns
    -------
    pi : (T, k) array
        Rows that sum to 1 over the arms on offer.
    repairs : Repairs
        How many rows were rescaled, and by how much at most.

    Raises
    ------
    ProbabilityError
        Naming the first row that is no distribution, or that excludes the chosen arm.
    """
    n_rounds, k = pi.shape
    if not n_rounds:
        return pi, Repairs()
    if bad := first_where((pi < 0) | (pi > 1 + 1e-6)):
        t, i = divmod(bad.at, k)
        what = f"the probability of arm {arms[i]!r}"
        logs = bool(np.nanmax(pi) <= 0)
        _refuse_scale(float(pi[t, i]), where(t), what, logarithms=logs, column=arms[i])
    chosen = pi[np.arange(n_rounds), arm]
    if absent := first_where(np.isnan(chosen)):
        raise ProbabilityError(
            f"{where(absent.at)}: the probability of the chosen arm {arms[arm[absent.at]]!r} is "
            "missing (NaN). "
            "NaN means that the arm was not on offer; fill in its probability or correct the arm.",
            kind="missing_probability",
            column=arms[arm[absent.at]],
        )
    sums = np.nansum(pi, axis=1)
    off = np.abs(sums - 1)
    allowed = (
        rounding_of_sums(np.isfinite(pi).sum(axis=1), resolution.row_decimals)
        if tolerance is None
        else np.full(n_rounds, tolerance)
    )
    if wrong := first_where(off > allowed * (1 + 1e-9)):
        shown = ", ".join(f"{a} {p:.6g}" for a, p in list(zip(arms, pi[wrong.at], strict=True))[:6])
        raise ProbabilityError(
            f"selection probabilities of {where(wrong.at)} sum to {sums[wrong.at]:.6g}, expected "
            "1 (tolerance "
            f"{allowed[wrong.at]:.1g}; {counted(wrong.n, 'such row')}). "
            f"Arms: {shown}{', ...' if k > 6 else ''}. "
            "If these are scores, normalise them first; leave arms empty that are not on offer.",
            kind="row_sum",
            value=float(sums[wrong.at]),
        )
    if never := first_where(chosen <= 0):
        raise ProbabilityError(
            f"{where(never.at)}: arm {arms[arm[never.at]]!r} was chosen although its logged "
            "probability is 0 "
            f"({counted(never.n, 'such row')}). "
            "The log and the rule disagree; check that the columns "
            "belong to these arms and to the state before the choice.",
            kind="chosen_with_0",
            column=arms[arm[never.at]],
        )
    rescaled = off > 1e-12
    if not rescaled.any():
        return pi, Repairs()
    pi = pi.copy()  # row by row, so that a part of a log gives what the whole gives
    pi[rescaled] /= sums[rescaled, None]
    largest = float(off.max())
    if largest <= 1e-9:  # rounding of double-precision sums: nothing worth a notice
        return pi, Repairs()
    return pi, Repairs(int((off > 1e-9).sum()), largest)


def clipped_propensity(
    propensity: NDArray[np.float64], where: Callable[[int], str]
) -> tuple[NDArray[np.float64], Repairs]:
    """Return propensities of the chosen arms in (0, 1]; values up to 1 + 1e-6 are set to 1.

    Raises
    ------
    ProbabilityError
        Naming the first value that is missing, not positive, or above 1.
    """
    if bad := first_where(~((propensity > 0) & (propensity <= 1 + 1e-6))):
        t = bad.at
        value = propensity[t]
        if np.isnan(value):
            raise ProbabilityError(
                f"{where(t)}: the propensity of the chosen arm is missing (NaN, "
                f"{counted(bad.n, 'such row')}). "
                "Fill it in, or leave `propensity` out to audit without it."
            )
        if value == 0:
            raise ProbabilityError(
                f"{where(t)}: the propensity of the chosen arm is 0, yet it was chosen "
                f"({counted(bad.n, 'such row')}). Correct the log."
            )
        logarithms = bool(np.nanmax(propensity) <= 0)
        _refuse_scale(float(value), where(t), "the propensity", logarithms=logarithms)
    over = propensity > 1
    if not over.any():
        return propensity, Repairs()
    return np.minimum(propensity, 1.0), Repairs(n_clipped=int(over.sum()))
