"""Whether a verdict hangs on the prior; the oracle: a power of a Beta law is a Beta law."""

import json

import numpy as np
import pytest

import bayesfair as bf
from bayesfair import examples
from bayesfair.audit.truth.sensitivity import POWERS


def log_of(n, seed=0):
    rng = np.random.default_rng(seed)
    pi = np.tile([0.6, 0.4], (n, 1))
    arm = (rng.random(n) > 0.6).astype(int)
    reward = (rng.random(n) < np.array([0.6, 0.45])[arm]).astype(float)
    return bf.History(arm, reward, selection_probability=pi, arms=["a", "b"])


def test_powers_of_a_beta_prior_are_beta_priors():
    log, criterion = log_of(60), {"eps1": 1, "eps2": 0.05}
    found = bf.audit(log, prior=(3, 3), seed=1, **criterion).prior_sensitivity()
    for power, p, regret, khat in zip(
        POWERS, found.probability_fair, found.regret_per_round, found.khat, strict=True
    ):
        # Beta(3, 3)^power is Beta(1 + 2 power, 1 + 2 power), up to a constant
        refit = bf.audit(log, prior=(1 + 2 * power,) * 2, seed=2, draws=40_000, **criterion)
        assert khat < 0.7
        # 4000 reweighted draws: standard error of a share at most .008, some more by weights
        assert p == pytest.approx(refit.probability_fair, abs=0.05)
        assert regret == pytest.approx(refit.regret_objective.value, abs=0.01)


def test_a_verdict_that_hangs_on_the_prior_and_one_that_does_not():
    # Half a power of this prior leaves .746 (refitted as Beta(10.5, 3), Beta(3, 10.5)), itself .967
    prior = {"a": (20, 5), "b": (5, 20)}
    hangs = bf.audit(log_of(40, seed=5), prior=prior, eps1=1, eps2=0.05, seed=1).prior_sensitivity()
    verdict = dict(zip(POWERS, hangs.verdicts, strict=True))
    khat = dict(zip(POWERS, hangs.khat, strict=True))
    assert verdict[1.0] == "fair"
    assert verdict[0.5] == "undetermined"
    assert khat[0.5] <= 0.7
    assert hangs.hangs_on_prior is True
    assert "verdict hangs on the prior" in str(hangs)
    plain = bf.audit(log_of(3000), eps1=1, eps2=0.3, seed=1).prior_sensitivity()
    assert set(plain.verdicts) == {"fair"}
    assert plain.hangs_on_prior is False
    assert "does not hang on the prior" in str(plain)


def test_the_numbers_are_ready_for_json():
    audit = bf.audit(log_of(60), eps1=1, eps2=0.05, seed=1)
    found = audit.prior_sensitivity()
    numbers = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    rows = numbers["powers"]
    assert tuple(row["power"] for row in rows) == POWERS
    itself = rows[POWERS.index(1.0)]
    assert itself["khat"] is None
    assert itself["trusted"]
    # the draws are those of the audit
    assert itself["probability_fair"] == pytest.approx(audit.probability_fair, abs=1e-12)
    assert itself["regret_per_round"] == pytest.approx(audit.regret_objective.value, abs=1e-12)
    names = [q["quantity"] for q in numbers["quantities"]]
    assert names == ["theta[a]", "theta[b]", "smallest_eps2", "fairness_regret"]
    for row, p in zip(rows, found.probability_fair, strict=True):
        assert f"{p:.4f}" in str(found)
        assert row["verdict"] in str(found)


def test_a_sure_verdict_stays_sure_at_delta_0():
    found = bf.audit(log_of(3000), eps1=1, eps2=0.9, delta=0, seed=1).prior_sensitivity()
    assert found.probability_fair == (1.0,) * len(POWERS)
    assert set(found.verdicts) == {"fair"}


def test_a_flat_prior_and_a_single_value():
    flat = bf.audit(log_of(60), prior=(1, 1), eps1=1, seed=1).prior_sensitivity()
    assert len(set(flat.probability_fair)) == 1
    assert (flat.table["prior"] == 0).all()
    log = bf.History([0, 1] * 3, [5] * 6, selection_probability=[[0.5, 0.5]] * 6)
    assert bf.audit(log, seed=1).prior_sensitivity().hangs_on_prior is False


def test_without_pairs_there_is_no_verdict_to_hang():
    log = bf.History([0, 1] * 20, [1, 0] * 20, propensity=[0.5] * 40)
    found = bf.audit(log, seed=1).prior_sensitivity()
    assert found.hangs_on_prior is None
    assert found.regret_per_round is not None
    assert set(found.verdicts) == {"not_auditable"}


def test_what_has_no_prior_to_scale_is_refused():
    log = log_of(20)
    with pytest.raises(bf.OptionError, match="truth"):
        bf.audit(log, truth=bf.rewards.Bernoulli([0.5, 0.5])).prior_sensitivity()
    with pytest.raises(bf.OptionError, match="whole log"):
        bf.audit(bf.scan_history(examples.path("ecmo")), seed=1).prior_sensitivity()
    first = bf.audit(log.before(10), seed=1)
    rest = bf.audit(log.rounds(10, 20), prior=first.state, seed=1)
    with pytest.raises(bf.OptionError, match="resumed"):
        rest.prior_sensitivity()
