"""Read a history lazily: parts with the same arms, one after the other, in constant memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from bayesfair.base import notices as noticed
from bayesfair.base.arguments import COUNT, constructed, instance_of, takes
from bayesfair.base.checks import check_count, first_where
from bayesfair.base.html import Shown
from bayesfair.base.labels import in_order
from bayesfair.base.notices import Notice
from bayesfair.errors import DataError, OptionError
from bayesfair.history import History
from bayesfair.history.probabilities import Resolution
from bayesfair.readers.files.read_ahead import ahead
from bayesfair.readers.files.tables import no_rows
from bayesfair.readers.log.counts_of_missing import Tally, empty_columns, nothing_missing
from bayesfair.readers.log.first_pass import ROWS, Found, collected, rewards_seen, tables_of
from bayesfair.readers.log.history import discovery_notice
from bayesfair.readers.log.options import KINDS, LogOptions, OneLogOptions, with_log_options
from bayesfair.readers.log.reading import Reading, group_priors, reading_of
from bayesfair.readers.log.roles import for_arms
from bayesfair.readers.log.rounds import Converter, Rounds
from bayesfair.readers.log.rounds_to_history import check_known, history_of, settled, tied
from bayesfair.readers.values.stamps import Trend, check_trends
from bayesfair.readers.values.times import NUMBER
from bayesfair.typing import Source

__all__ = ["HistoryScan", "iter_rewards", "scan_history"]

_TOLD = 10_000  # rounds that tell which way a log runs
_CELLS, _CACHED = 1 << 23, 1 << 21  # probabilities of one part: 64 MB at most, 16 MB stay at hand


class Place(NamedTuple):
    """Which partition of a log a scan reads.

    Attributes
    ----------
    name : str
        What messages call it.
    before : int
        Rows that precede it: in its own file, or where `total` is known, in the log.
    total : int
        Rows of the whole log, 0 = not known.
    """

    name: str
    before: int
    total: int = 0


@constructed
@dataclass(frozen=True, eq=False, repr=False)
class HistoryScan(Shown):
    """A log that is read part by part, as often as it is asked for.

    Attributes
    ----------
    arms : tuple of str
        Labels, the same for every part.
    n_rounds : int or None
        Number of rounds, None where only reading the log would tell.
    notices : tuple of str
        What is known before a round is read. Parts carry them too; the last part adds what was
        counted over the whole.
    chunk_rounds : int
        Rounds per part; of one group of a source, rows of the source that a part is taken from.
    reading : Reading
        How the source is read.
    place : Place or None
        Where the rows stand, of a partition.

    Examples
    --------
    >>> from bayesfair import examples
    >>> scan = scan_history(examples.path("ecmo"), chunk_rounds=5)
    >>> [(part.n_rounds, int(part.row[0])) for part in scan.chunks()]
    [(5, 2), (5, 7), (2, 12)]
    """

    arms: tuple[str, ...]
    n_rounds: int | None
    notices: tuple[str, ...]
    chunk_rounds: int
    reading: Reading = field(repr=False)
    place: Place | None = field(default=None, repr=False)

    @property
    def source(self) -> str:
        """What errors and reports call the log."""
        return self.reading.name

    @property
    def selection(self) -> str:
        """What was logged of the rule: ``"full"``, ``"chosen"`` or ``"none"``."""
        layout = self.reading.layout
        return "full" if layout.probabilities else "chosen" if layout.propensity else "none"

    @property
    def prior_counts(self) -> Any:
        """Outcomes before the log; every part carries them, and they count once."""
        return self.reading.prior

    @property
    def unused_columns(self) -> tuple[str, ...]:
        """Columns of the source that nothing is read from."""
        return self.reading.layout.unused

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
        with self.reading.source.locating():
            yield from self._parts()

    def _parts(self) -> Iterator[History]:
        reading, tally = self.reading, Tally(np.zeros(self.n_arms, dtype=np.int64))
        converter = Converter(reading, self.arms)
        progress = _Progress(reading)
        resolution = Resolution()
        held: History | None = None
        row = reading.source.first_row
        if self.place is not None:
            row += self.place.before
            progress.n_rounds = progress.start = self.place.before
        for table in tables_of(reading, reading.layout.columns, self.chunk_rounds):
            rounds = converter.convert(table, row)
            if converter.known_kind not in (None, NUMBER):
                raise DataError(
                    f"{converter.where(str(reading.layout.known_at), row)(0)}: holds a "
                    f"{converter.known_kind}, which only the rounds still to come could place. A "
                    "scan needs round numbers there; read the log whole (read_history), "
                    "or pass known_at=False to use each reward in the next round.",
                    kind="needs_whole",
                    column=str(reading.layout.known_at),
                )
            row += len(rounds)
            progress.look_at(rounds)
            if reading.group is not None:
                rounds = rounds.take(rounds.group == converter.groups.code(reading.group))
                if not len(rounds):
                    continue
            progress.check(rounds, self.source)
            if (
                reading.missing == "drop"
                and not (~np.isnan(rounds.reward) & (rounds.arm >= 0)).any()
            ):
                settled(reading, rounds, tally)  # counted, and nothing left of this part
                continue
            part = history_of(
                reading, rounds, self.arms, tally=tally, offset=progress.n_rounds,
                resolution=resolution, notices=self.notices,
                length=(self.place.total if self.place else self.n_rounds) or 0,
                contexts=converter.context_labels,
            )  # fmt: skip
            progress.n_rounds += part.n_rounds
            resolution = part.resolution
            if held is not None:
                yield held
            held = part
        if held is None:
            if self.place is not None and not tally.total:
                return
            raise no_rows(reading.source, tally.total)
        if self.place is None:
            progress.check_end()
        late = [*converter.notices(), *progress.notices(self.source)]
        late += tally.notices(reading.missing, self.arms, reading.layout)
        if self.place is not None:  # what was counted is counted in the partition
            late = [
                Notice.of({**Notice.of(said).to_dict(), "text": f"{self.place.name}: {said}"})
                for said in late
                if Notice.of(said).kind != "option_without_effect"  # it may have one elsewhere
            ]
        last = held.with_notices(*late)
        # rows left out after the last round belong to it
        object.__setattr__(last, "n_skipped", last.n_skipped + tally.untold(reading.missing))
        yield last

    def partitions(self) -> list[HistoryScan]:
        """Return scans of the files, or ranges of row groups, that the log consists of, in order.

        Each numbers its rows as its own file does, until `at` says how many precede it.
        """
        return [
            replace(
                self,
                n_rounds=source.n_rows,
                reading=replace(self.reading, source=source, name=source.name),
                place=Place(source.name, before),
            )
            for source, before in self.reading.source.split(self.reading.layout.columns)
        ]

    @takes(before=COUNT, total=COUNT, whole=instance_of("HistoryScan", called="a HistoryScan"))
    def at(self, before: int, total: int, whole: HistoryScan) -> HistoryScan:
        """Return a partition of `whole`, now that its place among all rows is known."""
        reading, place = self.reading, self.place
        if place is None:
            raise OptionError("this scan is no part of another: take one of partitions().")
        source = replace(reading.source, name=whole.reading.source.name)
        return replace(
            self,
            reading=replace(reading, source=source, name=whole.reading.name),
            place=Place(place.name, before, total),
        )

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
        shared.setdefault(id(scan.reading.source), []).append(scan)
    for same in shared.values():
        reading = same[0].reading
        groups = [s.reading.group for s in same if s.reading.group is not None]
        with reading.source.locating():
            yield from rewards_seen(reading, same[0].arms, groups or None)


class _Progress:
    """What has to be remembered from part to part."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.start = self.n_rounds = 0
        self.n_ties = 0
        self._last: Any = None
        self._trends = [Trend() for _ in reading.layout.watched]
        self._latest: Rounds | None = None  # the one row with the largest `known_at`
        self._never: NDArray[np.bool_] | None = None
        self._lacks = reading.group is None  # a log of its own says it itself

    def look_at(self, rounds: Rounds) -> None:
        """Note which arms have no probability in any row, of whatever group; and what lacks."""
        self._lacks = self._lacks or rounds.lack
        if self.reading.group is None or rounds.pi is None:
            return
        if self._never is None:
            self._never = np.ones(rounds.pi.shape[1], dtype=np.bool_)
        for j in np.flatnonzero(self._never):
            self._never[j] = np.isnan(rounds.pi[:, j]).all()

    def check(self, rounds: Rounds, source: str) -> None:
        """Refuse a part that does not continue the order of the parts before it."""
        reading, known = self.reading, rounds.known_at
        if rounds.watched is not None:
            pairs = zip(self._trends, rounds.watched.T, strict=True)
            self._trends = [trend.after(values) for trend, values in pairs]
            if self._trends[0].n >= _TOLD:
                check_trends(self._trends, reading.layout.watched, source)
        if known is not None and not np.isnan(known).all():
            latest = rounds.take([int(np.nanargmax(known))])
            before = None if self._latest is None else self._latest.known_at
            if before is None or (latest.known_at is not None and latest.known_at[0] > before[0]):
                self._latest = latest
        order, column = rounds.order, reading.layout.order
        if order is None or column is None:
            return
        joined = order if self._last is None else np.concatenate([self._last, order])
        if back := first_where(joined[1:] < joined[:-1]):
            at = back.at + 1
            row = int(rounds.row[at - (len(joined) - len(order))])
            raise DataError(
                f"row {row} of {reading.source.name}, column {column!r}: {joined[at]} comes after "
                f"{joined[at - 1]}. A scan needs the rows in order: sort the source, read it whole "
                "(read_history) to have it sorted, or pass order=False if its own order is "
                "right.",
                kind="needs_whole",
                row=row,
                column=column,
                source=reading.source.name,
            )
        self.n_ties += int(np.count_nonzero(joined[1:] == joined[:-1]))
        self._last = order[-1:]

    def check_end(self) -> None:
        """Refuse numbers in `known_at` that lie far beyond the log, now that its end is known."""
        if self._latest is not None:
            check_known(self.reading, self._latest, self.n_rounds)

    def notices(self, source: str) -> list[str]:
        """Say which arms are never on offer, and what is not certain of the order.

        Raises
        ------
        DataError
            If the log runs backwards.
        """
        found: list[str] = []
        if self._trends:
            found += check_trends(self._trends, self.reading.layout.watched, source)
        found += tied(self.n_ties, self.n_rounds - self.start, str(self.reading.layout.order))
        if self._never is not None:
            found += empty_columns(self._never, self.reading.layout)
        found += nothing_missing(self.reading.missing, lacks=self._lacks)
        return found


