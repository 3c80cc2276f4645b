"""Winner and loser do not say who stood on the left: what asks for a side is refused by name."""

import numpy as np
import pandas as pd
import pytest

import bayesfair as bf

RNG = np.random.default_rng(5)
SHOWN = [RNG.permutation(list("abc"))[:2] for _ in range(60)]
WON = [bool(w) for w in RNG.random(60) < 0.5]
TABLE = pd.DataFrame(
    {
        "winner": [pair[0 if won else 1] for pair, won in zip(SHOWN, WON, strict=True)],
        "loser": [pair[1 if won else 0] for pair, won in zip(SHOWN, WON, strict=True)],
    }
)
SIDED = pd.DataFrame({"left": [a for a, _ in SHOWN], "right": [b for _, b in SHOWN],
                      "winner": TABLE["winner"]})  # fmt: skip


def kinds(found):
    return {notice.kind for notice in found.notices}


def audited(duels, **options):
    worth = {"a": 1, "b": 1, "c": 1}
    return bf.audit_comparisons(duels, worth=worth, seed=1, **options).to_dict()


def findings(numbers):
    return {found["kind"] for found in numbers["findings"]}


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("read", [bf.read_comparisons, bf.read_duels])
def test_a_side_is_not_first_where_there_are_no_sides(read, side):
    with pytest.raises(bf.OptionError) as error:
        read(TABLE, first=side)
    assert (error.value.kind, error.value.column) == ("no_sides", "first")
    assert read(SIDED, first=side).items == ("a", "b", "c")
    with pytest.raises(bf.OptionError):
        bf.Comparisons.from_duels(TABLE["winner"], TABLE["loser"], first=side)


def test_a_column_of_who_was_first_names_items_and_no_sides():
    home = [a for a, _ in SHOWN]
    named = bf.read_comparisons(TABLE.assign(home=home), first="home")
    sided = bf.read_comparisons(SIDED, first="left")
    for made in (named, sided):  # the same duels: the winner was at home equally often
        at_home = made.count[np.where(made.outcome == 0, 1, -1) * made.first > 0].sum()
        assert at_home == sum(WON)
    with pytest.raises(bf.DataError) as error:
        bf.read_comparisons(TABLE.assign(home=["neither", *["left"] * 59]), first="home")
    assert (error.value.kind, error.value.value) == ("no_sides", "left")


def test_duels_of_winner_and_loser_are_judged_by_who_took_part():
    log = bf.read_duels(TABLE)
    assert log.slot == "mean" and not log.comparisons.sides
    assert list(log.to_dataframe().columns) == ["winner", "loser"]
    both = [*TABLE["winner"], *TABLE["loser"]]
    for duels in (log, bf.read_duels(log.to_dataframe())):
        numbers = audited(duels)
        assert [item["selection_mean"] for item in numbers["items"]] == pytest.approx(
            [both.count(item) / 120 for item in "abc"]
        )
        assert "sides_unknown" in findings(numbers)
    assert "sides_unknown" not in findings(audited(log, slot="mean"))
    for given in ({"slot": "first"}, {"propensity": np.full(60, 0.5)}):
        with pytest.raises(bf.OptionError) as error:
            audited(log, **given)
        assert (error.value.kind, error.value.column) == ("no_sides", *given)
    with pytest.raises(bf.OptionError) as error:
        bf.read_duels(TABLE.assign(propensity=0.5))
    assert (error.value.kind, error.value.column) == ("no_sides", "propensity")


def test_left_and_right_of_which_one_always_won_may_be_winner_and_loser():
    for side, found in (("left", "left"), ("right", "right")):
        made = bf.read_comparisons(SIDED.assign(winner=side))
        [notice] = [n for n in made.notices if n.kind == "one_side_won"]
        assert (notice.value, notice.n) == (found, 60)
    assert "one_side_won" not in kinds(bf.read_comparisons(SIDED))
    assert "one_side_won" not in kinds(bf.read_comparisons(SIDED.head(9).assign(winner="left")))
    assert bf.read_comparisons(TABLE).notices == ()


def test_items_that_were_never_shown_have_no_chance_and_are_named():
    log = bf.read_duels(SIDED, items=list("abcde"))
    worth = dict.fromkeys("abcde", 1)
    numbers = bf.audit_comparisons(log, worth=worth, seed=1).to_dict()
    [notice] = [found for found in numbers["findings"] if found["kind"] == "never_shown"]
    assert (notice["value"], notice["n"]) == ("d", 2)
    for item in numbers["items"]:
        shown = item["item"] in "abc"
        for key in ("p_best_objective", "p_best_subjective", "selection_mean"):
            assert (item[key] is not None) == shown
    assert len(bf.plots.plot_selection(numbers).get_yticklabels()) == 5
    offered = np.ones((60, 5), bool)
    could = bf.audit_comparisons(log, worth=worth, offered=offered, seed=1).to_dict()
    assert "never_shown" not in findings(could)
    assert could["items"][4]["p_best_objective"] == pytest.approx(1 / 5)
    with pytest.raises(bf.ArmError) as error:
        bf.audit_comparisons(log, worth=worth | {"z": 1}, seed=1)
    assert (error.value.kind, error.value.value) == ("unknown_item", "z")
    assert "came_or_went" not in findings(audited(bf.read_duels(SIDED.head(1), items=list("abc"))))
