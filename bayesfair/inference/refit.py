"""Fits of one model to growing parts of a history: compiled once, the data swapped."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.notices import Notice
from bayesfair.errors import ConvergenceError, OptionError
from bayesfair.families import FAMILIES, Family
from bayesfair.families.finite import seen_levels
from bayesfair.families.learned import LearnedPrior
from bayesfair.families.logs import prior_of
from bayesfair.history import History
from bayesfair.history.cells import bins_along, time_bins
from bayesfair.inference.compiled import data_of, graph_of
from bayesfair.inference.contract import Contract, check_reads
from bayesfair.inference.nuts import CompiledModel, divergence_notices, refusal
from bayesfair.inference.sampler import Sampler
from bayesfair.typing import Floats

__all__ = ["Draws", "Refitter", "known_before"]


_MOST_DRAWN = 200_000_000
"""Values of the variables to read in the draws of one fit."""

_KEPT = 64
"""With up to so many bins what is computed of each is kept."""


def known_before(history: History, order: NDArray[np.int64], m: int, t: int) -> History:
    """Return the rounds before t with only the first m observations of `order` known."""
    part = history.before(t) if t < history.n_rounds else copy(history)
    known = np.zeros(history.n_rounds, dtype=bool)
    known[order[:m]] = True
    reward = np.where(known[:t], part.reward, np.nan)
    reward.flags.writeable = False
    object.__setattr__(part, "reward", reward)
    return part


@dataclass(frozen=True)
class Draws:
    """Draws of the variables to read from one fit.

    Attributes
    ----------
    reads : dict of name to array
        ``(N, bin, k)``, or ``(N, bin, k, L)`` for ``probability``; bins of time, contexts or
        rounds, one without these.
    efficiency : float
        Smallest bulk effective sample size of these variables over N.
    """

    family: Family
    arms: tuple[str, ...]
    reads: dict[str, Floats]
    efficiency: float
    level: Floats | None
    cache: dict[Any, Floats] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Number of draws, N."""
        return len(next(iter(self.reads.values())))

    def at_bin(self, time_bin: int) -> dict[str, Floats]:
        """Return the parameters in one time bin, ``(N, k)`` (``(N, k, L)``) each."""
        return {name: value[:, time_bin] for name, value in self.reads.items()}

    def means(self, time_bin: int) -> Floats:
        """Return the mean reward of each arm per draw, ``(N, k)``."""
        # every family of a fit has a mean; other rewards need none
        return self._kept(("mean", time_bin), lambda law: np.asarray(law.mean))

    def best(self, time_bin: int, offered: NDArray[np.bool_] | None) -> Floats:
        """Return P* of each draw, ``(N, k)``; NaN for arms that are not on offer."""
        key = (time_bin, None if offered is None else offered.tobytes())
        return self._kept(key, lambda law: law.best_arm_probability(offered=offered))

    def _kept(self, key: Any, of: Callable[[Any], Floats]) -> Floats:
        if key in self.cache:
            return self.cache[key]
        time_bin = key[0] if key[0] != "mean" else key[1]
        found = of(self.family.truth(self.at_bin(time_bin), self.arms, self.level))
        if next(iter(self.reads.values())).shape[1] <= _KEPT:
            self.cache[key] = found
        return found


