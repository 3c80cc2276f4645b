"""Ratings whose scale is known; models whose rewards must agree; options that must be taken."""

from __future__ import annotations

import functools

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bayesfair as bf
from bayesfair.inference.contract import contract_of, family_of_models, label_of, share_options

STARS = [1, 2, 3, 4, 5]
EVEN = [[0.5, 0.5]] * 10


def ratings(values):
    return bf.History([0, 1] * 5, values * 5, selection_probability=EVEN, arms=["a", "b"])


EARLY, LATE = ratings([3, 4]), ratings([3, 5])


def best_of_two(p, q):
    """P(first > second) + half P(equal), by enumeration."""
    pairs = [(i, j) for i in range(len(p)) for j in range(len(q))]
    return sum(p[i] * q[j] * (1.0 if i > j else 0.5 if i == j else 0.0) for i, j in pairs)


def test_levels_that_did_not_occur_have_their_share_of_the_prior():
    audit = bf.audit(EARLY, support=STARS, objective=False)
    counts = np.full((2, 5), 0.5)
    regret = 0.0
    for t, (arm, reward) in enumerate(zip(EARLY.arm, EARLY.reward, strict=True)):
        p, q = counts / (0.5 * 5 + np.array([[(t + 1) // 2], [t // 2]]))
        regret += abs(best_of_two(p, q) - 0.5)
        counts[arm, int(reward) - 1] += 1
    assert audit.family == "finite"
    assert audit.regret.value * 10 == pytest.approx(regret, rel=1e-12)
    assert "5 levels" in audit.prior
    assert not any("looks ahead" in notice for notice in audit.findings)
    found = bf.beliefs(EARLY, support=STARS)
    np.testing.assert_allclose(found.rewards.pmf[0], 0.2)
    assert bf.audit(EARLY, objective=False).regret.value != audit.regret.value


def test_values_seen_stand_for_all_with_a_notice():
    audit = bf.audit(EARLY, objective=False)
    assert any("'3', '4'" in n and "support=" in n for n in audit.findings)
    zeros = bf.History([0, 1] * 5, [0] * 10, selection_probability=EVEN)
    assert bf.audit(zeros, family="finite", objective=False).state.beliefs.support.tolist() == [
        0,
        1,
    ]


def test_a_scale_lets_parts_go_on_from_each_other():
    whole = bf.History(
        [0, 1] * 10, [3, 4] * 5 + [3, 5] * 5, selection_probability=EVEN * 2, arms=["a", "b"]
    )
    first = bf.audit(EARLY, support=STARS, seed=1)
    second = bf.audit(LATE, prior=first.state, seed=1)
    alone = bf.audit(whole, support=STARS, seed=1)
    assert bf.merge(first, second).regret.value == pytest.approx(alone.regret.value, rel=1e-12)
    assert bf.audit(LATE, prior=first.state, support=STARS, seed=1).regret == second.regret
    with pytest.raises(bf.OptionError, match="differs from that of the earlier"):
        bf.audit(LATE, prior=first.state, support=[3, 4, 5], seed=1)
    with pytest.raises(bf.DataError, match=r"'3', '4' .*support="):
        bf.audit(LATE, prior=bf.audit(EARLY, seed=1).state, seed=1)


def test_a_scan_may_meet_a_level_late(tmp_path):
    rng = np.random.default_rng(0)
    n = 300_000
    reward = rng.integers(2, 6, n)
    reward[-3:] = 1
    arm = rng.choice(["a", "b"], n)
    table = {"arm": arm, "reward": reward, "p_a": np.full(n, 0.5), "p_b": np.full(n, 0.5)}
    pq.write_table(pa.table(table), tmp_path / "log.parquet", row_group_size=20_000)
    scan = bf.scan_history(tmp_path / "log.parquet", arms=["a", "b"])
    with pytest.raises(bf.DataError, match="support="):
        bf.audit(scan, objective=False)
    found = bf.audit(scan, support=STARS, objective=False)
    log = bf.read_history(tmp_path / "log.parquet", arms=["a", "b"])
    whole = bf.audit(log, support=STARS, objective=False)
    assert found.regret.value == pytest.approx(whole.regret.value, rel=1e-12)


def test_groups_share_their_values():
    group = bf.audit({"x": EARLY, "y": LATE}, objective=False)
    for label in ("x", "y"):
        assert group[label].state.beliefs.support.tolist() == [3, 4, 5]
        assert group[label].family == "finite"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"support": STARS, "family": "poisson"}, "family='finite'"),
        ({"support": STARS, "family": "bernoulli"}, "family='finite'"),
        ({"support": [1, 1, 2]}, "distinct finite numbers"),
        ({"support": [1, np.inf]}, "distinct finite numbers"),
        ({"support": "stars"}, "distinct finite numbers"),
        ({"support": []}, "distinct finite numbers"),
        ({"model": "poisson_independent", "family": "finite"}, "rewards of family 'poisson'"),
        (
            {"model": "poisson_independent", "beliefs_model": "normal_independent"},
            "'normal_independent' has rewards of family 'normal', not 'poisson'",
        ),
        ({"model": "poisson_indep"}, "Did you mean 'poisson_independent'"),
    ],
)
def test_what_does_not_go_together_is_refused(options, message):
    with pytest.raises(bf.OptionError, match=message):
        bf.audit(EARLY, seed=1, **options)


