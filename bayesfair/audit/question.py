"""The question of an audit: its options, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.audit.criterion import Criterion
from bayesfair.base.checks import check_in_range
from bayesfair.errors import OptionError
from bayesfair.rewards import Rewards
from bayesfair.typing import Progress, Seed

__all__ = ["Question"]


@dataclass(frozen=True, kw_only=True)
class Question:
    """The options of an audit that apply to every group alike, and the label of the one at hand."""

    criterion: Criterion
    tolerance: float | None
    family: str
    prior: Any = None
    model: Any = None
    beliefs_model: Any = None
    context_model: str | None = None
    truth: Rewards | None = None
    objective: bool = True
    draws: int = 4000
    seed: Seed | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    progress: Progress | None = None
    support: NDArray[np.float64] | None = None
    checkpoint: Any = None
    """The `saved.checkpoint.Checkpoint` that keeps the audit on its way, if any."""
    client: Any = None
    """The `distributed.Client` of the cluster that shares the work, if any."""
    label: str = ""

    def __post_init__(self) -> None:
        """Validate the number of draws."""
        if not check_in_range(self.draws, "draws", 1, 1e8).is_integer():
            raise OptionError(f"draws={self.draws!r} must be a whole number.")
        object.__setattr__(self, "draws", int(self.draws))

    @property
    def n_drawn(self) -> int:
        """How many laws of the true rewards the objective part looks at."""
        if not self.objective:
            return 0
        return self.draws if self.truth is None else 1
