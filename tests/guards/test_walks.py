"""The two walks in CONTRIBUTING are those that data take: followed by a profiler, in order."""

import re
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import bayesfair as bf
from bayesfair import examples

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def _log():
    return bf.audit(bf.read_history(examples.path("ecmo")), seed=1).verdict


def _duels():
    table = pa.table({
        "left": ["x", "y"] * 20, "right": ["y", "x"] * 20, "p_x": [0.5] * 40, "p_y": [0.5] * 40,
        "winner": ["left", "right", "right", "left"] * 10,
    })  # fmt: skip
    return bf.audit_comparisons(bf.read_duels(table), seed=1).verdict


WALKS = {"A row,": _log, "A duel,": _duels}


def told(title):
    """Return the modules that a walk names, in its order."""
    section = TEXT[TEXT.index(f"### {title}") :].split("\n\n")[1]
    lines = section.splitlines()
    assert len(lines) == 10
    return [name for line in lines for name in re.findall(r"`(\w+(?:/\w+)+)`", line)]


def followed(walk):
    """Return the modules that a walk enters, each where it is entered first."""
    walk()  # what is imported late is imported
    package, found = str(ROOT / "bayesfair"), {}

    def look(frame, event, _):
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(package):
            found.setdefault(file[len(package) + 1 : -3])

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        walk()
    finally:
        sys.setprofile(before)
    return [name for name in found if not name.startswith(("base/", "examples/"))]


@pytest.mark.parametrize("title", WALKS)
def test_a_walk_names_its_modules_in_the_order_of_the_data(title):
    names, entered = told(title), followed(WALKS[title])
    assert len(names) == len(set(names)), "no walk comes back to a module"
    assert [name for name in entered if name in set(names)] == names
    # a module that few functions pass through may be missing; a stage may not
    assert len(names) >= 0.9 * len(entered), set(entered) - set(names)
