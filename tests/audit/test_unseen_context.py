"""A rule that sees what the audit does not: z of rewards on probabilities, how far rules move."""

import numpy as np
import pytest
from contextual_logs import history, in_leaves

import bayesfair as bf
from bayesfair import rewards
from bayesfair.audit.log.checks import context_scores


def kinds(audit):
    return {notice.kind for notice in audit.findings}


def by_hand(arm, reward, p):
    """z of an arm's rewards on its logged probabilities, from numpy's correlation."""
    return [
        np.corrcoef(reward[arm == i], p[arm == i])[0, 1] * np.sqrt((arm == i).sum())
        for i in range(arm.max() + 1)
    ]


def published(seed, n=2000):
    """x in {u (3/4), v (1/4)}, m(u) = (.9, .5, .1), m(v) = (.2, .6, .7), pi = P*(x)."""
    rng = np.random.default_rng(seed)
    x = (rng.random(n) < 0.25).astype(int)
    m = np.array([[0.9, 0.5, 0.1], [0.2, 0.6, 0.7]])
    pi = np.array([[0.66, 0.28, 0.06], [0.13, 0.39, 0.48]])[x]
    arm = (rng.random(n)[:, None] > pi.cumsum(axis=1)).sum(axis=1).astype(np.int32)
    return arm, (rng.random(n) < m[x, arm]).astype(float), pi


def test_z_of_a_contextual_rule_that_is_calibrated_given_its_context():
    found = []
    for seed in range(40):
        arm, reward, pi = published(seed)
        p = pi[np.arange(len(arm)), arm]
        z = by_hand(arm, reward, p)
        found.append(z)
        for given in ({"propensity": p}, {"selection_probability": pi}) if seed < 3 else ():
            audit = bf.audit(
                bf.History(arm, reward, arms=("a", "b", "c"), **given), objective=False
            )
            assert np.allclose(context_scores(audit.summary), z, rtol=1e-11)
            check = audit.checks["context"]
            assert min(abs(check.statistic - value) for value in z) < 1e-9 and check.statistic > 8
            assert check.passed is False and "context" in kinds(audit) and audit.consistent
    # the values of one log, T = 2000: 15.3, 2.6, 10.1
    mean, spread = np.mean(found, axis=0), np.std(found, axis=0)
    assert np.all(np.abs(mean - (15.3, 2.6, 10.1)) < 2.5 * spread), (mean, spread)
    assert np.all(np.abs(mean - (15.3, 2.6, 10.1)) < 1)


@pytest.mark.parametrize("chosen", [False, True])
def test_a_rule_that_is_fair_in_each_leaf_is_not_called_unfair_without_a_word(chosen):
    log = in_leaves(0, us=0.63)
    audit = bf.audit(history(log, chosen=chosen), seed=1)
    (text,) = [n for n in audit.findings if n.kind == "context"]
    assert "neither from above nor from below" in text and "by=" in text
    leaves = [history(log, chosen=chosen, rows=log["leaf"] == leaf) for leaf in (0, 1)]
    for leaf in leaves:
        given = bf.audit(leaf, seed=1)
        assert given.checks["context"].passed and "context" not in kinds(given)
    # by hand: P*(a) - pi(a) in every round, beliefs from the rounds before
    won, seen, regret = np.zeros(2), np.zeros(2), 0.0
    for arm, reward, pi in zip(log["arm"], log["reward"], log["pi"], strict=True):
        m = (won + 0.5) / (seen + 1)
        regret += abs(0.5 + (m[0] - m[1]) / 2 - pi[0])
        won[arm] += reward
        seen[arm] += 1
    assert 0.16 < regret / 2000 < 0.26
    if chosen:
        assert audit.regret.lower < regret / 2000 < audit.regret.upper
        return
    assert audit.regret.value == pytest.approx(regret / 2000, rel=1e-12)
    assert audit.subjective_verdict == "unfair"
    assert all(bf.audit(leaf, seed=1).regret.value < 1e-15 for leaf in leaves)


