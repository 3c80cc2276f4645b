"""The default prior of measurements: learned from the first known rewards, the same however cut.

The oracle follows the definition: before each round the median and the robust spread of the first
known rewards, and the posterior from the batch formulas.
"""

import itertools
import statistics

import numpy as np
import pytest
from scipy import integrate, stats

import bayesfair as bf
from bayesfair.policies import SDTS

SHIFT, UNIT = 300.0, 7.0
KINDS = {"prior_learned", "prior_conflict"}


def prior_by_definition(known):
    """(location, spread) of rewards in the order in which they became known; spread 0: open."""
    first = known[:20]
    if first and len(set(first)) == 1:
        other = [x for x in known if x != first[0]][:1]
        first = first + (other if len(known) > 20 else [])
    if not first:
        return 0.0, 0.0
    centre = statistics.median(first)
    away = [abs(x - centre) for x in first]
    spread = 1.4826 * statistics.median(away)
    return centre, spread or 1.2533 * statistics.fmean(away)


def beliefs_by_definition(log, t):
    """Parameters (k, 4) before round t, or None while every arm has the same law."""
    known_at = np.arange(1, log.n_rounds + 1) if log.known_at is None else log.known_at
    rounds = [s for s in np.argsort(known_at, kind="stable") if known_at[s] <= t]
    rounds = [s for s in rounds if not np.isnan(log.reward[s])]
    centre, spread = prior_by_definition(log.reward[rounds].tolist())
    if spread == 0:
        return None
    rows = []
    for i in range(log.n_arms):
        x = np.array([log.reward[s] for s in rounds if log.arm[s] == i])
        n, mean = x.size, x.mean() if x.size else centre
        squares = ((x - mean) ** 2).sum() + n / (1 + n) * (mean - centre) ** 2
        rows.append([(centre + n * mean) / (1 + n), 1 + n, 1 + n / 2, spread**2 + squares / 2])
    return np.array(rows)


def measured(n=60, k=3, *, seed=0, delays=False, missing=True, equal=0):
    rng = np.random.default_rng(seed)
    pi = rng.dirichlet(np.full(k, 3.0), n)
    arm = np.array([rng.choice(k, p=p) for p in pi])
    reward = rng.normal(arm * 0.7, 1.0)
    if missing:
        reward[::9] = np.nan
    reward[:equal] = 0.25
    known_at = np.arange(n) + 1 + rng.integers(0, 9, n) if delays else None
    return bf.History(
        arm, reward, selection_probability=pi, arms=list("abc")[:k], known_at=known_at
    )


def rescaled(log, shift=SHIFT, unit=UNIT):
    return bf.History(
        log.arm, shift + unit * log.reward, selection_probability=log.selection_probability,
        arms=log.arms, known_at=log.known_at,
    )  # fmt: skip


def kinds(audit):
    return [notice.kind for notice in audit.findings if notice.kind in KINDS]


LOGS = {
    "plain": {},
    "delayed": {"delays": True},
    "all equal at first": {"equal": 5},
    "equal beyond the twentieth": {"equal": 31, "missing": False},
    "equal and delayed": {"equal": 40, "delays": True},
    "few": {"n": 12},
}


@pytest.mark.parametrize("made", LOGS.values(), ids=LOGS)
def test_beliefs_before_each_round_follow_the_definition(made):
    log = measured(**made)
    found = bf.beliefs(log)
    assert found.family == "normal"
    n_open = 0
    for t in range(log.n_rounds):
        expected = beliefs_by_definition(log, t)
        if expected is None:
            n_open += 1
            np.testing.assert_allclose(found.best_arm_probability[t], 1 / 3, atol=1e-12)
            assert not found.rewards[t].divergence("wasserstein").any()
        else:
            np.testing.assert_allclose(found.parameters[t], expected, rtol=1e-10)
    assert n_open >= (1 if made.get("equal", 0) < 5 else made["equal"])