class Refitter:
    """Fits a model to the first m observations of a history, for any m."""

    def __init__(
        self,
        history: History,
        contract: Contract,
        options: dict[str, Any],
        *,
        draws: int,
        seed: int,
        cores: int | None,
        sampler: Sampler | None = None,
    ) -> None:
        self.history = history
        self.contract = contract
        self.options = dict(options)
        self.draws, self.seed, self.cores, self.sampler = draws, seed, cores, sampler
        self.bin_start: NDArray[np.int64] | None = None
        #: dim of the variables to read beside the arms, and the place of every round along it
        self.dim: str | None = None
        self.bins: NDArray[np.int64] | None = None
        self.n_compiled = 0
        self.learned: LearnedPrior | None = None
        self.notices: list[Notice] = []
        self._compiled: Any = None
        self._fix_scales()

    def _fix_scales(self) -> None:
        """Fix what a model would take from the data it sees: the same parameters at every state."""
        known = self.contract.options
        if "bin_start" in known:
            n_bins = self.options.pop("n_bins", known.get("n_bins", 10))
            self.bin_start = time_bins(self.history.n_rounds, n_bins, self.options.get("bin_start"))
            self.options["bin_start"] = self.bin_start
        family = FAMILIES[self.contract.family]
        shipped = self.contract.build.__module__ == f"bayesfair.models.{family.model}"
        if shipped and family.learns_prior and self.options.get("prior") is None:
            self.options["prior"], self.learned = prior_of(self.history, family, None)
        if "support" in known and self.options.get("support") is None:
            self.options["support"] = seen_levels(self.history.reward)
        if self.history.context is not None:  # what is asked of a context may be of a later round
            self.dim = check_reads(
                self.contract, self.contract.build(self.history, **self.options), self.history
            )
        elif self.bin_start is not None:
            self.dim = "bin"
        self.bins = bins_along(self.dim, self.history, self.bin_start)
        values = self.draws * self.history.n_rounds * self.history.n_arms
        if self.dim == "round" and values > _MOST_DRAWN:
            raise OptionError(
                f"model {self.contract.name!r} has rewards by round: {self.draws} draws of "
                f"{self.history.n_rounds} rounds and {self.history.n_arms} arms are more than fit. "
                "Give READS the dims (context, arm), fewer draws=, or fewer rounds.",
                kind="too_large", column="draws", value=self.draws,
            )  # fmt: skip

    def fit(self, m: int, t: int, order: NDArray[np.int64]) -> Draws:
        """Return draws of the posterior after the first m observations, before round t.

        Raises
        ------
        ConvergenceError
            Naming the round.
        """
        if self.dim in ("context", "round"):
            t = self.history.n_rounds
        history = known_before(self.history, order, m, t)
        model = self.contract.build(history, **self.options)
        check_reads(self.contract, model, history)
        if self._compiled is None or not self._compiled.graph.same_as(graph_of(model)):
            self._compiled = CompiledModel(model, self.sampler)
            self.n_compiled += 1
        tree, found = self._compiled.fit(
            draws=self.draws, seed=(self.seed + 7919 * m) % 2**31, cores=self.cores,
            data=data_of(model),
        )  # fmt: skip
        reason = refusal(found, returnable=False)
        if reason:
            raise ConvergenceError(
                f"{self.contract.name}, beliefs before {self.history.where(min(t, self._last))} "
                f"({m} rewards known): {reason}",
                tree,
            )
        self.notices += divergence_notices(found, "beliefs_model")
        return self._read(tree, found)

    @property
    def _last(self) -> int:
        return max(0, self.history.n_rounds - 1)

    def _read(self, tree: Any, found: dict[str, Any]) -> Draws:
        posterior = tree["posterior"].to_dataset()
        family = FAMILIES[self.contract.family]
        reads, level = {}, None
        for name in family.reads:
            value = posterior[name]
            along = [dim for dim in ("bin", "context", "round") if dim in value.dims]
            dims = [*along, "arm"] + ["level"] * family.has_levels
            array = np.asarray(value.transpose("chain", "draw", *dims).values, dtype=np.float64)
            flat = array.reshape(-1, *array.shape[2:])
            reads[name] = flat if along else flat[:, None]
        n_bins = reads[family.reads[0]].shape[1]
        if n_bins > 1 and self.bins is None:
            raise OptionError(
                f"model {self.contract.name!r} has a dim 'bin' but no option bin_start; beliefs "
                "before each round need bins that do not depend on how many rounds are known."
            )
        if family.has_levels:
            level = np.asarray(posterior["level"].values, dtype=np.float64)
        ess = [v[2] for v in found["values"] if v[0].split("[")[0] in family.reads]
        size = len(reads[family.reads[0]])
        return Draws(
            family, self.history.arms, reads, min(1.0, min(ess, default=size) / size), level
        )
