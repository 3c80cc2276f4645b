"""Run a decision rule on known true rewards, logging its exact selection probabilities."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypedDict, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesfair.base.arguments import COUNT, NUMBER, takes
from bayesfair.base.checks import (
    as_generator,
    check_count,
    check_in_range,
    check_known,
    first_where,
)
from bayesfair.base.labels import by_label
from bayesfair.base.progress import Steps, steps, tells
from bayesfair.errors import DataError, OptionError
from bayesfair.families import FAMILIES, family_named
from bayesfair.history import History
from bayesfair.kernels.simulation.classic import run_counts
from bayesfair.kernels.simulation.counts_and_means import choose, run_fixed, run_mixture
from bayesfair.kernels.simulation.thompson import MOST_ARMS, run_thompson
from bayesfair.kernels.simulation.world import BernoulliWorld, Run
from bayesfair.policies import FairSDDTS, Policy, State, policy_from_name
from bayesfair.policies.calibrated import SDTS, CalibratedOracle, FairSDTS, SDTSMixture
from bayesfair.policies.classic import (
    UCB1,
    EpsilonGreedy,
    Greedy,
    RandomisedPlayTheWinner,
    Softmax,
    Thompson,
    Uniform,
)
from bayesfair.rewards import Bernoulli, Rewards
from bayesfair.typing import Floats, Progress, Seed

__all__ = ["drifting_rewards", "simulate"]

Delay = int | ArrayLike | Callable[[np.random.Generator, int], ArrayLike] | None
_CHUNK = 65_536  # rounds whose rewards are drawn at once


class RunOptions(TypedDict, total=False):
    """Options of `simulate` that do not say how many runs there are."""

    batch: int
    delay: Delay
    offered: ArrayLike | Mapping[str, tuple[int, int]] | None
    drift: float | None
    prior: Any
    family: str | None
    progress: Progress


@overload
def simulate(
    policy: Policy | str,
    rewards: Rewards | ArrayLike | Mapping[str, float],
    n_rounds: int,
    *,
    seed: Seed,
    n_runs: None = None,
    **options: Unpack[RunOptions],
) -> History: ...
@overload
def simulate(
    policy: Policy | str,
    rewards: Rewards | ArrayLike | Mapping[str, float],
    n_rounds: int,
    *,
    seed: Seed,
    n_runs: int,
    **options: Unpack[RunOptions],
) -> dict[str, History]: ...
@takes()
@tells
def simulate(
    policy: Policy | str,
    rewards: Rewards | ArrayLike | Mapping[str, float],
    n_rounds: int,
    *,
    seed: Seed,
    n_runs: int | None = None,
    batch: int = 1,
    delay: Delay = None,
    offered: ArrayLike | Mapping[str, tuple[int, int]] | None = None,
    drift: float | None = None,
    prior: Any = None,
    family: str | None = None,
    progress: Progress = None,
) -> History | dict[str, History]:
    r"""Run a decision rule and return what it logged, with all its selection probabilities.

    Parameters
    ----------
    policy : Policy or str
        A rule of `bayesfair.policies`, or the name of one.
    rewards : reward family, (k,) or (T, k) array, or mapping of label to mean
        The truth. Arrays and mappings are Bernoulli means; a batch of T sets of arms (shape
        ``(T, k)``) is a truth that changes with the round.
    n_rounds : int
        T.
    seed : int or numpy Generator
        Required. Run r is the same however many runs are asked for.
    n_runs : int, optional
        Number of independent runs; None = one, returned by itself.
    batch : int
        Beliefs are updated after every `batch` rounds only.
    delay : int, (T,) array of int, or callable, optional
        Rounds by which a reward comes late; a callable gets a Generator and T, for each run.
    offered : (T, k) array of bool or mapping of label to (first, stop), optional
        Arms on offer per round; in a mapping, arms not named are always there, the others in
        rounds first..stop-1.
    drift : float, optional
        Standard deviation per round of a Gaussian random walk of the logit of every Bernoulli
        mean; all runs share the path, which is ``drifting_rewards(rewards, n_rounds, drift=drift,
        seed=seed)``.
    prior : optional
        Prior of the rule, see `bayesfair.families.priors`.
    family : str, optional
        Family the rule learns under; default that of the rewards.
    progress : bool or callable, optional
        How many rounds of all runs are done, as in `bayesfair.audit`.

    Returns
    -------
    History or dict of str to History
        With `n_runs`, runs "0", "1", ...

    Raises
    ------
    OptionError, DataError
        Naming the argument, its value and what is allowed.

    Warns
    -----
    BayesfairWarning
        If exploration would fill the run, or the rule's guarantee is vacuous.

    Notes
    -----
    The rule sees in round t the rewards whose `known_at` is at most t. In each round one uniform
    number draws the arm and another the reward, so that rules that agree so far see the same
    world.

    On Bernoulli rewards all rules but meritocratic and exposure fairness run compiled, at about a
    million rounds per second and more for a handful of arms; those two and other families run in
    Python at some 10^4 rounds per second. A run holds its T x k probabilities in memory.

    Examples
    --------
    >>> from bayesfair.policies import SDTS
    >>> run = simulate(SDTS(), {"a": 0.6, "b": 0.5}, n_rounds=1000, seed=1)
    >>> run.arms, run.selection_probability.shape
    (('a', 'b'), (1000, 2))
    >>> sorted(simulate("uniform", [0.6, 0.5], 100, seed=1, n_runs=3))
    ['0', '1', '2']
    """
    n_rounds = check_count(n_rounds, "n_rounds", 0)
    truth = as_rewards(rewards)
    if drift is not None:
        truth = drifting_rewards(truth, n_rounds, drift=drift, seed=seed)
    if truth.batch_shape not in ((), (n_rounds,)):
        raise OptionError(
            f"rewards hold a batch of shape {truth.batch_shape}; give one set of arms, or one for "
            f"each of the {n_rounds} rounds."
        )
    rule = policy_from_name(policy) if isinstance(policy, str) else policy
    if isinstance(rule, FairSDDTS):
        raise OptionError(f"{rule.name} chooses pairs; run it with simulate_duels.")
    if not isinstance(rule, Policy):
        raise OptionError(f"policy={policy!r} is neither a rule of bayesfair.policies nor a name.")
    family = _family(truth, family)
    rule = rule.for_run(truth.n_arms, n_rounds, truth, family=family)
    support = (0.0, 1.0) if isinstance(truth, Bernoulli) else getattr(truth, "support", None)
    state = rule.start(
        truth.arms, family, prior=prior, support=support if FAMILIES[family].has_levels else None
    )
    mask = _offered(offered, truth, n_rounds)
    batch = check_count(batch, "batch", 1)
    runs = {}
    streams = as_generator(seed).spawn(1 if n_runs is None else check_count(n_runs, "n_runs", 1))
    told = steps("rounds", n_rounds * len(streams))
    for r, rng in enumerate(streams):
        known_at = _known_at(n_rounds, batch, delay, rng)
        deciding, paying = rng.spawn(2)
        order = np.argsort(known_at, kind="stable")
        world = _World(truth, deciding.random(n_rounds), paying, mask, known_at, order)
        arm, reward, pi = _run(rule, state, world, told)
        runs[str(r)] = History(
            arm,
            reward,
            selection_probability=pi,
            arms=truth.arms,
            known_at=known_at,
            source=f"{rule.name} run {r}",
        )
    return runs["0"] if n_runs is None else runs


def as_rewards(rewards: Any) -> Rewards:
    """Return a reward family; arrays and mappings of label to mean are Bernoulli."""
    if isinstance(rewards, Rewards):
        return rewards
    if isinstance(rewards, Mapping):
        named = by_label(rewards, "arm", "rewards")
        means: Any = list(named.values())
        return Bernoulli(means, arms=tuple(named))
    return Bernoulli(rewards)


@takes(n_rounds=COUNT, drift=NUMBER)
def drifting_rewards(rewards: Any, n_rounds: int, *, drift: float, seed: Any) -> Bernoulli:
    """Return Bernoulli arms whose logits follow Gaussian random walks, means of shape ``(T, k)``.

    Parameters
    ----------
    rewards : Bernoulli, (k,) array or mapping of label to mean
        Means in round 0, inside (0, 1).
    n_rounds : int
        T.
    drift : float
        Standard deviation of a step, logits per round.
    seed : int or numpy Generator
        Required; an int gives the path of `simulate` with the same seed.

    Examples
    --------
    >>> path = drifting_rewards([0.6, 0.5], 100, drift=0.01, seed=1)
    >>> path.mean.shape, path.mean[0]
    ((100, 2), array([0.6, 0.5]))
    """
    truth = as_rewards(rewards)
    if not isinstance(truth, Bernoulli) or truth.batch_shape:
        raise OptionError(
            "drift is for one set of Bernoulli arms; give other paths as rewards of shape (T, k)."
        )
    drift = check_in_range(drift, "drift", 0, np.inf, high_open=True)
    start = truth.mean
    if np.any((start <= 0) | (start >= 1)):
        raise OptionError(f"drift needs means inside (0, 1), got {start.tolist()}.")
    as_generator(seed)  # refuses what is no seed
    # a stream of its own: the runs use the first children of the same seed
    rng = seed if isinstance(seed, np.random.Generator) else np.random.default_rng([7, int(seed)])
    steps = rng.normal(0.0, drift, (n_rounds, truth.n_arms))
    steps[:1] = 0.0
    logit = np.log(start / (1 - start)) + np.cumsum(steps, axis=0)
    means = 1 / (1 + np.exp(-logit))
    means[:1] = start
    return Bernoulli(means, arms=truth.arms)


# -- options -----------------------------------------------------------------------------------


def _family(truth: Rewards, family: str | None) -> str:
    if family is not None:
        return family_named(family).name
    name = type(truth).__name__.lower()
    if name not in FAMILIES:
        raise OptionError(
            f"no rule learns under {type(truth).__name__} rewards by itself; choose what it shall "
            f"assume with family= one of {', '.join(FAMILIES)}."
        )
    return name


def _offered(offered: Any, truth: Rewards, n_rounds: int) -> NDArray[np.bool_] | None:
    if offered is None:
        return None
    if isinstance(offered, Mapping):
        mask = np.ones((n_rounds, truth.n_arms), dtype=bool)
        rounds = np.arange(n_rounds)
        for label, span in by_label(offered, "arm", "offered").items():
            try:
                first, stop = (check_count(end, "offered", 0) for end in span)
            except (TypeError, ValueError):
                raise OptionError(
                    f"offered[{label!r}]={span!r} must be two whole numbers, the first round on "
                    "offer and the first one no longer."
                ) from None
            mask[:, check_known(label, truth.arms)] = (rounds >= first) & (rounds < stop)
    else:
        mask = np.array(offered, dtype=bool)
        if mask.shape != (n_rounds, truth.n_arms):
            raise DataError(
                f"offered has shape {mask.shape}, expected (rounds, arms) = "
                f"{(n_rounds, truth.n_arms)}."
            )
    if empty := first_where(~mask.any(axis=1)):
        raise DataError(f"no arm is on offer in round {empty.at} ({empty.n} such rounds).")
    return None if mask.all() else mask


def _known_at(
    n_rounds: int, batch: int, delay: Delay, rng: np.random.Generator
) -> NDArray[np.int64]:
    rounds = np.arange(n_rounds, dtype=np.int64)
    if delay is None:
        late: NDArray[np.int64] = np.zeros(1, np.int64)
    else:
        given = delay(rng.spawn(1)[0], n_rounds) if callable(delay) else delay
        try:
            asked = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError):
            asked = np.array(np.nan)
        whole = np.isfinite(asked) & (asked >= 0) & (asked == np.rint(asked))
        if asked.shape not in ((), (n_rounds,)) or not whole.all():
            raise OptionError(
                f"delay={delay!r} must be a whole number of rounds >= 0, or one for each of the "
                f"{n_rounds} rounds."
            )
        late = asked.astype(np.int64)
    known = rounds + 1 + late
    return -(-known // batch) * batch  # at the next end of a batch


# -- running -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _World:
    """What one run is exposed to, whatever its rule."""

    truth: Rewards
    decide: Floats  # (T,) uniform numbers that draw the arms
    paying: np.random.Generator
    mask: NDArray[np.bool_] | None
    known_at: NDArray[np.int64]
    order: NDArray[np.int64]  # rounds by known_at

    @property
    def n_rounds(self) -> int:
        return self.known_at.size


def _run(rule: Policy, state: State, world: _World, told: Steps) -> Run:
    found = _run_compiled(rule, state, world)
    if isinstance(found, Run):
        told.add(world.n_rounds)
        return found
    return replay(rule, state, world, found, told)


def _run_compiled(rule: Policy, state: State, world: _World) -> Run | Callable[[int, int], float]:
    """Return the run of a rule that is compiled; of another what its arms pay."""
    truth = world.truth
    if not (isinstance(truth, Bernoulli) and FAMILIES[state.family].binary):
        return _drawn(world)
    theta, k = np.ascontiguousarray(np.atleast_2d(truth.mean)), state.n_arms
    mask = np.empty((0, k), np.bool_) if world.mask is None else world.mask
    pay = world.paying.random(world.n_rounds)
    seen = BernoulliWorld(theta, world.decide, pay, world.known_at, world.order, mask)
    if type(rule) is CalibratedOracle and world.mask is None:
        return run_fixed(rule.selection_probability(state), seen)
    # the grid of the compiled rule resolves densities without branch points, and products of not
    # too many distribution functions
    smooth = np.all(2 * state.prior == np.rint(2 * state.prior)) and k <= MOST_ARMS
    if type(rule) is Thompson and world.mask is None and smooth:
        return run_thompson(state.prior, seen)
    counts = _counts_rule(rule)
    if counts is not None:
        return run_counts(counts, state.prior, seen)
    weight = _mixture_weight(rule)
    if weight is None:
        return _bernoulli(theta, pay)
    return run_mixture(weight, state.exploration, state.prior, seen)


def _mixture_weight(rule: Policy) -> float | None:
    """Return the weight of SD_TS where the compiled kernel knows the rule, else None."""
    if type(rule) in (SDTS, FairSDTS):
        return 1.0
    if type(rule) is Uniform:
        return 0.0
    return rule.weight_for("bernoulli") if isinstance(rule, SDTSMixture) else None


# class -> name of the compiled rule, and the fields that are its parameters
_COUNT_RULES: dict[type[Policy], tuple[str, tuple[str, ...]]] = {
    Greedy: ("greedy", ()),
    EpsilonGreedy: ("greedy", ("epsilon",)),
    UCB1: ("ucb1", ("c",)),
    Softmax: ("softmax", ("temperature",)),
    RandomisedPlayTheWinner: ("urn", ("start_balls", "added_balls")),
}


def _counts_rule(rule: Policy) -> tuple[str, float, float] | None:
    """Return name and parameters of a classic rule as its compiled kernel wants them."""
    if type(rule) not in _COUNT_RULES:  # a subclass may do something else
        return None
    name, fields = _COUNT_RULES[type(rule)]
    first, second = (*(float(getattr(rule, field)) for field in fields), 0.0, 0.0)[:2]
    return name, first, second


def _bernoulli(theta: Floats, pay: Floats) -> Callable[[int, int], float]:
    last = theta.shape[0] - 1
    return lambda t, arm: float(pay[t] < theta[min(t, last), arm])


def _drawn(world: _World) -> Callable[[int, int], float]:
    """Rewards of all arms in all rounds, drawn in blocks as they are needed."""
    block: dict[int, Floats] = {}

    def reward(t: int, arm: int) -> float:
        start = t - t % _CHUNK
        if start not in block:
            block.clear()
            stop = min(start + _CHUNK, world.n_rounds)
            if world.truth.batch_shape:
                block[start] = world.truth[start:stop].sample(seed=world.paying)
            else:
                block[start] = world.truth.sample(stop - start, seed=world.paying)
        return float(block[start][t - start, arm])

    return reward


def replay(
    rule: Policy, state: State, world: _World, pay: Callable[[int, int], float], told: Steps
) -> Run:
    """Run any rule through its own pure functions; the compiled paths must agree with this."""
    n_rounds, k = world.n_rounds, state.n_arms
    mask, known_at, order = world.mask, world.known_at, world.order
    arm, reward = np.empty(n_rounds, np.int32), np.empty(n_rounds)
    pi = np.empty((n_rounds, k))
    changed, done = True, 0
    current = np.empty(k)
    for t in range(n_rounds):
        while done < n_rounds and known_at[order[done]] <= t:
            past = order[done]
            state = rule.update(state, int(arm[past]), float(reward[past]))
            done += 1
            changed = True
        if changed or mask is not None:
            current = rule.selection_probability(state, None if mask is None else mask[t])
            changed = False
        pi[t] = current
        arm[t] = choose(current, world.decide[t])
        reward[t] = pay(t, int(arm[t]))
        told.add()
    return Run(arm, reward, pi)
