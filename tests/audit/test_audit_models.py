"""PyMC models of the truth and of the beliefs, through the audit; each sampled once."""

import numpy as np
import pytest

import bayesfair as bf
from bayesfair import examples

pytestmark = pytest.mark.statistical


@pytest.fixture(scope="module")
def log():
    """Three arms, as in the tests of models: a graph is compiled once for all of them."""
    rng = np.random.default_rng(6)
    pi = rng.dirichlet(np.ones(3) * 4, 24)
    arm = [rng.choice(3, p=row) for row in pi]
    won = rng.random(24) < np.array([0.8, 0.5, 0.3])[arm]
    return bf.History(arm, won, arms=("a", "b", "c"), selection_probability=pi)


def test_truth_from_the_independent_model_agrees_with_the_conjugate_posterior(log):
    by_model = bf.audit(
        log, eps1=1, model="bernoulli_independent", sampler={"method": "nuts"}, seed=1
    )
    closed = bf.audit(log, eps1=1, seed=2)
    # 4000 draws each: standard error of a share at most .008 apiece, and NUTS has fewer effective
    assert by_model.probability_fair == pytest.approx(closed.probability_fair, abs=5 * 0.015)
    assert by_model.regret_objective.value == pytest.approx(
        closed.regret_objective.value, abs=5 * 0.002
    )
    assert by_model.to_dict()["criterion"]["model"] == "bernoulli_independent"
    assert any("posterior of the model" in n for n in by_model.findings)
    assert by_model.regret == closed.regret  # the beliefs are conjugate in both


def test_beliefs_from_a_model_agree_with_the_conjugate_ones(log):
    found = bf.audit(log, eps1=1, beliefs_model="bernoulli_independent", seed=1)
    exact = bf.audit(log, eps1=1, seed=1)
    assert found.smallest_eps2 == pytest.approx(exact.smallest_eps2, abs=0.03)
    assert found.regret.value == pytest.approx(exact.regret.value, abs=0.01)
    best = found.data  # the log stays at hand
    assert best is log
    assert any("Beliefs before each round are those of the model" in n for n in found.findings)
    assert found.probability_fair == pytest.approx(exact.probability_fair, abs=0.05)


def test_time_bins_have_a_truth_of_their_own(log):
    result = bf.audit(log, eps1=1, model="bernoulli_drifting", model_options={"n_bins": 4}, seed=1)
    assert result.objective.smallest_eps2.shape[1] == 9
    assert 0 < result.regret_objective.value < 1
    np.testing.assert_allclose(result.objective.p_best.sum(axis=1), 1, atol=1e-9)


def test_a_scan_cannot_have_a_model():
    scan = bf.scan_history(examples.path("ecmo"))
    with pytest.raises(bf.OptionError, match="whole log"):
        bf.audit(scan, model="bernoulli_hierarchical", seed=1)
    with pytest.raises(bf.OptionError, match="whole log"):
        bf.audit(scan, beliefs_model="bernoulli_hierarchical", seed=1)


def test_beliefs_under_a_model_are_saved_but_cannot_go_on(log, tmp_path):
    audit = bf.audit(
        log.before(6), beliefs_model="bernoulli_independent", seed=1, draws=100, objective=False
    )
    audit.save(tmp_path / "a.nc")
    loaded = bf.load_audit(tmp_path / "a.nc")
    assert loaded.to_dict() == audit.to_dict()
    with pytest.raises(bf.OptionError, match="ends in draws of a model"):
        bf.audit(log.rounds(6, 24), prior=loaded, seed=1)
    with pytest.raises(bf.OptionError, match="ends in draws of a model"):
        loaded.resume(log.rounds(6, 24))
    with pytest.raises(bf.OptionError, match="beliefs_model="):
        bf.merge(loaded, bf.audit(log.rounds(6, 24), seed=1))


def test_a_model_s_prior_can_be_scaled_too(log):
    found = bf.audit(log, eps1=1, model="bernoulli_hierarchical", seed=1).prior_sensitivity()
    assert len(found.probability_fair) == len(found.powers) > 1
    assert np.isfinite(found.table[["prior", "likelihood"]].to_numpy()).any()
