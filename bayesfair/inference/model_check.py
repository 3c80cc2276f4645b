"""Whether a model of one's own keeps what audits and fits rely on: found by simulation."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.arguments import constructed, takes, within
from bayesfair.base.checks import as_generator
from bayesfair.base.html import Shown
from bayesfair.base.notices import Notice
from bayesfair.errors import BayesfairError, OptionError
from bayesfair.families import FAMILIES, Family
from bayesfair.history import History
from bayesfair.history.cells import bins_along, reward_cells
from bayesfair.inference.compiled import data_of, graph_of
from bayesfair.inference.contract import Contract, check_reads, contract_of
from bayesfair.inference.nuts import CompiledModel
from bayesfair.typing import Floats, Model, Seed

__all__ = ["ModelCheck", "check"]

_ARMS = ("b", "a", "c")  # not in the order of the labels
_N_ROUNDS = 60
_N_PRIOR = 1000
_KEPT, _THIN = 100, 4  # draws of a posterior that ranks are taken among, nearly independent
_FALSE_ALARM = 0.001  # in one sound model of a thousand

#: Where the parameters of a reward law lie.
_RANGES = {"theta": (0.0, 1.0), "probability": (0.0, 1.0), "rate": (0.0, np.inf),
           "sd": (0.0, np.inf)}  # fmt: skip


@constructed
@dataclass(frozen=True, eq=False, repr=False)
class ModelCheck(Shown):
    """What `check` found.

    Attributes
    ----------
    model, family : str
        What was checked, and the family of its rewards.
    reads : tuple of str
        Variables that audits read.
    arms : tuple of str
        Arms of the history that it was built for.
    prior_mean : (k,) array
        Mean reward of each arm under the prior.
    prior_interval : (k, 2) array
        Central 95 % of it, over draws of the prior.
    prior_best : (k,) array
        P* before any reward.
    p_values : dict of str to float
        For each parameter, and for the likelihood: how well ranks of the truth among posterior
        draws agree with the uniform law.
    n_simulations, n_compiled, n_divergent : int
        Simulated logs; how often the model had to be compiled; divergent transitions in all fits.
    findings : tuple of Notice
        What is wrong; empty if nothing is.
    """

    model: str
    family: str
    reads: tuple[str, ...]
    arms: tuple[str, ...]
    prior_mean: Floats
    prior_interval: Floats
    prior_best: Floats
    p_values: dict[str, float]
    n_simulations: int
    n_compiled: int
    n_divergent: int
    findings: tuple[Notice, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    def __repr__(self) -> str:
        return f"ModelCheck({self.model}: {'passed' if self.passed else self.findings[0].kind})"

    def __str__(self) -> str:
        lines = [
            f"{self.model}: {'passed' if self.passed else 'NOT passed'} "
            f"(READS {', '.join(self.reads)}; {self.family} rewards)",
            "  before any reward   mean reward   95 % of the prior      P*",
        ]
        for arm, mean, (low, high), best in zip(
            self.arms, self.prior_mean, self.prior_interval, self.prior_best, strict=True
        ):
            lines.append(f"    {arm:<16} {mean:>11.3g}   {low:>8.3g} to {high:<8.3g} {best:>6.2f}")
        if self.p_values:
            worst = min(self.p_values, key=self.p_values.__getitem__)
            lines.append(
                f"  {self.n_simulations} simulated logs, fitted: smallest p-value of the ranks "
                f"{self.p_values[worst]:.2g} ({worst}); {self.n_divergent} divergent transitions; "
                f"compiled {self.n_compiled} times"
            )
        if self.n_compiled > 1:
            lines.append("  What changes from log to log belongs into pm.Data: then once is enough")
        return "\n".join([*lines, *(f"  {found}" for found in self.findings)])


@takes(simulations=within(5, 1000, whole=True))
def check(
    build: Model,
    history: History | None = None,
    *,
    model_options: Mapping[str, Any] | None = None,
    simulations: int = 20,
    seed: Seed = 1,
) -> ModelCheck:
    """Check a model of your own: its contract, its prior, and its posterior on simulated logs.

    The prior is drawn, rewards are drawn from it by the law of the family, and the model is fitted
    to them: the true parameters must rank among the posterior draws as any of them does
    (simulation-based calibration), and so must the likelihood at them. That finds rewards that are
    left out, counted twice, or given to another arm, and priors or links that differ between the
    model and what it says in `READS`; of small faults, more `simulations` find more.

    Parameters
    ----------
    build : callable, module or str
        ``build(history) -> pymc.Model`` with `READS` beside it, as for ``model=`` in
        `bayesfair.audit`.
    history : History, optional
        A short log whose arms and rounds are taken, for models that know their arms; its rewards
        only say which are observed. Default: three arms, 60 rounds, of which 3 are not observed.
    model_options : mapping, optional
        Options of `build`; a prior that is learned from the rewards has to be fixed here.
    simulations : int
        Simulated logs. Each costs a fit, and compiling where the model keeps data outside
        ``pm.Data``.
    seed : int or Generator
        Of all that is drawn.

    Returns
    -------
    ModelCheck
        `print` it; ``passed`` says whether something was found.

    Raises
    ------
    OptionError
        If the contract is not kept (`READS`, dims, coords), the model cannot be built before any
        reward is known, or its prior cannot be drawn.
    ConvergenceError
        If the sampler cannot start.

    References
    ----------
    .. [1] Talts, Betancourt, Simpson, Vehtari, Gelman (2018), arXiv:1804.06788.
    .. [2] Modrak, Moon, Kim, Buerkner, Huurre, Faltejskova, Gelman, Vehtari (2023), Bayesian
       Analysis: the likelihood as a test quantity.

    Examples
    --------
    >>> found = check("bernoulli_independent", simulations=5)
    >>> found.passed, found.n_compiled
    (True, 1)
    """
    import pymc as pm

    contract, rng = contract_of(build), as_generator(seed)
    options, family = contract.checked(model_options or {}), FAMILIES[contract.family]
    history = _example(rng) if history is None else history
    if not isinstance(history, History) or history.prior_counts is not None:
        raise OptionError(
            "history= must be a short History without prior_counts, or left out.",
            kind="wrong_kind",
            column="history",
        )
    nothing = _with_rewards(history, np.full(history.n_rounds, np.nan))
    try:
        model = contract.build(nothing, **options)
    except BayesfairError:
        raise
    except Exception as error:
        raise OptionError(
            f"model {contract.name!r} cannot be built before any reward is known (all of "
            f"history.reward NaN): {type(error).__name__}: {error}. Beliefs before the first round "
            "are such a model.",
            kind="not_built",
            column="build",
        ) from error
    dim = check_reads(contract, model, history)
    if model.potentials:
        raise OptionError(
            f"model {contract.name!r} has a pm.Potential, so its prior cannot be drawn: write it "
            "with distributions.",
            kind="potential",
            column="build",
        )
    names = list(family.reads)
    drawn = pm.draw([model[name] for name in names], draws=_N_PRIOR,
                    random_seed=int(rng.integers(2**31)))  # fmt: skip
    prior = {name: np.asarray(v, dtype=np.float64) for name, v in zip(names, drawn, strict=True)}
    level = np.asarray(model.coords["level"], dtype=np.float64) if family.has_levels else None
    base: dict[str, Any] = {"model": contract.name, "family": family.name,
                            "reads": contract.reads, "arms": history.arms}  # fmt: skip
    outside = _outside(prior)
    if outside is not None:
        blank = np.full(history.n_arms, np.nan)
        return ModelCheck(
            **base, prior_mean=blank, prior_interval=np.stack([blank, blank], axis=1),
            prior_best=blank, p_values={}, n_simulations=0, n_compiled=0, n_divergent=0,
            findings=(outside,),
        )  # fmt: skip
    n_bins = len(prior[names[0]][0]) if dim == "bin" else 1
    starts = np.arange(n_bins) * history.n_rounds // n_bins
    bins = bins_along(dim, history, starts)
    rewards: Any = family.truth(prior, history.arms, level)
    means, best = np.asarray(rewards.mean), np.asarray(rewards.best_arm_probability())
    if bins is not None:  # a table has room for one
        means, best = means[:, 0], best[:, 0]
    p_values, n_compiled, n_divergent = _calibration(
        history, contract, options, prior, level, bins, simulations, rng
    )
    findings = []
    worst = min(p_values, key=p_values.__getitem__)
    if p_values[worst] < _FALSE_ALARM / len(p_values):
        findings.append(Notice(
            f"The posterior is not calibrated: the ranks of {worst} in {simulations} simulated "
            f"logs have p = {p_values[worst]:.1e}. Does the model use every observed reward once, "
            "of the right arm, with the parameters that READS names?",
            kind="not_calibrated", column=worst.split("[")[0], value=p_values[worst], n=simulations,
        ))  # fmt: skip
    return ModelCheck(
        **base, prior_mean=means.mean(axis=0),
        prior_interval=np.quantile(means, [0.025, 0.975], axis=0).T, prior_best=best.mean(axis=0),
        p_values=p_values, n_simulations=simulations, n_compiled=n_compiled,
        n_divergent=n_divergent, findings=tuple(findings),
    )  # fmt: skip


def _example(rng: np.random.Generator) -> History:
    """Return a log of three arms, one of them played less, in which some rewards are missing."""
    arm = rng.permutation(np.repeat([0, 1, 2], [30, 20, 10]))
    reward = np.zeros(_N_ROUNDS)
    reward[[5, 25, 45]] = np.nan
    return History([_ARMS[i] for i in arm], reward, arms=_ARMS)


def _with_rewards(history: History, reward: Floats) -> History:
    """Return the same rounds with other rewards, which need not be known."""
    new = copy.copy(history)
    reward.flags.writeable = False
    object.__setattr__(new, "reward", reward)
    return new


def _outside(prior: Mapping[str, Floats]) -> Notice | None:
    """Return what is wrong with draws of the prior that are no parameters of a law."""
    for name, values in prior.items():
        low, high = _RANGES.get(name, (-np.inf, np.inf))
        bad = ~(np.isfinite(values) & (values >= low) & (values <= high))
        if bad.any():
            return Notice(
                f"{name!r} is {values[bad][0]:g} in {bad.mean():.1%} of the draws of the prior; it "
                f"must be finite and lie between {low:g} and {high:g}.",
                kind="outside", column=name, value=float(values[bad][0]), n=int(bad.sum()),
            )  # fmt: skip
    return None


def _calibration(
    history: History, contract: Contract, options: dict[str, Any], prior: Mapping[str, Floats],
    level: Floats | None, bins: NDArray[np.int64] | None, simulations: int,
    rng: np.random.Generator,
) -> tuple[dict[str, float], int, int]:  # fmt: skip
    """Return p-values of the ranks by parameter, how often it was compiled, and divergences."""
    from scipy import stats

    family = FAMILIES[contract.family]
    seen = ~np.isnan(history.reward)
    ranks: dict[str, list[float]] = {}
    compiled, n_compiled, n_divergent = None, 0, 0
    for s in range(simulations):
        truth = {name: values[s] for name, values in prior.items()}
        reward = _rewards(history, family, truth, level, bins, rng)
        log = _with_rewards(history, np.where(seen, reward, np.nan))
        model = contract.build(log, **options)
        if compiled is None or not compiled.graph.same_as(graph_of(model)):
            compiled, n_compiled = CompiledModel(model), n_compiled + 1
        tree = compiled.sample(
            draws=_KEPT * _THIN, tune=300, target_accept=0.9, chains=1, cores=1,
            seed=int(rng.integers(2**31)), data=data_of(model),
        )  # fmt: skip
        if "diverging" in tree["sample_stats"]:
            n_divergent += int(tree["sample_stats"]["diverging"].sum())
        posterior = tree["posterior"].to_dataset()
        draws = {n: posterior[n].values[0, ::_THIN] for n in family.reads}
        for label, rank in _ranks(draws, truth, log, family, level, bins).items():
            ranks.setdefault(label, []).append(rank)
    found = {}
    for label, values in ranks.items():
        u = np.array(values)
        # bias, and posteriors too wide or too narrow, which the first test hardly sees
        both = stats.kstest(u, "uniform").pvalue, stats.kstest(np.abs(2 * u - 1), "uniform").pvalue
        found[label] = min(1.0, 2 * float(min(both)))
    return found, n_compiled, n_divergent


def _rewards(
    history: History, family: Family, truth: Mapping[str, Floats], level: Floats | None,
    bins: NDArray[np.int64] | None, rng: np.random.Generator,
) -> Floats:  # fmt: skip
    """Return a reward for each round, drawn from the law of its arm (and bin)."""
    law = family.truth(truth, history.arms, level)
    rounds = np.arange(history.n_rounds)
    drawn = law.sample(history.n_rounds, seed=rng)
    if bins is None:
        return np.asarray(drawn[rounds, history.arm], dtype=np.float64)
    return np.asarray(drawn[rounds, bins, history.arm], dtype=np.float64)


def _ranks(
    draws: Mapping[str, Floats], truth: Mapping[str, Floats], log: History, family: Family,
    level: Floats | None, bins: NDArray[np.int64] | None,
) -> dict[str, float]:  # fmt: skip
    """Return the rank of the truth among the draws, in (0, 1): each parameter, the likelihood."""
    found = {}
    for name, value in truth.items():
        below = (draws[name] < value).sum(axis=0)
        for index in np.ndindex(np.shape(value)):
            label = f"{name}[{', '.join(map(str, (*index[:-1], log.arms[index[-1]])))}]"
            if family.has_levels:
                label = f"{name}[{', '.join(map(str, index))}]"
            found[label] = float((below[index] + 0.5) / (_KEPT + 1))
    cells = reward_cells(log, bins)

    def likelihood(reads: Mapping[str, Floats]) -> Floats:
        if bins is None:
            axis = -3 if family.has_levels else -2
            reads = {name: np.expand_dims(value, axis) for name, value in reads.items()}
        each = family.log_likelihood(reads, cells["arm"], cells["reward"], cells["bin"], level)
        return np.asarray(each @ cells["count"].astype(np.float64))

    at_truth = likelihood({name: value[None] for name, value in truth.items()})
    n_below = int((likelihood(draws) < at_truth).sum())
    found["likelihood"] = (n_below + 0.5) / (_KEPT + 1)
    return found