@overload
def scan_history(
    source: Source,
    *,
    chunk_rounds: int | None = None,
    by: None = None,
    **options: Unpack[OneLogOptions],
) -> HistoryScan: ...
@overload
def scan_history(
    source: Source,
    *,
    chunk_rounds: int | None = None,
    by: str | Sequence[str],
    **options: Unpack[OneLogOptions],
) -> dict[str, HistoryScan]: ...
@takes(**KINDS)
@with_log_options
def scan_history(
    source: Source, *, chunk_rounds: int | None = None, **options: Unpack[LogOptions]
) -> HistoryScan | dict[str, HistoryScan]:
    """Prepare to read a history in parts, in constant memory whatever its length.

    Options mean what they mean in `read_history`. The differences: rounds must be in the order of
    the source (an unsorted source is refused where `order` is used); where neither `arms` nor
    columns such as ``p_{arm}`` name the arms, a first pass over the source collects them and counts
    the rounds; `known_at` is a round number, since a time would need the rounds still to come, as
    would `known_until`, `waiting` and `constant_within`; the rows of a round (`round`) have to
    stand together. With `by`, a first pass collects the groups, rows have to be in order within
    their group only, and an audit reads the source once for each group; once more before, the
    rewards alone, where family or levels follow from all.

    Parameters
    ----------
    source : path or data frame
        See `read_history`.
    chunk_rounds : int, optional
        Rounds per part; default 131072, fewer with 17 arms or more.
    **options
        Those of `read_history`; `known_until`, `waiting` and `constant_within` are refused.

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
    asked = None if chunk_rounds is None else check_count(chunk_rounds, "chunk_rounds", 1)
    _check_scannable(options)
    reading = reading_of(scan_history, source, options, parts=True)
    opened, layout = reading.source, reading.layout
    if layout.known_at and reading.missing == "drop":
        raise OptionError(
            "a scan cannot both leave rows out (missing='drop') and use known_at, whose numbers "
            "would change with rows still to come; use missing='unobserved' or read_history.",
            kind="needs_whole",
            column="missing",
        )
    notices = [*opened.notices, *layout.notices]
    found = Found(reading.arms or (), {}, opened.n_rows, ())
    if reading.arms is None or layout.by is not None:
        with opened.locating():
            found = collected(reading)
        if reading.arms is None:
            layout, _ = for_arms(layout, found.arms, opened.name)
            reading, notices = replace(reading, layout=layout), [*opened.notices, *layout.notices]
            notices.append(Notice(
                f"{discovery_notice(len(found.arms))} A first pass over {found.n_rows} rows "
                "collected them.",
                kind="arms_seen", column="arms", n=len(found.arms),
            ))  # fmt: skip
    notices += found.notices
    k = len(found.arms)
    size = asked or min(ROWS, max(1 << 16, _CACHED // k), max(1024, _CELLS // k))
    drops = reading.missing == "drop"
    n_rounds = None if drops else found.n_rows
    whole = HistoryScan(found.arms, n_rounds, noticed.unique(notices), size, reading)
    if layout.by is None:
        return whole
    priors = group_priors(reading, found.groups)
    return {
        group: replace(
            whole,
            n_rounds=None if drops else found.groups[group],
            reading=reading.of_group(group, priors),
        )
        for group in in_order(found.groups)
    }


def _check_scannable(options: LogOptions) -> None:
    """Refuse what only the whole log can tell."""
    whole = "which a scan has not read. {} or read the log whole (read_history)."
    for name, reason in (
        ("known_until", "the rounds still to come, " + whole.format(
            "Give the first round that may use each reward (known_at=),")),
        ("waiting", "the rounds still to come, " + whole.format(
            "Write rewards and the rounds that may use them (known_at=) into the log,")),
        ("constant_within", "all rows of a span, " + whole.format(
            "Write the probabilities of all arms into the log,")),
        ("arms", "all rows of a group, " + whole.format("Name the arms,")),
    ):  # fmt: skip
        value: Any = options.get(name)
        if name == "constant_within" and not isinstance(value, str):
            value = list(value or []) if not hasattr(value, "tolist") else value.tolist()
        if (isinstance(value, str) or name in ("constant_within", "waiting")) and value:
            raise OptionError(
                f"{name}={value!r} needs {reason}", kind="needs_whole", column=name, value=value
            )
