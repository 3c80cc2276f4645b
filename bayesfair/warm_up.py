"""Compile every kernel ahead of time: for images, and where nothing can be written later."""

from __future__ import annotations

import importlib
import io
import pkgutil
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from bayesfair import kernels
from bayesfair.audit import Audit, audit
from bayesfair.audit.log.cells import EXACT_ROUNDS
from bayesfair.base.progress import following, steps, tells
from bayesfair.comparisons import Comparisons
from bayesfair.errors import BayesfairWarning
from bayesfair.fairness import best_arm_probability, divergence
from bayesfair.history import History
from bayesfair.inference import fit
from bayesfair.policies import POLICIES, CalibratedOracle, FairSDDTS, SDTSMixture, Thompson
from bayesfair.ranking import pl_consistency, rank_table
from bayesfair.readers import read_history
from bayesfair.rewards import Bernoulli, Finite, Normal, Poisson
from bayesfair.simulation.arms import simulate
from bayesfair.simulation.duels import simulate_duels
from bayesfair.typing import Progress

__all__ = ["iter_kernels", "warm_up"]

_DIVERGENCES = "total_variation", "kl", "hellinger", "chi2", "jensen_shannon", "wasserstein"


def iter_kernels() -> Iterator[tuple[str, Any]]:
    """Yield the name of every compiled function of the package, and the function."""
    for module in pkgutil.walk_packages(kernels.__path__, f"{kernels.__name__}."):
        home = importlib.import_module(module.name)
        for name, value in sorted(vars(home).items()):
            if hasattr(value, "py_func") and value.__module__ == home.__name__:
                yield f"{module.name.removeprefix(kernels.__name__ + '.')}.{name}", value


@tells
def warm_up(*, progress: Progress = None) -> int:
    """Run every compiled path once on a few made-up rounds, so that its machine code is kept.

    Parameters
    ----------
    progress : bool or callable, optional
        How many kinds of work are compiled, as in `bayesfair.audit`.

    Returns
    -------
    int
        Number of compiled functions.

    Notes
    -----
    Machine code is kept for this processor. An image that runs on others is made with
    ``NUMBA_CPU_NAME=generic`` set, both here and where it runs.
    """
    works = _rules, _duels, _audits, _rewards
    told = steps("kinds of work", len(works))
    with warnings.catch_warnings(), following(lambda done, total, what: None):
        warnings.simplefilter("ignore", BayesfairWarning)  # made-up rounds prove nothing
        for work in works:
            work()
            told.add()
    return sum(bool(kernel.signatures) for _, kernel in iter_kernels())


def _history(arm: Any, reward: Any, **fields: Any) -> History:
    """Return a log from whatever arrays are made of."""
    return History(arm, reward, **fields)


def _bernoulli(means: list[float]) -> Bernoulli:
    return Bernoulli(np.array(means))


def _logs(rng: np.random.Generator) -> Iterator[History]:
    """Yield logs of every shape: few arms and many, whole rules, one probability, none, offers."""
    for k in (3, 40):
        n = 60
        arms = [f"a{i}" for i in range(k)]
        rule = rng.dirichlet(np.full(k, 20.0), size=n)
        chosen = [arms[i] for i in rng.integers(k, size=n)]
        reward = rng.integers(2, size=n).astype(float)
        late = np.where(rng.random(n) < 0.2, np.nan, reward)
        yield _history(chosen, reward, arms=arms, selection_probability=rule)
        yield _history(chosen, late, arms=arms, selection_probability=rule)
        picked = [rule[t, arms.index(arm)] for t, arm in enumerate(chosen)]
        yield _history(chosen, reward, arms=arms, propensity=picked)
        yield _history(chosen, reward, arms=arms)
        offered = rng.random((n, k)) < 0.7
        offered[np.arange(n), [arms.index(arm) for arm in chosen]] = True
        share = np.where(offered, rule, np.nan)
        share /= np.nansum(share, axis=1, keepdims=True)
        yield _history(chosen, reward, arms=arms, selection_probability=share)


