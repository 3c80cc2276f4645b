"""Audits as data frames: a row per arm, or per group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesfair.audit.numbers import audit_numbers
from bayesfair.audit.truth.conjugate import posterior_rewards
from bayesfair.base.estimates import ENDS

if TYPE_CHECKING:
    import pandas as pd

    from bayesfair.audit.group import GroupRecord
    from bayesfair.audit.record import Record

__all__ = ["arm_frame", "group_frame"]

_DRAWS = 4000


def arm_frame(audit: Record) -> pd.DataFrame:
    """Return one row per arm; see `Audit.to_dataframe`."""
    import pandas as pd

    table = pd.DataFrame(audit_numbers(audit)["arms"]).set_index("arm")
    means = np.full((1, len(table)), np.nan)
    if audit.context_model is None and audit.state.beliefs != ():
        laws: Any = posterior_rewards(audit.state, _DRAWS, np.random.default_rng(0))
        means = np.asarray(laws.mean, dtype=np.float64)
    table["reward_believed"] = means.mean(axis=0)
    table["reward_lower"], table["reward_upper"] = np.quantile(means, ENDS, axis=0)
    return table


def group_frame(audits: GroupRecord) -> pd.DataFrame:
    """Return one row per group; see `AuditGroup.to_dataframe`."""
    import pandas as pd

    rows = {}
    for label, found in audits.brief()["groups"].items():
        believed, true = found["subjective"], found["objective"] or {}
        regret = found["calibration"]["subjective"]
        rows[label] = {
            "verdict": found["verdict"],
            "subjective": believed["verdict"],
            "objective": true.get("verdict"),
            "n_judged": found["log"]["n_judged"],
            "smallest_eps2": believed["smallest_eps2"],
            "probability_fair": true.get("probability_fair"),
            "regret_per_round": regret["regret_per_round"],
            "regret_lower": regret["lower"],
            "regret_upper": regret["upper"],
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("group")
