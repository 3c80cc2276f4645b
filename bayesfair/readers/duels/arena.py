"""Arena-style JSON: one object per duel, with model_a, model_b, winner and a time stamp."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bayesfair.base.checks import listed
from bayesfair.base.json_text import BadJson, NoJson, each_line, strictly
from bayesfair.base.numerals import number, why_no_number
from bayesfair.errors import DataError
from bayesfair.readers.files.delimited import opened, unreadable
from bayesfair.readers.files.json_arrays import array_pieces
from bayesfair.readers.files.quotes import LONGEST

__all__ = ["JsonLines", "open_json"]

_BLOCK = 1 << 24
_HEAD = 1 << 16
_BOM = b"\xef\xbb\xbf"
_EXPECTED = "Expected one object per line, or one array of objects."


class _Written(str):
    """A number that nothing holds, as the file writes it: said only where its key is wanted."""


def _held(text: str) -> float | _Written:
    value = float(text)
    if value and abs(value) < 1e308:
        return value
    found = number(text)
    return _Written(text) if found is None else found


@dataclass(frozen=True)
class JsonLines:
    """Records of a JSON-lines file, or of a file that is one JSON array of objects.

    Attributes
    ----------
    path : Path
    name : str
    header : tuple of str
        Keys of the first record.
    lines : bool
        One object per line; else one array.
    """

    path: Path
    name: str
    header: tuple[str, ...]
    lines: bool

    first_row = 1
    """Number of the first record: there is no header line, and empty lines are none."""
    notices: tuple[str, ...] = ()

    def tables(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield one Arrow table of the columns as text."""
        import pyarrow as pa

        chunks: dict[str, list[Any]] = {c: [pa.array([], pa.string())] for c in columns}
        row = self.first_row
        for records in self.records():
            for c, parts in chunks.items():
                parts.append(self._column(c, [record.get(c) for record in records], row))
            row += len(records)
        yield pa.table({c: _alike(parts) for c, parts in chunks.items()})

    def sample(self, columns: Sequence[str], n: int) -> Any:
        """Return the columns of at most `n` of the first records as text, what is nested left out.

        Nobody asked for these columns: whatever they hold is no fault.
        """
        import pyarrow as pa

        def text(value: Any) -> str | None:
            nested = value is None or isinstance(value, (list, dict))
            return None if nested else str(value)

        head = next(self.records())[:n]
        found = {c: [text(record.get(c)) for record in head] for c in columns}
        return pa.table({c: pa.array(values, pa.string()) for c, values in found.items()})

    def _column(self, name: str, values: list[Any], row: int) -> Any:
        """Return one key of some records as text, or as lists of text (offered items)."""
        import pyarrow as pa

        kinds = set(map(type, values))
        if _Written in kinds:
            self._check_numbers(name, values, row)
        if kinds & {list, dict}:
            for at, value in enumerate(values):
                inner = value if isinstance(value, list) else [value]
                if any(isinstance(v, (dict, list)) for v in inner):
                    raise DataError(
                        f"row {row + at} of {self.name}, key {name!r}: {json.dumps(value)[:60]} is "
                        "no label; expected text or a number.",
                        kind="bad_value",
                        row=row + at,
                        column=name,
                        value=json.dumps(value)[:60],
                        source=self.name,
                    )
        if list in kinds:
            sets = [v if isinstance(v, list) or v is None else [v] for v in values]
            texts = [None if v is None else [_text(label) for label in v] for v in sets]
            return pa.array(texts, pa.list_(pa.string()))
        plain = kinds <= {str, type(None)}
        return pa.array(values if plain else [_text(value) for value in values], pa.string())

    def _check_numbers(self, name: str, values: list[Any], row: int) -> None:
        for at, value in enumerate(values):
            if isinstance(value, _Written) and number(value) is None:
                raise DataError(
                    f"row {row + at} of {self.name}, key {name!r}: {value[:40]!r} is not a number"
                    f"{why_no_number(value)}. Correct it, or write it as text.",
                    kind="bad_number",
                    row=row + at,
                    column=name,
                    value=value[:40],
                    source=self.name,
                )

    def records(self) -> Iterator[list[dict[str, Any]]]:
        """Yield the records, block by block."""
        if not self.lines:
            yield from self._elements()
            return
        row, line = self.first_row, 1
        for block in self.blocks():
            records = self.records_of(block, row, line)
            line += block.count(b"\n")
            row += len(records)
            yield records

    def head(self) -> list[dict[str, Any]]:
        """Return some of the first records."""
        if not self.lines:
            return next((block for block in self.records() if block), [])
        return self.records_of(self.first_lines(_HEAD), 1, 1)

    def first_lines(self, most: int) -> bytes:
        """Return first lines of so many bytes, at least one."""
        block = next((block for block in self.blocks() if block.strip()), b"")
        return block[: block.rfind(b"\n", 0, most) + 1] or block

    def blocks(self) -> Iterator[bytes]:
        """Yield blocks of whole lines."""
        return _blocks(self.path, self.name)

    def records_of(self, block: bytes, row: int, line: int) -> list[dict[str, Any]]:
        """Return the records in a block of lines, which begins with this row, on this line."""
        quick = _at_once(block)
        if quick is not None:
            return quick
        records: list[dict[str, Any]] = []
        # not splitlines(): JSON text may hold U+2028 and other characters that it takes for ends
        for at, text in enumerate(block.split(b"\n")):
            if text.strip():
                records.append(self._record(text, row + len(records), line + at))
        return records

    def _record(self, text: bytes, row: int, line: int) -> dict[str, Any]:
        try:
            record = strictly(text, to_number=_held)
            if isinstance(record, dict):
                return record
            why = "is no object"
        except BadJson as error:
            why = f"is not valid JSON ({error})"
        raise _bad_line(self.name, why, text, row, line)

    def _elements(self) -> Iterator[list[dict[str, Any]]]:
        """Yield the records of an array, or of what else the whole file means."""
        for i, (text, before) in enumerate(array_pieces(_pieces(self.path, self.name))):
            found = _objects(self._meant(text, before), self.name)
            if i and not found:
                raise DataError(
                    f"{self.name} is not valid JSON: a comma stands behind the last record. "
                    "Remove it.", kind="bad_json", source=self.name,
                )  # fmt: skip
            yield found

    def _meant(self, text: bytes, before: int) -> Any:
        """Return what a part of the file means that has so many lines before it."""
        try:
            return strictly(text, to_number=_held)
        except BadJson as error:
            line = None if error.line is None else before + error.line
            place = self.name if line is None else f"row {line} of {self.name}"
            several = str(error).startswith("Extra data")
            remedy = (
                " An object over several lines begins after another one: write one object per line "
                f"(jq -c . {self.name})."
            )
            raise DataError(
                f"{place} is not valid JSON ({error}). {_EXPECTED}{remedy if several else ''}",
                kind="bad_json",
                row=line,
                source=self.name,
            ) from None


