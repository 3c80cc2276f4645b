"""Pages of each kind of result: scans, loaded audits, many arms, groups, values, duels, fits."""

import json
import re

import numpy as np
import pytest
from page_tools import Page, log, page_of

import bayesfair as bf
from bayesfair import examples
from bayesfair.errors import OptionError
from bayesfair.value import policy_value


def test_an_estimated_rule_stands_beside_what_choices_of_p_star_would_show(tmp_path):
    choices = log(3, 60, "none")
    one = bf.audit(choices, seed=1, draws=50, rule="estimated")
    several = bf.audit({"x": choices, "y": choices}, seed=1, draws=50, rule="estimated")
    for audit, n in ((one, 1), (several, 2)):
        page = page_of(audit, tmp_path)
        found = (audit if n == 1 else audit["x"]).to_dict()["modelled"]
        for part, words in (
            (found, "As estimated"),
            (found["if_calibrated"], "Choices drawn from P* would show"),
        ):
            needs = part["smallest_eps2"]
            mean, low, high = (f"{needs[name]:.4f}" for name in ("mean", "lower", "upper"))
            said = f"{words}: it needs eps2 = {mean} [{low}, {high}]"
            assert page.text.count(said) == n
    assert "estimated from the choices" not in page_of(bf.audit(choices, seed=1), tmp_path).text


def test_values_of_rules_stand_beside_the_audit(tmp_path):
    one, other = log(2, 40), log(2, 30, seed=1)
    rules = {"half": [0.5, 0.5], "<b>" * 40: [0.25, 0.75]}
    found = policy_value(one, rules)
    page = page_of(bf.audit(one, seed=1, draws=50), tmp_path, value=found)
    assert page.numbers["value"] == found.to_dict()
    rows = page.table("rule", "IPS, 95 %")
    pi, r = one.selection_probability, one.reward
    weight = 0.5 / pi[np.arange(40), one.arm]
    assert [row[0] for row in rows[:2]] == ["logged", "half"]
    assert rows[1][1].startswith(f"{(weight * r).mean():.3f} [")
    assert rows[1][4] == f"{weight.sum() ** 2 / (weight**2).sum():.1f}"
    logs = {"x": one, "y": other}
    several, values = bf.audit(logs, seed=1, draws=50), policy_value(logs, rules)
    page = page_of(several, tmp_path, value=values)
    assert page.numbers["value"]["groups"]["y"] == values["y"].to_dict()
    assert page.text.count("What other rules would have earned") == 2
    duels = bf.read_duels([{"left": "a", "right": "b", "winner": "left"}] * 4)
    fit = bf.audit_comparisons(duels, selection_probability=[0.5, 0.5], seed=1)
    for audit, value, kind in (
        (several, found, "not_the_same"),
        (several["x"], 3, "option_value"),
        (fit, found, "unused_option"),
    ):
        with pytest.raises(OptionError) as refused:
            bf.write_report(audit, tmp_path / "no.html", value=value)
        assert (refused.value.kind, refused.value.column) == (kind, "value")


def test_loaded_audit_gives_the_page_without_its_rounds(ecmo, tmp_path):
    ecmo.save(tmp_path / "a.nc")
    loaded = page_of(bf.load_audit(tmp_path / "a.nc"), tmp_path)
    whole = page_of(ecmo, tmp_path)
    assert loaded.numbers == whole.numbers
    rounds = {"violations-alt", "pairs-alt", "windows-alt", "reliability-alt"}
    drawn = [{a["aria-labelledby"] for a in page.all("svg")} for page in (loaded, whole)]
    assert drawn[1] - drawn[0] == rounds
    assert "does not hold its log any more" in loaded.text


def test_scan_gives_the_page_of_the_whole(tmp_path):
    whole = bf.audit(bf.read_history(examples.path("ecmo")), seed=1)
    scanned = bf.audit(bf.scan_history(examples.path("ecmo")), seed=1)
    one, other = page_of(whole, tmp_path), page_of(scanned, tmp_path)
    assert one.table("arm", "n") == other.table("arm", "n")
    assert one.table("eps1", "beliefs") == other.table("eps1", "beliefs")
    assert len(other.all("svg")) == len(one.all("svg"))


def test_of_hundreds_of_arms_it_is_said_which_are_shown(tmp_path):
    k, n = 600, 300
    weight = np.random.default_rng(2).dirichlet(np.full(k, 0.3))
    arm = np.random.default_rng(3).choice(k, n, p=weight)
    arms = [f"arm {i}" for i in range(k)]
    history = bf.History([arms[i] for i in arm], np.zeros(n), arms=arms,
                         selection_probability=np.tile(weight, (n, 1)))  # fmt: skip
    result = bf.audit(history, objective=False)
    page = page_of(result, tmp_path)
    assert "100 of 600 arms are shown, those whose mean selection probability lies furthest" in (
        page.text
    )
    assert "500 arms not shown" in page.text
    gap = {a["arm"]: abs(a["selection_mean"] - a["p_best_subjective"])
           for a in result.to_dict()["arms"]}  # fmt: skip
    shown = [row[0] for row in page.table("arm", "n")]
    assert len(set(shown)) == 100  # those that differ by an error of quadrature in any order
    largest = sorted(gap.values(), reverse=True)[:100]
    np.testing.assert_allclose([gap[arm] for arm in shown], largest, atol=1e-8)
    assert len(page.numbers["arms"]) == k
    assert "all 600 arms" in page.text


