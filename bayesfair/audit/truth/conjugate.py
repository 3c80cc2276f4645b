"""Draws of the true rewards from the conjugate posterior of the whole log."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesfair.audit.log.state import AuditState
from bayesfair.families import FAMILIES
from bayesfair.families.logs import posterior_of
from bayesfair.history import History
from bayesfair.rewards import Rewards

__all__ = ["posterior_of_log", "posterior_rewards"]


def posterior_rewards(end: AuditState, draws: int, rng: np.random.Generator) -> Rewards:
    """Return draws of the true rewards from the beliefs after the last round of a log."""
    family = FAMILIES[end.family]
    reads = family.draw(end.posterior, (draws,), rng, end.arms)
    return family.truth(reads, end.arms, end.beliefs.support)


def posterior_of_log(
    data: History, start: AuditState, draws: int, rng: np.random.Generator, support: Any = None
) -> Rewards:
    """Return draws of the true rewards from the conjugate posterior, whatever the beliefs were."""
    family = FAMILIES[start.family]
    _, table, levels = posterior_of(data, family, prior=start.prior, support=support)
    return family.truth(family.draw(table, (draws,), rng, data.arms), data.arms, levels)
