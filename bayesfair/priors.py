"""Conjugate priors per reward family: their defaults, and how a user gives others, arm by arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.checks import check_choice, did_you_mean, listed
from bayesfair.errors import ArmError, OptionError
from bayesfair.labels import by_label

__all__ = ["DEFAULT_PRIOR", "PRIOR_PARAMETERS", "describe_prior", "prior_table"]

#: Default parameters, in the order of `PRIOR_PARAMETERS`.
DEFAULT_PRIOR: dict[str, tuple[float, ...]] = {
    "bernoulli": (0.5, 0.5),
    "finite": (0.5,),
    "poisson": (0.5, 0.5),
    "normal": (0.0, 1.0, 1.0, 1.0),
}

#: Names of the parameters; for ``finite`` one concentration, or one per level.
PRIOR_PARAMETERS: dict[str, tuple[str, ...]] = {
    "bernoulli": ("alpha", "beta"),
    "finite": ("concentration",),
    "poisson": ("shape", "rate"),
    "normal": ("mean", "kappa", "shape", "scale"),
}

_LAW = {
    "bernoulli": "theta ~ Beta({})",
    "finite": "probability ~ Dirichlet({})",
    "poisson": "rate ~ Gamma(shape, rate = {})",
    "normal": "(mean, sd) ~ normal-inverse-gamma(mean, kappa, shape, scale = {})",
}


def prior_table(
    prior: Any, family: str, arms: Sequence[str], n_levels: int | None = None
) -> NDArray[np.float64]:
    """Return the parameters of the conjugate prior, one row per arm.

    Parameters
    ----------
    prior : None, sequence, (k, p) array or mapping of arm to sequence
        None is the default of the family. One row serves every arm; a mapping may leave arms out,
        which then keep the default.
    family : {"bernoulli", "finite", "poisson", "normal"}
        Reward family; decides what the parameters are (`PRIOR_PARAMETERS`).
    arms : sequence of str
        Labels, k of them.
    n_levels : int, optional
        Number of levels of a finite family: one concentration is used for each of them.

    Returns
    -------
    (k, p) array of float
        Always float: integer parameters would overflow in narrow integer types.

    Raises
    ------
    OptionError, ArmError
        Naming the arm, the parameter, its value and what is allowed.

    Examples
    --------
    >>> prior_table({"b": (1, 9)}, "bernoulli", ["a", "b"])
    array([[0.5, 0.5],
           [1. , 9. ]])
    """
    check_choice(family, "family", tuple(DEFAULT_PRIOR))
    k = len(arms)
    names = PRIOR_PARAMETERS[family]
    width = len(names) if family != "finite" else int(n_levels or 1)
    if isinstance(prior, Mapping):
        given = by_label(prior, "arm", "prior")
        unknown = [arm for arm in given if arm not in arms]
        if unknown:
            raise ArmError(
                f"prior names {listed(unknown)}, not among the arms {listed(arms)}."
                f"{did_you_mean(unknown[0], arms)}",
                kind="unknown_arm",
                column="prior",
                value=unknown[0],
            )
        rows = [_row(given.get(arm, DEFAULT_PRIOR[family]), width, names, arm) for arm in arms]
        table = np.array(rows, dtype=np.float64).reshape(k, width)
    elif np.ndim(DEFAULT_PRIOR[family] if prior is None else prior) < 2:
        row = _row(DEFAULT_PRIOR[family] if prior is None else prior, width, names, "every arm")
        table = np.tile(row, (k, 1))
    else:
        if len(prior) != k:
            raise OptionError(
                f"prior has {len(prior)} rows, expected one per arm for {k} arms {listed(arms)}."
            )
        rows = [_row(row, width, names, arm) for row, arm in zip(prior, arms, strict=True)]
        table = np.array(rows, dtype=np.float64).reshape(k, width)
    _check_positive(table, family, names, arms)
    return table


def _row(values: Any, width: int, names: tuple[str, ...], arm: str) -> NDArray[np.float64]:
    try:
        row = np.atleast_1d(np.asarray(values, dtype=np.float64))
    except (TypeError, ValueError):
        raise OptionError(f"prior of {arm!r} is {values!r}; expected numbers {names}.") from None
    if row.shape == (1,) and len(names) == 1:
        row = np.full(width, row[0])
    if row.shape != (width,):
        expected = f"({', '.join(names)})" if len(names) > 1 else f"1 or {width} concentrations"
        raise OptionError(f"prior of {arm!r} is {values!r}; expected {expected}.")
    return row


def _check_positive(
    table: NDArray[np.float64], family: str, names: tuple[str, ...], arms: Sequence[str]
) -> None:
    free = np.array([family == "normal" and name == "mean" for name in names])
    free = np.broadcast_to(free, table.shape[1:]) if len(names) == 1 else free
    bad = ~np.isfinite(table) | (~free & (table <= 0))
    if bad.any():
        i, j = (int(v) for v in np.argwhere(bad)[0])
        name = names[j] if len(names) > 1 else names[0]
        raise OptionError(
            f"prior {name} of arm {arms[i]!r} is {table[i, j]:g}; it must be finite"
            f"{'' if free[j] else ' and above 0'}."
        )


def describe_prior(table: NDArray[np.float64], family: str, arms: Sequence[str]) -> str:
    """Return one line that states the prior, for reports and attributes.

    Examples
    --------
    >>> describe_prior(prior_table(None, "bernoulli", ["a", "b"]), "bernoulli", ["a", "b"])
    'theta ~ Beta(0.5, 0.5), every arm, independent'
    """
    rows = [_numbers(row) for row in table]
    if len(set(rows)) <= 1:
        shown = rows[0] if rows else _numbers(np.array(DEFAULT_PRIOR[family]))
        return f"{_LAW[family].format(shown)}, every arm, independent"
    parts = [f"{arm}: {row}" for arm, row in list(zip(arms, rows, strict=True))[:8]]
    more = f"; and {len(rows) - 8} more" if len(rows) > 8 else ""
    return f"{_LAW[family].format('...')}, per arm {'; '.join(parts)}{more}"


def _numbers(row: NDArray[np.float64]) -> str:
    if row.size > 4 and np.all(row == row[0]):
        return f"{row[0]:g} for each of {row.size} levels"
    return ", ".join(f"{value:g}" for value in row)
