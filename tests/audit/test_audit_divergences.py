"""Other divergences, arm groups and PyMC models of the truth, against the definitions."""

import json
from pathlib import Path

import numpy as np
import pytest

import bayesfair as bf
from bayesfair.families import FAMILIES
from bayesfair.inference.beliefs import iter_beliefs
from bayesfair.kernels.log.conjugate import start_table
from bayesfair.kernels.log.stream import stream_bernoulli

BERNOULLI = FAMILIES["bernoulli"]
REFERENCE = Path(__file__).resolve().parents[1] / "reference"
NAMES = {"tv": "total_variation", "kl": "kl", "hellinger": "hellinger", "chi2": "chi2",
         "js": "jensen_shannon", "w1": "wasserstein"}  # fmt: skip


def random_log(seed, n=60, k=3, delays=False):
    rng = np.random.default_rng(seed)
    pi = rng.dirichlet(np.ones(k), n)
    arm = np.array([rng.choice(k, p=p) for p in pi])
    known_at = np.arange(n) + rng.integers(1, 9, n) if delays else None
    reward = rng.integers(0, 2, n).astype(float)
    reward[rng.random(n) < 0.1] = np.nan
    return bf.History(
        arm, reward, selection_probability=pi, arms=list("abcdef")[:k], known_at=known_at
    )


def means_by_counting(log):
    """Believed means before each round, from the counts of what was known by then."""
    n = log.n_rounds
    known = np.arange(1, n + 1) if log.known_at is None else log.known_at
    means = np.empty((n, log.n_arms))
    for t in range(n):
        use = (known <= t) & (np.arange(n) < t) & ~np.isnan(log.reward)
        s = np.bincount(log.arm[use], weights=log.reward[use], minlength=log.n_arms)
        means[t] = (0.5 + s) / (1 + np.bincount(log.arm[use], minlength=log.n_arms))
    return means


@pytest.mark.parametrize("delays", [False, True])
def test_believed_means_are_those_of_the_counts(delays):
    log = random_log(1, n=500, delays=delays)
    state = start_table(np.full((3, 2), 0.5))
    counted = means_by_counting(log)
    means = np.concatenate([r.mean for _, _, r, _, _ in iter_beliefs(log, BERNOULLI, state)])
    np.testing.assert_allclose(means, counted, rtol=1e-13)
    first = stream_bernoulli(
        log.arm[:200], log.reward[:200], None, state=state, eps1_grid=[0.0], eps1_index=0,
        eps2=0.0, known_at=None if log.known_at is None else log.known_at[:200],
    )  # fmt: skip
    rest = log.rounds(200, 500)
    later = [r.mean for _, _, r, _, _ in iter_beliefs(rest, BERNOULLI, first.end)]
    np.testing.assert_allclose(np.concatenate(later), counted[200:], rtol=1e-12)


@pytest.mark.parametrize("name", list(NAMES.values()))
def test_subjective_audit_under_every_divergence_by_the_definition(name):
    log = random_log(2, n=25)
    result = bf.audit(log, eps1=0.5, eps2=0.1, divergence=name, objective=False)
    means = means_by_counting(log)
    needed = np.zeros(25)
    for t in range(25):
        rewards = bf.rewards.Bernoulli(means[t]).divergence(name)
        decisions = bf.rewards.Bernoulli(log.selection_probability[t]).divergence(name)
        excess = [decisions[i, j] - 0.5 * rewards[i, j]
                  for i in range(3) for j in range(3) if i != j]  # fmt: skip
        needed[t] = max(0.0, *excess)
    assert result.smallest_eps2 == pytest.approx(needed.max(), rel=1e-12)
    assert result.n_violating_rounds == (needed > 0.1 + 1e-9).sum()
    np.testing.assert_allclose(result.rounds()["smallest_eps2"], needed, atol=1e-12)


def test_objective_audit_of_the_reference_rounds_under_every_divergence():
    cases = json.loads((REFERENCE / "smooth_fairness_rounds.json").read_text())["cases"]
    tried = 0
    for case in cases:
        if "m" not in case or len(case["pi"]["float"]) < 2:
            continue
        pi = np.array(case["pi"]["float"])
        log = bf.History([pi.argmax()], [0], arms=range(len(pi)), selection_probability=pi[None])
        result = bf.audit(
            log, eps1=case["eps1_float"], divergence=NAMES[case["divergence"]],
            truth=bf.rewards.Bernoulli(case["m"]["float"]),
        )  # fmt: skip
        found = result.to_dict()["objective"]["smallest_eps2"]["mean"]
        if case["eps2"] == "inf":
            assert found == "inf"
        else:
            assert found == pytest.approx(case["eps2"], abs=1e-10), case["id"]
        tried += 1
    assert tried > 100


def test_mixed_divergences_are_named():
    log = random_log(3)
    result = bf.audit(log, divergence="total_variation", reward_divergence="kl", objective=False)
    out = result.to_dict()["criterion"]
    assert (out["divergence"], out["reward_divergence"]) == ("total_variation", "kl")


@pytest.mark.parametrize("family", ["finite", "poisson", "normal"])
def test_arm_groups_of_other_rewards_split_the_pairs(family):
    rng = np.random.default_rng(8)
    pi = rng.dirichlet(np.full(4, 2.0), 12)
    reward = {"finite": rng.integers(1, 6, 12), "poisson": rng.poisson(3, 12),
              "normal": rng.normal(10, 2, 12)}[family]  # fmt: skip
    log = bf.History(
        rng.permutation(np.arange(12) % 4), reward, arms=list("abcd"), selection_probability=pi
    )
    groups = {"a": "x", "b": "x", "c": "y", "d": "y"}
    asked = {"family": family, "eps1": 0.5, "objective": False}
    table = bf.audit(log, **asked, arm_groups=groups).to_dict()["arm_groups"]
    far = bf.beliefs(log, family=family).rewards.divergence("total_variation")
    excess = np.abs(pi[:, :, None] - pi[:, None, :]) - 0.5 * far
    member = np.array(list(groups.values()))
    for entry in table:
        one, other = member == entry["group"], member == entry["group_other"]
        between = (np.outer(one, other) | np.outer(other, one)) & ~np.eye(4, dtype=bool)
        expected = max(0.0, excess[:, between].max())
        assert entry["smallest_eps2"] == pytest.approx(expected, abs=1e-12)


def test_arm_groups_split_the_pairs():
    log = random_log(4, k=4)
    groups = {"a": "north", "b": "north", "c": "south", "d": "south"}
    result = bf.audit(log, eps1=0.5, arm_groups=groups, objective=False)
    table = result.to_dict()["arm_groups"]
    assert [(g["group"], g["group_other"], g["n_pairs"]) for g in table] == [
        ("north", "north", 1), ("north", "south", 4), ("south", "south", 1),
    ]  # fmt: skip
    assert max(g["smallest_eps2"] for g in table) == pytest.approx(result.smallest_eps2)
    only = bf.audit(log, eps1=0.5, arm_groups=dict.fromkeys("abcd", "all"), objective=False)
    (entry,) = only.to_dict()["arm_groups"]
    assert entry["n_violating_rounds"] == result.n_violating_rounds
    with pytest.raises(bf.ArmError, match="no group for 'd'"):
        bf.audit(log, arm_groups={k: v for k, v in groups.items() if k != "d"}, seed=1)
    with pytest.raises(bf.ArmError, match="'e'"):
        bf.audit(log, arm_groups=groups | {"e": "x"}, seed=1)
