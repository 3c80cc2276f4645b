r"""Bernoulli bandit runs under rules that need only counts, with the exact probabilities logged.

One kernel covers the whole family

.. math:: \pi_t = w\, P^*(m_t) + (1 - w)/k ,

uniform while an arm on offer has at most C observed rewards: w = 1 is SD_TS, w < 1 its mixture,
w = 0 the uniform rule, C >= 0 Fair_SD_TS. The tie integral of P* (see `kernels.best_arm`) is kept
per node and only the row of the arm that learned something is replaced: O(k Q) a round.

All randomness comes in as uniform numbers, so that a slow replay sees the same ones.
"""

from __future__ import annotations

import numpy as np

from bayesfair.kernels.compiled import compiled
from bayesfair.kernels.laws.quadrature import n_tie_nodes, unit_nodes
from bayesfair.kernels.simulation.world import BernoulliWorld, Run, new_run
from bayesfair.typing import Floats

__all__ = ["choose", "run_fixed", "run_mixture"]


@compiled()
def choose(pi, u):  # type: ignore[no-untyped-def]
    """Return the arm that the uniform number ``u`` selects; arms with NaN or 0 are never chosen."""
    total = 0.0
    last = -1
    for i in range(pi.shape[0]):
        if pi[i] > 0.0:
            last = i
            total += pi[i]
            if u < total:
                return i
    return last  # rounding: u above the sum


@compiled()
def _best_arm_on_offer(m, q, offered, nodes, weights, out):  # type: ignore[no-untyped-def]
    """P* among the arms on offer, from scratch; NaN for the others."""
    k, n_nodes = m.shape[0], nodes.shape[0]
    n_offered = 0
    none = 1.0
    for i in range(k):
        if offered[i]:
            n_offered += 1
            none *= q[i]
            out[i] = 0.0
        else:
            out[i] = np.nan
    for u in range(n_nodes):
        product = weights[u]
        for i in range(k):
            if offered[i]:
                product *= q[i] + m[i] * nodes[u]
        for i in range(k):
            if offered[i]:
                out[i] += product / (q[i] + m[i] * nodes[u])
    for i in range(k):
        if offered[i]:
            out[i] = m[i] * out[i] + none / n_offered
    return n_offered


@compiled()
def _run_mixture(weight, exploration, prior, world, rule, run):  # type: ignore[no-untyped-def]
    theta, decide, pay, known_at, order, offered = world
    (nodes, weights), (arm, reward, pi) = rule, run
    n_rounds, k = pi.shape
    n_nodes = nodes.shape[0]
    drifting = theta.shape[0] > 1
    masked = offered.shape[0] > 0
    s, f = prior[:, 0].copy(), prior[:, 1].copy()
    pulls = np.zeros(k)
    m, q = s / (s + f), f / (s + f)
    factor = np.empty((k, n_nodes))
    inverse = np.empty((k, n_nodes))
    product = np.empty(n_nodes)
    none = 1.0
    # exact products again now and then: rounding drifts, and very many arms underflow
    rebuild_every = 1024 if k <= 128 else 32
    age = rebuild_every
    unexplored = k if exploration >= 0 else 0
    pointer = 0
    for t in range(n_rounds):
        while pointer < n_rounds and known_at[order[pointer]] <= t:
            a = arm[order[pointer]]
            r = reward[order[pointer]]
            pointer += 1
            pulls[a] += 1.0
            if exploration >= 0 and pulls[a] > exploration and pulls[a] - 1.0 <= exploration:
                unexplored -= 1
            s[a] += r
            f[a] += 1.0 - r
            old = q[a]
            m[a] = s[a] / (s[a] + f[a])
            q[a] = f[a] / (s[a] + f[a])
            none *= q[a] / old
            for u in range(n_nodes):
                new = q[a] + m[a] * nodes[u]
                product[u] *= new * inverse[a, u]
                factor[a, u] = new
                inverse[a, u] = 1.0 / new
            age += 1
        row = pi[t]
        if masked:
            wait = False
            if exploration >= 0:
                for i in range(k):
                    if offered[t, i] and pulls[i] <= exploration:
                        wait = True
            count = _best_arm_on_offer(m, q, offered[t], nodes, weights, row)
            w = 0.0 if wait else weight
            for i in range(k):
                if offered[t, i]:
                    row[i] = w * row[i] + (1.0 - w) / count
        elif unexplored > 0 or weight == 0.0:
            for i in range(k):
                row[i] = 1.0 / k
            age = rebuild_every
        else:
            if age >= rebuild_every:
                age = 0
                none = 1.0
                for i in range(k):
                    none *= q[i]
                for u in range(n_nodes):
                    product[u] = 1.0
                for i in range(k):
                    for u in range(n_nodes):
                        factor[i, u] = q[i] + m[i] * nodes[u]
                        inverse[i, u] = 1.0 / factor[i, u]
                        product[u] *= factor[i, u]
            rest = weight * none / k + (1.0 - weight) / k
            for i in range(k):
                total = 0.0
                for u in range(n_nodes):
                    total += weights[u] * product[u] * inverse[i, u]
                row[i] = weight * m[i] * total + rest
        a = choose(row, decide[t])
        arm[t] = a
        reward[t] = 1.0 if pay[t] < theta[t if drifting else 0, a] else 0.0


def run_mixture(weight: float, exploration: float, prior: Floats, world: BernoulliWorld) -> Run:
    """Run a weighted SD_TS rule on Bernoulli arms.

    Parameters
    ----------
    weight : float
        Weight of SD_TS against the uniform rule, in [0, 1].
    exploration : float
        Uniform while an arm on offer has at most this many known rewards; negative = never.
    prior : (k, 2) array
        Beta parameters per arm.
    world : BernoulliWorld
    """
    run, rule = new_run(world), unit_nodes(n_tie_nodes(len(prior)))
    _run_mixture(float(weight), float(exploration), prior, world, rule, run)
    return run


@compiled()
def _run_fixed(fixed, world, run):  # type: ignore[no-untyped-def]
    drifting = world.theta.shape[0] > 1
    for t in range(world.decide.shape[0]):
        a = choose(fixed, world.decide[t])
        run.arm[t] = a
        run.reward[t] = 1.0 if world.pay[t] < world.theta[t if drifting else 0, a] else 0.0
        run.pi[t] = fixed


def run_fixed(fixed: Floats, world: BernoulliWorld) -> Run:
    """Run a rule that never learns, whose probabilities are `fixed`, ``(k,)``."""
    run = new_run(world)
    _run_fixed(fixed, world, run)
    return run
