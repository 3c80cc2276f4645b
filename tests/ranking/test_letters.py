"""Letters of overlapping groups: two items share one if and only if they are not told apart."""

import itertools
import json
import re

import numpy as np
import pytest
from command_line import run

import bayesfair as bf
from bayesfair.ranking.letters import letters_of


def apart_of(k, *pairs):
    table = np.zeros((k, k), bool)
    for i, j in pairs:
        table[i, j] = table[j, i] = True
    return table


@pytest.mark.parametrize(
    ("apart", "letters"),
    [
        (apart_of(0), []),
        (apart_of(1), ["a"]),
        (apart_of(3), ["a", "a", "a"]),
        (~np.eye(3, dtype=bool), ["a", "b", "c"]),
        (apart_of(3, (0, 2)), ["a", "ab", "b"]),  # the classical overlap
        (apart_of(3, (0, 1), (0, 2)), ["a", "b", "b"]),
        (apart_of(4, (0, 2), (0, 3), (1, 3)), ["a", "ab", "bc", "c"]),  # a chain
        # the letters of a chain say more than its one tier
        (apart_of(5, (0, 3), (0, 4), (1, 4)), ["a", "ab", "abc", "bc", "c"]),
        # first and last alike, the middle apart from both: no interval of the order
        (apart_of(3, (0, 1), (1, 2)), ["a", "b", "a"]),
        # two islands whose items nothing compares, each with a pair told apart
        (apart_of(4, (0, 1), (2, 3)), ["ab", "cd", "ac", "bd"]),
    ],
)
def test_letters_of_cases_worked_by_hand(apart, letters):
    assert letters_of(apart) == letters


def letters_in(text):
    return set(re.findall(r"[a-zA-Z]\d*", text))


def test_items_share_a_letter_exactly_where_they_are_not_told_apart():
    rng = np.random.default_rng(3)
    for trial in range(300):
        k = int(rng.integers(1, 12))
        if trial % 2:  # any pattern
            apart = np.triu(rng.random((k, k)) < rng.random(), 1)
        else:  # intervals in order, as posteriors give
            end = np.sort(rng.normal(size=k))
            apart = np.triu(np.abs(end[:, None] - end) > rng.exponential(1.0), 1)
        apart = apart | apart.T
        letters = [letters_in(text) for text in letters_of(apart)]
        for i in range(k):
            for j in range(k):
                assert bool(letters[i] & letters[j]) == (i == j or not apart[i, j])
        # no letter is spare: each is the only one of some pair, or of some item
        for letter in set().union(*letters):
            holders = [i for i in range(k) if letter in letters[i]]
            assert any(letters[i] & letters[j] == {letter} for i in holders for j in holders)


def test_more_groups_than_letters_are_numbered():
    letters = letters_of(~np.eye(60, dtype=bool))
    assert letters[:2] + letters[51:54] == ["a", "b", "Z", "a2", "b2"]
    assert len(set(letters)) == 60


WINS = [[0, 12, 20, 20], [8, 0, 12, 20], [4, 8, 0, 12], [1, 1, 8, 0]]


def test_the_table_holds_the_letters_of_its_pairs_at_the_stated_level():
    items = ["w", "x", "y", "z", "unseen"]
    wins = np.zeros((5, 5))
    wins[:4, :4] = WINS
    tree = bf.fit(bf.Comparisons.from_win_matrix(wins, items), seed=1, draws=2000)
    better = bf.win_probability(tree)["p_better"]
    for level in (0.6, 0.95, 0.999):
        table = bf.rank_table(tree, tier_probability=level)
        letters = {str(i): letters_in(str(text)) for i, text in
                   zip(table["item"].values, table["letters"].values, strict=True)}  # fmt: skip
        assert letters.pop("unseen") == set()
        for (i, one), (j, other) in itertools.combinations(letters.items(), 2):
            p = float(better.sel(item=i, item_other=j))
            assert bool(one & other) == (max(p, 1 - p) < level)


def test_letters_stand_in_text_and_json_of_the_command(tmp_path, capsys):
    rows = [f"{'wxyz'[i]},{'wxyz'[j]},{WINS[i][j]}" for i in range(4) for j in range(4) if i != j]
    path = tmp_path / "duels.csv"
    path.write_text("winner,loser,n\n" + "\n".join(rows) + "\n")
    args = ["fit", str(path), "--winner", "winner", "--loser", "loser", "--weight", "n"]
    text = run(capsys, *args).out
    numbers = json.loads(run(capsys, *args, "--json", "-").out)
    letters = {row["item"]: row["letters"] for row in numbers["items"]}
    assert numbers["tier_probability"] == 0.95 and len(set(letters.values())) > 1
    for item, held in letters.items():
        line = next(line for line in text.splitlines() if line.split()[:1] == [item])
        assert line.split()[3] == held
    assert "share a letter are not told apart" in " ".join(text.split())
    loose = json.loads(run(capsys, *args, "--json", "-", "--tier-probability", "0.999999").out)
    assert [row["letters"] for row in loose["items"]] != list(letters.values())
    assert loose["tier_probability"] == 0.999999
    assert run(capsys, *args, "--tier-probability", "0.4").status == 2
