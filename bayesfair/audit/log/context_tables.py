"""Beliefs given a context: a table for each of what was learned there, alone or with the others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.checks import listed
from bayesfair.errors import DataError
from bayesfair.families.featured import FAMILY_OF, Featured
from bayesfair.history import History
from bayesfair.history.context import Context
from bayesfair.history.design import Design
from bayesfair.inference.carried import Carried
from bayesfair.kernels.laws.beta_atoms import beta_atoms
from bayesfair.kernels.log.conjugate import BeliefTable, Rule, run_parameters
from bayesfair.kernels.log.pooled import Pooling, Told, pooled_means
from bayesfair.rewards import Bernoulli, Rewards
from bayesfair.typing import Floats, Ints

__all__ = [
    "CONTEXT_MODELS", "FEW", "KAPPA", "Believed", "ContextTables", "Drawn", "iter_cells",
    "numbered", "pooling_of", "shared_beliefs",
]  # fmt: skip

CONTEXT_MODELS = ("cells", "pooled", *FAMILY_OF)
"""How contexts share what is learned: not at all, by a grid of pooling, by coefficients."""

FEW = 5
"""Up to so many contexts, known before the first round, are by default each by themselves."""

KAPPA = (0.5, 200.0)
"""Range of how alike an arm's probabilities are in different contexts, in plays."""

_CENTRES, _KAPPAS = 40, 20

_MOST = 10_000
"""Contexts with a table of their own each; more of them are not labels but measurements."""


class Drawn(NamedTuple):
    """Beliefs before each round of a log, by a PyMC model that was fitted again and again.

    Attributes
    ----------
    rewards : Rewards
        Predictive laws, batch (T,).
    best : (T, k) array
        P*, averaged over joint draws: arms may be dependent.
    design : Design or None
        How numbers of the context are cut, of a model that has rewards by round.
    """

    rewards: Rewards
    best: Floats
    design: Design | None


class ContextTables(NamedTuple):
    """Beliefs before the next round, one table for each context.

    Rewards that are not known yet count their rounds in the whole log, as those of one table do.

    Attributes
    ----------
    model : str
        One of `CONTEXT_MODELS`, or the name of a PyMC model.
    columns : tuple of str
        What the context is made of.
    labels : tuple of str
        Contexts seen, in the order of their coming; of features their bins.
    tables : tuple of BeliefTable
        Their beliefs; where something is shared what these would be alone.
    fresh : BeliefTable
        Beliefs in a context that was not seen yet.
    without : BeliefTable
        Beliefs from all rounds, which know no context.
    shared : Pooling, Featured, Carried, Drawn or None
        What contexts have in common, where they share what is learned.
    """

    model: str
    columns: tuple[str, ...]
    labels: tuple[str, ...]
    tables: tuple[BeliefTable, ...]
    fresh: BeliefTable
    without: BeliefTable
    shared: Pooling | Featured | Carried | Drawn | None = None

    @classmethod
    def start(cls, model: str, context: Context, beliefs: BeliefTable) -> ContextTables:
        """Return the beliefs before the first round, by the context of a log's first part."""
        shared: Pooling | Featured | Drawn | None = None
        if model == "pooled":
            shared = pooling_of(beliefs.parameters)
        elif model in FAMILY_OF:
            prior, learned = beliefs.parameters, beliefs.from_data
            shared = Featured.start(model, context, prior, from_data=learned)
        return cls(model, context.columns, (), (), beliefs, beliefs, shared)

    @property
    def support(self) -> object:
        """Levels of a finite reward."""
        return self.fresh.support

    def afresh(self) -> ContextTables:
        """Return the beliefs before the first round of another log."""
        shared = self.featured or self.shared
        if isinstance(shared, Featured):
            shared = shared.afresh()
        elif shared is not None:
            shared = pooling_of(self.fresh.parameters)
        fresh = self._replace(labels=(), tables=(), without=self.fresh)
        return fresh._replace(shared=shared)

    @property
    def featured(self) -> Featured | None:
        """Beliefs on coefficients, where contexts are features."""
        shared = self.shared.featured if isinstance(self.shared, Carried) else self.shared
        return shared if isinstance(shared, Featured) else None

    def carried(self) -> ContextTables:
        """Return the same beliefs as draws that are carried, in place of a filter."""
        assert self.featured is not None
        return self._replace(shared=Carried.start(self.featured))

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
        assert isinstance(self.shared, Pooling)
        told, counts = self.pending, self.counts
        none = np.empty(0, np.int32)
        fresh = np.zeros(len(self.tables), bool)
        pooling = pooled_means(none, told, self.shared, counts, fresh, everything=True)[2]
        np.add.at(counts[0], (told.cell, told.arm), told.reward)
        np.add.at(counts[1], (told.cell, told.arm), 1.0)
        return pooling, counts