def _audits() -> None:
    rng = np.random.default_rng(1)
    logs = list(_logs(rng))
    for log in logs:
        found = audit(log, draws=50, seed=1)
        assert isinstance(found, Audit)  # one log
        found.rounds()
    first = logs[0]
    many = EXACT_ROUNDS + 2  # long enough for the checks and summaries of long logs
    audit(
        _history(
            ["a", "b"] * (many // 2), [1.0, 0.0] * (many // 2),
            selection_probability=np.full((many, 2), 0.5), unique=[str(t) for t in range(many)],
        ),
        draws=50, seed=1,
    )  # fmt: skip
    audit(first, truth=_bernoulli([0.2, 0.5, 0.6]))
    audit(_history([0, 1], [1.0, 0.0], arms=[str(i) for i in range(1200)]), draws=50, seed=1)
    seen = _history(
        ["a", "b"] * 4, [1.0, 0.0] * 4, selection_probability=np.full((8, 2), 0.5),
        context=["u", "u", "v", "v"] * 2,
    )  # fmt: skip
    for given in ("cells", "pooled", "probit", "logit"):
        audit(seen, context_model=given, across="contexts", draws=50, seed=1)
    for rewards in ([1.0, 0.0] * 4, [1.0] * 8):  # the second do not tell their scale
        measured = _history(
            ["a", "b"] * 4, rewards, selection_probability=np.full((8, 2), 0.5),
            context=["u", "u", "v", "v"] * 2,
        )  # fmt: skip
        audit(measured, context_model="linear", family="normal", draws=50, seed=1)
    for kind in _DIVERGENCES:
        audit(first, divergence=kind, draws=50, seed=1)
    names = ",".join(["arm,reward", *(f"p_a{i}" for i in range(10))])
    lines = [f'"a{t % 10}",{t % 2}' + ",.1" * 10 for t in range(5000)]  # long, and with quotes
    read_history(io.BytesIO("\n".join([names, *lines]).encode()))
    sites = read_history(
        [
            {"arm": arm, "reward": reward, "p_a": 0.5, "p_b": 0.5, "site": site}
            for site in "xyz" for arm, reward in (("a", 1), ("b", 0))
        ], by="site",
    )  # fmt: skip
    audit(sites, draws=50, seed=1)


def _rewards() -> None:
    rng = np.random.default_rng(2)
    for family, reward in (
        ("finite", rng.integers(1, 6, size=60)),
        ("poisson", rng.poisson(3.0, size=60)),
        ("normal", rng.normal(size=60)),
    ):
        chosen = rng.choice(["a", "b", "c"], size=60)
        rule = rng.dirichlet(np.full(3, 20.0), size=60)
        log = _history(chosen, reward.astype(float), selection_probability=rule)
        for kind in _DIVERGENCES:
            audit(log, family=family, divergence=kind, draws=50, seed=1)
    # too few rewards for their scale to be settled
    audit(_history(["a", "b", "a"], [1.0, 2.5, 0.5]), family="normal", draws=50, seed=1)
    for rewards in (
        _bernoulli([0.2, 0.5]),
        Finite(np.array([1.0, 2.0]), np.array([[0.2, 0.8], [0.5, 0.5]])),
        Poisson(np.array([1.0, 2.0])),
        Normal(np.array([0.0, 1.0]), np.array([1.0, 2.0])),
    ):
        best_arm_probability(rewards)
        for kind in _DIVERGENCES:
            divergence(rewards, kind)


def _rules() -> None:
    truth = _bernoulli([0.6, 0.5, 0.4])
    rating = Finite(np.arange(3.0), np.full((3, 3), 1 / 3))
    for name, rule in POLICIES.items():
        if name == FairSDDTS.name:
            simulate_duels(rule(), [3.0, 2.0, 1.0], 60, seed=1)
        elif name == CalibratedOracle.name:
            simulate(rule(truth), truth, 60, seed=1)
        else:
            chosen = rule(weight=0.5) if name == SDTSMixture.name else rule()
            simulate(chosen, truth, 60, seed=1)
    simulate(Thompson(), rating, 20, seed=1)


def _duels() -> None:
    rng = np.random.default_rng(3)
    pairs = np.array([rng.permutation(4)[:2] for _ in range(200)])
    names = np.array(["a", "b", "c", "d"])
    left, right = names[pairs].T
    winner = np.where(rng.random(200) < 0.5, left, right)
    tied = np.where(rng.random(200) < 0.2, "tie", winner)
    for results in (winner, tied):
        duels = Comparisons.from_duels(left, right, results)
        for method in ("laplace", "nuts"):
            tree = fit(duels, method=method, seed=1, draws=200)
        rank_table(tree)
        pl_consistency(tree, duels, seed=1)
    ranked = Comparisons.from_rankings([list(rng.permutation(names)) for _ in range(40)])
    for method in ("laplace", "nuts"):
        tree = fit(ranked, method=method, seed=1, draws=200)
    pl_consistency(tree, ranked, seed=1)
    fit(ranked, prior_sd=np.inf, seed=1)
    many = [[f"i{i}" for i in rng.permutation(700)[:10]] for _ in range(200)]
    fit(Comparisons.from_rankings(many, partial="subset"), method="laplace", seed=1, draws=200)
