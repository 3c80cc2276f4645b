"""Read a history lazily: parts with the same arms, one after the other, in constant memory."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.base import notices as said
from bayesfair.base.arguments import MAPPING, PLAIN, TEXT, TEXT_OR_FALSE, each, takes
from bayesfair.base.labels import in_order
from bayesfair.base.notices import Notice
from bayesfair.errors import DataError, OptionError
from bayesfair.history import History
from bayesfair.history.probabilities import Resolution
from bayesfair.readers.files.read_ahead import ahead
from bayesfair.readers.files.tables import no_rows, open_source
from bayesfair.readers.log.building import (
    Builder,
    check_decimal,
    parse_missing,
    refuse_unused,
    tied,
)
from bayesfair.readers.log.columns import Option
from bayesfair.readers.log.history import discovery_notice, group_priors, known_arms
from bayesfair.readers.log.looking import layout_of
from bayesfair.readers.log.offers import check_reading
from bayesfair.readers.log.passes import ROWS, Found, Plan, collected, rewards_seen, tables_of
from bayesfair.readers.log.rounds import Rounds
from bayesfair.readers.log.tally import Tally, empty_columns
from bayesfair.readers.values.stamps import Trend, check_trends
from bayesfair.readers.values.times import NUMBER

__all__ = ["HistoryScan", "iter_rewards", "scan_history"]

_TOLD = 10_000  # rounds that tell which way a log runs
_CELLS = 1 << 23  # of the probability matrix of one part: 64 MB


@dataclass(frozen=True, eq=False, repr=False)
class HistoryScan:
    """A log that is read part by part, as often as it is asked for.

    Attributes
    ----------
    source : str
        What errors and reports call the log.
    arms : tuple of str
        Labels, the same for every part.
    selection : str
        ``"full"``, ``"chosen"`` or ``"none"``, as in `History`.
    n_rounds : int or None
        Number of rounds, None where only reading the log would tell.
    prior_counts : mapping, array or None
        Outcomes before the log; every part carries them, and they count once.
    notices : tuple of str
        What is known before a round is read. Parts carry them too; the last part adds what was
        counted over the whole.
    chunk_rounds : int
        Rounds per part; of one group of a source, rows of the source that a part is taken from.

    Examples
    --------
    >>> from bayesfair import examples
    >>> scan = scan_history(examples.path("ecmo"), chunk_rounds=5)
    >>> [(part.n_rounds, int(part.row[0])) for part in scan.chunks()]
    [(5, 2), (5, 7), (2, 12)]
    """

    source: str
    arms: tuple[str, ...]
    selection: str
    n_rounds: int | None
    prior_counts: Any
    notices: tuple[str, ...]
    chunk_rounds: int
    _plan: Plan = field(repr=False)

    @property
    def unused_columns(self) -> tuple[str, ...]:
        """Columns of the source that nothing is read from."""
        return self._plan.layout.unused

    @property
    def n_arms(self) -> int:
        """Number of arms, k."""
        return len(self.arms)

    def chunks(self) -> Iterator[History]:
        """Yield the parts in order, as validated histories; the next is read meanwhile.

        Rows are numbered through the source; `known_at` counts from the first round of each part.
        Every call reads the source anew.

        Raises
        ------
        DataError, ProbabilityError, ArmError
            As `read_history` does; also if the rounds are not in order, naming the row.
        """
        return ahead(self._located())

    def _located(self) -> Iterator[History]:
        with self._plan.source.locating():
            yield from self._parts()

    def _parts(self) -> Iterator[History]:
        plan, tally = self._plan, Tally(np.zeros(self.n_arms, dtype=np.int64))
        converter = plan.converter(self.arms)
        progress = _Progress(plan)
        resolution = Resolution()
        held: History | None = None
        row = plan.source.first_row
        for table in tables_of(plan, plan.layout.columns, self.chunk_rounds):
            rounds = converter.convert(table, row)
            if converter.known_kind not in (None, NUMBER):
                raise DataError(
                    f"{converter.where(str(plan.layout.known_at), row)(0)}: holds a "
                    f"{converter.known_kind}, which only the rounds still to come could place. A "
                    "scan needs round numbers there; read the log whole (read_history), "
                    "or pass known_at=False to use each reward in the next round.",
                    kind="needs_whole",
                    column=str(plan.layout.known_at),
                )
            row += len(rounds)
            progress.look_at(rounds)
            if plan.group is not None:
                rounds = rounds.take(rounds.group == converter.groups.code(plan.group))
                if not len(rounds):
                    continue
            progress.check(rounds, self.source)
            builder = Builder(
                plan.layout, self.source, plan.missing, converter.known_kind, plan.tolerance,
                self.prior_counts, self.n_rounds or 0,
            )  # fmt: skip
            if plan.missing == "drop" and not (~np.isnan(rounds.reward) & (rounds.arm >= 0)).any():
                builder.settled(rounds, tally)  # counted, and nothing left of this part
                continue
            part = builder.history(
                rounds, self.arms, tally=tally, offset=progress.n_rounds, resolution=resolution,
                notices=self.notices,
            )  # fmt: skip
            progress.n_rounds += part.n_rounds
            resolution = part.resolution
            if held is not None:
                yield held
            held = part
        if held is None:
            raise no_rows(plan.source, tally.total)
        progress.check_end(self.source)
        late = [*converter.book.notices(), *progress.notices(self.source)]
        late += tally.notices(plan.missing, self.arms, plan.layout)
        last = held.with_notices(*late)
        # rows left out after the last round belong to it
        object.__setattr__(last, "n_skipped", last.n_skipped + tally.untold(plan.missing))
        yield last

    def __repr__(self) -> str:
        length = "unknown length" if self.n_rounds is None else f"{self.n_rounds} rounds"
        return (
            f"HistoryScan({self.source}: {length}, {self.n_arms} arms, "
            f"selection={self.selection!r}, parts of {self.chunk_rounds} rounds)"
        )


def iter_rewards(scans: Sequence[HistoryScan]) -> Iterator[NDArray[np.float64]]:
    """Yield the observed rewards of scans, of groups of one source in one pass over it."""
    shared: dict[int, list[HistoryScan]] = {}
    for scan in scans:
        shared.setdefault(id(scan._plan.source), []).append(scan)
    for same in shared.values():
        plan = same[0]._plan
        groups = [s._plan.group for s in same if s._plan.group is not None]
        with plan.source.locating():
            yield from rewards_seen(plan, same[0].arms, groups or None)


class _Progress:
    """What has to be remembered from part to part."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.n_rounds = 0
        self.n_ties = 0
        self._last: Any = None
        self._trends = [Trend() for _ in plan.layout.watched]
        self._latest: Rounds | None = None  # the one row with the largest `known_at`
        self._never: NDArray[np.bool_] | None = None

    def look_at(self, rounds: Rounds) -> None:
        """Note which arms have no probability in any row, of whatever group."""
        if self.plan.group is None or rounds.pi is None:
            return
        if self._never is None:
            self._never = np.ones(rounds.pi.shape[1], dtype=np.bool_)
        for j in np.flatnonzero(self._never):
            self._never[j] = np.isnan(rounds.pi[:, j]).all()

    def check(self, rounds: Rounds, source: str) -> None:
        """Refuse a part that does not continue the order of the parts before it."""
        plan, known = self.plan, rounds.known_at
        if rounds.watched is not None:
            pairs = zip(self._trends, rounds.watched.T, strict=True)
            self._trends = [trend.after(values) for trend, values in pairs]
            if self._trends[0].n >= _TOLD:
                check_trends(self._trends, plan.layout.watched, source)
        if known is not None and not np.isnan(known).all():
            latest = rounds.take([int(np.nanargmax(known))])
            before = None if self._latest is None else self._latest.known_at
            if before is None or (latest.known_at is not None and latest.known_at[0] > before[0]):
                self._latest = latest
        order, column = rounds.order, plan.layout.order
        if order is None or column is None:
            return
        joined = order if self._last is None else np.concatenate([self._last, order])
        back = np.flatnonzero(joined[1:] < joined[:-1])
        if back.size:
            at = int(back[0]) + 1
            row = int(rounds.row[at - (len(joined) - len(order))])
            raise DataError(
                f"row {row} of {plan.source.name}, column {column!r}: {joined[at]} comes after "
                f"{joined[at - 1]}. A scan needs the rows in order: sort the source, read it whole "
                "(read_history) to have it sorted, or pass order=False if its own order is "
                "right.",
                kind="needs_whole",
                row=row,
                column=column,
                source=plan.source.name,
            )
        self.n_ties += int(np.count_nonzero(joined[1:] == joined[:-1]))
        self._last = order[-1:]

    def check_end(self, source: str) -> None:
        """Refuse numbers in `known_at` that lie far beyond the log, now that its end is known."""
        if self._latest is not None:
            Builder(
                self.plan.layout, source, self.plan.missing, NUMBER, n_rounds=self.n_rounds
            ).check_known(self._latest)

    def notices(self, source: str) -> list[str]:
        """Say which arms are never on offer, and what is not certain of the order.

        Raises
        ------
        DataError
            If the log runs backwards.
        """
        found: list[str] = []
        if self._trends:
            found += check_trends(self._trends, self.plan.layout.watched, source)
        found += tied(self.n_ties, self.n_rounds, str(self.plan.layout.order))
        if self._never is not None:
            found += empty_columns(self._never, self.plan.layout)
        return found


