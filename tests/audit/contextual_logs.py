"""Logs of rules that see a context, thinned logs, copies: made from the text of their cases."""

import numpy as np

import bayesfair as bf


def p_a(won, seen):
    """P*(a) of two 0/1 arms under Beta(1/2, 1/2) beliefs, by enumeration of the four outcomes."""
    a, b = (won + 0.5) / (seen + 1)
    return a * (1 - b) + 0.5 * (a * b + (1 - a) * (1 - b))


def in_leaves(seed, n=2000, us=0.5, blind=False):
    """SD_TS with beliefs for each leaf; theta US .7/.3, EU .2/.6. Blind to it: .9/.1, .5/.5."""
    rng = np.random.default_rng(seed)
    theta = np.array([[0.9, 0.1], [0.5, 0.5]] if blind else [[0.7, 0.3], [0.2, 0.6]])
    leaf, won, seen = np.zeros(n, int), np.zeros((2, 2)), np.zeros((2, 2))
    arm, reward, pi = np.zeros(n, np.int32), np.zeros(n), np.zeros((n, 2))
    for t in range(n):
        u = rng.random()
        leaf[t] = u < 1 - us if blind else u >= us
        mine = 0 if blind else leaf[t]
        pi[t, 0] = p_a(won[mine], seen[mine])
        pi[t, 1] = 1 - pi[t, 0]
        arm[t] = rng.random() >= pi[t, 0]
        reward[t] = rng.random() < theta[leaf[t], arm[t]]
        won[mine, arm[t]] += reward[t]
        seen[mine, arm[t]] += 1
    return {"leaf": leaf, "arm": arm, "reward": reward, "pi": pi}


def history(log, *, chosen=False, rows=slice(None), **more):
    """The rounds as a `History`, of the whole rule or of the chosen arm's probability alone."""
    arm, pi = log["arm"][rows], log["pi"][rows]
    if chosen:
        more["propensity"] = pi[np.arange(len(arm)), arm]
    else:
        more["selection_probability"] = pi
    return bf.History(arm, log["reward"][rows], arms=("a", "b"), **more)


def even(n, n_a, k=2, seed=0):
    """n rounds of k arms with equal chances, the first of them chosen n_a times."""
    rest = np.arange(n - n_a) % (k - 1) + 1
    arm = np.random.default_rng(seed).permutation(np.concatenate([np.zeros(n_a, int), rest]))
    reward = np.random.default_rng(seed + 1).integers(0, 2, n).astype(float)
    return {"arm": arm.astype(np.int32), "reward": reward, "pi": np.full((n, k), 1 / k)}
