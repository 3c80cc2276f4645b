"""Many arms of which few were played: as few laws, and the numbers of all arms by themselves."""

from __future__ import annotations

import json

import numpy as np
import pytest

import bayesfair as bf
from bayesfair.audit.log import rounds as passes
from bayesfair.audit.log.shared_laws import Laws, laws_of
from bayesfair.families import FAMILIES
from bayesfair.inference.beliefs import belief_start

K = 40


def log_of(family, *, pi=True, offers=False, n_rounds=50):
    rng = np.random.default_rng(3)
    arm = rng.integers(0, 4, n_rounds)
    reward = {
        "finite": rng.integers(1, 6, n_rounds),
        "poisson": rng.poisson(2.0, n_rounds),
        "normal": rng.normal(0.0, 1.0, n_rounds),
    }[family].astype(float)
    reward[rng.random(n_rounds) < 0.1] = np.nan
    rule = rng.dirichlet(np.ones(K), size=n_rounds)
    if offers:
        hidden = rng.random(rule.shape) < 0.3
        hidden[np.arange(n_rounds), arm] = False
        rule = np.where(hidden, np.nan, rule)
        rule /= np.nansum(rule, axis=1, keepdims=True)
    return bf.History(
        arm, reward, selection_probability=rule if pi else None, arms=[f"a{i}" for i in range(K)]
    )


def each_alone(part, table):
    return Laws(np.arange(part.n_arms), np.arange(part.n_arms))


def same_numbers(one, other):
    """Equal but for rounding; in words only the numbers may differ in the last digits."""
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            same_numbers(one[key], other[key])
    elif isinstance(one, list):
        assert len(one) == len(other)
        for x, y in zip(one, other, strict=True):
            same_numbers(x, y)
    elif isinstance(one, float) and isinstance(other, float):
        assert one == pytest.approx(other, rel=1e-10, abs=1e-12)
    else:
        assert one == other


@pytest.mark.parametrize("family", ["finite", "poisson", "normal"])
@pytest.mark.parametrize("kind", ["full", "offers", "none"])
def test_audits_do_not_depend_on_how_arms_are_put_together(family, kind, monkeypatch):
    log = log_of(family, pi=kind != "none", offers=kind == "offers")
    options = {"family": family, "objective": False, "eps1": 0.5, "eps2": 0.0}
    if family == "finite":
        options["support"] = [1, 2, 3, 4, 5]
    shared = bf.audit(log, **options)
    rounds = shared.rounds()
    monkeypatch.setattr(passes, "laws_of", each_alone)
    alone = bf.audit(log, **options)
    same_numbers(shared.to_dict(), alone.to_dict())
    other = alone.rounds()
    for name in ("smallest_eps2", "fairness_regret", "best_arm_probability"):
        np.testing.assert_allclose(rounds[name], other[name], rtol=0, atol=1e-12)
    assert (rounds["worst_arm"].values == other["worst_arm"].values).all()
    assert (rounds["worst_arm_other"].values == other["worst_arm_other"].values).all()


@pytest.mark.parametrize("divergence", ["kl", "chi2", "hellinger", "jensen_shannon"])
def test_extreme_arms_stand_for_their_law_under_every_divergence(divergence, monkeypatch):
    log = log_of("finite")
    options = {
        "family": "finite", "objective": False, "support": [1, 2, 3, 4, 5], "eps1": 0.5,
        "eps2": 0.0, "divergence": divergence,
    }  # fmt: skip
    shared = bf.audit(log, **options)
    monkeypatch.setattr(passes, "laws_of", each_alone)
    same_numbers(shared.to_dict(), bf.audit(log, **options).to_dict())


def test_arms_without_rewards_share_a_law():
    log = log_of("finite")
    start, _ = belief_start(log.arms, FAMILIES["finite"], None, log, [1, 2, 3, 4, 5])
    laws = laws_of(log, start)
    assert len(laws.arm) == 5 and laws.shared
    assert laws.counts(None).tolist() == [[1, 1, 1, 1, 36]]
    parameters = start.parameters.copy()
    parameters[7] += 1  # a prior of its own
    assert len(laws_of(log, start._replace(parameters=parameters)).arm) == 6


def test_idle_arms_of_different_beliefs_keep_their_order():
    """Pairs of one round after many: the largest of |pi_i - pi_j| - eps1 |m_i - m_j| by hand."""
    rng = np.random.default_rng(0)
    arm, reward = rng.integers(0, 6, 90), rng.integers(0, 2, 90)
    pi = rng.dirichlet(np.ones(6), size=90)
    log = bf.History(arm, reward, selection_probability=pi)
    options = {"family": "finite", "objective": False, "eps1": 0.5, "eps2": 0.0, "support": [0, 1]}
    early = bf.audit(log.before(60), **options)
    won = np.bincount(arm[:60], weights=reward[:60], minlength=6)
    m = (0.5 + won) / (1 + np.bincount(arm[:60], minlength=6))
    i, j = np.triu_indices(6, 1)
    expected = np.abs(pi[60, i] - pi[60, j]) - 0.5 * np.abs(m[i] - m[j])
    found = bf.audit(log.rounds(60, 61), **options | {"support": None}, prior=early)
    assert found.smallest_eps2 == pytest.approx(expected.max(), abs=1e-12)


def test_extremes_are_those_of_every_pair():
    rng = np.random.default_rng(0)
    of = np.array([0, 1, 1, 2, 1, 2])
    pi = rng.dirichlet(np.ones(6), size=30)
    pi[::4, [1, 2]] = np.nan
    pi[1::5, 3] = np.nan
    rows, arm, law = Laws(of, np.array([0, 1, 3])).extremes(pi)
    for t in range(len(pi)):
        on = ~np.isnan(rows[t])
        assert (of[arm[t, on]] == law[t, on]).all()
        np.testing.assert_array_equal(pi[t, arm[t, on]], rows[t, on])
        assert len(set(arm[t, on])) == on.sum()  # no arm is held against itself
        for a in range(3):
            here = pi[t, of == a][~np.isnan(pi[t, of == a])]
            assert sorted(rows[t, on & (law[t] == a)]) == sorted({here.min(), here.max()})


def test_json_of_many_entries_is_a_line_each_and_the_same_values(monkeypatch):
    from bayesfair.cli import tools

    found = {"a": {"x": [1, 2.5, None]}, "groups": {f"g\u00e4{i}": {"n": i} for i in range(5)},
             "arms": [{"arm": "a\nb", "p": 0.1}] * 4}  # fmt: skip
    plain = json.dumps(found, indent=2, ensure_ascii=False)
    assert tools._json_text(found) == plain
    monkeypatch.setattr(tools, "_LONG_TABLE", 3)
    long = tools._json_text(found)
    assert json.loads(long) == found
    assert sum('"n":' in line for line in long.splitlines()) == 5
