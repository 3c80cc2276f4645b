"""Orders and outcomes of pairs against loops over draws."""

import math

import numpy as np
import pytest

from bayesfair.kernels.orders.orders import before_counts, mean_outcomes


def test_before_counts_against_loops():
    rng = np.random.default_rng(1)
    ranks = np.array([rng.permutation(7) + 1 for _ in range(53)], dtype=np.int32)
    found = before_counts(ranks)
    for i in range(7):
        for j in range(7):
            assert found[i, j] == sum(row[i] < row[j] for row in ranks)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("first", [False, True])
def test_mean_outcomes_against_loops(ties, first):
    rng = np.random.default_rng(2)
    log_worth = rng.normal(scale=3, size=(31, 4))
    log_tie = rng.normal(size=31) if ties else None
    effect = rng.normal(size=31) if first else None
    win, tie = mean_outcomes(log_worth, log_tie, effect)
    for i in range(4):
        for j in range(4):
            won = tied = 0.0
            for d in range(31):
                gap = log_worth[d, i] - log_worth[d, j] + (effect[d] if first else 0.0)
                nu = math.exp(log_tie[d]) if ties else 0.0
                total = math.exp(gap / 2) + math.exp(-gap / 2) + nu
                won += math.exp(gap / 2) / total / 31
                tied += nu / total / 31
            if i != j:
                assert win[i, j] == pytest.approx(won, rel=1e-12)
                assert tie[i, j] == pytest.approx(tied, rel=1e-12)


@pytest.mark.parametrize("n", [1, 2, 511, 513, 1025])
@pytest.mark.parametrize("threads", [1, 3])
def test_blocks_of_draws_and_threads(n, threads):
    # more items than are done by one thread; draws that fill no block, or end on an odd one
    log_worth = np.random.default_rng(n).normal(scale=2, size=(n, 101))
    log_tie = np.linspace(-1, 1, n)
    nu, worth = np.exp(log_tie)[:, None], np.exp(log_worth)
    win, tie = mean_outcomes(log_worth, log_tie, None, threads=threads)
    for i in (0, 57, 100):
        equal = nu * np.sqrt(worth[:, i : i + 1] * worth)
        total = worth[:, i : i + 1] + worth + equal
        others = np.arange(101) != i
        expected = (worth[:, i : i + 1] / total).mean(axis=0)
        np.testing.assert_allclose(win[i][others], expected[others], rtol=1e-12)
        np.testing.assert_allclose(tie[i][others], (equal / total).mean(axis=0)[others], rtol=1e-12)


@pytest.mark.parametrize("n", [1, 513, 1024])
@pytest.mark.parametrize("first", [False, True])
def test_wins_without_ties_in_blocks(n, first):
    # gaps up to 40: chances of e^-40 keep their digits beside those near 1
    log_worth = np.random.default_rng(n).normal(scale=8, size=(n, 103))
    effect = np.linspace(-1, 2, n) if first else None
    win, tie = mean_outcomes(log_worth, None, effect, threads=2)
    assert not tie.any()
    ahead = effect[:, None] if first else 0.0
    for i in (0, 57, 102):
        expected = (1 / (1 + np.exp(log_worth - log_worth[:, i : i + 1] - ahead))).mean(axis=0)
        others = np.arange(103) != i
        np.testing.assert_allclose(win[i][others], expected[others], rtol=1e-11)


def test_tiny_chances_keep_their_digits():
    win, _ = mean_outcomes(np.array([[200.0, -200.0]]), None, None)
    assert win[1, 0] == pytest.approx(math.exp(-400), rel=1e-12)
    assert win[0, 1] == 1
