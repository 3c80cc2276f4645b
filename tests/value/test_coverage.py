"""Intervals of the value of a rule hold it as often as they say, over 1000 logs of a learner.

`benchmarks/policy_value_coverage.py` asks the same of `policy_value` as a whole.
"""

import numpy as np

from bayesfair.value.estimates import doubly_robust, ips, self_normalised

THETA = np.array([0.3, 0.5, 0.65])
N_LOGS, N, K = 1000, 400, 3


def logs():
    """Return arms, rewards, rows of the logging rule and believed means, logs along the first axis.

    The rule is a softmax of running means, mixed with .3 of uniform.
    """
    rng = np.random.default_rng(1)
    wins, plays, which = np.zeros((N_LOGS, K)), np.zeros((N_LOGS, K)), np.arange(N_LOGS)
    arm, reward = np.empty((N_LOGS, N), int), np.empty((N_LOGS, N))
    rows, means = np.empty((2, N_LOGS, N, K))
    for t in range(N):
        means[:, t] = (wins + 0.5) / (plays + 1)
        score = np.exp(3 * means[:, t])
        rows[:, t] = 0.1 + 0.7 * score / score.sum(axis=1, keepdims=True)
        drawn = (rows[:, t].cumsum(axis=1) < rng.random((N_LOGS, 1))).sum(axis=1)
        arm[:, t] = np.minimum(drawn, K - 1)
        reward[:, t] = rng.random(N_LOGS) < THETA[arm[:, t]]
        wins[which, arm[:, t]] += reward[:, t]
        plays[which, arm[:, t]] += 1
    return arm, reward, rows, means


def held(estimates, value):
    """Return the share of intervals that hold the value."""
    lower, upper = np.array([(e.lower, e.upper) for e in estimates]).T
    return np.mean((lower <= value) & (value <= upper))


def test_95_of_100_intervals_hold_the_value():
    arm, reward, rows, means = logs()
    best = means == means.max(axis=2, keepdims=True)
    asked = {"uniform": np.full_like(rows, 1 / K), "greedy": best / best.sum(axis=2, keepdims=True)}
    at = (*np.indices((N_LOGS, N)), arm)
    for rule, e in asked.items():
        value = (e @ THETA).mean(axis=1)
        weight, predicted = e[at] / rows[at], (e * means).sum(axis=2)
        found = {
            "ips": [ips(r, w) for r, w in zip(reward, weight, strict=True)],
            "self_normalised": [self_normalised(r, w) for r, w in zip(reward, weight, strict=True)],
            "doubly_robust": [
                doubly_robust(*log)
                for log in zip(reward, weight, means[at], predicted, strict=True)
            ],
        }
        for name, estimates in found.items():
            assert 0.92 < held(estimates, value) < 0.98, (rule, name)
        plain = [ips(r, np.ones(N)) for r in reward]  # what the logged rule earned is no answer
        assert held(plain, value) < 0.8
