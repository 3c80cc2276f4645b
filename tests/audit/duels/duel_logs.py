"""Logs of duels for tests: drawn from known laws and worths."""

import numpy as np

from bayesfair.comparisons import Comparisons


def names_of(codes):
    return np.array([f"m{i}" for i in range(100)], dtype=object)[codes]


def log_of(left, right, won, k, **options):
    """Comparisons of items m0, m1, ...; ``won``: whether the left one did."""
    return Comparisons.from_duels(
        names_of(left), names_of(right), np.where(won, "left", "right"),
        items=names_of(np.arange(k)), keep_rows=True, winner_is="side", **options,
    )  # fmt: skip


def arena(rng, n, share, worth):
    """The left item by `share`, the right one evenly among the others."""
    k = len(share)
    left = rng.choice(k, n, p=share)
    right = (left + rng.integers(1, k, n)) % k
    won = rng.random(n) < worth[left] / (worth[left] + worth[right])
    return log_of(left, right, won, k)
