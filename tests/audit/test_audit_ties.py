"""The sentence about ties: said where many ties are why the regret is large, and how far."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import bayesfair as bf

SHARED = Path(__file__).resolve().parents[2] / ".." / "shared" / "data"
obd = pytest.mark.skipif(not SHARED.exists(), reason="needs ../shared/data (Open Bandit sample)")
NUMBERS = re.compile(
    r"Most rounds are ties: .* pay 0 in (\d+) % .* mean probability is ([\d.]+), .* regret of "
    r"([\d.]+) per round \(under the beliefs ([\d.]+)\)"
)


def _best(means):
    """P* of Bernoulli arms by the law of the number of successes among the others."""
    k = len(means)
    found = np.empty(k)
    for i in range(k):
        law = np.array([1.0])
        for j in range(k):
            if j != i:
                law = np.convolve(law, [1 - means[j], means[j]])
        found[i] = means[i] * (law / np.arange(1, k + 1)).sum() + np.prod(1 - means) / k
    return found


def _said(result):
    found = [n for n in result.to_dict()["notices"] if n.startswith("Most rounds are ties")]
    assert len(found) <= 1
    return found[0] if found else None


@obd
@pytest.mark.parametrize(("rule", "said"), [("bts", True), ("random", False)])
def test_open_bandit_by_position(rule, said):
    logs = bf.read_history(
        SHARED / f"obd_{rule}_men.csv", arm="item_id", reward="click",
        propensity="propensity_score", order="timestamp", by="position",
    )  # fmt: skip
    for log in logs.values():
        result = bf.audit(log, objective=False)
        sentence = _said(result)
        assert (sentence is not None) == said
        if sentence is None:
            assert result.regret.value < 0.2  # as many ties, but nothing large to explain
            continue
        means = np.array([log.reward[log.arm == i].mean() for i in range(log.n_arms)])
        terms = np.maximum(1 - _best(means)[log.arm] / log.propensity, 0)
        ties, focus, known, believed = map(float, NUMBERS.match(sentence).groups())
        assert ties == pytest.approx(100 * np.prod(1 - means), abs=0.5)
        assert focus == pytest.approx(log.propensity.mean(), abs=5e-4)
        assert known == pytest.approx(terms.mean(), abs=5e-3)
        assert believed == pytest.approx(result.regret.value, abs=5e-3)
        rest = float(re.search(r"the other ([\d.]+) comes from the beliefs", sentence).group(1))
        assert rest == pytest.approx(result.regret.value - terms.mean(), abs=5e-3)


def _log(rng, rate, n=1500, k=10, *, chosen=0.91, offered=False, unplayed=0):
    """A rule that mostly chooses arm 0, whatever the rewards; `rate` of the rewards of each arm."""
    pi = np.full((n, k), (1 - chosen) / (k - 1))
    pi[:, 0] = chosen
    if unplayed:
        pi[:, -unplayed:] = 1e-9
    if offered:
        pi[::3, k // 2 :] = np.nan
    pi /= np.nansum(pi, axis=1, keepdims=True)
    arm = np.array([rng.choice(k, p=np.nan_to_num(row)) for row in pi])
    reward = (rng.random(n) < np.asarray(rate)[arm]).astype(float)
    return bf.History(arm.astype(np.int32), reward, pi, arms=[f"a{i}" for i in range(k)])


@pytest.mark.parametrize("more", [{}, {"offered": True}, {"unplayed": 2}], ids=str)
def test_rare_rewards_and_a_rule_that_concentrates(more):
    log = _log(np.random.default_rng(1), np.full(10, 0.004), **more)
    sentence = _said(bf.audit(log, objective=False))
    assert sentence is not None
    known = float(NUMBERS.match(sentence).group(3))
    played = np.bincount(log.arm, minlength=10)
    means = np.bincount(log.arm, log.reward, 10) / np.maximum(played, 1)
    means[played == 0] = log.reward.mean()
    pi, total = log.selection_probability, 0.0
    for row in pi:
        on = ~np.isnan(row)
        total += np.maximum(_best(means[on]) - row[on], 0).sum()
    assert known == pytest.approx(total / len(pi), abs=5.1e-3)
    early = bf.audit(log.before(700), objective=False)
    late = bf.audit(log.rounds(700, 1500), prior=early.state, objective=False)
    assert _said(bf.merge(early, late)) == sentence


def test_absent_where_it_does_not_apply():
    rng = np.random.default_rng(2)
    rare, common = np.full(10, 0.004), np.full(10, 0.4)
    good = np.concatenate([[0.9], rare[1:]])
    for log in (
        _log(rng, common),  # no ties
        _log(rng, good),  # the rule concentrates on the arm that is best
        _log(rng, rare, chosen=0.1),  # ties, and a uniform rule
        _log(rng, rare, n=60),  # too short to say
    ):
        assert _said(bf.audit(log, objective=False)) is None


def test_absent_where_the_prior_is_why():
    """Two arms of three never pay in three plays each: P* is high under the prior alone."""
    pi = np.tile([0.5, 0.49, 0.01], (400, 1))
    arm = np.tile([0, 1], 200)
    arm[:3] = 2
    reward = (np.arange(400) % 20 == 0).astype(float)
    log = bf.History(arm.astype(np.int32), reward, pi, arms=["a", "b", "c"])
    optimist = bf.audit(log, objective=False, prior={"c": (200.0, 0.5)})
    assert optimist.regret.value > 0.8
    means = np.array([reward[arm == i].mean() for i in range(3)])
    assert np.prod(1 - means) > 0.5 and (pi[0] - _best(means)).max() < 0.4
    assert _said(optimist) is None


# -- reasons of values that cannot be had ----------------------------------------------------------


def test_arms_without_an_observed_reward_are_named():
    pi = np.full((3, 4), 0.25)
    log = bf.History(["a", "b", "a"], [1, np.nan, 0], pi, arms=["a", "b", "c", "d"])
    numbers = bf.audit(log, objective=False).to_dict()
    assert [a["reward_mean"] for a in numbers["arms"]] == [0.5, None, None, None]
    (said,) = [n for n in numbers["notices"] if n.startswith("No reward was observed")]
    assert "of 3 arms ('b', 'c', 'd')" in said


def test_no_two_arms_on_offer_is_said_and_is_no_rule_that_does_not_learn():
    pi = [[1.0, np.nan], [np.nan, 1.0]] * 2
    numbers = bf.audit(bf.History([0, 1, 0, 1], [1, 0, 1, 0], pi), objective=False).to_dict()
    assert numbers["subjective"]["worst"] is None and numbers["verdict"] == "fair"
    (said,) = numbers["notices"][:-1]  # the last: no objective part
    assert said.startswith("In no round were two arms on offer")
