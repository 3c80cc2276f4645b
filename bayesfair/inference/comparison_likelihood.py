r"""Log-likelihoods of comparisons as functions of one parameter vector, for Newton and Laplace.

The vector is :math:`\theta = (u_1..u_k, \gamma_1..\gamma_C, \delta, \tau)`: item deviations,
coefficients of item covariates, order effect, log tie parameter (the last three where the model has
them). Log-worths are :math:`\lambda = u + Z\gamma`, with Z the covariates in standard units.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bayesfair.comparisons import Comparisons
from bayesfair.kernels.orders import duels, plackett_luce
from bayesfair.kernels.orders.plackett_luce_stages import Chains

__all__ = ["ChainLikelihood", "DuelLikelihood", "Layout", "Likelihood"]

_SMALL = 1 << 17
"""Products in one information matrix up to which the design is a plain array.

So few are multiplied by one thread, whatever the number of cores: the numbers are the same.
"""

_LINK = {"bradley_terry": "logit", "thurstone": "probit", "davidson": "davidson"}


@dataclass(frozen=True)
class Layout:
    """Where each block of the parameter vector sits.

    Attributes
    ----------
    covariates : (k, C) array
        In standard units.
    order, tie : bool
        Whether there is an order effect and a tie parameter.
    """

    covariates: NDArray[np.float64]
    order: bool = False
    tie: bool = False

    @property
    def n_items(self) -> int:
        """Number of items, k."""
        return len(self.covariates)

    @property
    def n_coefficients(self) -> int:
        """Number of covariates, C."""
        return int(self.covariates.shape[1])

    @property
    def size(self) -> int:
        """Length of the parameter vector."""
        return self.n_items + self.n_coefficients + self.order + self.tie

    @property
    def order_at(self) -> int:
        """Position of the order effect."""
        return self.n_items + self.n_coefficients

    def log_worth(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return log-worths, not centred, of one vector or of rows of them."""
        u = theta[..., : self.n_items]
        if not self.n_coefficients:
            return u
        moved: NDArray[np.float64] = (
            u + theta[..., self.n_items : self.order_at] @ self.covariates.T
        )
        return moved

    def pull_back(self, gradient: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a gradient in the log-worths as one in (u, gamma)."""
        return np.concatenate([gradient, self.covariates.T @ gradient])


class Likelihood(Protocol):
    """What Newton's method and the Laplace fit need; all exact."""

    @property
    def layout(self) -> Layout: ...  # noqa: D102

    def value_gradient(self, theta: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]: ...  # noqa: D102
    def information(self, theta: NDArray[np.float64]) -> NDArray[np.float64]: ...  # noqa: D102
    def operator(self, theta: NDArray[np.float64]) -> tuple[Any, NDArray[np.float64]]: ...  # noqa: D102
    def draws(self, theta: NDArray[np.float64]) -> NDArray[np.float64]: ...  # noqa: D102


@dataclass(frozen=True)
class ChainLikelihood:
    """Plackett-Luce on chains of choice sets."""

    chains: Chains
    layout: Layout

    def value_gradient(self, theta: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Return the log-likelihood and its gradient."""
        value, gradient = plackett_luce.value_gradient(self.chains, self.layout.log_worth(theta))
        return value, self.layout.pull_back(gradient)

    def information(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return minus the Hessian."""
        table = plackett_luce.information(self.chains, self.layout.log_worth(theta))
        z = self.layout.covariates
        cross = table @ z
        return np.block([[table, cross], [cross.T, z.T @ cross]])

    def operator(self, theta: NDArray[np.float64]) -> tuple[Any, NDArray[np.float64]]:
        """Return a function that multiplies minus the Hessian with columns, and its diagonal."""
        log_worth, z, k = self.layout.log_worth(theta), self.layout.covariates, self.layout.n_items

        def product(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
            moved = np.ascontiguousarray(vectors[:k] + z @ vectors[k:])
            out = plackett_luce.information_product(self.chains, log_worth, moved)
            return np.concatenate([out, z.T @ out])

        own = plackett_luce.information_diagonal(self.chains, log_worth)
        bent = plackett_luce.information_product(self.chains, log_worth, np.ascontiguousarray(z))
        return product, np.concatenate([own, (z * bent).sum(axis=0)])

    def draws(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the log-likelihood of rows of parameters."""
        return plackett_luce.log_likelihood_draws(self.chains, self.layout.log_worth(theta))


class DuelLikelihood:
    """Bradley-Terry, Thurstone or Davidson on outcome counts per pair and presentation."""

    def __init__(
        self, comparisons: Comparisons, model: str, *, order_effect: bool, ties: str
    ) -> None:
        from scipy.sparse import csr_array, hstack

        self.link = _LINK[model]
        cells = comparisons.duel_counts(ties=ties, by_first=order_effect)
        self.cells = cells
        self.counts = np.stack([cells.wins_left, cells.wins_right, cells.ties])
        z = comparisons.standard_covariates()[0]
        self.layout = Layout(z, order=order_effect, tie=self.link == "davidson")
        c, k = len(cells.left), comparisons.n_items
        where = (np.tile(np.arange(c), 2), np.concatenate([cells.left, cells.right]))
        sign = np.repeat([1.0, -1.0], c)
        blocks = [csr_array((sign, where), shape=(c, k))]
        if z.shape[1]:
            blocks.append(csr_array(z[cells.left] - z[cells.right]))
        if order_effect:
            blocks.append(csr_array(cells.first[:, None].astype(np.float64)))
        self.design = csr_array(hstack(blocks)) if len(blocks) > 1 else blocks[0]
        small = c * self.design.shape[1] ** 2 <= _SMALL
        self._rows = self.design.toarray() if small else self.design
        self._columns = self._rows.T.copy() if small else csr_array(self.design.T)

    def _curves(self, theta: NDArray[np.float64]) -> duels.Curves:
        tie = float(theta[-1]) if self.layout.tie else 0.0
        eta = self._rows @ theta[: self.design.shape[1]]
        return duels.curves(self.link, self.counts, eta, tie)

    def _weighted(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum over cells of a weight times the products of their design."""
        table = (self._columns * weights) @ self._rows
        return table if isinstance(table, np.ndarray) else np.asarray(table.toarray())

    def value_gradient(self, theta: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Return the log-likelihood and its gradient."""
        found = self._curves(theta)
        gradient = self._columns @ found.gap
        if self.layout.tie:
            gradient = np.append(gradient, found.tie.sum())
        return float(found.value.sum()), gradient

    def information(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return minus the Hessian."""
        found = self._curves(theta)
        table = self._weighted(found.gap2)
        if not self.layout.tie:
            return table
        cross = (self._columns @ found.cross)[:, None]
        return np.block([[table, cross], [cross.T, found.tie2.sum()]])

    def score_products(
        self, theta: NDArray[np.float64], squared: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the sum over duels of the squared weight times score times score, ``(P, P)``.

        Parameters
        ----------
        theta : (P,) array
        squared : (3, C) array
            Sums of squared weights: wins of left, wins of right, ties.
        """
        nu = float(theta[-1]) if self.layout.tie else 0.0
        eta = self._rows @ theta[: self.design.shape[1]]
        # one duel of each outcome; without a tie parameter a tie is half a win each
        tie = [0.0, 0.0, 1.0] if self.layout.tie else [0.5, 0.5, 0.0]
        single = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], tie])
        ones = np.ones(len(eta))
        found = [duels.curves(self.link, unit[:, None] * ones, eta, nu) for unit in single]
        gap, own = np.stack([f.gap for f in found]), np.stack([f.tie for f in found])

        def summed(product: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.asarray((squared * product).sum(axis=0))

        table = self._weighted(summed(gap**2))
        if not self.layout.tie:
            return table
        cross = (self._columns @ summed(gap * own))[:, None]
        return np.block([[table, cross], [cross.T, summed(own**2).sum()]])

    def operator(self, theta: NDArray[np.float64]) -> tuple[Any, NDArray[np.float64]]:
        """Return a function that multiplies minus the Hessian with columns, and its diagonal."""
        found = self._curves(theta)
        p = self.design.shape[1]
        diagonal = (self._columns * self._columns) @ found.gap2
        cross = self._columns @ found.cross

        def product(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
            out = self._columns @ (found.gap2[:, None] * (self._rows @ vectors[:p]))
            if not self.layout.tie:
                return np.asarray(out)
            out = out + cross[:, None] * vectors[p:]
            last = cross @ vectors[:p] + found.tie2.sum() * vectors[p]
            return np.concatenate([out, last[None]])

        if self.layout.tie:
            diagonal = np.append(diagonal, found.tie2.sum())
        return product, diagonal

    def draws(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the log-likelihood of rows of parameters."""
        at = self.layout.order_at
        return duels.log_likelihood_draws(
            self.link,
            self.cells.left,
            self.cells.right,
            self.cells.first,
            self.counts,
            self.layout.log_worth(theta),
            theta[:, at] if self.layout.order else None,
            theta[:, -1] if self.layout.tie else None,
        )

    def recession_rows(self) -> Any:
        """Return the rows g with g d >= 0 for directions d that never lower the likelihood."""
        from scipy.sparse import csr_array, hstack, vstack

        design = self.design
        won, lost, tied = (np.flatnonzero(count) for count in self.counts > 0)
        if not self.layout.tie:
            return vstack([design[won], -design[lost]])
        none = csr_array((design.shape[0], 1))
        half, one = design / 2, csr_array(np.ones((design.shape[0], 1)))

        def rows(part: Any, last: Any, which: NDArray[np.int64]) -> Any:
            return csr_array(hstack([part, last]))[which]

        # an outcome must stay at least as likely as each of the other two
        return vstack(
            [
                rows(half, -one, won),
                rows(design, none, won),
                rows(-half, -one, lost),
                rows(-design, none, lost),
                rows(half, one, tied),
                rows(-half, one, tied),
            ]
        )
