"""Read a log with one row per round *and arm* as what it says: one row per round, with its rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.arrow_arrays import taken
from bayesfair.base.checks import counted
from bayesfair.base.label_encoder import LabelEncoder, in_order_met
from bayesfair.base.notices import Notice
from bayesfair.errors import DataError, OptionError
from bayesfair.readers.files.frames import open_frame
from bayesfair.readers.files.headers import missing_column
from bayesfair.readers.files.tables import Source
from bayesfair.readers.log.columns import names_in
from bayesfair.readers.log.found_probabilities import find_share
from bayesfair.readers.values.values import meant_numbers, numbers, rewards, truths

__all__ = ["one_row_per_round"]

_HEAD = 2000  # rows that tell which column is the rule, of a log that is read in parts


def one_row_per_round(
    source: Source, asked: Mapping[str, Any], *, parts: bool = False
) -> tuple[Source, dict[str, Any]]:
    """Return the log with one row per round, and the options that read it.

    Parameters
    ----------
    source : Source
        The log, one row per round and arm on offer.
    asked : mapping
        All `LogOptions`. `round` numbers the rounds (within the groups of `by`), `chosen` marks the
        row of the chosen arm (None: it is the one with a reward), `propensity` holds the
        probability of each row's arm.
    parts : bool
        Whether it is read in parts: the rows of a round then have to stand together.

    Returns
    -------
    Source
        The rows of the chosen arms, in the order in which their rounds begin, with a column for
        each arm: its probability, empty where it was not on offer, or whether it was on offer.
    dict
        Options that have changed: which columns these are.

    Raises
    ------
    DataError
        Naming the first row that does not fit: an arm twice in a round, no arm chosen, or two.
    """
    names = _columns(source, asked)
    form = _Form(source, names, asked, ())
    encoder = LabelEncoder("arm", asked["arms"])
    if parts:
        row = source.first_row
        for batch in source.batches([names["arm"]]):
            encoder.encode(batch.column(names["arm"]), form.where(names["arm"], row))
            row += batch.num_rows
        if encoder.open:
            encoder.sort()
        head = source.sample(list(source.header), _HEAD)
    else:
        head, _ = source.whole()
        encoder.settled(encoder.encode(head.column(names["arm"]), form.where(names["arm"])))
    form = replace(form, arms=encoder.labels)
    notices: list[str] = []
    if names["propensity"] is None and asked["propensity"] is None and head is not None:
        keys, _ = form.rounds_of(head, source.first_row)
        whole = keys < keys.max(initial=0) if parts else np.ones(len(keys), np.bool_)
        chance, notices = _share(form, head, keys, whole)
        form = replace(form, names={**names, "propensity": chance})
    name = f"the rounds of {source.name}"
    said = [*source.notices, *notices]
    if parts:
        text = f"The rows of {source.name}, one per round and arm, are read as rounds; rows are "
        said.append(Notice(f"{text}counted in rounds.", kind="long_form", column=names["round"]))
        part: Any = _LongPart(form)
    else:
        table = form.wide(head, source.first_row)
        part = open_frame(table)
        text = f"{len(head)} rows of {source.name}, one per round and arm, were read as "
        said.append(Notice(
            f"{text}{len(table)} rounds; rows are counted in rounds.",
            kind="long_form", column=names["round"], n=len(table),
        ))  # fmt: skip
    changed = {form.role: form.pattern, "propensity": False, "arms": form.arms}
    return Source(name, part.header, 1, (part,), tuple(said)), changed


@dataclass(frozen=True)
class _Form:
    """Which column of such a log plays which part, and the labels of the arms."""

    source: Source
    names: Mapping[str, Any]
    asked: Mapping[str, Any]
    arms: tuple[str, ...]

    @property
    def role(self) -> str:
        """What the columns of the arms hold."""
        return "probabilities" if self.names["propensity"] else "offered"

    @property
    def pattern(self) -> str:
        """Names of these columns."""
        pattern = "p_{arm}" if self.names["propensity"] else "offered_{arm}"
        return self.source.free(pattern, self.arms)

    @property
    def kept(self) -> list[str]:
        """Columns of the log that have a value in each round."""
        dropped = {self.names["chosen"], self.names["propensity"]}
        return [c for c in self.source.header if c not in dropped]

    @property
    def of_arms(self) -> list[str]:
        """Columns of the arms."""
        return [self.pattern.replace("{arm}", label) for label in self.arms]

    def where(self, column: str, row0: int | None = None) -> Callable[[int], str]:
        """Return what names a row of a column that starts at row `row0`."""
        first = self.source.first_row if row0 is None else row0
        return lambda at: f"row {first + at} of {self.source.name}, column {column!r}"

    def refuse(self, row0: int, at: int, name: str, what: str, kind: str) -> DataError:
        """Return the error of a row that does not fit."""
        return DataError(
            f"{self.where(name, row0)(at)}: {what}", kind=kind, row=row0 + at, column=name,
            source=self.source.name,
        )  # fmt: skip

    def rounds_of(
        self, table: Any, row0: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:  # fmt: skip
        """Return the number of each row's round, in the order met, and where each begins."""
        round, by = self.names["round"], self.names["by"]
        code = LabelEncoder("round").encode(table.column(round), self.where(round, row0))
        if (gone := np.flatnonzero(code < 0)).size:
            raise self.refuse(row0, int(gone[0]), round, "empty. Fill it in.", "missing_label")
        key = code.astype(np.int64)
        if by:
            group = LabelEncoder("group").encode(table.column(by), self.where(by, row0))
            key += (group.astype(np.int64) + 1) * (int(key.max(initial=0)) + 1)
        return in_order_met(key)

    def wide(self, table: Any, row0: int) -> Any:
        """Return these rows, which begin at row `row0`, with one row per round.

        Raises
        ------
        DataError
            Naming the first row that does not fit.
        """
        import pyarrow as pa

        arm, chosen, chance = (self.names[n] for n in ("arm", "chosen", "propensity"))

        def column(name: str) -> tuple[Any, Callable[[int], str]]:
            return table.column(name), self.where(name, row0)

        arm_of = LabelEncoder("arm", self.arms).encode(*column(arm))
        if (gone := np.flatnonzero(arm_of < 0)).size:
            raise self.refuse(row0, int(gone[0]), arm, "empty. Fill it in.", "missing_label")
        round_of, first = self.rounds_of(table, row0)
        k, n = len(self.arms), len(first)
        pair = round_of * k + arm_of
        order = np.argsort(pair, kind="stable")
        if (twice := np.flatnonzero(pair[order][1:] == pair[order][:-1])).size:
            at = int(order[twice[0] + 1])
            what = f"arm {self.arms[arm_of[at]]!r} stands twice in its round. Keep one of the rows."
            raise self.refuse(row0, at, arm, what, "duplicate_arm")
        if chosen:
            mark = truths(*column(chosen))
        else:
            decimal, worth = self.asked["decimal"], self.asked["rewards"]
            mark = ~np.isnan(rewards(*column(self.names["reward"]), decimal=decimal, mapping=worth))
        self._check_choices(mark, round_of, first, row0)
        rows = np.flatnonzero(mark)
        rows = rows[np.argsort(round_of[rows])]
        for name in (c for c in names_in(self.asked["context"]) if c in self.source.header):
            seen = LabelEncoder("context").encode(*column(name))
            if (odd := np.flatnonzero(seen != seen[rows][round_of])).size:
                what = "differs from the chosen arm's row of the same round: it belongs to the arm,"
                raise self.refuse(
                    row0, int(odd[0]), name, f"{what} not to the round.", "context_of_arm"
                )
        wide: NDArray[Any] = np.full((n, k), np.nan) if chance else np.zeros((n, k), np.bool_)
        held = numbers(*column(chance), decimal=self.asked["decimal"]) if chance else True
        wide[round_of, arm_of] = held
        columns = {c: taken(table.column(c), rows) for c in self.kept if c in table.column_names}
        for name, values in zip(self.of_arms, wide.T, strict=True):
            columns[name] = pa.array(values, from_pandas=True)
        return pa.table(columns)

    def _check_choices(
        self, mark: NDArray[np.bool_], round_of: NDArray[np.int64], first: NDArray[np.int64],
        row0: int,
    ) -> None:  # fmt: skip
        times = np.bincount(round_of[mark], minlength=len(first))
        odd = np.flatnonzero(times != 1)
        if not odd.size:
            return
        how = "no arm" if not times[odd[0]] else f"{times[odd[0]]} arms"
        by_reward = (
            "" if self.names["chosen"] else " (by its reward: name the column with chosen=...)"
        )
        raise self.refuse(
            row0, int(first[odd[0]]), self.names["round"],
            f"the round that begins here has {how} chosen{by_reward} "
            f"({counted(len(odd), 'such round')}). Each round needs one.", "not_one_chosen",
        )  # fmt: skip


