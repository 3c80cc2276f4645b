"""What a verdict says: the allowance, both questions, their violating rounds, who judges."""

import itertools

import numpy as np
import pytest
from test_resumed_audits import (  # the same logs and the same comparison, all keys to 1e-12
    assert_same,
    assert_same_audit,
    random_log,
    taken_apart,
)

import bayesfair as bf
from bayesfair.audit.log import violations
from bayesfair.audit.log.verdict_words import one_line, question_words


def beliefs_by_hand(log):
    """Beta(1/2, 1/2) means before each round, by counting what is known by then."""
    n, k = log.n_rounds, log.n_arms
    known = np.arange(1, n + 1) if log.known_at is None else log.known_at
    means = np.empty((n, k))
    for t in range(n):
        won, seen = np.full(k, 0.5), np.ones(k)
        for s in range(t):
            if known[s] <= t and not np.isnan(log.reward[s]):
                won[log.arm[s]] += log.reward[s]
                seen[log.arm[s]] += 1
        means[t] = won / seen
    return means


def violating_by_hand(pi, means, eps1, allowed, start=0):
    """Numbers of the rounds in which a pair on offer exceeds its bound, pair by pair."""
    found = []
    for t in range(start, len(pi)):
        m = means[t] if means.ndim == 2 else means
        pairs = itertools.combinations(np.flatnonzero(~np.isnan(pi[t])), 2)
        if any(abs(pi[t, i] - pi[t, j]) - eps1 * abs(m[i] - m[j]) > allowed for i, j in pairs):
            found.append(t)
    return found


def write(log, path):
    pi = np.asarray(log.selection_probability)
    lines = ["arm,reward," + ",".join(f"p_{a}" for a in log.arms)]
    for t in range(log.n_rounds):
        cells = ["" if np.isnan(p) else repr(float(p)) for p in pi[t]]
        lines.append(",".join([log.arms[log.arm[t]], f"{log.reward[t]:g}", *cells]))
    path.write_text("\n".join(lines) + "\n")


# -- two questions, their violating rounds -----------------------------------------------------


@pytest.mark.parametrize("k", [2, 4, 25])
@pytest.mark.parametrize("holes", [False, True])
def test_violating_rounds_are_those_of_the_definition(k, holes):
    rng = np.random.default_rng(k)
    pi = rng.dirichlet(np.full(k, 3.0), 90)
    arm = np.array([rng.choice(k, p=p) for p in pi], np.int32)
    if holes:
        off = rng.random(pi.shape) < 0.3
        off[np.arange(90), arm] = False
        pi = np.where(off, np.nan, pi)
        pi /= np.nansum(pi, axis=1, keepdims=True)
    reward = (rng.random(90) < 0.4).astype(float)
    log = bf.History(arm, reward, selection_probability=pi, arms=[f"{i:02}" for i in range(k)])
    eps1, eps2 = 0.8, 0.25 if k < 25 else 0.08
    truth = rng.random(k)
    found = bf.audit(log, eps1=eps1, eps2=eps2, seed=5, draws=40).to_dict()
    rounds = violating_by_hand(pi, beliefs_by_hand(log), eps1, eps2 + 1e-9)
    assert 0 < len(rounds) < 90
    part = found["subjective"]
    assert [part[f"{x}_violating_round{'s' * (x == 'n')}"] for x in ("n", "first", "last")] == [
        len(rounds), rounds[0], rounds[-1]
    ]  # fmt: skip
    # the same draws, every round and every pair of each
    alpha, beta = np.full(k, 0.5), np.full(k, 0.5)
    np.add.at(alpha, arm, reward)
    np.add.at(beta, arm, 1 - reward)
    draws = np.random.default_rng(5).beta(alpha, beta, size=(40, k))
    each = [violating_by_hand(pi, theta, eps1, eps2 + 1e-9) for theta in draws]
    part = found["objective"]
    counts = [len(r) for r in each]
    assert part["n_violating_rounds"]["mean"] == pytest.approx(np.mean(counts), rel=1e-12)
    low, high = np.quantile(counts, [0.025, 0.975])
    assert part["n_violating_rounds"]["lower"] == pytest.approx(low)
    assert part["n_violating_rounds"]["upper"] == pytest.approx(high)
    assert part["n_violating_rounds"]["exact"] is True
    for name, end in (("first", 0), ("last", -1)):
        ends = [r[end] for r in each if r]
        assert part[f"{name}_violating_round"]["mean"] == pytest.approx(np.mean(ends), rel=1e-12)
        low, high = np.quantile(ends, [0.025, 0.975])
        assert part[f"{name}_violating_round"]["lower"] == pytest.approx(low)
        assert part[f"{name}_violating_round"]["upper"] == pytest.approx(high)
    assert part["probability_fair"] == np.mean([not r for r in each])
    # a known truth: one draw
    known = bf.audit(log, eps1=eps1, eps2=eps2, truth=bf.rewards.Bernoulli(truth)).to_dict()
    rounds = violating_by_hand(pi, truth, eps1, eps2 + 1e-9)
    part = known["objective"]
    ends = [rounds[0], rounds[-1]] if rounds else [None, None]
    assert part["n_violating_rounds"]["mean"] == len(rounds)
    for name, end in zip(("first", "last"), ends, strict=True):
        value = part[f"{name}_violating_round"]
        assert (value if end is None else value["mean"]) == end
    # a truth of every round
    moving = np.clip(truth + np.linspace(-0.3, 0.3, 90)[:, None], 0.01, 0.99)
    part = bf.audit(
        log, eps1=eps1, eps2=eps2, truth=bf.rewards.Bernoulli(moving)
    ).to_dict()["objective"]  # fmt: skip
    rounds = violating_by_hand(pi, moving, eps1, eps2 + 1e-9)
    assert part["n_violating_rounds"]["mean"] == len(rounds)
    if rounds:
        assert part["last_violating_round"]["mean"] == rounds[-1]