def _at_once(block: bytes) -> list[dict[str, Any]] | None:
    """Return the records of a block; None where a line has to be looked at on its own."""
    try:
        records = each_line(block.decode("utf-8"), _held)
    except UnicodeDecodeError:
        return None
    if records is None or not all(type(record) is dict for record in records):
        return None
    return records


def _alike(chunks: list[Any]) -> Any:
    """Return chunks as one column: of lists, where one of them holds lists."""
    import pyarrow as pa

    lists = pa.list_(pa.string())
    if not any(pa.types.is_list(chunk.type) for chunk in chunks):
        return pa.chunked_array(chunks, pa.string())
    return pa.chunked_array(
        [
            chunk
            if pa.types.is_list(chunk.type)
            else pa.array([None if v is None else [v] for v in chunk.to_pylist()], lists)
            for chunk in chunks
        ],
        lists,
    )


def _pieces(path: Path, name: str) -> Iterator[bytes]:
    """Yield the bytes of a file behind its mark, cut anywhere."""
    try:
        with opened(path) as stream:
            yield bytes(stream.read(len(_BOM))).removeprefix(_BOM)
            while data := bytes(stream.read(_BLOCK)):
                yield data
    except unreadable() as error:
        raise _cut(name, error) from error


def _blocks(path: Path, name: str) -> Iterator[bytes]:
    """Yield blocks of whole lines."""
    rest = b""
    for piece in _pieces(path, name):
        data = rest + piece
        cut = data.rfind(b"\n") + 1
        if not cut and len(data) > LONGEST:
            raise DataError(
                f"{name}: a line is longer than {LONGEST >> 20} MB. {_EXPECTED}",
                kind="record_too_long",
                source=name,
            )
        rest = data[cut:]
        if cut:
            yield data[:cut]
    yield rest