@takes(
    **each(PLAIN, "arm", "reward", "propensity", "order", "by", "known_at", "known_until",
           "unique", "user", "decimal"),
    probabilities=TEXT_OR_FALSE,
    offered=TEXT,
    rewards=MAPPING,
)  # fmt: skip
def scan_history(
    source: Any,
    *,
    arm: str = "arm",
    reward: str = "reward",
    propensity: Option = None,
    probabilities: Option = None,
    order: Option = None,
    by: str | None = None,
    arms: Sequence[Any] | None = None,
    offered: str | None = None,
    offered_delimiter: str = "|",
    known_at: Option = None,
    known_until: str | None = None,
    unique: str | None = None,
    user: str | None = None,
    prior: Any = None,
    missing: str | float = "error",
    rewards: Mapping[Any, float] | None = None,
    delimiter: str | None = None,
    decimal: str = ".",
    probability_tolerance: float | None = None,
    chunk_rounds: int | None = None,
) -> HistoryScan | dict[str, HistoryScan]:
    """Prepare to read a history in parts, in constant memory whatever its length.

    Options mean what they mean in `read_history`. The differences: rounds must be in the order of
    the source (an unsorted source is refused where `order` is used); where neither `arms` nor
    columns such as ``p_{arm}`` name the arms, a first pass over the source collects them and counts
    the rounds; `known_at` is a round number, since a time would need the rounds still to come, as
    would `known_until`. With `by`, a first pass collects the groups, rows have to be in order
    within their group only, and an audit reads the source once for each group; once more
    before, the rewards alone, where family or levels follow from those of all groups.

    Parameters
    ----------
    chunk_rounds : int, optional
        Rounds per part; default 250000, fewer where there are more than 30 arms.
    source, arm, reward, propensity, probabilities, order, by, arms, offered, offered_delimiter
        See `read_history`.
    known_at, known_until, unique, user, prior, missing, rewards, delimiter, decimal
        See `read_history`; `known_until` is refused.
    probability_tolerance
        See `read_history`.

    Returns
    -------
    HistoryScan or dict of str to HistoryScan
        Nothing but headers (and, where they have to be collected, the labels) has been read. A
        dict, in the order of the groups' labels, if `by` is given.

    Raises
    ------
    DataError, ArmError, OptionError
        As `read_history`.

    Examples
    --------
    >>> from bayesfair import examples
    >>> scan_history(examples.path("ecmo")).arms
    ('ECMO', 'conventional')
    """
    values = locals()
    check_decimal(decimal)
    check_reading(probability_tolerance, offered_delimiter)
    asked = None if chunk_rounds is None else _positive(chunk_rounds)
    action = parse_missing(missing)
    _check_scannable(by, arms, known_until, prior)
    given = known_arms(arms)
    opened = open_source(source, delimiter=delimiter, wanted=[arm, reward])
    layout = layout_of(
        opened, decimal=decimal, mapping=rewards, arm=arm, reward=reward, propensity=propensity,
        probabilities=probabilities, order=order, by=by, offered=offered, known_at=known_at,
        unique=unique, user=user, arms=given,
    )  # fmt: skip
    refuse_unused(scan_history, values, opened, layout)
    if layout.known_at and action == "drop":
        raise OptionError(
            "a scan cannot both leave rows out (missing='drop') and use known_at, whose numbers "
            "would change with rows still to come; use missing='unobserved' or read_history.",
            kind="needs_whole",
            column="missing",
        )
    plan = Plan(opened, layout, action, probability_tolerance, decimal, rewards, offered_delimiter)
    notices = [*opened.notices, *layout.notices]
    labels = given if given is not None else layout.arms_from_columns
    found = Found(labels or (), {}, opened.n_rows, ())
    if labels is None or layout.by is not None:
        with opened.locating():
            found = collected(plan, labels)
        if labels is None:
            notices.append(Notice(
                f"{discovery_notice(len(found.arms))} A first pass over {found.n_rows} rows "
                "collected them.",
                kind="arms_seen", column="arms", n=len(found.arms),
            ))  # fmt: skip
    notices += found.notices
    size = min(ROWS, max(1024, _CELLS // len(found.arms))) if asked is None else asked
    whole = HistoryScan(
        source=opened.name,
        arms=found.arms,
        selection="full" if layout.probabilities else "chosen" if layout.propensity else "none",
        n_rounds=None if action == "drop" else found.n_rows,
        prior_counts=prior,
        notices=said.unique(notices),
        chunk_rounds=size,
        _plan=plan,
    )
    if layout.by is None:
        return whole
    priors = group_priors(prior, found.groups, layout.by)
    return {
        group: replace(
            whole,
            source=f"{opened.name}, {layout.by}={group}",
            n_rounds=None if action == "drop" else found.groups[group],
            prior_counts=priors.get(group),
            _plan=replace(plan, group=group),
        )
        for group in in_order(found.groups)
    }


def _check_scannable(by: str | None, arms: Any, known_until: str | None, prior: Any) -> None:
    """Refuse what only the whole log can tell."""
    if known_until:
        raise OptionError(
            f"known_until={known_until!r} needs the rounds still to come, which a scan has not "
            "read. Give the first round that may use each reward (known_at=), or read the log "
            "whole (read_history)."
        )
    if isinstance(arms, str) and arms == "by_group":
        raise OptionError(
            'arms="by_group" needs all rows of a group, which a scan has not read. Name the arms, '
            "or read the log whole (read_history)."
        )
    if by and prior is not None and not isinstance(prior, Mapping):
        raise OptionError("prior together with by= must be a mapping of group to prior.")


def _positive(chunk_rounds: Any) -> int:
    """Return a positive whole number, however it is typed."""
    try:
        number = operator.index(chunk_rounds)
    except TypeError:
        number = 0
    if number < 1 or isinstance(chunk_rounds, bool):
        raise OptionError(f"chunk_rounds={chunk_rounds!r} must be a positive whole number.")
    return number