def test_ordered_divergences_count_both_orders_of_a_pair():
    pi = [[0.9, 0.1], [0.1, 0.9], [0.5, 0.5], [0.02, 0.98]]
    truth = [0.6, 0.3]

    def kl(p, q):
        return p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))

    log = bf.History([0, 1, 0, 1], [1, 0, 1, 0], selection_probability=pi)
    for eps2 in (0.0, 1.5, 1.9, 3.4):
        found = bf.audit(
            log, eps1=1, eps2=eps2, divergence="kl", truth=bf.rewards.Bernoulli(truth)
        ).to_dict()["objective"]  # fmt: skip
        rounds = [
            t
            for t, row in enumerate(pi)
            if any(
                kl(row[i], row[j]) - kl(truth[i], truth[j]) > eps2 + 1e-9
                for i, j in ((0, 1), (1, 0))
            )
        ]
        assert found["n_violating_rounds"]["mean"] == len(rounds)
        assert (found["first_violating_round"] or {"mean": None})["mean"] == (
            rounds[0] if rounds else None
        )


def settled_log(n=1000, bad=60, seed=0):
    """Equal arms that are chosen unequally in some of the first rounds, never again."""
    rng = np.random.default_rng(seed)
    pi = np.full((n, 2), 0.5)
    unequal = np.sort(rng.choice(bad - 1, 40, replace=False))
    pi[unequal] = pi[bad - 1] = [0.9, 0.1]
    arm = (rng.random(n) > pi[:, 0]).astype(np.int32)
    return bf.History(arm, np.full(n, np.nan), selection_probability=pi)


def test_violations_that_ended_are_said_to_have_ended():
    found = bf.audit(settled_log(), truth=bf.rewards.Bernoulli([0.5, 0.5]))
    numbers, text = found.to_dict(), str(found)
    for name, question in (
        ("subjective", "under the beliefs of each round"), ("objective", "under the true rewards")
    ):  # fmt: skip
        said = "unfair in 41 of the first 60 rounds, not once since"
        assert question_words(numbers, name) == said
        assert f"  {question:<36} {said}" in text
        assert numbers[name]["question"] == question
    assert list(numbers)[:4] == ["bayesfair", "verdict", "subjective", "objective"]
    lines = text.splitlines()
    lead = next(i for i, line in enumerate(lines) if line.startswith("Verdict: UNFAIR, "))
    assert lines[lead + 1].startswith("  under the beliefs of each round")
    assert lines[lead + 2].startswith("  under the true rewards")
    later = bf.audit(settled_log(), truth=bf.rewards.Bernoulli([0.5, 0.5]), from_round=60)
    assert later.verdict == later.subjective_verdict == "fair"
    assert question_words(later.to_dict(), "subjective") == "fair in all 940 rounds"
    some = bf.audit(settled_log(), seed=1, from_round=20).to_dict()
    assert some["subjective"]["last_violating_round"] == 59
    assert "of the first 40 judged rounds, not once since" in question_words(some, "subjective")


