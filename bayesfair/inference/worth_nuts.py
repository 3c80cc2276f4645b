r"""NUTS on the shipped models of comparisons, in coordinates that the curvature straightens.

What needs no chain is drawn exactly. Item deviations :math:`u_i` are independent Normal(0, s) and
the likelihood knows only differences within a component of the comparison graph. Write the
deviations of a component of m items as their mean plus the rest: under the prior the mean is
Normal(0, s / sqrt(m)) and independent of the rest, and the likelihood does not contain it, so that
its posterior is its prior, independent of everything else. Hence an item that nothing was compared
with keeps its prior, the level of each component is drawn anew from its own, and only the rest is
left to the chains. Components share nothing else but the parameters that are common to all duels
(order effect, ties, coefficients); the curvature is block-diagonal between them but for these.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.progress import steps
from bayesfair.inference.comparison_likelihood import ChainLikelihood, DuelLikelihood, Likelihood
from bayesfair.inference.laplace import Mode, posterior_precision
from bayesfair.inference.sampler import Sampler
from bayesfair.kernels.orders.comparison_density import CHAINS, DAVIDSON, LOGIT, PROBIT, Target
from bayesfair.kernels.orders.nuts import Basis, run_chain

__all__ = ["WorthDraws", "sample_worths", "target_of"]

_TUNE = 500
_DENSE = 256  # up to here all directions are straightened, above it every parameter alone
# (mean acceptance aimed at, transitions per kept draw), one attempt after the other: densities are
# log-concave, so long steps are safe; only a likelihood that ends like a wall needs shorter ones
_CHEAP = 4  # times as many transitions where there are few parameters
_ATTEMPTS = ((0.8, 1), (0.95, 2), (0.99, 4))
_KIND = {"logit": LOGIT, "probit": PROBIT, "davidson": DAVIDSON}


@dataclass(frozen=True)
class WorthDraws:
    """Draws of all chains.

    Attributes
    ----------
    theta : (chains, n, P) array
    n_steps : (chains, n) array of int
        Leapfrog steps of the transition that each draw comes from.
    diverging : (chains, n) array of bool
    step_size : (chains,) array
    """

    theta: NDArray[np.float64]
    n_steps: NDArray[np.int64]
    diverging: NDArray[np.bool_]
    step_size: NDArray[np.float64]


def _whole(values: Any) -> NDArray[np.int64]:
    return np.array(values, dtype=np.int64)


def target_of(
    likelihood: Likelihood, precision: NDArray[np.float64]
) -> tuple[Target, NDArray[np.int64], NDArray[np.int64]]:
    """Return the density of the parameters that data speak of, and where they sit.

    Returns
    -------
    target : Target
        Over the compared items and the other parameters.
    kept : array of int
        Their places in the whole parameter vector.
    component : (k,) array of int
        Component of each item in the comparison graph; alone where nothing was compared.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    layout, k = likelihood.layout, likelihood.layout.n_items
    no, none = _whole([]), np.empty(0)
    if isinstance(likelihood, ChainLikelihood):
        chains = likelihood.chains
        item, length = _whole(chains.item), np.diff(chains.start)
        inside = np.ones(len(item), bool)
        inside[chains.start[1:][length > 0] - 1] = False
        pairs = np.stack([item[inside], item[np.flatnonzero(inside) + 1]])
    elif isinstance(likelihood, DuelLikelihood):
        used = np.flatnonzero(likelihood.counts.sum(axis=0) > 0)
        cells = likelihood.cells
        pairs = np.stack([_whole(cells.left)[used], _whole(cells.right)[used]])
    else:
        raise TypeError(f"no compiled density for {type(likelihood).__name__}")
    graph = coo_array((np.ones(pairs.shape[1]), tuple(pairs)), shape=(k, k))
    component = connected_components(graph, directed=False)[1].astype(np.int64)
    compared = np.bincount(component)[component] > 1
    place = np.cumsum(compared) - 1
    kept = np.concatenate([np.flatnonzero(compared), np.arange(k, layout.size)])
    shared: dict[str, Any] = {
        "covariates": np.array(layout.covariates[compared], dtype=np.float64),
        "order": bool(layout.order),
        "precision": np.array(precision[kept], dtype=np.float64),
    }
    if isinstance(likelihood, ChainLikelihood):
        target = Target(
            kind=CHAINS, item=place[item], weight=np.array(chains.weight),
            start=_whole(chains.start), wins=np.array(chains.wins[compared]),
            left=no, right=no, first=no, counts=np.empty((3, 0)), **shared,
        )  # fmt: skip
    else:
        # without an order effect nobody is first
        first = _whole(cells.first)[used] if layout.order else np.zeros(len(used), np.int64)
        target = Target(
            kind=_KIND[likelihood.link], item=no, weight=none, start=no, wins=none,
            left=place[pairs[0]], right=place[pairs[1]], first=first,
            counts=np.ascontiguousarray(likelihood.counts[:, used]), **shared,
        )  # fmt: skip
    return target, kept, component


