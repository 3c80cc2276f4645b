"""A few values that stand for a Beta law: the nodes of its Gauss rule."""

from __future__ import annotations

import numpy as np

from bayesfair.typing import Floats

__all__ = ["beta_atoms"]


def beta_atoms(alpha: float, beta: float, n: int) -> tuple[Floats, Floats]:
    """Return ``n`` values in (0, 1) and their probabilities, which sum to 1.

    A draw of them has the same moments as Beta(alpha, beta) up to order 2n - 1: they are the nodes
    and weights of the Gauss rule for its density (Golub and Welsch 1969).

    Examples
    --------
    >>> value, probability = beta_atoms(0.5, 0.5, 2)
    >>> round(float(probability @ value**3), 12)  # (1/2 3/2 5/2) / (1 2 3)
    0.3125
    """
    a, b = beta - 1.0, alpha - 1.0  # Jacobi's weight (1 - x)^a (1 + x)^b on [-1, 1]
    i = np.arange(1.0, n)
    total = 2 * i + a + b
    with np.errstate(invalid="ignore", divide="ignore"):
        middle = (b * b - a * a) / (total * (total + 2))
        squared = 4 * i * (i + a) * (i + b) * (i + a + b) / (total**2 * (total + 1) * (total - 1))
    middle = np.where(total * (total + 2) == 0, 0.0, middle)
    if n > 1:  # where alpha + beta is 1 the general term is 0 / 0
        squared[0] = 4 * (1 + a) * (1 + b) / ((a + b + 2) ** 2 * (a + b + 3))
    diagonal = np.concatenate([[(b - a) / (a + b + 2)], middle])
    beside = np.sqrt(squared)
    node, vector = np.linalg.eigh(np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1))
    return np.clip((1 + node) / 2, 0.0, 1.0), vector[0] ** 2
