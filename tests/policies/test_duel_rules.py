"""Fair_SD_DTS and its estimates against closed forms, enumeration and choix."""

from __future__ import annotations

import csv
import itertools
import math
from pathlib import Path

import choix
import numpy as np
import pytest

from bayesfair.comparisons import Comparisons, DuelLog
from bayesfair.errors import BayesfairWarning, DataError, OptionError
from bayesfair.policies import FairSDDTS
from bayesfair.policies.duels import mle_worth, paper_worth
from bayesfair.simulation.duels import simulate_duels

SHARED = Path(__file__).resolve().parents[2] / ".." / "shared"


def random_wins(rng, k, scale=30):
    return np.triu(rng.integers(0, scale, (k, k)), 1) + np.tril(rng.integers(0, scale, (k, k)), -1)


def test_paper_estimate_is_exact_where_frequencies_are_consistent():
    worth = np.array([5.0, 3.0, 2.0, 1.0])
    p = worth[:, None] / (worth[:, None] + worth[None])
    np.testing.assert_allclose(
        paper_worth(1e6 * p * (1 - np.eye(4)), smoothing=0), worth / worth.sum(), rtol=1e-12
    )


def test_paper_estimate_sums_to_at_most_one_and_errs_by_at_most_the_sum_of_errors():
    rng = np.random.default_rng(3)
    for _ in range(2000):
        k = int(rng.integers(2, 7))
        wins = random_wins(rng, k).astype(float)
        estimate = paper_worth(wins)
        assert estimate.sum() <= 1 + 1e-12
        worth = rng.gamma(1.0, size=k) + 1e-3
        p = worth[:, None] / (worth[:, None] + worth[None])
        smoothed = (wins + 0.5) / (wins + wins.T + 1)
        error = np.abs(smoothed - p) * (1 - np.eye(k))
        assert np.all(np.abs(estimate - worth / worth.sum()) <= error.sum(axis=1) + 1e-12)


def test_cycles_are_visible_in_the_sum():
    cycle = np.array([[0, 9, 1], [1, 0, 9], [9, 1, 0]], dtype=float)
    np.testing.assert_allclose(paper_worth(cycle, smoothing=0), 1 / (1 + 1 / 9 + 9), rtol=1e-12)
    sure = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]], dtype=float)
    np.testing.assert_array_equal(paper_worth(sure, smoothing=0), 0)
    rule = FairSDDTS(C=0, smoothing=0)
    state = rule.start(3)
    for i, j in ((0, 1), (1, 2), (2, 0)):
        state = rule.update(state, i, j, 1.0)
    np.testing.assert_allclose(rule.worth(state), 1 / 3)  # 0/0 after normalising


def test_maximum_likelihood_is_that_of_choix():
    rng = np.random.default_rng(11)
    for k in (2, 3, 6):
        wins = random_wins(rng, k) + 1 - np.eye(k, dtype=int)
        data = [(i, j) for i in range(k) for j in range(k) for _ in range(wins[i, j])]
        expected = np.exp(choix.mm_pairwise(k, data, tol=1e-10, max_iter=100_000))
        np.testing.assert_allclose(
            mle_worth(wins.astype(float), smoothing=1e-12), expected / expected.sum(), atol=1e-7
        )


def test_extreme_records_still_have_a_maximum():
    wins = np.array([[0, 1e6, 1e6], [0, 0, 1e6], [0, 0, 0]])
    worth = mle_worth(wins)
    assert worth[0] > 0.999
    assert np.all(worth > 0)
    p = worth[:, None] / (worth[:, None] + worth[None])
    won = wins + 0.5 * (1 - np.eye(3))
    score = (won - (won + won.T) * p).sum(axis=1)  # zero at the maximum
    np.testing.assert_allclose(score, 0, atol=1e-4)


def test_exploration_is_uniform_over_pairs_until_each_has_more_than_C_duels():
    rule = FairSDDTS(C=1)
    state = rule.start(3)
    pairs = [(0, 1), (2, 1), (0, 2)]
    for i, j in pairs:
        state = rule.update(state, i, j, 1.0)
    for i, j in pairs:
        assert rule.exploring(state)
        probability = rule.pair_probability(state)
        np.testing.assert_allclose(probability, (1 - np.eye(3)) / 6)
        state = rule.update(state, i, i, float("nan"))
        state = rule.update(state, j, i, 0.0)
    assert not rule.exploring(state)


