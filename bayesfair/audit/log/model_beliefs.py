"""A log against beliefs under a PyMC model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from bayesfair.audit.log.best_sums import BestSums
from bayesfair.audit.log.context_tables import ContextTables, Drawn
from bayesfair.audit.log.pairs import find_pairs
from bayesfair.audit.log.rounds import gathered, results
from bayesfair.audit.log.state import AuditState
from bayesfair.audit.log.summary import Summary, summarise
from bayesfair.audit.truth.model import model_options
from bayesfair.base.checks import no_seed
from bayesfair.base.notices import Notice
from bayesfair.errors import OptionError
from bayesfair.families import FAMILIES
from bayesfair.families.logs import prior_of
from bayesfair.history import History
from bayesfair.history.design import Design
from bayesfair.inference.beliefs import belief_start, beliefs
from bayesfair.inference.contract import label_of

__all__ = ["audit_with_beliefs_model"]


def audit_with_beliefs_model(data: Any, question: Any) -> tuple[Summary, list[str]]:
    """Return the summary of a log against beliefs under a PyMC model.

    Raises
    ------
    OptionError
        If the log was scanned, or no seed was given.
    """
    if not isinstance(data, History):
        raise OptionError("beliefs_model= needs the whole log; read it whole (read_history).")
    if question.seed is None:
        raise no_seed("with beliefs_model= beliefs are drawn")
    options = model_options(question)["beliefs_model"]
    found = beliefs(data, model=question.beliefs_model, seed=question.seed, **options)
    criterion, details = question.criterion, found.details
    skipped = min(criterion.from_round, data.n_rounds)
    part, believed = data.rounds(skipped, data.n_rounds), found.rewards[skipped:]
    family = FAMILIES[found.family]
    n_levels = len(family.levels(question.support, data.reward)) or None
    rows, _ = prior_of(data, family, question.prior, n_levels)
    start = AuditState(data.arms, found.family, rows, 0, (), criterion.eps2_arms)
    notes = [*_said(question.beliefs_model, details, found.prior), *found.notices]
    if details.dim in ("context", "round"):
        assert part.context is not None
        table, _ = belief_start(data.arms, family, question.prior, data, question.support)
        tables = ContextTables.start(label_of(question.beliefs_model), part.context, table)
        here = found.best_arm_probability.values[skipped:]
        design = None if details.dim == "context" else Design.start(part.context)
        drawn = tables._replace(shared=Drawn(believed, here, design))
        given = results(part, replace(start, n_rounds=skipped, beliefs=drawn), criterion)
        start = replace(start, beliefs=tables)
        summary = summarise(part, replace(start, n_rounds=skipped), criterion, given)
        return replace(summary, start=start), notes
    best = BestSums(part, keep=True)
    best.add(0, part.n_rounds, found.best_arm_probability.values[skipped:])
    pairs = None
    if part.selection_probability is not None:
        size = max(1, 2_000_000 // part.n_arms**2)
        pairs = find_pairs(
            part.selection_probability,
            (
                (a, min(a + size, part.n_rounds),
                 believed[a : a + size].divergence(criterion.reward_divergence))
                for a in range(0, part.n_rounds, size)
            ),
            criterion,
        )  # fmt: skip
    changed = np.ones(part.n_rounds, dtype=bool)
    result = gathered(part, best, pairs, changed, (), criterion)
    summary = summarise(part, replace(start, n_rounds=skipped), criterion, result)
    return replace(summary, start=start), notes


def _said(model: Any, details: Any, prior: str) -> list[Notice]:
    """Say what the beliefs are, and what does not hold of them."""
    khat, given = float(np.max(details.khat)), details.dim in ("context", "round")
    return [Notice(
        f"Beliefs before each round{', given its context,' if given else ''} are those of the "
        f"model {label_of(model)!r} ({prior}): "
        f"{len(details.fit_rounds)} fits, draws carried between them by importance weights (worst "
        f"Pareto k-hat {khat:.2f}). P* and pairs have Monte-Carlo error: P* up to "
        f"{float(np.nanmax(details.best_arm_mcse)):.4f}.",
        kind="beliefs_model", value=khat, n=len(details.fit_rounds),
    ), Notice(
        "Arms may be dependent under this model: P* is averaged over joint draws, pairs are judged "
        "by the marginals, and the theorem on SD_TS, which needs independent arms, does not apply.",
        kind="dependent_arms",
    )]  # fmt: skip
