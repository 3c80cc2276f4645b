"""Files are written whole or not at all: kills, full disks, links, modes, devices."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from bayesfair.base.writing import replacing, write_bytes, write_text

HERE = Path(__file__).parent


def test_a_kill_at_any_moment_leaves_the_old_file_or_the_new_one():
    run = subprocess.run(
        [sys.executable, str(HERE / "kill_writers.py"), "3"],
        capture_output=True, text=True, check=True, env={**os.environ, "NUMBA_NUM_THREADS": "1"},
    )  # fmt: skip
    found = json.loads(run.stdout)
    assert len(found) == 8
    assert {name: f["half"] for name, f in found.items() if f["half"]} == {}
    assert {name: f["drafts"] for name, f in found.items() if f["drafts"]} == {}
    # the kills fell within the work, and some writers were done before theirs
    assert sum(f["killed"] for f in found.values()) >= 10
    assert sum(f["new"] for f in found.values()) >= 3


FULL = """
import sys
from pathlib import Path
import bayesfair as bf
from outputs import OUTPUTS
place = Path(sys.argv[1])
for name, (write, read) in OUTPUTS.items():
    path = place / name
    path.write_bytes(b"old")
    (place / "filler").write_bytes(b"")
    with open(place / "filler", "wb", buffering=0) as filler:
        try:
            while filler.write(b"x" * 4096):
                pass
        except OSError:
            pass
    try:
        write(path)
    except (OSError, bf.OptionError) as error:
        assert str(path) in str(error) and "No space left on device" in str(error), (name, error)
    else:
        raise SystemExit(f"{name}: written to a full disk")
    assert path.read_bytes() == b"old", name
    (place / "filler").unlink()
    assert [p.name for p in place.iterdir()] == [name], name
    path.unlink()
print("done")
"""


def test_a_full_disk_keeps_every_old_file_and_names_it(tmp_path):
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)],
        capture_output=True, check=False,
    )  # fmt: skip
    if mounted.returncode:
        pytest.skip("no right to mount a small file system")
    try:
        run = subprocess.run(
            [sys.executable, "-c", FULL, str(place)],
            capture_output=True, text=True, check=False, cwd=HERE,
        )  # fmt: skip
        assert (run.returncode, run.stdout) == (0, "done\n"), run.stderr
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_a_link_stays_a_link_and_its_target_is_written(tmp_path):
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to("target")
    write_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "target").read_text() == "new"
    (tmp_path / "ahead").symlink_to("not-yet")
    write_text(tmp_path / "ahead", "first")
    assert (tmp_path / "ahead").is_symlink() and (tmp_path / "not-yet").read_text() == "first"


def test_the_mode_of_a_file_is_kept_and_a_new_file_follows_the_umask(tmp_path):
    private = tmp_path / "private"
    private.write_text("old")
    private.chmod(0o600)
    write_text(private, "new")
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    before = os.umask(0o027)
    try:
        write_text(tmp_path / "fresh", "new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "fresh").stat().st_mode) == 0o640


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_text(pipe, "through")
        assert os.read(reader, 100) == b"through"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_device_stays_a_device(tmp_path):
    device = tmp_path / "null"
    try:
        os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        device.open("wb").close()
    except OSError:
        pytest.skip("no right to make a device")
    write_bytes(device, b"gone")
    assert stat.S_ISCHR(device.stat().st_mode)


def test_an_error_inside_leaves_the_old_file_and_no_draft(tmp_path):
    path = tmp_path / "a"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), replacing(path) as draft:
        draft.write_text("half")
        _ = 1 / 0
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_drafts_of_running_processes_stay_those_of_dead_ones_go(tmp_path):
    path = tmp_path / "a"
    with replacing(path) as mine:
        write_text(path, "another writer of the same file")
        assert mine.exists()
        mine.write_text("last")
    dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"],
                          capture_output=True, text=True, check=True).stdout.strip()  # fmt: skip
    left = tmp_path / mine.name.replace(f"-{os.getpid()}-", f"-{dead}-")
    left.write_text("half")
    other = tmp_path / left.name.replace(".bayesfair-", ".bayesfair-other")
    other.write_text("of another file")
    write_text(path, "new")
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(["a", other.name])


def test_names_as_long_as_the_system_allows(tmp_path):
    path = tmp_path / ("n" * 255)
    write_text(path, "whole")
    assert path.read_text() == "whole"


KILLED = """
import os, sys
from bayesfair.base.writing import replacing

with replacing(sys.argv[1]) as draft:
    draft.write_text("half")
    os.kill(os.getpid(), 9)
"""


@pytest.mark.skipif(os.name != "posix", reason="pipes as POSIX has them")
def test_the_draft_of_a_device_is_swept_after_a_kill(tmp_path, monkeypatch):
    there, pipe = tmp_path / "temporary", tmp_path / "pipe"
    there.mkdir()
    os.mkfifo(pipe)
    subprocess.run(
        [sys.executable, "-c", KILLED, str(pipe)], env={**os.environ, "TMPDIR": str(there)},
        check=False,
    )  # fmt: skip
    (left,) = there.iterdir()
    assert left.read_text() == "half" and stat.S_IMODE(left.stat().st_mode) == 0o600
    monkeypatch.setattr("tempfile.tempdir", str(there))
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_text(pipe, "whole")
        assert os.read(reader, 10) == b"whole"
    finally:
        os.close(reader)
    assert not list(there.iterdir())
    assert stat.S_ISFIFO(pipe.stat().st_mode)
