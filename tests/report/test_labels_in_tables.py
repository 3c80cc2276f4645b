"""Two arms never look alike: in tables on a terminal, in plots and on the page."""

from __future__ import annotations

import re

import numpy as np
import pytest

import bayesfair as bf
from bayesfair.base.shown import MOST_ROWS, cells, table
from bayesfair.ranking.summary import fit_summary
from bayesfair.ranking.text import render_fit
from bayesfair.report.simulation import report
from bayesfair.report.write import report_page

LONG = "Treatment arm with extracorporeal membrane oxygenation, " + "x" * 43
PAIRS = {
    "end": (LONG + "y" * 100 + "1", LONG + "y" * 100 + "2"),
    "middle": (LONG + "1" + "y" * 100, LONG + "2" + "y" * 100),
    "length": (LONG + "y" * 100, LONG + "y" * 101),
    "begin": ("1" + LONG + "y" * 99, "2" + LONG + "y" * 99),
    "cjk": ("\u6771" * 100 + "\u4eac" + "\u6771" * 99, "\u6771" * 201),
    "marks": ("\u05d0" * 120 + "\u200f" + "\u05d0" * 79, "\u05d0" * 200),
}


def log(arms):
    return bf.History(list(arms) * 2, [1, 0, 1, 1], selection_probability=[[0.5, 0.5]] * 4,
                      arms=list(arms))  # fmt: skip


def first_column(text, heading):
    """The first cells of the rows of a table, by the rule under its head."""
    lines = text.splitlines()
    at = next(i for i, line in enumerate(lines) if line.strip().startswith(heading))
    width = len(lines[at + 1].strip().split("  ")[0])
    found = []
    for line in lines[at + 2 :]:
        if not line.startswith("  ") or not line.strip():
            break
        cell, taken = "", 0
        for sign in line[2:]:
            if taken >= width:
                break
            cell, taken = cell + sign, taken + cells(sign)
        found.append(cell.strip())
    return found


@pytest.mark.parametrize("kind", PAIRS)
def test_labels_of_two_hundred_signs_that_differ_in_one_are_told_apart_on_a_terminal(kind):
    arms = PAIRS[kind]
    audit = bf.audit(log(arms), seed=1, draws=20)
    shown = first_column(str(audit), "arm")
    assert len(shown) == len(set(shown)) == 2 and max(map(len, shown)) <= 60
    groups = bf.audit({label: log("ab") for label in arms}, objective=False)
    shown = first_column(str(groups), "group")
    assert len(shown) == len(set(shown)) == 2


@pytest.mark.parametrize("kind", PAIRS)
def test_they_are_told_apart_in_fits_duels_and_simulations(kind):
    arms = PAIRS[kind]
    data = bf.Comparisons.from_duels(
        [arms[0], arms[1]] * 4, [arms[1], arms[0]] * 4, ["left"] * 8, keep_rows=True
    )
    tree = bf.fit(data, seed=1, draws=40)
    shown = first_column(render_fit(data, fit_summary(tree, data)), "item")
    assert len(set(shown)) == 2
    numbers = fit_summary(tree, data)
    numbers["items"][0]["letters"] = "".join(f"{c}{n}" for n in range(2, 20) for c in "aceg")
    assert max(map(len, render_fit(data, numbers).split())) <= 60  # cut as labels are
    even = np.array([[0, 0.5], [0.5, 0]])
    audit = bf.audit_comparisons(data, pair_probability=even, worth=[1, 2], seed=1)
    assert len(set(first_column(str(audit), "item"))) == 2
    if "," in arms[0]:
        arms = tuple(label.replace(",", ";") for label in arms)
    given = ",".join(f"{label}=.{i + 5}" for i, label in enumerate(arms))
    text = report("uniform", given, rounds=5, runs=1, batch=1, delay=0, seed=1)[1]
    head = next(line for line in text.splitlines() if "fairness regret" in line)
    one, other = re.split(r"\s{2,}", head.strip())[-2:]
    assert one != other


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("kind", PAIRS)
def test_they_are_told_apart_on_the_page_and_stand_whole_in_the_title(kind):
    arms = PAIRS[kind]
    page = report_page(bf.audit(log(arms), seed=1, draws=20))
    rows = re.findall(r'<th scope="row"><bdi><span title="([^"]*)">([^<]*)</span></bdi>', page)
    assert len({short for _, short in rows}) == len({whole for whole, _ in rows}) == 2
    assert all(len(short) < len(whole) for whole, short in rows)
    if kind != "marks":  # marks that are not shown stand as escapes
        assert {whole for whole, _ in rows} == set(arms)
    assert "whole under the pointer" in page


def test_short_labels_have_no_title_and_nothing_is_said_of_cuts():
    page = report_page(bf.audit(log(("a", "b")), seed=1, draws=20))
    assert '<th scope="row"><bdi>a</bdi>' in page and "<span title" not in page
    assert "under the pointer" not in page


def test_wide_letters_line_up():
    """A CJK letter takes two cells, a combining accent none (Unicode Annex 11)."""
    labels = ["\u6771\u4eac", "ab", "e\u0301t\u00e9", "\uff21"]
    lines = table(["arm", "n"], [[label, str(10**i)] for i, label in enumerate(labels)])
    assert [cells(label) for label in labels] == [4, 2, 3, 2]
    ends = {cells(line) for line in lines[1:]}
    assert ends == {cells(lines[1])}
    assert lines[2] == "  \u6771\u4eac" + " " * 5 + "1"


def test_labels_in_plots_are_cut_but_differ_and_are_no_formulas():
    arms = ("$\\alpha$", "x" * 99 + "1", "x" * 99 + "2")
    data = bf.Comparisons.from_win_matrix([[0, 3, 2], [1, 0, 4], [2, 2, 0]], arms)
    axes = bf.plots.plot_ranks(bf.fit(data, seed=1, draws=40))
    names = [tick.get_text() for tick in axes.get_yticklabels()]
    assert len(set(names)) == 3 and max(map(len, names)) <= 60 and "$\\alpha$" in names
    assert not any(tick.get_parse_math() for tick in axes.get_yticklabels())


def test_a_terminal_shows_fifty_rows_and_says_what_it_leaves_out():
    n = 130
    arms = [f"arm {i:03d}" for i in range(n)]
    even = np.full((n, n), 1 / n)
    wide = bf.History(arms, [0, 1] * 65, selection_probability=even, arms=arms)
    audit = bf.audit(wide, objective=False)
    assert len(first_column(str(audit), "arm")) == MOST_ROWS + 1
    assert f"  ... {n - MOST_ROWS} more; --json has all" in str(audit)
    assert len(audit.to_dict()["arms"]) == n


def test_of_many_groups_the_worst_are_shown():
    """862 groups: two unfair ones stand on top, 812 are counted; the JSON holds all."""
    fair = log("ab")
    unfair = bf.History(["a"] * 4, [1, 0, 1, 1], arms=["a", "b"],
                        selection_probability=[[0.9, 0.1]] * 4)  # fmt: skip
    logs = {f"g{i}": unfair if i in (700, 701) else fair for i in range(862)}
    audit = bf.audit(logs, objective=False, eps1=0, eps2=0.1)
    text = str(audit)
    shown = first_column(text, "group")
    assert shown[:2] == ["g700", "g701"] and len(shown) == MOST_ROWS + 1
    assert "  ... 812 more, none of them worse; --json has all" in text
    assert len(audit.to_dict()["groups"]) == 862
    assert len(text.splitlines()) < 200
