"""`audit(history, fit=tree)`: the draws of a fit, as they are, and of this log only."""

import numpy as np
import pytest

import bayesfair as bf

RULE = np.array([[0.9, 0.1], [0.7, 0.3]] * 10)
ARM, REWARD = ["a", "b"] * 10, [1, 0, 1, 1] * 5
LOG = bf.History(ARM, REWARD, selection_probability=RULE)
#: a shipped model's closed form, and few draws: that the same ones are used can be seen
TREE = bf.fit(LOG, seed=5, draws=400, prior=(2, 3))


@pytest.fixture(scope="module")
def audit():
    return bf.audit(LOG, fit=TREE, eps1=1, eps2=0.3, seed=1)


def test_the_verdict_rests_on_the_draws_of_the_fit(audit):
    theta = TREE["posterior"]["theta"].values.reshape(-1, 2)
    # the rewards are 0/1: total variation is the difference of the means
    needed = max(0.8, 0.4) - np.abs(theta[:, 0] - theta[:, 1])
    assert audit.probability_fair == pytest.approx(np.mean(needed <= 0.3), abs=1e-12)
    at = audit.to_dict()["objective"]["smallest_eps2"]["mean"]
    assert at == pytest.approx(np.maximum(needed, 0).mean(), abs=1e-12)
    assert audit.fitted is TREE and audit.to_dict()["criterion"]["draws"] == 400
    assert audit.to_dict()["criterion"]["model"] == TREE.attrs["model"]


def test_another_criterion_uses_the_same_draws(audit):
    other = bf.audit(LOG, fit=TREE, eps1=1, eps2=0.1, seed=2)
    np.testing.assert_array_equal(other.objective.smallest_eps2, audit.objective.smallest_eps2)


def test_it_is_saved_and_asked_about_its_prior(audit, tmp_path):
    audit.save(tmp_path / "a.nc")
    assert bf.load_audit(tmp_path / "a.nc").to_dict() == audit.to_dict()
    assert audit.prior_sensitivity().verdicts[0] in ("fair", "unfair", "undetermined")


@pytest.mark.parametrize(
    ("log", "kind"),
    [
        (bf.History(ARM, REWARD, arms=("b", "a"), selection_probability=RULE), "other_fit"),
        (LOG.before(19), "other_fit"),
        (bf.History(ARM, REWARD[::-1], selection_probability=RULE), "other_fit"),
        ({"x": LOG}, "wrong_kind"),
    ],
)
def test_a_fit_of_another_log_is_refused(log, kind):
    with pytest.raises(bf.OptionError) as refused:
        bf.audit(log, fit=TREE, seed=1)
    assert refused.value.kind == kind and refused.value.column == "fit"


@pytest.mark.parametrize(
    "more",
    [
        {"model": "bernoulli_independent"},
        {"draws": 100},
        {"truth": bf.rewards.Bernoulli([0.6, 0.5], arms=("a", "b"))},
        {"objective": False},
        {"family": "poisson"},
    ],
)
def test_what_says_the_same_is_refused_beside_a_fit(more):
    with pytest.raises(bf.OptionError) as refused:
        bf.audit(LOG, fit=TREE, seed=1, **more)
    assert refused.value.column == "fit"


def test_what_is_no_fit_of_a_log_is_refused():
    duels = bf.Comparisons.from_counts(["a"], ["b"], [7], [3])
    for strange in (bf.fit(duels, seed=1, draws=40), 3, "fit.nc", bf.fit):
        with pytest.raises(bf.OptionError) as refused:
            bf.audit(LOG, fit=strange, seed=1)
        assert refused.value.kind == "wrong_kind"
