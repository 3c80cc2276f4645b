"""The value of rules: what `policy_value` returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesfair.base.checks import listed
from bayesfair.base.html import Shown
from bayesfair.base.notices import Notice
from bayesfair.base.value_text import render_value
from bayesfair.value.estimates import Estimate

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

__all__ = ["PolicyValue", "RuleValue"]

_ESTIMATORS = ("ips", "self_normalised", "doubly_robust")


@dataclass(frozen=True)
class RuleValue(Shown):
    """What a rule would have earned per round, and what it would have cost in fairness.

    Attributes
    ----------
    rule : str
        Its name; ``"logged"`` is the rule that was logged, whose weights are 1.
    ips, self_normalised, doubly_robust : Estimate
        Reward per round with its 95 % interval; NaN where there is none.
    effective_sample_size : float
        How many rounds of equal weight the weighted ones are worth.
    mean_weight, max_weight : float
        Of the weights; the mean is 1 on average where the rule stays within what was logged.
    unsupported : float
        Mean probability that the rule gives to arms that the logged rule never chooses in the
        round; NaN where only the chosen arm's probability was logged.
    fairness_regret : float
        Shortfall from P* per round, under the beliefs before each round; between 0 and 1.
    """

    rule: str
    ips: Estimate
    self_normalised: Estimate
    doubly_robust: Estimate
    effective_sample_size: float
    mean_weight: float
    max_weight: float
    unsupported: float
    fairness_regret: float

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers by name, None for those that there are not."""
        found: dict[str, Any] = {"rule": self.rule}
        for name in _ESTIMATORS:
            estimate = getattr(self, name)._asdict()
            found[name] = {part: _or_none(value) for part, value in estimate.items()}
        for name in ("effective_sample_size", "mean_weight", "max_weight", "unsupported",
                     "fairness_regret"):  # fmt: skip
            found[name] = _or_none(getattr(self, name))
        return found


@dataclass(frozen=True)
class PolicyValue(Shown):
    """Utility and fairness of several rules in one table; `str` is the report.

    Attributes
    ----------
    source : str
        The log.
    rules : tuple of RuleValue
        The logged rule first, then those that were asked for.
    n_rounds, n_used : int
        Rounds that count, and those of them whose reward was observed.
    family, prior : str
        Of the beliefs: reward family, and prior in words.
    notices : tuple of str
        What a reader has to know.
    """

    source: str
    rules: tuple[RuleValue, ...]
    n_rounds: int
    n_used: int
    family: str
    prior: str
    notices: tuple[str, ...]

    def __getitem__(self, rule: str) -> RuleValue:
        """Return the numbers of a rule by its name."""
        for found in self.rules:
            if found.rule == rule:
                return found
        raise KeyError(f"{rule!r}; rules: {listed(found.rule for found in self.rules)}")

    def to_dict(self) -> dict[str, Any]:
        """Return everything, JSON-ready."""
        return {
            "source": self.source,
            "n_rounds": self.n_rounds,
            "n_used": self.n_used,
            "family": self.family,
            "prior": self.prior,
            "rules": [found.to_dict() for found in self.rules],
            "notices": [str(notice) for notice in self.notices],
            "notice_details": [Notice.of(notice).to_dict() for notice in self.notices],
        }

    def to_xarray(self) -> xr.Dataset:
        """Return the table, dims ``(rule, estimator)``: value, lower, upper; the rest by rule."""
        import xarray as xr

        estimates = [[getattr(found, name) for name in _ESTIMATORS] for found in self.rules]
        values = np.array(estimates, dtype=np.float64)
        columns: dict[str, Any] = {
            name: (("rule", "estimator"), values[..., i]) for i, name in enumerate(Estimate._fields)
        }
        for name in ("effective_sample_size", "mean_weight", "max_weight", "unsupported",
                     "fairness_regret"):  # fmt: skip
            columns[name] = ("rule", [getattr(found, name) for found in self.rules])
        coords = {"rule": [found.rule for found in self.rules], "estimator": list(_ESTIMATORS)}
        return xr.Dataset(columns, coords=coords)

    def to_dataframe(self) -> pd.DataFrame:
        """Return one row per rule: each estimate with its ends, and the rest; index ``rule``."""
        import pandas as pd

        rows = [found.to_dict() for found in self.rules]
        for row in rows:
            for name in _ESTIMATORS:
                part = row.pop(name)
                row |= {name: part["value"], **{f"{name}_{e}": part[e] for e in ("lower", "upper")}}
        return pd.DataFrame(rows).set_index("rule")

    def __str__(self) -> str:
        return render_value(self.to_dict())


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
