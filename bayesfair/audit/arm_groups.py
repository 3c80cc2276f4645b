"""Pairs of arms between and within groups, such as regions or sellers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.audit.cells import FullCell
from bayesfair.audit.pairs import bernoulli_means, find_pairs
from bayesfair.audit.result import Audit
from bayesfair.audit.running import parts_of
from bayesfair.checks import did_you_mean, listed
from bayesfair.errors import ArmError, OptionError
from bayesfair.rewards import Bernoulli

__all__ = ["with_arm_groups"]


def with_arm_groups(audit: Audit, arm_groups: Mapping[str, str]) -> Audit:
    """Return the audit with ``arm_groups`` in its `to_dict`: one entry per pair of groups.

    Each entry names both groups (the same one for pairs within), the smallest eps2 over their
    pairs under the beliefs, and the share of violating rounds.

    Raises
    ------
    ArmError, OptionError
        If an arm is unknown or has no group, or the log cannot be audited by pairs.
    """
    arms = audit.summary.arms
    groups = {str(arm): str(group) for arm, group in arm_groups.items()}
    for arm in groups:
        if arm not in arms:
            raise ArmError(
                f"arm_groups names {arm!r}. Known arms: {listed(arms)}.{did_you_mean(arm, arms)}"
            )
    missing = [arm for arm in arms if arm not in groups]
    if missing:
        raise ArmError(f"arm_groups has no group for {listed(missing)}; every arm needs one.")
    if not audit.auditable:
        raise OptionError("arm_groups compares pairs of arms and needs the whole decision rule.")
    if audit.summary.start.family != "bernoulli":
        raise OptionError("arm_groups is available for Bernoulli rewards.")
    member = np.array([groups[arm] for arm in arms])
    labels = sorted(set(groups.values()))
    table = []
    for one, other in combinations_with_replacement(labels, 2):
        between = np.outer(member == one, member == other)
        between |= between.T
        np.fill_diagonal(between, False)
        table.append(_entry(audit, one, other, between))
    return replace(audit, extra={**audit.extra, "arm_groups": table})


def _entry(audit: Audit, one: str, other: str, pairs: NDArray[np.bool_]) -> dict[str, Any]:
    criterion, state = audit.criterion, audit.summary.start
    smallest, violating, n = 0.0, 0, 0
    for part in parts_of(audit.data):
        assert part.selection_probability is not None
        found = find_pairs(
            part.selection_probability,
            (
                (
                    a,
                    b,
                    np.where(pairs, Bernoulli(m).divergence(criterion.reward_divergence), np.nan),
                )
                for a, b, m in bernoulli_means(part, state.beliefs)
            ),
            criterion,
        )
        smallest = max(smallest, float(found.frontier[criterion.grid_index]))
        over = found.smallest_eps2 > criterion.eps2 + criterion.tolerance
        violating, n = violating + int(over.sum()), n + part.n_rounds
        state = _after(part, state)
    return {
        "group": one,
        "group_other": other,
        "n_pairs": int(pairs.sum()) // 2,
        "smallest_eps2": smallest,
        "n_violating_rounds": violating,
        "verdict": "fair" if smallest <= criterion.eps2 + criterion.tolerance else "unfair",
        "largest_difference": _largest(audit, pairs),
    }


def _after(part: Any, state: Any) -> Any:
    from bayesfair.kernels.stream import stream_bernoulli

    done = stream_bernoulli(
        part.arm, part.reward, None, state=state.beliefs, eps1_grid=[0.0], eps1_index=0, eps2=0.0,
        known_at=part.known_at,
    )  # fmt: skip
    return replace(state, n_rounds=state.n_rounds + part.n_rounds, beliefs=done.state)


def _largest(audit: Audit, pairs: NDArray[np.bool_]) -> float | None:
    """Return the largest divergence of decisions between arms of both groups, over all rounds."""
    values = [
        float(cell.maxima[pairs].max(initial=0.0))
        for cell in audit.summary.cells.values()
        if isinstance(cell, FullCell) and pairs.any()
    ]
    return max(values, default=None)