def test_the_family_is_that_of_the_model():
    audit = bf.audit(EARLY, model="poisson_independent", prior=(30, 10), seed=1)
    assert audit.family == "poisson"
    # beliefs, truth: Gamma(30, 10) and what the log adds to it
    mean = (30 + EARLY.reward[EARLY.arm == 0].sum()) / (10 + 5)
    draws = audit.objective.p_best[:, 0].mean()
    exact = bf.rewards.NegativeBinomial(
        [30 + 15, 30 + 20], [15 / 16, 15 / 16]
    ).best_arm_probability()  # fmt: skip
    assert mean == 3
    # the standard error of 4000 draws is below .003
    assert draws == pytest.approx(exact[0], abs=0.012)
    assert any("Gamma" in n and "30, 10" in n for n in audit.findings)


def own(history, *, spread=1.0, **rest):
    raise NotImplementedError  # only its name and options are asked for


own.READS = ("theta",)


def test_what_stands_beside_a_build_function_is_found_behind_partial():
    plain, bound = contract_of(own), contract_of(functools.partial(own, spread=2))
    assert bound.reads == plain.reads == ("theta",)
    assert bound.family == "bernoulli"
    assert bound.name == plain.name
    assert bound.name.endswith(".own")


def test_families_and_names_of_models():
    assert family_of_models("auto") == "auto"
    assert family_of_models("poisson", None) == "poisson"
    assert family_of_models("auto", None, "normal_independent") == "normal"
    assert family_of_models("auto", own, "bernoulli_drifting") == "bernoulli"
    assert label_of("thurstone") == "thurstone"
    assert label_of(own) == label_of(functools.partial(own, spread=2)) == "own"


def test_options_go_to_the_model_that_takes_them():
    def narrow(history, *, width=1.0):
        raise NotImplementedError  # it is refused before it is called

    narrow.READS = ("theta",)
    takers = {"model": (narrow, ("cores",)), "beliefs_model": (None, ())}
    # a single model answers for itself
    assert share_options({"typo": 1}, takers)["model"] == {"model_options": {"typo": 1}}
    both = {"model": (narrow, ("cores", "method")), "beliefs_model": (narrow, ("cores", "min_ess"))}
    found = share_options({"width": 2, "cores": 1, "method": "nuts", "min_ess": 300}, both)
    assert found["model"] == {"model_options": {"width": 2}, "cores": 1, "method": "nuts"}
    assert found["beliefs_model"] == {"model_options": {"width": 2}, "cores": 1, "min_ess": 300}
    with pytest.raises(bf.OptionError, match=r"'widht'.*Did you mean 'width'\?"):
        share_options({"widht": 2}, both)
    shares = share_options({"anything": 2}, both | {"model": (own, ())})
    assert shares["model"] == {"model_options": {"anything": 2}}


@pytest.mark.parametrize(
    ("rewards", "family"),
    [
        ([0, 1, 1], "bernoulli"),
        ([True, False, True], "bernoulli"),
        ([1, 1, 1], "bernoulli"),
        ([5, 3, 4], "finite"),
        ([-1, 1, -1], "finite"),
        ([0.5, 0.5], "finite"),
        ([0, 0.5, 1], "finite"),
        ([0.5, 1.5, 2.5, 3.5, 4.5] * 2, "finite"),  # half stars
        ([0.12, 1.7, -0.3, 2.21, 0.98, 1.14], "normal"),  # measurements of a short log
        ([0.12, 1.7, -0.3, 2.21, 0.98, 0.98], "normal"),
        (list(range(11)), "poisson"),
        (list(range(-5, 6)), "normal"),
        ([3, 7, 12, 100, 5, 4, 8], "finite"),
        ([np.nan, 2, 3], "finite"),
        ([np.nan, np.nan], "bernoulli"),
        ([-1, 0, -1, -1], "finite"),
    ],
)
def test_the_family_goes_by_the_rewards_and_says_so(rewards, family):
    n = len(rewards)
    log = bf.History([t % 2 for t in range(n)], rewards, selection_probability=[[0.5, 0.5]] * n)
    audit = bf.audit(log, objective=False)
    assert audit.family == family
    said = [notice for notice in audit.findings if "was chosen because" in notice]
    assert len(said) == (family != "bernoulli")
    assert any("turn their sign" in text for text in said) == (0 >= np.nanmax([-9, *rewards]) > -9)
    assert bf.fit(log, seed=1, draws=4).attrs["family"] == family
