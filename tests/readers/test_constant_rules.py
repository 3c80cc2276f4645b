"""Rules that are assembled from the chosen arms' probabilities of spans of rounds."""

import json

import command_line
import numpy as np
import pandas as pd
import pytest

import bayesfair as bf
from bayesfair.errors import OptionError, ProbabilityError
from bayesfair.readers.log.preview import preview

RULES = {"x": [0.5, 0.3, 0.2], "y": [0.25, 0.25, 0.5]}


def log(n=60, rules=RULES, arms="abc"):
    """A log whose sites alternate in blocks, every arm chosen in each; the rule as it is known."""
    site = np.array(list(rules))[np.arange(n) // 3 % len(rules)]
    code = np.arange(n) % 3
    pi = np.array([rules[s] for s in site])
    frame = pd.DataFrame({
        "t": pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(n) * 20, "min"),
        "arm": np.array(list(arms))[code],
        "reward": np.arange(n) * 7 % 5 % 2,
        "propensity": pi[np.arange(n), code],
        "site": site,
    })  # fmt: skip
    return frame, pi


def test_the_rule_is_the_one_that_drew():
    frame, pi = log()
    read = bf.read_history(frame, order="t", constant_within="site")
    assert read.selection == "full" and read.arms == ("a", "b", "c") and read.propensity is None
    np.testing.assert_allclose(read.selection_probability, pi, rtol=0, atol=1e-15)
    (said,) = [n for n in read.notices if getattr(n, "kind", "") == "rule_assembled"]
    assert (said.n, said.column) == (2, "propensity")
    assert "site" not in read.unused_columns and "propensity" not in read.unused_columns
    whole = frame.drop(columns="propensity").assign(p_a=pi[:, 0], p_b=pi[:, 1], p_c=pi[:, 2])
    ours, theirs = (
        bf.audit(bf.read_history(data, order="t", **more), seed=1, draws=40).to_dict()
        for data, more in ((frame, {"constant_within": ["site"]}), (whole, {}))
    )
    for part in ("subjective", "calibration"):
        assert ours[part] == theirs[part]
    # before round 0 all arms are alike, so that half against a fifth needs their whole distance
    assert ours["subjective"]["smallest_eps2"] == pytest.approx(0.3, abs=1e-12)


def test_windows_of_the_clock():
    frame, pi = log()  # three rounds to the hour
    read = bf.read_history(frame, order="t", constant_within="1h")
    np.testing.assert_allclose(read.selection_probability, pi, rtol=0, atol=1e-15)
    assert [n.n for n in read.notices if getattr(n, "kind", "") == "rule_assembled"] == [20]
    for order, text in ((False, "1h"), ("t", "0h")):
        with pytest.raises(OptionError) as caught:
            bf.read_history(frame, order=order, constant_within=text)
        assert caught.value.kind == "needs_time"
    with pytest.raises(ProbabilityError) as caught:
        bf.read_history(frame, order="t", constant_within="2h")
    assert (caught.value.kind, caught.value.row) == ("not_constant", 4)  # a: .5, then .25


def test_what_is_left_of_one_is_the_arm_never_chosen():
    frame, pi = log()
    gone = frame[(frame.site == "x") | (frame.arm != "c")]
    read = bf.read_history(gone, order="t", constant_within="site")
    np.testing.assert_allclose(read.selection_probability, pi[gone.index], rtol=0, atol=1e-15)
    never, pi = log(rules={"x": [0.6, 0.4, 0.0]})
    never = never[never.arm != "c"]
    read = bf.read_history(never, order="t", constant_within="site", arms=["a", "b", "c", "d"])
    assert (read.selection_probability[:, 2:] == 0).all()


def test_arms_that_share_an_unknown_rest():
    frame, pi = log()
    gone = frame[(frame.site == "y") | (frame.arm == "a")]
    read = bf.read_history(gone, order="t", constant_within="site")
    whole = pi[gone.index]
    known = np.where((gone.site == "x").to_numpy()[:, None] & [False, True, True], np.nan, whole)
    assert (read.selection, read.offered) == ("chosen", None)
    np.testing.assert_allclose(read.covered, known, rtol=0, atol=1e-15)
    np.testing.assert_allclose(read.propensity, gone.propensity)
    (said,) = [n for n in read.notices if getattr(n, "kind", "") == "rule_covered"]
    assert (said.n, said.column) == (2, "propensity") and "3 of 6 pairs" in said
    by = bf.read_history(gone, order="t", by="site", constant_within="site")
    assert np.isnan(by["x"].covered[:, 1:]).all() and not np.isnan(by["y"].covered).any()


