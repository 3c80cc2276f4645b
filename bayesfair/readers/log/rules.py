"""`read_rule`: another rule, whose probabilities stand in columns of the log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesfair.errors import ArmError, DataError, OptionError
from bayesfair.history import History
from bayesfair.readers.log.history import read_history
from bayesfair.readers.log.nested import nested_matrix
from bayesfair.readers.log.reading import reading_of
from bayesfair.readers.values.values import matrix
from bayesfair.typing import Floats, Source, Where

__all__ = ["ReadRule", "read_rule"]

_OPTIONS = ("arm", "reward", "format", "table", "delimiter", "decimal")


@dataclass(frozen=True, eq=False)
class ReadRule:
    """A rule as it was read; called with the log, it gives its probabilities in the log's rounds.

    Attributes
    ----------
    source, pattern : str
        Where it was read.
    labels : tuple of str
        The arms that have a column.
    probabilities : (rows, arms) array
        Of every row of the source; NaN where there is none.
    first_row : int
        Number of the first row.
    """

    source: str
    pattern: str
    labels: tuple[str, ...]
    probabilities: Floats
    first_row: int

    def __call__(self, history: History) -> Floats:
        """Return the probabilities ``(rounds, arms)`` in the rounds of a log of the same source.

        Raises
        ------
        ArmError
            If an arm of the log has no column.
        DataError
            If the log has rows that the source of the rule has not.
        """
        if lost := [arm for arm in history.arms if arm not in self.labels]:
            column = self.pattern.replace("{arm}", lost[0])
            raise ArmError(
                f"{self.source} has no column {column!r} for arm {lost[0]!r} of the log; the rule "
                f"{self.pattern!r} needs one for each arm. Add it, with 0 where the rule never "
                "chooses the arm.",
                kind="no_column", column=column, source=self.source,
            )  # fmt: skip
        at = None if history.row is None else history.row - self.first_row
        own = history.source == self.source or history.source.startswith(f"{self.source}, ")
        if (
            not own
            or at is None
            or (at.size and not 0 <= at.min() <= at.max() < len(self.probabilities))
        ):
            raise DataError(
                f"the rule {self.pattern!r} was read from {self.source}, and {history.source} has "
                "rounds that are no rows of it; read both from one source.",
                kind="not_the_same", column=self.pattern, source=history.source,
            )  # fmt: skip
        columns = [self.labels.index(arm) for arm in history.arms]
        return np.asarray(np.nan_to_num(self.probabilities[np.ix_(at, columns)], copy=False))


def read_rule(source: Source, probabilities: str, **options: Any) -> ReadRule:
    """Read the probabilities of another rule from columns of a log, for `policy_value`.

    Parameters
    ----------
    source : path, data frame, records
        The log, as `read_history` reads it, with a row for each round.
    probabilities : str
        Pattern of the columns with the rule's probability of each arm, such as ``"q_{arm}"``, or
        ``"q.{arm}"`` within records. An empty cell stands for 0, so does an arm that the log has
        not on offer.
    **options
        `arm`, `reward`, `format`, `table`, `delimiter` and `decimal` of `read_history`, where the
        log was read with them.

    Returns
    -------
    ReadRule
        For ``policy_value(log, {"mine": rule})``, with the log read from the same source, whole,
        in groups or in another order.

    Raises
    ------
    DataError
        If no column has the pattern, or a cell holds no number: with row and column.
    OptionError
        For another option, or a pattern without ``{arm}``.

    Examples
    --------
    >>> from bayesfair.readers import read_history
    >>> table = {"arm": ["a", "b"], "reward": [1, 0], "propensity": [0.5, 0.5],
    ...          "q_a": [1.0, 0.25], "q_b": [0.0, 0.75]}
    >>> read_rule(table, "q_{arm}")(read_history(table)).tolist()
    [[1.0, 0.0], [0.25, 0.75]]
    """
    if odd := [name for name in options if name not in _OPTIONS]:
        raise OptionError(
            f"read_rule has no option {odd[0]!r}. Options: {', '.join(_OPTIONS)}.",
            kind="unknown_option", column=odd[0],
        )  # fmt: skip
    if not isinstance(probabilities, str) or "{arm}" not in probabilities:
        raise OptionError(
            f"probabilities={probabilities!r} must contain {{arm}}, for example 'q_{{arm}}'.",
            kind="bad_option", column="probabilities", value=probabilities,
        )  # fmt: skip
    unused = dict.fromkeys(("propensity", "order", "known_at", "keep_prob"), False)
    asked = {**unused, **options, "probabilities": probabilities}
    reading = reading_of(read_history, source, asked)
    layout, opened = reading.layout, reading.source
    labels, names = tuple(layout.probabilities), list(layout.probabilities.values())
    parts, row = [np.empty((0, len(labels)))], opened.first_row
    with opened.locating():
        for table in opened.tables(names if layout.nested is None else [layout.nested], []):
            wheres = [_where(row, opened.name, name) for name in names]
            parts.append(
                matrix([table.column(c) for c in names], wheres, decimal=reading.decimal)
                if layout.nested is None else
                nested_matrix(table.column(layout.nested),
                              _where(row, opened.name, layout.nested), labels)
            )  # fmt: skip
            row += table.num_rows
    return ReadRule(opened.name, probabilities, labels, np.concatenate(parts), opened.first_row)


def _where(row: int, source: str, column: str) -> Where:
    return lambda at: f"row {row + at} of {source}, column {column!r}"
