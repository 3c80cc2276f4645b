"""Pairs of rounds across contexts, against enumeration, worked values and a frozen rule's laws."""

import itertools
import json
import sys
from pathlib import Path

import command_line
import numpy as np
import pytest

import bayesfair as bf
from bayesfair.errors import BayesfairError
from bayesfair.kernels.log.across import arms_as_individuals, worst_rounds

CASES = json.loads((Path(__file__).parents[1] / "reference/contextual.json").read_text())
TV = ("total_variation", "total_variation")
NAMES = ("total_variation", "kl", "hellinger", "chi2", "jensen_shannon")


def divergence(p, q, name):
    """Divergence of two laws, from its definition; all masses positive."""
    m = (p + q) / 2
    return {
        "total_variation": lambda: np.abs(p - q).sum() / 2,
        "kl": lambda: np.sum(p * np.log(p / q)),
        "hellinger": lambda: np.sqrt(max(1 - np.sqrt(p * q).sum(), 0)),
        "chi2": lambda: np.sum((p - q) ** 2 / q),
        "jensen_shannon": lambda: (p * np.log(p / m) + q * np.log(q / m)).sum() / 2,
    }[name]()


def joint(laws):
    """Probabilities of all outcomes of independent arms, (k, L)."""
    levels = itertools.product(range(laws.shape[1]), repeat=len(laws))
    return np.array([np.prod([law[v] for law, v in zip(laws, of, strict=True)]) for of in levels])


def calibrated(laws):
    """P* by enumeration: ties shared."""
    p = np.zeros(len(laws))
    for of in itertools.product(range(laws.shape[1]), repeat=len(laws)):
        best = np.array(of) == max(of)
        p += best / best.sum() * np.prod([law[v] for law, v in zip(laws, of, strict=True)])
    return p


def both(means):
    means = np.asarray(means, float)
    return np.stack([1 - means, means], axis=-1)


def test_worked_values_of_a_calibrated_rule():
    case = CASES["C11_dwork"]
    excess, _, marked = worst_rounds(
        np.array(case["p_best"]), both(case["means"]), eps1=1, threshold=0, divergences=TV
    )
    assert excess == pytest.approx(case["tv_rules"] - case["tv_joint_rewards"], abs=1e-12)
    assert not marked.any() and case["tv_joint_rewards"] <= case["sum_abs_mean_difference"]


def test_worked_values_of_arms_as_individuals():
    case = CASES["C10_across_rounds"]
    needed = arms_as_individuals(np.reshape([case["pi"], case["means"]], (2, -1)), case["eps1"])
    assert needed == pytest.approx(case["across_rounds_smallest_eps2"], abs=1e-12)
    excess, *_ = worst_rounds(
        np.array(case["pi"]), both(case["means"]), eps1=1, threshold=0, divergences=TV
    )
    assert excess == pytest.approx(case["lipschitz_tv_pi"] - case["tv_joint_rewards"], abs=1e-12)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("levels", [2, 3])
def test_all_pairs_by_enumeration_and_the_theorem(name, levels):
    rng = np.random.default_rng(levels)
    laws = rng.dirichlet(np.ones(levels), size=(12, 3))
    for pi, fair in ((rng.dirichlet(np.ones(3), 12), False),
                     (np.array([calibrated(law) for law in laws]), True)):  # fmt: skip
        excess = np.full((12, 12), -np.inf)
        for a, b in itertools.permutations(range(12), 2):
            apart = divergence(joint(laws[a]), joint(laws[b]), name)
            excess[a, b] = divergence(pi[a], pi[b], name) - 1.0 * apart
        top, pair, marked = worst_rounds(pi, laws, eps1=1, threshold=0.01, divergences=(name, name))
        assert top == pytest.approx(excess.max(), abs=1e-12)
        assert excess[pair] == pytest.approx(excess.max(), abs=1e-12)
        unfair = (excess > 0.01).any(axis=0) | (excess > 0.01).any(axis=1)
        assert marked.tolist() == unfair.tolist()
        assert not fair or top <= 1e-12  # proved for every f-divergence


def test_the_sorted_sweep_is_all_pairs():
    rng = np.random.default_rng(1)
    p, m = rng.random((2, 60)).round(2)
    for eps1 in (0, 0.5, 2):
        pairs = np.abs(p[:, None] - p) - eps1 * np.abs(m[:, None] - m)
        assert arms_as_individuals(np.stack([p, m]), eps1) == pytest.approx(pairs.max(), abs=1e-12)