def test_arms_of_another_group_do_not_share_the_rest():
    both = pd.concat([log(arms=arms)[0].assign(g=arms) for arms in ("abc", "def")])
    both = both[(both.g == "def") | (both.site == "y") | (both.arm == "a")]
    read = bf.read_history(both, order=False, by="g", constant_within="site", arms="by_group")
    assert [read[g].arms for g in ("abc", "def")] == [tuple("abc"), tuple("def")]
    of_x = (both[both.g == "abc"].site == "x").to_numpy()
    assert (np.isnan(read["abc"].covered).sum(axis=1) == np.where(of_x, 2, 0)).all()
    assert not np.isnan(read["def"].covered).any()


@pytest.mark.parametrize(("factor", "arms"), [(1.2, None), (0.9, None), (np.nan, None)])
def test_sums_that_are_no_one_are_refused(factor, arms):
    frame, _ = log()
    frame["propensity"] *= factor
    with pytest.raises(ProbabilityError):
        bf.read_history(frame, order="t", constant_within="site", arms=arms)


def test_differences_within_the_tolerance_are_rounding():
    frame, pi = log(rules={"x": [1 / 3] * 3})
    frame["propensity"] = frame.propensity.round(4)
    read = bf.read_history(frame, order="t", constant_within="site")
    np.testing.assert_allclose(read.selection_probability, pi, rtol=0, atol=1e-4)
    frame.loc[::2, "propensity"] += 2e-4
    with pytest.raises(ProbabilityError):
        bf.read_history(frame, order="t", constant_within="site")
    read = bf.read_history(frame, order="t", constant_within="site", probability_tolerance=1e-3)
    np.testing.assert_allclose(read.selection_probability, pi, rtol=0, atol=2e-4)


def test_groups_have_spans_of_their_own():
    frame, _ = log()
    frame["all"] = 1
    read = bf.read_history(frame, order="t", by="site", constant_within="all")
    for name, rule in RULES.items():
        np.testing.assert_allclose(
            read[name].selection_probability, np.tile(rule, (30, 1)), rtol=0, atol=1e-15
        )
    two = pd.concat(
        [log(rules={"x": [0.5, 0.3, 0.2]}, arms=a)[0].assign(site=a) for a in ("abc", "def")]
    )
    read = bf.read_history(
        two, order=False, by="site", constant_within="site", arms="by_group"
    )  # fmt: skip
    assert (read["abc"].arms, read["def"].arms) == (tuple("abc"), tuple("def"))
    assert read["def"].selection_probability[0].tolist() == pytest.approx([0.5, 0.3, 0.2])


def test_where_there_is_nothing_to_assemble():
    frame, _ = log()
    for data in (frame.drop(columns="propensity"), frame.assign(p_a=0.5, p_b=0.3, p_c=0.2)):
        with pytest.raises(OptionError) as caught:
            bf.read_history(data, order="t", constant_within="site")
        assert caught.value.kind == "option_without_effect"
    with pytest.raises(OptionError) as caught:
        bf.scan_history(frame, order="t", constant_within=["site"])
    assert (caught.value.kind, caught.value.column) == ("needs_whole", "constant_within")


def test_on_the_command_line(tmp_path, capsys):
    frame, _ = log()
    frame.to_csv(tmp_path / "log.csv", index=False)
    argv = ["--order", "t", "--constant-within", "site", "--draws", "40"]
    status, out, _ = command_line.run(
        capsys, "audit", str(tmp_path / "log.csv"), *argv, "--json", str(tmp_path / "a.json")
    )
    assert status == 0 and "rule was assembled" in " ".join(out.split())
    found = json.loads((tmp_path / "a.json").read_text())
    assert found["log"]["selection"] == "full"
    assert "rule_assembled" in [notice["kind"] for notice in found["findings"]]


def test_the_preview_names_what_reads_the_file():
    frame, pi = log()
    found = preview(frame, order="t", constant_within="site")
    parts = {c.name: c.part for c in found.columns}
    assert (parts["propensity"], parts["site"]) == ("propensity", "constant_within")
    read = bf.read_history(frame, **found.options)
    np.testing.assert_allclose(read.selection_probability, pi, rtol=0, atol=1e-15)
