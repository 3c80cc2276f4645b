"""What goes wrong, by kind: one root, a few children, each carrying its evidence.

A verdict is never an exception: "unfair" is a result.
"""

from __future__ import annotations

import copy
from typing import Any, Self

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
    """Root of every error that bayesfair raises on purpose.

    What the message says in words stands beside it in fields, so that no program has to read it.

    Parameters
    ----------
    message : str
        The whole sentence for people: what was given, where, what is allowed, the remedy.
    kind : str, optional
        A short name of the fault, such as ``"unknown_column"``.
    row : int, optional
        Row of the file (the header is row 1).
    column : str, optional
        Column of the source, or name of the option (in Python's spelling).
    value : optional
        What stood there.
    source : str, optional
        Name of the file.

    Examples
    --------
    >>> try:
    ...     raise DataError("row 3, column 'reward': 'x' is no number.", row=3, column="reward")
    ... except BayesfairError as error:
    ...     (error.row, error.column)
    (3, 'reward')
    """

    def __init__(
        self,
        message: str = "",
        *,
        kind: str | None = None,
        row: int | None = None,
        column: str | None = None,
        value: Any = None,
        source: str | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.row = row
        self.column = column
        self.value = value
        self.source = source

    def with_message(self, message: str) -> Self:
        """Return the same fault in other words; the fields stay."""
        new = copy.copy(self)
        new.args = (message,)
        return new


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

    def __init__(self, message: str = "", tree: Any = None, **fields: Any) -> None:
        super().__init__(message, **fields)
        self.tree = tree


class BayesfairWarning(UserWarning):
    """The number is still usable, but the reader should know this."""
