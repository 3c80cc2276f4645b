"""The question of an audit: its options, checked, and kept whole in the record of the answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bayesfair.audit.criterion import Criterion
from bayesfair.base.checks import check_in_range
from bayesfair.base.labels import by_label, one_label
from bayesfair.errors import OptionError
from bayesfair.inference.contract import label_of
from bayesfair.typing import Seed

__all__ = ["Question"]


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked of a log, of each of several alike.

    Parameters
    ----------
    criterion : Criterion
        As asked; the tolerance that a log's resolution calls for is in `Record.criterion`.
    family, prior, support, context_model, objective, draws, options, arm_groups
        As in `bayesfair.audit`; options are those of models and of their fits.
    earlier : Record, GroupRecord or AuditState, optional
        The audit that this one goes on from. It is no part of what is kept: `Summary.start` is.
    model, beliefs_model : str or callable, optional
        As in `bayesfair.audit`; in a loaded audit their names.
    fit : DataTree, optional
        Posterior of the true rewards, already drawn. It is no part of what is kept; its model is.
    truth : Rewards or str, optional
        The known true rewards; in a loaded audit the name of their law.
    seed : int, Generator or None
        A Generator is not kept: it cannot be repeated.

    Raises
    ------
    OptionError
        Naming the option.
    """

    criterion: Criterion
    family: str = "auto"
    prior: Any = None
    support: Any = None
    earlier: Any = None
    model: Any = None
    fit: Any = None
    beliefs_model: Any = None
    context_model: str | None = None
    truth: Any = None
    objective: bool = True
    draws: int = 4000
    seed: Seed | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    arm_groups: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        """Validate the number of draws and the groups of arms."""
        if not check_in_range(self.draws, "draws", 1, 1e8).is_integer():
            raise OptionError(f"draws={self.draws!r} must be a whole number.")
        object.__setattr__(self, "draws", int(self.draws))
        if self.arm_groups is not None:
            object.__setattr__(self, "arm_groups", _labelled(self.arm_groups))

    @property
    def start(self) -> Any:
        """Where the beliefs start: an earlier audit, or the parameters of a prior."""
        return self.prior if self.earlier is None else self.earlier

    @property
    def model_name(self) -> str | None:
        """Where the true rewards are from: ``truth``, ``conjugate``, a model; None: left out."""
        if not self.objective:
            return None
        if self.truth is not None:
            return "truth"
        if self.fit is not None:
            return str(self.fit.attrs["model"])
        return "conjugate" if self.model is None else label_of(self.model)

    @property
    def by_model(self) -> bool:
        """Whether the true rewards are drawn from the fit of a model, made here or before."""
        return self.model is not None or self.fit is not None

    @property
    def n_drawn(self) -> int:
        """How many laws of the true rewards the objective part looks at."""
        if not self.objective:
            return 0
        return self.draws if self.truth is None else 1

    def begun_as(self, first: Question) -> Question:
        """Return the question with the start that was asked of the log's first part."""
        names = ("family", "prior", "support", "context_model")
        return replace(self, **{name: getattr(first, name) for name in names})

    def _kept_model(self) -> Any:
        return self.model if self.fit is None else str(self.fit.attrs["model"])

    def next(self, **asked: Any) -> Question:
        """Return what is asked of the next part of a log; its beliefs start where this one ended.

        Parameters
        ----------
        **asked
            Fields of its own; None: those of this question.
        """
        kept = ("criterion", "objective", "draws", "seed", "arm_groups")
        own = {name: value for name, value in asked.items() if value is not None}
        return Question(**{name: getattr(self, name) for name in kept} | own)

    def kept(self) -> Question:
        """Return the question as a record keeps it: no earlier audit, no Generator, plain numbers.

        Without objective part there are no true rewards.
        """
        return replace(
            self,
            prior=_plain(self.prior),
            support=None if self.support is None else tuple(_plain(self.support)),
            earlier=None,
            model=self._kept_model() if self.objective else None,
            fit=None,
            truth=self.truth if self.objective else None,
            seed=int(self.seed) if isinstance(self.seed, (int, np.integer)) else None,
        )


def _labelled(arm_groups: Any) -> dict[str, str]:
    if not isinstance(arm_groups, Mapping):
        raise OptionError(
            f"arm_groups={arm_groups!r:.60} must map each arm to its group.",
            kind="option_value",
            column="arm_groups",
        )
    return {
        arm: one_label(group, "group", f"arm_groups[{arm!r}]")
        for arm, group in by_label(arm_groups, "arm", "arm_groups").items()
    }


def _plain(values: Any) -> Any:
    """Return numbers as JSON has them: a prior, or the values of a finite reward."""
    if values is None:
        return None
    if isinstance(values, Mapping):
        return {str(label): _plain(row) for label, row in values.items()}
    return np.asarray(values, dtype=np.float64).tolist()
