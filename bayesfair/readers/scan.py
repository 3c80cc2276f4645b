"""Read a history lazily: parts with the same arms, one after the other, in constant memory."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bayesfair.checks import counted
from bayesfair.errors import DataError, OptionError
from bayesfair.history import History
from bayesfair.labels import in_order
from bayesfair.probabilities import Resolution
from bayesfair.readers.ahead import ahead
from bayesfair.readers.building import (
    Builder,
    check_decimal,
    check_reading,
    parse_missing,
)
from bayesfair.readers.columns import Layout, Option, resolve_layout
from bayesfair.readers.history import discovery_notice, known_arms
from bayesfair.readers.label_book import LabelBook
from bayesfair.readers.rounds import Converter, Rounds
from bayesfair.readers.tables import Source, no_rows, open_source
from bayesfair.readers.tally import Tally
from bayesfair.readers.times import NUMBER

__all__ = ["HistoryScan", "scan_history"]

_ROUNDS = 250_000
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
        Rounds per part.

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
    _plan: _Plan = field(repr=False)

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
        progress = _Progress()
        resolution = Resolution()
        held: History | None = None
        row = plan.source.first_row
        for table in _tables(plan, plan.layout.columns, self.chunk_rounds):
            rounds = converter.convert(table, row)
            if converter.known_kind not in (None, NUMBER):
                raise DataError(
                    f"{converter.where(str(plan.layout.known_at), row)(0)}: holds a "
                    f"{converter.known_kind}, which only the rounds still to come could place. A "
                    "scan needs round numbers there; read the log whole (read_history), or pass "
                    "known_at=False to use each reward in the next round."
                )
            row += len(rounds)
            progress.check(rounds, plan)
            builder = Builder(
                plan.layout, self.source, plan.missing, converter.known_kind, plan.tolerance,
                self.prior_counts,
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
        late = [*converter.book.notices(), *progress.notices(plan)]
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


@dataclass(frozen=True, eq=False)
class _Plan:
    """How to read the source: everything that a pass over it needs."""

    source: Source
    layout: Layout
    missing: str | float
    tolerance: float | None
    decimal: str
    mapping: Mapping[Any, float] | None
    offered_delimiter: str

    def converter(self, arms: Sequence[str] | None) -> Converter:
        return Converter(
            self.layout, self.source.name, arms, decimal=self.decimal, mapping=self.mapping,
            offered_delimiter=self.offered_delimiter,
        )  # fmt: skip


class _Progress:
    """What has to be remembered from part to part."""

    def __init__(self) -> None:
        self.n_rounds = 0
        self.n_ties = 0
        self._last: Any = None

    def check(self, rounds: Rounds, plan: _Plan) -> None:
        """Refuse a part that does not continue the order of the parts before it."""
        order, column = rounds.order, plan.layout.order
        if order is None or column is None:
            return
        joined = order if self._last is None else np.concatenate([self._last, order])
        back = np.flatnonzero(joined[1:] < joined[:-1])
        if back.size:
            at = int(back[0]) + 1
            row = int(rounds.row[0]) + at - (len(joined) - len(order))
            raise DataError(
                f"row {row} of {plan.source.name}, column {column!r}: {joined[at]} comes after "
                f"{joined[at - 1]}. A scan needs the rows in order: sort the source, read it whole "
                "(read_history sorts), or pass order=False if its own order is the right one."
            )
        self.n_ties += int(np.count_nonzero(joined[1:] == joined[:-1]))
        self._last = order[-1:]

    def notices(self, plan: _Plan) -> list[str]:
        """Say how many rows share their place."""
        if not self.n_ties:
            return []
        return [
            f"{counted(self.n_ties, 'row')} with the same {plan.layout.order!r} as the row before "
            "kept the order of the source."
        ]


def scan_history(
    source: Any,
    *,
    arm: str = "arm",
    reward: str = "reward",
    propensity: Option = None,
    probabilities: Option = None,
    order: Option = None,
    arms: Sequence[Any] | None = None,
    offered: str | None = None,
    offered_delimiter: str = "|",
    known_at: Option = None,
    prior: Any = None,
    missing: str | float = "error",
    rewards: Mapping[Any, float] | None = None,
    delimiter: str | None = None,
    decimal: str = ".",
    probability_tolerance: float | None = None,
    chunk_rounds: int | None = None,
) -> HistoryScan:
    """Prepare to read a history in parts, in constant memory whatever its length.

    Options mean what they mean in `read_history`. The differences: rounds must be in the order of
    the source (an unsorted source is refused where `order` is used); where neither `arms` nor
    columns such as ``p_{arm}`` name the arms, a first pass over the source collects them and counts
    the rounds; `known_at` is a round number, since a time would need the rounds still to come.

    Parameters
    ----------
    chunk_rounds : int, optional
        Rounds per part; default 250000, fewer where there are more than 30 arms.
    source, arm, reward, propensity, probabilities, order, arms, offered, offered_delimiter
        See `read_history`.
    known_at, prior, missing, rewards, delimiter, decimal, probability_tolerance
        See `read_history`.

    Returns
    -------
    HistoryScan
        Nothing but headers (and, without arms, the labels) has been read.

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
    check_decimal(decimal)
    check_reading(probability_tolerance, offered_delimiter)
    asked = None if chunk_rounds is None else _positive(chunk_rounds)
    given = known_arms(arms)
    opened = open_source(source, delimiter=delimiter, wanted=[arm, reward])
    layout = resolve_layout(
        opened.header, opened.name, arm=arm, reward=reward, propensity=propensity,
        probabilities=probabilities, order=order, offered=offered, known_at=known_at, arms=given,
    )  # fmt: skip
    action = parse_missing(missing)
    if layout.known_at and action == "drop":
        raise OptionError(
            "a scan cannot both leave rows out (missing='drop') and use known_at, whose numbers "
            "would change with rows still to come; use missing='unobserved' or read_history."
        )
    plan = _Plan(opened, layout, action, probability_tolerance, decimal, rewards, offered_delimiter)
    n_rounds = opened.n_rows
    notices = [*opened.notices, *layout.notices]
    labels = given if given is not None else layout.arms_from_columns
    if labels is None:
        with opened.locating():
            labels, n_rounds = _collected(plan)
        notices.append(
            f"{discovery_notice(len(labels))} A first pass over {n_rounds} rows collected them."
        )
    k = len(labels)
    size = min(_ROUNDS, max(1024, _CELLS // k)) if asked is None else asked
    selection = "full" if layout.probabilities else "chosen" if layout.propensity else "none"
    return HistoryScan(
        source=opened.name,
        arms=labels,
        selection=selection,
        n_rounds=None if action == "drop" else n_rounds,
        prior_counts=prior,
        notices=tuple(notices),
        chunk_rounds=size,
        _plan=plan,
    )


def _positive(chunk_rounds: Any) -> int:
    """Return a positive whole number, however it is typed."""
    try:
        number = operator.index(chunk_rounds)
    except TypeError:
        number = 0
    if number < 1 or isinstance(chunk_rounds, bool):
        raise OptionError(f"chunk_rounds={chunk_rounds!r} must be a positive whole number.")
    return number


def _collected(plan: _Plan) -> tuple[tuple[str, ...], int]:
    """Return the labels of the whole source, in their order, and the number of its rows."""
    layout = plan.layout
    book = LabelBook("arm")
    converter = plan.converter(None)
    converter.book = book
    columns = [layout.arm, *([layout.offered_list] if layout.offered_list else [])]
    row = plan.source.first_row
    for table in _tables(plan, columns, _ROUNDS):
        book.encode(table.column(layout.arm), converter.where(layout.arm, row))
        if layout.offered_list:
            converter.collect_offered(
                table.column(layout.offered_list), converter.where(layout.offered_list, row)
            )
        row += table.num_rows
    n_rows = row - plan.source.first_row
    if not n_rows:
        raise no_rows(plan.source)
    return tuple(in_order(book.labels)), n_rows


def _tables(plan: _Plan, columns: Sequence[str], size: int) -> Iterator[Any]:
    """Yield tables of `size` rows from record batches, fewer where a new file has other types."""
    import pyarrow as pa

    held: list[Any] = []
    n_held = 0
    for batch in plan.source.batches(columns, plan.layout.labels):
        if held and batch.schema != held[0].schema:
            yield pa.Table.from_batches(held)
            held, n_held = [], 0
        start = 0
        while n_held + batch.num_rows - start >= size:
            stop = start + size - n_held
            yield pa.Table.from_batches([*held, batch.slice(start, stop - start)])
            held, n_held, start = [], 0, stop
        if start < batch.num_rows:
            held.append(batch.slice(start))
            n_held += batch.num_rows - start
    if held:
        yield pa.Table.from_batches(held)
