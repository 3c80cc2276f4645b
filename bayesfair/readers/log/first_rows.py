"""Look at the first rows of a log before it is read, whether it is what options take it for.

Columns that no option names are looked at too: times that run backwards, probabilities under
another name, rows that are arms of a round rather than rounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.arrow_arrays import is_missing
from bayesfair.base.json_text import BadJson
from bayesfair.base.label_encoder import LabelEncoder
from bayesfair.errors import DataError, OptionError
from bayesfair.readers.files.tables import Source
from bayesfair.readers.log.columns import Layout, Option, Roles, not_used, resolve_layout
from bayesfair.readers.log.found_probabilities import (
    FoundProbabilities,
    find_probabilities,
    labels_beside,
    nested_layout,
    refuse_unread,
)
from bayesfair.readers.log.long_shape import LongForm, long_form
from bayesfair.readers.log.nested import keys_of, parsed
from bayesfair.readers.values.stamps import looks_like_time
from bayesfair.readers.values.values import meant_numbers, rewards

__all__ = ["layout_of"]

_ROWS = 2000
_ALL = 2_000_000


def layout_of(source: Source, asked: Mapping[str, Any]) -> Layout:
    """Return which column plays which part, by the options and by what the first rows hold.

    Parameters
    ----------
    source : Source
        The log.
    asked : mapping
        All `LogOptions`; `arms` are labels.

    Raises
    ------
    DataError
        If a column is not there, the log has one row per round and arm, or columns may hold
        probabilities and which of whom is not certain.
    """
    probabilities: Option = asked["probabilities"]
    record = _record(source, probabilities)
    roles = {name: asked[name] for name in Roles._fields}
    if record is not None:
        roles["probabilities"] = False
    layout = resolve_layout(source.header, source.name, Roles(**roles))
    columns = list(dict.fromkeys([*layout.columns, *layout.unused]))
    columns = [c for c in columns if c not in layout.probabilities.values()]  # they are as named
    head = source.sample(columns, _ROWS)
    if record is not None:
        layout = _with(layout, _asked_record(source, record, head, layout, asked), asked)
    if head is None or not head.num_rows:
        return layout
    book = LabelEncoder("arm")
    try:
        arm = book.encode(head.column(layout.arm), str)
    except DataError:
        return layout  # said when it is read, with the row
    unused = {c: head.column(c) for c in layout.unused}
    values = _numbers(unused, asked["decimal"])
    if asked["round"] is None:
        _check_shape(source, layout, head, arm, values, asked)
    if probabilities is None and asked["propensity"] is None and not layout.probabilities:
        found = _found(source.name, unused, values, book.labels, layout, asked)
        if found is not None:
            layout = _with(layout, found, asked)
    if layout.nested is not None and layout.nested_labels is None:
        layout = replace(layout, lists_in_order=asked["arms"] is not None)
    if asked["order"] is None and layout.order is None:
        looks = {c: looks_like_time(c, head.column(c)) for c in layout.unused}
        layout = replace(layout, watched={c: look for c, look in looks.items() if look})
    return layout


def _found(
    source: str,
    unused: Mapping[str, Any],
    values: Mapping[str, NDArray[np.float64]],
    seen: Sequence[str],
    layout: Layout,
    asked: Mapping[str, Any],
) -> FoundProbabilities | None:
    """Return the probabilities that unused columns hold; refuse those that fields of records do."""
    known = layout.propensity is not None

    def numbers(columns: Mapping[str, Any]) -> dict[str, NDArray[np.float64]]:
        # what is empty, or cannot be read, up to here need not be so further down
        empty = {c: np.full(len(x), np.nan) for c, x in columns.items() if is_missing(x).all()}
        return dict(values if columns is unused else _numbers(columns, asked["decimal"])) | empty

    found = find_probabilities(source, unused, numbers(unused), seen, asked["arms"], known=known)
    inner = {} if found else _fields(unused)
    while inner:
        refuse_unread(source, inner, numbers(inner), seen, known=known)
        inner = _fields(inner)
    return found


def _fields(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of columns that hold records, by their path."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return {
        f"{name}.{field.name}": pc.struct_field(column, [i])
        for name, column in columns.items() if pa.types.is_struct(column.type)
        for i, field in enumerate(column.type)
    }  # fmt: skip


def _with(layout: Layout, found: FoundProbabilities, asked: Mapping[str, Any]) -> Layout:
    spare = layout.propensity if found.probabilities and asked["propensity"] is None else None
    new = replace(
        layout,
        spare=spare or layout.spare,
        probabilities=found.probabilities or layout.probabilities,
        pattern=found.pattern or layout.pattern,
        nested=found.nested,
        nested_labels=found.labels,
        propensity=None if spare else found.propensity or layout.propensity,
        notices=(*layout.notices, *found.notices, *([not_used(spare)] if spare else [])),
    )
    return replace(new, unused=tuple(c for c in layout.unused if c not in new.columns))


# -- probabilities in one column -------------------------------------------------------------------


def _record(source: Source, probabilities: Option) -> str | None:
    """Return the column of records that a pattern such as ``probs.{arm}`` or ``probs`` means."""
    if not isinstance(probabilities, str) or not probabilities:
        return None
    name = probabilities.strip()
    before, arm, after = name.partition("{arm}")
    if not arm:
        return name if name in source.header else None
    if any(c.startswith(before) and c.endswith(after) and c != before for c in source.header):
        return None
    return (
        before[:-1] if before[-1:] == "." and before[:-1] in source.header and not after else None
    )


def _asked_record(
    source: Source, name: str, head: Any, layout: Layout, options: Mapping[str, Any]
) -> FoundProbabilities:
    arms, asked = options["arms"], options["probabilities"]
    try:
        rows = [] if head is None else parsed(head.column(name))
    except BadJson as error:
        raise DataError(
            f"column {name!r} of {source.name} holds no records of probabilities: {error}.",
            kind="bad_probabilities",
            column=name,
            source=source.name,
        ) from None
    if all(row is None for row in rows):
        next(source.tables([name]))  # what cannot be read is said here, and was left out above
        raise OptionError(
            f"probabilities={asked!r}: column {name!r} of {source.name} holds no records or lists "
            'of probabilities. Write it as JSON, such as {"a": 0.25, "b": 0.75}; for columns of '
            "their own, write {arm} in the place of the label, for example 'p_{arm}'.",
            kind="bad_option",
            column="probabilities",
            value=asked,
        )
    labels, beside, marked = keys_of(rows), None, layout.offered_list
    if labels is None:  # lists: whose they are is said beside them, or by arms=
        others = [marked] if marked else layout.unused
        held = {c: head.column(c) for c in others if c != name}
        found = labels_beside(held, rows, (), options["offered_delimiter"])
        labels, beside = (None, None) if found is None else found
    labels = arms if arms is not None else labels
    if labels is None:
        raise DataError(
            f"column {name!r} of {source.name} holds lists of probabilities, which do not say "
            "whose they are. Pass the arms in their order with arms=..., or the column that lists "
            "them in each row with offered=...",
            kind="arms_needed",
            column=name,
            source=source.name,
        )
    read = nested_layout(name, labels, beside)
    return read if beside not in (None, marked) else replace(read, notices=())


# -- looking at the first rows ---------------------------------------------------------------------


def _numbers(columns: Mapping[str, Any], decimal: str) -> dict[str, NDArray[np.float64]]:
    """Return the columns that are meant as numbers, or as yes and no."""
    found = {c: meant_numbers(values, decimal=decimal) for c, values in columns.items()}
    return {c: values for c, values in found.items() if values is not None}


def _check_shape(
    source: Source,
    layout: Layout,
    head: Any,
    arm: NDArray[np.int32],
    values: dict[str, NDArray[np.float64]],
    asked: Mapping[str, Any],
) -> None:
    """Refuse a log with one row per round and arm: told by its first rows, then by all of it."""
    if layout.probabilities or layout.offered_list or layout.offered:
        return  # as one row per round has it
    keys = [c for c in (layout.order, layout.by, *layout.unused) if c is not None]

    def form(rows: Any, arm: NDArray[np.int32], columns: Sequence[str]) -> LongForm | None:
        paid: NDArray[np.float64] | None = None
        try:
            paid = rewards(
                rows.column(layout.reward), str, decimal=asked["decimal"], mapping=asked["rewards"]
            )
        except DataError:
            pass  # said when it is read
        named = [c for c in (*values, layout.propensity) if c is not None and c in columns]
        numeric = _numbers({c: rows.column(c) for c in named}, asked["decimal"])
        own = {c: rows.column(c) for c in keys if c in columns}
        return long_form((layout.arm, arm), (layout.reward, paid), own, numeric)

    columns = head.column_names
    found = form(head, arm, columns)
    crowded = len(np.unique(arm)) > _ROWS // 4  # rounds so long that the first rows hold few
    if (found or crowded) and source.n_rows != head.num_rows:
        columns = found.columns if found else list(columns)
        rows = _rows_of(source, columns, _ALL)
        found = form(rows, LabelEncoder("arm").encode(rows.column(layout.arm), str), columns)
    if found:
        raise found.error(source.name)


def _rows_of(source: Source, columns: Sequence[str], n: int) -> Any:
    """Return these columns of the whole log, of a very long one the first `n` rows."""
    import pyarrow as pa

    batches, held = [], 0
    with source.locating():
        for batch in source.batches(columns):
            batches.append(pa.Table.from_batches([batch]))
            held += batch.num_rows
            if held >= n:
                break
    return pa.concat_tables(batches, promote_options="permissive")
