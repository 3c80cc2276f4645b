"""How far in the tail of its prior predictive law a count of successes lies."""

from __future__ import annotations

import math

from bayesfair.kernels.compiled import compiled

__all__ = ["beta_binomial_tail"]


@compiled()
def _log_beta(a, b):  # type: ignore[no-untyped-def]
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


@compiled()
def beta_binomial_tail(count, n, a, b, level):  # type: ignore[no-untyped-def]
    """Return 2 min(P(K <= count), P(K >= count)), K ~ beta-binomial(n, a, b); 1 if above `level`.

    Summed from `count` outwards by the ratio of neighbouring probabilities; a sum that has passed
    level / 2 is not followed any further.
    """
    log_p = _log_beta(count + a, n - count + b) - _log_beta(a, b)
    log_p -= math.log(n + 1.0) + _log_beta(count + 1.0, n - count + 1.0)
    limit = math.exp(min(math.log(0.5 * level) - log_p, 700.0))
    log_concave = a >= 1.0 and b >= 1.0
    smallest = 1.0
    for side in range(2):
        total, term, j = 1.0, 1.0, count
        while total <= limit and (j > 0.0 if side == 0 else j < n):
            if side == 0:
                term *= j * (n - j + b) / ((n - j + 1.0) * (j - 1.0 + a))
                j -= 1.0
            else:
                term *= (n - j) * (j + a) / ((j + 1.0) * (n - j - 1.0 + b))
                j += 1.0
            total += term
            if log_concave and term < 1e-17 * total:
                break
        if total <= limit:
            smallest = min(smallest, 2.0 * math.exp(log_p + math.log(total)))
    return smallest