def test_z_is_the_same_from_parts_scans_resumed_and_saved_audits(tmp_path):
    log = in_leaves(1)
    for chosen in (False, True):
        whole = history(log, chosen=chosen)
        expected = bf.audit(whole, objective=False).checks
        merged = bf.audit(whole.before(1), objective=False)
        for start, stop in ((1, 700), (700, 701), (701, 2000)):
            merged = merged.resume(whole.rounds(start, stop))
            merged.save(tmp_path / "audit.nc")
            merged = bf.load_audit(tmp_path / "audit.nc")
        table = {"arm": np.array(["a", "b"])[log["arm"]], "reward": log["reward"]}
        p = log["pi"][np.arange(2000), log["arm"]]
        table |= {"propensity": p} if chosen else {"p_a": log["pi"][:, 0], "p_b": log["pi"][:, 1]}
        import pandas as pd

        scan = bf.scan_history(pd.DataFrame(table), chunk_rounds=300)
        for other in (merged, bf.audit(scan, objective=False)):
            for name, check in expected.items():
                found = other.checks[name]
                assert (found.passed, found.arm, found.n) == (check.passed, check.arm, check.n)
                for field in ("statistic", "p_value"):
                    a, b = getattr(check, field), getattr(found, field)
                    assert a == b or a == pytest.approx(b, rel=1e-11), (name, field)


def test_sums_of_parts_are_those_of_the_whole_far_from_zero():
    # rewards near 1e8 with a spread of 1: sums of squares would have lost every digit
    rng = np.random.default_rng(0)
    log = in_leaves(2)
    log["reward"] = 1e8 + log["reward"] + rng.normal(0, 0.1, 2000)
    from bayesfair.kernels.log.guards import joined_moments
    from bayesfair.kernels.log.log_pass import log_pass

    p = log["pi"][np.arange(2000), log["arm"]]
    arm = np.asarray(log["arm"], np.int32)

    def moments(s):
        return log_pass(arm[s], log["reward"][s], None, p[s], 2, most=100).moments

    parts = [moments(s) for s in (slice(0, 3), slice(3, 1500), slice(1500, 2000))]
    whole = moments(slice(None))
    joined = joined_moments(joined_moments(parts[0], parts[1]), parts[2])
    z = whole.products / np.sqrt(whole.reward_squares / whole.n * whole.probability_squares)
    again = joined.products / np.sqrt(joined.reward_squares / joined.n * joined.probability_squares)
    assert np.allclose(z, again, rtol=1e-12)
    shifted = log["reward"] - 1e8  # exact
    assert np.allclose(z, by_hand(log["arm"], shifted, p), rtol=1e-11)
    assert np.allclose(whole.origin + whole.reward, joined.origin + joined.reward, rtol=1e-15)


@pytest.mark.statistical
@pytest.mark.parametrize("rule", [bf.policies.SDTS(), bf.policies.Thompson()])
@pytest.mark.parametrize("means", [[0.6, 0.5], [0.6, 0.5, 0.4], [0.02, 0.01, 0.015]])
def test_rules_without_a_context_are_seldom_said_to_have_one(rule, means):
    # level .001 a log: more than 2 of 100 by chance has probability below .0002
    failed = 0
    for seed in range(100):
        log = bf.simulate(rule, rewards.Bernoulli(means), n_rounds=1000, seed=seed)
        failed += bf.audit(log, objective=False).checks["context"].passed is False
    assert failed <= 2


def test_a_few_plays_with_rare_rewards_are_no_evidence():
    # one success in the one round with a high probability: z = 31 by the formula
    n = 1000
    pi = np.full((n, 2), 0.5)
    pi[500] = 0.99, 0.01
    reward = np.zeros(n)
    reward[500] = 1
    log = bf.History(np.zeros(n, np.int32), reward, selection_probability=pi, arms=("a", "b"))
    check = bf.audit(log, objective=False).checks["context"]
    assert check.statistic > 30 and check.method == "bound" and check.passed


def test_a_rule_that_moves_where_beliefs_do_not_is_remarked_on():
    # pi alternates between .1 and .9, rewards do not hang on it
    rng = np.random.default_rng(3)
    n = 1000
    pi = np.where(np.arange(n) % 2 == 0, 0.1, 0.9)[:, None]
    pi = np.hstack([pi, 1 - pi])
    arm = (rng.random(n) > pi[:, 0]).astype(np.int32)
    log = bf.History(arm, rng.integers(0, 2, n), selection_probability=pi, arms=("a", "b"))
    audit = bf.audit(log, objective=False)
    assert audit.checks["context"].passed and audit.checks["movement"].passed is False
    (text,) = [notice for notice in audit.findings if notice.kind == "movement"]
    assert "by 0.8 a round" in text
    # P* before every round: it moves by no more than the bound that the check takes
    rounds = audit.rounds()["best_arm_probability"].to_numpy()
    moved = 0.5 * np.abs(np.diff(rounds, axis=0)).sum()
    assert moved < 999 * 0.8 / audit.checks["movement"].statistic < 20 * moved


