"""Files of duels: their order, and files of PrefLib that hold no rankings."""

import pytest
from command_line import run

import bayesfair as bf

NEWEST_FIRST = "created_at,left,right,winner\n" + "".join(
    f"2026-03-{20 - t:02d},{left},{right},left\n"
    for t, (left, right) in enumerate([("a", "b"), ("b", "c"), ("c", "a"), ("a", "c")])
)


def read(tmp_path, text, **options):
    (tmp_path / "duels.csv").write_text(text)
    return bf.read_duels(tmp_path / "duels.csv", **options)


def test_duels_that_run_backwards_are_refused_where_their_order_matters(tmp_path):
    with pytest.raises(bf.DataError, match="created_at") as error:
        read(tmp_path, NEWEST_FIRST)
    assert error.value.kind == "order" and "order='created_at'" in str(error.value)
    path = tmp_path / "duels.csv"
    assert bf.read_comparisons(path).n_comparisons == 4  # a fit has no order
    as_told = read(tmp_path, NEWEST_FIRST, order=False)
    # the first row of the file is the last duel: a on the left of c
    put_right = read(tmp_path, NEWEST_FIRST, order="created_at")
    items = as_told.items
    for duels, first in ((as_told, ("a", "b")), (put_right, ("a", "c"))):
        assert {items[duels.left[0]], items[duels.right[0]]} == set(first)


def test_duels_whose_order_is_not_certain_say_so(tmp_path):
    mixed = NEWEST_FIRST.replace("2026-03-18", "2026-03-25")
    rising = "\n".join([mixed.splitlines()[0], *sorted(mixed.splitlines()[1:])]) + "\n"
    assert [n.kind for n in read(tmp_path, rising).comparisons.notices] == ["unused_columns"]
    found = read(tmp_path, mixed).comparisons.notices[:-1]
    assert [notice.kind for notice in found] == ["order"] and "created_at" in found[0]


def test_the_command_says_how_to_take_the_rows_as_they_stand(tmp_path, capsys):
    path = tmp_path / "duels.csv"
    path.write_text(NEWEST_FIRST)
    for more, status in (([], 2), (["--order", ""], 0), (["--order", "created_at"], 0)):
        out = run(capsys, "audit-comparisons", path, "--window", 4, *more)
        assert out.status == status
        if status:
            assert "--order created_at" in out.err and "--order ''" in out.err


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.cat", "# FILE NAME: a.cat\n2: 1,{2,3}\n"),
        ("a.wmd", "# FILE NAME: a.wmd\n1,2,0.5\n"),
        ("a.dat", "# FILE NAME: a.dat\n1,2\n"),
    ],
)
@pytest.mark.parametrize("options", [{}, {"format": "preflib"}])
def test_other_data_of_preflib_are_refused_naming_what_is_read(name, text, options, tmp_path):
    (tmp_path / name).write_text(text)
    with pytest.raises(bf.DataError, match=r"\.soc, \.soi, \.toc, \.toi"):
        bf.read_comparisons(tmp_path / name, **options)


def test_a_table_may_be_called_dat(tmp_path):
    (tmp_path / "games.dat").write_text("left,right,winner\na,b,left\nb,a,left\n")
    assert bf.read_comparisons(tmp_path / "games.dat").n_comparisons == 2
