"""Beliefs before each round: the subjective marginals r_i(h^t) and P*, conjugate or by a model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.arguments import HISTORY, PLAIN, takes
from bayesfair.base.checks import check_choice, did_you_mean, listed
from bayesfair.base.notices import Notice, unique
from bayesfair.errors import DataError, OptionError
from bayesfair.families.prior_conflict import prior_conflicts
from bayesfair.families.priors import DEFAULT_PRIOR, LearnedPrior, describe_prior, prior_table
from bayesfair.families.sufficient import check_support, choose_family, earlier_counts, seen_levels
from bayesfair.history import History
from bayesfair.kernels.laws.best_mean import beta_best_mean, gamma_best_mean
from bayesfair.kernels.laws.continuous_arms import location_scale_best_arm
from bayesfair.kernels.laws.count_laws import count_best_arm
from bayesfair.kernels.laws.finite_arms import finite_best_arm
from bayesfair.kernels.log.conjugate import BeliefTable, iter_parameters, run_parameters
from bayesfair.rewards import Rewards

if TYPE_CHECKING:
    import xarray as xr

__all__ = [
    "Beliefs", "belief_start", "beliefs", "best_of_laws", "coded_rewards", "iter_beliefs",
    "marginal",
]  # fmt: skip

_CHUNK_VALUES = 2_000_000


@dataclass(frozen=True, eq=False, repr=False)
class Beliefs:
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
        if self.family == "normal":
            mean, kappa, a, b = np.moveaxis(table, -1, 0)
            # the mean itself is Student t, narrower than the next reward
            scale = np.sqrt(b / (a * kappa))
            rows = location_scale_best_arm(2 * a, mean, scale)
        else:
            rows = np.empty(table.shape[:-1])
            for t, row in enumerate(table):
                again = t > 0 and np.array_equal(row, table[t - 1])
                rows[t] = rows[t - 1] if again else self._best_mean(row)
        return xr.DataArray(
            rows, dims=("round", "arm"), coords=self.best_arm_probability.coords,
            name="best_mean_probability",
        )  # fmt: skip

    def _best_mean(self, row: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.family == "bernoulli":
            return beta_best_mean(row[:, 0], row[:, 1])
        if self.family == "poisson":
            return gamma_best_mean(row[:, 0], row[:, 1])
        from bayesfair.kernels.laws.dirichlet_mean import dirichlet_best_mean

        # the third conjugate family is Finite, which has a support; other rewards have none
        return dirichlet_best_mean(row, self.rewards.support)  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        n = self.best_arm_probability.sizes["round"]
        return f"Beliefs({self.family}, {n} rounds, prior {self.prior})"


def coded_rewards(history: History, family: str, support: NDArray[np.float64]) -> Any:
    """Return the rewards as the beliefs' update takes them, after checking that they fit.

    Raises
    ------
    DataError
        Naming the first reward that the family cannot hold.
    """
    reward = history.reward
    seen = ~np.isnan(reward)
    if family == "finite":
        place = np.searchsorted(support, np.where(seen, reward, support[0]))
        place = np.minimum(place, len(support) - 1)
        bad = seen & (support[place] != reward)
        allowed = f"one of the levels {listed([f'{v:g}' for v in support])}"
        coded: Any = np.where(seen, place.astype(np.float64), np.nan)
    elif family == "bernoulli":
        bad, allowed, coded = seen & (reward != 0) & (reward != 1), "0 or 1", reward
    elif family == "poisson":
        bad = seen & ((reward < 0) | (reward != np.rint(reward)))
        allowed, coded = "whole numbers from 0 up", reward
    else:
        bad, allowed, coded = np.zeros(len(reward), dtype=bool), "any number", reward
    if bad.any():
        t = int(np.flatnonzero(bad)[0])
        raise DataError(
            f"reward of {history.where(t)} is {reward[t]:g}; family={family!r} needs {allowed} "
            f"({int(bad.sum())} such rounds). "
            + (
                "List all values that a reward can take: support=."
                if family == "finite"
                else "Ratings: 'finite'; counts: 'poisson'; measurements: 'normal'."
            )
        )
    return coded


def belief_start(
    arms: tuple[str, ...], family: str, prior: Any, first: History | None, support: Any = None
) -> tuple[BeliefTable, NDArray[np.float64]]:
    """Return the beliefs before the first round, and the table of the prior.

    Of measurements without a `prior` both are in the unit that the first rewards will tell.
    """
    if support is not None:
        if family not in ("auto", "finite"):
            raise OptionError(
                f"support= lists the values of family='finite'; family={family!r} has its own."
            )
        family = "finite"
    check_choice(family, "family", tuple(DEFAULT_PRIOR))
    levels = np.empty(0)
    if family == "finite":
        given = check_support(support) if support is not None else None
        levels = seen_levels(levels if first is None else first.reward) if given is None else given
    table = prior_table(prior, family, arms, len(levels) or None)
    if first is not None and family == "bernoulli":
        table = table + earlier_counts(first, family, whole=False)
    elif first is not None:
        earlier_counts(first, family, whole=False)
    nothing = np.empty(0)
    start = BeliefTable(
        table,
        nothing.astype(np.int64),
        nothing.astype(np.int32),
        nothing,
        levels,
        from_data=family == "normal" and prior is None,
        n_same=np.zeros(len(arms), np.int64),
    )
    return start, table


def marginal(
    family: str, parameters: NDArray[np.float64], support: NDArray[np.float64], arms: Any
) -> Rewards:
    """Return the posterior predictive reward laws at conjugate parameters ``(..., k, p)``.

    Beta-Bernoulli, Dirichlet-finite, Gamma-Poisson (negative binomial), and normal with unknown
    mean and variance (Student t with 2a degrees of freedom).
    """
    from bayesfair import rewards

    if family == "bernoulli":
        total = parameters.sum(axis=-1)
        return rewards.Bernoulli(parameters[..., 0] / total, parameters[..., 1] / total, arms=arms)
    if family == "finite":
        pmf = parameters / parameters.sum(axis=-1, keepdims=True)
        return rewards.Finite(support=support, pmf=pmf, arms=arms)
    if family == "poisson":
        shape, rate = parameters[..., 0], parameters[..., 1]
        return rewards.NegativeBinomial(shape, rate / (rate + 1), arms=arms)
    mean, kappa, a, b = np.moveaxis(parameters, -1, 0)
    scale = np.sqrt(b * (kappa + 1) / (a * kappa))
    return rewards.StudentT(2 * a, mean, scale, arms=arms)


def iter_beliefs(
    history: History,
    family: str,
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
    family : str
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
    coded = coded_rewards(history, family, start.support)
    for a, b, parameters, changed in iter_parameters(
        family, start, arm, coded, history.known_at, size
    ):
        yield a, b, marginal(family, parameters, start.support, labels), parameters, changed


def best_of_laws(rewards: Rewards, n_arms: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return P* of an arm of each law, where several arms have one; 0 arms: NaN.

    Parameters
    ----------
    rewards : Finite, NegativeBinomial or StudentT
        The laws, batch ``(n,)``.
    n_arms : (1 or n, L) array of int
        How many arms have each.
    """
    from bayesfair import rewards as families

    if isinstance(rewards, families.Finite):
        return finite_best_arm(rewards.pmf, n_arms)
    if isinstance(rewards, families.NegativeBinomial):
        return count_best_arm(rewards.mean, rewards.n, n_arms)
    assert isinstance(rewards, families.StudentT)
    return location_scale_best_arm(rewards.df, rewards.loc, rewards.scale, n_arms)


