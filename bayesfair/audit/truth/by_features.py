"""The objective audit where the true rewards depend on features of a round.

Rounds do not separate: their rewards differ in each, so the log is read again. What it needs is
exact for every draw of the coefficients; its regret is a mean, taken over rounds that are spread
evenly where all of them would be too many, with the error of that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from bayesfair.audit.criterion import Criterion
from bayesfair.audit.log.pairs import find_pairs
from bayesfair.audit.log.state import parts_of
from bayesfair.audit.log.summary import Summary
from bayesfair.audit.log.violations import Violations
from bayesfair.audit.truth.exact_coefficients import APART, Exact, Known, exact_draws
from bayesfair.audit.truth.objective import CellFound, Certificate, Objective, sampling_sd
from bayesfair.base.checks import listed
from bayesfair.base.labels import label_order
from bayesfair.base.notices import Notice
from bayesfair.families.featured import PRIOR_SD, Featured
from bayesfair.history import History
from bayesfair.inference.carried import MOST_CARRIED, Carried
from bayesfair.inference.coefficients import FEWEST, KHAT
from bayesfair.kernels.log.needed import needed_by_draw
from bayesfair.rewards import Bernoulli, Normal, Rewards
from bayesfair.typing import Floats, Ints

__all__ = ["objective_by_features"]

_MOST_LAWS = {True: 20_000_000, False: 300_000}
"""Rounds times draws of which P* is taken, of 0/1 rewards and of measurements: some seconds."""

_MOST_COUNTED = 100_000_000
"""Rounds times pairs times draws in which violations are counted."""

_FEWEST = 200
_LOOKED = 200  # rounds in which the filter is held against the posterior
_CHECKS = (0.125, 0.25, 0.5)  # and after which shares of the log, besides its end
_DIFFERENCES = ("total_variation", "wasserstein")


def objective_by_features(
    data: Any, summary: Summary, draws: int, criterion: Criterion, rng: np.random.Generator
) -> tuple[Objective | None, list[str]]:
    """Audit a log against draws of the coefficients from what is believed at its end.

    Parameters
    ----------
    data : History or HistoryScan
        The log, which is read again.
    summary : Summary
        Of it.
    draws : int
        Draws of the coefficients.
    criterion : Criterion
        What is asked.
    rng : Generator
        Of draws and of sampling errors.

    Returns
    -------
    objective : Objective or None
        None where the data are not the rounds of the summary.
    notices : list of Notice
    """
    shared = summary.start.beliefs.shared
    if data is None or (isinstance(shared, Carried) and shared.told_arm.size):
        return None, [_NOT_READ_AGAIN]
    of, order = summary.end.beliefs.featured, label_order(summary.arms)
    theta, sd = of.draws(draws, order, rng)
    exact: Exact | None = None
    certificates: list[Certificate] = []
    notices: list[str] = []
    if of.model in PRIOR_SD:
        n_rewards = int((summary.sums.plays - summary.sums.n_unobserved).sum())
        before = summary.start.beliefs.featured
        exact = exact_draws(before, of, parts_of(data), n_rewards, order, rng)
        if exact is None:
            notices.append(_uncertified("so many known rewards would take too long", n_rewards))
        else:
            theta[:, exact.holds] = exact.resampled(draws, order, rng)[:, exact.holds]
            notices += _refused(exact, summary.arms)
            certificates = _earlier(data, summary, order, rng)
    found = _Sums(of, theta, sd, summary, criterion)
    done = summary.start.n_rounds
    for whole in parts_of(data):
        skipped = min(max(criterion.from_round - done, 0), whole.n_rounds)
        found.add(whole.rounds(skipped, whole.n_rounds), done + skipped)
        done += whole.n_rounds
    if done != summary.end.n_rounds:
        return None, [_NOT_READ_AGAIN]
    if exact is not None and found.rows:
        certificates.append(exact.certificate(of, np.concatenate(found.rows), done))
        if not isinstance(shared, Carried):
            notices += _told(certificates)
    return replace(found.objective(rng), certificates=tuple(certificates)), notices


def _earlier(
    data: Any, summary: Summary, order: Ints, rng: np.random.Generator
) -> list[Certificate]:
    """Return how far the filter was from the posterior at earlier rounds of the log."""
    before = of = summary.start.beliefs.featured
    found: list[Certificate] = []
    past: list[Known] = []
    done, n_rewards = 0, 0
    first, n = summary.start.n_rounds, summary.end.n_rounds - summary.start.n_rounds
    checks = sorted({c for c in (round(n * share) for share in _CHECKS) if c > 0})
    for whole in parts_of(data):
        start = 0
        while checks and checks[0] <= done + whole.n_rounds:
            stop = checks.pop(0) - done
            part = whole.rounds(start, stop)
            past.append(Known(part.context, part.arm, part.reward))
            of, start = of.over(part, laws=False)[1], stop
            n_rewards += int((~np.isnan(part.reward)).sum())
            exact = exact_draws(before, of, past, n_rewards, order, rng)
            if exact is None:
                return found
            every = np.concatenate([of.design.rows(one.context) for one in past])
            rows = every[:: max(len(every) // _LOOKED, 1)]
            found.append(exact.certificate(of, rows, first + done + stop))
        if not checks:
            break
        rest = whole.rounds(start, whole.n_rounds)
        past.append(Known(rest.context, rest.arm, rest.reward))
        of = of.over(rest, laws=False)[1]
        n_rewards += int((~np.isnan(rest.reward)).sum())
        done += whole.n_rounds
    return found


_NOT_READ_AGAIN = Notice(
    "The objective part is left out: rewards that depend on features differ in every round, so it "
    "needs all rounds again, and a merged or resumed audit has them no longer. Audit the whole log "
    "for it.",
    kind="objective_left_out", column="objective",
)  # fmt: skip


def _uncertified(why: str, value: Any) -> Notice:
    return Notice(
        "The true rewards are drawn from the normal laws of the filter, not from the posterior "
        f"that they stand for, whose importance weights cannot be had: {why}.",
        kind="filter_not_certified", column="context_model", value=value,
    )  # fmt: skip


def _refused(exact: Exact, arms: tuple[str, ...]) -> list[Notice]:
    """Name the arms whose importance weights cannot be relied on."""
    bad = [arm for arm, good in zip(arms, exact.holds, strict=True) if not good]
    if not bad:
        return []
    why = f"those of {listed(bad)} have a Pareto k-hat above {KHAT} or fewer than {FEWEST} "
    return [_uncertified(f"{why}effective draws", bad)]


def _told(every: list[Certificate]) -> list[Notice]:
    """Say how far the filter is from the posterior, where that is not rare."""
    found = max(every, key=lambda check: check.share)
    if found.share <= 0.01:
        return []
    return [Notice(
        f"After {found.n_rounds} rounds the filter is up to {found.difference:.3f} from the "
        f"posterior in the chance of an arm, and more than {APART} in {100 * found.share:.0f} % of "
        "the rounds. The objective part has the posterior; the numbers under the beliefs of each "
        "round may be off by as much, so they decide nothing. Draws carried from reward to reward "
        f"take the filter's place up to {MOST_CARRIED:,} rounds times arms, where their weights "
        "hold; beliefs_model= takes a PyMC model, which is fitted anew.",
        kind="filter_apart", column="context_model", n=found.n_rounds, value=found.difference,
    )]  # fmt: skip


def _is_difference(criterion: Criterion) -> bool:
    """Return whether both divergences of 0/1 laws are |p - q|."""
    return {criterion.divergence, criterion.reward_divergence} <= set(_DIFFERENCES)


class _Cell(NamedTuple):
    """Rounds of a bin, and sums over them for every draw: of the regret, of P*."""

    n: int
    total: Any
    best: Any


class _Sums:
    """Sums over rounds, for every draw."""

    def __init__(
        self, of: Featured, theta: Floats, sd: Floats, summary: Summary, criterion: Criterion
    ) -> None:
        self.of, self.theta, self.sd, self.criterion = of, theta, sd, criterion
        self.summary, self.binary = summary, of.model != "linear"
        n, (s, k, _) = summary.sums.n_rounds, theta.shape
        self.needed = np.zeros((s, len(criterion.grid)))
        budget = max(_MOST_COUNTED // max(n * k * k, 1), min(_FEWEST, s))
        self.counted = slice(None, None, max(-(-s // budget), 1))
        c = len(range(s)[self.counted])
        none = np.full(c, -1, np.int64)
        self.counts = Violations(np.zeros(c), none, none.copy())
        self.stride = max(-(-n * s // _MOST_LAWS[self.binary]), 1)
        self.seen = 0
        self.first, self.second, self.best = np.zeros(s), np.zeros(s), np.zeros((s, k))
        self.by_cell: dict[str, _Cell] = {}
        self.looked = max(n // _LOOKED, 1)
        self.rows: list[Floats] = []

    def add(self, part: History, start: int) -> None:
        """Add judged rounds, the first of them with this number."""
        if not part.n_rounds:
            return
        assert part.context is not None
        rows = self.of.design.rows(part.context)
        self.rows.append(rows[(-start) % self.looked :: self.looked])
        if part.selection_probability is not None:
            self._need(part, rows, start)
        codes, labels = self.of.design.bins(part.context).cells
        every = np.arange((-start) % self.stride, part.n_rounds, self.stride)
        at_once = max(1, 4_000_000 // self.best.size)
        for a in range(0, len(every), at_once):
            self._regret(part, rows, every[a : a + at_once], codes, labels)

    def _laws(self, rows: Floats, some: slice = slice(None)) -> Rewards:
        """Return the true laws in some rounds, batch (draw, round)."""
        value = np.einsum("ta,ska->stk", rows, self.theta[some], optimize=True)
        if self.of.model == "linear":
            return Normal(value, np.broadcast_to(self.sd[some][:, None], value.shape))
        return Bernoulli(self.of.chance(value))

    def _need(self, part: History, rows: Floats, start: int) -> None:
        criterion, s, pi = self.criterion, np.arange(len(self.theta)), part.selection_probability
        assert pi is not None
        if not (criterion.is_total_variation or (self.binary and _is_difference(criterion))):
            self._need_by_draw(part, rows, start)
            return
        # draws whose violations are counted come first
        order = np.concatenate([s[self.counted], np.delete(s, self.counted)])
        needed = self.needed[order]
        needed_by_draw(
            self.of.model, rows, pi, self.theta[order], self.sd[order],
            np.array(criterion.grid), (criterion.grid_index, criterion.certain, start), needed,
            self.counts,
        )  # fmt: skip
        self.needed[order] = needed

    def _need_by_draw(self, part: History, rows: Floats, start: int) -> None:
        """Hold every round against every draw, by any divergence."""
        criterion, size = self.criterion, max(1, 2_000_000 // self.best.shape[1] ** 2)
        assert part.selection_probability is not None
        for s in range(len(self.theta)):

            def chunks(s: int = s) -> Iterator[tuple[int, int, Floats]]:
                for a in range(0, len(rows), size):
                    b = min(a + size, len(rows))
                    laws = self._laws(rows[a:b], slice(s, s + 1))[0]
                    yield a, b, laws.divergence(criterion.reward_divergence)

            found, _, _ = find_pairs(part.selection_probability, chunks(), criterion)
            self.needed[s] = np.maximum(self.needed[s], found.frontier)
            place, other = divmod(s, self.counted.step)
            if not other:
                one = found.n_violating, found.first_violating, found.last_violating
                here = Violations(*(np.array([criterion.count_at(c)]) for c in one)).shifted(start)
                at = slice(place, place + 1)
                n, first, last = self.counts
                both = Violations(n[at], first[at], last[at]).merged(here)
                for kept, new in zip(self.counts, both, strict=True):
                    kept[at] = new

    def _regret(
        self, part: History, rows: Floats, rounds: Any, codes: Any, labels: tuple[str, ...]
    ) -> None:
        offered = None if part.offered is None else part.offered[rounds][None]
        if offered is not None:
            offered = np.broadcast_to(offered, (len(self.theta), *offered.shape[1:]))
        best = self._laws(rows[rounds]).best_arm_probability(offered=offered)
        self.seen += len(rounds)
        self.best += np.nan_to_num(best).sum(axis=1)
        if part.selection_probability is not None:
            lack = np.nan_to_num(best) - np.nan_to_num(part.selection_probability[rounds])
            terms = np.maximum(lack, 0.0).sum(axis=2)
        elif part.propensity is not None:
            chosen = best[:, np.arange(len(rounds)), part.arm[rounds]]
            terms = np.maximum(1.0 - chosen / part.propensity[rounds], 0.0)
        else:
            terms = np.zeros(best.shape[:2])
        self.first += terms.sum(axis=1)
        self.second += (terms * terms).sum(axis=1)
        for c in np.unique(codes[rounds]).tolist():
            here = terms[:, codes[rounds] == c]
            own = np.nan_to_num(best[:, codes[rounds] == c]).sum(axis=1)
            kept = self.by_cell.setdefault(labels[c], _Cell(0, 0.0, 0.0))
            self.by_cell[labels[c]] = _Cell(
                kept.n + here.shape[1], kept.total + here.sum(axis=1), kept.best + own
            )

    def objective(self, rng: np.random.Generator) -> Objective:
        """Return what was found."""
        summary, n = self.summary, max(self.seen, 1)
        mean, best, none = self.first / n, self.best / n, np.zeros(len(self.first))
        sampled = self.stride > 1 or summary.selection == "chosen"
        whole = Objective(
            self.needed if summary.selection == "full" and self.seen else None,
            mean if summary.selection != "none" else None,
            sampling_sd(mean, self.second, n) if sampled else none,
            None,
            best,
            0.0,
        )
        if summary.selection == "none" and summary.sums.n_rounds:
            whole = replace(whole, lower_bound=self._lower_bound())
        if whole.smallest_eps2 is not None:
            whole = replace(whole, violations=self.counts)
        if whole.regret is None:
            return whole
        cells = {}
        for label, cell in self.by_cell.items():
            one = replace(whole, regret=cell.total / cell.n, regret_sampling_sd=none)
            estimate = one.regret_estimate(rng, exact=False)
            cells[label] = CellFound(label, None, estimate)
        return replace(whole, cells=cells)

    def _lower_bound(self) -> Floats:
        """Return how far mean P* lies from the shares of the choices in each bin, for each draw."""
        found = np.zeros(len(self.first))
        for label, cell in self.by_cell.items():
            sums = self.summary.contexts[label]
            lack = cell.best / cell.n - sums.plays / sums.n_rounds
            found += sums.n_rounds / self.summary.sums.n_rounds * np.maximum(lack, 0).sum(axis=1)
        return found
