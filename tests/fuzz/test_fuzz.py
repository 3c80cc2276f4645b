"""Mutants of real files are refused clearly or read as a strict reading reads them."""

from __future__ import annotations

import time
from dataclasses import replace

import fuzzing
import pytest

SEEDS = range(64)
"""For each of the cases: more than 2,000 mutants in all."""


@pytest.mark.parametrize("case", fuzzing.CASES, ids=lambda case: case.name)
def test_originals_are_read_as_they_are(case, tmp_path):
    assert fuzzing.judged(case, case.original, tmp_path) == fuzzing.Verdict("equal")


def test_there_are_two_thousand_mutants():
    assert len(SEEDS) * len(fuzzing.CASES) >= 2000


@pytest.mark.parametrize("case", fuzzing.CASES, ids=lambda case: case.name)
def test_mutants_are_refused_or_read_right(case, tmp_path):
    """No crash, no hang, no silent difference; and not everything is refused."""
    counts, faults = fuzzing.fuzz(tmp_path, SEEDS, (case,))
    assert faults == []
    assert counts[case.name, "equal"] >= len(SEEDS) // 20
    assert counts[case.name, "refused"] >= len(SEEDS) // 5
    assert sum(counts.values()) == len(SEEDS)


def test_mutants_of_saved_audits_are_refused(tmp_path):
    """Only what is as it was saved is read; a forged seal protects from crashes no less."""
    case = fuzzing.saved_case()
    assert fuzzing.judged(case, case.original, tmp_path) == fuzzing.Verdict("equal")
    counts, faults = fuzzing.fuzz(tmp_path, SEEDS, (case,))
    assert faults == []
    assert counts["saved", "refused"] >= len(SEEDS) // 2


def test_the_same_seed_gives_the_same_mutant():
    for case in fuzzing.CASES:
        assert fuzzing.mutant(case, 7) == fuzzing.mutant(case, 7)
    assert len({fuzzing.mutant(fuzzing.CASES[0], seed) for seed in range(50)}) > 40


def _lies(path):
    found = fuzzing.CASES[0].read(path)
    return [("north", *found[0][1:]), *found[1:]]


def _fails(path):
    raise ValueError("not ours")


def _sleeps(path):
    time.sleep(5)


@pytest.mark.parametrize(
    ("read", "word"), [(_lies, "differs"), (_fails, "crash"), (_sleeps, "hang")]
)
def test_the_fuzzer_sees_each_kind_of_fault(read, word, tmp_path, monkeypatch):
    monkeypatch.setattr(fuzzing, "SECONDS", 0.2)
    case = fuzzing.CASES[0]
    broken = replace(case, read=read, scan=None)
    assert fuzzing.judged(broken, case.original, tmp_path).word == word
    lax = replace(case, read=lambda _: case.strictly(case.original), scan=None)
    assert fuzzing.judged(lax, b"arm,reward\n", tmp_path).word == "accepted"
