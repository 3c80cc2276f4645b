"""The mode of a log-concave posterior by Newton's method, and the curvature there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bayesfair.errors import ConvergenceError
from bayesfair.inference.comparison_likelihood import Likelihood

__all__ = ["Mode", "centred_covariance", "find_mode", "posterior_precision"]

_DENSE = 600  # up to here the Hessian is stored and factorised, above it is only multiplied
_LONGEST = 5.0  # largest change of a parameter in one step


@dataclass(frozen=True)
class Mode:
    """The maximum of log-likelihood plus log-prior.

    Attributes
    ----------
    theta : (P,) array
    log_likelihood : float
        At the mode, without binomial coefficients.
    n_steps : int
        Newton steps taken.
    """

    theta: NDArray[np.float64]
    log_likelihood: float
    n_steps: int


def posterior_precision(
    likelihood: Likelihood, theta: NDArray[np.float64], precision: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the posterior precision matrix; without a prior the sum of log-worths is pinned."""
    table = likelihood.information(theta)
    table[np.diag_indices_from(table)] += precision
    k = likelihood.layout.n_items
    if not precision[:k].any():
        table[:k, :k] += max(float(np.diag(table)[:k].mean()), 1e-8) / k
    return table


def _conjugate_gradients(
    likelihood: Likelihood,
    theta: NDArray[np.float64],
    precision: NDArray[np.float64],
    right: NDArray[np.float64],
    tolerance: float,
) -> NDArray[np.float64]:
    """Solve (information + prior precision) x = right for columns, Jacobi-preconditioned."""
    product, diagonal = likelihood.operator(theta)
    k = likelihood.layout.n_items
    free = not precision[:k].any()
    scale = np.maximum(diagonal + precision, 1e-12)[:, None]
    x = np.zeros_like(right)
    residual = right.copy()
    z = residual / scale
    step = z.copy()
    rho = (residual * z).sum(axis=0)
    goal = tolerance**2 * (right**2).sum(axis=0)
    for _ in range(20 * len(right)):
        if np.all((residual**2).sum(axis=0) <= goal):
            break
        q = product(step) + precision[:, None] * step
        curvature = (step * q).sum(axis=0)
        alpha = np.divide(rho, curvature, out=np.zeros_like(rho), where=curvature > 0)
        x += alpha * step
        residual -= alpha * q
        z = residual / scale
        fresh = (residual * z).sum(axis=0)
        beta = np.divide(fresh, rho, out=np.zeros_like(rho), where=rho > 0)
        step = z + beta * step
        rho = fresh
    if free:
        x[:k] -= x[:k].mean(axis=0)
    return x


def find_mode(
    likelihood: Likelihood,
    precision: NDArray[np.float64],
    *,
    max_steps: int = 200,
) -> Mode:
    r"""Maximise log-likelihood minus :math:`\tfrac12\sum_j p_j\theta_j^2` by damped Newton steps.

    Parameters
    ----------
    likelihood : Likelihood
        Concave in theta.
    precision : (P,) array
        Prior precisions; 0 = flat.

    Returns
    -------
    Mode

    Raises
    ------
    ConvergenceError
        If the maximum is not reached, which for a concave function with a finite maximum means that
        the data reach the limits of double precision.

    Notes
    -----
    Above 600 parameters each step is solved by conjugate gradients, in memory proportional to the
    data.
    """
    layout = likelihood.layout
    theta = np.zeros(layout.size)
    value, gradient = likelihood.value_gradient(theta)
    objective, before = value, np.inf
    for n_steps in range(1, max_steps + 1):
        slope = gradient - precision * theta
        if layout.size <= _DENSE:
            step = np.linalg.solve(posterior_precision(likelihood, theta, precision), slope)
        else:
            size = float(np.linalg.norm(slope))
            loose = min(0.1, size**0.5)
            step = _conjugate_gradients(
                likelihood, theta, precision, slope[:, None], max(1e-10, 0.1 * loose)
            )[:, 0]
        gain = float(slope @ step)
        # far from the mode a full step can leave the range of exp()
        length = min(1.0, _LONGEST / max(float(np.abs(step).max()), 1e-300))
        # near the top rounding hides the gain: a full step is then as good as any
        close = gain < 1e-9 * (1 + abs(objective))
        while True:
            trial = theta + length * step
            value, fresh = likelihood.value_gradient(trial)
            reached = value - 0.5 * float(precision @ trial**2)
            if np.isfinite(reached) and (reached >= objective + 1e-4 * length * gain or close):
                break
            length /= 2
            if length < 1e-12:
                raise ConvergenceError(
                    "the mode was not found: no step raises the posterior density any more, at "
                    f"gradient {np.abs(slope).max():.2e}. Scale covariates or weights."
                )
        theta, gradient, objective = trial, fresh, reached
        moved = length * float(np.abs(step).max())
        # at the top Newton steps shrink quadratically, until rounding keeps them from it
        if moved < 1e-9 * (1 + np.abs(theta).max()) or (close and moved > 0.5 * before):
            return Mode(theta, value, n_steps)
        before = moved
    raise ConvergenceError(
        f"the mode was not found in {max_steps} Newton steps (largest log-worth "
        f"{np.abs(theta[: layout.n_items]).max():.3g}). Scale covariates or weights, or give a "
        "smaller prior_sd."
    )


def centred_covariance(
    likelihood: Likelihood,
    theta: NDArray[np.float64],
    precision: NDArray[np.float64],
    outer: NDArray[np.float64] | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the covariance of sum-to-zero log-worths, ``(k, k)``, and the other variances.

    Parameters
    ----------
    likelihood, theta, precision
        As in `find_mode`.
    outer : (P, P) array, optional
        Sum of products of scores (`bayesfair.inference.robust.score_products`): the covariance is
        then the robust one, the sandwich.

    Notes
    -----
    The inverse of the curvature at the mode: the asymptotic covariance of the maximum-likelihood
    estimate without a prior, the Laplace approximation with one.
    """
    inverse = np.linalg.inv(posterior_precision(likelihood, theta, precision))
    if outer is not None:
        inverse = inverse @ outer @ inverse
    layout = likelihood.layout
    k, at = layout.n_items, layout.order_at
    z = layout.covariates
    raised = inverse[:k] + z @ inverse[k:at]
    table = raised[:, :k] + raised[:, k:at] @ z.T
    table -= table.mean(axis=0)
    table -= table.mean(axis=1, keepdims=True)
    return table, np.diag(inverse)[k:].copy()
