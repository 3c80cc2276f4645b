"""The objective audit where the true rewards depend on a context.

The log needs as much as the context that needs most, its regret is the sum of theirs, and it is
fair if every context is: where contexts are independent a posteriori the probability of that is the
product, where they share what is learned the share of joint draws.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bayesfair.audit.criterion import Criterion
from bayesfair.audit.log.summary import Summary
from bayesfair.audit.truth.conjugate import posterior_rewards
from bayesfair.audit.truth.objective import (
    CellFound,
    Objective,
    Part,
    evaluate,
    parts_from_cells,
    with_violations,
)
from bayesfair.base.labels import label_order
from bayesfair.families import FAMILIES
from bayesfair.kernels.log.pooled import Pooling
from bayesfair.rewards import Rewards
from bayesfair.typing import Floats

__all__ = ["objective_by_context", "rewards_by_context"]


def rewards_by_context(
    summary: Summary, draws: int, rng: np.random.Generator
) -> dict[str, Rewards]:
    """Return draws of the true rewards in each context, from its own posterior or a joint one."""
    if isinstance(summary.end.beliefs.shared, Pooling):
        return _pooled_rewards(summary, draws, rng)
    return {
        label: posterior_rewards(state, draws, rng)
        for label, state in summary.end.by_context.items()
    }


def _pooled_rewards(summary: Summary, draws: int, rng: np.random.Generator) -> dict[str, Rewards]:
    """Return draws where contexts are pooled: of mu and kappa, given them of each context."""
    end, tables = summary.end, summary.end.beliefs
    pooling, (won, seen) = tables.settled()
    weights = pooling.weights.reshape(len(end.arms), -1)
    theta = np.empty((len(tables.labels), draws, len(end.arms)))
    for i in label_order(end.arms):  # draws go with the label of an arm, not with its place
        node = rng.choice(weights.shape[1], draws, p=weights[i] / weights[i].sum())
        j, g = np.divmod(node, len(pooling.kappa))
        mu, kappa = pooling.mu[i, j], pooling.kappa[g]
        for c in range(len(theta)):
            lost = seen[c, i] - won[c, i]
            theta[c, :, i] = rng.beta(kappa * mu + won[c, i], kappa * (1 - mu) + lost)
    family = FAMILIES[end.family]
    return {
        label: family.truth({"theta": drawn}, end.arms, None)
        for label, drawn in zip(tables.labels, theta, strict=True)
    }


def objective_by_context(
    summary: Summary,
    rewards: Mapping[str, Rewards],
    criterion: Criterion,
    rng: np.random.Generator,
    *,
    exact: bool = False,
) -> Objective:
    """Audit a log against draws of the true rewards in each of its contexts.

    Parameters
    ----------
    summary : Summary
        With its contexts.
    rewards : mapping of context to Rewards
        Draws, batch shape (draw,).
    criterion : Criterion
        What is asked.
    rng : Generator
        Of sampling errors.
    exact : bool
        Whether the true rewards are known.
    """
    k, n = len(summary.arms), summary.sums.n_rounds
    some = next(iter(rewards.values()))
    if not summary.contexts:  # no round is judged
        return evaluate([Part(None, 0, some)], criterion)
    found, cells, weights = [], {}, []
    for label, seen in summary.contexts.items():
        here = rewards[label]
        parts = parts_from_cells(seen.cells, here, k)
        if summary.selection == "none":
            shares = seen.plays / seen.n_rounds
            parts = [Part(None, seen.n_rounds, here, None, shares)]
        one = evaluate(parts, criterion)
        fair = None
        if one.smallest_eps2 is not None:
            fair = float(criterion.fair_draws(one.smallest_eps2).mean())
        cells[label] = CellFound(label, fair, one.regret_estimate(rng, exact=exact))
        found.append(one)
        weights.append(seen.n_rounds / n)

    def mean(values: list[Floats | None]) -> Floats | None:
        known = [value for value in values if value is not None]
        if len(known) < len(values):
            return None
        return np.asarray(sum(w * value for w, value in zip(weights, known, strict=True)))

    needed = [one.smallest_eps2 for one in found if one.smallest_eps2 is not None]
    spread = sum((w * one.regret_sampling_sd) ** 2 for w, one in zip(weights, found, strict=True))
    whole = Objective(
        smallest_eps2=np.max(needed, axis=0) if needed else None,
        regret=mean([one.regret for one in found]),
        regret_sampling_sd=np.sqrt(spread),
        lower_bound=mean([one.lower_bound for one in found]),
        p_best=mean([one.p_best for one in found]),
        error=sum(w * one.error for w, one in zip(weights, found, strict=True)),
        cells=cells,
    )
    judged = summary.pairs.judged
    if judged is None:
        return whole
    order = summary.end.beliefs.labels
    pairs = ((judged.of_context(i), rewards[label]) for i, label in enumerate(order))
    return with_violations(whole, pairs, criterion, judged)
