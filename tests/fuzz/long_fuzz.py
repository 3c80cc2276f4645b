"""The fuzzer for as long as one likes, with other mutants than CI's.

    python tests/fuzz/long_fuzz.py --minutes 10 --seed 100000

Prints counts for each file and every fault with its case and seed; `fuzzing.replayed(case, seed,
folder)` gives the mutant back. Ends with status 1 if there was a fault.
"""

from __future__ import annotations

import argparse
import faulthandler
import tempfile
import time
from collections import Counter
from pathlib import Path

import fuzzing


def main() -> int:
    parser = argparse.ArgumentParser(description="Fuzz every reader.")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=100_000, help="First seed; CI has those below.")
    parser.add_argument("--case", help="One case only.")
    options = parser.parse_args()
    faulthandler.enable()
    every = (*fuzzing.CASES, fuzzing.saved_case())
    cases = tuple(c for c in every if options.case in (None, c.name))
    counts: Counter[tuple[str, str]] = Counter()
    faults, seed = 0, options.seed
    with tempfile.TemporaryDirectory() as folder:
        for case in cases:  # compiles what they need
            fuzzing.judged(case, case.original, Path(folder))
            if case.use is not None:
                case.use(Path(folder) / case.file)
        end = time.monotonic() + 60 * options.minutes
        while time.monotonic() < end:
            # what hangs below Python is never reached by the alarm: it ends with a traceback
            faulthandler.dump_traceback_later(100 * fuzzing.SECONDS, exit=True)
            found, wrong = fuzzing.fuzz(Path(folder), range(seed, seed + 5), cases, deep=True)
            counts += found
            for name, at, verdict in wrong:
                print(f"{verdict.word}: case {name}, seed {at}: {verdict.detail!a}", flush=True)
            faults += len(wrong)
            seed += 5
    faulthandler.cancel_dump_traceback_later()
    for case in cases:
        words = {word: n for (name, word), n in sorted(counts.items()) if name == case.name}
        print(f"{case.name:10} {words}")
    print(f"seeds {options.seed} to {seed - 1}: {sum(counts.values())} mutants, {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
