"""Regrets of several logs, partially pooled, against sums over a fine grid of mean and spread."""

import json

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import norm

import bayesfair as bf
from bayesfair.kernels.laws.pooled_normals import pooled

CASES = {
    "spread": ([0.05, 0.12, 0.2, 0.31], [0.02, 0.01, 0.03, 0.05]),
    "alike": ([0.1, 0.11, 0.09], [0.04, 0.05, 0.03]),
    "two": ([0.02, 0.3], [0.05, 0.1]),
    "one far": ([0.05, 0.05, 0.06, 0.05, 0.6], [0.01, 0.02, 0.02, 0.3, 0.3]),
}


def by_grid(values, errors, scale, at):
    """Posterior on a grid of (mean, spread): mean, spread, groups, and shares below points `at`."""
    mu = np.linspace(-2, 2.5, 1001)[:, None]
    tau = (np.linspace(0, 1, 251)[1:] ** 2 * 5 * scale)[None]
    log = norm.logpdf(tau, scale=scale) + np.log(np.gradient(tau[0]))
    for y, s in zip(values, errors, strict=True):
        log = log + norm.logpdf(y, mu, np.hypot(s, tau))
    weight = np.exp(log - log.max())
    weight /= weight.sum()

    def of(points, chance):
        below = np.cumsum(chance) - chance / 2
        return [chance @ points, *np.interp([0.025, 0.975], below, points)]

    groups, shares = [], []
    for y, s, points in zip(values, errors, at, strict=True):
        kept = tau**2 / (tau**2 + s**2)
        centre, sd = kept * y + (1 - kept) * mu, np.sqrt(kept) * s
        groups.append((weight * centre).sum())
        shares.append([(weight * ndtr((x - centre) / sd)).sum() for x in points])
    return of(mu[:, 0], weight.sum(axis=1)), of(tau[0], weight.sum(axis=0)), groups, shares


@pytest.mark.parametrize("name", CASES)
def test_against_a_grid(name):
    values, errors = map(np.array, CASES[name])
    found = pooled(values, errors, 0.25)
    mean, spread, groups, shares = by_grid(values, errors, 0.25, found.groups[:, 1:])
    np.testing.assert_allclose(found.mean, mean, rtol=0, atol=3e-3)
    np.testing.assert_allclose(found.spread, spread, rtol=0, atol=3e-3)
    np.testing.assert_allclose(found.groups[:, 0], groups, rtol=0, atol=1e-3)
    np.testing.assert_allclose(shares, np.tile([0.025, 0.975], (len(values), 1)), atol=3e-3)


def test_limits_of_no_and_full_pooling():
    value = np.array([0.1, 0.4])
    apart = pooled(value, np.array([1e-3, 1e-3]), 0.25).groups
    np.testing.assert_allclose(apart[:, 0], value, atol=1e-4)
    error = np.array([0.1, 0.2])  # a spread near 0: the mean by precision, its error likewise
    close = pooled(value, error, 1e-4)
    mean = (0.1 / 0.01 + 0.4 / 0.04) / (1 / 0.01 + 1 / 0.04)
    np.testing.assert_allclose(close.groups[:, 0], mean, atol=1e-6)
    half = 1.959963984540054 / np.sqrt(1 / 0.01 + 1 / 0.04)
    np.testing.assert_allclose(close.mean, [mean, mean - half, mean + half], atol=1e-6)
    same = pooled(np.full(5, 0.2), np.zeros(5), 0.25)
    assert same.spread[2] < 1e-3 and same.mean[0] == pytest.approx(0.2, abs=1e-9)


def chosen(n, seed):
    rng = np.random.default_rng(seed)
    arm = rng.integers(0, 2, n)
    reward = (rng.random(n) < np.where(arm == 0, 0.7, 0.3)).astype(float)
    return bf.History(np.array(["a", "b"])[arm], reward, propensity=np.full(n, 0.5))


def test_groups_of_an_audit(tmp_path):
    logs = {"large": chosen(400, 1), "middle": chosen(100, 2), "tiny": chosen(6, 3)}
    group = bf.audit(logs, seed=1, draws=100)
    found = group.to_dict()
    block = found["pooled"]["subjective"]
    parts = [audit["calibration"]["subjective"] for audit in found["groups"].values()]
    error = [(p["upper"] - p["lower"]) / (2 * 1.959963984540054) for p in parts]
    regrets, own = [p["regret_per_round"] for p in parts], list(block["groups"].values())
    mean, spread, each, _ = by_grid(regrets, error, 0.25, [[]] * 3)
    assert (block["n"], block["n_without"], list(block["groups"])) == (3, 0, list(logs))
    np.testing.assert_allclose([row["mean"] for row in own], each, atol=3e-3)
    for ours, theirs in ((block["mean"], mean), (block["spread"], spread)):
        np.testing.assert_allclose(list(ours.values()), np.maximum(theirs, 0), atol=4e-3)
    assert str(group).count("3 logs partially pooled: mean") == 1
    json.dumps(found)
    group.save(tmp_path / "g.nc")
    assert bf.load_audit(tmp_path / "g.nc").to_dict()["pooled"] == found["pooled"]


def test_what_has_no_estimate_is_counted():
    none = bf.History(["a", "b"] * 9, [1, 0] * 9)
    found = bf.audit({"x": chosen(50, 1), "y": chosen(50, 2), "z": none}, seed=1, draws=50)
    assert found.to_dict()["pooled"]["subjective"]["n_without"] == 1
    assert "(1 without)" in str(found)
    alone = bf.audit({"x": chosen(50, 1), "z": none}, seed=1, draws=50)
    assert alone.to_dict()["pooled"] == {"subjective": None, "objective": None}
    assert "pooled" not in str(alone)


def test_many_groups_have_the_common_part_alone():
    logs = {str(i): chosen(4, i) for i in range(1001)}
    found = bf.audit(logs, objective=False).to_dict()
    assert found["detail"] == "brief" and found["pooled"]["subjective"]["groups"] is None
    assert found["pooled"]["subjective"]["n"] == 1001
