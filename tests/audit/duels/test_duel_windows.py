"""Shares in windows against beliefs that move: limits by hand, and how long a log must be."""

import functools
from itertools import pairwise

import numpy as np
import pytest
from duel_logs import arena, log_of
from scipy import integrate, stats

import bayesfair as bf
from bayesfair.audit.duels.beliefs import checkpoints
from bayesfair.errors import OptionError

UNEQUAL = np.array([4.0, 3.0, 2.0, 1.0])


def race_tv(x):
    """Total variation of exponential laws whose log-rates are x apart, by quadrature."""
    a, b = np.exp(abs(x)), 1.0
    if a == b:
        return 0.0
    cross = np.log(a / b) / (a - b)
    gap = integrate.quad(lambda t: abs(a * np.exp(-a * t) - b * np.exp(-b * t)), 0, cross)[0]
    return gap  # what one density has more before they cross is what the other has more after


def mode(log, n):
    """Bradley-Terry mode of the first n duels, from a fit of these alone."""
    if not n:
        return np.zeros(log.n_items)
    left, right, outcome = (part[log.cell[:n]] for part in (log.left, log.right, log.outcome))
    tree = bf.fit(log_of(left, right, outcome == 0, log.n_items), seed=1, draws=400,
                  method="laplace")  # fmt: skip
    return tree["mode"]["log_worth"].values


def test_windows_are_held_against_the_mean_of_the_bounds_between_beliefs():
    k, n, size, eps1 = 3, 90, 30, 0.4
    log = arena(np.random.default_rng(2), n, np.array([0.9, 0.06, 0.04]), np.array([2.0, 1.0, 1.0]))
    left = log.left[log.cell]
    at = sorted({*checkpoints(n).tolist(), 0, 30, 60, n})
    believed = {t: mode(log, t) for t in at}
    lowest = highest = 0.0
    for windows, tail in (([(0, 30), (30, 60), (60, 90)], 0.025 / 18), ([(0, 90)], 0.025 / 6)):
        for a, b in windows:
            count, m = np.bincount(left[a:b], minlength=k), b - a
            low = np.nan_to_num(stats.beta.ppf(tail, count, m - count + 1))
            high = np.nan_to_num(stats.beta.ppf(1 - tail, count + 1, m - count), nan=1.0)
            for i in range(k):
                for j in range(i):
                    near = far = 0.0
                    for s, t in pairwise(at):
                        if a <= s < b:
                            x, y = (believed[u][i] - believed[u][j] for u in (s, t))
                            d = sorted([race_tv(x), race_tv(y)])
                            near += (t - s) * (0.0 if x * y < 0 else d[0]) / m
                            far += (t - s) * d[1] / m
                    surely = max(low[i] - high[j], low[j] - high[i], 0)
                    maybe = max(high[i] - low[j], high[j] - low[i])
                    lowest = max(lowest, surely - eps1 * far)
                    if len(windows) == 3:
                        highest = max(highest, maybe - eps1 * near)
    audit = bf.audit_comparisons(log, window=size, eps1=eps1, seed=1).to_dict()
    assert audit["log"]["n_windows"] == 3
    assert audit["subjective"]["smallest_eps2"] == pytest.approx(lowest, abs=1e-6)
    assert lowest > 0
    assert audit["subjective"]["smallest_eps2_upper"] == pytest.approx(highest, abs=1e-6)


@pytest.mark.parametrize("slot", ["first", "mean"])
def test_unequal_items_paired_uniformly_are_fair_in_both_halves(slot):
    log = arena(np.random.default_rng(1), 100_000, np.full(4, 0.25), UNEQUAL)
    for eps2 in (0.5, None):
        audit = bf.audit_comparisons(log, slot=slot, eps2=eps2, seed=1, draws=1000)
        numbers = audit.to_dict()
        assert numbers["subjective"]["verdict"] == "fair"
        assert numbers["objective"]["verdict"] == "fair"
        assert audit.verdict == "fair"
        assert numbers["subjective"]["n_duels_for_decision"] is None
        kinds = {found["kind"] for found in numbers["findings"]}
        if eps2:  # what no such log can fail is said to be so
            assert "cannot_fail" in kinds


@functools.cache
def audited(seed, n):
    """Text and numbers of an audit of n duels of unequal items, paired uniformly."""
    log = arena(np.random.default_rng(seed), n, np.full(4, 0.25), UNEQUAL)
    audit = bf.audit_comparisons(log, seed=1, draws=1000)
    return str(audit), audit.to_dict()


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["subjective", "objective"])
def test_the_number_of_duels_that_decide_is_that_of_simulation(name):
    told = []
    for run in range(5):
        text, numbers = audited(run, 4000)
        part = numbers[name]
        assert part["verdict"] == "undetermined"
        told.append(part["n_duels_for_decision"])
        assert "such duels would decide" in text
    number = float(np.median(told))
    decided = {}
    for factor in (1 / 1.5, 1.5):
        decided[factor] = 0
        for run in range(5):
            part = audited(100 + run, int(factor * number))[1][name]
            decided[factor] += part["verdict"] != "undetermined"
    # the length at which half of the logs are decided lies between the two
    assert decided[1 / 1.5] <= 2 and decided[1.5] >= 3


def test_violating_windows_and_their_duels_are_named():
    # even for 1000 duels, then m0 in nine of ten, then even again; equal items
    rng = np.random.default_rng(4)
    even, skewed = np.full(4, 0.25), np.array([0.91, 0.03, 0.03, 0.03])
    share = [even] * 1000 + [skewed] * 500 + [even] * 1500
    left = np.array([rng.choice(4, p=p) for p in share])
    right = (left + rng.integers(1, 4, 3000)) % 4
    log = log_of(left, right, rng.random(3000) < 0.5, 4)
    audit = bf.audit_comparisons(log, window=250, worth=np.ones(4), seed=1)
    numbers = audit.to_dict()
    objective = numbers["objective"]
    assert objective["verdict"] == "unfair"
    assert objective["first_violating_round"] == {"mean": 1000, "lower": 1000, "upper": 1000}
    assert objective["last_violating_round"]["mean"] == 1499
    assert objective["n_violating_rounds"]["mean"] == 500
    assert objective["n_violating_windows"]["mean"] == 2
    subjective = numbers["subjective"]
    assert (subjective["first_violating_round"], subjective["last_violating_round"]) == (1000, 1499)
    assert (subjective["n_violating_rounds"], subjective["n_violating_windows"]) == (500, 2)
    assert "shown in 2 of 12 windows, between duels 1000 and 1499" in str(audit)
    later = bf.audit_comparisons(log, window=250, worth=np.ones(4), from_round=1500, seed=1)
    assert later.to_dict()["objective"]["verdict"] != "unfair"
    assert later.windows.start[0] == 1500
    assert later.to_dict()["log"]["n_judged"] == 1500
    with pytest.raises(OptionError, match="from_round=3000 leaves no duel"):
        bf.audit_comparisons(log, from_round=3000, seed=1)


def test_the_whole_log_shows_what_no_window_does():
    log = arena(np.random.default_rng(5), 4000, np.array([0.4, 0.2, 0.2, 0.2]), np.ones(4))
    audit = bf.audit_comparisons(log, window=50, worth=np.ones(4), seed=1)
    numbers = audit.to_dict()
    assert numbers["objective"]["verdict"] == "unfair"
    assert numbers["objective"]["n_violating_windows"]["mean"] == 0
    assert numbers["objective"]["first_violating_round"] is None
    assert "shown by the log as a whole, by no single window" in str(audit)