@dataclass(frozen=True)
class _LongPart:
    """A log with one row per round and arm, whose rows of a round stand together; see `Part`."""

    form: _Form
    n_rows: int | None = None

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.form.source.name

    @property
    def header(self) -> tuple[str, ...]:
        """Columns of the rounds, those of the arms last."""
        return (*self.form.kept, *self.form.of_arms)

    def holds_text(self, column: str) -> bool:
        """Whether a column is text, or may be."""
        return column in self.form.kept and self.form.source.holds_text([column])

    def batches(self, columns: Sequence[str], labels: Sequence[str] = ()) -> Iterator[Any]:
        """Yield record batches of the columns, of whole rounds each."""
        import pyarrow as pa

        source, names = self.form.source, self.form.names
        parts = [names[n] for n in ("arm", "round", "chosen", "propensity", "by", "reward")]
        seen = [c for c in names_in(self.form.asked["context"]) if c in source.header]
        wanted = [c for c in (*parts, *seen, *columns) if c in source.header]
        row, held = source.first_row, None
        with source.locating():
            for batch in source.batches(list(dict.fromkeys(wanted))):
                table = pa.Table.from_batches([batch])
                if held is not None:
                    table = pa.concat_tables([held, table], promote_options="permissive")
                n = self._whole(table, row)
                if n:
                    yield from self._select(table.slice(0, n), row, columns)
                held, row = table.slice(n), row + n
            if held is not None and held.num_rows:
                yield from self._select(held, row, columns)

    def table(self, columns: Sequence[str], labels: Sequence[str] = ()) -> Any:
        """Return the columns of all rounds."""
        import pyarrow as pa

        return pa.Table.from_batches(list(self.batches(columns, labels)))

    def sample(self, columns: Sequence[str], n: int) -> Any:
        """Return the first rounds, None if they cannot be had without faults."""
        head = self.form.source.sample(list(self.form.source.header), n)
        first = self.form.source.first_row
        try:
            whole = head.slice(0, self._whole(head, first)) if head.num_rows == n else head
            return self.form.wide(whole, first).select(list(columns))
        except DataError:
            return None

    def _whole(self, table: Any, row0: int) -> int:
        """Return how many rows stand before the last round, which may go on."""
        round_of, _ = self.form.rounds_of(table, row0)
        changes = np.flatnonzero(round_of[1:] != round_of[:-1])
        return int(changes[-1]) + 1 if changes.size else 0

    def _select(self, table: Any, row0: int, columns: Sequence[str]) -> Iterator[Any]:
        try:
            wide = self.form.wide(table, row0)
        except DataError as error:
            if error.kind == "not_one_chosen":  # or its rows stand apart
                error.args = (
                    f"{error} A scan needs the rows of a round to stand together: sort the source "
                    "by it, or read it whole (read_history).", *error.args[1:],
                )  # fmt: skip
                error.kind = "needs_whole"
            raise
        yield from wide.select(list(columns)).to_batches()


