"""Regret of who is compared from the left item's probabilities alone, against enumeration."""

import functools
import json
import math

import command_line
import numpy as np
import pytest

from bayesfair.audit.duels.api import audit_comparisons
from bayesfair.comparisons import Comparisons
from bayesfair.errors import DataError, OptionError, ProbabilityError

ITEMS = ("a", "b", "c")
WORTH = np.array([0.2, 0.3, 0.5])


def duels(left, outcome="left"):
    right = [ITEMS[(ITEMS.index(item) + 1) % 3] for item in left]
    return Comparisons.from_duels(left, right, [outcome] * len(left), items=ITEMS, keep_rows=True)


def objective(audit):
    return audit.to_dict()["calibration"]["objective"]


def test_one_duel_of_each_kind_gives_the_total_variation():
    # shares equal to the law: the mean over rounds is the expectation, TV(P*, pi) = .3
    law = {"a": 0.5, "b": 0.3, "c": 0.2}
    left = list("aaaaabbbcc") * 20
    found = audit_comparisons(duels(left), propensity=[law[i] for i in left], worth=WORTH, seed=1)
    part = objective(found)
    assert part["regret_per_round"] == pytest.approx(0.3, abs=1e-12)
    # terms: 1 - .2/.5 = .6 in half of the rounds, else 0; their sd is .3
    half = 1.959963984540054 * 0.3 / math.sqrt(199)
    assert part["lower"] == pytest.approx(0.3 - half, abs=1e-9)
    assert part["upper"] == pytest.approx(0.3 + half, abs=1e-9)
    assert not part["exact"]
    assert found.to_dict()["log"]["selection"] == "chosen"
    assert "only the left item's probability" in str(found)


def test_unbiased_when_the_law_changes_every_round():
    # over all 27 sequences of three rounds, weighted by their probability
    rng = np.random.default_rng(3)
    laws = rng.dirichlet([0.7, 0.7, 0.7], size=3)
    truth = np.maximum(WORTH - laws, 0).sum() / 3
    expected = 0.0
    for index in np.ndindex(3, 3, 3):
        p = laws[np.arange(3), index]
        log = duels([ITEMS[i] for i in index])
        offered = np.ones((3, 3), bool)
        # beliefs and windows are not what is tested here: one window
        found = audit_comparisons(log, propensity=p, worth=WORTH, offered=offered, window=3, seed=1)
        expected += p.prod() * objective(found)["regret_per_round"]
    assert expected == pytest.approx(truth, abs=1e-12)


def test_draws_of_the_worths_against_loops():
    rng = np.random.default_rng(4)
    left = rng.choice(ITEMS, 120).tolist()
    propensity = rng.uniform(0.05, 1.0, 120)
    from bayesfair.inference import fit

    log = duels(left)
    tree = fit(log, seed=2, draws=800)
    worths = tree["posterior"]["worth"].values.reshape(-1, 3)
    found = audit_comparisons(log, propensity=propensity, fit=tree, seed=1)
    index = [ITEMS.index(i) for i in left]
    means = [
        np.mean([max(1 - w[i] / p, 0) for i, p in zip(index, propensity, strict=True)])
        for w in worths
    ]
    assert objective(found)["regret_per_round"] == pytest.approx(np.mean(means), rel=1e-10)


def test_items_that_came_later_are_no_shortfall_before():
    # c arrives in round 60 of 120; before, a and b are chosen as their worths among the two say
    left = ["a", "a", "b", "b", "b"] * 12 + list("aabbbccccc") * 6
    law = [{"a": 0.4, "b": 0.6}[i] for i in left[:60]]
    law += [dict(zip(ITEMS, WORTH, strict=True))[i] for i in left[60:]]
    offered = np.ones((120, 3), bool)
    offered[:60, 2] = False
    right = ["b" if i == "a" else "a" for i in left]
    log = Comparisons.from_duels(left, right, ["left"] * 120, items=ITEMS, keep_rows=True)
    for said in (None, offered):
        found = audit_comparisons(log, propensity=law, worth=WORTH, offered=said, seed=1)
        # without offered= c counts from its first duel, in round 65
        assert objective(found)["regret_per_round"] == pytest.approx(
            0, abs=1e-12 if said is not None else 0.03
        )
    offered[:] = [True, True, False]
    with pytest.raises(DataError, match="round 65: 'c' was compared, but offered="):
        audit_comparisons(log, propensity=law, worth=WORTH, offered=offered, seed=1)


