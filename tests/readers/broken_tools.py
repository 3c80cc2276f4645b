"""A broken log with what a message must name, and broken files of several formats."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Broken:
    """One broken log."""

    name: str
    content: str | bytes | Callable[[], bytes] | None  # None: there is no such file
    fragments: tuple[str, ...]
    options: dict[str, Any] = field(default_factory=dict)
    file: str = "log.csv"
    reader: str = "both"  # "read", "scan" or "both" refuse it
    audit: dict[str, Any] | None = None  # read without complaint, but these audits refuse it

    def write(self, folder: Path) -> Path:
        """Write the log into a folder and return its path."""
        path = folder / self.file
        if self.content is not None:
            content = self.content() if callable(self.content) else self.content
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    @property
    def flags(self) -> list[str]:
        """Options as on the command line."""
        found = []
        for key, value in {**self.options, **(self.audit or {})}.items():
            flag = "--" + key.replace("_", "-")
            text = ",".join(value) if isinstance(value, (list, tuple)) else str(value)
            found += [flag, text]
        return found


def parquet(**columns: Any) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


def truncated_parquet() -> bytes:
    rng = np.random.default_rng(1)
    data = parquet(arm=rng.choice(["a", "b"], 5000), reward=rng.integers(0, 2, 5000))
    return data[: len(data) // 2]


def damaged_parquet() -> bytes:
    data = bytearray(parquet(arm=["a", "b"] * 500, reward=np.arange(1000.0)))
    data[4:400] = bytes(396)
    return bytes(data)


def duplicate_parquet() -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    columns = [pa.array(["a"]), pa.array([1]), pa.array([0])]
    pq.write_table(pa.Table.from_arrays(columns, names=["arm", "reward", "reward"]), sink)
    return sink.getvalue()


def truncated_gzip() -> bytes:
    rng = np.random.default_rng(1)
    rows = "".join(f"{a},{r},{p}\n" for a, r, p in zip(
        rng.choice(["a", "b"], 20000), rng.integers(0, 2, 20000), rng.random(20000), strict=True
    ))  # fmt: skip
    data = gzip.compress(("arm,reward,propensity\n" + rows).encode())
    return data[: len(data) // 2]


def zip_archive() -> bytes:
    return b"PK\x03\x04" + bytes(range(200))
