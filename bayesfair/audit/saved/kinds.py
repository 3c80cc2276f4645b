"""How a record becomes text and numbers, and comes back: one kind per sort of field.

A kind turns a value into JSON-ready text; its arrays go to a `Sink`, in order, and leave their type
and shape in the text. Reading takes them in the same order from a `Store`. All arrays of one type
lie in one buffer, so that a thousand records are as few objects in a file as one.

What is read was written by anybody: every kind checks what it takes, and nothing larger is asked
for than the buffers, which are there already.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "BUFFERS", "NUMBER", "TEXT", "TRUTH", "WHOLE", "Array", "Keyed", "Kind", "Malformed",
    "Many", "Mapped", "Maybe", "OneOf", "Plain", "Record", "Sink", "Store", "f8", "i4", "i8", "u8",
]  # fmt: skip

BUFFERS = ("float64", "int64", "int32", "uint64", "uint8")
"""Types of numbers that are kept."""

_EVERYWHERE = "arm"
"""The dimension that has one size in all of an audit."""

type Sizes = dict[str, int]


class Malformed(ValueError):
    """What was read is no such record; says which field of it."""


class Kind(Protocol):
    """A sort of field."""

    def put(self, value: Any, out: Sink) -> Any:
        """Return the JSON-ready text of a value, its arrays in ``out``."""
        ...

    def take(self, text: Any, store: Store, sizes: Sizes) -> Any:
        """Return the value that `put` made this text of.

        Parameters
        ----------
        text
            As `put` returned it.
        store : Store
            Where the arrays are.
        sizes : dict
            Dimension -> size, as far as known in this record; new ones are added.

        Raises
        ------
        Malformed
            If the text is of something else.
        """
        ...


class Sink:
    """Where arrays are put: one buffer per type of number."""

    def __init__(self) -> None:
        self._parts: dict[str, list[NDArray[Any]]] = {name: [] for name in BUFFERS}

    def put(self, name: str, values: NDArray[Any]) -> None:
        """Add an array to a buffer."""
        self._parts[name].append(values.ravel())

    def buffers(self) -> dict[str, NDArray[Any]]:
        """Return the buffers that hold something."""
        return {
            name: np.concatenate(parts)
            for name, parts in self._parts.items()
            if sum(len(part) for part in parts)
        }


class Store:
    """Buffers, from which arrays are taken in the order in which they were put."""

    def __init__(self, buffers: Mapping[str, NDArray[Any]]) -> None:
        self._buffers = dict(buffers)
        self._at = dict.fromkeys(BUFFERS, 0)

    def take(self, name: str, shape: list[int]) -> NDArray[Any]:
        """Return the next array of a buffer.

        Raises
        ------
        Malformed
            If the buffer ends before.
        """
        buffer = self._buffers.get(name, np.empty(0, name))
        start, size = self._at[name], math.prod(shape)
        if size > len(buffer) - start:
            raise Malformed(f"the buffer {name!r} ends before its numbers do")
        self._at[name] = start + size
        return buffer[start : start + size].reshape(shape)

    def check_end(self) -> None:
        """Raise `Malformed` unless everything was taken."""
        for name, buffer in self._buffers.items():
            if self._at[name] != len(buffer):
                raise Malformed(f"the buffer {name!r} holds more than its audits")


@dataclass(frozen=True)
class Plain:
    """A number, a text, a truth value: whatever stands in JSON by itself."""

    type: type

    def put(self, value: Any, out: Sink) -> Any:
        """Return the value as plain Python."""
        return operator.index(value) if self.type is int else self.type(value)

    def take(self, text: Any, store: Store, sizes: Sizes) -> Any:
        """Return the value."""
        if type(text) is not self.type:
            raise Malformed(f"{text!r:.60} is no {self.type.__name__}")
        return text


WHOLE, NUMBER, TEXT, TRUTH = Plain(int), Plain(float), Plain(str), Plain(bool)


@dataclass(frozen=True)
class Array:
    """Numbers of one type in named dimensions.

    Dimensions of the same name have the same size within a record; ``arm`` has it everywhere.
    """

    dtype: str
    dims: tuple[str, ...]

    def put(self, value: Any, out: Sink) -> Any:
        """Return the shape."""
        array = np.asarray(value)
        if array.ndim != len(self.dims):
            raise TypeError(f"{array.shape} numbers do not have the dimensions {self.dims}.")
        out.put(self.dtype, array.astype(self.dtype, casting="safe", copy=False))
        return list(array.shape)

    def take(self, text: Any, store: Store, sizes: Sizes) -> Any:
        """Return the numbers."""
        whole = isinstance(text, list) and all(type(n) is int and n >= 0 for n in text)
        if not whole or len(text) != len(self.dims):
            raise Malformed(f"{text!r:.60} is no shape of the dimensions {', '.join(self.dims)}")
        for name, size in zip(self.dims, text, strict=True):
            _fix(sizes, name, size)
        return store.take(self.dtype, text)


def _fix(sizes: Sizes, name: str, size: int) -> None:
    if sizes.setdefault(name, size) != size:
        raise Malformed(f"the dimension {name!r} has the sizes {sizes[name]} and {size}")


@dataclass(frozen=True)
class Maybe:
    """A field that may be None."""

    kind: Kind

    def put(self, value: Any, out: Sink) -> Any:
        """Return None or the text of the value."""
        return None if value is None else self.kind.put(value, out)

    def take(self, text: Any, store: Store, sizes: Sizes) -> Any:
        """Return None or the value."""
        return None if text is None else self.kind.take(text, store, sizes)


@dataclass(frozen=True)
class Many:
    """A tuple; with a dimension it has as many items as that is long."""

    kind: Kind
    dim: str | None = None

    def put(self, value: Any, out: Sink) -> Any:
        """Return a list."""
        return [self.kind.put(item, out) for item in value]

    def take(self, text: Any, store: Store, sizes: Sizes) -> Any:
        """Return the tuple."""
        if not isinstance(text, list):
            raise Malformed(f"{text!r:.60} is no list")
        if self.dim is not None:
            _fix(sizes, self.dim, len(text))
        return tuple(self.kind.take(item, store, sizes) for item in text)


@dataclass(frozen=True)
class Keyed:
    """Records by a key of bytes, in their order."""

    kind: Kind

    def put(self, value: Any, out: Sink) -> Any:
        """Return a list of the keys' lengths and the texts of the values."""
        found = []
        for key, item in value.items():
            out.put("uint8", np.frombuffer(key, np.uint8))
            found.append([len(key), self.kind.put(item, out)])
        return found

    def take(self, text: Any, store: Store, sizes: Sizes) -> Any:
        """Return the dictionary."""
        found = {}
        if not isinstance(text, list):
            raise Malformed(f"{text!r:.60} is no list")
        for pair in text:
            if not isinstance(pair, list) or len(pair) != 2 or type(pair[0]) is not int:
                raise Malformed(f"{pair!r:.60} is no record with its key")
            if pair[0] not in (0, sizes.get(_EVERYWHERE)):
                raise Malformed(f"{pair[0]} is not the number of arms")
            key = store.take("uint8", [pair[0]]).tobytes()
            found[key] = self.kind.take(pair[1], store, sizes)
        return found


