"""Properties that hold for every log, tried on random ones."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bayesfair as bf
from bayesfair.kernels.laws.best_arm import bernoulli_best_arm


def random_log(seed, n=40, k=3, *, delays=False, holes=False, unobserved=False):
    rng = np.random.default_rng(seed)
    pi = rng.dirichlet(np.ones(k), n)
    arm = np.array([rng.choice(k, p=p) for p in pi])
    if holes and k > 2:
        for t in rng.choice(n, n // 3, replace=False):
            off = rng.choice([i for i in range(k) if i != arm[t]])
            pi[t, off] = np.nan
            pi[t] /= np.nansum(pi[t])
    reward = (rng.random(n) < np.linspace(0.2, 0.8, k)[arm]).astype(float)
    if unobserved:
        reward[rng.random(n) < 0.2] = np.nan
    known_at = np.arange(n) + rng.integers(1, 6, n) if delays else None
    labels = [f"arm {i}" for i in range(k)]
    return bf.History(arm, reward, selection_probability=pi, arms=labels, known_at=known_at)


LOGS = st.builds(
    random_log,
    st.integers(0, 10_000),
    n=st.integers(2, 60),
    k=st.integers(1, 5),
    delays=st.booleans(),
    holes=st.booleans(),
    unobserved=st.booleans(),
)


def numbers(result):
    out = result.to_dict()
    return [
        out["subjective"]["smallest_eps2"],
        out["subjective"]["n_violating_rounds"],
        out["calibration"]["subjective"]["regret_total"],
        out["calibration"]["effective_sample_size"],
        *[a["p_best_subjective"] for a in out["arms"]],
        *[f["subjective"] for f in out["frontier"]],
    ]


@given(LOGS, st.data())
@settings(max_examples=60, deadline=None)
def test_merged_parts_equal_the_whole(log, data):
    cut = data.draw(st.integers(1, max(1, log.n_rounds - 1)))
    if cut >= log.n_rounds:
        return
    whole = bf.audit(log, eps1=1, eps2=0.1, seed=1)
    first = bf.audit(log.before(cut), eps1=1, eps2=0.1, seed=1)
    second = bf.audit(log.rounds(cut, log.n_rounds), eps1=1, eps2=0.1, seed=1, prior=first.state)
    merged = bf.merge(first, second)
    np.testing.assert_allclose(numbers(merged), numbers(whole), rtol=1e-12, atol=1e-12)
    assert merged.to_dict()["subjective"]["worst"] == whole.to_dict()["subjective"]["worst"]
    assert merged.probability_fair == whole.probability_fair
    np.testing.assert_allclose(merged.series()["regret"][-1], whole.series()["regret"][-1])
    np.testing.assert_array_equal(merged.series()["plays"], whole.series()["plays"])


@given(LOGS)
@settings(max_examples=40, deadline=None)
def test_raising_eps_never_adds_a_violation(log):
    counts = [
        bf.audit(log, eps1=eps1, eps2=eps2, objective=False).n_violating_rounds
        for eps1, eps2 in [(0, 0), (0.5, 0), (1, 0), (1, 0.1), (2, 0.1), (2, 0.5)]
    ]
    assert counts == sorted(counts, reverse=True)
    frontier = bf.audit(log, objective=False).summary.pairs.frontier
    assert np.all(np.diff(frontier) <= 1e-15)  # rounding of eps1 * m


@given(LOGS, st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_renaming_and_permuting_arms_changes_nothing_but_their_order(log, random):
    order = list(range(log.n_arms))
    random.shuffle(order)
    place = np.argsort(order)
    permuted = bf.History(
        place[log.arm],
        log.reward,
        selection_probability=log.selection_probability[:, order],
        arms=[log.arms[i] for i in order],
        known_at=log.known_at,
    )
    a = bf.audit(log, eps1=1, eps2=0.1, objective=False)
    b = bf.audit(permuted, eps1=1, eps2=0.1, objective=False)
    assert b.smallest_eps2 == pytest.approx(a.smallest_eps2, abs=1e-12)
    assert b.n_violating_rounds == a.n_violating_rounds
    assert b.regret.value == pytest.approx(a.regret.value, abs=1e-12)
    found = {x["arm"]: x["p_best_subjective"] for x in b.to_dict()["arms"]}
    for x in a.to_dict()["arms"]:
        assert found[x["arm"]] == pytest.approx(x["p_best_subjective"], abs=1e-12)


@given(LOGS, st.data())
@settings(max_examples=40, deadline=None)
def test_later_rounds_never_change_earlier_verdicts(log, data):
    cut = data.draw(st.integers(1, log.n_rounds))
    whole = bf.audit(log, eps1=1, objective=False).rounds().isel(round=slice(0, cut))
    early = bf.audit(log.before(cut), eps1=1, objective=False).rounds()
    for name in ("smallest_eps2", "fairness_regret", "best_arm_probability"):
        np.testing.assert_allclose(whole[name], early[name], rtol=0, atol=1e-12)


def test_a_part_that_does_not_follow_is_refused():
    log = random_log(5)
    first = bf.audit(log.before(10), seed=1)
    stray = bf.audit(log.rounds(10, 40), seed=1)  # started afresh, not from first.state
    with pytest.raises(bf.DataError, match="does not start where the first one ended"):
        bf.merge(first, stray)
    other = bf.audit(log.rounds(10, 40), eps1=1, seed=1, prior=first.state)
    with pytest.raises(bf.OptionError, match="eps1"):
        bf.merge(first, other)


def test_scan_gives_the_numbers_of_the_whole(tmp_path):
    import pyarrow.parquet as pq

    log = random_log(7, n=5000, k=4)
    columns = {"arm": [log.arms[i] for i in log.arm], "reward": log.reward}
    columns |= {f"p_{a}": log.selection_probability[:, i] for i, a in enumerate(log.arms)}
    pq.write_table(pa.table(columns), tmp_path / "log.parquet")
    whole = bf.audit(bf.read_history(tmp_path / "log.parquet"), eps1=1, seed=1)
    scan = bf.scan_history(tmp_path / "log.parquet", chunk_rounds=700)
    parts = bf.audit(scan, eps1=1, seed=1)
    np.testing.assert_allclose(numbers(parts), numbers(whole), rtol=1e-12, atol=1e-12)
    assert parts.to_dict()["subjective"] == whole.to_dict()["subjective"]
    assert parts.rounds().sizes["round"] == 5000


@pytest.mark.parametrize("k", [2, 5])
@pytest.mark.parametrize("written", ["exact", "6 decimals", "float32"])
def test_sd_ts_needs_no_eps2_at_eps1_1_as_logged(k, written):
    """SD_TS's own probabilities satisfy Bernoulli smooth fairness with constant 1."""
    rng = np.random.default_rng(k)
    n = 2000
    a, b = np.full(k, 0.5), np.full(k, 0.5)
    pi, arm, reward = np.empty((n, k)), np.empty(n, int), np.empty(n)
    for t in range(n):
        pi[t] = bernoulli_best_arm(a / (a + b))
        arm[t] = rng.choice(k, p=pi[t] / pi[t].sum())
        reward[t] = rng.random() < 0.1 + 0.7 * arm[t] / k
        a[arm[t]] += reward[t]
        b[arm[t]] += 1 - reward[t]
    if written == "6 decimals":
        pi = np.round(pi, 6)
    elif written == "float32":
        pi = pi.astype(np.float32)
    result = bf.audit(
        bf.History(arm, reward, selection_probability=pi), eps1=1, eps2=0, objective=False
    )
    assert result.n_violating_rounds == 0
    assert result.subjective_verdict == "fair"
    raised = any("were logged to about" in n for n in result.to_dict()["notices"])
    assert raised == (written != "exact")


