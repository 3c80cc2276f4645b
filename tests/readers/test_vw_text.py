"""Vowpal Wabbit's text of contextual bandits, one line or a line for each action."""

import gzip

import pytest

from bayesfair.errors import DataError
from bayesfair.readers import preview, read_history, scan_history

# the example of Vowpal Wabbit's documentation, with its tag and its other ways of writing
LINES = (
    "1:2:0.4 | a c\n3:0.5:0.2 | b d\n4:1.2:0.5 'tag | a b c\n2:-1:0.3 tag| b:2 c|n d\n"
    "3:0:1e-1 |s a |t d:1.5\n"
)
ARMS, REWARDS, CHANCES = [1, 3, 4, 2, 3], [-2, -0.5, -1.2, 1, 0], [0.4, 0.2, 0.5, 0.3, 0.1]
ADF = (
    "shared | s_1\n0:1.0:0.5 | a:1 b:1\n| a:0.5\n\n"
    "shared | s_2\n| a:1\n0:0.0:0.25 | a:0.5\n| c\n\n"
    "\nshared | s_3\n| x\n1:-2:0.75 't | y\n"
)


def _scan(source, **options):
    return next(scan_history(source, **options).chunks())


READERS = pytest.mark.parametrize("read", [read_history, _scan], ids=["read", "scan"])


@READERS
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_one_line_is_one_decision(tmp_path, read, ends):
    path = tmp_path / "log.vw"
    path.write_bytes(LINES.replace("\n", ends).encode())
    log = read(path)
    assert [int(log.arms[i]) for i in log.arm] == ARMS
    assert log.reward.tolist() == REWARDS and log.propensity.tolist() == CHANCES
    said = next(n for n in log.notices if n.kind == "cost_as_reward")
    assert said.n == 5 and "minus the cost" in said and "only the probability of the chosen" in said
    assert [n.column for n in log.notices if n.kind == "features_not_read"] == ["context"]
    bare = tmp_path / "bare.vw"
    bare.write_text("1:0.5:0.5 2 |\n2:0:0.25 1 |\n")
    assert "features_not_read" not in [n.kind for n in read(bare).notices]
    path.write_bytes(gzip.compress(path.read_bytes()))
    assert read(path, format="vw").reward.tolist() == REWARDS


@READERS
@pytest.mark.parametrize("shared", [True, False])
def test_a_decision_with_a_line_for_each_action(tmp_path, read, shared):
    lines = ADF.splitlines(keepends=True)
    text = ADF if shared else "".join(x for x in lines if not x.startswith("shared"))
    path = tmp_path / "log.txt"
    path.write_text(text)
    log = read(path)
    assert [log.arms[i] for i in log.arm] == ["1", "2", "2"]
    assert log.reward.tolist() == [-1, 0, 2] and log.propensity.tolist() == [0.5, 0.25, 0.75]
    log = read(path, offered="offered")
    assert log.arms == ("1", "2", "3")
    assert log.offered.tolist() == [[True, True, False], [True, True, True], [True, True, False]]
    assert preview(path).columns[-1].values == ("1|2", "1|2|3", "1|2")


@READERS
def test_other_actions_on_offer_may_stand_beside_the_chosen_one(tmp_path, read):
    path = tmp_path / "log.vw"
    path.write_text("1 2:0.5:0.25 3 | a\n1:0:0.5 3 | b\n")
    log = read(path, offered="offered")
    assert log.offered.tolist() == [[True, True, True], [True, False, True]]
    assert [log.arms[i] for i in log.arm] == ["2", "1"] and log.reward.tolist() == [-0.5, 0]


@READERS
def test_only_the_action_with_a_probability_was_played(tmp_path, read):
    """Costs of other actions are on no account of the log; those actions were on offer."""
    (tmp_path / "log.vw").write_text("1:1 2:2:1.0 3:3 | x\n1:0.5:0.25 2:0 3 | x\n")
    (tmp_path / "adf.vw").write_text("1:1 | a\n0:2:0.5 | b\n| c\n\n0:0.5:0.25 | a\n| b\n0:9 | c\n")
    for name, chances in (("log.vw", [1, 0.25]), ("adf.vw", [0.5, 0.25])):
        log = read(tmp_path / name, offered="offered")
        assert [log.arms[i] for i in log.arm] == ["2", "1"] and log.arms == ("1", "2", "3")
        assert log.reward.tolist() == [-2, -0.5] and log.propensity.tolist() == chances
        assert log.offered is None or log.offered.all()


@READERS
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("2:1 | a", "no action with cost"), ("'tag | a", "no action with cost"),
        ("2:1:0 | a", "no probability in"), ("2:1:1.5 | a", "no probability in"),
        ("2:x:0.5 | a", "cost that is no number"), ("2:1e400:0.5 | a", "cost that is no number"),
        ("2:nan:0.5 | a", "cost that is no number"),
        ("1:1:0.5 2:1:0.5 | a", "more than one action"), ("1:x 2:1:0.5 | a", "other words"),
        ("0:1:0.5 | a", "not counted from 1"), ("1 1:1:0.5 | a", "or twice"),
        ("2:1:0.5 a", "has no |"), ("2:1:0.5| a", "no action with cost"),
    ],
)  # fmt: skip
def test_lines_that_are_no_decision_are_refused(tmp_path, read, line, said):
    path = tmp_path / "log.vw"
    path.write_text("\n1:2:0.4 | a c\n" + line + "\n")
    with pytest.raises(DataError) as caught:
        read(path, format="vw")
    assert caught.value.row == 2 and said in str(caught.value), caught.value
    assert "row 2 of log.vw [line 3]" in str(caught.value)


@READERS
@pytest.mark.parametrize(
    ("block", "said"),
    [
        ("shared | s\n| a\n| b\n", "has 0 actions with cost and probability among its 2 lines"),
        ("shared | s\n0:1:.5 | a\n0:1:.5 | b\n", "has 2 actions with cost and probability"),
        ("shared | s\n0:1:.5 | a\nshared | b\n", "no line of an action"),
        ("0:1:0 | a\n| b\n", "no probability in"),
    ],
)
def test_blocks_that_are_no_decision_are_refused(tmp_path, read, block, said):
    path = tmp_path / "log.vw"
    path.write_text("shared | s\n0:1:.5 | a\n| b\n\n" + block)
    with pytest.raises(DataError) as caught:
        read(path)
    assert caught.value.row == 2 and said in str(caught.value), caught.value


def test_a_table_whose_bars_look_alike_stays_a_table(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("shared | arm | reward\n1 | a | 1\n2 | b | 0\n")
    assert read_history(path).reward.tolist() == [1, 0]


@pytest.mark.parametrize("text", ["ccb shared |a\nccb action |a\n", "ca 1.2:-1:0.7 |a\n",
                                  "slates shared 0.5 |a\n"])  # fmt: skip
def test_slots_and_continuous_actions_are_named(tmp_path, text):
    (tmp_path / "log.txt").write_text(text)
    with pytest.raises(DataError) as caught:
        read_history(tmp_path / "log.txt")
    assert caught.value.kind == "several_slots"
