"""Pairs of arms between and within groups, such as regions or sellers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bayesfair.audit.log.group_pairs import GroupPairs
from bayesfair.audit.log.rounds import pairs_by_chunks
from bayesfair.audit.log.state import judged_part, parts_of
from bayesfair.audit.record import Record
from bayesfair.base.checks import did_you_mean, listed
from bayesfair.errors import ArmError, OptionError
from bayesfair.kernels.log.part_result import TOLERANCES

__all__ = ["with_arm_groups"]


def with_arm_groups(audit: Record, groups: Mapping[str, str]) -> Record:
    """Return the audit with ``arm_groups`` in its `to_dict`: one entry per pair of groups.

    Each entry names both groups (the same one for pairs within), the smallest eps2 over their
    pairs under the beliefs, and the number of violating rounds.

    Raises
    ------
    ArmError, OptionError
        If an arm is unknown or has no group, or the log cannot be audited by pairs.
    """
    arms = audit.summary.arms
    for arm in groups:
        if arm not in arms:
            raise ArmError(
                f"arm_groups names {arm!r}. Known arms: {listed(arms)}.{did_you_mean(arm, arms)}",
                kind="unknown_arm",
                column="arm_groups",
                value=arm,
            )
    missing = [arm for arm in arms if arm not in groups]
    if missing:
        raise ArmError(
            f"arm_groups has no group for {listed(missing)}; every arm needs one.",
            kind="missing_label",
            column="arm_groups",
            value=missing[0],
        )
    if audit.summary.selection != "full":
        raise OptionError("arm_groups compares pairs of arms and needs the whole decision rule.")
    if audit.question.beliefs_model is not None:
        raise OptionError(
            "arm_groups holds pairs against conjugate beliefs; leave beliefs_model out."
        )
    empty = GroupPairs(tuple(groups[arm] for arm in arms), np.empty(0), np.empty((0, 0), np.int64))
    found = [_found(audit, empty.between(one, other)) for one, other in empty.pairs]
    return replace(
        audit,
        arm_groups=GroupPairs(
            empty.member,
            np.array([smallest for smallest, _ in found]),
            np.array([counts for _, counts in found]),
        ),
    )


def _found(audit: Record, pairs: NDArray[np.bool_]) -> tuple[float, NDArray[np.int64]]:
    """Return the smallest eps2 of some pairs of arms, and the counts of violating rounds."""
    criterion, state = audit.criterion, audit.summary.start
    smallest, counts = 0.0, np.zeros(len(TOLERANCES), np.int64)
    for whole in parts_of(audit.data):
        part, state = judged_part(whole, state, criterion.from_round)
        found, _, _ = pairs_by_chunks(part, state, criterion, among=pairs)
        smallest = max(smallest, float(found.frontier[criterion.grid_index]))
        counts = counts + found.n_violating
        state = state.after(part)
    return smallest, counts