def learner(n=300, seed=3):
    """SD_TS in each of two contexts: what it believed, decided, saw."""
    rng = np.random.default_rng(seed)
    theta = np.array([[0.8, 0.4, 0.2], [0.3, 0.5, 0.6]])
    won, seen = np.zeros((2, 3)), np.zeros((2, 3))
    where, arm, reward = rng.integers(0, 2, n), np.zeros(n, int), np.zeros(n)
    pi, believed = np.zeros((n, 3)), np.zeros((n, 3))
    for t, c in enumerate(where):
        believed[t] = (won[c] + 0.5) / (seen[c] + 1)
        pi[t] = calibrated(both(believed[t]))
        arm[t] = rng.choice(3, p=pi[t] / pi[t].sum())
        reward[t] = rng.random() < theta[c, arm[t]]
        won[c, arm[t]] += reward[t]
        seen[c, arm[t]] += 1
    return where, arm, reward, pi, believed


def audited(where, arm, reward, pi, **asked):
    asked = {"eps1": 1, "eps2": 0.05, "objective": False, "across": "contexts"} | asked
    log = bf.History(arm, reward, selection_probability=pi, arms=(0, 1, 2), context=where)
    return bf.audit(log, **asked)


def test_a_rule_that_learns_needs_nothing_at_eps1_1_and_another_what_enumeration_says():
    where, arm, reward, pi, believed = learner(70)
    found = audited(where, arm, reward, pi)
    numbers = found.to_dict()["across"]
    assert numbers["verdict"] == "fair" and numbers["smallest_eps2"] <= 1e-12
    assert numbers["worst"] is None or numbers["smallest_eps2"] > 0
    turned = pi.copy()
    turned[::3] = np.roll(pi[::3], 1, axis=1)
    numbers = audited(where, arm, reward, turned, from_round=20).to_dict()["across"]
    laws = [joint(law) for law in both(believed)]
    excess = np.array([
        [divergence(turned[a], turned[b], NAMES[0]) - divergence(laws[a], laws[b], NAMES[0])
         for b in range(20, 70)] for a in range(20, 70)
    ])  # fmt: skip
    assert numbers["smallest_eps2"] == pytest.approx(excess.max(), abs=1e-12)
    a, b = (numbers["worst"][name] - 20 for name in ("round", "round_other"))
    assert excess[a, b] == pytest.approx(excess.max(), abs=1e-12)
    assert numbers["n_violating_rounds"] == (excess > 0.05 + 1e-9).any(axis=0).sum()
    assert numbers["verdict"] == "unfair"
    points = np.stack([turned[20:].ravel(), believed[20:].ravel()])
    apart = np.abs(points[:, :, None] - points[:, None])
    assert numbers["arms_as_individuals"] == pytest.approx((apart[0] - apart[1]).max(), abs=1e-12)


def test_a_version_has_one_rule_and_pairs_are_within_it():
    where = np.array([0, 1] * 20)
    version = np.repeat(["v1", "v2"], 20)
    rule = {
        ("v1", 0): (0.5, 0.5),
        ("v1", 1): (0.5, 0.5),
        ("v2", 0): (0.9, 0.1),
        ("v2", 1): (0.8, 0.2),
    }
    pi = np.array([rule[v, w] for v, w in zip(version, where, strict=True)])
    arm, reward = np.arange(40) % 2, np.zeros(40)
    asked = {"eps1": 0, "eps2": 0.2, "objective": False, "across": "contexts"}

    def of(pi, **more):
        log = bf.History(arm, reward, selection_probability=pi,
                         context={"where": where, "version": version})  # fmt: skip
        return bf.audit(log, **asked | more)

    found = of(pi, across={"rule_version": "version"})
    numbers = found.to_dict()["across"]
    # eps1 = 0: rewards do not count, .9 against .8; all rounds: .9 against .5
    assert numbers["smallest_eps2"] == pytest.approx(0.1) and numbers["n_versions"] == 2
    assert found.to_dict()["context"]["columns"] == ["where"]
    assert of(pi).to_dict()["across"]["smallest_eps2"] == pytest.approx(0.4)
    other = pi.copy()
    other[-2] = 0.3, 0.7  # the same context and version, another rule: no reward explains it
    numbers = of(other, across={"rule_version": "version"}).to_dict()["across"]
    assert numbers["smallest_eps2"] == pytest.approx(0.6) and numbers["verdict"] == "unfair"


