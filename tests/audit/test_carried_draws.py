"""Weighted draws that take a filter's place, against posteriors on a grid of coefficients."""

import numpy as np
import pytest
from scipy import special

import bayesfair as bf
from bayesfair.audit import run
from bayesfair.inference.carried import Carried

LINK = {"probit": special.ndtr, "logit": special.expit}


def sorted_log(n=120, seed=0):
    """A filter depends on the order: one number that grows, then comes again at random."""
    rng = np.random.default_rng(seed)
    x = np.concatenate([np.sort(rng.normal(size=80)), rng.normal(size=n - 80)])
    reward = np.where(rng.random(n) < 0.05, np.nan, x > 0.1)
    p_a = rng.uniform(0.3, 0.7, n)
    arm = (rng.random(n) > p_a).astype(int)
    return bf.History(arm, reward, arms=["a", "b"], context={"x": x},
                      selection_probability=np.column_stack([p_a, 1 - p_a]),
                      known_at=np.arange(n) + rng.integers(1, 5, n))  # fmt: skip


def by_grid(log, model):
    """P(reward = 1) of each arm before each round, (T, 2)."""
    x = np.array([float(v) for v in log.context.labels[0]])[log.context.codes[:, 0]]
    z = (x - x[:100].mean()) / x[:100].std()
    node = np.linspace(-6, 6, 121) * (1.0 if model == "probit" else 1.5)
    a, b = np.meshgrid(node, node, indexing="ij")
    density = np.zeros((2, *a.shape)) - (a**2 + b**2) / 2 / node[-1] ** 2 * 36
    found, told = np.empty((log.n_rounds, 2)), np.isnan(log.reward)
    for t in range(log.n_rounds):
        for s in np.flatnonzero(~told[:t] & (log.known_at[:t] <= t)):
            sign = 2 * log.reward[s] - 1
            density[log.arm[s]] += np.log(LINK[model](sign * (a + b * z[s])).clip(1e-300))
            told[s] = True
        weight = np.exp(density - density.max(axis=(1, 2), keepdims=True))
        found[t] = (weight * LINK[model](a + b * z[t])).sum(axis=(1, 2)) / weight.sum(axis=(1, 2))
    return found


def kinds(audit):
    return {getattr(found, "kind", "") for found in audit.findings}


@pytest.mark.parametrize("model", ["probit", "logit"])
def test_beliefs_are_those_of_the_posterior_where_the_filter_is_not(model):
    log = sorted_log()
    audit = bf.audit(log, context_model=model, seed=1, draws=50, eps1=1)
    right = by_grid(log, model)
    best = 0.5 + (right[:, 0] - right[:, 1]) / 2  # of two arms
    assert np.abs(audit.rounds().best_arm_probability[:, 0] - best).max() < 0.012
    pi = log.selection_probability
    assert audit.regret.value == pytest.approx(np.abs(best - pi[:, 0]).mean(), abs=2e-3)
    need = np.abs(pi[:, 0] - pi[:, 1]) - np.abs(right[:, 0] - right[:, 1])
    assert audit.smallest_eps2 == pytest.approx(need.max(), abs=0.02)
    filtered = audit.summary.start.beliefs.featured.over(log)[0].mean
    assert np.abs(filtered - right).max() > 0.03
    assert "filter_switched" in kinds(audit) and "filter_apart" not in kinds(audit)
    numbers = audit.to_dict()["context"]
    assert numbers["switched"] and max(x["share_of_rounds"] for x in numbers["certificates"]) > 0.01
    assert audit.subjective_verdict in ("fair", "unfair")


def test_parts_and_saved_audits_carry_the_draws_on(tmp_path):
    log = sorted_log()
    asked = {"context_model": "probit", "seed": 1, "draws": 50}
    whole, first = bf.audit(log, **asked), bf.audit(log.before(110), **asked)
    first.save(tmp_path / "first.nc")
    for audit in (first, bf.load_audit(tmp_path / "first.nc")):
        more = audit.resume(log.rounds(110, 120))
        assert more.regret.value == pytest.approx(whole.regret.value, abs=1e-12)
        assert more.smallest_eps2 == pytest.approx(whole.smallest_eps2, abs=1e-12)
        assert "filter_switched" in kinds(more) and more.objective is None
    alone = first.state.after(log.rounds(110, 120)).beliefs.shared
    assert np.array_equal(alone.log_ratio, whole.state.beliefs.shared.log_ratio)
    # a part that brings a level, which no coefficient was of before
    site = np.repeat(["u", "v"], 60)
    x = np.array([float(v) for v in log.context.labels[0]])[log.context.codes[:, 0]]
    mixed = bf.History(log.arm, log.reward, arms=log.arms, context={"x": x, "site": site})
    before = bf.audit(mixed.before(60), context_model="probit", objective=False).summary.start
    start = Carried.start(before.beliefs.featured)
    middle = start.over(mixed.before(60))[1]
    later = middle.over(mixed.rounds(60, 120))[0].mean
    assert later.shape == (60, 2) and middle.theta.shape[2] == 3
    # of the new level nothing is known but the prior: its chance is nearer one half
    near = middle.over(
        bf.History([0], [np.nan], arms=log.arms, context={"x": [x[59]], "site": ["u"]})
    )
    assert abs(later[0, 0] - 0.5) < abs(near[0].mean[0, 0] - 0.5)


def test_a_filter_that_is_off_decides_nothing_where_no_draws_take_its_place(monkeypatch):
    monkeypatch.setattr(run, "MOST_CARRIED", 0)
    audit = bf.audit(sorted_log(), context_model="logit", seed=1, draws=50, across="contexts")
    assert "filter_apart" in kinds(audit) and not audit.to_dict()["context"]["switched"]
    assert audit.smallest_eps2 is not None and audit.subjective_verdict == "undetermined"
    assert audit.verdict == ("unfair" if audit.objective_verdict == "unfair" else "undetermined")
    assert {cell["subjective_verdict"] for cell in audit.to_dict()["cells"]} == {"undetermined"}
    assert audit.to_dict()["across"]["verdict"] == "undetermined"
    unchecked = bf.audit(sorted_log(), context_model="logit", objective=False)
    assert "filter_unchecked" in kinds(unchecked) and "filter_unchecked" not in kinds(audit)
    blind = bf.audit(sorted_log(), context_model="none", objective=False)
    assert "filter_unchecked" not in kinds(blind)
