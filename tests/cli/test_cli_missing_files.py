"""What is no file that can be read ends with our own errors, in every reader and every command."""

from __future__ import annotations

import os

import pytest
from command_line import run

import bayesfair as bf
from bayesfair.errors import BayesfairError
from bayesfair.readers import scan_history

SUFFIXES = ("csv", "parquet", "jsonl", "json", "soc", "toi", "nc", "csv.gz", "jsonl.xz")

READERS = {
    "read_history": bf.read_history,
    "scan_history": scan_history,
    "read_comparisons": bf.read_comparisons,
    "as json": lambda path: bf.read_comparisons(path, format="json"),
    "as ballots": lambda path: bf.read_comparisons(path, format="preflib"),
    "read_duels": bf.read_duels,
    "load_audit": bf.load_audit,
}

COMMANDS = {
    "audit": (["audit", "{}"], ["csv", "parquet"]),
    "audit --scan": (["audit", "{}", "--scan"], ["csv"]),
    "audit --resume": (["audit", "--example", "ecmo", "--resume", "{}"], ["nc"]),
    "fit": (["fit", "{}"], ["csv", "jsonl", "soc"]),
    "audit-comparisons": (["audit-comparisons", "{}"], ["parquet", "json"]),
}


def _places(folder, suffixes=SUFFIXES):
    """Return name -> path of what cannot be read, whatever reads it."""
    found = {}
    for suffix in suffixes:
        found[f"no file .{suffix}"] = folder / f"none.{suffix}"
        found[f"no folder .{suffix}"] = folder / "nowhere" / f"log.{suffix}"
        found[f"no match *.{suffix}"] = folder / f"none*.{suffix}"
        empty = folder / f"empty.{suffix}"
        empty.touch()
        found[f"empty .{suffix}"] = empty
        noise = folder / f"noise.{suffix}"
        noise.write_bytes(bytes(range(256)) * 3)
        found[f"noise .{suffix}"] = noise
        inside = folder / f"folder.{suffix}"
        inside.mkdir()
        found[f"folder .{suffix}"] = inside
        loop = folder / f"loop.{suffix}"
        loop.symlink_to(loop)
        found[f"loop .{suffix}"] = loop
        found[f"long name .{suffix}"] = folder / f"{'x' * 5000}.{suffix}"
    found["device"] = "/dev/null"
    found["below a file"] = folder / f"empty.{suffixes[0]}" / f"log.{suffixes[0]}"
    return found


@pytest.mark.parametrize("reader", READERS)
def test_readers_refuse_what_is_no_file(reader, tmp_path):
    for name, path in _places(tmp_path).items():
        try:
            READERS[reader](path)
        except BayesfairError as error:
            assert str(error), name
        except Exception as error:
            raise AssertionError(f"{reader}, {name}: {error!r}") from error
        else:
            raise AssertionError(f"{reader}, {name}: was read")


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    "odd", [None, 3, b"log.csv", [], {}, "", " ", "a\0b.csv", "a\0b.soc", "~no"]
)
def test_readers_refuse_what_is_no_path(reader, odd):
    with pytest.raises(BayesfairError):
        READERS[reader](odd)


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_end_with_status_2_and_one_message(command, tmp_path, capsys):
    words, suffixes = COMMANDS[command]
    for name, path in _places(tmp_path, suffixes).items():
        out = run(capsys, *(word.format(path) for word in words))
        assert (out.status, out.out) == (2, ""), f"{name}: {out.err}"
        assert out.err.strip() and "Traceback" not in out.err, name


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root reads everything")
@pytest.mark.parametrize("reader", READERS)
def test_readers_refuse_what_may_not_be_read(reader, tmp_path):
    for suffix in SUFFIXES:
        path = tmp_path / f"locked.{suffix}"
        path.write_text("x")
        path.chmod(0)
        with pytest.raises(BayesfairError):
            READERS[reader](path)
