"""Conjugate priors in tables: how a user gives them, arm by arm, and how they are told in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bayesfair.base.checks import did_you_mean, listed
from bayesfair.base.labels import by_label
from bayesfair.errors import ArmError, OptionError
from bayesfair.families.base import Family
from bayesfair.families.learned import LearnedPrior
from bayesfair.typing import Floats

__all__ = ["describe_prior", "prior_table"]


def prior_table(
    prior: Any, family: Family, arms: Sequence[str], n_levels: int | None = None
) -> Floats:
    """Return the parameters of the conjugate prior, one row per arm.

    Parameters
    ----------
    prior : None, sequence, (k, p) array or mapping of arm to sequence
        None is the default of the family. One row serves every arm; a mapping may leave arms out,
        which then keep that.
    family : Family
        Decides what the parameters are.
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
    >>> from bayesfair.families import FAMILIES
    >>> prior_table({"b": (1, 9)}, FAMILIES["bernoulli"], ["a", "b"])
    array([[0.5, 0.5],
           [1. , 9. ]])
    """
    k, names = len(arms), family.parameters
    width = int(n_levels or 1) if family.has_levels else len(names)
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
        rows = [_row(given.get(arm, family.default), width, names, arm) for arm in arms]
        table = np.array(rows, dtype=np.float64).reshape(k, width)
    elif prior is None or np.ndim(prior) < 2:
        row = _row(family.default if prior is None else prior, width, names, "every arm")
        table = np.tile(row, (k, 1))
    else:
        if len(prior) != k:
            raise OptionError(
                f"prior has {len(prior)} rows, expected one per arm for {k} arms {listed(arms)}."
            )
        rows = [_row(row, width, names, arm) for row, arm in zip(prior, arms, strict=True)]
        table = np.array(rows, dtype=np.float64).reshape(k, width)
    _check_positive(table, family, arms)
    return table


def _row(values: Any, width: int, names: tuple[str, ...], arm: str) -> Floats:
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


def _check_positive(table: Floats, family: Family, arms: Sequence[str]) -> None:
    names = family.parameters
    free = np.array([name in family.free for name in names])
    free = np.broadcast_to(free, table.shape[1:]) if len(names) == 1 else free
    bad = ~np.isfinite(table) | (~free & (table <= 0))
    if bad.any():
        i, j = (int(v) for v in np.argwhere(bad)[0])
        name = names[j] if len(names) > 1 else names[0]
        raise OptionError(
            f"prior {name} of arm {arms[i]!r} is {table[i, j]:g}; it must be finite"
            f"{'' if free[j] else ' and above 0'}."
        )


def describe_prior(
    table: Floats,
    family: Family,
    arms: Sequence[str],
    learned: LearnedPrior | None = None,
) -> str:
    """Return one line that states the prior, for reports and attributes; whence it was learned.

    Examples
    --------
    >>> from bayesfair.families import FAMILIES
    >>> family, arms = FAMILIES["bernoulli"], ["a", "b"]
    >>> describe_prior(prior_table(None, family, arms), family, arms)
    'theta ~ Beta(0.5, 0.5), every arm, independent'
    """
    same = len(table) > 0 and bool((table == table[0]).all())
    rows = [_numbers(row) for row in (table[:1] if same else table)]
    if len(set(rows)) <= 1:
        shown = rows[0] if rows else _numbers(np.array(family.default))
        whence = "" if learned is None else f", {learned.words()}"
        return f"{family.law.format(shown)}, every arm, independent{whence}"
    parts = [f"{arm}: {row}" for arm, row in list(zip(arms, rows, strict=True))[:8]]
    more = f"; and {len(rows) - 8} more" if len(rows) > 8 else ""
    return f"{family.law.format('...')}, per arm {'; '.join(parts)}{more}"


def _numbers(row: Floats) -> str:
    if row.size > 4 and np.all(row == row[0]):
        return f"{row[0]:g} for each of {row.size} levels"
    return ", ".join(f"{value:g}" for value in row)
