"""What a simulated run is exposed to, and what it logs: records that every kernel takes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesfair.typing import Flags, Floats, Ints

__all__ = ["BernoulliWorld", "Run", "new_run"]


class BernoulliWorld(NamedTuple):
    """True means, uniform numbers, and when rewards are known.

    Attributes
    ----------
    theta : (1, k) or (T, k) array
        True means.
    decide, pay : (T,) arrays
        Uniform numbers that draw the arms and the rewards.
    known_at, order : (T,) arrays of int
        First round that may use the reward of each round; the rounds sorted by it, stably.
    offered : (T, k) array of bool
        Arms on offer; without rows, all of them always.
    """

    theta: Floats
    decide: Floats
    pay: Floats
    known_at: Ints
    order: Ints
    offered: Flags


class Run(NamedTuple):
    """Arms, rewards ``(T,)`` and selection probabilities ``(T, k)``."""

    arm: NDArray[np.int32]
    reward: Floats
    pi: Floats


def new_run(world: BernoulliWorld) -> Run:
    """Return an empty run, for a kernel to fill."""
    n_rounds, k = len(world.decide), world.theta.shape[1]
    return Run(np.empty(n_rounds, np.int32), np.empty(n_rounds), np.empty((n_rounds, k)))
