"""Audits beyond the streaming Bernoulli kernel: other divergences, models of the truth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesfair.audit.cells import ChosenCell, FullCell
from bayesfair.audit.criterion import Criterion
from bayesfair.audit.objective import Part, parts_from_cells
from bayesfair.audit.pairs import bernoulli_means, find_pairs
from bayesfair.audit.state import AuditState
from bayesfair.audit.summary import Summary, cells_of
from bayesfair.errors import OptionError
from bayesfair.history import History
from bayesfair.rewards import Bernoulli

if TYPE_CHECKING:
    from bayesfair.rewards import Rewards

__all__ = ["parts_under_model", "with_divergences"]


def with_divergences(part: History, state: AuditState, criterion: Criterion, result: Any) -> Any:
    """Return a Bernoulli result with its pairs judged by other divergences."""
    assert part.selection_probability is not None
    found = find_pairs(
        part.selection_probability,
        (
            (start, stop, Bernoulli(m).divergence(criterion.reward_divergence))
            for start, stop, m in bernoulli_means(part, state.beliefs)
        ),
        criterion,
    )
    return result._replace(**found._asdict())


def parts_under_model(data: Any, summary: Summary, question: Any) -> tuple[list[Part], list[str]]:
    """Return the parts of the objective audit under the posterior of a model.

    Raises
    ------
    OptionError
        If the log was scanned: a model needs the whole of it.
    """
    if not isinstance(data, History):
        raise OptionError(
            "model= needs the whole log for its posterior; read it with read_history instead of "
            "scanning it, or use the conjugate posterior."
        )
    import json

    from bayesfair.inference import bin_starts, fit, rewards_from_posterior

    tree = fit(
        data,
        model=question.model,
        seed=question.seed,
        draws=question.draws,
        **question.options,
    )
    rewards: Rewards = rewards_from_posterior(tree)
    notices = [str(n) for n in json.loads(tree.attrs.get("notices", "[]"))]
    starts = bin_starts(tree)
    if summary.selection == "none":
        shares = summary.sums.plays / max(summary.sums.n_rounds, 1)
        if starts is not None:
            raise OptionError(
                "a model with time bins needs logged probabilities; without them only the shares "
                "of the whole log can be compared. Choose a model without bins."
            )
        return [Part(None, summary.sums.n_rounds, rewards, None, shares)], notices
    if starts is None:
        return parts_from_cells(summary.cells, rewards, data.n_arms), notices
    parts: list[Part] = []
    stops = np.append(starts[1:], data.n_rounds)
    for b, (start, stop) in enumerate(zip(starts, stops, strict=True)):
        cells: dict[bytes, FullCell | ChosenCell] = cells_of(
            data.rounds(int(start), int(stop)), question.criterion
        )
        parts += parts_from_cells(cells, rewards[:, b], data.n_arms)
    return parts, notices