@pytest.mark.parametrize("exploitation", ["A", "B", "C"])
@pytest.mark.parametrize("slot", ["first", "mean"])
def test_readings_are_the_laws_they_are_said_to_be(exploitation, slot):
    rng = np.random.default_rng(5)
    rule = FairSDDTS(C=0, exploitation=exploitation, slot=slot)
    state = rule.start(4)
    for i, j in itertools.permutations(range(4), 2):
        for _ in range(4):
            state = rule.update(state, i, j, float(rng.random() < (4 - i) / (8 - i - j)))
    p = rule.worth(state)
    expected = np.zeros((4, 4))
    for i, j in itertools.product(range(4), repeat=2):
        if exploitation == "A":
            expected[i, j] = p[i] * p[j]
        elif exploitation == "C" and i != j:
            expected[i, j] = p[i] / 3
    if exploitation == "B":  # top two of all rankings of the Plackett-Luce model
        for order in itertools.permutations(range(4)):
            probability = math.prod(
                p[a] / sum(p[b] for b in order[n:]) for n, a in enumerate(order)
            )
            expected[order[0], order[1]] += probability
    pairs = rule.pair_probability(state)
    np.testing.assert_allclose(pairs, expected, atol=1e-13)
    law = expected.sum(axis=1)
    if slot == "mean":
        law = np.array([expected[i].sum() + expected[:, i].sum() for i in range(4)]) / 2
    np.testing.assert_allclose(rule.selection_probability(state), law, atol=1e-13)


@pytest.mark.parametrize(
    ("exploitation", "slot", "worth", "per_round"),
    [
        ("B", "mean", (3, 2, 1), 0.075),
        ("B", "mean", (8, 1, 1), 0.311),
        ("B", "mean", (5, 3, 2, 1), 0.069),
        ("C", "mean", (3, 2, 1), 0.125),
        ("C", "mean", (8, 1, 1), 0.35),
        ("A", "first", (8, 1, 1), 0.0),
        ("A", "mean", (8, 1, 1), 0.0),
        ("C", "first", (8, 1, 1), 0.0),
    ],
)
def test_regret_per_round_with_the_true_worths(exploitation, slot, worth, per_round):
    share = np.array(worth, dtype=float) / sum(worth)
    rule = FairSDDTS(C=0, exploitation=exploitation, slot=slot, smoothing=0)
    state = rule.start(len(worth))
    exact = 1e9 * share[:, None] / (share[:, None] + share[None])
    state = type(state)(exact * (1 - np.eye(len(worth))), 0.0)
    pi = rule.selection_probability(state)
    assert np.maximum(share - pi, 0).sum() == pytest.approx(per_round, abs=6e-4)


def test_the_paper_constant_fills_realistic_runs():
    rule = FairSDDTS(C="paper", eps2=4 ** (4 / 3) * 1e6 ** (-1 / 3), delta=1e-3)
    with pytest.warns(BayesfairWarning, match="explores throughout"):
        rule.for_run(4, 100_000)
    # theory.md section 8: six pairs at T = 1e6 and delta = T^(-1/2) need .81 T
    assert 6 * rule.exploration_constant(4) / 1e6 == pytest.approx(0.81, abs=0.01)


