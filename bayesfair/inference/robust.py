r"""Errors and posteriors where the objective is no likelihood of the comparisons.

Half a win for each side of a tie, the average over the orders of a shared place, and weights that
are no numbers of comparisons all give estimates by an objective :math:`\sum_c w_c \ell_c(\theta)`
whose curvature A does not tell how much the estimate varies. With the scores :math:`s_c` of the
single comparisons and :math:`B = \sum_c w_c^2 s_c s_c^\top`,

.. math:: \operatorname{cov} \hat\theta \approx A^{-1} B A^{-1}

does (the sandwich of Huber and White). A posterior from such an objective is tempered: raised to
the power :math:`\eta = p / \operatorname{tr}(A^{-1} B)`, p the number of parameters that the data
determine, its curvature agrees with the sandwich on average (Pauli, Racugno and Ventura 2011). Two
items with n duels, a share t of them ties, equal worths: :math:`\eta = 1 / (1 - t)`, as if only the
decided duels had been counted. Weights w alone: :math:`\eta = \sum w / \sum w^2`.

B is itself an estimate. Below ten comparisons per parameter it is not used: half wins and averages
over orders overstate the variance, so errors from the curvature are then too large rather than too
small, and so are those of weights after they are corrected for :math:`\sum w^2 > \sum w`.

References: White (1982), Econometrica 50, 1-25; Pauli, Racugno, Ventura (2011), Statistica Sinica
21, 149-164.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bayesfair.base.notices import Notice
from bayesfair.comparisons import Comparisons
from bayesfair.errors import DataError
from bayesfair.inference.comparison_likelihood import DuelLikelihood
from bayesfair.kernels.orders import plackett_luce
from bayesfair.kernels.orders.plackett_luce_stages import chains_of_rankings
from bayesfair.typing import Floats

if TYPE_CHECKING:
    from bayesfair.inference.comparison_problem import Problem

__all__ = ["REASONS", "Robust", "no_likelihood", "robust_of", "score_products"]


#: Why an objective is no likelihood, in words.
REASONS = {
    "half_ties": "ties are counted as half a win each",
    "averaged_ties": "shared places are averaged over their orders",
    "fractional_weights": "weights that are no whole numbers weigh comparisons",
}

_PER_PARAMETER = 10  # comparisons that it takes to estimate B
_LARGEST = 20.0  # power beyond which next to nothing decided is left
_BLOCK = 512  # rankings whose scores are held at a time


def no_likelihood(comparisons: Comparisons, ties: str) -> tuple[str, ...]:
    """Return why the objective is no likelihood of these comparisons; empty if it is one.

    Parameters
    ----------
    comparisons : Comparisons
        Those that enter the fit.
    ties : str
        Treatment of ties, as in `Problem`.

    Examples
    --------
    >>> no_likelihood(Comparisons.from_counts(["a"], ["b"], [7], [3], [2]), "half")
    ('half_ties',)
    """
    found = {
        "half_ties": ties == "half",
        "averaged_ties": ties == "average",
        "fractional_weights": comparisons.square is not None,
    }
    return tuple(reason for reason, holds in found.items() if holds)


def score_products(comparisons: Comparisons, problem: Problem, theta: Floats) -> Floats:
    """Return B, the sum over comparisons of w^2 s s', ``(P, P)``.

    Parameters
    ----------
    comparisons : Comparisons
        Those that enter the fit.
    problem : Problem
    theta : (P,) array
    """
    ties = "half" if problem.ties == "half" else "drop" if problem.ties == "drop" else "keep"
    if comparisons.kind == "duels":
        own = problem.likelihood
        if not isinstance(own, DuelLikelihood):
            # two items of a Plackett-Luce choice are a duel
            refused = "refuse" if ties == "keep" else ties
            own = DuelLikelihood(comparisons, "bradley_terry", order_effect=False, ties=refused)
        squared = comparisons.duel_counts(ties=ties, by_first=own.layout.order, squared=True)
        rows = np.stack([squared.wins_left, squared.wins_right, squared.ties])
        return own.score_products(theta, rows)
    layout = problem.likelihood.layout
    log_worth = layout.log_worth(theta)
    weight = comparisons.count if comparisons.square is None else comparisons.square
    table = np.zeros((layout.size, layout.size))
    for begin in range(0, len(weight), _BLOCK):
        cells = range(begin, min(begin + _BLOCK, len(weight)))
        scores = np.stack([_score(comparisons, u, log_worth) for u in cells])
        both = np.concatenate([scores, scores @ layout.covariates], axis=1)
        table += (both * weight[cells.start : cells.stop, None]).T @ both
    return table


def _score(comparisons: Comparisons, u: int, log_worth: Floats) -> Floats:
    """Return the gradient of the log-likelihood of one ranking, ``(k,)``."""
    part = slice(comparisons.start[u], comparisons.start[u + 1])
    chains = chains_of_rankings(
        comparisons.item[part],
        comparisons.level[part],
        np.array([0, part.stop - part.start], dtype=np.int64),
        np.ones(1),
        comparisons.n_items,
    )
    return plackett_luce.value_gradient(chains, log_worth)[1]


@dataclass(frozen=True)
class Robust:
    """What stands in for the missing likelihood.

    Attributes
    ----------
    reasons : tuple of str
        As `no_likelihood` returns them.
    power : float
        That the objective is raised to in a posterior, or for errors from its curvature.
    outer : (P, P) array or None
        Products of scores B, for the sandwich; None where there are too few comparisons.
    """

    reasons: tuple[str, ...]
    power: float
    outer: Floats | None

    def notice(self, *, posterior: bool) -> Notice:
        """Return what to say of the fit."""
        said = _said(self.reasons)
        text = f"{said[0].upper()}{said[1:]}, which is no likelihood: "
        if posterior:
            text += f"its power {self.power:.3g} was taken, "
            text += (
                "so that the spread of the draws agrees with robust standard errors. "
                if self.outer is not None
                else "for want of comparisons to judge its spread by; intervals are rather too "
                "wide than too narrow. "
            )
            text += "Intervals are those of this tempered posterior."
        elif self.outer is not None:
            text += "standard errors are robust (sandwich) ones."
        else:
            text += (
                "for want of comparisons standard errors are those of the curvature, rather too "
                "large than too small."
            )
        return Notice(text, kind=self.reasons[0], value=self.power if posterior else None)


def robust_of(comparisons: Comparisons, problem: Problem, theta: Floats) -> Robust | None:
    r"""Return what stands in for a likelihood; None if the objective is one.

    Parameters
    ----------
    comparisons : Comparisons
        Those that enter the fit.
    problem : Problem
        With power 1.
    theta : (P,) array
        The mode.

    Raises
    ------
    DataError
        If there is a prior, and the comparisons leave nothing to judge uncertainty by, such as ties
        only.

    Notes
    -----
    The scores at the mode are smaller than at the truth, since the mode was fitted to them; for a
    posterior, B is multiplied by :math:`n / (n - p)` with n the effective number of comparisons
    and p the effective number of parameters.
    """
    reasons = no_likelihood(comparisons, problem.ties)
    if not reasons:
        return None
    total = comparisons.n_comparisons
    squared = (
        total if comparisons.square is None else float(comparisons.square[comparisons.used].sum())
    )
    careful = min(1.0, total / squared) if squared else 1.0
    curvature = problem.likelihood.information(theta)
    values, vectors = np.linalg.eigh(curvature)
    seen = values > 1e-9 * max(float(values[-1]), 1e-300)
    prior = np.diag(problem.precision)
    flat = not problem.precision.any()
    p = (
        float(seen.sum())
        if flat
        else float(np.trace(np.linalg.solve(curvature + prior, curvature)))
    )
    n = total**2 / squared if squared else 0.0
    if n < _PER_PARAMETER * max(p, 1e-300) or not seen.any():
        return Robust(reasons, careful, None)
    outer = score_products(comparisons, problem, theta)
    if flat:
        return Robust(reasons, 1.0, outer)
    along = np.einsum("pi,pq,qi->i", vectors[:, seen], outer, vectors[:, seen], optimize=True)
    ratio = float((along / values[seen]).mean())
    power = (1 - p / n) / ratio if ratio > 0 else np.inf
    if power > _LARGEST:
        raise DataError(
            f"there is no posterior here: {_said(reasons)}, which is no likelihood, and the "
            f"{total:.12g} comparisons leave too little to judge its uncertainty by. Use a model "
            "of ties (davidson) or weights that count comparisons.",
            kind="no_likelihood",
            value=None if not np.isfinite(power) else power,
            source=comparisons.source,
        )
    return Robust(reasons, power, outer)


def _said(reasons: tuple[str, ...]) -> str:
    return " and ".join(REASONS[reason] for reason in reasons)