@pytest.mark.parametrize("family", ["poisson", "normal"])
def test_movement_of_p_best_is_traced_for_other_families(family):
    rng = np.random.default_rng(4)
    n = 300
    pi = rng.dirichlet([5, 5], n)
    arm = (rng.random(n) > pi[:, 0]).astype(np.int32)
    reward = rng.poisson(3, n) if family == "poisson" else rng.normal(0, 1, n)
    log = bf.History(arm, reward, selection_probability=pi, arms=("a", "b"))
    whole = bf.audit(log, objective=False, family=family)
    rounds = whole.rounds()["best_arm_probability"].to_numpy()
    ratio = np.abs(np.diff(pi, axis=0)).sum() / np.abs(np.diff(rounds, axis=0)).sum()
    assert whole.checks["movement"].statistic == pytest.approx(ratio, rel=1e-9)
    parts = bf.audit(log.before(100), objective=False, family=family).resume(log.rounds(100, n))
    assert parts.checks["movement"].statistic == pytest.approx(ratio, rel=1e-9)


def test_a_rule_blind_to_a_context_gets_the_line_about_unused_columns():
    import pandas as pd

    log = in_leaves(5, us=0.8, blind=True)
    table = pd.DataFrame({
        "ctx": np.array(["X", "Y"])[log["leaf"]], "arm": np.array(["a", "b"])[log["arm"]],
        "reward": log["reward"], "p_a": log["pi"][:, 0], "p_b": log["pi"][:, 1],
    })  # fmt: skip
    for read in (bf.read_history, bf.scan_history):
        audit = bf.audit(read(table), seed=1)
        assert audit.subjective_verdict == "fair" and audit.checks["context"].passed
        (said,) = [notice for notice in audit.findings if notice.kind == "unused_columns"]
        assert said.column == "ctx" and said.n == 1 and "by='ctx'" in said
        assert audit.to_dict()["log"]["unused_columns"] == ["ctx"]
    apart = bf.audit(bf.read_history(table, by="ctx"), seed=1)
    assert apart["Y"].subjective_verdict == "unfair"
    assert not any(n.kind == "unused_columns" for a in apart.audits.values() for n in a.findings)


def test_unused_columns_of_several_parts_are_named_once():
    log = in_leaves(6, n=40)
    first = history(log, rows=slice(0, 20), unused_columns=("x",))
    second = history(log, rows=slice(20, 40), unused_columns=("x", "keep_prob"))
    audit = bf.audit(first, objective=False).resume(second)
    assert audit.summary.facts.unused_columns == ("x", "keep_prob")
    said = {n.kind: n for n in audit.findings}
    assert "2 columns were not used: 'x', 'keep_prob'" in said["unused_columns"]
    assert "thinned" in said["thinned"] and said["thinned"].column == "keep_prob"


def test_the_example_of_an_unused_column_is_what_a_rule_may_have_seen():
    log = in_leaves(6, n=20)
    for columns, example in [
        (("user_id", "shown_at", "device"), "device"),
        (("request.ID", "grid"), "grid"),
        (("user_id", "date"), "user_id"),
    ]:
        audit = bf.audit(history(log, unused_columns=columns), objective=False)
        (said,) = [notice for notice in audit.findings if notice.kind == "unused_columns"]
        assert (said.column, said.n) == (example, len(columns))


def test_a_column_that_says_when_the_reward_was_known_is_no_context():
    """The example of what a rule may have seen is another column."""
    log = {"arm": ["a", "b"] * 5, "reward": [1, 0] * 5}
    for unused, named in ((("reward_time", "site"), "site"), (("known_since",), "known_since")):
        more = {name: ["x", "y"] * 5 for name in unused}
        audit = bf.audit(bf.read_history(log | more), seed=1, draws=50)
        (said,) = [notice for notice in audit.findings if notice.kind == "unused_columns"]
        assert (said.column, said.n) == (named, len(unused))
        assert f"known_at={unused[0]!r}" in said and f"context={unused[0]!r}" not in said
