"""What is said of beliefs given a context: their prior, contexts that were hardly seen."""

from __future__ import annotations

import numpy as np

from bayesfair.audit.log.context_tables import CONTEXT_MODELS, KAPPA
from bayesfair.audit.log.summary import Summary
from bayesfair.base.checks import counted, listed
from bayesfair.base.notices import Notice
from bayesfair.families import FAMILIES
from bayesfair.families.conflict import prior_conflicts
from bayesfair.families.featured import PRIOR_SD
from bayesfair.families.priors import describe_prior
from bayesfair.inference.carried import Carried
from bayesfair.kernels.log.pooled import Pooling

__all__ = [
    "context_findings",
    "context_model_of",
    "context_prior_findings",
    "context_prior_words",
    "thin_share",
]

_THIN = 10
_MUCH = 0.2
_SHOWN = 3


def context_model_of(summary: Summary) -> str | None:
    """Return how beliefs are given the context; None where they are not."""
    return str(summary.start.beliefs.model) if summary.start.given_context else None


def thin_share(summary: Summary) -> float:
    """Return the share of rounds whose context had fewer than ten."""
    sizes = [seen.n_rounds for seen in summary.contexts.values()]
    return sum(n for n in sizes if n < _THIN) / max(summary.sums.n_rounds, 1)


def _is_featured(summary: Summary) -> bool:
    return summary.start.given_context and summary.start.beliefs.featured is not None


def context_findings(summary: Summary, *, checked: bool) -> list[Notice]:
    """Say that most of what was asked of the contexts is answered by the prior, where it is.

    ``checked``: whether a filter was held against the posterior.
    """
    if summary.start.given_context and isinstance(summary.start.beliefs.shared, Carried):
        return [_switched(summary, summary.end.beliefs.shared)]
    if _is_featured(summary) and summary.start.beliefs.featured.model in PRIOR_SD and not checked:
        return [_unchecked(summary)]
    share = thin_share(summary)
    if share <= _MUCH or _is_featured(summary):
        return []
    said = "their beliefs are those of the other contexts more than their own."
    if context_model_of(summary) == "cells":
        said = "their beliefs are still those of the prior, and P* is nearly even. Fewer or "
        said += "coarser columns in context= would tell more"
        if FAMILIES[summary.start.family].binary:
            said += ", or context_model='pooled', where contexts share what is learned"
        said += "."
    return [Notice(
        f"{100 * share:.0f} % of the rounds have a context that came fewer than {_THIN} times: "
        f"{said}",
        kind="thin_contexts", column="context", value=share,
        n=sum(seen.n_rounds < _THIN for seen in summary.contexts.values()),
    )]  # fmt: skip


def _unchecked(summary: Summary) -> Notice:
    """Say that nothing tells how far the filter is from what it stands for."""
    return Notice(
        f"The filter of context_model={summary.start.beliefs.model!r} was not held against the "
        "posterior here, so how far the numbers under the beliefs of each round are off is not "
        "known. The audit of a whole log does that in its objective part, unless its rewards are "
        "too many.",
        kind="filter_unchecked", column="context_model",
    )  # fmt: skip


def _switched(summary: Summary, of: Carried) -> Notice:
    """Say that the beliefs are not those of the filter."""
    drawn = "none had to be drawn anew"
    if np.isfinite(of.fewest):
        drawn = f"drawn anew with {of.fewest:.0f} effective ones or more, Pareto k-hat up to "
        drawn += f"{of.khat:.2f}"
    return Notice(
        f"The filter of context_model={summary.start.beliefs.model!r} is too far from the "
        "posterior here, so the beliefs before each round are those of weighted draws from the "
        f"posterior, carried from reward to reward ({drawn}). The standard error of a chance is at "
        f"most {of.error:.4f}.",
        kind="filter_switched", column="context_model", value=of.error,
    )  # fmt: skip


def context_prior_findings(summary: Summary) -> list[Notice]:
    """Return one notice of the contexts whose rewards lie far outside the prior.

    None where contexts share what is learned: their prior is that of none of them alone.
    """
    tables = summary.end.beliefs
    if tables.shared is not None or tables.model not in CONTEXT_MODELS:
        return []
    end, far, worst = summary.end, [], None
    family, support = FAMILIES[end.family], getattr(end.beliefs, "support", np.empty(0))
    for label, state in end.by_context.items():
        prior, posterior, learned = state.prior_and_posterior()
        found = prior_conflicts(
            prior, posterior, family, summary.arms, support, learned=learned is not None
        )
        if found:
            far.append(label)
            worst = worst or found[0]
    if worst is None:
        return []
    return [Notice(
        f"In {counted(len(far), 'context')} ({listed(far, _SHOWN)}) rewards lie far outside what "
        f"the prior expects. In {far[0]!r}: {worst}",
        kind="prior_conflict", column=worst.column, value=worst.value, n=len(far),
    )]  # fmt: skip


def context_prior_words(summary: Summary) -> str:
    """Return the prior of every context in words."""
    start, tables = summary.start, summary.start.beliefs
    family = FAMILIES[start.family]
    if (of := tables.featured) is not None:
        return _featured_words(summary, of.words)
    if tables.fresh.from_data:
        return (
            f"{family.law.format('...')}, every context and arm, independent, centred and scaled "
            "by the first known rewards of each context"
        )
    words = describe_prior(start.prior, family, summary.arms)
    if isinstance(tables.shared, Pooling):
        low, high = KAPPA
        return (
            "theta of each context ~ Beta(kappa mu, kappa (1 - mu)), "
            f"{words.replace('theta', 'mu', 1)}; log kappa uniform, kappa from {low:g} to {high:g}"
        )
    return f"{words}, in every context anew"


def _featured_words(summary: Summary, features: str) -> str:
    """Return the prior of the coefficients of every arm in words."""
    start, of = summary.start, summary.end.beliefs.featured
    assert of is not None
    if of.model in PRIOR_SD:
        sd = PRIOR_SD[of.model]
        return f"every coefficient ~ Normal(0, {sd:g}^2), every arm, independent: {features}"
    prior, _, learned = summary.end.prior_and_posterior()
    words = describe_prior(prior, FAMILIES[start.family], summary.arms, learned)
    return f"intercept and noise: {words}; every other coefficient with mean 0: {features}"
