"""Logs at addresses: read through fsspec where it is installed, refused by name elsewhere."""

from __future__ import annotations

import sys

import pytest

from bayesfair.errors import DataError
from bayesfair.readers import read_history, scan_history


@pytest.mark.parametrize("read", [read_history, scan_history])
@pytest.mark.parametrize(
    "address", ["s3://bucket/log.csv", "https://example.org/log.csv", "gs://b/*.parquet"]
)
def test_addresses_are_read_only_where_fsspec_is(read, address, monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(DataError, match=r"is an address, .*bayesfair\[remote\]") as caught:
        read(address)
    assert caught.value.kind == "not_local" and "Did you mean" not in str(caught.value)


@pytest.mark.parametrize("read", [read_history, scan_history])
def test_addresses_are_read_through_fsspec(read):
    fsspec = pytest.importorskip("fsspec")
    memory, name = fsspec.filesystem("memory"), read.__name__
    for i, rows in enumerate(("a,1\nb,0\n", "a,0\n")):
        memory.pipe_file(f"/{name}/part-{10 * i}.csv", f"arm,reward\n{rows}".encode())
    log = read(f"memory://{name}/part-0.csv")
    assert (log.source, log.n_rounds) == ("part-0.csv", 2)
    assert read(f"memory://{name}/*.csv").n_rounds == 3
    for folder in (f"memory://{name}", f"memory://{name}/"):
        assert read(folder).n_rounds == 3
    memory.pipe_file(f"/other{name}/a.xyz", b"x")
    for lost, said in (
        (f"memory://other{name}", "holds no Parquet"),
        (f"memory://{name}/none.csv", "is an address, which could not be read"),
        (f"memory://{name}/*.parquet", "no file matches"), ("xyz://log.csv", "is an address"),
    ):  # fmt: skip
        with pytest.raises(DataError, match=said):
            read(lost)