def _share(
    form: _Form, table: Any, round_of: NDArray[np.int64], whole: NDArray[np.bool_]
) -> tuple[str | None, list[str]]:
    """Return the column of the probabilities that no option names, and what is to be said of it.

    `whole`: rows of rounds all rows of which are there.
    """
    free = [c for c in form.source.header if c not in _used(form.asked, form.names)]
    columns = {c: table.column(c) for c in free}
    decimal = form.asked["decimal"]
    numeric = {c: meant_numbers(values, decimal=decimal) for c, values in columns.items()}
    held = {c: values[whole] for c, values in numeric.items() if values is not None}
    found = find_share(form.source.name, columns, held, round_of[whole])
    return (None, []) if found is None else (found[0], [found[1]])


def _used(asked: Mapping[str, Any], names: Mapping[str, Any]) -> set[str]:
    """Return the columns that options name."""
    single = ("order", "known_at", "known_until", "unique", "user", "keep_prob")
    several = [name for role in ("context", "by") for name in names_in(asked[role])]
    return {str(c) for c in (*names.values(), *(asked[s] for s in single), *several) if c}


def _columns(source: Source, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the column of each part, None where there is none."""
    if asked["probabilities"] or asked["offered"]:
        option = "probabilities" if asked["probabilities"] else "offered"
        raise OptionError(
            f"{option}={asked[option]!r} names columns of logs with one row per round; with round= "
            "the rows themselves say it, with propensity= as the probability of each row's arm.",
            kind="unused_option",
            column=option,
            value=asked[option],
        )
    default = "propensity" if "propensity" in source.header else None
    names = {name: asked[name] for name in ("round", "arm", "reward", "chosen", "propensity", "by")}
    if names["propensity"] is None:
        names["propensity"] = default
    for option, name in names.items():
        if name and name not in source.header:
            raise missing_column(name, option, source.name, source.header)
    return names