def test_probabilities_of_pairs_are_noticed():
    law = {"a": 0.5, "b": 0.3, "c": 0.2}
    left = list("aaaaabbbcc") * 40
    pairs = [law[i] / 8 for i in left]  # of the pair, not of the left item
    found = audit_comparisons(duels(left), propensity=pairs, worth=WORTH, seed=1)
    assert any("not of the pair" in note for note in found.to_dict()["notices"])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"propensity": [0.5] * 3}, DataError, "expected one value for each of 30"),
        ({"propensity": [0.5] * 29 + [0]}, ProbabilityError, r"round 29: .* is 0 \(1 such"),
        ({"propensity": [np.nan] * 30}, ProbabilityError, "round 0: .* is nan"),
        ({"propensity": [25] * 30}, ProbabilityError, "round 0: .* is 25"),
        ({"propensity": [0.5] * 30, "slot": "mean"}, OptionError, "nothing of the other"),
        ({"propensity": [0.5] * 30, "selection_probability": [0.4, 0.3, 0.3]}, OptionError,
         "leave propensity= out"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(options, error, message):
    with pytest.raises(error, match=message):
        audit_comparisons(duels(list("abc") * 10), worth=WORTH, seed=1, **options)


# -- the command ----------------------------------------------------------------------------------


def logged(tmp_path, header, rows, name="log.csv"):
    path = tmp_path / name
    path.write_text("\n".join([header, *rows]) + "\n")
    return str(path)


@pytest.fixture
def run(capsys):
    """Run ``bayesfair audit-comparisons``."""
    return functools.partial(command_line.run, capsys, "audit-comparisons")


def test_command_reads_the_left_items_probability(run, tmp_path):
    law = {"a": 0.5, "b": 0.3, "c": 0.2}
    left = list("aaaaabbbcc") * 20
    # written backwards: sorted by the stamp
    rows = [f"{i},{ITEMS[(ITEMS.index(i) + 1) % 3]},left,{law[i]},{900 - t}"
            for t, i in enumerate(left)]  # fmt: skip
    path = logged(tmp_path, "left,right,winner,propensity,timestamp", rows)
    found = run(path, "--json", "-")
    assert found.status == 0, found.err
    numbers = json.loads(found.out)
    assert numbers["log"]["selection"] == "chosen"
    backwards = audit_comparisons(
        duels(left[::-1]), propensity=[law[i] for i in left[::-1]], seed=0
    ).to_dict()
    assert numbers["calibration"] == backwards["calibration"]
    plain = run(path, "--propensity", "")
    assert "shares in" in plain.out and "Verdict" in plain.out


def test_a_missing_stamp_is_refused_unless_the_order_is_that_of_the_file(run, tmp_path):
    rows = [f"{i},{ITEMS[(ITEMS.index(i) + 1) % 3]},left,{t or ''}"
            for t, i in enumerate("aabbcc" * 20)]  # fmt: skip
    path = logged(tmp_path, "left,right,winner,timestamp", rows)
    assert "--order ''" in run(path).err
    assert run(path, "--order", "").status == 0


def test_command_reads_the_law_of_the_slot(run, tmp_path):
    rows = [f"{i},{j},left,.5,.3,.2" for i, j in zip("aabc" * 10, "bcaa" * 10, strict=True)]
    path = logged(tmp_path, "left,right,winner,p_a,p_b,p_c", rows)
    numbers = json.loads(run(path, "--json", "-").out)
    assert numbers["log"]["selection"] == "full"
    assert [item["selection_mean"] for item in numbers["items"]] == pytest.approx([0.5, 0.3, 0.2])
    named = logged(tmp_path, "left,right,winner,a,b,c", rows, "named.csv")
    again = json.loads(run(named, "--probabilities", "{item}", "--json", "-").out)
    assert again["objective"] == numbers["objective"]


def test_command_fails_on_request_and_names_what_is_wrong(run, tmp_path):
    rows = [f"{i},{j},left,.9,.05,.05" for i, j in zip("aabc" * 10, "bcaa" * 10, strict=True)]
    (tmp_path / "ballots.soc").write_text("1: 1,2\n")
    path = logged(tmp_path, "left,right,winner,p_a,p_b,p_c", rows)
    assert run(path, "--fail-on", "unfair").status == 1
    assert run(path).status == 0
    for args, words in (
        ([logged(tmp_path, "left,right,winner,p_a", ["a,b,left,1"], "x.csv")],
         "no column 'p_b'"),
        ([path, "--propensity", "q"], "no column 'q'"),
        ([str(tmp_path / "ballots.soc")], "holds rankings"),
        ([str(tmp_path / "none.soc")], "no such file"),
        ([path, "--fail-on", "maybe"], "--fail-on"),
    ):  # fmt: skip
        assert words in run(*args).err


def test_command_judges_as_asked_and_says_both_verdicts(run, tmp_path):
    # equal chances to begin with, then four of five for a, which loses half of its duels
    law = ["1/3"] * 60 + ["skew"] * 60
    value = {"1/3": (1 / 3, 1 / 3, 1 / 3), "skew": (0.8, 0.1, 0.1)}
    rows = [
        f"{ITEMS[t % 3] if p == '1/3' else 'abcaaaaaaa'[t % 10]},"
        f"{ITEMS[(t + 1) % 3] if p == '1/3' else 'bcabcbcbcb'[t % 10]},"
        f"{'left' if t % 4 < 2 else 'right'},{','.join(f'{x:.12f}' for x in value[p])}"
        for t, p in enumerate(law)
    ]
    path = logged(tmp_path, "left,right,winner,p_a,p_b,p_c", rows)
    found = run(path, "--fail-on", "unfair")
    assert found.status == 1
    assert "verdict unfair, fairness regret" in found.err
    assert "under the beliefs of each round unfair, under the true worths unfair" in found.err
    numbers = json.loads(run(path, "--json", "-", "--judge", "objective").out)
    assert numbers["criterion"]["judge"] == "objective"
    assert numbers["subjective"]["first_violating_round"] == 60
    assert numbers["objective"]["first_violating_round"] == {"mean": 60, "lower": 60, "upper": 60}
    numbers = json.loads(run(path, "--json", "-", "--from-round", "70").out)
    assert numbers["criterion"]["from_round"] == 70
    assert numbers["subjective"]["first_violating_round"] == 70
    assert numbers["log"]["n_judged"] == 50


def test_command_ends_on_logs_that_contradict_themselves(run, tmp_path):
    rows = [f"{i},{j},left,.5,.3,.2" for i, j in zip("aaaa" * 50, "bcbc" * 50, strict=True)]
    path = logged(tmp_path, "left,right,winner,p_a,p_b,p_c", rows)
    found = run(path, "--fail-on", "inconsistent", "--judge", "objective")
    assert found.status == 1
    assert "the log contradicts itself (--fail-on inconsistent)" in found.err


@pytest.mark.parametrize("option", ["wins", "weight"])
def test_command_refuses_counts_and_weights_naming_what_it_takes(run, tmp_path, option):
    path = logged(tmp_path, "left,right,n,m", ["a,b,3,4"])
    error = run(path, f"--{option}", "n,m").error
    assert isinstance(error, OptionError)
    assert f"--{option} 'n,m'" in str(error)
    assert "--left, --right, --winner" in str(error)
    assert error.column == option
    # without them, counts are no duels in their order: nothing is recommended that is not there
    assert "wins" not in str(run(path).error)