@takes(history=HISTORY, family=PLAIN)
def beliefs(
    history: History,
    *,
    family: str = "auto",
    prior: Any = None,
    support: Any = None,
    model: Any = None,
    seed: Any = None,
    **model_options: Any,
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
        (`bayesfair.families.priors.LearnedPrior`), in each round from those known by then.
    support : (L,) array, optional
        Levels of a finite reward, numbers; default those seen (which looks ahead, and is a notice).
        With it, ``"auto"`` is ``"finite"``.
    model : str or callable, optional
        A PyMC model instead: fitted at a few rounds, its draws carried between them by importance
        weights (`bayesfair.inference.beliefs_by_fits.sequential_beliefs`).
    seed : int or Generator
        Required with `model`.
    **model_options
        Of `sequential_beliefs`.

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

    notices: list[str] = []
    if model is not None:
        from bayesfair.inference.beliefs_by_fits import sequential_beliefs

        if seed is None:
            raise OptionError("seed= is required with model=: beliefs are drawn.")
        from bayesfair.inference.contract import family_of_models

        family_of_models(family, model)
        given = {"prior": prior, "support": support}
        model_options |= {name: value for name, value in given.items() if value is not None}
        found = sequential_beliefs(history, model=model, seed=seed, **model_options)
        best = np.asarray(found.best_arm_probability)
        rewards, name, words, table = found.rewards, found.family, found.prior, None
        notices += found.notices
        details: Any = found
    else:
        if model_options:
            name = next(iter(model_options))
            hint = did_you_mean(name, ("family", "prior", "support", "model", "seed"))
            raise OptionError(
                f"beliefs has no option {name!r}.{hint} (Other options are passed to the model, "
                "and no model= was given.)",
                kind="unknown_option",
                column=name,
            )
        if family == "auto" and support is not None:
            family = "finite"
        if family == "auto":
            family, note = choose_family(history)
            notices.append(note)
        start, prior_rows = belief_start(history.arms, family, prior, history, support)
        if family == "finite" and support is None:
            notices.append(Notice(
                f"The levels {listed([f'{v:g}' for v in start.support])} are those seen in the "
                "log, which looks ahead; give support= to fix them.",
                kind="levels_seen", column="support",
            ))  # fmt: skip
        chunks = list(_whole(history, family, start))
        table = np.concatenate(chunks) if chunks else np.empty((0, *start.parameters.shape))
        rewards = marginal(family, table, start.support, history.arms)
        best = rewards.best_arm_probability(offered=history.offered)
        end = run_parameters(
            family, start, history.arm, coded_rewards(history, family, start.support),
            history.known_at, everything=True,
        )  # fmt: skip
        learned = LearnedPrior(end.early_reward) if start.from_data else None
        if learned is not None:
            prior_rows = learned.table(history.n_arms)
            notices.append(learned.notice((0, end.n_learning - 1)))
        notices += prior_conflicts(
            prior_rows, end.parameters, family, history.arms, start.support,
            learned=learned is not None,
        )  # fmt: skip
        name, words = family, describe_prior(prior_rows, family, history.arms, learned)
        details = None
    labelled = xr.DataArray(
        best,
        dims=("round", "arm"),
        coords={"round": np.arange(history.n_rounds), "arm": list(history.arms)},
        name="best_arm_probability",
    )
    return Beliefs(rewards, labelled, name, words, table, unique(notices), details)


def _whole(history: History, family: str, start: BeliefTable) -> Iterator[NDArray[np.float64]]:
    coded = coded_rewards(history, family, start.support)
    for _, _, parameters, _ in iter_parameters(
        family, start, history.arm, coded, history.known_at, 65_536
    ):
        yield parameters
