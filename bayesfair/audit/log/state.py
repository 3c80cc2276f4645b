"""Where an audit stands after the rounds it has seen: all that the next part needs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.checks import counted, listed
from bayesfair.errors import DataError, OptionError
from bayesfair.families import FAMILIES
from bayesfair.families.learned import LearnedPrior
from bayesfair.kernels.log.conjugate import run_parameters
from bayesfair.kernels.log.stream import StreamState, start_state

__all__ = ["AuditState"]


@dataclass(frozen=True, eq=False)
class AuditState:
    """Beliefs after a part of a log; give it as ``prior=`` to audit the part that follows.

    Given to ``read_history(prior=...)`` its outcomes count as seen before the log.

    Attributes
    ----------
    arms : tuple of str
        Labels.
    family : str
        Reward family.
    prior : (k, p) array
        Parameters of the prior before the first round of the log; where it is learned, those in
        units of location and scale, which `prior_and_posterior` resolves.
    n_rounds : int
        Rounds seen.
    beliefs : StreamState or other named tuple of arrays
        Parameters of the beliefs, and rewards that are not known yet.
    eps2_arms : int or None
        The number of arms for which the default eps2 was made where the log begins: later parts
        keep it. None where it was never needed.
    """

    arms: tuple[str, ...]
    family: str
    prior: NDArray[np.float64]
    n_rounds: int
    beliefs: Any
    eps2_arms: int | None = None

    @property
    def counts(self) -> NDArray[np.float64]:
        """Outcomes that the beliefs rest on beside the prior: (successes, failures), ``(k, 2)``.

        Raises
        ------
        DataError
            For a family other than Bernoulli, whose outcomes are no such counts.
        """
        if not FAMILIES[self.family].binary:
            raise DataError(
                f"the state of a {self.family} audit holds no (successes, failures); give it to "
                "audit(prior=...) instead of read_history(prior=...)."
            )
        return self.posterior - self.prior

    def same_as(self, other: AuditState) -> bool:
        """Return whether both states are the same to rounding."""
        return (
            self.arms == other.arms
            and self.family == other.family
            and self.n_rounds == other.n_rounds
            and np.array_equal(self.prior, other.prior)
            and _same(self.beliefs, other.beliefs)
        )

    def require_same(self, other: AuditState) -> None:
        """Raise unless ``other``, the start of a later part, is this state to rounding.

        Raises
        ------
        DataError
            Saying what differs.
        """
        if self.arms != other.arms:
            raise DataError(
                f"the audits have different arms, {listed(self.arms)} and {listed(other.arms)}; "
                "only parts of one log can be merged. Read every part with the same arms=."
            )
        if self.same_as(other):
            return
        ends, starts = counted(self.n_rounds, "round"), counted(other.n_rounds, "round")
        if self.family != other.family:
            why = f"it ended with {self.family} beliefs, the second starts with {other.family} ones"
        elif other.n_rounds == 0:
            why = f"it ended after {ends}, the second starts afresh from a prior"
        elif other.n_rounds > self.n_rounds:
            why = f"it ended after {ends}, the second starts after {starts}: a part is missing"
        elif other.n_rounds < self.n_rounds:
            why = f"it ended after {ends}, the second starts after {starts}: wrong order, or twice"
        else:
            why = f"both stand after {ends}, but with other beliefs: the second follows another log"
        raise DataError(
            f"the second audit does not start where the first one ended: {why}. Make it with "
            "prior=first, and merge parts in the order of the log."
        )

    def after(self, data: Any) -> AuditState:
        """Return where an audit that starts here ends, without auditing: a fraction of its cost.

        With it several machines audit the parts of one log at the same time: one passes over the
        log for the states between the parts, each audits its part from there (``prior=``), and
        `bayesfair.merge` joins the audits in order.

        Parameters
        ----------
        data : History or HistoryScan
            The part that follows.

        Examples
        --------
        >>> from bayesfair import History
        >>> from bayesfair.audit import audit
        >>> log = History(["a", "b", "a"], [1, 0, 1], selection_probability=[[0.5, 0.5]] * 3)
        >>> first = audit(log.before(1), objective=False)
        >>> between = first.state.after(log.rounds(1, 2))
        >>> between.same_as(audit(log.before(2), objective=False).state)
        True
        """
        from bayesfair.audit.log.running import end_of

        self.require_beliefs()
        return end_of(data, self)

    def afresh(self) -> AuditState:
        """Return the state before the first round of another log, under the same prior."""
        if isinstance(self.beliefs, StreamState):
            begin: Any = start_state(self.prior[:, 0], self.prior[:, 1])
        else:
            self.require_beliefs()
            nobody = {
                name: getattr(self.beliefs, name)[:0]
                for name in self.beliefs._fields
                if name.startswith(("pending", "early", "last_pi"))
            }
            begin = self.beliefs._replace(
                parameters=self.prior,
                changed=True,
                n_same=np.zeros_like(self.beliefs.n_same),
                n_learning=0,
                **nobody,
            )
        return replace(self, n_rounds=0, beliefs=begin)

    def require_beliefs(self) -> None:
        """Raise if nothing can go on from this state.

        Raises
        ------
        OptionError
            If the beliefs came from a model, of which no state is kept.
        """
        if isinstance(self.beliefs, tuple) and not self.beliefs:
            raise OptionError(
                "an audit with beliefs_model= ends in draws of a model, not in a state that the "
                "next part could start from; audit the whole log, or leave beliefs_model out."
            )

    @property
    def prior_is_learned(self) -> bool:
        """Whether location and scale of the prior are those of the first known rewards."""
        return bool(getattr(self.beliefs, "from_data", False))

    def prior_and_posterior(
        self,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], LearnedPrior | None]:
        """Return prior and posterior, ``(k, p)`` each, and what the prior was learned from, if so.

        Both are those of the whole log so far, rewards not known yet included.
        """
        self.require_beliefs()
        if FAMILIES[self.family].binary:
            return self.prior, self.posterior, None
        end = run_parameters(
            FAMILIES[self.family].rule, self.beliefs, np.empty(0, np.int32), np.empty(0), None,
            everything=True,
        )  # fmt: skip
        if not self.prior_is_learned:
            return self.prior, end.parameters, None
        learned = LearnedPrior(end.early_reward)
        return learned.table(len(self.arms)), end.parameters, learned

    @property
    def posterior(self) -> NDArray[np.float64]:
        """Beta parameters from the whole log, rewards not known yet included, ``(k, 2)``."""
        beliefs: StreamState = self.beliefs
        if not isinstance(beliefs, StreamState):
            raise DataError(
                f"this state holds no Beta parameters (family {self.family!r}, or beliefs under a "
                "model)."
            )
        table = np.stack([beliefs.alpha, beliefs.beta], axis=1)
        for arm, reward in zip(beliefs.pending_arm, beliefs.pending_reward, strict=True):
            table[arm] += (reward, 1 - reward)
        return table


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b, strict=True))
    x, y = np.asarray(a), np.asarray(b)
    if x.dtype.kind in "fiub" and y.dtype.kind in "fiub":
        return x.shape == y.shape and bool(np.allclose(x, y, rtol=1e-12, atol=0, equal_nan=True))
    return bool(np.array_equal(x, y))
