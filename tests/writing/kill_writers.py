"""Kill every writer of a file at moments spread over its work; print what was left under its name.

``python tests/writing/kill_writers.py 40`` kills each output 40 times (a few minutes); the tests
run it with fewer. The imports are done once; each kill ends a fork inside the writer.
"""

import json
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

from outputs import OUTPUTS

OLD = b"what was there before"


def left_over(write, read, path, after):
    """Return the state of the file after the writer was killed, `after` seconds in."""
    path.write_bytes(OLD)
    child = os.fork()
    if child == 0:  # the alarm's default action ends the process at once, without any clean-up
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, max(after, 1e-6))
        write(path)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    killed = os.WIFSIGNALED(status)
    if path.read_bytes() == OLD:
        return "old", killed
    try:
        read(path)
    except Exception:  # whatever a reader says of half a file
        return "half", killed
    return "new", killed


def kill_all(n):
    """Return name -> how often the file was old, new, half; kills; drafts left at the end."""
    found = {}
    for name, (write, read) in OUTPUTS.items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, name)
            write(path)  # once whole: what is loaded on first use is loaded
            begin = time.perf_counter()
            write(path)
            length = time.perf_counter() - begin
            read(path)
            states = [left_over(write, read, path, 2 * length * (i + 0.5) / n) for i in range(n)]
            write(path)  # sweeps what the killed ones left
            counts = {state: sum(s == state for s, _ in states) for state in ("old", "new", "half")}
            counts["killed"] = sum(killed for _, killed in states)
            counts["drafts"] = len([p for p in Path(folder).iterdir() if p != path])
            found[name] = counts
    return found


if __name__ == "__main__":
    print(json.dumps(kill_all(int(sys.argv[1]) if len(sys.argv) > 1 else 40), indent=1))