# -- the same, by whichever way ----------------------------------------------------------------


WAYS = {"eps1": 0.7, "eps2": 0.15, "draws": 60, "seed": 2}


KINDS = [("bernoulli", s) for s in ("full", "chosen", "none")] + [
    ("finite", "full"), ("normal", "full"), ("poisson", "chosen")
]  # fmt: skip


@pytest.mark.parametrize("from_round", [0, 7, 18, 33, 60])
@pytest.mark.parametrize(("family", "selection"), KINDS)
def test_whole_resumed_merged_and_saved_audits_agree(from_round, family, selection):
    log = random_log(
        7, 60, 3, family=family, selection=selection, delays=True, holes=True, lost=True
    )
    asked = WAYS | {"from_round": from_round, "family": family, "judge": "objective"}
    whole = bf.audit(log, **asked)
    saved = taken_apart(whole)
    assert saved.to_dict() == whole.to_dict() and str(saved) == str(whole)
    first = taken_apart(bf.audit(log.before(18), **asked))
    assert_same_audit(first.resume(log.rounds(18, 45)).resume(log.rounds(45, 60)), whole)
    second = bf.audit(log.rounds(18, 60), prior=first, **(asked | {"family": "auto"}))
    merged = bf.merge(first, second)
    assert_same_audit(merged, whole)
    assert merged.findings == whole.findings
    grouped = bf.audit({"x": log, "y": log.before(40)}, **asked)
    if family != "finite":  # its values are those of all groups
        assert_same_audit(grouped["x"], whole)
    numbers = whole.to_dict()
    assert numbers["log"]["n_rounds"] == 60 and numbers["log"]["n_judged"] == 60 - from_round
    if from_round == 60:
        assert whole.verdict == "not_auditable"
        assert "nothing_judged" in [n.kind for n in whole.findings]


@pytest.mark.parametrize("from_round", [0, 10, 37, 90])
def test_a_scan_judges_the_same_rounds(tmp_path, from_round):
    log = random_log(3, 90, 4)
    write(log, tmp_path / "log.csv")
    asked = WAYS | {"from_round": from_round}
    without_draws = {name: value for name, value in asked.items() if name != "draws"}
    read = bf.read_history(tmp_path / "log.csv")
    whole = bf.audit(read, **asked)
    truth = bf.rewards.Bernoulli([0.2, 0.3, 0.5, 0.6])
    known = bf.audit(read, truth=truth, **without_draws).to_dict()
    for chunk in (1, 8, 90):
        scan = bf.scan_history(tmp_path / "log.csv", arms=list(log.arms), chunk_rounds=chunk)
        assert_same_audit(bf.audit(scan, **asked), whole)
        found = bf.audit(scan, truth=truth, **without_draws).to_dict()
        for key in ("verdict", "subjective", "objective", "calibration", "log"):
            assert_same(found[key], known[key], key)


def test_rounds_before_the_first_judged_one_serve_the_beliefs_alone():
    log = random_log(5, 80, 3, delays=True)
    found = bf.audit(log, from_round=30, **WAYS)
    alone = bf.audit(log.rounds(30, 80), prior=bf.audit(log.before(30), **WAYS).state, **WAYS)
    for key in ("subjective", "objective", "calibration", "arms", "frontier"):
        assert found.to_dict()[key] == alone.to_dict()[key]
    means = beliefs_by_hand(log)
    rounds = violating_by_hand(
        np.asarray(log.selection_probability), means, 0.7, 0.15 + 1e-9, start=30
    )
    part = found.to_dict()["subjective"]
    assert (part["n_violating_rounds"], part["first_violating_round"]) == (len(rounds), rounds[0])
    assert [n.n for n in found.findings if n.kind == "from_round"] == [30]
    for from_round in (-1, 2.5, "x", True, None):
        with pytest.raises(bf.OptionError, match=r"from_round=.* must be a whole number from 0 on"):
            bf.audit(log, from_round=from_round, **WAYS)
    other = bf.audit(log.rounds(30, 80), prior=bf.audit(log.before(30), **WAYS), **WAYS)
    with pytest.raises(bf.OptionError, match="from_round"):
        bf.merge(bf.audit(log.before(30), from_round=3, **WAYS), other)


