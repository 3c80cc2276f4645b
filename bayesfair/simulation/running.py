"""One run of a decision rule: compiled where its rule is, else by the rule's own functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.progress import Steps
from bayesfair.families import FAMILIES
from bayesfair.kernels.simulation.classic import run_counts
from bayesfair.kernels.simulation.counts_and_means import choose, run_fixed, run_mixture
from bayesfair.kernels.simulation.thompson import MOST_ARMS, run_thompson
from bayesfair.kernels.simulation.world import BernoulliWorld, Run
from bayesfair.policies import Policy, State
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
from bayesfair.typing import Floats

__all__ = ["World", "paid_by", "replay", "run_rule"]

_CHUNK = 65_536  # rounds whose rewards are drawn at once


@dataclass(frozen=True, eq=False)
class World:
    """What one run is exposed to, whatever its rule."""

    truth: Rewards
    decide: Floats  # (T,) uniform numbers that draw the arms
    paying: np.random.Generator
    mask: NDArray[np.bool_] | None
    known_at: NDArray[np.int64]
    order: NDArray[np.int64]  # rounds by known_at

    @property
    def n_rounds(self) -> int:
        """Number of rounds, T."""
        return self.known_at.size


def run_rule(rule: Policy, state: State, world: World, told: Steps) -> Run:
    """Run a rule, compiled where it can be."""
    found = _run_compiled(rule, state, world)
    if isinstance(found, Run):
        told.add(world.n_rounds)
        return found
    return replay(rule, state, world, found, told)


def paid_by(world: World) -> Callable[[int, int], float]:
    """Return what an arm pays in a round: where rewards are 0 and 1, as in compiled runs."""
    if not isinstance(world.truth, Bernoulli):
        return _drawn(world)
    pay = world.paying.random(world.n_rounds)
    return _bernoulli(np.ascontiguousarray(np.atleast_2d(world.truth.mean)), pay)


def _run_compiled(rule: Policy, state: State, world: World) -> Run | Callable[[int, int], float]:
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


def _drawn(world: World) -> Callable[[int, int], float]:
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
    rule: Policy, state: State, world: World, pay: Callable[[int, int], float], told: Steps
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