def test_the_log_replays_and_carries_its_probabilities():
    worth = {"x": 3.0, "y": 2.0, "z": 1.0}
    rule = FairSDDTS(C=3, exploitation="A")
    log = simulate_duels(rule, worth, 600, seed=5)
    state = rule.start(3)
    won = np.where(log.winner < 0, np.nan, log.winner == log.left)
    for t in range(600):
        np.testing.assert_allclose(
            log.pair_probability[t], rule.pair_probability(state), atol=1e-14
        )
        state = rule.update(state, int(log.left[t]), int(log.right[t]), won[t])
    np.testing.assert_allclose(log.pair_probability.sum(axis=(1, 2)), 1)
    np.testing.assert_allclose(log.selection_probability, log.pair_probability.sum(axis=2))
    assert np.all(log.pair_propensity > 0)
    np.testing.assert_array_equal(log.winner < 0, log.left == log.right)
    share = np.array([3, 2, 1]) / 6
    by_hand = [
        sum(max(share[i] - row[i], 0) for i in range(3)) for row in log.selection_probability
    ]
    np.testing.assert_allclose(log.fairness_regret(worth), by_hand)
    duels = log.comparisons
    assert duels.items == ("x", "y", "z")
    np.testing.assert_array_equal(duels.win_matrix(), state.wins)
    again = simulate_duels(rule, worth, 600, seed=5, n_runs=2)
    np.testing.assert_array_equal(again["0"].left, log.left)
    assert not np.array_equal(again["1"].left, log.left)


@pytest.mark.statistical
def test_pairs_and_winners_follow_the_logged_probabilities():
    log = simulate_duels(FairSDDTS(C=2, exploitation="B"), [3, 2, 1], 20_000, seed=8)
    for i, j in itertools.permutations(range(3), 2):
        drawn = (log.left == i) & (log.right == j)
        p = log.pair_probability[:, i, j]
        z = (drawn.sum() - p.sum()) / math.sqrt((p * (1 - p)).sum())
        assert abs(z) < 4.5  # six pairs and six win rates, 7e-6 each
        chance = [3, 2, 1][i] / ([3, 2, 1][i] + [3, 2, 1][j])
        n = drawn.sum()
        assert abs((log.winner[drawn] == i).sum() - n * chance) < 4.5 * math.sqrt(
            n * chance * (1 - chance)
        )


@pytest.mark.parametrize(
    ("error", "call", "message"),
    [
        (OptionError, lambda: FairSDDTS(exploitation="D"), "exploitation='D' is not known"),
        (OptionError, lambda: FairSDDTS(slot="second"), "slot='second'"),
        (OptionError, lambda: FairSDDTS(estimator="mle", smoothing=0), "smoothing=0"),
        (OptionError, lambda: FairSDDTS(C="union"), "C='union'"),
        (OptionError, lambda: FairSDDTS().start(1), "needs two"),
        (DataError, lambda: FairSDDTS().update(FairSDDTS().start(2), 0, 1, 0.5), "outcome 0.5"),
        (DataError, lambda: simulate_duels(FairSDDTS(C=1), [1, 0], 10, seed=1), "must be positive"),
        (OptionError, lambda: simulate_duels("sd_ts", [1, 1], 10, seed=1), "no duelling rule"),
        (
            OptionError,
            lambda: simulate_duels(FairSDDTS(C=1), [1, 1], 10, seed=None),
            "seed= is required",
        ),
        (
            DataError,
            lambda: DuelLog(
                Comparisons.from_duels(["a"], ["b"], ["left"]), *np.zeros((2, 3), int), [0]
            ),
            "cell has shape",
        ),
    ],
)
def test_mistakes_are_named(error, call, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.skipif(not (SHARED / "data/baseball.csv").exists(), reason="needs shared baseball.csv")
def test_case_76_best_of_duelling_arms_is_the_share_of_the_worths():
    rows = list(csv.DictReader((SHARED / "data/baseball.csv").read_text().splitlines()))
    teams = sorted({row["home.team"] for row in rows})
    rule = FairSDDTS(C=0, estimator="mle", smoothing=1e-9)
    wins = np.zeros((len(teams), len(teams)))
    for row in rows:
        i, j = teams.index(row["home.team"]), teams.index(row["away.team"])
        wins[i, j] += float(row["home.wins"])
        wins[j, i] += float(row["away.wins"])
    state = type(rule.start(2))(wins, 0.0)
    p_best = dict(zip(teams, rule.selection_probability(state), strict=True))
    published = {
        "Milwaukee": 0.2189,
        "Detroit": 0.1894,
        "Toronto": 0.1643,
        "New York": 0.1568,
        "Boston": 0.1363,
        "Cleveland": 0.0892,
        "Baltimore": 0.0450,
    }
    assert p_best == pytest.approx(published, abs=6e-5)
