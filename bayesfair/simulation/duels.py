"""Run a duelling rule on known Plackett-Luce worths, logging who is paired how often."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from bayesfair.base.arguments import NUMBERS, takes
from bayesfair.base.checks import as_generator, as_numbers, check_count
from bayesfair.base.labels import by_label
from bayesfair.base.progress import Steps, steps, tells
from bayesfair.comparisons import Comparisons, DuelLog, known_worths
from bayesfair.errors import OptionError
from bayesfair.kernels.simulation.counts_and_means import choose
from bayesfair.policies.duels import FairSDDTS
from bayesfair.typing import Floats, Progress, Seed

__all__ = ["simulate_duels"]


@overload
def simulate_duels(
    policy: FairSDDTS,
    worth: ArrayLike | Mapping[str, float],
    n_rounds: int,
    *,
    seed: Seed,
    n_runs: None = None,
    progress: Progress = None,
) -> DuelLog: ...
@overload
def simulate_duels(
    policy: FairSDDTS,
    worth: ArrayLike | Mapping[str, float],
    n_rounds: int,
    *,
    seed: Seed,
    n_runs: int,
    progress: Progress = None,
) -> dict[str, DuelLog]: ...
@takes(worth=NUMBERS)
@tells
def simulate_duels(
    policy: FairSDDTS,
    worth: ArrayLike | Mapping[str, float],
    n_rounds: int,
    *,
    seed: Seed,
    n_runs: int | None = None,
    progress: Progress = None,
) -> DuelLog | dict[str, DuelLog]:
    r"""Run a duelling rule on items with known worths and return all pair probabilities.

    The left item wins with probability :math:`\nu_l / (\nu_l + \nu_r)`.

    Parameters
    ----------
    policy : FairSDDTS
        The rule.
    worth : (k,) array or mapping of label to worth
        :math:`\nu` > 0, of any scale.
    n_rounds : int
        T.
    seed : int or numpy Generator
        Required. Run r is the same however many runs are asked for.
    n_runs : int, optional
        None = one run, returned by itself.

    Returns
    -------
    DuelLog or dict of str to DuelLog

    Warns
    -----
    BayesfairWarning
        If exploration would fill the run.

    Examples
    --------
    >>> log = simulate_duels(FairSDDTS(C=5), {"a": 3, "b": 2, "c": 1}, 200, seed=1)
    >>> log.pair_probability.shape, log.selection_probability[0].round(3)
    ((200, 3, 3), array([0.333, 0.333, 0.333]))
    """
    if not isinstance(policy, FairSDDTS):
        raise OptionError(f"policy={policy!r} is no duelling rule; use FairSDDTS.")
    n_rounds = check_count(n_rounds, "n_rounds", 0)
    items = (
        tuple(by_label(worth, "item", "worth"))
        if isinstance(worth, Mapping)
        else tuple(map(str, range(as_numbers(worth, "worth").size)))
    )
    worths = known_worths(worth, items)
    truth = items, worths / worths.sum()
    rule = policy.for_run(len(items), n_rounds)
    count = 1 if n_runs is None else check_count(n_runs, "n_runs", 1)
    told = steps("rounds", n_rounds * count)
    runs = {
        str(r): _one_run(rule, truth, n_rounds, rng, f"{rule.name} run {r}", told)
        for r, rng in enumerate(as_generator(seed).spawn(count))
    }
    return runs["0"] if n_runs is None else runs


def _one_run(
    rule: FairSDDTS,
    truth: tuple[tuple[str, ...], Floats],
    n_rounds: int,
    rng: np.random.Generator,
    source: str,
    told: Steps,
) -> DuelLog:
    items, share = truth
    k = len(items)
    deciding, paying = rng.spawn(2)
    decide, pay = deciding.random(n_rounds), paying.random(n_rounds)
    left, right = np.empty((2, n_rounds), np.int64)
    won, pairs = np.full(n_rounds, np.nan), np.empty((n_rounds, k, k))
    state = rule.start(k)
    current = rule.pair_probability(state)
    for t in range(n_rounds):
        told.add()
        pairs[t] = current
        i, j = divmod(int(choose(current.ravel(), decide[t])), k)
        left[t], right[t] = i, j
        if i != j:
            won[t] = float(pay[t] < share[i] / (share[i] + share[j]))
            state = rule.update(state, i, j, won[t])
            current = rule.pair_probability(state)
    known, labels = np.flatnonzero(left != right), np.array(items, dtype=object)
    duels = Comparisons.from_duels(
        labels[left[known]],
        labels[right[known]],
        np.where(won[known] == 1, "left", "right"),
        items=items,
        winner_is="side",
        source=source,
        keep_rows=True,
    )
    duels = replace(duels, n_skipped=n_rounds - len(known))
    cell = np.full(n_rounds, -1)
    cell[known] = duels.cell
    return DuelLog(duels, left, right, cell, pairs, slot=rule.slot)
