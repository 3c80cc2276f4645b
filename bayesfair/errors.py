"""What goes wrong, by kind: one root, a few children, each carrying its evidence.

A verdict is never an exception: "unfair" is a result.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "ArmError",
    "BayesfairError",
    "BayesfairWarning",
    "ConvergenceError",
    "DataError",
    "OptionError",
    "ProbabilityError",
]


class BayesfairError(ValueError):
    """Root of every error that bayesfair raises on purpose."""


class DataError(BayesfairError):
    """The data cannot be read or used as they stand; names row, column, value and remedy."""


class ProbabilityError(DataError):
    """Logged probabilities are not probabilities, or contradict the logged choices."""


class ArmError(DataError):
    """An arm or item is not among the known ones."""


class OptionError(BayesfairError):
    """An argument has a value that is not allowed; names the allowed ones."""


class ConvergenceError(BayesfairError):
    """A fit or a quadrature did not converge.

    Attributes
    ----------
    tree : xarray.DataTree or None
        The draws that are distrusted, for inspection.
    """

    def __init__(self, message: str, tree: Any = None) -> None:
        super().__init__(message)
        self.tree = tree


class BayesfairWarning(UserWarning):
    """The number is still usable, but the reader should know this."""
