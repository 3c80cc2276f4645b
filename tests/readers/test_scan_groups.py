"""A scan by groups gives what reading the whole by groups gives, one pass for each group."""

from __future__ import annotations

import csv

import numpy as np
import pytest

import bayesfair as bf
from bayesfair.errors import ArmError, DataError, OptionError
from bayesfair.readers import read_history, scan_history

ARMS = ["a", "b", "c"]


def _log(path, rng, *, kind="full", n=240):
    """Write an interleaved log of groups 10, 2 and 1 with delays, gaps and varying offers."""
    header = {"full": [f"p_{a}" for a in ARMS] + ["p_ghost"], "chosen": ["propensity"], "none": []}
    seen: dict[str, int] = {}
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["slot", "timestamp", "arm", "reward", "known_at", *header[kind]])
        for t in range(n):
            slot = ("10", "2", "1")[rng.integers(3)]
            own = seen[slot] = seen.get(slot, -1) + 1
            on = np.flatnonzero(rng.random(3) < 0.8)
            on = on if on.size else np.array([1])
            p = np.full(3, np.nan)
            p[on] = rng.dirichlet(np.ones(len(on)))
            arm = int(rng.choice(on, p=p[on]))
            reward = "" if rng.random() < 0.15 else int(rng.random() < 0.4)
            # in order within a slot only
            row = [slot, 1000 * len(slot) + t // 2, ARMS[arm], reward, own + 1 + rng.integers(5)]
            if kind == "full":
                row += ["" if np.isnan(x) else repr(float(x)) for x in p] + [""]
            elif kind == "chosen":
                row.append(repr(float(p[arm])))
            writer.writerow(row)


@pytest.mark.parametrize("kind", ["full", "chosen", "none"])
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_scan_by_groups_is_the_whole_by_groups(tmp_path, kind, size):
    path = tmp_path / "log.csv"
    _log(path, np.random.default_rng(3), kind=kind)
    options = {"by": "slot", "missing": "unobserved", "prior": {"2": {"a": (3, 1)}}}
    whole = read_history(path, **options)
    scans = scan_history(path, chunk_rounds=size, **options)
    assert list(scans) == list(whole) == ["1", "2", "10"]
    for label, log in whole.items():
        scan = scans[label]
        parts = list(scan.chunks())
        assert (scan.n_rounds, scan.source) == (log.n_rounds, f"log.csv, slot={label}")
        for name in ("arm", "reward", "row", "time", "selection_probability", "propensity"):
            expected = getattr(log, name)
            if expected is not None:
                found = np.concatenate([getattr(part, name) for part in parts])
                np.testing.assert_array_equal(found, expected)
        told = {n for n in parts[-1].notices if "first pass" not in n and "seen in" not in n}
        assert told == {n for n in log.notices if "seen in" not in n}
    one = bf.audit(whole, seed=1).to_dict()
    many = bf.audit(scans, seed=1).to_dict()
    assert many["runs"] == one["runs"] and many["verdict"] == one["verdict"]
    for label, expected in one["groups"].items():
        found = many["groups"][label]
        for part in ("subjective", "calibration", "arms", "frontier"):
            left, right = _flat(found[part]), _flat(expected[part])
            numbers = {k for k, v in right.items() if isinstance(v, float)}
            assert {k: left[k] for k in numbers} == pytest.approx(
                {k: right[k] for k in numbers}, rel=1e-12, abs=1e-12
            )
            assert {k: v for k, v in left.items() if k not in numbers} == {
                k: v for k, v in right.items() if k not in numbers
            }


def _flat(value, name=""):
    """Return numbers by their path; other values stay as they are."""
    if isinstance(value, dict):
        pairs = [(f"{name}.{k}", v) for k, v in value.items()]
    elif isinstance(value, list):
        pairs = [(f"{name}.{i}", v) for i, v in enumerate(value)]
    else:
        return {name: value}
    return {k: v for path, part in pairs for k, v in _flat(part, path).items()}


def test_only_rows_of_the_group_have_to_be_in_order(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(
        "timestamp,arm,reward,slot\n5,a,1,x\n1,b,0,y\n6,a,1,x\n2,b,0,y\n4,a,1,x\n3,b,0,y\n"
    )
    scans = scan_history(path, by="slot", chunk_rounds=2)
    assert [p.row.tolist() for p in scans["y"].chunks()] == [[3], [5], [7]]
    with pytest.raises(DataError, match=r"row 6 of log.csv, column 'timestamp': 4 comes after 6"):
        list(scans["x"].chunks())


def test_what_a_scan_by_groups_refuses(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("arm,reward,slot,n\na,1,x,0\nb,0,,0\n")
    with pytest.raises(DataError, match=r"row 3 of log.csv, column 'slot': the group is empty"):
        scan_history(path, by="slot")
    path.write_text("arm,reward,slot,n\na,1,x,0\nb,0, x,0\nc,1,y,1\n")
    with pytest.raises(OptionError, match="read_history"):
        scan_history(path, by="slot", arms="by_group")
    with pytest.raises(OptionError, match=r"known_until='n'.*known_at=.*read_history"):
        scan_history(path, known_until="n")
    with pytest.raises(OptionError, match="mapping of group to prior"):
        scan_history(path, by="slot", prior=[[1, 1]] * 3)
    with pytest.raises(OptionError, match="prior names group 'z', which column 'slot'"):
        scan_history(path, by="slot", prior={"z": {"a": (1, 1)}})
    for reader in (read_history, scan_history):
        with pytest.raises(ArmError, match="prior names 'x' more than once, as 'x' and as 'x ',"):
            reader(path, by="slot", prior={"x": {}, "x ": {}})
    with pytest.raises(ArmError, match=r"row 4 of log.csv, column 'arm': arm 'c'"):
        list(scan_history(path, by="slot", arms=["a", "b"])["y"].chunks())
    merged = [n for n in scan_history(path, by="slot")["x"].notices if "spellings" in n]
    assert merged and "' x', 'x' read as 'x'" in merged[0]


@pytest.mark.parametrize("columns", ["arm,reward,known_at", "arm,reward,known_at,p_a"])
def test_known_at_beyond_the_end_means_never_in_a_scan_as_well(tmp_path, columns):
    """The end of the log is what counts, not the end of the part."""
    path = tmp_path / "log.csv"
    n = 1_200_000  # ten times the first part and a million lie before it
    tail = ",1" if columns.endswith("p_a") else ""
    path.write_text(f"{columns}\n" + f"a,1,{n}{tail}\n" * n)
    parts = scan_history(path, chunk_rounds=10_000).chunks()
    assert next(parts).known_at[0] == n
    parts.close()
    path.write_text(f"{columns}\n" + f"a,1,9{tail}\n" * 3 + f"a,1,1704448800{tail}\n" * 3)
    for log in (read_history, lambda p: list(scan_history(p, chunk_rounds=2).chunks())):
        with pytest.raises(DataError, match=r"row 5 of log.csv, column 'known_at': 1704448800"):
            log(path)
