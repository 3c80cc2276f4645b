"""From the summary of a log to a finished audit: tolerance, objective part, notices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from bayesfair.audit.log.context_findings import (
    context_findings,
    context_prior_findings,
    context_prior_words,
)
from bayesfair.audit.log.findings import log_findings
from bayesfair.audit.log.monte_carlo import monte_carlo_findings, with_monte_carlo
from bayesfair.audit.log.prior_findings import prior_findings
from bayesfair.audit.log.state import parts_of
from bayesfair.audit.log.summary import Summary
from bayesfair.audit.log.verdict_findings import verdict_findings
from bayesfair.audit.log.violations import JudgedRounds, exact_rounds
from bayesfair.audit.question import Question
from bayesfair.audit.record import Record
from bayesfair.audit.truth.by_context import objective_by_context, rewards_by_context
from bayesfair.audit.truth.by_features import objective_by_features
from bayesfair.audit.truth.by_round import objective_by_round
from bayesfair.audit.truth.conjugate import posterior_of_log, posterior_rewards
from bayesfair.audit.truth.model import parts_under_model
from bayesfair.audit.truth.objective import (
    Objective,
    Part,
    evaluate,
    parts_from_cells,
    with_draw_axis,
)
from bayesfair.audit.truth.together import objective_together
from bayesfair.base.checks import as_generator
from bayesfair.base.notices import Notice, few_draws, unique
from bayesfair.fairness import guarantee_note
from bayesfair.families import FAMILIES
from bayesfair.families.logs import prior_notices, prior_of
from bayesfair.families.priors import describe_prior
from bayesfair.rewards import Rewards

__all__ = ["conclude"]


def conclude(summary: Summary, question: Question, notes: list[str], data: Any) -> Record:
    """Add tolerance, objective part and notices to a summary."""
    facts = summary.facts
    notices = [*notes, *facts.notices, *facts.repairs.sentences(), *log_findings(summary)]
    criterion = summary.tolerated(question.criterion)
    if criterion.tolerance != question.criterion.tolerance:
        unit = facts.resolution.unit
        notices.append(Notice(
            f"The selection probabilities were logged to about {unit:.1g}; excesses up to that "
            "are not counted as violations (tolerance= changes this).",
            kind="resolution", column="tolerance", value=unit,
        ))  # fmt: skip
    asked, question = question, replace(question, criterion=criterion)
    regret = objective = fitted = None
    beliefs_model, given = question.beliefs_model, summary.start.given_context
    if question.objective and question.truth is None and beliefs_model is not None and given:
        question = replace(question, model=question.model or beliefs_model)
        asked = replace(asked, model=question.model)
    if question.objective and question.by_model:
        (parts, judged), more, fitted = parts_under_model(data, summary, question)
        notices += more
        objective = evaluate(parts, criterion, judged)
        regret = objective.regret_estimate(as_generator(question.seed), exact=False)
    elif question.objective:
        rng = as_generator(0 if question.seed is None else question.seed)
        objective, more = _objective(summary, question, rng, data)
        notices += [*more, *(() if question.truth is not None else few_draws(question.draws))]
        if objective is not None:
            regret = objective.regret_estimate(rng, exact=question.truth is not None)
    else:
        notices.append(Notice(
            "The objective part was left out on request (objective=False).",
            kind="no_objective", column="objective", value=False,
        ))  # fmt: skip
    regret = with_monte_carlo(regret, summary)
    notices += [*monte_carlo_findings(summary), *verdict_findings(summary, criterion, objective)]
    checked = objective is not None and bool(objective.certificates)
    notices += context_findings(summary, checked=checked)
    notices += _prior_findings(summary, question, data)
    if objective is not None and objective.error > 1e-12:
        notices.append(Notice(
            f"Objective regret per round comes from a histogram of the logged probabilities; its "
            f"binning error is at most {objective.error:.1e}.",
            kind="binning", value=objective.error,
        ))  # fmt: skip
    if len(summary.arms) == 1:
        notices.append(Notice(
            "There is one arm only: no pair to compare, and P* is 1.", kind="one_arm", n=1
        ))  # fmt: skip
    if not criterion.is_total_variation:
        notices.append(Notice(
            guarantee_note(criterion.divergence, criterion.reward_divergence), kind="guarantee",
            column="divergence", value=criterion.divergence,
        ))  # fmt: skip
    return Record(
        question=asked.kept(),
        summary=summary,
        objective=objective,
        regret_objective=regret,
        findings=unique(notices),
        prior=_prior_words(summary, question, data),
        fitted=fitted,
    )


def _prior_findings(summary: Summary, question: Question, data: Any) -> list[Notice]:
    """Return the notices on the conjugate prior, where beliefs or true rewards rest on it."""
    if summary.start.given_context:
        return context_prior_findings(summary)
    if question.beliefs_model is None:
        return prior_findings(summary, question.criterion)
    if not question.objective or question.truth is not None or question.by_model:
        return []
    start = summary.start
    family = FAMILIES[start.family]
    return prior_notices(data, family, prior=start.prior, support=question.support)


def _prior_words(summary: Summary, question: Question, data: Any) -> str:
    """Return the conjugate prior in words, unless models take its place everywhere."""
    drawn = question.objective and question.truth is None
    given = summary.start.given_context
    if question.beliefs_model is not None and (question.by_model or given or not drawn):
        return "that of the models, see the notices"
    start, learned = summary.start, None
    if question.beliefs_model is None:
        prior, _, learned = summary.end.prior_and_posterior()
        if summary.start.given_context:
            return context_prior_words(summary)
    else:  # that of the conjugate posterior
        n_levels = start.prior.shape[1]
        prior, learned = prior_of(data, FAMILIES[start.family], question.prior, n_levels)
    return describe_prior(prior, FAMILIES[start.family], summary.arms, learned)


def _objective(
    summary: Summary, question: Question, rng: np.random.Generator, data: Any
) -> tuple[Objective | None, list[str]]:
    """Return the objective part from known rewards or the conjugate posterior."""
    notices: list[str] = []
    if question.truth is not None:
        rewards = with_draw_axis(question.truth)
        exact = {
            "full": "is exact: it uses the known true rewards given.",
            "chosen": "uses the known true rewards given; its regret is estimated, since only the "
            "chosen arm's probability was logged.",
            "none": "uses the known true rewards given; without probabilities there is a lower "
            "limit of its regret alone.",
        }[summary.selection]
        notices.append(Notice(f"The objective part {exact}", kind="known_truth"))
        if question.truth.batch_shape:
            return objective_by_round(data, question.truth, question.criterion), notices
        if summary.contexts:
            each = dict.fromkeys(summary.end.by_context, rewards)
            return objective_by_context(summary, each, question.criterion, rng, exact=True), notices
        parts = _parts(summary, rewards)
        return evaluate(parts, question.criterion, _known(data, summary, rewards)), notices
    elif question.beliefs_model is not None:
        rewards = posterior_of_log(data, summary.start, question.draws, rng, question.support)
        notices.append(Notice(
            "The true rewards are drawn from the conjugate posterior of the whole log, not from "
            "the model of the beliefs; model= chooses another.",
            kind="posterior", column="model",
        ))  # fmt: skip
    elif summary.end.given_context:
        return _given_context(summary, question, rng, data)
    elif together := objective_together(summary, question.draws, rng):
        return together[0], [together[1]]
    else:
        rewards = posterior_rewards(summary.end, question.draws, rng)
    judged = [] if summary.pairs.judged is None else [(summary.pairs.judged, rewards)]
    return evaluate(_parts(summary, rewards), question.criterion, judged), notices


def _given_context(
    summary: Summary, question: Question, rng: np.random.Generator, data: Any
) -> tuple[Objective | None, list[str]]:
    """Return the objective part from draws of the true rewards given the context."""
    if summary.end.beliefs.featured is None:
        each = rewards_by_context(summary, question.draws, rng)
        return objective_by_context(summary, each, question.criterion, rng), []
    return objective_by_features(data, summary, question.draws, question.criterion, rng)


def _parts(summary: Summary, rewards: Rewards) -> list[Part]:
    """Return the judged rounds of a log whose true rewards do not change."""
    n = summary.sums.n_rounds
    if summary.selection == "none" and n:
        return [Part(None, n, rewards, None, summary.sums.plays / n)]
    return parts_from_cells(summary.cells, rewards, len(summary.arms))


def _known(data: Any, summary: Summary, rewards: Rewards) -> Iterator[tuple[JudgedRounds, Rewards]]:
    """Yield all judged rounds, if need be by reading the log again: one truth costs little."""
    if summary.pairs.judged is None:
        return
    if summary.pairs.judged.exact:
        yield summary.pairs.judged, rewards
        return
    done, start = summary.start.n_rounds, summary.pairs.judged.base
    size = exact_rounds(len(summary.arms))
    for part in parts_of(data):
        pi = part.selection_probability
        assert pi is not None
        for a in range(max(start - done, 0), part.n_rounds, size):
            here = pi[a : a + size]
            yield JudgedRounds.of(here, done + a, summary.criterion), rewards
        done += part.n_rounds