@dataclass(frozen=True)
class OneOf:
    """A record of one of several classes, by name; () where there is none."""

    kinds: tuple[Record, ...]

    def put(self, value: Any, out: Sink) -> Any:
        """Return the name of the class and the text of the record; [] for none."""
        for kind in self.kinds:
            if isinstance(value, kind.type):
                return [kind.type.__name__, kind.put(value, out)]
        if value == ():
            return []
        raise TypeError(
            f"{type(value).__name__} is none of {[k.type.__name__ for k in self.kinds]}"
        )

    def take(self, text: Any, store: Store, sizes: Sizes) -> Any:
        """Return the record."""
        if text == []:
            return ()
        for kind in self.kinds:
            if isinstance(text, list) and len(text) == 2 and text[0] == kind.type.__name__:
                return kind.take(text[1], store, sizes)
        raise Malformed(f"{text!r:.60} is none of {[k.type.__name__ for k in self.kinds]}")


@dataclass(frozen=True)
class Mapped:
    """A value that is kept as another: a set as its sorted numbers."""

    kind: Kind
    to: Callable[[Any], Any]
    back: Callable[[Any], Any]

    def put(self, value: Any, out: Sink) -> Any:
        """Return the text of the other value."""
        return self.kind.put(self.to(value), out)

    def take(self, text: Any, store: Store, sizes: Sizes) -> Any:
        """Return the value."""
        return self.back(self.kind.take(text, store, sizes))


@dataclass(frozen=True)
class Record:
    """A dataclass or a named tuple, field by field.

    Parameters
    ----------
    type : type
        The class.
    fields : mapping of name to Kind, or None
        What is kept of every field; None: nothing, the field takes its default when read.

    Raises
    ------
    TypeError
        If the names are not those of the class: a new field is never forgotten in silence.
    """

    type: Any
    fields: Mapping[str, Kind | None]

    def __post_init__(self) -> None:
        """Compare the names with those of the class."""
        named = getattr(self.type, "_fields", None) or tuple(f.name for f in fields(self.type))
        if tuple(self.fields) != named:
            raise TypeError(
                f"what is saved of {self.type.__name__} must be declared field by field, one line "
                f"each and in order: the class has {named}, declared are {tuple(self.fields)}."
            )

    @functools.cached_property
    def kept(self) -> dict[str, Kind]:
        """The fields that are kept."""
        return {name: kind for name, kind in self.fields.items() if kind is not None}

    def put(self, value: Any, out: Sink) -> Any:
        """Return a dictionary of the fields."""
        return {name: kind.put(getattr(value, name), out) for name, kind in self.kept.items()}

    def take(self, text: Any, store: Store, sizes: Sizes) -> Any:
        """Return the record."""
        if not isinstance(text, dict) or list(text) != list(self.kept):
            raise Malformed(f"{text!r:.60} does not have the fields of {self.type.__name__}")
        mine = {_EVERYWHERE: sizes[_EVERYWHERE]} if _EVERYWHERE in sizes else {}
        found = {}
        for name, kind in self.kept.items():
            try:
                found[name] = kind.take(text[name], store, mine)
            except Malformed as error:
                raise Malformed(f"{name}: {error}") from None
        if _EVERYWHERE in mine:
            _fix(sizes, _EVERYWHERE, mine[_EVERYWHERE])
        return self.type(**found)


def _arrays_of(dtype: str) -> Callable[..., Array]:
    """Return what makes the kind of arrays of a type from the names of their dimensions."""
    return lambda *dims: Array(dtype, dims)


f8, i8, i4, u8 = map(_arrays_of, ("float64", "int64", "int32", "uint64"))
