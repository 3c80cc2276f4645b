"""Labels of arms, items and groups: what each spelling means, in whatever form it was given."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.checks import as_sequence
from bayesfair.errors import ArmError, DataError

__all__ = [
    "by_label",
    "clean_label",
    "in_order",
    "label_order",
    "labels_of",
    "one_label",
    "text_of",
]


_LONGEST = 10_000  # bits of a whole number whose digits Python still writes
_WHOLE = re.compile(r"([+-]?\d+)\.0+", re.ASCII)
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?", re.ASCII)


def clean_label(label: str) -> str:
    r"""Return the label in Unicode NFC without blanks at its ends.

    A whole number loses its ".0": a column of numbers with a gap is written so.

    Examples
    --------
    >>> clean_label(" Cafe\u0301 ") == "Caf\u00e9", clean_label("1.0"), clean_label("1.50")
    (True, '1', '1.50')
    """
    label = unicodedata.normalize("NFC", label).strip()
    whole = _WHOLE.fullmatch(label)
    return whole.group(1) if whole else label


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
    if isinstance(value, int) and value.bit_length() > _LONGEST:
        raise DataError(
            f"a whole number of {value.bit_length()} bits is no label; give labels as text.",
            kind="bad_number",
        )
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
    plain = (
        type(v) is str and v and v.isascii() and "." not in v and v == v.strip() for v in values
    )
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
