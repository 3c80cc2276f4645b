"""Standard errors of items that serve for any gap between two of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.arguments import takes
from bayesfair.base.read_fits import reads_fits
from bayesfair.errors import OptionError
from bayesfair.ranking.draws import fitted

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["quasi_standard_errors"]


@takes()
@reads_fits
def quasi_standard_errors(tree: xr.DataTree) -> xr.DataArray:
    r"""Return standard errors q such that a gap between items i, j has error sqrt(q_i^2 + q_j^2).

    The quasi variances minimise :math:`\sum_{i<j} (\log v_{ij} - \log(q_i^2 + q_j^2))^2` over
    the variances :math:`v_{ij}` of all gaps. Unlike errors relative to a reference item they do
    not depend on which item that is.

    Parameters
    ----------
    tree : xarray.DataTree
        What `fit` returned for comparisons of at least three items. From the draws if there are
        any, else from the covariance at the mode.

    Returns
    -------
    xarray.DataArray
        Dimension ``item``. NaN where the best quasi variance is negative. Attribute
        ``largest_relative_error``: by how much the error of some gap is off.

    Raises
    ------
    OptionError
        With fewer than three items the quasi variances are not determined.

    References
    ----------
    .. [1] Firth and de Menezes (2004), Quasi-variances, Biometrika 91, 65-80.

    Examples
    --------
    >>> from bayesfair.comparisons import Comparisons
    >>> from bayesfair.inference import fit
    >>> wins = [[0, 5, 6], [4, 0, 7], [3, 2, 0]]
    >>> tree = fit(Comparisons.from_win_matrix(wins, ["a", "b", "c"]), seed=1, prior_sd=np.inf)
    >>> quasi_standard_errors(tree).attrs["largest_relative_error"] < 1e-8  # three items: exact
    True
    """
    import xarray as xr

    fit = fitted(tree)
    if len(fit.items) < 3:
        raise OptionError(
            "quasi standard errors need at least three items; with two there is one gap."
        )
    if fit.log_worth is None:
        covariance = fit.mode["covariance"].values
    else:
        covariance = np.cov(fit.log_worth, rowvar=False)
    variance = np.diag(covariance)
    gap = variance[:, None] + variance - 2 * covariance
    quasi = _quasi_variances(gap)
    total = quasi[:, None] + quasi
    np.fill_diagonal(total, 1.0)
    np.fill_diagonal(gap, 1.0)
    off = np.abs(np.sqrt(np.maximum(total, 0) / gap) - 1).max()
    return xr.DataArray(
        np.sqrt(np.where(quasi > 0, quasi, np.nan)),
        dims=("item",),
        coords={"item": np.array(fit.items)},
        name="quasi_standard_error",
        attrs={"largest_relative_error": float(off)},
    )


def _quasi_variances(gap: NDArray[np.float64]) -> NDArray[np.float64]:
    """Minimise the squared log ratios by damped Gauss-Newton steps."""
    k = len(gap)
    off = ~np.eye(k, dtype=bool)
    log_gap = np.log(np.where(off, gap, 1.0))
    # least squares of v_ij on q_i + q_j has a closed form: a good start
    row = np.where(off, gap, 0.0).sum(axis=1)
    quasi = (row - row.sum() / (2 * (k - 1))) / (k - 2)
    quasi = np.maximum(quasi, 0.05 * quasi.mean())

    def loss(q: NDArray[np.float64]) -> float:
        total = (q[:, None] + q)[off]
        if not total.min() > 0:
            return float("inf")
        return float(((log_gap[off] - np.log(total)) ** 2).sum())

    current = loss(quasi)
    for _ in range(200):
        total = np.where(off, quasi[:, None] + quasi, 1.0)
        residual = np.where(off, log_gap - np.log(total), 0.0)
        weight = np.where(off, total**-2.0, 0.0)
        step = np.linalg.solve(weight + np.diag(weight.sum(axis=1)), (residual / total).sum(axis=1))
        length = 1.0
        while (reached := loss(quasi + length * step)) > current and length > 1e-10:
            length /= 2
        if length <= 1e-10:
            break
        quasi, current = quasi + length * step, reached
        if np.abs(length * step).max() < 1e-13 * np.abs(quasi).max():
            break
    return np.asarray(quasi)
