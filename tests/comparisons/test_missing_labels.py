"""A label that is missing among others is refused or dropped, never skipped in silence."""

from __future__ import annotations

import pytest

from bayesfair.comparisons import Comparisons
from bayesfair.errors import DataError

NAN = float("nan")


@pytest.mark.parametrize("nothing", [None, NAN, ""], ids=repr)
@pytest.mark.parametrize(
    ("ordering", "place"), [(["a", 0, "c"], 2), ([0, "a", "c"], 1), (["a", ["b", 0]], 2)]
)
def test_a_ranking_that_lacks_a_label_is_refused_or_dropped(nothing, ordering, place):
    gap = [
        [nothing if e == 0 else e for e in x] if isinstance(x, list) else nothing if x == 0 else x
        for x in ordering
    ]
    whole = ["a", "b", "c"]
    with pytest.raises(DataError, match=rf"comparison 1 .*place {place} is missing") as caught:
        Comparisons.from_rankings([whole, gap])
    assert (caught.value.kind, caught.value.value) == ("missing_label", place)
    data = Comparisons.from_rankings([gap, whole], weight=[5, 2], missing="drop")
    assert data.orderings() == [(("a",), ("b",), ("c",))]
    assert (data.n_comparisons, data.n_skipped, data.row.tolist()) == (2.0, 1, [1])
    assert [n.kind for n in data.notices] == ["missing_dropped"]


def test_empty_places_at_the_end_fill_a_ranking_up():
    data = Comparisons.from_rankings([["a", "b", None, ""], ["c", "a", "b", NAN]], partial="subset")
    assert sorted(data.orderings()) == [(("a",), ("b",)), (("c",), ("a",), ("b",))]
    assert (data.notices, data.n_skipped) == ((), 0)


@pytest.mark.parametrize("lacking", [["a", NAN], [None, "a"], ["a", "", "b"]], ids=repr)
def test_a_set_that_lacks_a_label_is_refused_or_dropped(lacking):
    with pytest.raises(DataError, match=r"comparison 0 .*offered.*is missing") as caught:
        Comparisons.from_choices(["a", "a"], [lacking, ["a", "b"]])
    assert (caught.value.kind, caught.value.column) == ("missing_label", "offered")
    data = Comparisons.from_choices(["a", "a"], [lacking, ["a", "b"]], missing="drop")
    assert (data.n_comparisons, data.n_skipped) == (1.0, 1)


def test_empty_places_at_the_end_fill_a_set_of_two_up():
    data = Comparisons.from_choices(["a", "c"], [["a", "b", None], ["a", "b", "c"]])
    assert (data.n_comparisons, data.notices) == (2.0, ())