def test_groups_all_listed_and_the_worst_in_full(tmp_path):
    rng = np.random.default_rng(5)
    logs = {}
    for g in range(60):
        p = rng.dirichlet(np.full(2, [1, 2000][g % 2]), 20)
        arm = [rng.choice(2, p=row) for row in p]
        logs[f"region {g}"] = bf.History(
            ["ab"[i] for i in arm], rng.integers(0, 2, 20), arms=["a", "b"],
            selection_probability=p,
        )  # fmt: skip
    result = bf.audit(logs, seed=1, eps2=0.1, draws=200)
    page = page_of(result, tmp_path)
    numbers = result.to_dict()
    assert page.numbers == numbers
    rows = page.table("group", "verdict")
    assert [row[0] for row in rows] == list(logs)
    for row, audit in zip(rows, numbers["groups"].values(), strict=True):
        assert row[2:4] == [audit[name]["verdict"] for name in ("subjective", "objective")]
        assert row[5] == f"{audit['subjective']['smallest_eps2']:.4f}"
    runs = numbers["runs"]
    assert f"{runs['n_violating']} of {runs['n']} that could be audited are unfair" in page.text
    assert "The 12 worst groups in full" in page.text
    assert "The other 48 stand in the table above" in page.text
    shown = [a["id"] for tag, a, _ in page.elements if tag == "section" and "id" in a]
    assert len(shown) == 12
    in_full = re.findall(r"UNFAIR (region \d+) memory", page.text)
    needed = {g: a["subjective"]["smallest_eps2"] for g, a in numbers["groups"].items()
              if a["verdict"] == "unfair"}  # fmt: skip
    assert in_full == sorted(needed, key=lambda g: -needed[g])[:12]


def test_mixed_groups_keep_every_notice(tmp_path):
    logs = {"x": log(2, 40), "y": log(2, 40, "chosen"), "z": log(2, 40, "none")}
    result = bf.audit(logs, seed=1)
    page = page_of(result, tmp_path)
    numbers = result.to_dict()
    for audit in numbers["groups"].values():
        for notice in audit["notices"]:
            assert notice in page.text
    assert numbers["notices"][0] in page.text
    assert "Of 3 groups:" in page.text
    assert "The groups hold 120 rounds that are judged." in page.text
    regret = [numbers["groups"][g]["calibration"]["subjective"]["regret_per_round"] for g in "xy"]
    assert f"On average {min(regret):.4f} to {max(regret):.4f} of a round" in page.text
    assert "1 group without a value" in page.text  # the figure of regrets lacks z


def test_audits_of_duels_and_fits_have_their_pages(tmp_path):
    duels = bf.Comparisons.from_duels(["a", "b"] * 40, ["b", "a"] * 40, ["left"] * 80,
                                      keep_rows=True)  # fmt: skip
    audit = bf.audit_comparisons(duels, selection_probability=[0.5, 0.5], seed=1)
    page = page_of(audit, tmp_path)
    assert page.numbers == json.loads(json.dumps(audit.to_dict()))
    rows = {row[0]: row[1] for row in page.table("item", "duels")}
    assert rows == {"a": "80", "b": "80"}
    tree = bf.fit(duels, seed=1, draws=400)
    with pytest.raises(OptionError) as refused:
        bf.write_report(tree, tmp_path / "b.html")
    assert (refused.value.kind, refused.value.column) == ("missing_option", "comparisons")
    source = tmp_path / "duels.csv"
    source.write_bytes(b"abc")
    bf.write_report(tree, tmp_path / "b.html", comparisons=duels, log=source)
    fit = Page.of(tmp_path / "b.html")
    shown = {row[0]: [row[3], row[10]] for row in fit.table("item", "rank")}
    first = {item["item"]: item for item in fit.numbers["items"]}
    assert {name: float(row[0]) for name, row in shown.items()} == pytest.approx(
        {name: item["p_rank1"] for name, item in first.items()}, abs=1e-4
    )
    assert {name: row[1] for name, row in shown.items()} == {"a": "40", "b": "40"}
    # SHA-256 of "abc": FIPS 180-2, appendix B.1
    assert "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" in fit.text
    with pytest.raises(OptionError) as refused:
        bf.write_report([1], tmp_path / "c.html")
    assert refused.value.kind == "wrong_kind"