def test_groups_of_arms_and_models_judge_the_same_rounds():
    log = random_log(6, 50, 3)
    groups = {"a": "x", "b": "x", "c": "y"}
    table = bf.audit(log, from_round=20, arm_groups=groups, **WAYS).to_dict()["arm_groups"]
    alone = bf.audit(
        log.rounds(20, 50), prior=bf.audit(log.before(20), **WAYS), arm_groups=groups, **WAYS
    )
    assert table == alone.to_dict()["arm_groups"]
    truth = np.clip(np.linspace(0.2, 0.8, 150).reshape(50, 3), 0, 1)
    moving = bf.audit(
        log, from_round=20, truth=bf.rewards.Bernoulli(truth), eps1=0.7, eps2=0.15
    ).to_dict()
    rounds = violating_by_hand(
        np.asarray(log.selection_probability), truth, 0.7, 0.15 + 1e-9, start=20
    )
    assert moving["objective"]["n_violating_rounds"]["mean"] == len(rounds)
    assert moving["objective"]["first_violating_round"]["mean"] == rounds[0]


# -- logs longer than what is kept of them -----------------------------------------------------


def test_long_logs_are_estimated_alike_by_whichever_way_and_say_so(monkeypatch):
    rng = np.random.default_rng(0)
    n, k = 6000, 3
    pi = rng.dirichlet(np.full(k, 4.0), n)
    arm = np.array([rng.choice(k, p=p) for p in pi], np.int32)
    log = bf.History(arm, (rng.random(n) < 0.4).astype(float), selection_probability=pi)
    asked = {"eps1": 0.8, "eps2": 0.3, "seed": 1, "draws": 200}
    exact = bf.audit(log, **asked).to_dict()["objective"]
    assert exact["n_violating_rounds"]["exact"] is True
    truth = bf.rewards.Bernoulli([0.4, 0.4, 0.4])
    known = bf.audit(log, truth=truth, eps1=0.8, eps2=0.3).to_dict()["objective"]
    monkeypatch.setattr(violations, "KEPT_VALUES", 4096)  # 1024 rounds
    whole = bf.audit(log, **asked)
    found = whole.to_dict()["objective"]
    assert found["n_violating_rounds"]["exact"] is False
    assert len(whole.summary.pairs.judged.round) < 2000
    assert "(estimated)" in question_words(whole.to_dict(), "objective")
    assert "estimated_violations" in [n.kind for n in whole.findings]
    # about 1450 of the rounds were looked at; binomial error of a share near 1/4
    share, kept = exact["n_violating_rounds"]["mean"] / n, 350
    error = 4 * n * np.sqrt(share * (1 - share) / kept)
    assert abs(found["n_violating_rounds"]["mean"] - share * n) < error
    assert found["first_violating_round"] == exact["first_violating_round"]
    assert abs(found["last_violating_round"]["mean"] - exact["last_violating_round"]["mean"]) < 400
    for key in ("verdict", "probability_fair", "smallest_eps2"):
        assert found[key] == exact[key]
    for cuts in ([0, 500, n], [0, 1500, 1501, 4000, n], [0, 5999, n]):
        result = bf.audit(log.before(cuts[1]), **asked)
        for start, stop in itertools.pairwise(cuts[1:]):
            part = bf.audit(log.rounds(start, stop), prior=result, **asked)
            result = bf.merge(taken_apart(result), part)
        ours, theirs = result.to_dict(), whole.to_dict()
        for part in ("subjective", "objective"):
            assert_same(ours[part], theirs[part], part)
    # a known truth is counted, whatever the length
    assert bf.audit(log, truth=truth, eps1=0.8, eps2=0.3).to_dict()["objective"] == known


