"""What all reward families share: labels, batches, validation of parameters, indexing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesfair.base.arguments import Abstract, takes
from bayesfair.base.checks import (
    as_generator,
    as_numbers,
    as_sequence,
    check_choice,
    check_count,
    listed,
    shown,
)
from bayesfair.base.labels import labels_of
from bayesfair.errors import ArmError, DataError, OptionError
from bayesfair.kernels.laws.divergences import DIVERGENCES
from bayesfair.typing import Floats, Seed

__all__ = ["Rewards"]


@dataclass(frozen=True, eq=False, repr=False)
class Rewards(Abstract, ABC):
    """Reward distributions of k independent arms, for one or many rounds (or draws) at once.

    Parameters of a family have shape ``(..., arm)``: the last axis is the arm, leading axes are
    a batch. Families are frozen; results are plain arrays, labelled ones come from
    `bayesfair.best_arm_probability` and its kin.

    Parameters
    ----------
    arms : sequence of str, keyword
        Labels of the k arms; default "0".."k-1".
    """

    arms: tuple[str, ...] = field(default=(), kw_only=True)

    # Names of the fields with shape (..., arm); what `rewards[index]` cuts.
    _parameters: ClassVar[tuple[str, ...]] = ()
    _arm_axis: ClassVar[int] = -1

    # -- shape ---------------------------------------------------------------------------------

    @property
    def _main(self) -> Floats:
        """The first parameter, which has the full shape (..., arm)."""
        value: Floats = getattr(self, self._parameters[0])
        return value

    @property
    def n_arms(self) -> int:
        """Number of arms, k."""
        return int(self._main.shape[-1])

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """Shape of the leading axes; () for one set of arms."""
        return self._main.shape[:-1]

    def __getitem__(self, index: Any) -> Self:
        """Return part of the batch, ``rewards[t]`` or ``rewards[start:stop]``."""
        if not self.batch_shape:
            raise OptionError(
                f"this {type(self).__name__} has no batch to take [{index!r}] from; it holds one "
                f"set of {self.n_arms} arms."
            )
        new = object.__new__(type(self))
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            if name in self._parameters and value is not None:
                value = value[index]
            object.__setattr__(new, name, value)
        return new

    @takes()
    def for_arms(self, arms: Sequence[str], option: str = "truth") -> Self:
        """Return the same laws under the labels of a log, in its order.

        Parameters
        ----------
        arms : sequence of str
            Labels of the log.
        option : str
            What messages call the laws.

        Raises
        ------
        ArmError
            If the laws are of other arms. Laws without labels of their own ("0".."k-1") are taken
            by their positions where the log has other labels.

        Examples
        --------
        >>> from bayesfair.rewards import Bernoulli
        >>> Bernoulli([0.9, 0.5], arms=["a", "b"]).for_arms(["b", "a"]).mean
        array([0.5, 0.9])
        """
        arms = labels_of(as_sequence(arms, "arms"))
        if arms == self.arms:
            return self
        nameless = self.arms == tuple(str(i) for i in range(self.n_arms))
        order = list(range(self.n_arms))
        if set(arms) == set(self.arms):
            order = [self.arms.index(arm) for arm in arms]
        elif len(arms) != self.n_arms or not nameless:
            one_side = sorted(set(arms) ^ set(self.arms))
            raise ArmError(
                f"{option}= has {self.n_arms} arms {listed(self.arms)}, the log has {len(arms)}: "
                f"{listed(arms)}"
                f"{'' if nameless else f' ({listed(one_side)} on one side only)'}. Give the laws "
                "of the arms of the log, under their labels.",
                kind="other_arms",
                column=option,
                value=one_side[0],
            )
        return self.taken(order, arms)

    @takes()
    def taken(self, order: Sequence[int] | NDArray[np.int64], arms: Sequence[str]) -> Self:
        """Return the laws of the arms at these positions, some perhaps more than once.

        Parameters
        ----------
        order : (m,) sequence of int
            0-based positions of the arms.
        arms : (m,) sequence of str
            What they are called from now on.

        Raises
        ------
        OptionError, DataError
            If a position is none of an arm, or there is not one label for each.
        """
        names, places = labels_of(arms), as_numbers(order, "order")
        if places.shape != (len(names),) or not np.isin(places, np.arange(self.n_arms)).all():
            raise OptionError(
                f"order must give for each of the {len(names)} labels the position of an arm, "
                f"0 to {self.n_arms - 1}, got {shown(order)}.",
                kind="bad_value",
                column="order",
            )
        order = places.astype(np.intp)
        new = object.__new__(type(self))
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            if name in self._parameters and value is not None:
                value = np.ascontiguousarray(value.take(order, axis=self._arm_axis))
                value.flags.writeable = False
            object.__setattr__(new, name, value)
        object.__setattr__(new, "arms", names)
        return new

    def __repr__(self) -> str:
        batch = f", batch {self.batch_shape}" if self.batch_shape else ""
        return f"{type(self).__name__}({self.n_arms} arms {listed(self.arms, 5)}{batch})"

    # -- what every family answers -------------------------------------------------------------

    @abstractmethod
    def best_arm_probability(self, *, offered: ArrayLike | None = None) -> Floats:
        """Return P(arm has the highest realised reward), ``(..., arm)``, ties split evenly.

        Parameters
        ----------
        offered : (..., k) array of bool, optional
            Arms on offer; the others take no part and get NaN.
        """

    @abstractmethod
    def log_prob(self, reward: ArrayLike) -> Floats:
        """Return the log density or mass at `reward` (broadcast to ``(..., arm)``).

        ``-inf`` for a reward that the law excludes; NaN for NaN.

        Raises
        ------
        DataError
            If rewards are no numbers, or do not broadcast to the arms.
        """

    @abstractmethod
    def _sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        """Return draws of the given full shape."""

    @abstractmethod
    def _divergence(self, name: str) -> Floats:
        """Return the pairwise divergence; `name` has been checked."""

    @takes()
    def sample(self, n_draws: int | None = None, *, seed: Seed) -> Floats:
        """Return realised rewards: ``(..., arm)``, or ``(n_draws, ..., arm)``.

        Parameters
        ----------
        n_draws : int, optional
            How many independent draws; default one, without a leading axis.
        seed : int or numpy Generator
            Required: a result that cannot be repeated is no audit.
        """
        lead = () if n_draws is None else (check_count(n_draws, "n_draws"),)
        return self._sample((*lead, *self.batch_shape, self.n_arms), as_generator(seed))

    def divergence(self, name: str = "total_variation") -> Floats:
        """Return D(r_i || r_j) for all ordered pairs, ``(..., arm, arm_other)``.

        Parameters
        ----------
        name : str
            total_variation, kl (nats), hellinger (unsquared), chi2, jensen_shannon (at most
            ln 2) or wasserstein (in reward units). The class lists the infinite cases.
        """
        return self._divergence(check_choice(name, "divergence", DIVERGENCES))

    # -- validation, used by the families -------------------------------------------------------

    def _rewards(self, reward: ArrayLike) -> Floats:
        """Return rewards as numbers, if they broadcast to the shape of the arms."""
        value, own = as_numbers(reward, "reward"), (*self.batch_shape, self.n_arms)
        try:
            np.broadcast_shapes(value.shape, own)
        except ValueError:
            raise DataError(
                f"reward has shape {value.shape}, which does not broadcast to {own}, the arms "
                "last. Give one number, or one for each arm.",
                kind="shape",
                column="reward",
            ) from None
        return value

    def _store(self, **parameters: Any) -> None:
        """Broadcast, freeze and store parameters of shape (..., arm); resolve the labels."""
        arrays = {}
        for name, value in parameters.items():
            try:
                arrays[name] = np.array(value, dtype=np.float64)
            except (TypeError, ValueError, OverflowError) as error:
                raise DataError(f"{type(self).__name__}: {name} is not numeric: {error}.") from None
        try:
            shape = np.broadcast_shapes(*(a.shape for a in arrays.values()))
        except ValueError:
            shapes = ", ".join(f"{n} {a.shape}" for n, a in arrays.items())
            raise DataError(
                f"{type(self).__name__}: parameters do not broadcast: {shapes}. "
                "The last axis is the arm."
            ) from None
        if len(shape) == 0 or shape[-1] == 0:
            raise DataError(
                f"{type(self).__name__}: {' and '.join(arrays)} must have at least one axis, the "
                f"last being the arm; got shape {shape}. Write [value] for a single arm."
            )
        self._put_arms(shape[-1])
        for name, array in arrays.items():
            full = np.ascontiguousarray(np.broadcast_to(array, shape))
            full.flags.writeable = False
            object.__setattr__(self, name, full)

    def _put_arms(self, k: int) -> None:
        given: Any = self.arms
        if isinstance(given, (str, bytes)):
            given = (given,)
        arms = labels_of(given) if given is not None else ()
        arms = arms or tuple(str(i) for i in range(k))
        if len(arms) != k:
            raise ArmError(
                f"{type(self).__name__}: {len(arms)} labels {listed(arms)} for {k} arms "
                "(the last axis of the parameters)."
            )
        object.__setattr__(self, "arms", arms)

    def _require(self, name: str, good: NDArray[np.bool_], rule: str) -> None:
        """Raise naming the first arm whose parameter breaks `rule`; `good` has shape (..., arm)."""
        if good.all():
            return
        index = tuple(int(i) for i in np.argwhere(~good)[0])
        where = f" (batch index {index[:-1]})" if len(index) > 1 else ""
        value = getattr(self, name)[index]
        raise DataError(
            f"{type(self).__name__}: {name} of arm {self.arms[index[-1]]!r}{where} is {value:g}; "
            f"{rule}"
        )

    def _offered(self, offered: ArrayLike | None) -> NDArray[np.bool_] | None:
        """Return the mask with the full shape, or None where all arms are on offer."""
        if offered is None:
            return None
        mask = np.asarray(offered, dtype=bool)
        try:
            mask = np.broadcast_to(mask, (*self.batch_shape, self.n_arms))
        except ValueError:
            raise DataError(
                f"offered has shape {mask.shape}, expected {(*self.batch_shape, self.n_arms)}."
            ) from None
        return None if mask.all() else mask


def as_float(value: ArrayLike) -> Floats:
    """Return an array of float64."""
    return np.asarray(value, dtype=np.float64)
