"""The audit as an instrument: coverage, false alarms and power, in a short form.

The long form is `benchmarks/audit_calibration.py`; its output is in `benchmarks/results`.
"""

import sys
from pathlib import Path

import numpy as np
import pytest

import bayesfair as bf
from bayesfair.policies import FairSDTS

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
import audit_calibration as study  # noqa: E402

sys.path.remove(str(BENCHMARKS))

pytestmark = pytest.mark.statistical

# 150 logs at .95: standard error .018; beyond four of them (.879) once in 10^4 by chance
N_LOGS, LOWEST = 150, 0.88


@pytest.mark.parametrize("rule", ["sd_ts", "thompson", "uniform"])
def test_intervals_cover_when_theta_comes_from_the_prior(rule):
    found = study.coverage(rule, 2, N_LOGS, 150, None, seed=10)
    assert found["regret"] >= LOWEST
    assert found["eps2"] >= LOWEST


def test_a_wrong_interval_fails_the_same_test(monkeypatch):
    """Intervals of half the width must be caught: 67 % instead of 95 % for a normal posterior."""
    objective = sys.modules["bayesfair.audit.truth.objective"]
    right = objective.interval

    def halved(draws):
        low, high = right(draws)
        middle = float(np.median(draws))
        return (low + middle) / 2, (high + middle) / 2

    monkeypatch.setattr(objective, "interval", halved)
    monkeypatch.setattr(sys.modules["bayesfair.audit.numbers"], "interval", halved)
    found = study.coverage("thompson", 2, N_LOGS, 150, None, seed=10)
    assert found["regret"] < LOWEST


def test_rules_within_their_guarantee_are_hardly_ever_unfair():
    unfair, found, wrong = study.verdicts(
        FairSDTS(eps2=0.15, delta=0.1), 2, 0.3, 2, 60, 1500, seed=11
    )
    assert unfair <= 0.1 + 3 * np.sqrt(0.1 * 0.9 / 60)
    assert found <= unfair + 0.05
    assert wrong <= 0.05


def test_power_where_it_is_promised():
    # k = 2, eps1 = 1, excess .1, T = 2000: at least .9; the same rule without excess is not found
    assert study.power(0.1, 2, 1, 60, 2000, seed=12) >= 0.9
    assert study.power(-0.06, 2, 1, 60, 2000, seed=12) <= 0.1


def test_a_failing_and_a_passing_rule_differ_by_the_margin_only():
    rng = np.random.default_rng(0)
    reward = (rng.random(4000) < 0.5).astype(float)
    for gap, verdict in [(0.03, "fair"), (0.3, "unfair")]:
        pi = np.tile([0.5 + gap / 2, 0.5 - gap / 2], (4000, 1))
        arm = (rng.random(4000) > pi[:, 0]).astype(int)
        log = bf.History(arm, reward, selection_probability=pi)
        assert bf.audit(log, eps1=1, eps2=0.1, seed=1).verdict == verdict
