"""Rules that are estimated from the choices, where nothing of them was logged."""

import json
from itertools import pairwise

import command_line
import numpy as np
import pytest
from scipy.stats import beta as beta_law

import bayesfair as bf
from bayesfair.errors import DataError, OptionError


def log(n=400, share=0.7, seed=3):
    """A rule that takes a with one probability throughout, of arms that always pay 0."""
    arm = np.where(np.random.default_rng(seed).random(n) < share, "a", "b")
    return bf.History(arm, np.full(n, np.nan), arms=["a", "b"], missing="unobserved"), arm


def test_one_window_is_the_posterior_of_a_share():
    history, arm = log()
    audit = bf.audit(history, seed=5, draws=20_000, rule="estimated", rule_window=400)
    found = audit.to_dict()["modelled"]
    # nothing is ever learned: P* is 1/2 throughout and the arms are alike, so that the rule needs
    # |2 p - 1| and lacks |p - 1/2| in each round, with p of its Beta posterior
    law = beta_law((arm == "a").sum() + 0.5, (arm == "b").sum() + 0.5)
    needs, lacks = found["smallest_eps2"], found["regret_per_round"]
    for at, quantile in (("lower", 0.025), ("upper", 0.975)):
        assert needs[at] == pytest.approx(2 * law.ppf(quantile) - 1, abs=4e-3)
        assert lacks[at] == pytest.approx(law.ppf(quantile) - 0.5, abs=2e-3)
    assert needs["mean"] == pytest.approx(2 * law.mean() - 1, abs=2e-3)
    assert (found["n_windows"], found["window"]) == (1, 400)
    # shares of a fair coin, estimated: |2 p - 1| is that of a normal of variance 2 / n
    like = found["if_calibrated"]["smallest_eps2"]
    assert like["mean"] == pytest.approx(np.sqrt(2) * np.sqrt(2 / (np.pi * 400)), rel=0.03)
    assert like["upper"] < needs["lower"]


def test_windows_against_every_round_by_hand():
    rng = np.random.default_rng(1)
    n, size = 53, 10
    arm, reward = rng.integers(0, 3, n), rng.integers(0, 2, n)
    history = bf.History(np.array(list("abc"))[arm], reward)
    more = {"seed": 2, "draws": 3000, "eps1": 0.5, "objective": False}
    found = bf.audit(history, rule="estimated", rule_window=size, **more).to_dict()["modelled"]
    assert found["n_windows"] == 5  # the last has 13 rounds
    draws, before = 3000, np.full((3, 2), 0.5)
    other = np.random.default_rng(99)
    edges = [0, 10, 20, 30, 40, 53]
    needed, regret = np.zeros(draws), np.zeros(draws)
    for a, b in pairwise(edges):
        pi = other.dirichlet(np.bincount(arm[a:b], minlength=3) + 0.5, size=draws)
        for t in range(a, b):
            mean = before[:, 0] / before.sum(axis=1)
            outcomes = np.array(np.meshgrid(*[[0, 1]] * 3)).reshape(3, -1)
            chance = np.prod(np.where(outcomes, mean[:, None], 1 - mean[:, None]), axis=0)
            best = outcomes == outcomes.max(axis=0)
            p_best = (best / best.sum(axis=0) * chance).sum(axis=1)
            apart = np.abs(pi[:, :, None] - pi[:, None]) - 0.5 * np.abs(mean[:, None] - mean)
            needed = np.maximum(needed, apart.max(axis=(1, 2)))
            regret += np.maximum(p_best - pi, 0).sum(axis=1)
            before[arm[t], 1 - reward[t]] += 1
    for name, want in (("smallest_eps2", needed), ("regret_per_round", regret / n)):
        assert found[name]["mean"] == pytest.approx(want.mean(), abs=0.01)
        for at, q in (("lower", 0.025), ("upper", 0.975)):
            assert found[name][at] == pytest.approx(np.quantile(want, q), abs=0.03)


def test_the_verdict_and_all_else_stay_as_they_are():
    history, _ = log(60)
    with_it = bf.audit(history, seed=1, draws=50, rule="estimated").to_dict()
    assert with_it.pop("modelled")["window"] == 60
    assert with_it == bf.audit(history, seed=1, draws=50).to_dict()
    assert with_it["verdict"] == "not_auditable"


def test_an_audit_that_is_merged_says_that_it_leaves_the_rule_out():
    history, _ = log(60)
    more = {"seed": 1, "draws": 50}
    early = bf.audit(history.rounds(0, 40), rule="estimated", **more)
    late = bf.audit(history.rounds(40, 60), prior=early.state, **more)
    for whole in (bf.merge(early, late), early.resume(history.rounds(40, 60))):
        assert "modelled" not in whole.to_dict()
        assert [n.column for n in whole.findings if n.kind == "modelled_left_out"] == ["rule"]
    plain = bf.audit(history.rounds(0, 40), **more).resume(history.rounds(40, 60))
    assert "modelled_left_out" not in {n.kind for n in plain.findings}


def test_groups_and_judged_rounds_and_scans(tmp_path):
    history, arm = log(300)
    group = bf.audit({"x": history, "y": history}, seed=1, draws=50, rule="estimated")
    each = [audit["modelled"] for audit in group.to_dict()["groups"].values()]
    assert each[0] == each[1] and str(group).count("as estimated") == 2
    (tmp_path / "log.csv").write_text("arm,reward\n" + "".join(f"{a},\n" for a in arm))
    scan = bf.scan_history(tmp_path / "log.csv", missing="unobserved", chunk_rounds=7)
    more = {"seed": 1, "draws": 50, "rule": "estimated", "rule_window": 40, "from_round": 60}
    whole, parts = (bf.audit(x, **more).to_dict()["modelled"] for x in (history, scan))
    assert whole == parts and whole["n_windows"] == 6


@pytest.mark.parametrize(
    ("given", "column"),
    [
        ({"rule": "guessed"}, "rule"),
        ({"rule_window": 5}, "rule_window"),
        ({"rule": "estimated", "rule_window": 0}, "rule_window"),
        ({"rule": "estimated", "divergence": "hellinger"}, "divergence"),
        ({"rule": "estimated", "context_model": "cells"}, "context_model"),
    ],
)
def test_what_cannot_be_estimated_is_refused(given, column):
    with pytest.raises(OptionError) as caught:
        bf.audit(log(20)[0], seed=1, draws=10, **given)
    assert caught.value.column == column


def test_rules_that_were_logged_and_arms_not_on_offer():
    logged = bf.History(["a", "b"], [1, 0], propensity=[0.5, 0.5])
    with pytest.raises(OptionError, match="rule"):
        bf.audit(logged, seed=1, rule="estimated")
    some = bf.History(["a", "b"], [1, 0], offered=[[True, False], [True, True]])
    with pytest.raises(DataError) as caught:
        bf.audit(some, seed=1, draws=10, rule="estimated")
    assert caught.value.kind == "not_on_offer"


def test_on_the_command_line(tmp_path, capsys):
    _, arm = log(300)
    (tmp_path / "log.csv").write_text("arm,reward\n" + "".join(f"{a},0\n" for a in arm))
    argv = ["--rule", "estimated", "--rule-window", "100", "--draws", "50", "--json"]
    status, out, _ = command_line.run(
        capsys, "audit", str(tmp_path / "log.csv"), *argv, str(tmp_path / "a.json")
    )
    said = " ".join(out.split())
    assert status == 0 and "no part of the verdict" in said and "3 windows of 100 rounds" in said
    assert json.loads((tmp_path / "a.json").read_text())["modelled"]["n_windows"] == 3
