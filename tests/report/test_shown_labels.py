"""Labels in tables: cut in the middle, never look-alikes, nothing that acts on a terminal."""

from hypothesis import given
from hypothesis import strategies as st

from bayesfair.base.shown import shortened, visible

ARMS = [
    "Treatment arm with extracorporeal membrane oxygenation, dose 10 mg",
    "Treatment arm with extracorporeal membrane oxygenation, dose 20 mg",
]


def test_labels_that_differ_at_their_end_differ_when_cut():
    first, second = shortened(ARMS)
    assert first != second and first.endswith("dose 10 mg") and second.endswith("dose 20 mg")
    assert max(len(first), len(second)) <= 40


def test_labels_that_differ_in_the_middle_show_where():
    head, tail = "h" * 50, "t" * 50
    shown = shortened([f"{head}A{tail}", f"{head}B{tail}", f"{head}{tail}"])
    assert len(set(shown)) == 3 and "A" in shown[0] and "B" in shown[1]


@given(st.lists(st.text("ab,", min_size=0, max_size=60), max_size=12), st.integers(4, 40))
def test_different_labels_are_shown_differently_and_equal_ones_alike(labels, most):
    shown = dict(zip(labels, shortened(labels, most), strict=True))
    assert len(set(shown.values())) == len(set(labels))


@given(st.text(max_size=30))
def test_nothing_that_is_shown_acts_on_a_terminal(text):
    assert all(c.isprintable() or c in "\u200c\u200d" for c in visible(text))


def test_joiners_stay_within_emoji_and_scripts_only():
    nurse = "\U0001f469\u200d\u2695"
    assert visible(nurse) == nurse
    assert visible("a\u200db") == "a\\u200db"
