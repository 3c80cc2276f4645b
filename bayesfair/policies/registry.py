"""Rules by name, for the command line and for readers of reports."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from typing import Any

from bayesfair.base.arguments import takes
from bayesfair.base.checks import check_choice, did_you_mean
from bayesfair.errors import OptionError
from bayesfair.policies.calibrated import SDTS, CalibratedOracle, FairSDTS, SDTSMixture
from bayesfair.policies.classic import (
    UCB1,
    EpsilonGreedy,
    Greedy,
    RandomisedPlayTheWinner,
    Softmax,
    Thompson,
    Uniform,
)
from bayesfair.policies.duels import FairSDDTS
from bayesfair.policies.fair_rivals import ChainedConfidence, FairnessOfExposure
from bayesfair.policies.features import LinUCB

__all__ = ["POLICIES", "policy_from_name"]

#: Name -> class, in the order shown to users.
POLICIES: dict[str, type[Any]] = {
    cls.name: cls
    for cls in (
        SDTS,
        SDTSMixture,
        FairSDTS,
        CalibratedOracle,
        Uniform,
        Greedy,
        EpsilonGreedy,
        UCB1,
        Thompson,
        LinUCB,
        RandomisedPlayTheWinner,
        Softmax,
        ChainedConfidence,
        FairnessOfExposure,
        FairSDDTS,
    )
}


@takes()
def policy_from_name(name: str, params: Mapping[str, Any] | None = None) -> Any:
    """Return the rule of this name with these parameters.

    Parameters
    ----------
    name : str
        One of `POLICIES`, such as ``"fair_sd_ts"``; dashes may replace underscores.
    params : mapping, optional
        Parameters by name. Text is read as a number where it is one, as on a command line.

    Returns
    -------
    Policy or FairSDDTS
        ``"fair_sd_dts"`` chooses pairs and is run by `simulate_duels`, all others by `simulate`.

    Raises
    ------
    OptionError
        For an unknown name or parameter, naming the known ones, or a value out of range.

    Examples
    --------
    >>> policy_from_name("fair_sd_ts", {"eps2": "0.1", "delta": 0.05}).describe()
    "fair_sd_ts(eps2=0.1, delta=0.05, C='union')"
    """
    key = name.replace("-", "_").casefold() if isinstance(name, str) else name
    cls = POLICIES[check_choice(key, "policy", tuple(POLICIES))]
    fields = {f.name: f for f in dataclasses.fields(cls)}
    hints = typing.get_type_hints(cls)
    values = {}
    for given, value in (params or {}).items():
        if given not in fields:
            known = ", ".join(fields) or "none"
            raise OptionError(
                f"{key} has no parameter {given!r}. Parameters: {known}."
                f"{did_you_mean(given, fields)}"
            )
        values[given] = _converted(value, hints[given], f"{key}: {given}")
    return cls(**values)


def _converted(value: Any, hint: Any, where: str) -> Any:
    if not isinstance(value, str):
        return value
    kinds = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    for kind in (int, float):
        if kind in kinds:
            try:
                return kind(value)
            except ValueError:
                continue
    if bool in kinds and value.casefold() in ("true", "false"):
        return value.casefold() == "true"
    if str in kinds or Any in kinds:
        return value
    raise OptionError(f"{where}={value!r} must be a number.")
