"""Groups that are read in parts have the family, the levels and the numbers of those read whole."""

from __future__ import annotations

import numpy as np
import pytest

import bayesfair as bf
from bayesfair.families.choose import enough_levels, family_of_levels
from bayesfair.families.logs import choose_family

RNG = np.random.default_rng(4)
REWARDS = {
    "normal": RNG.normal(300, 2, 60).round(4),
    "finite": np.repeat([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 10),  # the levels come one after another
    "poisson": np.arange(60.0) // 2,
    "bernoulli": np.arange(60) % 3 // 2,
}


def _log(path, rewards):
    rows = []
    for i, reward in enumerate(rewards):
        p = 0.2 + 0.01 * (i % 50)
        rows.append(f"{'ab'[i % 7 % 2]},{reward},g{i // 3},{p},{1 - p}\n")
    path.write_text("arm,reward,g,p_a,p_b\n" + "".join(rows))
    return path


def _numbers(value, name=""):
    """Return numbers by their path."""
    if isinstance(value, dict):
        pairs = [(f"{name}.{k}", v) for k, v in value.items()]
    elif isinstance(value, list):
        pairs = [(f"{name}.{i}", v) for i, v in enumerate(value)]
    else:
        return {} if isinstance(value, (str, bool)) or value is None else {name: value}
    return {k: v for path, part in pairs for k, v in _numbers(part, path).items()}


@pytest.mark.parametrize("size", [9, 1000])
@pytest.mark.parametrize("family", REWARDS)
def test_groups_of_a_scan_are_audited_as_groups_read_whole(tmp_path, family, size):
    path = _log(tmp_path / "log.csv", REWARDS[family])
    whole = bf.audit(bf.read_history(path, by="g"), objective=False)
    parts = bf.audit(bf.scan_history(path, by="g", chunk_rounds=size), objective=False)
    assert list(parts.audits) == list(whole.audits)
    for label, expected in whole.audits.items():
        found = parts[label]
        assert found.family == expected.family == family
        if family == "finite":
            assert found.state.beliefs.support.tolist() == [1, 2, 3, 4, 5, 6]
        assert found.prior == expected.prior
        left, right = found.to_dict(), expected.to_dict()
        for part in ("subjective", "calibration", "arms", "frontier"):
            assert _numbers(left[part]) == pytest.approx(
                _numbers(right[part]), rel=1e-12, abs=1e-12
            )


@pytest.mark.parametrize("family", ["auto", "finite"])
@pytest.mark.parametrize(
    ("missing", "levels"), [("drop", [1, 2, 3]), ("unobserved", [1, 2, 3]), (2.5, [1, 2, 2.5, 3])]
)
def test_only_rewards_that_count_make_levels(tmp_path, missing, levels, family):
    path = tmp_path / "log.csv"
    gone = ",9,x\n" if missing == "drop" else "a,1,x\n"  # a reward of no arm
    path.write_text("arm,reward,g\n" + gone + "a,1,x\nb,2,y\na,,y\nb,3,z\na,1,z\n")
    options = {"by": "g", "missing": missing}
    for logs in (
        bf.read_history(path, **options),
        bf.scan_history(path, chunk_rounds=2, **options),
    ):
        audits = bf.audit(logs, family=family, objective=False)
        assert [a.state.beliefs.support.tolist() for a in audits.audits.values()] == [levels] * 3


def test_groups_that_are_not_audited_have_no_say(tmp_path):
    path = _log(tmp_path / "log.csv", REWARDS["finite"])
    scans = bf.scan_history(path, by="g", chunk_rounds=9)
    some = {label: scans[label] for label in ("g0", "g4")}  # rows 0 to 2, and 12 to 14
    for audit in bf.audit(some, objective=False).audits.values():
        assert audit.state.beliefs.support.tolist() == [1, 2]


def test_different_values_beyond_memory_choose_the_family_of_all():
    for name, values in REWARDS.items():
        log = bf.History(np.zeros(60, dtype=np.int32), values)
        kept = np.empty(0)
        for value in np.asarray(values, dtype=float)[::-1]:
            kept = enough_levels(np.union1d(kept, [value]))
        assert kept.size <= 12
        assert family_of_levels(kept, 60)[0] == name
        assert choose_family(log)[0] == name


def test_a_stray_code_is_refused_in_groups_as_in_one_log(tmp_path):
    rewards = np.array(REWARDS["bernoulli"], dtype=float)
    rewards[40] = -99
    path = _log(tmp_path / "log.csv", rewards)
    logs = [bf.read_history(path, by="g"), bf.scan_history(path, by="g", chunk_rounds=9)]
    for log in logs:
        with pytest.raises(bf.DataError, match=r"row 42 .* is -99, but all rewards except 1 are"):
            bf.audit(log, objective=False)


def test_a_group_audit_goes_on_in_parts_with_its_family(tmp_path):
    path = _log(tmp_path / "log.csv", REWARDS["normal"])
    first = bf.audit(bf.scan_history(path, by="g", chunk_rounds=9), objective=False)
    low = _log(tmp_path / "next.csv", REWARDS["finite"])
    later = bf.audit(bf.scan_history(low, by="g", chunk_rounds=9), prior=first, objective=False)
    assert {a.family for a in later.audits.values()} == {"normal"}