@pytest.mark.parametrize("made", LOGS.values(), ids=LOGS)
def test_answers_shift_and_scale_with_the_rewards(made):
    log = measured(**made)
    for divergence in ("total_variation", "hellinger"):
        one, other = (
            bf.audit(
                data, seed=3, eps1=1, eps2=0.1, reward_divergence=divergence, draws=200
            ).to_dict()
            for data in (log, rescaled(log))
        )
        for part, name in (
            ("subjective", "smallest_eps2"), ("subjective", "n_violating_rounds"),
            ("objective", "probability_fair"),
        ):  # fmt: skip
            assert other[part][name] == pytest.approx(one[part][name], abs=1e-9)
        for half in ("subjective", "objective"):
            for name in ("regret_per_round", "lower", "upper"):
                assert other["calibration"][half][name] == pytest.approx(
                    one["calibration"][half][name], abs=1e-9
                )
        for a, b in zip(one["arms"], other["arms"], strict=True):
            for name in ("p_best_subjective", "p_best_objective"):
                assert b[name] == pytest.approx(a[name], abs=1e-9)
        learned, moved = (d["criterion"]["prior_learned"] for d in (one, other))
        assert moved["location"] == pytest.approx(SHIFT + UNIT * learned["location"], rel=1e-12)
        assert moved["scale"] == pytest.approx(UNIT * learned["scale"], rel=1e-9)
    np.testing.assert_allclose(
        bf.beliefs(rescaled(log)).best_arm_probability, bf.beliefs(log).best_arm_probability,
        rtol=0, atol=1e-9,
    )  # fmt: skip


def test_wasserstein_in_reward_units_scales_too():
    log = measured()
    one = bf.audit(log, seed=1, eps1=0.2, eps2=0, reward_divergence="wasserstein")
    other = bf.audit(
        rescaled(log), seed=1, eps1=0.2 / UNIT, eps2=0, reward_divergence="wasserstein"
    )
    np.testing.assert_allclose(
        one.rounds()["smallest_eps2"], other.rounds()["smallest_eps2"], rtol=0, atol=1e-9
    )


