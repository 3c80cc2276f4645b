"""Item labels: encoded in one pass, trimmed and normalised; what was merged is said aloud."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.checks import as_sequence, listed
from bayesfair.base.label_notices import look_alike
from bayesfair.base.notices import Notice
from bayesfair.errors import ArmError, DataError

__all__ = [
    "Encoded",
    "Vocabulary",
    "by_label",
    "clean_label",
    "encode",
    "in_order",
    "label_order",
    "labels_of",
    "one_label",
    "text_of",
    "vocabulary",
]


_SAMPLE = 50_000


_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?", re.ASCII)


class Encoded(NamedTuple):
    """A column as positions in the labels seen; -1 = missing."""

    codes: NDArray[np.int32]
    labels: tuple[str, ...]


class Vocabulary(NamedTuple):
    """Item labels, and for every column the items its own labels stand for (-1 = missing)."""

    items: tuple[str, ...]
    lookups: tuple[NDArray[np.int32], ...]
    notices: tuple[str, ...]


def clean_label(label: str) -> str:
    r"""Return the label in Unicode NFC without blanks at its ends.

    Examples
    --------
    >>> clean_label(" Cafe\u0301 ") == "Caf\u00e9"
    True
    """
    return unicodedata.normalize("NFC", label).strip()


def in_order(labels: Iterable[str]) -> list[str]:
    """Return labels sorted as text, or by their value if all of them are numbers.

    Examples
    --------
    >>> in_order(["10", "2", "1"]), in_order(["10", "2", "b"])
    (['1', '2', '10'], ['10', '2', 'b'])
    """
    ordered = sorted(labels)
    if all(_NUMBER.fullmatch(label) for label in ordered):
        ordered.sort(key=float)
    return ordered


def label_order(labels: Sequence[str]) -> NDArray[np.int64]:
    """Return the positions of the labels in their order (`in_order`), ``(k,)``.

    Whatever is drawn for several labels is drawn in this order and put back, so that a seed gives
    each label the same numbers however the columns of a log or the items of a fit are arranged.

    Examples
    --------
    >>> label_order(["10", "2", "1"])
    array([2, 1, 0])
    """
    place = {label: i for i, label in enumerate(labels)}
    return np.array([place[label] for label in in_order(place)], dtype=np.int64)


def text_of(value: Any) -> str | None:
    """Return the text of a stored value, None where it is missing.

    Whole floats lose their ".0": a frame's integer column with a gap arrives as floats. So do
    decimals of a database, whose other zeros at the end go as well.

    Examples
    --------
    >>> [text_of(v) for v in ("001", 7, 7.0, 0.5, True, None, float("nan"))]
    ['001', '7', '7', '0.5', 'True', None, None]
    """
    if isinstance(value, str):
        return str(value)
    if getattr(value, "shape", None) == () and not isinstance(value, np.generic):
        value = np.asarray(value)[()]  # an entry of a labelled array
    if isinstance(value, np.floating):
        value = float(value)
    if _is_missing(value):
        return None
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    if isinstance(value, Decimal) and value.is_finite():
        whole = value == value.to_integral_value()
        return str(int(value)) if whole else f"{value.normalize():f}"
    if isinstance(value, bytes):
        return value.decode("utf-8")
    return str(value)


def _is_missing(value: Any) -> bool:
    if isinstance(value, float):
        return math.isnan(value)
    if isinstance(value, Decimal):
        return value.is_nan()
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return bool(np.isnat(value))
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def one_label(value: Any, what: str = "arm", option: str | None = None) -> str:
    """Return the one label of an arm, item or group, in whatever form it was given.

    1, 1.0, ``numpy.int64(1)`` and ``"1"`` are one label, and so are texts that differ in blanks at
    their ends or in the encoding of their letters.

    Parameters
    ----------
    value : object
        The label.
    what : str
        What messages call it.
    option : str, optional
        Name of the argument that holds it; default `what` in the plural.

    Raises
    ------
    ArmError
        If it is missing (None, NaN, NaT, NA, an empty text), or no single value.

    Examples
    --------
    >>> [one_label(v) for v in (1, 1.0, "1", " 1 ", np.float32(1))]
    ['1', '1', '1', '1', '1']
    """
    option = f"{what}s" if option is None else option
    try:
        text = text_of(value)
    except UnicodeDecodeError:
        raise ArmError(
            f"{option}: the {what} {value!r} is not UTF-8 text. Write {what}s as text.",
            kind="not_text",
            column=option,
            value=repr(value),
        ) from None
    label = "" if text is None else clean_label(text)
    if not label:
        raise ArmError(
            f"{option} holds {value!r}, a missing label; each {what} needs a label that can be "
            "read. Give it one, or leave it out.",
            kind="missing_label",
            column=option,
            value=repr(value),
        )
    return label


def labels_of(
    values: Iterable[Any], what: str = "arm", option: str | None = None
) -> tuple[str, ...]:
    """Return the labels of arms, items or groups, each by `one_label`, none of them twice.

    Raises
    ------
    DataError, ArmError
        If there is no sequence, a label is missing, or two of them are one label.

    Examples
    --------
    >>> labels_of([1.0, "b"])
    ('1', 'b')
    """
    values = tuple(as_sequence(values, f"{what}s" if option is None else option))
    plain = (type(v) is str and v and v.isascii() and v == v.strip() for v in values)
    if all(plain) and len(set(values)) == len(values):  # nearly always
        return values
    return tuple(by_label(((value, None) for value in values), what, option))


def by_label(
    given: Mapping[Any, Any] | Iterable[tuple[Any, Any]],
    what: str = "arm",
    option: str | None = None,
) -> dict[str, Any]:
    """Return a mapping by label (`one_label`), in its order.

    Raises
    ------
    ArmError
        If a label is missing, or two keys are one label.

    Examples
    --------
    >>> by_label({1.0: "x", "b ": "y"})
    {'1': 'x', 'b': 'y'}
    """
    option = f"{what}s" if option is None else option
    pairs = given.items() if isinstance(given, Mapping) else given
    found: dict[str, Any] = {}
    forms: dict[str, Any] = {}
    for key, value in pairs:
        label = one_label(key, what, option)
        if label in found:
            same = repr(key) == repr(forms[label])
            raise ArmError(
                f"{option} names {label!r} more than once"
                f"{'' if same else f', as {forms[label]!r} and as {key!r}, which are one label'}; "
                f"each {what} needs its own.",
                kind="label_twice",
                column=option,
                value=label,
            )
        found[label], forms[label] = value, key
    return found


def _arrow(values: Any) -> Any:
    """Return the column as an Arrow array, whatever it came as."""
    import pyarrow as pa

    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values
    if not isinstance(values, (list, tuple, np.ndarray)):
        if hasattr(values, "__arrow_c_stream__") and not hasattr(values, "columns"):
            return pa.chunked_array(values)
        whole = hasattr(values, "to_numpy") and hasattr(values, "__len__")  # not one time stamp
        values = values.to_numpy() if whole else as_sequence(values, "a column of labels")
    if isinstance(values, np.ndarray) and values.ndim != 1:
        raise DataError(f"a column of labels must be one-dimensional, got shape {values.shape}.")
    try:
        return pa.array(values)
    except (ValueError, TypeError, pa.ArrowNotImplementedError):  # NaT among texts: ValueError
        return pa.array([text_of(value) for value in values], type=pa.string())


def _encode_list(values: list[Any] | tuple[Any, ...]) -> Encoded | None:
    """Encode a long list of strings without copying their text; None if it holds anything else."""
    for seen in (values[:_SAMPLE], values):  # most often the first rows know all labels
        try:
            distinct = set(seen)
        except TypeError:
            return None
        if len(distinct) > 256 or not all(
            type(value) is str and value.strip() for value in distinct
        ):
            return None
        labels = sorted(distinct)
        try:
            # one call that looks all of them up: twice as fast as a loop over map()
            codes = itemgetter(*values)({label: i for i, label in enumerate(labels)})
        except (KeyError, TypeError):
            continue
        return Encoded(np.frombuffer(bytes(codes), np.uint8).astype(np.int32), tuple(labels))
    return None


def encode(values: Any) -> Encoded:
    """Return positions and distinct labels of a column of text or numbers.

    Parameters
    ----------
    values : sequence, array, Arrow array or series of any data frame library
        Labels; numbers become their shortest text (3.0 is "3"). None, NaN and blanks are missing.

    Returns
    -------
    Encoded
        `codes` (N,), -1 where missing; `labels` in any order, each once.

    Examples
    --------
    >>> encode(["b", "a", "b", None])
    Encoded(codes=array([ 0,  1,  0, -1], dtype=int32), labels=('b', 'a'))
    """
    import pyarrow as pa

    if isinstance(values, (list, tuple)) and len(values) > 1000:
        quick = _encode_list(values)
        if quick is not None:
            return quick

    column = _arrow(values)
    if pa.types.is_nested(column.type):
        raise DataError(
            f"a column of labels holds {column.type}; a label is one value, text or a number. "
            "Write one in each row.",
            kind="not_simple",
            value=str(column.type),
        )
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    if isinstance(column, pa.ChunkedArray):
        column = column.unify_dictionaries()
        column = column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):  # no chunk at all
            return Encoded(np.zeros(0, np.int32), ())
    indices = column.indices
    if indices.null_count:
        indices = indices.cast(pa.int64()).fill_null(-1)
    codes = indices.to_numpy(zero_copy_only=False).astype(np.int32, copy=False)
    entries = column.dictionary.to_pylist()
    used = np.zeros(len(entries) + 1, dtype=np.bool_)
    used[codes] = True  # -1, missing, marks the last
    # a filtered column keeps the categories whose rows are gone: they are no labels
    try:
        texts = [text_of(v) if here else None for v, here in zip(entries, used, strict=False)]
    except UnicodeDecodeError:
        raise DataError("a label is not UTF-8 text; write labels as text in the source.") from None
    if not any(text is None or not text.strip() for text in texts) and len(set(texts)) == len(
        texts
    ):
        return Encoded(codes, tuple(str(text) for text in texts))
    labels: dict[str, int] = {}
    lookup = np.array(
        [labels.setdefault(t, len(labels)) if t and t.strip() else -1 for t in texts] or [-1],
        np.int32,
    )
    return Encoded(np.where(codes < 0, np.int32(-1), lookup[codes]), tuple(labels))


def vocabulary(
    columns: Sequence[Sequence[str]], declared: Sequence[object] | None = None
) -> Vocabulary:
    """Return the union of the labels of several columns, declared ones first.

    Blanks at the ends are cut and Unicode is put into NFC, which may merge labels: a notice says
    so. Labels that differ only in case stay apart, with a notice. Labels are never shortened.

    Parameters
    ----------
    columns : sequence of sequences of str
        Distinct labels of each column.
    declared : sequence, optional
        Items that exist whether or not they were compared; they keep this order. Then labels
        outside of it are an error.

    Raises
    ------
    ArmError
        If a label is not among the declared ones, or a declared one is named twice.

    Examples
    --------
    >>> vocabulary([["b", "a"], ["a "]]).items
    ('a', 'b')
    """
    merged: dict[str, set[str]] = {}
    for label in {label for column in columns for label in column}:
        merged.setdefault(clean_label(label), set()).add(label)
    if declared is not None:
        items = labels_of(as_sequence(declared, "items"), "item")
        known = set(items)
        unknown = sorted(label for label in merged if label not in known)
        if unknown:
            raise ArmError(
                f"{listed(unknown)} compared, but not among the declared items {listed(items)}. "
                "Add them to `items`, or leave `items` out to use the labels seen."
            )
    else:
        items = tuple(in_order(merged))
    notices: list[str] = [
        Notice(
            f"{len(forms)} spellings of {label!r} were merged (blanks at the ends, Unicode form).",
            kind="merged_spellings",
            value=label,
            n=len(forms),
        )
        for label, forms in sorted(merged.items())
        if len(forms) > 1
    ]
    notices += look_alike(items, "item")
    position = {item: i for i, item in enumerate(items)}
    find: Callable[[str], int] = lambda label: position[clean_label(label)]  # noqa: E731
    lookups = tuple(
        np.array([find(label) for label in column] or [-1], np.int32) for column in columns
    )
    return Vocabulary(items, lookups, tuple(notices))
