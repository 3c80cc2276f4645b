"""Run a decision rule on known true rewards, logging its exact selection probabilities."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypedDict, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesfair.base.arguments import COUNT, NUMBER, PLAIN, takes
from bayesfair.base.checks import (
    as_generator,
    check_count,
    check_in_range,
    check_known,
    first_where,
)
from bayesfair.base.labels import by_label
from bayesfair.base.progress import Steps, steps, tells
from bayesfair.base.workers import check_workers, spread
from bayesfair.errors import DataError, OptionError
from bayesfair.families import FAMILIES, family_named
from bayesfair.families.featured import FAMILY_OF, PRIOR_SD, Featured
from bayesfair.history import History
from bayesfair.history.context import Context, known_in_cell
from bayesfair.kernels.simulation.world import Run
from bayesfair.policies import FairSDDTS, Policy, policy_from_name
from bayesfair.rewards import Bernoulli, Rewards
from bayesfair.rewards.bernoulli import as_rewards
from bayesfair.simulation.featured import featured_start, run_featured
from bayesfair.simulation.running import World, run_rule
from bayesfair.simulation.truth import by_context, seen_in
from bayesfair.typing import Progress, Seed

__all__ = ["drifting_rewards", "simulate"]

Delay = int | ArrayLike | Callable[[np.random.Generator, int], ArrayLike] | None


class RunOptions(TypedDict, total=False):
    """Options of `simulate` that do not say how many runs there are."""

    batch: int
    delay: Delay
    offered: ArrayLike | Mapping[str, tuple[int, int]] | None
    drift: float | None
    prior: Any
    family: str | None
    contexts: ArrayLike | Mapping[str, ArrayLike] | None
    context_model: str | None
    client: Any
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
@takes(context_model=PLAIN)
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
    contexts: ArrayLike | Mapping[str, ArrayLike] | None = None,
    context_model: str | None = None,
    client: Any = None,
    progress: Progress = None,
) -> History | dict[str, History]:
    r"""Run a decision rule and return what it logged, with all its selection probabilities.

    Parameters
    ----------
    policy : Policy or str
        A rule of `bayesfair.policies`, or the name of one.
    rewards : reward family, (k,) or (T, k) array, or mapping of label to mean
        The truth. Arrays and mappings are Bernoulli means; a batch of T sets of arms (shape
        ``(T, k)``) is a truth that changes with the round. With `contexts` also a mapping of each
        of them to means.
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
    contexts : (T,) array, (T, d) array, or mapping of name to column, optional
        What is seen before each round, in every run; logged as ``History.context``.
    context_model : str, optional
        With `contexts`. ``"cells"``, the default: the rule learns and decides within each context
        by itself, as if there were no other; of `SDTS` its audit with ``context_model="cells"`` has
        regret 0. ``"linear"``, ``"probit"`` and ``"logit"``: contexts are features, and the rule
        decides by the beliefs on the coefficients of every arm that audits with this
        ``context_model`` have: `SDTS` plays P* of them, `Thompson` is linear Thompson sampling,
        `LinUCB` needs ``"linear"``. `FairSDTS` explores each arm by itself, without a guarantee
        given features. ``"none"``: it does not look at contexts.
    client : distributed.Client, optional
        Of a Dask cluster whose workers share the runs of `n_runs`; they stay the same.
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

    A rule that sees the device:

    >>> means = {"phone": {"a": 0.6, "b": 0.3}, "desk": {"a": 0.2, "b": 0.5}}
    >>> run = simulate("sd_ts", means, 400, seed=1, contexts=["phone", "desk"] * 200)
    >>> run.context.columns, run.selection_probability[:2].tolist()
    (('context',), [[0.5, 0.5], [0.5, 0.5]])

    One that learns how rewards depend on a number:

    >>> age = np.random.default_rng(1).normal(50, 10, 200)
    >>> means = np.column_stack([age / 100, 1 - age / 100])
    >>> run = simulate("sd_ts", means, 200, seed=1, contexts={"age": age}, context_model="probit")
    >>> run.context.columns
    ('age',)
    """
    n_rounds = check_count(n_rounds, "n_rounds", 0)
    context = seen_in(contexts, context_model, rewards, n_rounds)
    rewards, given = (rewards, []) if context is None else by_context(rewards, context)
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
    featured = None
    if context is not None and context_model in FAMILY_OF:
        featured = featured_start(context_model, context, truth, rule, family=family, prior=prior)
        family = FAMILY_OF[context_model]
    family = _family(truth, family)
    cells = [np.arange(n_rounds)]
    if context is not None and context_model in (None, "cells"):
        codes, names = context.cells
        cells = [np.flatnonzero(codes == c) for c in range(len(names))]
    truths = [truth[rounds] if context is not None and truth.batch_shape else truth
              for rounds in cells]  # fmt: skip
    if given and drift is None and context_model in (None, "cells"):
        truths = list(given)
    rules = [
        rule.for_run(of.n_arms, len(rounds), of, family=family)
        for rounds, of in zip(cells, truths, strict=True)
    ]
    support = (0.0, 1.0) if isinstance(truth, Bernoulli) else getattr(truth, "support", None)
    levels = support if FAMILIES[family].has_levels else None
    of_arms = None if context_model in PRIOR_SD else prior
    states = [own.start(truth.arms, family, prior=of_arms, support=levels) for own in rules]
    mask = _offered(offered, truth, n_rounds)
    batch = check_count(batch, "batch", 1)
    streams = as_generator(seed).spawn(1 if n_runs is None else check_count(n_runs, "n_runs", 1))
    told = steps("rounds", n_rounds * len(streams))
    plan = _Plan(rule.name, n_rounds, batch, delay, truth, mask, context,
                 tuple(zip(rules, states, truths, cells, strict=True)), featured)  # fmt: skip
    labels = [str(r) for r in range(len(streams))]
    if client is None:
        runs = {
            label: _one_run(label, rng, plan, told)
            for label, rng in zip(labels, streams, strict=True)
        }
        return runs["0"] if n_runs is None else runs
    check_workers(client)
    if n_runs is None:
        raise OptionError(
            "client= shares the runs of n_runs= among workers, and this is one run. Leave it out.",
            kind="unused_option", column="client",
        )  # fmt: skip
    return spread(
        client, labels, _one_run, lambda label: (streams[int(label)], plan), at_once=1,
        seen=lambda n: told.add(n * n_rounds),
    )  # fmt: skip


class _Plan(NamedTuple):
    """What all runs have in common; ``cells``: rule, start, truth and rounds of each context.

    ``featured``: beliefs on coefficients before the first round, and features of all rounds.
    """

    name: str
    n_rounds: int
    batch: int
    delay: Delay
    truth: Rewards
    mask: NDArray[np.bool_] | None
    context: Context | None
    cells: tuple[tuple[Policy, Any, Rewards, NDArray[np.intp]], ...]
    featured: tuple[Featured, NDArray[np.float64]] | None = None


def _one_run(
    label: str, rng: np.random.Generator, plan: _Plan, told: Steps | None = None
) -> History:
    """Return a run, from its own stream."""
    n_rounds, truth = plan.n_rounds, plan.truth
    known_at = _known_at(n_rounds, plan.batch, plan.delay, rng)
    deciding, paying = rng.spawn(2)
    decide = deciding.random(n_rounds)
    ran = Run(np.empty(n_rounds, np.int32), np.empty(n_rounds), np.empty((n_rounds, truth.n_arms)))
    for own, state, of, rounds in plan.cells:
        known = known_in_cell(known_at[rounds], rounds, n_rounds)
        assert known is not None
        order = np.argsort(known, kind="stable")
        here = None if plan.mask is None else plan.mask[rounds]
        world = World(of, decide[rounds], paying, here, known, order)
        steps_of = told or Steps("rounds")
        if plan.featured is not None:
            part = run_featured(own, *plan.featured, world, state.exploration, steps_of)
        else:
            part = run_rule(own, state, world, steps_of)
        ran.arm[rounds], ran.reward[rounds], ran.pi[rounds] = part
    return History(
        ran.arm, ran.reward, selection_probability=ran.pi, arms=truth.arms, known_at=known_at,
        context=plan.context, source=f"{plan.name} run {label}",
    )  # fmt: skip


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