@pytest.mark.parametrize("made", LOGS.values(), ids=LOGS)
def test_parts_give_the_audit_of_the_whole(made, tmp_path):
    log = rescaled(measured(**made))
    asked = {"eps1": 1, "eps2": 0.1, "family": "normal", "seed": 5, "draws": 100}
    whole = bf.audit(log, **asked).to_dict()
    n = log.n_rounds
    resumed = merged = bf.audit(log.before(1), **asked)
    between = merged.state
    for a, b in itertools.pairwise([1, n // 4, n // 2, n]):
        part = log.rounds(a, b)
        if a == n // 4:
            resumed.save(tmp_path / "a.nc")
            resumed = bf.load_audit(tmp_path / "a.nc")
        resumed = resumed.resume(part)
        merged = bf.merge(merged, bf.audit(part, prior=between, **asked))
        between = between.after(part)
    for found in (resumed.to_dict(), merged.to_dict()):
        for part in ("subjective", "objective", "criterion", "calibration", "arms", "findings"):
            assert_same(found[part], whole[part])


@pytest.mark.parametrize("equal", [2, 25])
def test_arms_that_rest_have_their_rewards_remembered(equal):
    """Five arms; a has the first rewards, all equal, then rests; d and e are never chosen."""
    rng = np.random.default_rng(8)
    arm = np.r_[np.zeros(equal, int), rng.integers(1, 3, 30)]
    reward = np.r_[np.full(equal, 301.0), rng.normal(300, 2, 30)]
    pi = rng.dirichlet(np.full(5, 3.0), arm.size)
    log = bf.History(arm, reward, selection_probability=pi, arms=list("abcde"))
    expected = bf.beliefs(log)
    assert (expected.parameters[-1, 0, 1], expected.parameters[-1, 3, 1]) == (1 + equal, 1)
    state, rows = None, []
    for a, b in itertools.pairwise([0, 1, equal, equal + 1, equal + 4, arm.size]):
        options = {"family": "normal"} if state is None else {"prior": state}
        part = bf.audit(log.rounds(a, b), objective=False, **options)
        rows.append(part.rounds()["best_arm_probability"].values)
        state = part.state
    np.testing.assert_allclose(
        np.concatenate(rows), expected.best_arm_probability, rtol=0, atol=1e-9
    )
    whole = bf.audit(log, family="normal", objective=False)
    np.testing.assert_allclose(
        whole.rounds()["best_arm_probability"], expected.best_arm_probability, rtol=0, atol=1e-9
    )
    best = np.maximum(expected.best_arm_probability.values - pi, 0).sum(axis=1)
    assert whole.regret.value == pytest.approx(best.mean(), abs=1e-9)
    for t in range(arm.size):
        by_hand = beliefs_by_definition(log, t)
        if by_hand is not None:
            np.testing.assert_allclose(expected.parameters[t], by_hand, rtol=1e-10)


def assert_same(found, expected):
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for name in expected:
            assert_same(found[name], expected[name])
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            assert_same(a, b)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, abs=1e-9, rel=1e-9)
    else:
        assert found == expected


@pytest.mark.parametrize("delays", [False, True])
def test_a_scan_gives_the_audit_of_the_whole(tmp_path, delays):
    log = rescaled(measured(n=100, missing=False, delays=delays))
    known_at = np.arange(100) + 1 if log.known_at is None else log.known_at
    rows = ["arm,reward,known_at,p_a,p_b,p_c"]
    for t, pi in enumerate(log.selection_probability.tolist()):
        numbers = [float(log.reward[t]), int(known_at[t]), *pi]
        rows.append(",".join(["abc"[log.arm[t]], *map(repr, numbers)]))
    path = tmp_path / "log.csv"
    path.write_text("\n".join(rows) + "\n")
    whole = bf.audit(bf.read_history(path), family="normal", seed=1).to_dict()
    scanned = bf.audit(bf.scan_history(path, chunk_rounds=7), family="normal", seed=1).to_dict()
    for part in ("subjective", "objective", "criterion", "calibration", "arms"):
        assert_same(scanned[part], whole[part])
    given = bf.audit(log, family="normal", seed=1).to_dict()
    assert whole["criterion"]["prior_learned"] == given["criterion"]["prior_learned"]


def test_a_second_part_that_starts_afresh_is_not_merged():
    log = measured()
    first = bf.audit(log.before(30), family="normal", seed=1)
    alone = bf.audit(log.rounds(30, 60), family="normal", seed=1)
    with pytest.raises(bf.DataError, match=r"starts afresh from a prior.*prior=first"):
        bf.merge(first, alone)


# -- what is said ---------------------------------------------------------------------------------


def test_the_rounds_before_the_twentieth_reward_are_marked():
    log = measured(missing=False, delays=True)
    order = np.argsort(log.known_at, kind="stable")
    last = int(log.known_at[order[19]]) - 1  # the next round knows twenty
    audit = bf.audit(log, seed=1, eps2=0.0)
    [notice] = [n for n in audit.findings if n.kind == "prior_learned"]
    assert f"rounds 0 to {last} " in notice
    assert f"from_round={last + 1} " in notice
    assert f"rounds 0 to {last} " in " ".join(str(audit).split())
    learned = audit.to_dict()["criterion"]["prior_learned"]
    assert (learned["first_round"], learned["last_round"], learned["n_rewards"]) == (0, last, 20)
    centre, spread = prior_by_definition(log.reward[order].tolist())
    assert learned["location"] == pytest.approx(centre, rel=1e-12)
    assert learned["scale"] == pytest.approx(spread, rel=1e-12)
    assert f"median {centre:g}, robust standard deviation {spread:.4g}" in audit.prior
    later = bf.audit(log, seed=1, eps2=0.0, from_round=last + 1)
    assert kinds(later) == []
    assert later.to_dict()["criterion"]["prior_learned"]["first_round"] is None


def test_where_no_two_rewards_differ_the_arms_are_alike_and_that_is_said():
    log = bf.History(
        ["a", "b", "a"] * 10, np.full(30, 2.5), selection_probability=[[0.3, 0.7]] * 30
    )
    audit = bf.audit(log, family="normal", eps2=0.1, seed=1)
    # P* is 1/2 in every round, no divergence of rewards excuses .7 against .3
    assert audit.regret.value == pytest.approx(0.2, abs=1e-12)
    assert audit.smallest_eps2 == pytest.approx(0.4, abs=1e-12)
    assert audit.to_dict()["criterion"]["prior_learned"]["scale"] is None
    assert "no two of them differ" in audit.prior


def test_each_group_has_a_prior_of_its_own():
    logs = {"low": measured(seed=1), "high": rescaled(measured(seed=2))}
    group = bf.audit(logs, family="normal", seed=1)
    for label, log in logs.items():
        alone = bf.audit(log, family="normal", seed=1)
        assert group[label].prior == alone.prior
        assert group[label].regret == alone.regret
    assert "each log has its own" in group.to_dict()["criterion"]["prior"]
    new = rescaled(measured(seed=3), 50, 2)
    later = bf.audit({"new": new}, seed=1, prior=group, eps2=0.05)
    assert later["new"].prior == bf.audit(new, seed=1).prior


def test_a_given_prior_is_taken_as_it_is():
    log = measured()
    given = bf.audit(log, prior=(0, 1, 1, 1), seed=1)
    assert given.to_dict()["criterion"]["prior_learned"] is None
    assert kinds(given) == []
    n, x = 0, []
    for t in range(log.n_rounds):
        parameters = bf.beliefs(log, prior=(0, 1, 1, 1)).parameters[t] if t in (0, 59) else None
        if t == 0:
            assert parameters.tolist() == [[0, 1, 1, 1]] * 3
        if t == 59:
            known = ~np.isnan(log.reward[:t]) & (log.arm[:t] == 0)
            n, x = known.sum(), log.reward[:t][known]
            assert parameters[0, 0] == pytest.approx(x.sum() / (n + 1))


# -- who else follows it --------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"delay": 3}, {"batch": 10}], ids=str)
def test_a_rule_audited_under_the_same_beliefs_has_no_regret(options):
    truth = bf.rewards.Normal([300.0, 302.0, 299.0], [2.0, 1.0, 3.0])
    run = bf.simulate(SDTS(), truth, 150, seed=4, **options)
    audit = bf.audit(run, objective=False)
    assert audit.regret.value == pytest.approx(0, abs=1e-9)


def test_beliefs_under_the_model_keep_one_prior_and_say_that_it_looks_ahead():
    from bayesfair.inference.contract import contract_of
    from bayesfair.inference.refit import Refitter

    log = rescaled(measured(missing=False))
    refitter = Refitter(
        log, contract_of("normal_independent"), {}, draws=400, seed=1, cores=1
    )  # fmt: skip
    centre, spread = prior_by_definition(log.reward.tolist())
    np.testing.assert_allclose(refitter.options["prior"], [[centre, 1, 1, spread**2]] * 3)
    assert refitter.learned is not None
    given = Refitter(
        log, contract_of("normal_independent"), {"prior": (0, 1, 1, 1)}, draws=400, seed=1, cores=1
    )  # fmt: skip
    assert given.options["prior"] == (0, 1, 1, 1) and given.learned is None


def test_the_fit_the_audit_and_the_sensitivity_share_one_prior():
    log = rescaled(measured(delays=True))
    audit = bf.audit(log, seed=1)
    tree = bf.fit(log, seed=1)
    assert tree.attrs["prior"] == audit.prior
    order = np.argsort(log.known_at, kind="stable")
    rewards = log.reward[order][~np.isnan(log.reward[order])]
    centre, spread = prior_by_definition(rewards.tolist())
    np.testing.assert_allclose(
        tree["constant_data"]["prior"], [[centre, 1, 1, spread**2]] * 3, rtol=1e-12
    )
    same = audit.prior_sensitivity()
    assert same.regret_per_round[2] == pytest.approx(audit.regret_objective.value, abs=0.02)


def test_the_better_of_two_arms_far_from_zero_is_found():
    """Five rewards near 300 against two hundred near 290: the better arm is believed better."""
    rng = np.random.default_rng(1)
    reward = np.r_[rng.normal(300, 2, 5), rng.normal(290, 2, 200)]
    arm = np.r_[np.zeros(5, int), np.ones(200, int)]
    order = rng.permutation(205)
    log = bf.History(arm[order], reward[order], selection_probability=[[0.5, 0.5]] * 205, arms="ab")
    known = log.before(204)
    row = beliefs_by_definition(log, 204)
    first, second = (
        stats.t(2 * a, m, np.sqrt(b * (kappa + 1) / (a * kappa))) for m, kappa, a, b in row
    )
    expected, _ = integrate.quad(
        lambda x: first.pdf(x) * second.cdf(x), 250, 350, points=[290, 298], limit=400
    )
    expected += first.sf(350)
    found = bf.beliefs(log).best_arm_probability.values[204, 0]
    assert found == pytest.approx(expected, abs=1e-6)
    assert found > 0.95
    centred_at_zero = bf.beliefs(known, prior=(0, 1, 1, 1))
    assert centred_at_zero.best_arm_probability.values[-1, 0] == pytest.approx(0.374, abs=0.01)


def test_where_nothing_tells_the_unit_distances_of_rewards_say_so():
    rows = {"arm": list("ab") * 6, "selection_probability": [[0.5, 0.5]] * 12}

    def kinds(rewards, divergence, **more):
        log = bf.History(rows["arm"], rewards, selection_probability=rows["selection_probability"])
        audit = bf.audit(
            log, family="normal", reward_divergence=divergence, seed=1, draws=200, **more
        )
        return [notice.kind for notice in audit.findings].count("unit_assumed"), audit

    (once, metres), (also, miles) = (
        kinds([7.0] * 12, "wasserstein"),
        kinds([70.0] * 12, "wasserstein"),
    )
    assert (once, also) == (1, 1)
    # in a tenth of the unit the same log would have tenfold distances, had anything told the unit
    assert np.array_equal(metres.objective.smallest_eps2, miles.objective.smallest_eps2)
    assert kinds([7.0] * 12, "total_variation")[0] == 0
    assert kinds([7.0, 8.0] * 6, "wasserstein")[0] == 0
    assert kinds([7.0] * 12, "wasserstein", prior=(7, 1, 1, 1))[0] == 0
