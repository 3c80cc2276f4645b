"""Beliefs before each round: the subjective marginals r_i(h^t) and P*, conjugate or by a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesfair.base.arguments import HISTORY, PLAIN, constructed, takes
from bayesfair.base.checks import listed, no_seed
from bayesfair.base.html import Shown
from bayesfair.base.notices import Notice, unique
from bayesfair.base.options import no_effect
from bayesfair.base.progress import tells
from bayesfair.errors import OptionError
from bayesfair.families import FAMILIES, Family, family_named
from bayesfair.families.conflict import prior_conflicts
from bayesfair.families.learned import LearnedPrior
from bayesfair.families.logs import choose_family, coded_of, earlier_counts
from bayesfair.families.priors import describe_prior, prior_table
from bayesfair.history import History
from bayesfair.history.thinned import refuse_thinned
from bayesfair.inference.beliefs_by_fits import sequential_beliefs
from bayesfair.inference.contract import checked_options, family_of_models
from bayesfair.inference.sampler import Sampler
from bayesfair.kernels.log.conjugate import (
    BeliefTable,
    iter_parameters,
    run_parameters,
    start_table,
)
from bayesfair.rewards import Rewards
from bayesfair.typing import Model, Progress, Seed

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Beliefs", "belief_start", "beliefs", "iter_beliefs"]

_CHUNK_VALUES = 2_000_000


@constructed
@dataclass(frozen=True, eq=False, repr=False)
class Beliefs(Shown):
    """Beliefs before each round of a history.

    Attributes
    ----------
    rewards : Rewards
        Subjective marginals (posterior predictive reward laws), batch ``(round,)``.
    best_arm_probability : xarray.DataArray
        P*, dims ``(round, arm)``; NaN = not on offer.
    family, prior : str
        Reward family; the prior in words.
    parameters : (T, k, p) array or None
        Parameters of the conjugate beliefs; under a learned prior they stand in the unit 1, the
        same for every arm, as long as no two known rewards differ.
    notices : tuple of str
        How the family was chosen, and what else a reader should know.
    details : object
        For beliefs under a PyMC model: number of fits, k-hat, Monte-Carlo errors.
    """

    rewards: Rewards
    best_arm_probability: xr.DataArray
    family: str
    prior: str
    parameters: NDArray[np.float64] | None
    notices: tuple[str, ...]
    details: Any = None

    @property
    def best_mean_probability(self) -> xr.DataArray:
        """P(the arm's mean is the largest), dims ``(round, arm)``; Thompson's, not P*.

        Raises
        ------
        OptionError
            For beliefs under a PyMC model, which are draws.
        ConvergenceError
            If the probabilities of the quadrature miss 1 by more than 1e-9.
        """
        import xarray as xr

        table = self.parameters
        if table is None:
            raise OptionError(
                "best_mean_probability is available for conjugate beliefs; for those under a model "
                "compare the draws of bayesfair.fit.",
                kind="no_closed_form",
                column="model",
            )
        support = getattr(self.rewards, "support", np.empty(0))
        rows = FAMILIES[self.family].best_means(table, support)
        return xr.DataArray(
            rows, dims=("round", "arm"), coords=self.best_arm_probability.coords,
            name="best_mean_probability",
        )  # fmt: skip

    def __repr__(self) -> str:
        n = self.best_arm_probability.sizes["round"]
        return f"Beliefs({self.family}, {n} rounds, prior {self.prior})"


def belief_start(
    arms: tuple[str, ...], family: Family, prior: Any, first: History | None, support: Any = None
) -> tuple[BeliefTable, NDArray[np.float64]]:
    """Return the beliefs before the first round, and the table of the prior.

    Of measurements without a `prior` both are in the unit that the first rewards will tell.
    """
    levels = family.levels(support, np.empty(0) if first is None else first.reward)
    table = begin = prior_table(prior, family, arms, len(levels) or None)
    if first is not None:
        earlier = earlier_counts(first, family, whole=False)
        begin = table + earlier if family.binary else table
    return start_table(begin, levels, from_data=family.learns_prior and prior is None), table


def iter_beliefs(
    history: History,
    family: Family,
    start: BeliefTable,
    *,
    laws: NDArray[np.int64] | None = None,
    pairs: bool = True,
) -> Iterator[tuple[int, int, Rewards, NDArray[np.float64], NDArray[np.bool_]]]:
    """Yield (start, stop, marginals batch (n,), parameters (n, k, p), changed (n,)) in chunks.

    Parameters
    ----------
    history : History
        The rounds.
    family : Family
        Reward family.
    start : BeliefTable
        Before them, by arm, or by law.
    laws : (n_arms,) array of int, optional
        Law of each arm, where `start` holds one row for all arms that share one.
    pairs : bool
        Whether chunks are short enough for every pair in every round.
    """
    k, p = start.parameters.shape
    arm = history.arm if laws is None else laws[history.arm].astype(np.int32)
    labels = history.arms if laws is None else ()
    size = max(1, min(16_384, _CHUNK_VALUES // max(1, k * (max(p, k) if pairs else p))))
    coded = coded_of(history, family, start.support)
    for a, b, parameters, changed in iter_parameters(
        family.rule, start, arm, coded, history.known_at, size
    ):
        yield a, b, family.predictive(parameters, start.support, labels), parameters, changed


@takes(history=HISTORY, family=PLAIN)
@tells
def beliefs(
    history: History,
    *,
    family: str = "auto",
    prior: Any = None,
    support: ArrayLike | None = None,
    model: Model | None = None,
    seed: Seed | None = None,
    draws: int = 4000,
    min_ess: float = 200.0,
    max_fits: int = 100,
    cores: int | None = None,
    model_options: Mapping[str, Any] | None = None,
    sampler: Mapping[str, Any] | None = None,
    progress: Progress = None,
) -> Beliefs:
    """Return what was believed before each round.

    Parameters
    ----------
    history : History
        The log; round t's beliefs use the rewards known by then, never round t itself.
    family : str
        ``"auto"``, ``"bernoulli"``, ``"finite"``, ``"poisson"`` or ``"normal"``.
    prior : optional
        Conjugate parameters for all arms, per arm, or by label; with `model`, its own option. That
        of measurements is learned from the first 20 known rewards by default
        (`bayesfair.families.learned.LearnedPrior`), in each round from those known by then.
    support : (L,) array, optional
        Levels of a finite reward, numbers; default those seen (which looks ahead, and is a notice).
        With it, ``"auto"`` is ``"finite"``.
    model : str or callable, optional
        A PyMC model instead: fitted at a few rounds, its draws carried between them by importance
        weights (`bayesfair.inference.beliefs_by_fits.sequential_beliefs`).
    seed : int or Generator
        Required with `model`.
    draws, min_ess, max_fits, cores
        Of the fits of `model`, as in `sequential_beliefs`.
    model_options : mapping, optional
        Options of the model's `build`.
    sampler : mapping, optional
        As in `bayesfair.fit`.
    progress : bool or callable, optional
        How many draws of the fits are done, as in `bayesfair.audit`.

    Returns
    -------
    Beliefs

    Raises
    ------
    DataError, OptionError
        Naming the reward or option and what is allowed.

    Examples
    --------
    >>> log = History(["a", "b", "a"], [1, 0, 1])
    >>> found = beliefs(log, prior=(1, 1))
    >>> found.best_arm_probability.values.round(4)
    array([[0.5   , 0.5   ],
           [0.5833, 0.4167],
           [0.6667, 0.3333]])
    """
    import xarray as xr

    refuse_thinned(history, "beliefs before each round")
    notices: list[str] = []
    options = checked_options(model_options, beliefs)
    if model is not None:
        if seed is None:
            raise no_seed("with model= beliefs are drawn")
        family_of_models(family, model)
        given = {"prior": prior, "support": support}
        options |= {name: value for name, value in given.items() if value is not None}
        found = sequential_beliefs(
            history, model=model, seed=seed, draws=draws, min_ess=min_ess, max_fits=max_fits,
            cores=cores, model_options=options, sampler=sampler,
        )  # fmt: skip
        best = np.asarray(found.best_arm_probability)
        rewards, name, words, table = found.rewards, found.family, found.prior, None
        notices += found.notices
        details: Any = found
    else:
        how = Sampler.of(sampler)
        how.refuse_without_chains("conjugate beliefs are exact, and no model= was given to sample.")
        if options:
            name = next(iter(options))
            raise OptionError(
                f"model_options has {name!r}, and no model= was given that could take it.",
                kind="unknown_option",
                column=name,
            )
        if seed is not None:
            notices.append(no_effect("seed", seed, "conjugate beliefs are exact, nothing is drawn"))
        if family == "auto" and support is not None:
            family = "finite"
        if family == "auto":
            family, note = choose_family(history)
            notices.append(note)
        of = family_named(family)
        start, prior_rows = belief_start(history.arms, of, prior, history, support)
        if of.has_levels and support is None:
            notices.append(Notice(
                f"The levels {listed([f'{v:g}' for v in start.support])} are those seen in the "
                "log, which looks ahead; give support= to fix them.",
                kind="levels_seen", column="support",
            ))  # fmt: skip
        log = history.arm, coded_of(history, of, start.support), history.known_at
        chunks = [chunk for _, _, chunk, _ in iter_parameters(of.rule, start, *log, 65_536)]
        table = np.concatenate(chunks) if chunks else np.empty((0, *start.parameters.shape))
        rewards = of.predictive(table, start.support, history.arms)
        best = rewards.best_arm_probability(offered=history.offered)
        end = run_parameters(of.rule, start, *log, everything=True)
        learned = LearnedPrior(end.early_reward) if start.from_data else None
        if learned is not None:
            prior_rows = learned.table(history.n_arms)
            notices.append(learned.notice((0, end.n_learning - 1)))
        notices += prior_conflicts(
            prior_rows, end.parameters, of, history.arms, start.support,
            learned=learned is not None,
        )  # fmt: skip
        name, words = family, describe_prior(prior_rows, of, history.arms, learned)
        details = None
    labelled = xr.DataArray(
        best,
        dims=("round", "arm"),
        coords={"round": np.arange(history.n_rounds), "arm": list(history.arms)},
        name="best_arm_probability",
    )
    return Beliefs(rewards, labelled, name, words, table, unique(notices), details)
