"""The default allowance eps2, and a criterion that cannot fail."""

import itertools

import numpy as np
import pytest
from test_resumed_audits import assert_same_audit, random_log
from test_verdicts import write

import bayesfair as bf
from bayesfair.audit.criterion import default_eps2


def log_of_many_arms(k=50, n=80, seed=1):
    """Equal arms: twenty are chosen with .05 each, the others never."""
    rng = np.random.default_rng(seed)
    pi = np.zeros((n, k))
    pi[:, :20] = 0.05
    reward = (rng.random(n) < 0.5).astype(float)
    return bf.History(rng.integers(0, 20, n).astype(np.int32), reward, selection_probability=pi)


# -- a criterion that cannot fail --------------------------------------------------------------


def test_the_default_allowance_shrinks_with_the_arms():
    assert [default_eps2(k) for k in (1, 2, 3, 10, 11, 50, 1000)] == pytest.approx(
        [0.05, 0.05, 0.05, 0.05, 1 / 22, 0.01, 0.0005], rel=1e-15
    )


def test_arms_that_are_never_chosen_are_no_longer_fair():
    found = bf.audit(log_of_many_arms(), seed=1)
    assert found.criterion.eps2 == pytest.approx(0.01)
    assert found.verdict == "unfair"
    first = bf.audit(log_of_many_arms(n=1), seed=1)
    assert first.regret.value == pytest.approx(0.6, abs=1e-12)  # thirty arms at P* = 1/50
    text = str(first)
    assert "Verdict: UNFAIR, fairness regret 0.6000 per round" in text
    assert "min(0.05, 1/(2k)) for the 50 arms on offer at most in one round" in text
    asked = bf.audit(log_of_many_arms(n=1), eps2=0.05, seed=1)
    assert asked.verdict == "fair"
    assert "Verdict: FAIR, fairness regret 0.6000 per round" in str(asked)
    assert "fairness regret 0.6000 per round" in repr(asked)
    assert asked.to_dict()["criterion"]["eps2_reason"] == "asked for"
    assert [n.kind for n in asked.findings].count("cannot_fail") == 1
    assert "cannot_fail" not in [n.kind for n in first.findings]


@pytest.mark.parametrize("eps2", [0.0, 0.2, 0.4, 0.8])
@pytest.mark.parametrize("divergence", ["total_variation", "kl"])
def test_a_notice_stands_exactly_where_no_pair_can_exceed_the_allowance(eps2, divergence):
    log = random_log(4, 30, 3, holes=True)
    pi = np.asarray(log.selection_probability)
    if divergence == "kl":
        with np.errstate(divide="ignore", invalid="ignore"):
            largest = max(
                p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))
                for row in pi
                for p, q in itertools.permutations(row[~np.isnan(row)], 2)
            )
        eps2 *= 12
    else:
        largest = np.max(np.nanmax(pi, axis=1) - np.nanmin(pi, axis=1))
    whole = bf.audit(log, eps2=eps2, seed=1, draws=20, divergence=divergence)
    said = [n for n in whole.findings if n.kind == "cannot_fail"]
    assert len(said) == (largest <= eps2 + 1e-9)
    assert all(n.value == pytest.approx(largest, rel=1e-12) for n in said)
    parts = bf.audit(log.before(11), eps2=eps2, seed=1, draws=20, divergence=divergence)
    merged = parts.resume(log.rounds(11, 30))
    assert [n for n in merged.findings if n.kind == "cannot_fail"] == said


def offered_log(n, sizes, k=24, seed=3):
    """As many arms on offer in each round as ``sizes`` says, equally likely."""
    rng = np.random.default_rng(seed)
    pi = np.full((n, k), np.nan)
    arm = np.empty(n, np.int32)
    for t in range(n):
        there = rng.choice(k, sizes[t % len(sizes)], replace=False)
        pi[t, there], arm[t] = 1 / len(there), there[0]
    return bf.History(arm, rng.integers(0, 2, n), selection_probability=pi,
                      arms=[f"a{i}" for i in range(k)])  # fmt: skip


def test_the_allowance_counts_arms_on_offer_in_one_round_and_is_kept():
    small, large = offered_log(20, [5, 12]), offered_log(20, [16], seed=4)
    first = bf.audit(small, seed=1, draws=50)
    assert first.criterion.eps2 == pytest.approx(1 / 24)
    both = first.resume(large)
    assert both.criterion.eps2 == pytest.approx(1 / 24)
    kept = [n for n in both.findings if n.kind == "eps2_kept"]
    assert len(kept) == 1 and kept[0].n == 16
    assert not [n for n in first.findings if n.kind == "eps2_kept"]
    # each part alone knows the same, from an audit or from a state
    for before in (first, first.state):
        part = bf.audit(large, prior=before, seed=1, draws=50)
        assert part.criterion.eps2 == pytest.approx(1 / 24)
        assert_same_audit(bf.merge(first, part), both)
    assert bf.audit(large, seed=1, draws=50).criterion.eps2 == pytest.approx(1 / 32)


def test_groups_share_the_allowance_of_the_largest():
    group = bf.audit({"x": offered_log(9, [5]), "y": offered_log(9, [16])}, seed=1, draws=20)
    assert {a.criterion.eps2 for a in group.audits.values()} == {1 / 32}
    assert group.to_dict()["criterion"]["eps2"] == 1 / 32
    resumed = group.resume({"z": offered_log(9, [20])})
    assert resumed["z"].criterion.eps2 == 1 / 32


@pytest.mark.parametrize("sizes", [[5, 12, 17], [24], [2]])
def test_a_scan_finds_the_same_allowance(tmp_path, sizes):
    log = offered_log(30, sizes)
    write(log, tmp_path / "log.csv")
    scan = bf.scan_history(tmp_path / "log.csv", arms=list(log.arms), chunk_rounds=4)
    whole = bf.read_history(tmp_path / "log.csv", arms=list(log.arms))
    found = [bf.audit(x, seed=1, draws=50) for x in (scan, whole)]
    assert found[0].criterion.eps2 == found[1].criterion.eps2 == default_eps2(max(sizes))
    assert_same_audit(*found)