def test_a_rule_off_by_a_known_margin_is_found_unfair():
    log = random_log(1, n=300, k=2)
    pi = np.where(np.arange(300)[:, None] < 299, 0.5, [[0.95, 0.05]])
    arm = np.where(pi[:, 0] > 0.5, 0, log.arm)
    uneven = bf.History(arm, log.reward, selection_probability=pi, arms=["a", "b"])
    result = bf.audit(uneven, eps1=0, eps2=0.5, seed=1)
    assert result.subjective_verdict == result.objective_verdict == "unfair"
    assert result.to_dict()["subjective"]["worst"]["round"] == 299
    assert result.to_dict()["subjective"]["worst"]["arm"] == "a"
    assert result.smallest_eps2 == pytest.approx(0.9)


def test_read_history_takes_an_earlier_audit_as_what_was_seen_before(tmp_path):
    log = random_log(9, n=60, k=2)
    early = bf.audit(log.before(25), objective=False)
    rest = log.rounds(25, 60)
    path = tmp_path / "rest.csv"
    rows = zip(rest.arm, rest.reward, rest.selection_probability, strict=True)
    path.write_text(
        "arm,reward,p_arm 0,p_arm 1\n"
        + "".join(f"{log.arms[a]},{r},{p[0]!r},{p[1]!r}\n" for a, r, p in
                  ((a, r, p.tolist()) for a, r, p in rows))
    )  # fmt: skip
    read = bf.audit(bf.read_history(path, prior=early.state), objective=False)
    resumed = bf.audit(rest, prior=early.state, objective=False)
    assert read.regret.value == pytest.approx(resumed.regret.value, rel=1e-12)
    assert read.smallest_eps2 == pytest.approx(resumed.smallest_eps2, rel=1e-12)
    assert any("starts mid-run" in n for n in read.findings)


def test_prior_counts_and_prior_parameters_are_the_same_thing():
    log = random_log(3, n=30, k=2)
    shifted = bf.History(
        log.arm, log.reward, selection_probability=log.selection_probability, arms=log.arms,
        prior_counts={"arm 0": (3, 1)},
    )  # fmt: skip
    a = bf.audit(shifted, objective=False)
    b = bf.audit(log, prior={"arm 0": (3.5, 1.5)}, objective=False)
    assert a.regret.value == b.regret.value
    assert a.smallest_eps2 == b.smallest_eps2
