"""Conjugate beliefs before every round, streamed: one arm's parameters change per reward.

Parameters per arm, in the order of `bayesfair.priors.PRIOR_PARAMETERS`:

* bernoulli: (alpha, beta); a reward x adds (x, 1 - x).
* finite: a concentration per level; a reward adds 1 to its level.
* poisson: (shape, rate); a reward x adds (x, 1).
* normal: (mean m, kappa, shape a, scale b) of a normal-inverse-gamma law; a reward x gives
  m + (x - m)/(kappa + 1), kappa + 1, a + 1/2, b + kappa (x - m)^2 / (2 (kappa + 1)).

The normal update is the sequential one: sums of squares would cancel for means far from 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesfair.kernels.compiled import compiled

__all__ = ["BeliefTable", "iter_parameters", "run_parameters"]

Floats = NDArray[np.float64]
_CODES = {"bernoulli": 0, "finite": 1, "poisson": 2, "normal": 3}


class BeliefTable(NamedTuple):
    """Beliefs before the next round, and what is seen but not yet known.

    Attributes
    ----------
    parameters : (k, p) array
        Per arm.
    pending_at : (n,) array of int
        First round that may use the reward, counted from the next part's first round, >= 1.
    pending_arm : (n,) array of int32
    pending_reward : (n,) array
        Rewards; for ``"finite"`` the position of the level.
    support : (L,) array
        Levels of a finite reward; empty for other families.
    last_pi : (k,) array
        Selection probabilities of the last round; empty before the first, or where not logged.
    changed : bool
        Whether the beliefs before the next round differ from those before the last one.
    """

    parameters: Floats
    pending_at: NDArray[np.int64]
    pending_arm: NDArray[np.int32]
    pending_reward: Floats
    support: Floats
    last_pi: Floats = np.empty(0)
    changed: bool = True


@compiled()
def _learn(row, x, code):  # type: ignore[no-untyped-def]
    if code == 0:
        row[0] += x
        row[1] += 1.0 - x
    elif code == 1:
        row[int(x)] += 1.0
    elif code == 2:
        row[0] += x
        row[1] += 1.0
    else:
        off = x - row[0]
        row[3] += 0.5 * row[1] / (row[1] + 1.0) * off * off
        row[1] += 1.0
        row[2] += 0.5
        row[0] += off / row[1]


@compiled()
def _run(table, at, arm, reward, first, done, code, out, changed):  # type: ignore[no-untyped-def]
    n = out.shape[0]
    for t in range(n):
        while done < at.shape[0] and at[done] <= first + t:
            _learn(table[arm[done]], reward[done], code)
            done += 1
            changed[t] = True
        out[t] = table
    return done


def iter_parameters(
    family: str,
    table: BeliefTable,
    arm: NDArray[np.int32],
    reward: Floats,
    known_at: NDArray[np.int64] | None,
    size: int,
) -> Iterator[tuple[int, int, Floats, NDArray[np.bool_]]]:
    """Yield (start, stop, parameters (n, k, p) before each round, whether they changed (n,)).

    Parameters
    ----------
    family : str
        Of `bayesfair.priors.PRIOR_PARAMETERS`.
    table : BeliefTable
        Beliefs before the first round.
    arm, reward : (T,) arrays
        The rounds; NaN = not observed; for ``"finite"`` positions of levels.
    known_at : (T,) array of int or None
        First round that may use the reward; None = the next.
    size : int
        Rounds per chunk.
    """
    at, arms, values, _ = _in_order(table, arm, reward, known_at)
    parameters = table.parameters.copy()
    done, n_rounds = 0, len(arm)
    for start in range(0, n_rounds, size):
        stop = min(start + size, n_rounds)
        out = np.empty((stop - start, *parameters.shape))
        changed = np.zeros(stop - start, dtype=np.bool_)
        done = _run(parameters, at, arms, values, start, done, _CODES[family], out, changed)
        yield start, stop, out, changed


def run_parameters(
    family: str,
    table: BeliefTable,
    arm: NDArray[np.int32],
    reward: Floats,
    known_at: NDArray[np.int64] | None,
    *,
    everything: bool = False,
) -> BeliefTable:
    """Return the beliefs after the rounds; with ``everything`` rewards not known yet count too."""
    at, arms, values, n_rounds = _in_order(table, arm, reward, known_at)
    # the next part's first round is this part's round T: what may be used then is known
    known = len(at) if everything else int(np.searchsorted(at, n_rounds, side="right"))
    parameters = table.parameters.copy()
    end = np.zeros(known, dtype=np.int64)
    nothing = np.empty((1, *parameters.shape))
    _run(
        parameters, end, arms[:known], values[:known], 0, 0, _CODES[family], nothing,
        np.zeros(1, dtype=np.bool_),
    )  # fmt: skip
    waiting = slice(known, None)
    return BeliefTable(
        parameters, at[waiting] - n_rounds, arms[waiting], values[waiting], table.support
    )


def _in_order(
    table: BeliefTable,
    arm: NDArray[np.int32],
    reward: Floats,
    known_at: NDArray[np.int64] | None,
) -> tuple[NDArray[np.int64], NDArray[np.int32], Floats, int]:
    """Return the observed rewards in the order in which they become known."""
    n_rounds = len(arm)
    own = np.arange(1, n_rounds + 1) if known_at is None else np.asarray(known_at)
    at = np.concatenate([table.pending_at, own])
    arms = np.concatenate([table.pending_arm, arm]).astype(np.int32)
    values = np.concatenate([table.pending_reward, reward])
    seen = ~np.isnan(values)
    at, arms, values = at[seen], arms[seen], values[seen]
    order = np.argsort(at, kind="stable")
    return at[order], arms[order], values[order], n_rounds
