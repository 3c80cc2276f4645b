"""A pass over a source, table by table: what a first one collects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesfair.readers.files.tables import no_rows
from bayesfair.readers.log.reading import Reading
from bayesfair.readers.log.rounds import Converter
from bayesfair.readers.values.values import rewards

__all__ = ["ROWS", "Found", "collected", "rewards_seen", "tables_of"]

ROWS = 1 << 17
"""Rows of one table, unless asked otherwise."""


class Found(NamedTuple):
    """What a first pass collects: arms, rows by group, rows, notices."""

    arms: tuple[str, ...]
    groups: dict[str, int]
    n_rows: int | None
    notices: tuple[str, ...]


def collected(reading: Reading) -> Found:
    """Return labels and groups of the whole source in their order, and the number of its rows.

    Where the arms are known, only the groups are collected.
    """
    layout, arms = reading.layout, reading.arms
    converter = Converter(reading, arms)
    listing = layout.offered_list if arms is None else None
    wanted = [layout.arm if arms is None else None, listing, layout.by]
    columns = [c for c in wanted if c is not None]
    row = reading.source.first_row
    rows = np.zeros(0, dtype=np.int64)
    for table in tables_of(reading, columns, ROWS):
        if arms is None:
            converter.book.encode(table.column(layout.arm), converter.where(layout.arm, row))
        if listing is not None:
            converter.offers.read(table.column(listing), converter.where(listing, row))
        if layout.by is not None:
            group = converter.group_of(table.column(layout.by), converter.where(layout.by, row))
            here = np.bincount(group, minlength=len(rows))
            here[: len(rows)] += rows
            rows = here
        row += table.num_rows
    n_rows = row - reading.source.first_row
    if not n_rows:
        raise no_rows(reading.source)
    groups = dict(zip(converter.groups.labels, rows.tolist(), strict=True))
    converter.groups.check()
    if arms is None:
        converter.book.sort()
    labels = converter.book.labels
    return Found(labels, groups, n_rows, tuple(converter.groups.notices()))


def rewards_seen(
    reading: Reading, arms: Sequence[str], groups: Sequence[str] | None
) -> Iterator[NDArray[np.float64]]:
    """Yield the rewards that count as observed, table by table; nothing else is read.

    `groups`: those whose rewards are wanted; None where the source is one log. What is missing and
    must not be is left to the reading of the rounds, which says so.
    """
    layout = reading.layout
    converter = Converter(reading, arms)
    columns = [c for c in (layout.arm, layout.reward, layout.by) if c is not None]
    row = reading.source.first_row
    for table in tables_of(reading, list(dict.fromkeys(columns)), ROWS):
        arm = converter.book.encode(table.column(layout.arm), converter.where(layout.arm, row))
        reward = rewards(
            table.column(layout.reward), converter.where(layout.reward, row),
            decimal=reading.decimal, mapping=reading.rewards,
        )  # fmt: skip
        wanted = arm >= 0
        if groups is not None and layout.by is not None:
            group = converter.group_of(table.column(layout.by), converter.where(layout.by, row))
            wanted &= np.isin(group, [converter.groups.code(g) for g in groups])
        if isinstance(reading.missing, float):
            reward = np.where(np.isnan(reward), reading.missing, reward)
        yield reward[wanted & ~np.isnan(reward)]
        row += table.num_rows


def tables_of(reading: Reading, columns: Sequence[str], size: int) -> Iterator[Any]:
    """Yield tables of `size` rows from record batches, fewer where a new file has other types."""
    import pyarrow as pa

    held: list[Any] = []
    n_held = 0
    for batch in reading.source.batches(columns, reading.layout.labels):
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
