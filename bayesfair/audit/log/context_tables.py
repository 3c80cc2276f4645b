"""Beliefs given a context: a table for each of what was learned there, alone or with the others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.checks import listed
from bayesfair.errors import DataError
from bayesfair.history import History
from bayesfair.kernels.laws.beta_atoms import beta_atoms
from bayesfair.kernels.log.conjugate import BeliefTable, Rule, run_parameters
from bayesfair.kernels.log.pooled import Pooling, Told, pooled_means
from bayesfair.typing import Floats, Ints

__all__ = [
    "CONTEXT_MODELS", "FEW", "KAPPA", "Believed", "ContextTables", "iter_cells", "numbered",
    "pooled_beliefs", "pooling_of",
]  # fmt: skip

CONTEXT_MODELS = ("cells", "pooled")
"""How contexts share what is learned."""

FEW = 5
"""Up to so many contexts, known before the first round, are by default each by themselves."""

KAPPA = (0.5, 200.0)
"""Range of how alike an arm's probabilities are in different contexts, in plays."""

_CENTRES, _KAPPAS = 40, 20

_MOST = 10_000
"""Contexts with a table of their own each; more of them are not labels but measurements."""


class ContextTables(NamedTuple):
    """Beliefs before the next round, one table for each context.

    Rewards that are not known yet count their rounds in the whole log, as those of one table do.

    Attributes
    ----------
    model : str
        How contexts share what is learned: ``"cells"``, not at all; ``"pooled"``, by `pooling`.
    columns : tuple of str
        What the context is made of.
    labels : tuple of str
        Contexts seen, in the order of their coming.
    tables : tuple of BeliefTable
        Their beliefs; where they are pooled what these would be alone, the counts of each.
    fresh : BeliefTable
        Beliefs in a context that was not seen yet.
    without : BeliefTable
        Beliefs from all rounds, which know no context.
    pooling : Pooling or None
        What contexts have in common, where they share what is learned.
    """

    model: str
    columns: tuple[str, ...]
    labels: tuple[str, ...]
    tables: tuple[BeliefTable, ...]
    fresh: BeliefTable
    without: BeliefTable
    pooling: Pooling | None = None

    @classmethod
    def start(cls, model: str, columns: tuple[str, ...], beliefs: BeliefTable) -> ContextTables:
        """Return the beliefs before the first round."""
        pooling = pooling_of(beliefs.parameters) if model == "pooled" else None
        return cls(model, columns, (), (), beliefs, beliefs, pooling)

    @property
    def support(self) -> object:
        """Levels of a finite reward."""
        return self.fresh.support

    def afresh(self) -> ContextTables:
        """Return the beliefs before the first round of another log."""
        return self.start(self.model, self.columns, self.fresh)

    @property
    def counts(self) -> Floats:
        """Successes and plays known in each context, (2, C, k)."""
        prior = self.fresh.parameters
        found = [table.parameters - prior for table in self.tables]
        won, lost = np.moveaxis(np.reshape(found, (-1, *prior.shape)), 2, 0)
        return np.stack([won, won + lost])

    @property
    def pending(self) -> Told:
        """Rewards that are not known yet."""
        kept = [(t.pending_at, i, t.pending_arm, t.pending_reward)
                for i, t in enumerate(self.tables) if t.pending_at.size]  # fmt: skip
        cells = [np.full(len(at), i, np.int32) for at, i, *_ in kept]
        nothing = np.empty(0, np.int32)
        return Told(
            np.concatenate([np.empty(0, np.int64), *(at for at, *_ in kept)]),
            np.concatenate([nothing, *cells]),
            np.concatenate([nothing, *(arm for *_, arm, _ in kept)]),
            np.concatenate([np.empty(0), *(reward for *_, reward in kept)]),
        )

    def settled(self) -> tuple[Pooling, Floats]:
        """Return the pooling and the counts of each context once every reward is known.

        Returns
        -------
        pooling : Pooling
        counts : (2, C, k) array
        """
        assert self.pooling is not None
        told, counts = self.pending, self.counts
        none = np.empty(0, np.int32)
        fresh = np.zeros(len(self.tables), bool)
        pooling = pooled_means(none, told, self.pooling, counts, fresh, everything=True)[2]
        np.add.at(counts[0], (told.cell, told.arm), told.reward)
        np.add.at(counts[1], (told.cell, told.arm), 1.0)
        return pooling, counts


class Believed(NamedTuple):
    """Expected rewards of 0/1 arms before each round, by a model of all contexts together.

    Attributes
    ----------
    means : (T, k) array
        Probability of a reward of 1.
    changed : (T,) array of bool
        Whether beliefs differ from those before the last round with the same context.
    """

    means: Floats
    changed: NDArray[np.bool_]


def pooling_of(prior: Floats) -> Pooling:
    """Return how contexts are alike a priori: theta_ic ~ Beta(kappa mu_i, kappa (1 - mu_i)).

    Parameters
    ----------
    prior : (k, 2) array
        mu_i ~ Beta(alpha_i, beta_i), at the nodes of its Gauss rule; log kappa is uniform.
    """
    nodes = [beta_atoms(float(a), float(b), _CENTRES) for a, b in prior]
    mu, weight = (np.array(one) for one in zip(*nodes, strict=True))
    return Pooling.start(mu, np.geomspace(*KAPPA, _KAPPAS), weight)


def pooled_beliefs(
    part: History, codes: NDArray[np.int32], tables: ContextTables, n_cells: int,
    *, means: bool = True,
) -> tuple[Believed, Pooling, NDArray[np.bool_]]:  # fmt: skip
    """Return what is expected before each round of a part, and what is believed at its end.

    Returns
    -------
    believed : Believed
        Without expectations unless ``means``.
    pooling : Pooling
    changed : (n_cells,) array of bool
        Whether beliefs after the part differ from those before the last round of each context.
    """
    assert tables.pooling is not None
    n, waiting = part.n_rounds, tables.pending
    own = np.arange(1, n + 1) if part.known_at is None else np.asarray(part.known_at, np.int64)
    seen = ~np.isnan(part.reward)
    at = np.concatenate([waiting.at, own[seen]])
    order = np.argsort(at, kind="stable") if waiting.at.size or part.known_at is not None else ...
    told = Told(
        at[order],
        np.concatenate([waiting.cell, codes[seen]])[order],
        np.concatenate([waiting.arm, part.arm[seen]])[order],
        np.concatenate([waiting.reward, part.reward[seen]])[order],
    )
    counts = np.zeros((2, n_cells, part.n_arms))
    counts[:, : len(tables.tables)] = tables.counts
    changed = np.ones(n_cells, bool)
    changed[: len(tables.tables)] = [table.changed for table in tables.tables]
    found, moved, pooling, after = pooled_means(
        codes, told, tables.pooling, counts, changed, means=means
    )
    return Believed(found, moved), pooling, after


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
    for i, (rounds, own) in enumerate(part.cells(codes, n_cells)):
        table = tables.tables[i] if i < len(tables.tables) else tables.fresh
        if table.pending_at.size:
            here, at = len(rounds), table.pending_at
            at = np.where(at > n, here + at - n, np.searchsorted(rounds, at))
            table = table._replace(pending_at=at)
            if (at <= 0).any():
                nothing = np.empty(0, np.int32), np.empty(0), None
                learned = run_parameters(rule, table, *nothing)
                table = learned._replace(last_pi=table.last_pi, changed=True)
        yield rounds, own, table
