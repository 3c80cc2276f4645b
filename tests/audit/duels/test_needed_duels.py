"""Whenever shares leave a question open, the report says about how many duels would decide it."""

import json

import numpy as np
import pytest
from command_line import run
from duel_logs import arena

import bayesfair as bf

WORTH = np.array([4.0, 3.0, 2.0, 1.0])


def open_log(n=1500, seed=1):
    return arena(np.random.default_rng(seed), n, np.full(4, 0.25), WORTH)


def written(path, log, **more):
    lines = [",".join(["left", "right", "winner", *more])]
    for t, c in enumerate(log.cell):
        won = "left" if log.outcome[c] == 0 else "right"
        given = [f"{values[t]:.12g}" for values in more.values()]
        lines.append(",".join([log.items[log.left[c]], log.items[log.right[c]], won, *given]))
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.mark.parametrize("logged", ["windows", "chosen"])
def test_text_and_json_of_python_and_command_line_say_how_many_duels(tmp_path, capsys, logged):
    log = open_log()
    options = {"propensity": np.full(1500, 0.25)} if logged == "chosen" else {}
    audit = bf.audit_comparisons(log, seed=0, **options)
    numbers = audit.to_dict()
    path = written(tmp_path / "log.csv", log, **options)
    text = run(capsys, "audit-comparisons", path).out
    from_file = json.loads(run(capsys, "audit-comparisons", path, "--json", "-").out)
    assert numbers["log"]["selection"] == from_file["log"]["selection"] == logged
    for name in ("subjective", "objective"):
        part = numbers[name]
        assert part["verdict"] == "undetermined"
        needed = part["n_duels_for_decision"]
        # more than it has, and of the order that the size of the limits says: 2 z sqrt(p q / n)
        # of a window's share within eps2, for 20 windows of four items
        assert 1500 < needed < 1e6
        assert from_file[name]["n_duels_for_decision"] == needed
        shown = str(round(needed, -(len(str(needed)) - 2)))
        for report in (str(audit), text):
            assert f"about {shown} such duels would decide" in " ".join(report.split())


def test_nothing_is_said_where_a_question_is_decided():
    audit = bf.audit_comparisons(open_log(), eps2=0.9, seed=0)
    assert audit.verdict == "fair"
    assert {
        audit.to_dict()[name]["n_duels_for_decision"] for name in ("subjective", "objective")
    } == {None}
    assert "would decide" not in str(audit)


def test_where_no_number_of_duels_decides_the_reason_is_given():
    # ten duels a window: its limits never come within eps2, however many windows there are
    audit = bf.audit_comparisons(open_log(400), window=10, seed=0)
    numbers = audit.to_dict()
    assert numbers["subjective"]["verdict"] == "undetermined"
    assert numbers["subjective"]["n_duels_for_decision"] is None
    found = {f["column"]: f["text"] for f in numbers["findings"] if f["kind"] == "no_size"}
    assert "windows are too short" in found["subjective"]
    assert "how many such duels would decide is not known" in " ".join(str(audit).split())