def test_a_violation_between_the_kept_rounds_is_not_denied(monkeypatch):
    monkeypatch.setattr(violations, "KEPT_VALUES", 64)
    pi = np.full((400, 2), 0.5)
    pi[333] = [0.9, 0.1]
    log = bf.History(np.arange(400) % 2, np.full(400, np.nan), selection_probability=pi)
    found = bf.audit(log, eps1=0, eps2=0.05, seed=1, draws=20).to_dict()["objective"]
    assert found["verdict"] == "unfair"
    assert found["n_violating_rounds"] == {
        "mean": 1, "lower": 1, "upper": 1, "exact": False, "draws": 20
    }  # fmt: skip


# -- who judges --------------------------------------------------------------------------------


def oracle_log(n=400):
    """A calibrated rule that knows the truth: P* of (.8, .3), from the first round on."""
    rng = np.random.default_rng(2)
    p = float(bf.best_arm_probability(bf.rewards.Bernoulli([0.8, 0.3])).values[0])
    arm = (rng.random(n) > p).astype(np.int32)
    reward = (rng.random(n) < np.array([0.8, 0.3])[arm]).astype(float)
    return bf.History(arm, reward, selection_probability=np.tile([p, 1 - p], (n, 1)))


def test_a_rule_that_knew_more_is_not_accused_where_the_truth_is_known():
    truth = bf.rewards.Bernoulli([0.8, 0.3])
    found = bf.audit(oracle_log(), eps2=0, truth=truth)
    assert found.subjective_verdict == "unfair" and found.objective_verdict == "fair"
    assert found.verdict == "fair"
    assert found.regret_objective.value == pytest.approx(0, abs=1e-12)
    assert "fairness regret 0.0000 per round" in str(found).splitlines()[3]
    judged = {
        judge: bf.audit(oracle_log(), eps2=0, truth=truth, judge=judge).verdict
        for judge in ("subjective", "objective", "both")
    }
    assert judged == {"subjective": "unfair", "objective": "fair", "both": "fair"}


def test_without_the_truth_both_questions_count_unless_one_is_named():
    asked = {"eps2": 0, "seed": 1}
    verdicts = {}
    for judge in ("both", "subjective", "objective"):
        found = bf.audit(oracle_log(), judge=judge, **asked)
        verdicts[judge] = found.verdict
        assert found.to_dict()["criterion"]["judge"] == judge
        assert ("The verdict is that" in str(found)) == (judge != "both")
    assert verdicts["both"] == verdicts["subjective"] == "unfair"
    assert verdicts["objective"] == found.objective_verdict != "unfair"
    line = one_line(found.to_dict())
    assert line.startswith(f"verdict {found.verdict}, fairness regret ")
    assert "under the beliefs of each round unfair, under the true rewards " in line
    with pytest.raises(bf.OptionError, match=r"judge='objective'.*objective=False"):
        bf.audit(oracle_log(), judge="objective", objective=False)
    with pytest.raises(bf.OptionError, match="judge='me' is not known"):
        bf.audit(oracle_log(), judge="me", seed=1)
    first = bf.audit(oracle_log().before(100), judge="objective", **asked)
    rest = oracle_log().rounds(100, 400)
    assert first.resume(rest).criterion.judge == "objective"
    with pytest.raises(bf.OptionError, match="judge='objective'"):
        first.resume(rest, objective=False)
    with pytest.raises(bf.OptionError, match="judge='objective' and 'both' cannot be merged"):
        bf.merge(first, bf.audit(rest, prior=first, **asked))


def test_groups_lead_with_both_questions():
    logs = {"knew": oracle_log(), "equal": bf.History(
        [0, 1] * 50, [1, 1, 0, 0] * 25, selection_probability=[[0.5, 0.5]] * 100
    )}  # fmt: skip
    group = bf.audit(logs, eps2=0, seed=1)
    numbers, text = group.to_dict(), str(group)
    assert numbers["subjective"] == {
        "verdict": "unfair", "question": "under the beliefs of each round"
    }  # fmt: skip
    assert numbers["objective"]["verdict"] in ("fair", "undetermined")
    assert f"  {'under the beliefs of each round':<36} unfair: 1 unfair, 1 fair" in text
    assert "Verdict: UNFAIR, fairness regret 0.0" in text
    assert bf.audit(logs, eps2=0, seed=1, judge="objective").verdict != "unfair"
    only = bf.audit(logs, eps2=0, objective=False)
    assert only.to_dict()["objective"] is None and "left out on request" in str(only)
