"""Beliefs given a context: one table of beliefs for each, independent of the others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.checks import listed
from bayesfair.errors import DataError
from bayesfair.history import History
from bayesfair.kernels.log.conjugate import BeliefTable, Rule, run_parameters
from bayesfair.typing import Ints

__all__ = ["CONTEXT_MODELS", "ContextTables", "iter_cells", "numbered"]

CONTEXT_MODELS = ("cells",)
"""How contexts share what is learned."""

_MOST = 10_000
"""Contexts with a table of their own each; more of them are not labels but measurements."""


class ContextTables(NamedTuple):
    """Beliefs before the next round, one table for each context.

    Rewards that are not known yet count their rounds in the whole log, as those of one table do.

    Attributes
    ----------
    model : str
        How contexts share what is learned: ``"cells"``, not at all.
    columns : tuple of str
        What the context is made of.
    labels : tuple of str
        Contexts seen, in the order of their coming.
    tables : tuple of BeliefTable
        Their beliefs.
    fresh : BeliefTable
        Beliefs in a context that was not seen yet.
    without : BeliefTable
        Beliefs from all rounds, which know no context.
    """

    model: str
    columns: tuple[str, ...]
    labels: tuple[str, ...]
    tables: tuple[BeliefTable, ...]
    fresh: BeliefTable
    without: BeliefTable

    @classmethod
    def start(cls, model: str, columns: tuple[str, ...], beliefs: BeliefTable) -> ContextTables:
        """Return the beliefs before the first round."""
        return cls(model, columns, (), (), beliefs, beliefs)

    @property
    def support(self) -> object:
        """Levels of a finite reward."""
        return self.fresh.support

    def afresh(self) -> ContextTables:
        """Return the beliefs before the first round of another log."""
        return self.start(self.model, self.columns, self.fresh)


def numbered(part: History, tables: ContextTables) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    """Return the number of each round's context, (T,), and the labels with those that are new.

    Raises
    ------
    DataError
        If the part has no context, or another one.
    """
    columns = () if part.context is None else part.context.columns
    if part.context is None or columns != tables.columns:
        has = f"has the context {listed(columns)}" if columns else "has no context"
        raise DataError(
            f"the beliefs of this audit are given the context {listed(tables.columns)}, and "
            f"{part.source} {has}. Read every part with the same context=.",
            kind="other_context", column="context",
        )  # fmt: skip
    codes, names = part.context.cells
    place = {label: i for i, label in enumerate(tables.labels)}
    for name in names:
        place.setdefault(name, len(place))
    if len(place) > _MOST:
        raise DataError(
            f"the context {listed(columns)} has more than {_MOST} different values: a table of "
            "beliefs for each would learn nothing. Name columns with fewer values (context=), or "
            "give bins instead of measurements.",
            kind="too_many_contexts", column="context", value=len(place),
        )  # fmt: skip
    return np.array([place[name] for name in names], np.int32)[codes], tuple(place)


def iter_cells(
    part: History, codes: NDArray[np.int32], n_cells: int, tables: ContextTables, rule: Rule
) -> Iterator[tuple[Ints, History, BeliefTable]]:
    """Yield the rounds of each context, as a log of their own, and the beliefs before them.

    What became known before the first of these rounds is learned already.
    """
    n = part.n_rounds
    few = codes.astype(np.int16) if n_cells < 1 << 15 else codes  # sorted in a fraction of the time
    order = np.argsort(few, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=n_cells))
    for i, rounds in enumerate(np.split(order, ends[:-1])):
        table = tables.tables[i] if i < len(tables.tables) else tables.fresh
        if table.pending_at.size:
            here, at = len(rounds), table.pending_at
            at = np.where(at > n, here + at - n, np.searchsorted(rounds, at))
            table = table._replace(pending_at=at)
            if (at <= 0).any():
                nothing = np.empty(0, np.int32), np.empty(0), None
                learned = run_parameters(rule, table, *nothing)
                table = learned._replace(last_pi=table.last_pi, changed=True)
        yield rounds, part.cell(rounds), table