def test_saved_loaded_printed_and_by_groups(tmp_path):
    where, arm, reward, pi, _ = learner(60)
    found = audited(where, arm, reward, pi[:, ::-1], context_model="pooled")
    numbers = found.to_dict()["across"]
    found.save(tmp_path / "a.nc")
    loaded = bf.load_audit(tmp_path / "a.nc")
    assert loaded.to_dict()["across"] == numbers
    for one in (str(found), str(loaded)):
        assert "Across contexts, pairs of all rounds" in one
    log = bf.History(arm, reward, selection_probability=pi[:, ::-1], arms=(0, 1, 2), context=where)
    bf.write_report(found, tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text()
    assert "Two rounds against each other" in page and "across=&#39;contexts&#39;" in page
    early = bf.audit(log.before(30), eps1=1, eps2=0.05, objective=False, across="contexts")
    late = bf.audit(log.rounds(30, 60), objective=False, prior=early, eps1=1, eps2=0.05)
    merged = bf.merge(early, late)
    assert "across" not in merged.to_dict()
    assert "across_left_out" in [notice["kind"] for notice in merged.to_dict()["findings"]]
    group = bf.audit({2024: log}, eps1=1, eps2=0.05, objective=False, across="contexts",
                     context_model="pooled")  # fmt: skip
    assert group.to_dict()["groups"]["2024"]["across"] == numbers
    assert "across contexts" in str(group)


def test_what_is_too_many_is_sampled_and_never_called_fair(monkeypatch):
    where, arm, reward, pi, _ = learner(200)
    monkeypatch.setattr(sys.modules["bayesfair.audit.across"], "_MOST", 100)
    numbers = audited(where, arm, reward, pi).to_dict()["across"]
    assert numbers["at_least"] and numbers["verdict"] == "undetermined"
    turned = np.where((np.arange(200) % 3 == 0)[:, None], np.roll(pi, 1, axis=1), pi)
    numbers = audited(where, arm, reward, turned).to_dict()["across"]
    assert numbers["verdict"] == "unfair"


@pytest.mark.parametrize(
    ("given", "column"),
    [
        ({"across": "rounds"}, "across"),
        ({"across": {"versions": "context"}}, "across"),
        ({"across": {"rule_version": "context"}}, "rule_version"),
        ({"context_model": "none"}, "across"),
        ({"divergence": "wasserstein"}, "across"),
        ({"propensity_draws": 50, "context_model": "none"}, "across"),
    ],
)
def test_what_it_does_not_go_with_is_refused(given, column):
    with pytest.raises(BayesfairError) as caught:
        audited(*learner(20)[:4], **given)
    assert caught.value.column == column or f"{column}=" in str(caught.value)


def test_other_logs_are_refused(tmp_path):
    _, arm, reward, pi, _ = learner(30)
    asked = {"objective": False, "across": "contexts"}
    with pytest.raises(BayesfairError, match="no context"):
        bf.audit(bf.History(arm, reward, selection_probability=pi), **asked)
    where = np.zeros(30, int)
    measured = bf.History(arm, reward + np.arange(30) / 7, selection_probability=pi, context=where)
    with pytest.raises(BayesfairError) as caught:
        bf.audit(measured, family="normal", **asked)
    assert caught.value.kind == "not_in_family"
    (tmp_path / "a.csv").write_text("arm,reward,p_a,p_b,c\na,1,.5,.5,u\nb,0,.5,.5,v\n")
    scan = bf.scan_history(tmp_path / "a.csv", context="c")
    with pytest.raises(BayesfairError) as caught:
        bf.audit(scan, **asked)
    assert caught.value.kind == "needs_whole"


def test_on_the_command_line(tmp_path, capsys):
    where, arm, reward, pi, _ = learner(60)
    each = enumerate(zip(arm, reward, pi.tolist(), where, strict=True))
    rows = [f"{'abc'[a]},{int(r)},{p[0]!r},{p[1]!r},{p[2]!r},{c},v{t // 30}"
            for t, (a, r, p, c) in each]  # fmt: skip
    (tmp_path / "log.csv").write_text("\n".join(["arm,reward,p_a,p_b,p_c,site,build", *rows]))
    status, out, _ = command_line.run(
        capsys, "audit", str(tmp_path / "log.csv"), "--context", "site,build",
        "--across", "contexts", "--rule-version", "build", "--no-objective",
        "--json", str(tmp_path / "a.json"),
    )  # fmt: skip
    said = json.loads((tmp_path / "a.json").read_text())["across"]
    assert status == 0 and said["n_versions"] == 2 and said["rule_version"] == "build"
    assert "rounds of the same build (2 versions)" in " ".join(out.split())


def test_where_no_round_is_judged_there_is_no_verdict():
    found = audited(*learner(20)[:4], from_round=20, eps2=None)
    numbers = found.to_dict()["across"]
    assert numbers["verdict"] == "not_auditable" and numbers["smallest_eps2"] is None
    assert numbers["worst"] is None and numbers["arms_as_individuals"] is None and str(found)


def test_labels_of_logs_may_be_numbers():
    log = bf.History(
        [0, 1] * 20, [1, 0] * 20, context={"x": ["x", "y"] * 20, "v": ["1"] * 20 + ["2"] * 20},
        selection_probability=[[0.5, 0.5]] * 40,
    )  # fmt: skip
    for across in ("contexts", {"rule_version": "v"}):
        asked = {"context_model": "cells", "objective": False, "across": across}
        alone = bf.audit(log, **asked).to_dict()["across"]
        assert bf.audit({2024: log}, **asked).audits["2024"].to_dict()["across"] == alone
