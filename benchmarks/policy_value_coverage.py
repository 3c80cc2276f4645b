"""How often the 95 % intervals of `policy_value` hold the value that they estimate.

Logs of a rule that learns (softmax of its running means, never below .1) on arms with known means.
The value that a log is asked for is known: the mean over its rounds of what the rule asked about
would have earned there. Prints the share of logs whose interval holds it, by rule and estimator.

Run: python benchmarks/policy_value_coverage.py [LOGS [ROUNDS]]
"""

from __future__ import annotations

import sys

import numpy as np

import bayesfair as bf
from bayesfair.value import policy_value

THETA = np.array([0.3, 0.5, 0.65])
RULES = ("uniform", "greedy", "p_star")
ESTIMATORS = ("ips", "self_normalised", "doubly_robust")


def log_of(rng: np.random.Generator, n: int) -> bf.History:
    """Return one log of `n` rounds."""
    k = len(THETA)
    wins, plays = np.zeros(k), np.zeros(k)
    rows, arms, rewards = np.empty((n, k)), np.empty(n, np.int32), np.empty(n)
    for t in range(n):
        score = np.exp(3 * (wins + 1) / (plays + 2))
        rows[t] = 0.1 + (1 - 0.1 * k) * score / score.sum()
        a = arms[t] = min(int(np.searchsorted(np.cumsum(rows[t]), rng.random())), k - 1)
        rewards[t] = rng.random() < THETA[a]
        wins[a] += rewards[t]
        plays[a] += 1
    return bf.History(arms, rewards, selection_probability=rows, arms=list("abc"))


def asked(history: bf.History) -> dict[str, np.ndarray]:
    """Return what each rule would have done, from counts (P* of Bernoulli laws, ties evenly)."""
    n, k = history.selection_probability.shape
    seen = np.zeros((n, k, 2))
    for outcome in (0, 1):
        hit = (history.arm[:, None] == np.arange(k)) & (history.reward == outcome)[:, None]
        seen[1:, :, outcome] = hit.cumsum(axis=0)[:-1]
    mean = (seen[..., 1] + 0.5) / (seen.sum(axis=2) + 1)
    best = mean == mean.max(axis=1, keepdims=True)
    p_star = np.zeros((n, k))
    for drawn in np.ndindex(*(2,) * k):
        chance = np.prod(np.where(drawn, mean, 1 - mean), axis=1)
        top = np.array(drawn) == max(drawn)
        p_star += chance[:, None] * top / top.sum()
    return {
        "uniform": np.full((n, k), 1 / k),
        "greedy": best / best.sum(axis=1, keepdims=True),
        "p_star": p_star,
    }


def coverage(n_logs: int, n_rounds: int, seed: int) -> dict[tuple[str, str], float]:
    """Return the share of logs whose interval holds the value, by rule and estimator."""
    rng = np.random.default_rng(seed)
    held = dict.fromkeys([(rule, name) for rule in RULES for name in ESTIMATORS], 0)
    for _ in range(n_logs):
        history = log_of(rng, n_rounds)
        found = policy_value(history, RULES, family="bernoulli")
        for rule, rows in asked(history).items():
            value = float((rows @ THETA).mean())
            for name in ESTIMATORS:
                one = getattr(found[rule], name)
                held[rule, name] += one.lower <= value <= one.upper
    return {key: count / n_logs for key, count in held.items()}


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:3]]
    logs, rounds = given + [1000, 400][len(given) :]
    for (rule, name), share in coverage(logs, rounds, 1).items():
        print(f"{rule:8} {name:16} {share:.3f}")
