"""The figures of the house stay within their limits; a limit only ever falls."""

import figures
import pytest

LIMITS = {
    "circles": 0,
    "floors": 9,
    "family_branches": 2,
    "private_imports": 0,
    "late_imports": 0,
    "most_parameters": 30,
}


def measured():
    return {
        "circles": len(figures.circles()),
        "floors": max(figures.floors().values()) + 1,
        "family_branches": len(figures.family_branches()),
        "private_imports": len(figures.private_imports()),
        "late_imports": len(figures.late_imports()),
        "most_parameters": max(figures.parameters().values()),
    }


@pytest.fixture(scope="module")
def found():
    return measured()


@pytest.mark.parametrize("figure", LIMITS)
def test_limit(found, figure):
    assert found[figure] <= LIMITS[figure], "python tests/guards/figures.py -v names the places"


PUBLIC = {
    "bayesfair.audit.api.audit",
    "bayesfair.audit.duels.api.audit_comparisons",
    "bayesfair.comparisons.data.from_duels",
    "bayesfair.comparisons.data.from_ranked_rows",
    "bayesfair.inference.beliefs.beliefs",
    "bayesfair.inference.fit",
    "bayesfair.readers.duels.comparisons.read_comparisons",
    "bayesfair.readers.duels.log.read_duels",
    "bayesfair.simulation.arms.simulate",
}
"""Functions for users, who name their options one by one."""


def test_more_than_12_parameters_are_only_for_public_functions():
    assert set(figures.parameters()) == PUBLIC


def test_the_table_of_floors_in_contributing_is_that_of_the_code():
    text = figures.CONTRIBUTING.read_text(encoding="utf-8")
    assert figures.with_table(text) == text, "python tests/guards/figures.py --write-table"


def test_a_ring_of_three_is_found_inside_functions_too(monkeypatch):
    import ast

    code = {
        "bayesfair.a": "from bayesfair.b import x",
        "bayesfair.b": "def f():\n    import bayesfair.c",
        "bayesfair.c": "from bayesfair import a",
        "bayesfair.d": "from bayesfair.a import y",
    }
    monkeypatch.setattr(figures, "sources", lambda: {n: ast.parse(c) for n, c in code.items()})
    for cached in (figures.arrows, figures.circles):
        cached.cache_clear()
    try:
        assert figures.circles() == [["bayesfair.a", "bayesfair.b", "bayesfair.c"]]
    finally:
        monkeypatch.undo()
        for cached in (figures.arrows, figures.circles):
            cached.cache_clear()
