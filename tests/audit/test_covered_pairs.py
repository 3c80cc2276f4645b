"""Rules that are known in part: pairs that are covered exactly, the others by their bounds.

Every way to share the rest is a whole rule: audits of these hold the bounds to account.
"""

import json

import command_line
import numpy as np
import pandas as pd
import pytest

import bayesfair as bf
from bayesfair.errors import DataError, ProbabilityError
from bayesfair.report import write_report

KNOWN = {
    "x": [0.4, 0.2, np.nan, np.nan],
    "y": [0.1, np.nan, np.nan, 0.3],
    "z": [0.4, 0.3, 0.2, 0.1],
}


def partly(seed, n=60):
    rng = np.random.default_rng(seed)
    covered = np.array([KNOWN[s] for s in np.repeat(list(KNOWN), n // 3)])
    rest = (1 - np.nansum(covered, axis=1))[:, None] / np.isnan(covered).sum(1, keepdims=True).clip(
        1
    )
    even = np.where(np.isnan(covered), rest, covered)
    seen = np.where(np.isnan(covered), 0, even)
    arm = np.array([rng.choice(4, p=p / p.sum()) for p in seen]).astype(np.int32)
    reward = (rng.random(n) < [0.3, 0.5, 0.6, 0.2][seed % 4]).astype(float)
    p = even[np.arange(n), arm]
    return bf.History(arm, reward, propensity=p, covered=covered, arms=list("abcd"))


def shared(log, weights):
    """The whole rule in which the arms without a probability share the rest so."""
    w = np.where(np.isnan(log.covered), weights, 0.0)
    rest = 1 - np.nansum(log.covered, axis=1, keepdims=True)
    pi = np.nan_to_num(log.covered) + rest * w / w.sum(axis=1, keepdims=True).clip(1e-300)
    return bf.History(log.arm, log.reward, selection_probability=pi, arms=log.arms)


@pytest.mark.parametrize("seed", range(3))
def test_bounds_hold_for_every_rule_and_are_attained(seed):
    log, rng = partly(seed), np.random.default_rng(seed)
    asked = {"eps1": 0.5 + seed / 2, "eps2": 0.1, "seed": 1, "draws": 60}
    audit = bf.audit(log, **asked)
    found = audit.to_dict()["covered"]
    eps2, rounds = (found["subjective"][name] for name in ("smallest_eps2", "n_violating_rounds"))
    fair = found["objective"]["probability_fair"]
    corners = [shared(log, 1e-12 + np.eye(4)[i]) for i in range(4)]
    inner = [shared(log, rng.dirichlet([1] * 4)) for _ in range(6)]
    every = [bf.audit(whole, **asked) for whole in (*corners, *inner)]
    needs = [one.smallest_eps2 for one in every]
    assert max(needs[:4]) == pytest.approx(eps2["upper"], abs=1e-9)  # attained by a corner
    assert eps2["lower"] <= min(needs) + 1e-9
    for one in every:
        assert rounds["at_least"] <= one.n_violating_rounds <= rounds["at_most"]
        assert fair["lower"] <= one.probability_fair <= fair["upper"]
        assert audit.subjective_verdict in (one.subjective_verdict, "undetermined")
        assert audit.objective_verdict in (one.objective_verdict, "undetermined")
    by_round = np.array([one.rounds()["smallest_eps2"].values for one in every[:4]]).max(axis=0)
    assert rounds["at_most"] == (by_round > 0.1 + audit.criterion.tolerance).sum()


def test_covered_pairs_prove_what_others_cannot_undo():
    # before round 0 all arms are alike: .4 against .2 in every rule, and at most .4 for two arms
    audit = bf.audit(partly(0).before(1), eps1=1, eps2=0.05, seed=1, draws=40)
    found = audit.to_dict()["covered"]
    assert found["pairs"] == {"known": 1, "all": 6} and found["n_rounds_known"] == 0
    eps2 = found["subjective"]["smallest_eps2"]
    assert eps2 == pytest.approx({"lower": 0.2, "upper": 0.4}, abs=1e-12)
    assert (audit.subjective_verdict, audit.verdict) == ("unfair", "unfair")
    assert found["subjective"]["n_violating_rounds"] == {"at_least": 1, "at_most": 1}
    worst = found["subjective"]["worst"]
    assert (worst["round"], worst["arm"], worst["arm_other"]) == (0, "a", "b")
    lenient = bf.audit(partly(0).before(1), eps1=1, eps2=0.4, seed=1, draws=40)
    assert (lenient.subjective_verdict, lenient.verdict) == ("fair", "fair")
    between = bf.audit(partly(0).before(1), eps1=1, eps2=0.3, seed=1, draws=40)
    assert (between.subjective_verdict, between.verdict) == ("undetermined", "undetermined")
    assert "between 0.2000 and 0.4000" in str(between)


def test_a_large_known_share_violates_beside_any_other():
    # a has .8, and b and c share .2: nothing makes them alike
    covered = [[0.8, np.nan, np.nan]] * 3
    log = bf.History([0] * 3, [1, 0, 1], propensity=[0.8] * 3, covered=covered, arms=list("abc"))
    found = bf.audit(log, eps1=0, eps2=0.05, objective=False)
    assert found.verdict == "unfair"
    needs = found.to_dict()["covered"]["subjective"]["smallest_eps2"]
    assert needs == pytest.approx({"lower": 0.6, "upper": 0.8}, abs=1e-12)


def kinds(audit):
    return {finding["kind"] for finding in audit.to_dict()["findings"]}


def test_offers_starts_and_groups():
    log = partly(1)
    offered = np.ones((60, 4), bool)
    offered[:20, 3] = False  # c has what a and b leave, but nobody said so
    own = bf.History(log.arm, log.reward, propensity=log.propensity, arms=log.arms, offered=offered,
                     covered=np.where(offered, log.covered, np.nan))  # fmt: skip
    found = bf.audit(own, seed=1, draws=40).to_dict()["covered"]
    assert found["pairs"]["all"] == 20 * 3 + 40 * 6
    late = bf.audit(log, from_round=40, seed=1, draws=40, eps1=1)
    z = bf.History(log.arm, log.reward, arms=log.arms,
                   selection_probability=shared(log, np.ones(4)).selection_probability)  # fmt: skip
    exact = bf.audit(z, from_round=40, seed=1, draws=40, eps1=1)
    found = late.to_dict()["covered"]  # from there on the rule is known whole
    assert found["subjective"]["smallest_eps2"]["lower"] == pytest.approx(exact.smallest_eps2)
    assert found["subjective"]["smallest_eps2"]["upper"] == pytest.approx(exact.smallest_eps2)
    assert (late.subjective_verdict, late.objective_verdict) == (
        exact.subjective_verdict, exact.objective_verdict,
    )  # fmt: skip
    group = bf.audit({1: log, "two": exact.data}, seed=1, draws=40)
    assert "covered" in group["1"].to_dict() and "covered" not in group["two"].to_dict()
    assert group["1"].verdict == bf.audit(log, seed=1, draws=40).verdict


def test_kept_and_joined(tmp_path):
    log = partly(2)
    audit = bf.audit(log, seed=1, draws=40)
    assert "covered_pairs" in kinds(audit) and "chosen_only" not in kinds(audit)
    audit.save(tmp_path / "a.nc")
    loaded = bf.load_audit(tmp_path / "a.nc")
    assert loaded.to_dict() == audit.to_dict()
    joined = bf.audit(log.before(30), seed=1, draws=40).resume(log.rounds(30, 60))
    assert "covered_left_out" in kinds(joined) and joined.subjective_verdict == "not_auditable"
    page = tmp_path / "a.html"
    write_report(audit, page)
    assert "pairs of arms" in page.read_text()
    other = bf.audit(log, seed=1, draws=40, divergence="kl")
    assert "covered_left_out" in kinds(other) and "covered" not in other.to_dict()


@pytest.mark.parametrize(
    ("covered", "error"),
    [
        ([[0.5, np.nan, np.nan]], DataError),
        ([[0.4, np.nan, np.nan]] * 2, ProbabilityError),
        ([[np.nan, 0.2, np.nan]] * 2, ProbabilityError),
        ([[0.5, 0.6, np.nan]] * 2, ProbabilityError),
    ],
)
def test_what_fits_no_rule_is_refused(covered, error):
    with pytest.raises(error) as caught:
        bf.History(["a", "a"], [1, 0], propensity=[0.5, 0.5], covered=covered, arms=list("abc"))
    assert (caught.value.kind, caught.value.column) == ("covered", "covered")


def test_from_a_file_to_the_gate(tmp_path, capsys):
    frame = pd.DataFrame({"arm": ["a", "b"] * 20, "reward": [1, 0, 0, 1] * 10,
                          "propensity": [0.6, 0.1] * 20, "page": "p"})  # fmt: skip
    frame.to_csv(tmp_path / "log.csv", index=False)
    argv = ["audit", str(tmp_path / "log.csv"), "--constant-within", "page", "--arms", "a,b,c,d"]
    status, out, _ = command_line.run(
        capsys, *argv, "--no-objective", "--fail-on", "unfair", "--json", str(tmp_path / "a.json")
    )
    found = json.loads((tmp_path / "a.json").read_text())
    assert status == 1 and found["subjective"]["verdict"] == "unfair"
    assert found["covered"]["pairs"] == {"known": 40, "all": 240} and "40 of 240" in out
