"""P* by enumeration of all outcomes."""

import itertools
import math


def best_arm(laws):
    """P* exactly, by enumeration; laws: per arm, probabilities of the levels 0, 1, ..."""
    best = [0] * len(laws)
    for outcome in itertools.product(*(range(len(law)) for law in laws)):
        top = max(outcome)
        winners = [i for i, v in enumerate(outcome) if v == top]
        weight = math.prod(law[v] for law, v in zip(laws, outcome, strict=True))
        for i in winners:
            best[i] += weight / len(winners)
    return best


def bernoulli(m):
    return best_arm([[1 - x, x] for x in m])
