"""Thinned logs: rows standing for several are those several, and what must know all is refused."""

import numpy as np
import pytest

import bayesfair as bf
from bayesfair.errors import DataError
from bayesfair.value import policy_value
from bayesfair.value.estimates import ips, self_normalised

RULE = [0.3, 0.7]


def thinned(**options):
    rng = np.random.default_rng(4)
    p = rng.uniform(0.2, 0.8, 60)
    arm = (rng.random(60) > p).astype(np.int32)
    stands = rng.integers(1, 4, 60)
    given = {"selection_probability": np.column_stack([p, 1 - p]), "arms": ["a", "b"], **options}
    return bf.History(arm, rng.integers(0, 2, 60), keep_prob=1 / stands, **given), stands


def test_a_round_that_stands_for_n_counts_n_times():
    log, stands = thinned()
    found = policy_value(log, {"mine": RULE})
    pi = log.selection_probability
    often = bf.History(
        log.arm.repeat(stands), log.reward.repeat(stands), arms=log.arms,
        selection_probability=pi.repeat(stands, axis=0),
    )  # fmt: skip
    whole = policy_value(often, {"mine": RULE})
    for rule in ("logged", "mine"):
        for name in ("ips", "self_normalised"):
            one, other = getattr(found[rule], name), getattr(whole[rule], name)
            assert one.value == pytest.approx(other.value, abs=1e-12)
            assert one.lower < other.lower  # copies would make it look surer
        assert found[rule].mean_weight == pytest.approx(whole[rule].mean_weight, abs=1e-12)
        assert np.isnan(found[rule].fairness_regret)
        assert found.to_dict()["rules"][0]["fairness_regret"] is None
    # doubly robust, by hand: Beta(1/2, 1/2) means of the kept rounds before each
    wins, plays, terms = np.zeros(2), np.zeros(2), []
    for a, r, row in zip(log.arm, log.reward, pi, strict=True):
        mean = (wins + 0.5) / (plays + 1)
        terms.append(mean @ RULE + RULE[a] / row[a] * (r - mean[a]))
        wins[a] += r
        plays[a] += 1
    by_hand = np.average(terms, weights=stands)
    assert found["mine"].doubly_robust.value == pytest.approx(by_hand, abs=1e-12)
    notice = next(n for n in found.notices if n.kind == "thinned")
    assert (notice.value, notice.n) == (pytest.approx(stands.sum()), 60)
    assert "thinned" in str(found)


def test_every_round_kept_is_no_thinned_log():
    log, _ = thinned()
    kept = bf.History(log.arm, log.reward, keep_prob=np.ones(60), arms=log.arms)
    assert kept.keep_prob is None


def test_intervals_cover_the_value_though_losses_were_dropped():
    """Rewards 1 are always kept, rewards 0 with chance 1/4: unweighted, the value is far off."""
    rng, covered, plain = np.random.default_rng(5), 0, []
    runs, n, theta = 1000, 600, np.array([0.3, 0.6])
    truth = theta @ RULE
    for _ in range(runs):
        p = rng.uniform(0.2, 0.8, n)
        arm = (rng.random(n) > p).astype(int)
        reward = (rng.random(n) < theta[arm]).astype(float)
        keep = np.where(reward == 1, 1.0, 0.25)
        here = rng.random(n) < keep
        weight = (np.array(RULE)[arm] / np.where(arm == 0, p, 1 - p))[here]
        found = self_normalised(reward[here], weight / keep[here])
        covered += found.lower <= truth <= found.upper
        plain.append(ips(reward[here], weight).value)
        assert ips(reward[here], weight, 1 / keep[here]).value == pytest.approx(
            (reward[here] * weight / keep[here]).sum() / (1 / keep[here]).sum()
        )
    assert 0.92 < covered / runs < 0.98
    assert np.mean(plain) > truth + 0.2


def test_what_follows_beliefs_is_refused_with_the_reason(tmp_path):
    log, stands = thinned()
    for ask in (
        lambda: bf.audit(log, seed=1), lambda: bf.audit({"x": log}, seed=1),
        lambda: bf.fit(log, seed=1), lambda: bf.beliefs(log), lambda: policy_value(log),
        lambda: policy_value(log, bf.policies.SDTS()), lambda: policy_value({"x": log}, "greedy"),
    ):  # fmt: skip
        with pytest.raises(DataError) as caught:
            ask()
        assert (caught.value.kind, caught.value.column) == ("thinned", "keep_prob")
    assert policy_value({"x": log}, "uniform")["x"].n_used == 60
    path = tmp_path / "log.csv"
    rows = "\n".join(
        f"{'ab'[a]},{r:.0f},{p:.17g},{1 / s:.17g},{'xy'[i % 2]}"
        for i, (a, r, p, s) in enumerate(
            zip(
                log.arm,
                log.reward,
                log.selection_probability[np.arange(60), log.arm],
                stands,
                strict=True,
            )
        )
    )
    path.write_text(f"arm,reward,propensity,kept,site\n{rows}\n")
    read = bf.read_history(path, keep_prob="kept")
    np.testing.assert_allclose(read.keep_prob, 1 / stands, rtol=1e-15)
    for name in ("ips", "self_normalised", "doubly_robust"):
        assert getattr(policy_value(read, {"m": RULE})["m"], name) == pytest.approx(
            getattr(policy_value(log, {"m": RULE})["m"], name), abs=1e-12
        )
    groups = bf.read_history(path, keep_prob="kept", by="site")
    np.testing.assert_allclose(groups["y"].keep_prob, (1 / stands)[1::2], rtol=1e-15)
    np.testing.assert_allclose(read.rounds(10, 20).keep_prob, (1 / stands)[10:20], rtol=1e-15)
    for data in (groups, bf.scan_history(path, keep_prob="kept")):
        with pytest.raises(DataError) as caught:
            bf.audit(data, seed=1)
        assert caught.value.kind == "thinned"


@pytest.mark.parametrize("bad", [0, -0.5, 1.5, np.nan])
def test_a_chance_that_is_none_is_named(bad):
    with pytest.raises(DataError, match=r"round 1 of memory: keep_prob") as caught:
        bf.History(["a", "b"], [1, 0], keep_prob=[0.5, bad])
    assert caught.value.kind == "bad_keep_prob"
