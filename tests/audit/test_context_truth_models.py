"""True rewards of a model that reads by context or by round, against plain loops over draws."""

import itertools

import numpy as np
import pytest

import bayesfair as bf
from bayesfair.errors import OptionError
from bayesfair.inference.tree import make_tree, posterior_dataset

N, K, DRAWS = 30, 3, 12
LABELS = ("u", "v", "w")
EPS1, EPS2 = 1.0, 0.15


def log_of(chosen=False, **more):
    rng = np.random.default_rng(5)
    context = rng.choice(LABELS, N)
    pi = rng.dirichlet([4] * K, N)
    away = rng.random(N) < 0.3  # the last arm is not always on offer
    pi[away, 2] = 0
    pi /= pi.sum(axis=1, keepdims=True)
    pi[away, 2] = np.nan
    arm = np.array([rng.choice(K, p=np.nan_to_num(p)) for p in pi])
    reward = rng.integers(0, 2, N).astype(float)
    reward[::7] = np.nan
    if chosen:
        more["propensity"] = pi[np.arange(N), arm]
        more["offered"] = ~np.isnan(pi)
    else:
        more["selection_probability"] = pi
    return bf.History(arm, reward, context=context, arms=("a", "b", "c"), **more), pi


def fit_of(log, dim):
    """A fit with chosen draws, (chain, draw, dim, arm), and those of each round, (T, draw, k)."""
    codes, names = log.context.cells
    size = len(names) if dim == "context" else N
    theta = np.random.default_rng(6).beta(2, 2, (2, DRAWS // 2, size, K))
    coords = {dim: list(names) if dim == "context" else np.arange(N), "arm": list(log.arms)}
    draws = posterior_dataset({"theta": theta}, {"theta": (dim, "arm")}, coords)
    attrs = {
        "reads": "theta", "family": "bernoulli", "n_rounds": N, "model": "mine", "method": "chosen",
        "prior": "none", "notices": [],
    }  # fmt: skip
    of_rounds = theta.reshape(DRAWS, size, K)[:, codes if dim == "context" else np.arange(N)]
    return make_tree({"posterior": draws}, attrs), np.moveaxis(of_rounds, 0, 1)


def best_by_outcomes(theta, on_offer):
    """P* of 0/1 arms by adding up all outcomes of those on offer; ties are split."""
    best, arms = np.zeros(K), np.flatnonzero(on_offer)
    for rewards in itertools.product((0, 1), repeat=len(arms)):
        p = np.prod([theta[i] if r else 1 - theta[i] for i, r in zip(arms, rewards, strict=True)])
        top = arms[np.array(rewards) == max(rewards)]
        best[top] += p / len(top)
    return best


@pytest.mark.parametrize("from_round", [0, 8])
@pytest.mark.parametrize("dim", ["context", "round"])
@pytest.mark.parametrize("chosen", [False, True])
def test_eps2_regret_and_violations_are_those_of_every_round_and_draw(dim, chosen, from_round):
    log, pi = log_of(chosen)
    tree, theta = fit_of(log, dim)
    audit = bf.audit(log, fit=tree, eps1=EPS1, eps2=EPS2, from_round=from_round, seed=1)
    needs, regret = np.full((DRAWS, N), -np.inf), np.zeros((DRAWS, N))
    for t, d in itertools.product(range(from_round, N), range(DRAWS)):
        of, on_offer = theta[t, d], ~np.isnan(pi[t])
        best = best_by_outcomes(of, on_offer)
        if chosen:
            regret[d, t] = max(1 - best[log.arm[t]] / pi[t, log.arm[t]], 0)
            continue
        regret[d, t] = np.nansum(np.abs(best - pi[t])) / 2
        for i, j in itertools.combinations(np.flatnonzero(on_offer), 2):
            excess = abs(pi[t, i] - pi[t, j]) - EPS1 * abs(of[i] - of[j])
            needs[d, t] = max(needs[d, t], excess)
    found = audit.objective
    assert found.regret == pytest.approx(regret.sum(axis=1) / (N - from_round), abs=1e-12)
    assert audit.regret_objective.value == pytest.approx(found.regret.mean(), abs=1e-12)
    if chosen:
        assert found.smallest_eps2 is None and audit.objective_verdict == "not_auditable"
        return
    most = np.maximum(needs.max(axis=1), 0)
    at = audit.criterion.grid_index
    assert found.smallest_eps2[:, at] == pytest.approx(most, abs=1e-12)
    over = needs > EPS2
    assert over.any() and not over.all()
    assert np.array_equal(found.violations.n, over.sum(axis=1))
    assert np.array_equal(found.violations.first, np.where(over.any(1), over.argmax(1), -1))
    assert audit.probability_fair == (most <= EPS2).mean()


def test_a_fit_of_other_contexts_or_without_a_rule_is_refused():
    log, _ = log_of()
    tree, _ = fit_of(log, "context")
    codes = log.context.cells[0]
    other = bf.History(
        log.arm, log.reward, arms=log.arms, context=np.array(["x", "y", "z"])[codes],
        selection_probability=log.selection_probability,
    )  # fmt: skip
    bare = bf.History(log.arm, log.reward, arms=log.arms, context=np.array(LABELS)[codes])
    for given, kind in ((other, "other_fit"), (bare, None)):
        with pytest.raises(OptionError, match="context") as refused:
            bf.audit(given, fit=tree, seed=1)
        assert kind is None or refused.value.kind == kind
