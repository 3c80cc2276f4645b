"""A user's rule whose probabilities stand in columns of the log."""

import json

import command_line
import numpy as np
import pandas as pd
import pytest

import bayesfair as bf
from bayesfair.errors import ArmError, BayesfairError, DataError, OptionError
from bayesfair.readers import read_rule
from bayesfair.value import policy_value

N = 40


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(1)
    p, q = rng.dirichlet(np.ones(3), (2, N))
    q[:5] = [1, 0, 0]  # a rule may never choose what was chosen
    arm = np.array([rng.choice(3, p=row) for row in p])
    found = pd.DataFrame({
        "arm": np.array(list("abc"))[arm], "reward": rng.integers(0, 2, N),
        "timestamp": rng.permutation(N), "site": np.array(["x", "y"])[np.arange(N) % 2],
        "keep": rng.choice([0.5, 1.0], N),
    })  # fmt: skip
    for name, rows in (("p", p), ("q", q)):
        found = found.assign(**{f"{name}_{label}": rows[:, i] for i, label in enumerate("abc")})
    return found.assign(weight=(q / p)[np.arange(N), arm])


@pytest.fixture
def file(table, tmp_path):
    table.drop(columns="weight").to_csv(tmp_path / "log.csv", index=False)
    return tmp_path / "log.csv"


def of_cli(capsys, file, *argv):
    status, out, err = command_line.run(
        capsys, "audit", str(file), "--no-objective", "--json", "-", *argv
    )
    assert status == 0, err
    return json.loads(out)


def ips_of(value):
    return next(one for one in value["rules"] if one["rule"] != "logged")["ips"]["value"]


def test_the_value_is_the_mean_of_weighted_rewards_in_any_order_and_group(table, file, capsys):
    found = of_cli(capsys, file, "--value-rule", "q_{arm}")
    assert found["verdict"] and [one["rule"] for one in found["value"]["rules"]][1] == "q_{arm}"
    assert ips_of(found["value"]) == pytest.approx((table.weight * table.reward).mean(), abs=1e-12)
    groups = of_cli(capsys, file, "--value-rule", "q_{arm}", "--by", "site")["value"]["groups"]
    for site, rows in table.groupby("site"):
        assert ips_of(groups[site]) == pytest.approx((rows.weight * rows.reward).mean(), abs=1e-12)


def test_a_thinned_log_has_values_and_no_audit(table, file, capsys):
    asked = ("--keep-prob", "keep", "--value-rule", "q_{arm}")
    found = of_cli(capsys, file, *asked)
    assert list(found) == ["value"]
    want = np.average(table.weight * table.reward, weights=1 / table.keep)
    assert ips_of(found["value"]) == pytest.approx(want, abs=1e-12)
    for more in (("--fail-on", "unfair"), ("--report", str(file.with_suffix(".html"))), ()):
        argv = (str(file), *asked, *more) if more else (str(file), *asked[:2])
        status, out, err = command_line.run(capsys, "audit", *argv)
        assert (status, out) == (2, "") and "thinned" in err


def test_records_within_records_and_rows_that_are_left_out(table, tmp_path):
    rows = [
        {"arm": row.arm, "reward": None if i % 7 == 0 else row.reward,
         "p": {x: row[f"p_{x}"] for x in "abc"}, "q": {x: row[f"q_{x}"] for x in "abc"}}
        for i, row in table.iterrows()
    ]  # fmt: skip
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, rows)))
    log = bf.read_history(tmp_path / "log.jsonl", probabilities="p.{arm}", missing="drop")
    rule = read_rule(tmp_path / "log.jsonl", "q.{arm}")
    kept = table[np.arange(N) % 7 > 0]
    found = policy_value(log, {"mine": rule})["mine"]
    assert found.ips.value == pytest.approx((kept.weight * kept.reward).mean(), abs=1e-12)


def test_what_is_no_rule_of_the_log_is_refused(table, file, capsys):
    log = bf.read_history(file)
    (file.parent / "other").mkdir()
    other = file.parent / "other" / "log.csv"  # of the same name
    for rows, kind, error in ((table.drop(columns="q_b"), "no_column", ArmError),
                              (table[:9], "not_the_same", DataError),
                              (table.assign(q_a=0.9), "row_sum", BayesfairError)):  # fmt: skip
        rows.to_csv(other, index=False)
        with pytest.raises(error) as refused:
            policy_value(log, {"mine": read_rule(other, "q_{arm}")})
        assert refused.value.kind == kind
    with pytest.raises(DataError) as elsewhere:  # its rows are counted from another number
        policy_value(log.rounds(0, 5), {"mine": read_rule(table, "q_{arm}")})
    assert elsewhere.value.kind == "not_the_same"
    for pattern, options, column in (("q", {}, "probabilities"), ("q_{arm}", {"by": "site"}, "by")):
        with pytest.raises(OptionError) as wrong:
            read_rule(file, pattern, **options)
        assert wrong.value.column == column
    saved = str(file.with_suffix(".nc"))
    assert command_line.run(capsys, "audit", str(file), "--no-objective", "--save", saved)[0] == 0
    for argv in (("z_{arm}",), ("q_{arm}", "--round", "timestamp"), ("q_{arm}", "--resume", saved)):
        status, _, err = command_line.run(capsys, "audit", str(file), "--value-rule", *argv)
        assert status == 2 and "--value-rule" in err


def test_values_stay_in_saved_audits(table, file, tmp_path, capsys):
    for by in ((), ("--by", "site")):
        saved = tmp_path / f"{len(by)}.nc"
        argv = ("--value", "uniform", "--value-rule", "q_{arm}", "--no-objective")
        status, _, _ = command_line.run(
            capsys, "audit", str(file), *argv, *by, "--save", str(saved), "--json", f"{saved}.json"
        )
        found = json.loads((tmp_path / f"{saved}.json").read_text())["value"]
        audit = bf.load_audit(saved)
        assert status == 0
        if by:
            assert {label: audit[label].to_dict()["value"] for label in "xy"} == found["groups"]
            continue
        assert audit.to_dict()["value"] == found and "q_{arm}" in str(audit)
        more = bf.read_history(table.assign(timestamp=table.timestamp + N))
        kinds = [n["kind"] for n in audit.resume(more).to_dict()["findings"]]
        assert "value_left_out" in kinds
