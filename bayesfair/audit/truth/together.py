r"""The objective audit where many arms were never chosen: their means are drawn together.

The truth of n such arms with one law enters P* of all others only through the products
:math:`\prod_j (1 - m_j s)` over them, at the nodes of the tie integral. Their means are drawn from
the few values of `Family.atoms` in place of the posterior itself; how many arms have which is one
multinomial draw. The product is over independent arms, so that each of its moments is the n-th
power of a moment of one arm: up to order 63, mixed ones over the nodes too, they are exactly those
of draws for every arm, and so are the moments of P*, which is linear in the product.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesfair.audit.log.alike import Alike, alike
from bayesfair.audit.log.cells import ChosenCell
from bayesfair.audit.log.summary import Summary
from bayesfair.audit.truth.objective import Objective, sampling_sd
from bayesfair.base.checks import counted
from bayesfair.base.notices import Notice
from bayesfair.families import FAMILIES
from bayesfair.kernels.laws.best_arm import bernoulli_best_of_copies

__all__ = ["objective_together"]


def objective_together(
    summary: Summary, draws: int, rng: np.random.Generator
) -> tuple[Objective, Notice] | None:
    """Return the objective audit of a log with many arms that were never chosen.

    None where there are few, where the whole rule was logged (arms differ in it), where arms were
    not always on offer, or where rewards are not 0 or 1.
    """
    family, n = FAMILIES[summary.end.family], summary.sums.n_rounds
    cell = summary.cells.get(b"")
    if not isinstance(cell, ChosenCell):
        cell = None
    if not n or not family.binary or summary.selection == "full":
        return None
    if len(summary.cells) > (cell is not None) or (cell is None and summary.selection != "none"):
        return None
    table, plays = summary.end.posterior, summary.sums.plays
    found = alike(table, plays)
    if found is None:
        return None
    laws = [law for i in found.of if (law := family.atoms(table[i])) is not None]
    if len(laws) < len(found.of):
        return None
    labels = [summary.arms[i] for i in found.apart]
    reads = family.draw(table[found.apart], (draws,), rng, labels)
    own = np.clip(family.mass(reads, np.ones(1))[..., 0], 0.0, 1.0)
    value = np.concatenate([law[0] for law in laws])
    copies = np.concatenate(
        [rng.multinomial(size, law[1], draws) for size, law in zip(found.size, laws, strict=True)],
        axis=1,
    ).astype(np.float64)
    means = np.concatenate([own, np.broadcast_to(value, (draws, len(value)))], axis=1)
    best = bernoulli_best_of_copies(means, copies)
    return _objective(best, copies, found, summary, cell), Notice(
        f"{counted(int(found.size.sum()), 'arm')} that were never chosen have their true rewards "
        "drawn together: how many of them have each of a few means. P* of the others has the same "
        "moments as with draws for each arm, up to order 63.",
        kind="drawn_together", n=int(found.size.sum()),
    )  # fmt: skip


def _objective(
    best: Any, copies: Any, found: Alike, summary: Summary, cell: ChosenCell | None
) -> Objective:
    n, draws = summary.sums.n_rounds, len(best)
    n_own, n_groups = len(found.apart), len(found.of)
    in_group = (best[:, n_own:] * copies).reshape(draws, n_groups, -1).sum(axis=2)
    mean = np.empty(len(summary.arms))
    mean[found.apart] = best[:, :n_own].mean(axis=0)
    shared = found.group >= 0
    mean[shared] = (in_group.mean(axis=0) / found.size)[found.group[shared]]
    if cell is not None:
        column = np.full(len(mean), -1)
        column[found.apart] = np.arange(n_own)
        first, second, error = cell.moments(best, column)
        regret = first / n
        return Objective(
            None, regret, sampling_sd(regret, second, n), None, None, error / n, best_mean=mean
        )
    lack = np.maximum(best[:, :n_own] - summary.sums.plays[found.apart] / n, 0.0)
    lower = lack.sum(axis=1) + in_group.sum(axis=1)
    return Objective(None, None, np.zeros(draws), lower, None, 0.0, best_mean=mean)
