"""What a log shows that may have been written otherwise than it was."""

from itertools import pairwise

import numpy as np
import pytest

import bayesfair as bf
from bayesfair.audit.log.doubts import Doubts
from bayesfair.history.zero_runs import ZeroRuns

N = 60


def log_of(zero=slice(0), **more):
    """60 rounds of three arms that are drawn evenly; ``c`` has probability 0 in some of them."""
    pi = np.full((N, 3), 1 / 3)
    pi[zero] = 0.5, 0.5, 0
    arm, reward = np.arange(N) % 2, (np.arange(N) // 2) % 2
    return bf.History(arm, reward, selection_probability=pi, arms=["a", "b", "c"], **more)


def doubts(found):
    kinds = ("zero_before", "zero_from", "context_after_choice")
    notes = found.to_dict()["findings"]
    return [(n["kind"], n["value"], n["n"]) for n in notes if n["kind"] in kinds]


def audited(log, **more):
    return bf.audit(log, seed=1, draws=100, **more)


@pytest.mark.parametrize(
    ("zero", "found"),
    [(slice(0, 20), [("zero_before", "c", 20)]), (slice(45, N), [("zero_from", "c", 15)]),
     (slice(20, 40), []), (slice(0, 5), []), (slice(0), [])],
)  # fmt: skip
def test_an_arm_with_probability_0_up_to_a_round_is_told_of(zero, found):
    log = log_of(zero)
    assert doubts(audited(log)) == found
    first = audited(log.rounds(0, 10))
    rest = doubts(audited(log.rounds(10, N), prior=first))
    assert rest == [(k, v, n - 10 if k == "zero_before" else n) for k, v, n in found]


def test_scans_groups_and_files_tell_of_it(tmp_path):
    frame = log_of(slice(0, 20)).to_dataframe()
    frame["g"] = ["x"] * 40 + ["y"] * 20
    path = tmp_path / "log.csv"
    frame.to_csv(path, index=False)
    expected = [("zero_before", "c", 20)]
    assert doubts(audited(bf.read_history(path))) == expected
    assert doubts(audited(bf.scan_history(path, chunk_rounds=7))) == expected
    groups = audited(bf.read_history(path, by="g"))
    assert list(groups) == ["x", "y"] and "x" in groups
    assert doubts(groups["x"]) == expected and not doubts(groups["y"])
    assert {k["kind"]: k["groups"] for k in groups.to_dict()["notices_by_kind"]}["zero_before"] == [
        "x"
    ]


def test_runs_of_zeros_merge_whatever_the_parts():
    rng = np.random.default_rng(1)
    pi = np.where(rng.random((40, 6)) < 0.5, 0.0, 0.4)
    pi[:15, 1], pi[15:, 1], pi[30:, 2], pi[:30, 2] = 0, 0.4, 0, 0.4
    pi[:, 3], pi[::3, 4] = 0, np.nan
    whole = ZeroRuns.of(pi)
    for cut in range(1, 40):
        both = ZeroRuns.of(pi[:cut]).merged(ZeroRuns.of(pi[cut:], cut))
        for name in ("n", "begin", "end", "first", "last", "broken", "start", "stop"):
            np.testing.assert_array_equal(getattr(both, name), getattr(whole, name), err_msg=name)
        assert (both.lead == whole.lead)[~np.isnan(whole.first)].all()
    assert (whole.lead[1], whole.trail[2]) == (15, 10) and not whole.broken[1:3].any()


ARM, REWARD = np.arange(N) % 2, (np.arange(N) // 2) % 2


@pytest.mark.parametrize(
    ("context", "found"),
    [(np.where(ARM, "p", "q"), ["arm"]), (np.where(REWARD, "p", "q"), ["reward"]),
     (ARM * 2 + REWARD, ["arm", "reward"]), (np.arange(N), []), (np.arange(N) % 5, [])],
)  # fmt: skip
@pytest.mark.parametrize("parts", [1, 3])
def test_a_context_that_tells_the_outcome_is_told_of(context, found, parts):
    log = log_of(context=context)
    seen = None
    for a, b in pairwise(np.linspace(0, N, parts + 1).astype(int).tolist()):
        seen = Doubts.of(log.rounds(a, b), a, seen)
    said = [n for n in seen.notices(log.arms) if n.kind == "context_after_choice"]
    assert [(n.column, n.value, n.n) for n in said] == [("context", what, N) for what in found]


def test_a_rule_that_its_probabilities_tell_is_no_outcome():
    """With chances of 1 given the context, that it tells the arm is what the log says."""
    pi = np.eye(2)[ARM]
    log = bf.History(ARM, REWARD, selection_probability=pi, arms=["a", "b"], context=ARM)
    assert not Doubts.of(log, 0).notices(log.arms)
    bare = bf.History(ARM, REWARD, arms=["a", "b"], context=ARM)
    assert [n.value for n in Doubts.of(bare, 0).notices(bare.arms)] == ["arm"]


def test_the_notice_of_a_context_stands_in_the_audit():
    log = log_of(context=REWARD)
    assert doubts(audited(log)) == [("context_after_choice", "reward", N)]
    late = log_of(context=REWARD).rounds(0, 4)  # too few to tell
    assert not doubts(audited(late))