def _basis(
    likelihood: Likelihood,
    mode: Mode,
    precision: NDArray[np.float64],
    kept: NDArray[np.int64],
) -> Basis:
    """Return coordinates in which the curvature at the mode is one, at least along the axes."""
    centre = mode.theta[kept].copy()
    if len(kept) > _DENSE:
        diagonal = likelihood.operator(mode.theta)[1] + precision
        return Basis(centre, np.empty((0, 0)), diagonal[kept] ** -0.5)
    curvature = posterior_precision(likelihood, mode.theta, precision)[np.ix_(kept, kept)]
    # the symmetric root: coordinates keep the meaning of their parameters
    values, vectors = np.linalg.eigh(curvature)
    return Basis(centre, np.ascontiguousarray((vectors / np.sqrt(values)) @ vectors.T), np.empty(0))


def _learnt(theta: NDArray[np.float64]) -> Basis:
    """Return coordinates in which these draws, ``(n, P)``, have unit spread."""
    centre = theta.mean(axis=0)
    if theta.shape[1] > _DENSE:
        return Basis(centre, np.empty((0, 0)), theta.std(axis=0))
    values, vectors = np.linalg.eigh(np.cov(theta.T))
    root = (vectors * np.sqrt(np.maximum(values, 1e-6 * values[-1]))) @ vectors.T
    return Basis(centre, np.ascontiguousarray(root), np.empty(0))


def _into(basis: Basis, theta: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the coordinates of one parameter vector."""
    moved = theta - basis.centre
    if len(basis.scale):
        return moved / basis.scale
    return np.linalg.solve(basis.matrix, moved)


def sample_worths(
    likelihood: Likelihood,
    mode: Mode,
    precision: NDArray[np.float64],
    *,
    draws: int,
    rng: np.random.Generator,
    threads: int,
    sampler: Sampler | None = None,
) -> Iterator[WorthDraws]:
    """Yield draws of the whole parameter vector, each time from longer and more careful chains.

    The caller stops as soon as the draws converged. Later attempts go on where the earlier ended,
    in coordinates learnt from their draws, which become warm-up.

    Parameters
    ----------
    likelihood, precision
        As in `bayesfair.inference.laplace.find_mode`; every precision > 0.
    mode : Mode
    draws : int
        Per chain.
    rng : numpy Generator
    threads : int
        Chains that run at a time; the draws do not depend on it.
    sampler : Sampler, optional
    """
    target, kept, component = target_of(likelihood, precision)
    basis = _basis(likelihood, mode, precision, kept)
    how = sampler or Sampler()
    rngs, tune = rng.spawn(how.chains), how.tune or _TUNE
    # wider than the curvature says, so that chains that do not find each other are seen
    states = [1.5 * r.standard_normal(len(kept)) for r in rngs]
    step = min(1.0, 1.5 * max(len(kept), 1) ** -0.25)
    cheap = max(1, min(_CHEAP, 128 // max(len(kept), 1)))
    found: list[Any] = []
    for goal, thin in _ATTEMPTS:
        if found:
            basis = _learnt(np.concatenate([chain[0] for chain in found]))
            states = [_into(basis, chain[0][-1]) for chain in found]
        run, aim = partial(run_chain, target, basis), how.target_accept or goal
        with ThreadPoolExecutor(max(1, min(threads, how.chains))) as pool:
            told = steps("chains", how.chains)
            told.add(0)  # from here on the time that each takes is known
            jobs = [
                pool.submit(run, rngs[c], states[c], step, tune, draws, thin * cheap, aim)
                for c in range(how.chains)
            ]
            found = []
            for job in jobs:
                found.append(job.result())
                told.add()
        theta = np.empty((how.chains, draws, likelihood.layout.size))
        theta[..., kept] = np.stack([chain[0] for chain in found])
        _levels(theta, component, precision, kept, rng)
        yield WorthDraws(
            theta,
            np.stack([chain[2] for chain in found]),
            np.stack([chain[3] for chain in found]),
            np.array([chain[4] for chain in found]),
        )


def _levels(
    theta: NDArray[np.float64],
    component: NDArray[np.int64],
    precision: NDArray[np.float64],
    kept: NDArray[np.int64],
    rng: np.random.Generator,
) -> None:
    """Draw what the likelihood does not contain from the prior: levels, and items without data."""
    k = len(component)
    sd = precision[:k] ** -0.5  # the same for all items
    alone = np.setdiff1d(np.arange(k), kept)
    theta[..., alone] = sd[alone] * rng.standard_normal((*theta.shape[:2], len(alone)))
    size = np.bincount(component)
    for c in np.flatnonzero(size > 1):
        members = np.flatnonzero(component == c)
        level = sd[members[0]] / np.sqrt(size[c]) * rng.standard_normal(theta.shape[:2])
        theta[..., members] += (level - theta[..., members].mean(axis=-1))[..., None]
