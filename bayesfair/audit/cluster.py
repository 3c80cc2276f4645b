"""One log, or many, shared among the workers of a Dask cluster: the same numbers as here.

Every partition of a log teaches something that does not depend on where it stands; from that
follows, partition by partition, which beliefs each begins with; then all are audited independently,
and their summaries are merged as a tree. What is computed depends on the partitions alone, not on
how many workers there are; a task whose worker is lost is done again by another.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bayesfair.audit.criterion import Criterion
from bayesfair.audit.log.doubts import Doubts
from bayesfair.audit.log.rounds import iter_results
from bayesfair.audit.log.state import AuditState
from bayesfair.audit.log.summary import Summary, summarise
from bayesfair.audit.question import Question
from bayesfair.base.notices import Notice
from bayesfair.base.progress import Steps
from bayesfair.base.workers import check_workers, results_of, wait_for
from bayesfair.errors import DataError, OptionError
from bayesfair.families.featured import PRIOR_SD
from bayesfair.history.logs import logs_in
from bayesfair.readers.log.first_pass import ROWS, tables_of
from bayesfair.readers.log.scan import HistoryScan

__all__ = ["check_client", "summarise_on"]


@dataclass(frozen=True)
class _Taught:
    """What a partition adds to the beliefs, its rows, and between which places its rounds lie."""

    state: AuditState
    n_rows: int
    span: tuple[Any, Any] | None


def check_client(client: Any, question: Question, data: Any, partial: Any) -> None:
    """Refuse what cannot be shared.

    Raises
    ------
    OptionError
        Naming it.
    """
    check_workers(client)
    for name, given in (
        ("beliefs_model", question.beliefs_model), ("partial", partial),
    ):  # fmt: skip
        if given is not None:
            why = {
                "beliefs_model": "they rest on all rounds before, which no worker has",
                "partial": "the parts of the log are not audited one after the other",
            }[name]
            raise OptionError(
                f"{name}= does not go with client=: {why}. Leave one of them out.",
                kind="unused_option",
                column=name,
            )
    if getattr(question.earlier, "unfinished", None):
        raise OptionError(
            "prior= is an audit that was interrupted, and goes on part by part: leave client= out.",
            kind="unused_option",
            column="client",
        )
    for scan in logs_in(data):
        parts = scan.reading.source.parts if isinstance(scan, HistoryScan) else ()
        if any(getattr(part, "held", False) for part in parts):
            raise OptionError(
                "client= has workers compute the partitions of a Dask data frame, and they hold "
                "those of this one already. Give the frame as it was before persist(), or leave "
                "client= out.",
                kind="unused_option",
                column="client",
            )
    if not isinstance(data, (HistoryScan, Mapping)):
        raise OptionError(
            f"client= shares the partitions of a log that workers read themselves, and this is a "
            f"{type(data).__name__}: give bayesfair.scan_history(...), or leave client= out.",
            kind="unused_option",
            column="client",
        )


def summarise_on(
    client: Any,
    scan: HistoryScan,
    question: Question,
    start: AuditState,
    notes: Sequence[str],
    rounds: Steps,
) -> Summary:
    """Return the summary of a log, made by the workers of a cluster.

    Raises
    ------
    DataError
        If the order of the partitions is not certain, or naming the one that cannot be read.
    """
    parts = scan.partitions()
    _check_order(scan, parts)
    names = [part.place.name for part in parts if part.place]
    parts, placed = _placed(client, scan, parts, names)
    # what a part teaches given its context takes knowing the contexts before it
    given = start.given_context
    if given and start.beliefs.model in PRIOR_SD:
        raise OptionError(
            f"client= does not go with context_model={start.beliefs.model!r}: its beliefs depend "
            "on the order of the rewards, part after part. Leave client= out.",
            kind="excluded", column="client", value=start.beliefs.model,
        )  # fmt: skip
    blank = start.with_beliefs(start.beliefs.without).afresh() if given else start.afresh()
    taught = results_of(client, [client.submit(_teach, p, blank, pure=False) for p in parts], names)
    _check_spans(scan, names, [found.span for found in taught])
    if not placed:
        rows = [found.n_rows for found in taught]
        before = np.concatenate([[0], np.cumsum(rows)]).tolist()
        parts = [p.at(before[i], before[-1], scan) for i, p in enumerate(parts)]
    states = [start]
    for part, found, name in zip(parts, taught, names, strict=True):
        end = None if given else states[-1].followed_by(found.state)
        if end is None:  # also where the prior is being learned: its rewards count one by one
            future = client.submit(AuditState.after, states[-1], part, pure=False)
            end = results_of(client, [future], [name])[0]
        states.append(end)
    full = [i for i, found in enumerate(taught) if found.state.n_rounds]
    if not full:
        raise DataError(f"{scan.source} has no rounds to audit.", kind="no_rows")

    def seen(future: Any) -> None:
        rounds.add(taught[full[futures.index(future)]].state.n_rounds)

    futures = [
        client.submit(_audit_part, parts[i], states[i], question.criterion, pure=False)
        for i in full
    ]
    held = futures
    wait_for(client, held, [names[i] for i in full], seen)
    while len(held) > 1:
        pairs = [held[i : i + 2] for i in range(0, len(held), 2)]
        held = [client.submit(_merge, *p, pure=False) if len(p) == 2 else p[0] for p in pairs]
    total: Summary
    total, doubts = results_of(client, held, [scan.source])[0]
    notes = [*notes]
    if len(parts) == 1:
        notes.append(Notice(
            f"{scan.source} is one partition, and one worker audited it: the workers share files, "
            "and the row groups of Parquet files, up to two million rows each.",
            kind="one_partition", column="client",
        ))  # fmt: skip
    return replace(total, start=start).noted(*notes, *doubts.notices(total.arms))


def _teach(part: HistoryScan, blank: AuditState) -> _Taught:
    """Read a partition, whatever precedes it."""
    first, last, n_skipped = None, None, 0

    class _Watched:
        source, arms = part.source, part.arms

        @staticmethod
        def chunks() -> Any:
            nonlocal first, last, n_skipped
            for rounds in part.chunks():
                n_skipped += rounds.n_skipped
                if rounds.time is not None and rounds.n_rounds:
                    first = rounds.time[0] if first is None else first
                    last = rounds.time[-1]
                yield rounds

    state = blank.taught_by(_Watched)
    span = None if first is None else (first, last)
    return _Taught(state, state.n_rounds + n_skipped, span)


def _audit_part(
    part: HistoryScan, state: AuditState, criterion: Criterion
) -> tuple[Summary, Doubts]:
    """Return the summary of a partition, from the beliefs before it, and what it shows."""
    total: Summary | None = None
    doubts: Doubts | None = None
    for rounds, result, begin in iter_results(part, state, criterion, threads=1):
        doubts = Doubts.of(rounds, begin.n_rounds, doubts)
        summary = replace(summarise(rounds, begin, criterion, result, 1), start=state)
        total = summary if total is None else total.merged(summary)
        state = summary.end
    assert total is not None and doubts is not None
    return total, doubts


def _merge(first: tuple[Summary, Doubts], later: tuple[Summary, Doubts]) -> tuple[Summary, Doubts]:
    return first[0].merged(later[0]), first[1].merged(later[1])


def _count(part: HistoryScan) -> int:
    columns = part.reading.layout.columns[:1]
    return sum(table.num_rows for table in tables_of(part.reading, columns, ROWS))


def _placed(
    client: Any, scan: HistoryScan, parts: list[HistoryScan], names: list[str]
) -> tuple[list[HistoryScan], bool]:
    """Return the partitions at their places, if these are known or needed before all is read."""
    rows = [part.reading.source.n_rows for part in parts]
    if None in rows:
        if scan.reading.layout.known_at is None:
            return parts, False
        rows = results_of(client, [client.submit(_count, p, pure=False) for p in parts], names)
    before = np.concatenate([[0], np.cumsum(np.array(rows, dtype=np.int64))]).tolist()
    return [p.at(before[i], before[-1], scan) for i, p in enumerate(parts)], True


def _check_order(scan: HistoryScan, parts: Sequence[HistoryScan]) -> None:
    """Refuse several files whose order nothing tells."""
    files = [part.name for part in scan.reading.source.parts]
    if scan.reading.layout.order is not None or len(files) < 2:
        return
    if all(re.search(r"\d", name) for name in files) and len(set(files)) == len(files):
        return
    raise DataError(
        f"{scan.source} has {len(files)} files, and neither a column nor numbers in their names "
        f"({files[0]!r}, {files[1]!r}) tell their order. Name the column that does (order=), or "
        "number the files.",
        kind="no_order",
        column="order",
        source=scan.source,
    )


def _check_spans(scan: HistoryScan, names: Sequence[str], spans: Sequence[Any]) -> None:
    """Refuse a partition that begins before the one before it ends."""
    last, where = None, ""
    for name, span in zip(names, spans, strict=True):
        if span is None:
            continue
        if last is not None and span[0] < last:
            raise DataError(
                f"{name} begins with {span[0]} in column {scan.reading.layout.order!r}, and "
                f"{where}, which stands before it, ends with {last}. The rounds must be in order "
                "through all partitions: name the files so, or sort them.",
                kind="needs_whole",
                column=scan.reading.layout.order,
                value=str(span[0]),
                source=name,
            )
        last, where = span[1], name
