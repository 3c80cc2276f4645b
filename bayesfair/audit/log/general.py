"""Audits beyond the streaming Bernoulli kernel: other divergences, models of the truth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesfair.audit.criterion import Criterion
from bayesfair.audit.log.best_sums import BestSums
from bayesfair.audit.log.cells import ChosenCell, FullCell
from bayesfair.audit.log.guards import BestPath
from bayesfair.audit.log.pairs import PairFindings, bernoulli_means, find_pairs
from bayesfair.audit.log.shared_laws import laws_of
from bayesfair.audit.log.state import AuditState
from bayesfair.audit.log.summary import Summary, cells_of, summarise
from bayesfair.audit.log.violations import JudgedRounds
from bayesfair.audit.truth.objective import Part, parts_from_cells
from bayesfair.base.checks import no_seed
from bayesfair.base.notices import Notice, notices_from_json
from bayesfair.errors import OptionError
from bayesfair.families import FAMILIES
from bayesfair.families.logs import coded_of, posterior_of, prior_of
from bayesfair.history import History
from bayesfair.inference.beliefs import belief_start, beliefs, iter_beliefs
from bayesfair.inference.contract import closed_form, label_of, share_options
from bayesfair.kernels.log.conjugate import BeliefTable, run_parameters
from bayesfair.kernels.log.stream import TOLERANCES
from bayesfair.rewards import Bernoulli

if TYPE_CHECKING:
    from bayesfair.rewards import Rewards

__all__ = [
    "GeneralResult",
    "audit_with_beliefs_model",
    "general_end",
    "general_result",
    "general_start",
    "model_options",
    "parts_of_tree",
    "parts_under_model",
    "posterior_of_log",
    "posterior_rewards",
    "with_divergences",
]


type Judged = list[tuple[JudgedRounds, "Rewards"]]
"""Rounds in order, with the draws of their true rewards."""


class GeneralResult(NamedTuple):
    """What the general path finds in a part; the fields mean what they mean in `StreamResult`."""

    state: Any
    frontier: NDArray[np.float64]
    worst_excess: float
    worst_round: int
    worst_pair: tuple[int, int]
    n_violating: NDArray[np.int64]
    first_violating: NDArray[np.int64]
    last_violating: NDArray[np.int64]
    regret: NDArray[np.float64]
    p_best_chosen: NDArray[np.float64]
    p_best_sum: NDArray[np.float64]
    pi_sum: NDArray[np.float64]
    pi_var_sum: NDArray[np.float64]
    plays: NDArray[np.int64]
    n_offered: NDArray[np.int64]
    all_zero_sum: float
    n_still: int
    n_moved: int
    smallest_eps2: NDArray[np.float64] | None
    pair: NDArray[np.int64] | None
    p_best: NDArray[np.float64] | None
    best_path: BestPath
    """How far P* moves, which the checks of the log ask for."""


def general_start(
    arms: tuple[str, ...], family: str, prior: Any, first: History | None, support: Any = None
) -> AuditState:
    """Return the state before the first round for families beside Bernoulli."""
    table, rows = belief_start(arms, FAMILIES[family], prior, first, support)
    return AuditState(arms, family, rows, 0, table)


def general_result(
    part: History, state: AuditState, criterion: Criterion, *, want_rounds: bool
) -> GeneralResult:
    """Audit a part against conjugate beliefs of any family, chunk by chunk."""
    table: BeliefTable = state.beliefs
    family = FAMILIES[state.family]
    laws = laws_of(part, table)
    best = BestSums(part, keep=want_rounds)
    changed = np.zeros(part.n_rounds, dtype=bool)
    pi = part.selection_probability

    def chunks() -> Iterator[tuple[int, int, NDArray[np.float64]]]:
        believed = iter_beliefs(part, family, laws.table(table), laws=laws.of, pairs=pi is not None)
        for a, b, rewards, _, moved in believed:
            offered = None if part.offered is None else part.offered[a:b]
            best.add(a, b, family.best_of_laws(rewards, laws.counts(offered)), laws)
            changed[a:b] = moved
            yield (
                a,
                b,
                np.empty(0) if pi is None else rewards.divergence(criterion.reward_divergence),
            )

    found = None
    if pi is None:
        for _ in chunks():
            pass
    else:
        found = find_pairs(pi, chunks(), criterion, laws)
    end = general_end(part, state)
    return _result(part, best, found, changed, end, criterion, before=table)


def general_end(part: History, state: AuditState) -> BeliefTable:
    """Return the beliefs after a part."""
    table: BeliefTable = state.beliefs
    if not part.n_rounds:
        return table
    family = FAMILIES[state.family]
    coded = coded_of(part, family, table.support)
    end = run_parameters(family.rule, table, part.arm, coded, part.known_at)
    return end if part.selection_probability is None else _with_last_round(end, part, table)


def _with_last_round(end: BeliefTable, part: History, before: BeliefTable) -> BeliefTable:
    """Return the end state with what the first round of the next part is compared to."""
    n = part.n_rounds
    known_at = np.arange(1, n + 1) if part.known_at is None else part.known_at
    fresh = bool(np.any((known_at == n) & ~np.isnan(part.reward)) or np.any(before.pending_at == n))
    assert part.selection_probability is not None
    return end._replace(last_pi=part.selection_probability[-1].copy(), changed=fresh)


def _result(
    part: History,
    best: BestSums,
    found: PairFindings | None,
    changed: NDArray[np.bool_],
    end: Any,
    criterion: Criterion,
    *,
    before: BeliefTable | None = None,
) -> GeneralResult:
    n, k = part.n_rounds, part.n_arms
    pi = part.selection_probability
    still = ~changed
    follows = before is not None and before.last_pi.size > 0
    still[:1] = before is not None and follows and not before.changed
    moved = 0
    if pi is not None and n:
        last = before.last_pi if before is not None and follows else pi[0]
        shift = np.nan_to_num(np.abs(np.diff(pi, axis=0, prepend=last[None]))).max(axis=1) > 1e-9
        moved = int((still & shift).sum())
    nothing = np.zeros(k)
    known = np.nan_to_num(pi) if pi is not None else None
    if found is None:
        grid, ladder = len(criterion.grid), len(TOLERANCES)
        nowhere = np.full(ladder, -1)
        found = PairFindings(
            np.zeros(grid), -np.inf, -1, (-1, -1), np.zeros(ladder, np.int64), nowhere, nowhere,
            np.zeros(n), np.full((n, 2), -1),
        )  # fmt: skip
    offered = part.offered
    want_rounds = best.rows is not None
    return GeneralResult(
        state=end,
        regret=np.empty(0) if known is None else best.regret,
        p_best_chosen=best.chosen,
        p_best_sum=best.total,
        pi_sum=nothing if known is None else known.sum(axis=0),
        pi_var_sum=nothing if known is None else (known * (1 - known)).sum(axis=0),
        plays=np.bincount(part.arm, minlength=k),
        n_offered=np.full(k, n) if offered is None else offered.sum(axis=0),
        all_zero_sum=0.0,
        n_still=int(still.sum()),
        n_moved=moved,
        p_best=best.rows,
        frontier=found.frontier,
        worst_excess=found.worst_excess,
        worst_round=found.worst_round,
        worst_pair=found.worst_pair,
        n_violating=found.n_violating,
        first_violating=found.first_violating,
        last_violating=found.last_violating,
        smallest_eps2=found.smallest_eps2 if want_rounds and pi is not None else None,
        pair=found.pair if want_rounds and pi is not None else None,
        best_path=BestPath(best.moved, best.first, best.last),
    )


def posterior_rewards(summary: Summary, draws: int, rng: np.random.Generator) -> Rewards:
    """Return draws of the true rewards from the conjugate posterior of the whole log."""
    _, whole, _ = summary.end.prior_and_posterior()
    family, level = FAMILIES[summary.end.family], getattr(summary.end.beliefs, "support", None)
    return family.truth(family.draw(whole, (draws,), rng, summary.arms), summary.arms, level)


def posterior_of_log(
    data: History, start: AuditState, draws: int, rng: np.random.Generator, support: Any = None
) -> Rewards:
    """Return draws of the true rewards from the conjugate posterior, whatever the beliefs were."""
    family = FAMILIES[start.family]
    _, table, levels = posterior_of(data, family, prior=start.prior, support=support)
    return family.truth(family.draw(table, (draws,), rng, data.arms), data.arms, levels)


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
    criterion = question.criterion
    skipped = min(criterion.from_round, data.n_rounds)
    part, believed = data.rounds(skipped, data.n_rounds), found.rewards[skipped:]
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
    family = FAMILIES[found.family]
    n_levels = len(family.levels(question.support, data.reward)) or None
    rows, _ = prior_of(data, family, question.prior, n_levels)
    start = AuditState(data.arms, found.family, rows, 0, (), criterion.eps2_arms)
    result = _result(part, best, pairs, changed, (), criterion)
    summary = summarise(part, replace(start, n_rounds=skipped), criterion, result)
    summary = replace(summary, start=start)
    details = found.details
    name = question.beliefs_model
    label = label_of(name)
    khat = float(np.max(details.khat))
    notes: list[str] = [Notice(
        f"Beliefs before each round are those of the model {label!r} ({found.prior}): "
        f"{len(details.fit_rounds)} fits, draws carried between them by importance weights (worst "
        f"Pareto k-hat {khat:.2f}). P* and pairs have Monte-Carlo error: P* up to "
        f"{float(np.nanmax(details.best_arm_mcse)):.4f}.",
        kind="beliefs_model", value=khat, n=len(details.fit_rounds),
    ), Notice(
        "Arms may be dependent under this model: P* is averaged over joint draws, pairs are judged "
        "by the marginals, and the theorem on SD_TS, which needs independent arms, does not apply.",
        kind="dependent_arms",
    )]  # fmt: skip
    return summary, [*notes, *found.notices]


def model_options(question: Any) -> dict[str, dict[str, Any]]:
    """Return the options of ``model`` and of ``beliefs_model``, support= and prior= among them.

    The latter belongs to the models of a conjugate family; others have priors of their own.

    Raises
    ------
    OptionError
        If no model takes an option.
    """
    fit_takes = ("method", "allow_unconverged", "cores", "progress")
    shares = share_options(
        question.options,
        {
            "model": (question.model, fit_takes),
            "beliefs_model": (question.beliefs_model, ("min_ess", "max_fits", "cores")),
        },
    )
    for role, model in (("model", question.model), ("beliefs_model", question.beliefs_model)):
        if model is not None and question.support is not None:
            shares[role]["support"] = question.support
        if closed_form(model) is not None and question.prior is not None:
            shares[role]["prior"] = question.prior
    return shares


def with_divergences(part: History, state: AuditState, criterion: Criterion, result: Any) -> Any:
    """Return a Bernoulli result with its pairs judged by other divergences."""
    assert part.selection_probability is not None
    found = find_pairs(
        part.selection_probability,
        (
            (start, stop, Bernoulli(m).divergence(criterion.reward_divergence))
            for start, stop, m in bernoulli_means(part, state.beliefs)
        ),
        criterion,
    )
    return result._replace(**found._asdict())


def parts_under_model(
    data: Any, summary: Summary, question: Any
) -> tuple[tuple[list[Part], Judged], list[str], Any]:
    """Return the parts of the objective audit under the posterior of a model, notices, the tree.

    For the parts see `parts_of_tree`.

    Raises
    ------
    OptionError
        If the log was scanned: a model needs the whole of it.
    """
    if not isinstance(data, History):
        raise OptionError(
            "model= needs the whole log for its posterior; read it whole (read_history), or "
            "use the conjugate posterior."
        )
    from bayesfair.inference import fit

    tree = fit(
        data,
        model=question.model,
        seed=question.seed,
        draws=question.draws,
        **model_options(question)["model"],
    )
    notices: list[str] = [
        notice
        for notice in notices_from_json(tree.attrs.get("notices"))
        # what the beliefs rest on says that, with the rounds
        if notice.kind != "prior_learned" or not summary.end.prior_is_learned
    ]
    notices.append(Notice(
        f"The true rewards are drawn from the posterior of the model {tree.attrs['model']} "
        f"({tree.attrs['method']}; its prior: {tree.attrs['prior']}).",
        kind="posterior", column="model", value=str(tree.attrs["model"]),
    ))  # fmt: skip
    return parts_of_tree(tree, data, summary, question.criterion), notices, tree


def parts_of_tree(
    tree: Any, data: History, summary: Summary, criterion: Criterion
) -> tuple[list[Part], Judged]:
    """Return the parts of the objective audit under the draws of a fit to the whole log.

    Beside them its rounds in order, with the draws of their true rewards.

    Raises
    ------
    OptionError
        If the model has time bins and no probabilities were logged.
    """
    from bayesfair.inference import bin_starts, rewards_from_posterior

    rewards: Rewards = rewards_from_posterior(tree)
    starts = bin_starts(tree)
    if summary.selection == "none":
        shares = summary.sums.plays / max(summary.sums.n_rounds, 1)
        if starts is not None:
            raise OptionError(
                "a model with time bins needs logged probabilities; without them only the shares "
                "of the whole log can be compared. Choose a model without bins."
            )
        if not summary.sums.n_rounds:
            return [Part(None, 0, rewards)], []
        return [Part(None, summary.sums.n_rounds, rewards, None, shares)], []
    if starts is None:
        judged = [] if summary.judged is None else [(summary.judged, rewards)]
        return parts_from_cells(summary.cells, rewards, data.n_arms), judged
    parts: list[Part] = []
    judged = []
    stops = np.append(starts[1:], data.n_rounds)
    for b, (begin, stop) in enumerate(zip(starts, stops, strict=True)):
        start = max(int(begin), criterion.from_round)
        if start >= stop:
            continue
        part = data.rounds(start, int(stop))
        cells: dict[bytes, FullCell | ChosenCell] = cells_of(part, criterion)
        parts += parts_from_cells(cells, rewards[:, b], data.n_arms)
        if part.selection_probability is not None:
            here = JudgedRounds.of(part.selection_probability, start, criterion)
            judged.append((here, rewards[:, b]))
    return parts or [Part(None, 0, rewards[:, 0])], judged
