"""What a reward family is: one object that holds its law, its conjugate prior and its one check.

Families take arrays, never a log; what is theirs of a log stands in `bayesfair.families.logs`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesfair.base.arguments import Abstract
from bayesfair.base.checks import first_where, listed
from bayesfair.base.labels import label_order
from bayesfair.errors import DataError, OptionError
from bayesfair.kernels.log.conjugate import Rule
from bayesfair.rewards import Finite, Rewards
from bayesfair.typing import Floats

__all__ = ["TINY", "Family", "Known", "Reads", "Rule", "Tail"]

Reads = Mapping[str, Floats]
"""Posterior draws of the variables in `Family.reads`, by name."""

TINY = 1e-300
"""What a probability or a rate of a draw is raised to, so that its logarithm is finite."""


class Known(NamedTuple):
    """Sufficient statistics of the known rewards, whatever the family.

    Attributes
    ----------
    pulls, total, spread : (k,) arrays
        Number of known rewards, their sum, and the sum of squared deviations from their mean.
    added : (k, p) array
        What they add to the parameters of a conjugate prior (see `Family.added`).
    """

    pulls: Floats | NDArray[np.int64]
    total: Floats
    spread: Floats
    added: Floats


class Tail(NamedTuple):
    """How far some rewards of an arm lie in a tail of the prior predictive."""

    p: float
    arm: int
    what: str
    """Was observed."""


@runtime_checkable
class _WithMean(Protocol):
    @property
    def mean(self) -> Floats: ...


class Family(Abstract, ABC):
    """A reward family with conjugate beliefs; to add one, see `bayesfair.families`.

    A table of parameters has shape ``(..., k, p)``: one row per arm, in the order of `parameters`;
    with levels one column per level. Rewards are *coded* before they are learned from: as they
    are, or as the position of their level.
    """

    name: str
    """As ``family=`` tells it."""
    parameters: tuple[str, ...]
    """Names of the parameters of the conjugate prior; with levels the one of each level."""
    default: tuple[float, ...]
    """Their values without ``prior=``."""
    law: str
    """The prior in words, with ``{}`` where its parameters go."""
    reads: tuple[str, ...]
    """Variables that give an arm's reward law; those a PyMC model has to declare."""
    model: str
    """Name of the model whose posterior is the closed form."""
    allowed: str
    """The rewards it can hold, in words."""

    free: tuple[str, ...] = ()
    """Parameters that need not be above 0."""
    containers: tuple[str, ...] = ()
    """Data of the shipped PyMC model that hold the prior, in the order of `parameters`."""
    has_levels: bool = False
    """Whether rewards take the values of a support, one parameter each."""
    compiled: str = ""
    """Name of the compiled rule by which beliefs learn, where there is one."""
    binary: bool = False
    """Whether rewards are 0 or 1, for which compiled kernels stream whole logs and runs."""
    learns_prior: bool = False
    """Whether the prior is by default learned from the first known rewards."""
    continuous: bool = False
    """Whether laws are densities."""
    cost_of_law: float = 4000.0
    """Nanoseconds of P* of an arm in a round, or under a draw, to estimate what an audit takes."""
    cost_of_pair: float = 100.0
    """Nanoseconds of the distance of two arms in a round."""
    constant: float = 2.0
    """Smooth fairness of SD_TS under total variation: it is (constant, 0)-fair in every round."""

    # -- rewards ------------------------------------------------------------------------------

    @abstractmethod
    def holds(self, reward: Floats, support: Floats) -> NDArray[np.bool_]:
        """Return which rewards the family can hold, ``(n,)``; of NaN it does not matter."""

    def allows(self, support: Floats) -> str:
        """Return the rewards it can hold, in words, and what else could be done."""
        return self.allowed

    def coded(
        self,
        reward: Floats,
        support: Floats,
        where: Callable[[int], str],
        *,
        column: str | None = "reward",
        rows: NDArray[np.int64] | None = None,
        remedy: str | None = None,
    ) -> Floats:
        """Return the rewards as beliefs learn from them, after checking that they fit.

        Parameters
        ----------
        reward : (n,) array
            NaN = not observed.
        support : (L,) array
            Levels of a finite reward; empty for other families.
        where : callable
            ``where(i)`` names reward i in words, such as ``reward of round 3 (row 5 of log.csv)``.
        column : str, optional
            Column of the source, for the error.
        rows : (n,) array of int, optional
            Rows of the source, for the error.
        remedy : str, optional
            What can be done, where it is not to choose another family.

        Raises
        ------
        DataError
            Naming the first reward that the family cannot hold.
        """
        if bad := first_where(~(self.holds(reward, support) | np.isnan(reward))):
            t, n = bad
            raise DataError(
                f"{where(t)} is {reward[t]:g}; family={self.name!r} needs {self.allows(support)} "
                f"({n} such {'reward' if n == 1 else 'rewards'}). {remedy or self.remedy}",
                kind="not_in_family",
                row=None if rows is None else int(rows[t]),
                column=column,
                value=float(reward[t]),
            )
        return self.code(reward, support)

    @property
    def remedy(self) -> str:
        """What a log with other rewards needs."""
        others = {
            "ratings": "finite", "counts": "poisson", "measurements": "normal",
        }  # fmt: skip
        named = [f"{what}: family={name!r}" for what, name in others.items() if name != self.name]
        return f"{'; '.join(named)}.".capitalize()

    def code(self, reward: Floats, support: Floats) -> Floats:
        """Return rewards that fit as beliefs learn from them; NaN stays."""
        return reward

    def levels(self, support: ArrayLike | None, reward: Floats) -> Floats:
        """Return the levels of a finite reward, ascending; none for other families.

        Raises
        ------
        OptionError
            If a `support` is given to a family that has none.
        """
        if support is not None:
            raise OptionError(
                f"support= lists the values of family='finite'; family={self.name!r} has its own.",
                kind="option_value",
                column="support",
            )
        return np.empty(0)

    # -- conjugate beliefs --------------------------------------------------------------------

    @property
    def rule(self) -> Rule:
        """How a known reward changes the parameters of its arm: a compiled rule, or `added`."""
        return self.compiled or self.added

    @abstractmethod
    def added(self, coded: Floats) -> Floats:
        """Return what each reward adds to the parameters of its arm, ``(n, p)``."""

    def sums(self, arm: NDArray[np.int32], coded: Floats, shape: tuple[int, int]) -> Floats:
        """Return what observed rewards add to a table of this shape, per arm."""
        table = np.zeros(shape)
        for j, column in enumerate(self.added(coded).T):
            table[:, j] = np.bincount(arm, weights=column, minlength=shape[0])
        return table

    def posterior(self, prior: Floats, known: Known) -> Floats:
        """Return the table of the posterior, ``(k, p)``."""
        return prior + known.added

    def joined(self, prior: Floats, found: Floats) -> Floats:
        """Return the table after rounds that made `found` of a table of zeros, ``(k, p)``."""
        return prior + found

    @abstractmethod
    def predictive(self, table: Floats, support: Floats, arms: Sequence[str]) -> Rewards:
        """Return the subjective marginals r_i(h^t): the laws of the next reward."""

    def mean(self, table: Floats, support: Floats) -> Floats:
        """Return the expected mean reward of each arm, ``(..., k)``."""
        laws = self.predictive(table, support, ())
        if not isinstance(laws, _WithMean):
            raise self._lacks("mean", "the laws that predictive() returns have no mean either")
        return np.asarray(laws.mean)

    @abstractmethod
    def best_mean(self, table: Floats, support: Floats) -> Floats:
        """Return P(the arm's mean is the largest), ``(k,)``, by quadrature."""

    def best_means(self, tables: Floats, support: Floats) -> Floats:
        """Return `best_mean` for a batch of tables, ``(n, k)``."""
        rows = np.empty(tables.shape[:-1])
        for t, table in enumerate(tables):
            again = t > 0 and np.array_equal(table, tables[t - 1])
            rows[t] = rows[t - 1] if again else self.best_mean(table, support)
        return rows

    def best_of_laws(self, rewards: Rewards, n_arms: NDArray[np.int64]) -> Floats:
        """Return P* of an arm of each predictive law, where several arms have one; 0 arms: NaN.

        Parameters
        ----------
        rewards : Rewards
            What `predictive` returned, batch ``(n,)``.
        n_arms : (1 or n, L) array of int
            How many arms have each.
        """
        copies = np.maximum(n_arms.max(axis=0), 1)
        law = np.repeat(np.arange(len(copies)), copies)
        first = np.cumsum(copies) - copies
        every = rewards.taken(law, [str(i) for i in range(len(law))])
        offered = np.arange(len(law)) - first[law] < n_arms[:, law]
        return every.best_arm_probability(offered=offered)[..., first]

    # -- posterior draws ----------------------------------------------------------------------

    def draw(
        self,
        table: Floats,
        shape: tuple[int, ...],
        rng: np.random.Generator,
        arms: Sequence[str],
    ) -> dict[str, Floats]:
        """Return `draws` that go with an arm's label, not with its place among the arms."""
        order = label_order(arms)
        drawn = self.draws(table[order], shape, rng)
        if np.array_equal(order, np.arange(len(order))):
            return drawn
        back = np.argsort(order)
        return {name: values.take(back, axis=len(shape)) for name, values in drawn.items()}

    def atoms(self, parameters: Floats) -> tuple[Floats, Floats] | None:
        """Return a few means and their probabilities that stand for the law of one arm's mean.

        Drawn for many arms with the same ``parameters`` (p,) they do in place of `draws`. None
        where rewards are not 0 or 1.
        """
        return None

    @abstractmethod
    def draws(
        self, table: Floats, shape: tuple[int, ...], rng: np.random.Generator
    ) -> dict[str, Floats]:
        """Return independent posterior draws of `reads`, ``(*shape, k)`` each (or ``(.., L)``)."""

    @abstractmethod
    def truth(self, reads: Reads, arms: Sequence[str], level: Floats | None) -> Rewards:
        """Return the reward laws of the arms at drawn parameters, each ``(..., k)``."""

    def log_likelihood(
        self,
        reads: Reads,
        arm: NDArray[np.int64],
        reward: Floats,
        time_bin: NDArray[np.int64],
        level: Floats | None,
    ) -> Floats:
        """Return log p(reward | parameters of the arm) per draw and cell, ``(..., C)``.

        Parameters
        ----------
        reads : mapping of name to array
            Draws, ``(..., bin, k)`` or ``(..., bin, k, L)``; a model without time bins has one.
        arm, reward, time_bin : (C,) arrays
            The cells.
        level : (L,) array or None
            Ascending levels of a finite reward.
        """
        cells = {name: values[..., time_bin, arm] for name, values in reads.items()}
        return np.maximum(self.truth(cells, (), level).log_prob(reward), np.log(TINY))

    def log_prior(self, reads: Reads, prior: Floats) -> Floats:
        """Return the log density of the conjugate prior at draws ``(..., k)``, ``(...)``.

        Raises
        ------
        OptionError
            If the family does not say.
        """
        raise self._lacks("log_prior", "powers of the prior need it")

    # -- predictive laws from weighted draws ------------------------------------------------------

    def cells(
        self, ends: Sequence[Reads], level: Floats | None, reward: Floats
    ) -> tuple[Floats, Floats]:
        """Return the cells on which mixtures of laws over draws are kept: values, and edges.

        Raises
        ------
        OptionError
            If the family has none: beliefs under a PyMC model then have no predictive law.
        """
        raise self._lacks("cells", "beliefs under a PyMC model need them; leave model= out")

    def mass(self, reads: Reads, edge: Floats) -> Floats:
        """Return the probability of each cell under each draw, ``(N, k, L)``."""
        raise self._lacks("mass", "beliefs under a PyMC model need it; leave model= out")

    def of_mass(self, mass: Floats, level: Floats, arms: Sequence[str]) -> Rewards:
        """Return the laws with these probabilities of the cells, ``(T, k, L)``."""
        mass = np.maximum(mass, 0.0)
        mass /= mass.sum(axis=-1, keepdims=True)
        return Finite(level, mass, arms=tuple(arms))

    # -- what else is known of it -----------------------------------------------------------------

    def tails(
        self, prior: Floats, posterior: Floats, support: Floats, level: float, *, learned: bool
    ) -> Iterator[Tail]:
        """Yield how far the rewards of each arm lie in the tails of the prior predictive.

        Parameters
        ----------
        prior, posterior : (k, p) arrays
            Before and after the rewards, which they tell.
        support : (L,) array
            Levels.
        level : float
            Significance of all tests together: a tail surely above its share may be given as 1.
        learned : bool
            Whether the prior was learned from the first rewards: their spread then holds the
            distance between arms too, and arms that spread less are no surprise.
        """
        return iter(())

    def n_values(self, n_levels: int) -> int | None:
        """Return how many values a reward can take, or None where there is no end of them."""
        return None

    def _lacks(self, method: str, why: str) -> OptionError:
        return OptionError(
            f"family {self.name!r} does not define {method}(): {why}.",
            kind="family_lacks",
            column="family",
            value=self.name,
        )

    def __repr__(self) -> str:
        return f"<family {self.name!r}: {self.law.format(listed(self.parameters))}>"
