"""Bernoulli bandit runs under the classic rules that need only pulls and wins per arm.

The formulas are those of `policies.classic`, term by term, so that ties fall alike.
"""

from __future__ import annotations

import math

import numpy as np

from bayesfair.kernels.compiled import compiled
from bayesfair.kernels.simulation.counts_and_means import choose
from bayesfair.kernels.simulation.world import BernoulliWorld, Run, new_run
from bayesfair.typing import Floats

__all__ = ["COUNT_RULES", "run_counts"]

#: What the two parameters of each rule are.
COUNT_RULES = {
    "greedy": ("epsilon", "none"),
    "ucb1": ("c", "none"),
    "softmax": ("temperature", "none"),
    "urn": ("start balls", "added balls"),
}
_GREEDY, _UCB1, _SOFTMAX, _URN = range(4)


@compiled()
def _among_best(value, here, row):  # type: ignore[no-untyped-def]
    best = -np.inf
    for i in range(value.shape[0]):
        if here[i] and value[i] > best:
            best = value[i]
    n_best = 0
    for i in range(value.shape[0]):
        if here[i] and value[i] == best:
            n_best += 1
    for i in range(value.shape[0]):
        row[i] = 1.0 / n_best if value[i] == best else 0.0


@compiled()
def _ucb1(c, pulls, total, here, value, row):  # type: ignore[no-untyped-def]
    k = pulls.shape[0]
    n_new = 0
    n_pulls = 0.0
    for i in range(k):
        if here[i]:
            n_pulls += pulls[i]
            if pulls[i] == 0.0:
                n_new += 1
    if n_new > 0:
        for i in range(k):
            row[i] = 1.0 / n_new if pulls[i] == 0.0 else 0.0
        return
    scale = c * math.log(n_pulls)
    for i in range(k):
        if here[i]:
            value[i] = total[i] / pulls[i] + math.sqrt(scale / pulls[i])
    _among_best(value, here, row)


@compiled()
def _softmax(temperature, mean, here, row):  # type: ignore[no-untyped-def]
    k = mean.shape[0]
    top = -np.inf
    for i in range(k):
        if here[i]:
            top = max(top, mean[i] / temperature)
    whole = 0.0
    for i in range(k):
        if here[i]:
            row[i] = math.exp(mean[i] / temperature - top)
            whole += row[i]
    for i in range(k):
        row[i] /= whole


@compiled()
def _urn(start, added, pulls, total, here, row):  # type: ignore[no-untyped-def]
    k = pulls.shape[0]
    n_here = 0
    failures = 0.0
    for i in range(k):
        if here[i]:
            n_here += 1
            failures += pulls[i] - total[i]
    whole = 0.0
    for i in range(k):
        if here[i]:
            others = (failures - (pulls[i] - total[i])) / max(n_here - 1, 1)
            row[i] = start + added * (total[i] + others)
            whole += row[i]
    for i in range(k):
        row[i] /= whole


@compiled()
def _run(kind, first, second, prior, world, run):  # type: ignore[no-untyped-def]
    (theta, decide, pay, known_at, order, offered), (arm, reward, pi) = world, run
    n_rounds, k = pi.shape
    drifting = theta.shape[0] > 1
    masked = offered.shape[0] > 0
    pulls, total = np.zeros(k), np.zeros(k)
    mean, value = np.empty(k), np.empty(k)
    here = np.ones(k, np.bool_)
    changed = True
    pointer = 0
    for t in range(n_rounds):
        while pointer < n_rounds and known_at[order[pointer]] <= t:
            past = order[pointer]
            pulls[arm[past]] += 1.0
            total[arm[past]] += reward[past]
            pointer += 1
            changed = True
        row = pi[t]
        if masked:
            for i in range(k):
                here[i] = offered[t, i]
        if changed or masked:
            for i in range(k):
                won, lost = prior[i, 0] + total[i], prior[i, 1] + pulls[i] - total[i]
                mean[i] = won / (won + lost)
            if kind == _GREEDY:
                _among_best(mean, here, row)
                n_here = 0
                for i in range(k):
                    if here[i]:
                        n_here += 1
                for i in range(k):
                    row[i] = (1.0 - first) * row[i] + first / n_here
            elif kind == _UCB1:
                _ucb1(first, pulls, total, here, value, row)
            elif kind == _SOFTMAX:
                _softmax(first, mean, here, row)
            else:
                _urn(first, second, pulls, total, here, row)
            changed = False
        else:
            for i in range(k):
                row[i] = pi[t - 1, i]
        if masked:
            for i in range(k):
                if not here[i]:
                    row[i] = np.nan
        a = choose(row, decide[t])
        arm[t] = a
        reward[t] = 1.0 if pay[t] < theta[t if drifting else 0, a] else 0.0


def run_counts(rule: tuple[str, float, float], prior: Floats, world: BernoulliWorld) -> Run:
    """Run a classic rule; `prior` as in `kernels.simulation.counts_and_means.run_mixture`.

    Parameters
    ----------
    rule : (str, float, float)
        A name of `COUNT_RULES` and its two parameters.
    prior : (k, 2) array
    world : BernoulliWorld
    """
    name, first, second = rule
    run = new_run(world)
    _run(list(COUNT_RULES).index(name), float(first), float(second), prior, world, run)
    return run
