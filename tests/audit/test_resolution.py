"""Differences below what a log resolves: no violation, no worst round, no arm that was favoured."""

import numpy as np
import pytest

import bayesfair as bf
from bayesfair.history.probabilities import units_of


def thirds(last="0.333334"):
    pi = [[0.333333, 0.333333, float(last)]] * 30
    return bf.History(["a", "b", "c"] * 10, [1, 0] * 15, selection_probability=pi)


@pytest.mark.parametrize("eps2", [0, 0.05])
def test_a_rounding_artefact_favours_nobody(eps2):
    # 1/3 with six decimals: the sum has to be put right in one of the arms
    audit = bf.audit(thirds(), eps1=0, eps2=eps2, seed=1)
    assert audit.smallest_eps2 == pytest.approx(1e-6, rel=1e-6)
    assert audit.subjective_verdict == "fair" and audit.n_violating_rounds == 0
    assert "favoured" not in str(audit)


def test_what_the_log_resolves_is_said():
    pi = [[0.333333, 0.333330, 0.333337]] * 30
    log = bf.History(["a", "b", "c"] * 10, [1, 0] * 15, selection_probability=pi)
    audit = bf.audit(log, eps1=0, eps2=0, seed=1)
    assert audit.subjective_verdict == "unfair" and audit.n_violating_rounds == 30
    assert "'c' was favoured over 'b'" in str(audit)


@pytest.mark.parametrize("k", [40, 125, 200])
def test_one_of_so_many_arms_is_no_rounding(k):
    log = bf.History([0, 1] * 5, [1, 0] * 5, selection_probability=np.full((10, k), 1 / k))
    assert log.resolution.unit == 0
    assert units_of(log.selection_probability, np.array([0, 10]))[0].tolist() == [0]
    mixed = np.full((10, k), 1 / k)
    mixed[:, 0], mixed[:, 1] = 0.001, 2 / k - 0.001
    log = bf.History([0, 1] * 5, [1, 0] * 5, selection_probability=mixed)
    assert log.resolution.unit == units_of(mixed, np.array([0, 10]))[0][0] == 0.001
