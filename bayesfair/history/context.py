"""What the rule saw about each round before it chose: columns of labels, and their combinations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.checks import as_sequence, counted, first_where, listed
from bayesfair.base.label_encoder import LabelEncoder, in_order_met
from bayesfair.base.labels import text_of
from bayesfair.base.numerals import number
from bayesfair.errors import ArmError, DataError
from bayesfair.typing import Ints, Where

__all__ = ["Context", "ContextLabels", "context_of", "known_in_cell"]


class ContextLabels(NamedTuple):
    """The values of one column of a context.

    Attributes
    ----------
    labels : tuple of str
        In the order of their numbers.
    alike : ArmError or None
        Where all are numbers, and one is written in two ways: as numbers they can be used, not as
        labels.
    """

    labels: tuple[str, ...]
    alike: ArmError | None = None

    @classmethod
    def of(cls, encoder: LabelEncoder, declared: str | None = None) -> ContextLabels:
        """Return what an encoder has met.

        Raises
        ------
        ArmError
            If a label may be none, or is one in two spellings among others that are no numbers.
        """
        labels = encoder.labels
        numbers = all(number(label) is not None for label in labels)
        encoder.check(declared, apart=not numbers)
        doubt = encoder.alike() if numbers else None
        if doubt is not None:
            doubt = doubt.with_message(
                f"{doubt} As features they are one number: context_model='probit', 'logit' or "
                "'linear' takes them as such."
            )
        return cls(labels, doubt)


@dataclass(frozen=True, eq=False)
class Context:
    """The context of each round.

    Attributes
    ----------
    columns : tuple of str
        Names, d of them.
    codes : (T, d) array of int32
        Positions in the labels of each column.
    labels : tuple of tuple of str
        Of each column, the values seen; numbers are labels as they are written.
    alike : tuple of ArmError or None
        Of each column, why its values can be used as numbers alone.
    """

    columns: tuple[str, ...]
    codes: NDArray[np.int32]
    labels: tuple[tuple[str, ...], ...]
    alike: tuple[ArmError | None, ...] = ()

    @classmethod
    def of(
        cls, columns: Sequence[str], codes: NDArray[np.int32], found: Sequence[ContextLabels]
    ) -> Context:
        """Return the context with these columns."""
        return cls(tuple(columns), codes, *zip(*found, strict=True))

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, index: Any) -> Context:
        """Return the context of the rounds at these positions."""
        return Context(self.columns, self.codes[index], self.labels, self.alike)

    def without(self, column: str) -> Context:
        """Return the context of the other columns."""
        kept = [i for i, name in enumerate(self.columns) if name != column]
        return Context(
            tuple(self.columns[i] for i in kept),
            self.codes[:, kept],
            tuple(self.labels[i] for i in kept),
            tuple(self.alike[i] for i in kept if self.alike),
        )

    @cached_property
    def cells(self) -> tuple[NDArray[np.int32], tuple[str, ...]]:
        """Which combination each round has, (T,), and their names, in the order of their coming.

        Raises
        ------
        ArmError
            If one number is written in two ways.
        """
        for doubt in self.alike:
            if doubt is not None:
                raise doubt
        sizes = np.array([len(found) for found in self.labels], dtype=np.int64)
        places = np.concatenate([np.cumprod(sizes[:0:-1])[::-1], [1]]).astype(np.int64)
        key = self.codes.astype(np.int64) @ places
        code, rounds = in_order_met(key, int(np.prod(sizes)))
        return code.astype(np.int32), tuple(self._name(int(t)) for t in rounds)

    def of_arms(self, pattern: str, arms: Sequence[str]) -> NDArray[np.float64]:
        """Return the numbers of a column for each arm, (T, k); NaN where one is no number.

        Parameters
        ----------
        pattern : str
            Their names, with ``{arm}`` in the place of the label: ``"price_{arm}"``.
        arms : sequence of str
            Labels.

        Raises
        ------
        DataError
            If there is no such column.
        """
        names = [pattern.replace("{arm}", arm) for arm in arms]
        if lacks := [name for name in names if name not in self.columns]:
            raise DataError(
                f"the context has no column {lacks[0]!r}; it has {listed(self.columns)}. Read the "
                f"log with context={pattern!r}.",
                kind="missing_column", column=lacks[0],
            )  # fmt: skip
        found = np.empty((len(self), len(names)))
        for i, name in enumerate(names):
            j = self.columns.index(name)
            values = [number(label) for label in self.labels[j]]
            found[:, i] = np.array([np.nan if v is None else v for v in values])[self.codes[:, j]]
        return found

    def _name(self, t: int) -> str:
        values: list[str] = [found[c] for found, c in zip(self.labels, self.codes[t], strict=True)]
        if len(values) == 1:
            return values[0]
        return ", ".join(f"{c}={v}" for c, v in zip(self.columns, values, strict=True))


def context_of(given: Any, n_rounds: int, where: Where) -> Context:
    """Return the context of `n_rounds` rounds.

    Parameters
    ----------
    given : Context, sequence, (T, d) array, mapping or data frame
        One column (called ``context``), several without names (``context_0``, ...), or by name.
    n_rounds : int
        Rounds of the log.
    where : callable
        Names a round.

    Raises
    ------
    DataError
        If there is not one value for each round, or one is missing, naming the first such round.
    """
    if isinstance(given, Context):
        found = given
    else:
        columns = _by_name(given)
        if not columns:
            raise DataError(
                "context= has no columns; leave it out, or give one value for each round.",
                kind="length", column="context",
            )  # fmt: skip
        coded = {name: _coded(name, values, n_rounds, where) for name, values in columns.items()}
        codes = np.column_stack([codes for codes, _ in coded.values()])
        found = Context.of(list(coded), codes, [labels for _, labels in coded.values()])
    if len(found) != n_rounds:
        raise _length("context", len(found), n_rounds)
    found.codes.flags.writeable = False
    return found


def _by_name(given: Any) -> dict[str, Any]:
    """Return columns by their names."""
    if isinstance(given, Mapping):
        return {str(name): values for name, values in given.items()}
    names = getattr(given, "column_names", None)  # Arrow, whose `columns` are the data
    names = getattr(given, "columns", None) if names is None else names
    if names is not None and not callable(names):
        return {str(name): given[name] for name in names}
    if getattr(given, "ndim", 1) == 2:
        return {f"context_{j}": given[:, j] for j in range(given.shape[1])}
    return {"context": given}


def _coded(
    name: str, values: Any, n_rounds: int, where: Where
) -> tuple[NDArray[np.int32], ContextLabels]:
    """Return positions and labels of one column."""
    if isinstance(values, str) or not hasattr(values, "__len__"):
        values = as_sequence(values, "context")
    if len(values) != n_rounds:
        raise _length(name, len(values), n_rounds)
    if isinstance(values, np.ndarray) and values.dtype.kind == "f":  # NaN is no number here
        values = [None if np.isnan(v) else text_of(v) for v in values.tolist()]
    encoder = LabelEncoder("context")
    codes = encoder.encode(values, where)
    if gone := first_where(codes < 0):
        raise DataError(
            f"{where(gone.at)}: the context {name!r} is missing "
            f"({counted(gone.n, 'such round')}). Leave these rounds out, or give the missing "
            "ones a level of their own, such as 'unknown'.",
            kind="missing_label", column=name,
        )  # fmt: skip
    return codes, ContextLabels.of(encoder)


def _length(name: str, n: int, n_rounds: int) -> DataError:
    return DataError(
        f"context {name!r} has {n} values, expected one for each of the {n_rounds} rounds of "
        "`arm`.",
        kind="length", column="context",
    )  # fmt: skip


def known_in_cell(known_at: Ints | None, rounds: Ints, n_rounds: int) -> Ints | None:
    """Return when rewards are known, counted in some of ``n_rounds`` rounds; late stays as late."""
    if known_at is None:
        return None
    later = len(rounds) + known_at - n_rounds
    return np.where(known_at > n_rounds, later, np.searchsorted(rounds, known_at))
