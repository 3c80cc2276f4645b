"""Beliefs by PyMC models with rewards by context or round; their fits are the closed form here."""

import numpy as np
import pytest

import bayesfair as bf
from bayesfair.errors import DataError, OptionError
from bayesfair.families import FAMILIES
from bayesfair.inference import refit
from bayesfair.inference.contract import check_reads, contract_of
from bayesfair.rewards import Bernoulli


def log_of(n=60, seed=3):
    rng = np.random.default_rng(seed)
    x = rng.choice(["u", "v", "w"], n)
    arm = rng.integers(0, 2, n)
    reward = (rng.random(n) < np.where(x == "u", 0.8, 0.3)).astype(float)
    reward[::9] = np.nan
    return bf.History(arm, reward, context=x, selection_probability=rng.dirichlet([5, 5], n))


def exact_fits(log, *, by_round=False, common=None):
    """Return a stand-in for NUTS: draws of Beta(1/2, 1/2) beliefs by context."""
    codes, names = log.context.cells

    def fit(self, m, t, order):
        won, seen = np.zeros((2, len(names), log.n_arms))
        np.add.at(won, (codes[order[:m]], log.arm[order[:m]]), log.reward[order[:m]])
        np.add.at(seen, (codes[order[:m]], log.arm[order[:m]]), 1)
        rng = np.random.default_rng(m)
        theta = rng.beta(won + 0.5, seen - won + 0.5, (4000, *won.shape))
        if common is not None:  # arms that pay alike in a draw
            theta[..., 1] = theta[..., 0]
        reads = {"theta": theta[:, codes] if by_round else theta}
        return refit.Draws(FAMILIES["bernoulli"], log.arms, reads, 1.0, None)

    return fit


def by_rounds(history, latent=False):
    """A model of rewards by round, of which only the graph is used here."""
    import pymc as pm

    codes, names = history.context.cells
    coords = {"context": names, "arm": history.arms, "round": range(history.n_rounds)}
    with pm.Model(coords=coords) as model:
        of = pm.Normal("of", 0, 1, dims=("context", "arm"))
        value = of[codes.astype(int)]
        if latent:
            value += pm.Normal("shock", 0, 1, dims="round")[:, None]
        pm.Deterministic("theta", pm.math.sigmoid(value), dims=("round", "arm"))
    return model


by_rounds.READS = ("theta",)


@pytest.mark.parametrize("by_round", [False, True])
def test_an_audit_by_such_a_model_is_that_of_the_closed_form(monkeypatch, by_round):
    log = log_of()
    monkeypatch.setattr(refit.Refitter, "fit", exact_fits(log, by_round=by_round))
    model = by_rounds if by_round else "bernoulli_cells"
    found = bf.audit(log, beliefs_model=model, seed=1, objective=False)
    exact = bf.audit(log, context_model="cells", objective=False)
    assert found.smallest_eps2 == pytest.approx(exact.smallest_eps2, abs=0.03)
    assert found.regret.value == pytest.approx(exact.regret.value, abs=0.005)
    numbers, closed = found.to_dict(), exact.to_dict()
    assert numbers["context"]["without"] == pytest.approx(closed["context"]["without"])
    assert numbers["context"]["columns"] == ["context"] and numbers["context"]["n_cells"] == 3
    assert numbers["context"]["model"] == ("by_rounds" if by_round else "bernoulli_cells")
    for one, other in zip(numbers["cells"], closed["cells"], strict=True):
        assert one["context"] == other["context"]
        assert one["regret_total"] == pytest.approx(other["regret_total"], abs=0.1)
        assert one["smallest_eps2"] == pytest.approx(other["smallest_eps2"], abs=0.04)
    assert {"beliefs_model", "dependent_arms"} <= {notice.kind for notice in found.findings}
    assert "Given the context 'context' (3 values" in str(found)
    for refused in (found.rounds, lambda: found.resume(log)):
        with pytest.raises(OptionError, match="beliefs_model="):
            refused()


def test_p_star_is_averaged_over_joint_draws(monkeypatch):
    log = log_of(n=40)
    monkeypatch.setattr(refit.Refitter, "fit", exact_fits(log, common=True))
    found = bf.beliefs(log, model="bernoulli_cells", seed=1)
    # arms with one theta in every draw are chosen evenly, whatever their marginals
    assert found.best_arm_probability.values == pytest.approx(0.5, abs=1e-9)
    last = Bernoulli(found.rewards.mean[-1]).best_arm_probability()
    assert found.details.dim == "context" and last == pytest.approx(0.5, abs=0.01)


def test_shared_weights_make_arms_dependent():
    """C8: three arms with normal weights in common; P* of joint draws and that of the marginals."""
    node, w = np.polynomial.hermite_e.hermegauss(30)
    away = np.stack(np.meshgrid(node, node), axis=-1).reshape(-1, 2)
    chance = np.multiply.outer(w, w).ravel() / w.sum() ** 2
    weights = [0.3, 0.1] + away @ np.linalg.cholesky([[0.5, 0.3], [0.3, 0.4]]).T
    mean = weights @ np.array([[1.0, 0.0], [0.9, 0.2], [0.0, 1.0]]).T
    reads = {"mean": mean[:, None], "sd": np.full_like(mean, 0.5)[:, None]}
    draws = refit.Draws(FAMILIES["normal"], ("a", "b", "c"), reads, 1.0, None)
    joint = chance @ draws.best(0, None)
    assert joint == pytest.approx([0.3706573434, 0.3477270158, 0.2816156407], abs=1e-7)
    z = np.array([[1.0, 0.0], [0.9, 0.2], [0.0, 1.0]])
    sd = np.sqrt(0.25 + np.einsum("ia,ab,ib->i", z, [[0.5, 0.3], [0.3, 0.4]], z))
    alone = bf.rewards.Normal(z @ [0.3, 0.1], sd).best_arm_probability()
    assert np.abs(joint - alone).sum() / 2 == pytest.approx(0.019094044348850592, abs=1e-7)


def test_what_such_a_model_must_not_be():
    log = log_of(n=8)
    contract = contract_of(by_rounds)
    assert check_reads(contract, by_rounds(log), log) == "round"
    with pytest.raises(OptionError) as refused:
        check_reads(contract, by_rounds(log, latent=True), log)
    assert (refused.value.kind, refused.value.column) == ("latent_round", "shock")
    other = bf.History(log.arm, log.reward, context=["z"] * 8, arms=log.arms)
    cells = contract_of("bernoulli_cells")
    with pytest.raises(OptionError, match="'context'"):
        check_reads(cells, cells.build(log), other)
    blind = bf.History(log.arm, log.reward, arms=log.arms)
    with pytest.raises(DataError) as refused:
        check_reads(cells, cells.build(log), blind)
    assert (refused.value.kind, refused.value.column) == ("no_context", "context")
    with pytest.raises(OptionError) as refused:
        bf.audit(log, context_model="cells", beliefs_model="bernoulli_cells", seed=1)
    assert refused.value.kind == "excluded"