def _bad_line(name: str, why: str, text: bytes, row: int, line: int | None = None) -> DataError:
    place = f"row {row} of {name}" + (f" [line {line}]" if line not in (None, row) else "")
    shown = text.strip()[:80].decode("utf-8", errors="replace")
    return DataError(
        f"{place} {why}: {shown!r}. Expected one object per line; correct the line.",
        kind="bad_json",
        row=row,
        value=shown,
        source=name,
    )


def _cut(name: str, error: Exception) -> DataError:
    return DataError(
        f"{name} cannot be read ({' '.join(str(error).split())[:200]}); if it is compressed, it "
        "may be truncated: copy it again.",
        kind="unreadable",
        source=name,
    )


def _text(value: Any) -> str | None:
    if value is None or type(value) is str:
        return value
    return json.dumps(value)


def _objects(data: Any, name: str) -> list[dict[str, Any]]:
    if isinstance(data, dict) and data and all(isinstance(v, dict) for v in data.values()):
        # {"model_a": {"0": ...}}: columns of values by row
        rows = list(next(iter(data.values())))
        for column, values in data.items():
            if set(values) != set(rows):
                odd = sorted(set(values) ^ set(rows))
                raise DataError(
                    f"{name}: column {column!r} and the first column hold different rows "
                    f"({listed(odd, 3)} in one of them only). Write null for a missing value.",
                    kind="bad_json",
                    column=column,
                    source=name,
                )
        return [{c: v[row] for c, v in data.items()} for row in rows]
    if isinstance(data, dict) and data:  # one record over several lines
        return [data]
    if not isinstance(data, list) or not all(isinstance(record, dict) for record in data):
        raise DataError(
            f"{name} is neither JSON lines nor an array of objects. {_EXPECTED}",
            kind="bad_json",
            source=name,
        )
    return data


def open_json(path: Path) -> JsonLines:
    """Read the keys of the first record.

    Raises
    ------
    DataError
        If the file is empty, no JSON, or cannot be read.
    """
    try:
        with opened(path) as stream:
            head = bytes(stream.read(_BLOCK)).removeprefix(_BOM)
    except unreadable() as error:
        raise _cut(path.name, error) from error
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError(
            f"{path.name} is UTF-16 text; save it as UTF-8.", kind="not_utf8", source=path.name
        )
    first = head.lstrip()
    line, _, others = first.partition(b"\n")
    if not first:
        raise DataError(
            f"{path.name} is empty; expected one JSON object per line.",
            kind="empty",
            source=path.name,
        )
    try:
        record = strictly(line, to_number=_held)
        # one object of objects alone: columns of values by row
        if isinstance(record, dict) and (
            others.strip() or not all(isinstance(v, dict) for v in record.values())
        ):
            return JsonLines(path, path.name, tuple(record), lines=True)
    except NoJson:
        pass  # an object or an array of several lines
    except BadJson as error:
        raise _bad_line(path.name, f"is not valid JSON ({error})", line, 1) from None
    records = next(JsonLines(path, path.name, (), lines=False).records())
    if not records:
        raise DataError(
            f"{path.name} holds no records. {_EXPECTED}",
            kind="empty",
            source=path.name,
        )
    return JsonLines(path, path.name, tuple(records[0]), lines=False)
