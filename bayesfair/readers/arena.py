"""Arena-style JSON: one object per duel, with model_a, model_b, winner and a time stamp."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bayesfair.checks import listed
from bayesfair.errors import DataError
from bayesfair.readers.delimited import opened
from bayesfair.readers.numerals import number

__all__ = ["JsonLines", "open_json"]


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

    @property
    def first_row(self) -> int:
        """Number of the first record: there is no header line."""
        return 1

    def tables(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield one Arrow table of the columns as text."""
        import pyarrow as pa
        from pyarrow import json as arrow_json

        if self.lines:
            try:
                with opened(self.path) as stream:
                    table = arrow_json.read_json(
                        stream,
                        read_options=arrow_json.ReadOptions(block_size=1 << 24),
                        parse_options=arrow_json.ParseOptions(
                            explicit_schema=pa.schema([(c, pa.string()) for c in columns]),
                            unexpected_field_behavior="ignore",
                        ),
                    )
                if all(column in table.column_names for column in columns):
                    yield table.select(list(columns))
                    return
            except pa.ArrowInvalid:
                pass  # numbers among the text, or a broken line: read slowly, which names it
        records = self._records()
        yield pa.table({c: self._column(c, [record.get(c) for record in records]) for c in columns})

    def _column(self, name: str, values: list[Any]) -> Any:
        """Return one key of all records as text, or as lists of text (offered items)."""
        import pyarrow as pa

        for row, value in enumerate(values, start=1):
            inner = value if isinstance(value, list) else [value]
            if any(isinstance(v, (dict, list)) for v in inner):
                raise DataError(
                    f"row {row} of {self.name}, key {name!r}: {json.dumps(value)[:60]} is no "
                    "label; expected text or a number."
                )
        if any(isinstance(value, list) for value in values):
            sets = [v if isinstance(v, list) or v is None else [v] for v in values]
            texts = [None if v is None else [_text(label) for label in v] for v in sets]
            return pa.array(texts, pa.list_(pa.string()))
        return pa.array([_text(value) for value in values], pa.string())

    def _records(self) -> list[dict[str, Any]]:
        with opened(self.path) as stream:
            text = bytes(stream.read()).decode("utf-8-sig")
        if not self.lines:
            return _objects(json.loads(text, parse_float=_as_written), self.name)
        records = []
        # not splitlines(): JSON text may hold U+2028 and other characters that it takes for ends
        for row, line in enumerate(text.split("\n"), start=1):
            if not line.strip():
                continue
            try:
                record = json.loads(line, parse_float=_as_written)
            except json.JSONDecodeError as error:
                raise DataError(
                    f"row {row} of {self.name} is not valid JSON ({error.msg}): "
                    f"{line.strip()[:80]!r}."
                ) from None
            if not isinstance(record, dict):
                raise DataError(f"row {row} of {self.name} is no object: {line.strip()[:80]!r}.")
            records.append(record)
        return records


def _as_written(text: str) -> float | str:
    """Return a number; what cannot be held as one stays text, which is refused with its row."""
    value = number(text)
    return text if value is None else value


def _text(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, str):
        return value
    return json.dumps(value)


def _objects(data: Any, name: str) -> list[dict[str, Any]]:
    if isinstance(data, dict):  # {"model_a": {"0": ...}}: columns of values by row
        columns = {c: v for c, v in data.items() if isinstance(v, dict)}
        if columns:
            rows = list(next(iter(columns.values())))
            return [{c: v.get(row) for c, v in columns.items()} for row in rows]
    if not isinstance(data, list) or not all(isinstance(record, dict) for record in data):
        raise DataError(f"{name} is neither JSON lines nor an array of objects.")
    return data


def open_json(path: Path) -> JsonLines:
    """Read the keys of the first record.

    Raises
    ------
    DataError
        If the file is empty or no JSON.
    """
    with opened(path) as stream:
        head = bytes(stream.read(1 << 24)).decode("utf-8-sig", errors="ignore")
    first = head.lstrip()
    if not first:
        raise DataError(f"{path.name} is empty; expected one JSON object per line.")
    line = first.partition("\n")[0]
    try:
        record = json.loads(line)
        if isinstance(record, dict) and not all(isinstance(v, dict) for v in record.values()):
            return JsonLines(path, path.name, tuple(map(str, record)), lines=True)
    except json.JSONDecodeError:
        pass
    whole = JsonLines(path, path.name, (), lines=False)
    try:
        records = whole._records()
    except json.JSONDecodeError as error:
        raise DataError(
            f"row {error.lineno} of {path.name} is not valid JSON ({error.msg}). Expected one "
            "object per line, or one array of objects."
        ) from None
    if not records:
        raise DataError(f"{path.name} holds no records; {listed(['model_a', 'model_b'])} expected.")
    return JsonLines(path, path.name, tuple(map(str, records[0])), lines=False)