class Believed(NamedTuple):
    """Reward laws before each round, by a model of all contexts together.

    Attributes
    ----------
    rewards : Rewards
        Predictive laws, batch (T,).
    changed : (T,) array of bool
        Whether beliefs differ from those before the last round with the same context.
    best : (T, k) array or None
        P*; None for that of the laws of independent arms.
    """

    rewards: Rewards
    changed: NDArray[np.bool_]
    best: Floats | None = None

    def at(self, rounds: Ints) -> Believed:
        """Return those of some rounds."""
        best = None if self.best is None else self.best[rounds]
        return Believed(self.rewards[rounds], self.changed[rounds], best)


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


def shared_beliefs(
    part: History, codes: NDArray[np.int32], tables: ContextTables, n_cells: int,
    *, laws: bool = True,
) -> tuple[Believed | None, Pooling | Featured | Carried | None, NDArray[np.bool_]]:  # fmt: skip
    """Return what is believed before each round of a part, and at its end.

    Returns
    -------
    believed : Believed or None
        None unless ``laws``.
    shared : Pooling, Featured, Carried or None
        None where a PyMC model leaves no state.
    changed : (n_cells,) array of bool
        Whether beliefs after the part differ from those before the last round of each context.
    """
    if isinstance(tables.shared, Drawn):
        every = np.ones(max(part.n_rounds, n_cells), bool)
        known = Believed(tables.shared.rewards, every[: part.n_rounds], tables.shared.best)
        return known, None, every[:n_cells]
    if (of := tables.featured) is not None:
        rewards: Rewards | None
        after: Featured | Carried
        if isinstance(tables.shared, Carried):
            rewards, after = tables.shared.over(part, laws=laws)
        else:
            rewards, after = of.over(part, laws=laws)
        every = np.ones(max(part.n_rounds, n_cells), bool)  # no two rounds need be alike
        found = None if rewards is None else Believed(rewards, every[: part.n_rounds])
        return found, after, every[:n_cells]
    assert isinstance(tables.shared, Pooling)
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
    means, moved, pooling, later = pooled_means(
        codes, told, tables.shared, counts, changed, means=laws
    )
    return Believed(Bernoulli(means), moved) if laws else None, pooling, later


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
    design = getattr(tables.shared, "design", None)
    codes, names = (part.context if design is None else design.bins(part.context)).cells
    place = {label: i for i, label in enumerate(tables.labels)}
    for name in names:
        place.setdefault(name, len(place))
    if len(place) > _MOST:
        raise DataError(
            f"the context {listed(columns)} has more than {_MOST} different values: a table of "
            "beliefs for each would learn nothing. Name columns with fewer values (context=), or "
            "give bins instead of measurements, or take context_model='probit' or 'linear', which "
            "learn how rewards depend on numbers.",
            kind="too_many_contexts", column="context", value=len(place),
        )  # fmt: skip
    places = [place[name] for name in names]
    if places == [*range(len(places))]:
        return np.asarray(codes, np.int32), tuple(place)
    return np.array(places, np.int32)[codes], tuple(place)


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
