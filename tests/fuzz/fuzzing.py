"""One mutant after the other: is it refused clearly, or read as a strict reading reads it?"""

from __future__ import annotations

import contextlib
import random
import signal
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import strict_reading as strict
from fuzz_cases import CASES, Case, Unjudged, saved_case

import bayesfair as bf
from bayesfair.errors import BayesfairError

__all__ = [
    "CASES", "Case", "Verdict", "fuzz", "judged", "mutant", "replayed", "saved_case",
]  # fmt: skip

SECONDS = 10
"""A mutant of a few kilobytes that takes longer hangs."""


class Hang(BaseException):
    """A mutant took too long; no exception that a reader could take for a fault of the file."""


class Verdict(NamedTuple):
    """What became of a mutant."""

    # "refused", "equal", "unjudged" (nobody else can tell what is right), or a fault:
    # "crash", "hang", "differs", "accepted"
    word: str
    detail: str = ""

    @property
    def is_fault(self) -> bool:
        return self.word not in ("refused", "equal", "unjudged")


# -- one mutant ------------------------------------------------------------------------------------


@contextlib.contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    def ring(*_: Any) -> None:
        raise Hang

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _reading(
    read: Callable[[Path], Any], path: Path, seconds: float | None = None
) -> tuple[str, Any]:
    seconds = SECONDS if seconds is None else seconds
    try:
        with _alarm(seconds), warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", bf.BayesfairWarning)
            return "read", read(path)
    except BayesfairError as error:
        return ("refused", str(error)) if str(error).strip() else ("crash", "an empty message")
    except Hang:
        return "hang", f"more than {seconds} s"
    except Exception as error:
        return "crash", f"{type(error).__name__}: {error}"


def judged(case: Case, data: bytes, folder: Path, *, scan: bool = True) -> Verdict:
    """Return what becomes of one mutant."""
    path = folder / case.file
    path.write_bytes(data)
    word, found = _reading(case.read, path)
    if word in ("hang", "crash"):
        return Verdict(word, str(found))
    if scan and case.scan is not None:
        scan_word, scanned = _reading(case.scan, path)
        if scan_word in ("hang", "crash"):
            return Verdict(scan_word, f"scan: {scanned}")
        if scan_word != word:
            return Verdict("differs", f"read: {found!s:.300}; scan: {scanned!s:.300}")
        if word == "read" and not strict.same(found, scanned):
            return Verdict("differs", f"read: {found!s:.300}; scan: {scanned!s:.300}")
    if word == "refused":
        return Verdict("refused", str(found))
    try:
        expected = case.strictly(data)
    except Unjudged:
        return Verdict("unjudged")
    except strict.Refused as error:
        return Verdict("accepted", f"strict: {error}; read: {found!s:.300}")
    if not strict.same(found, expected):
        return Verdict("differs", f"strict: {expected!s:.300}; read: {found!s:.300}")
    return Verdict("equal")


def used(case: Case, folder: Path) -> Verdict | None:
    """Return the fault that shows where what was read is used, None where there is none."""
    assert case.use is not None
    # kernels that nobody has used yet are compiled on the way
    word, said = _reading(case.use, folder / case.file, 10 * SECONDS)
    return Verdict(word, f"used: {said}") if word in ("crash", "hang") else None


def mutant(case: Case, seed: int) -> bytes:
    """Return a mutant; the same seed gives the same one, whatever was made before."""
    rng = random.Random(f"{case.name} {seed}")
    return case.mutate(rng, case.original, case.kind)


def fuzz(
    folder: Path, seeds: range, cases: tuple[Case, ...] = CASES, *, deep: bool = False
) -> tuple[Counter[tuple[str, str]], list[tuple[str, int, Verdict]]]:
    """Judge one mutant of each case for each seed; return counts and the faults.

    `deep`: also use what was read, in an audit or a fit.
    """
    counts: Counter[tuple[str, str]] = Counter()
    faults = []
    for seed in seeds:
        for case in cases:
            data = mutant(case, seed)
            verdict = judged(case, data, folder, scan=deep or seed % 3 == 0)
            if verdict.word == "equal" and case.use and deep:
                verdict = used(case, folder) or verdict
            counts[case.name, verdict.word] += 1
            if verdict.is_fault:
                faults.append((case.name, seed, verdict))
    return counts, faults


def replayed(name: str, seed: int, folder: Path) -> tuple[bytes, Verdict]:
    """Return a mutant and what becomes of it, to look at a fault."""
    case = next(case for case in (*CASES, saved_case()) if case.name == name)
    data = mutant(case, seed)
    return data, judged(case, data, folder)
