"""Users who keep the arm once drawn are found, however they interleave, and nobody else is."""

import itertools
import json

import numpy as np
import pyarrow as pa
import pytest
from command_line import run
from scipy import stats

import bayesfair as bf
from bayesfair.audit.log.users import Users


def log(seed, n=600, n_users=60, k=3, keep=0.0, fixed=False, drop=None):
    """Return arms, rules, users and rewards; users come in random order, and keep their arm."""
    rng = np.random.default_rng(seed)
    user = rng.integers(n_users, size=n)
    pi = np.full((n, k), 1 / k) if fixed else rng.dirichlet(np.full(k, 3.0), n)
    arm, last = np.empty(n, int), {}
    for t in range(n):
        arm[t] = rng.choice(k, p=pi[t])
        if user[t] in last and rng.random() < keep:
            arm[t] = last[user[t]]
        last[user[t]] = arm[t]
    return arm, pi, user, rng.integers(2, size=n)


def history(found, **more):
    arm, pi, user, reward = found
    return bf.History(arm, reward, selection_probability=pi, user=user, **more)


def check(found, **more):
    return bf.audit(history(found, **more), objective=False).checks["sticky_users"]


def by_hand(arm, pi, user):
    """Return n, same, excess and variance of each user's choice over the one before, in a loop."""
    last, n, same, excess, variance = {}, 0, 0, 0.0, 0.0
    for a, x, u in zip(arm, pi, user, strict=True):
        if u in last:
            p = x[last[u]]
            n, same = n + 1, same + (a == last[u])
            excess, variance = excess + (a == last[u]) - p, variance + p * (1 - p)
        last[u] = a
    return n, same, excess, variance


def test_the_sums_are_those_of_a_loop_however_the_log_is_cut():
    arm, pi, user, _ = log(1)
    prints = user.astype(np.uint64) + 5
    prints[::7] = 0  # nobody
    known = prints > 0
    expected = by_hand(arm[known], pi[known], user[known])
    p = pi[np.arange(len(arm)), arm]

    def part(a, b):
        cut = slice(a, b)
        return Users.of("user", a, prints[cut], arm[cut].astype(np.int32), p[cut], pi[cut])

    whole = part(0, 600)
    assert whole.again[:4] == pytest.approx(expected, rel=1e-12)
    for cuts in ((0, 1, 600), (0, 250, 600), (0, 10, 11, 300, 599, 600)):
        pieces = [part(a, b) for a, b in itertools.pairwise(cuts)]
        left = pieces[0]
        for piece in pieces[1:]:
            left = left.merged(piece)
        right = pieces[-1]
        for piece in pieces[-2::-1]:
            right = piece.merged(right)
        for joined in (left, right):
            assert joined.again == pytest.approx(whole.again, rel=1e-12)
            assert joined.prints.tolist() == whole.prints.tolist()
            assert joined.last_arm.tolist() == whole.last_arm.tolist()


def test_with_one_chance_each_time_the_test_is_binomial():
    found = log(2, n=80, n_users=20, fixed=True, keep=0.3)
    n, same, excess, variance = by_hand(*found[:3])
    seen = check(found)
    assert (seen.n, seen.method) == (n, "exact")
    assert seen.statistic == pytest.approx(excess / np.sqrt(variance), rel=1e-12)
    tails = stats.binom.sf(same - 1, n, 1 / 3), stats.binom.cdf(same, n, 1 / 3)
    assert seen.p_value == pytest.approx(min(1, 2 * min(tails)), rel=1e-10)


def test_else_it_is_normal_where_that_is_good_and_a_bound_where_not():
    long, short = log(3), log(3, n=60, n_users=20)
    z = by_hand(*long[:3])[2] / np.sqrt(by_hand(*long[:3])[3])
    seen = check(long)
    assert seen.method == "normal"
    assert seen.p_value == pytest.approx(2 * stats.norm.sf(abs(z)), rel=1e-10)
    _, _, excess, variance = by_hand(*short[:3])
    x = abs(excess)
    seen = check(short)
    assert seen.method == "bound"
    assert seen.p_value == pytest.approx(min(1, 2 * np.exp(-x * x / (2 * variance + 2 * x / 3))))


@pytest.mark.statistical
@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize("logged", ["full", "chosen"])
def test_true_logs_pass_and_sticky_ones_fail(logged, fixed):
    def passed(seed, keep):
        arm, pi, user, reward = log(seed, keep=keep, fixed=fixed, n_users=40)
        rule = (
            {"selection_probability": pi}
            if logged == "full"
            else {"propensity": pi[np.arange(len(arm)), arm]}
        )
        data = bf.History(arm, reward, arms=list("012"), user=user, **rule)
        checks = bf.audit(data, objective=False).checks
        return checks["sticky_users"].passed, checks["sticky"].passed

    # level .001: of 40 logs two alarms have probability .0008
    assert sum(not passed(seed, 0.0)[0] for seed in range(40)) <= 1
    found = [passed(seed, 0.5) for seed in range(100, 110)]
    assert [mine for mine, _ in found] == [False] * 10
    # users interleave: the test of one round against the next is blind to them
    assert all(other for _, other in found)


@pytest.mark.parametrize("keep", [0.0, 0.6])
def test_scanned_resumed_merged_saved_and_grouped_alike(tmp_path, keep):
    arm, pi, user, reward = log(5, keep=keep)
    table = pa.table(
        {"arm": [f"a{i}" for i in arm], "reward": reward, "who": [f"u{i}" for i in user]}
        | {f"p_a{i}": pi[:, i] for i in range(3)}
        | {"half": ["x", "y"] * 300}
    )
    whole = bf.audit(bf.read_history(table, user="who"), objective=False)
    expected = whole.checks["sticky_users"]
    assert expected.passed == (keep == 0.0)
    assert whole.consistent == (keep == 0.0)
    scanned = bf.scan_history(table, user="who", chunk_rounds=70)
    first, second = (bf.read_history(table.slice(a, 300), user="who") for a in (0, 300))
    begun = bf.audit(first, objective=False)
    begun.save(tmp_path / "a.nc")
    loaded = bf.load_audit(tmp_path / "a.nc")
    apart = bf.audit(second, prior=begun.state, objective=False)
    for audit in (
        bf.audit(scanned, objective=False),
        loaded.resume(second),
        bf.merge(begun, apart),
    ):
        seen = audit.checks["sticky_users"]
        assert seen._replace(statistic=0, p_value=0) == expected._replace(statistic=0, p_value=0)
        assert seen.statistic == pytest.approx(expected.statistic, rel=1e-12)
        assert seen.p_value == pytest.approx(expected.p_value, rel=1e-9)
    groups = bf.audit(bf.read_history(table, user="who", by="half"), objective=False)
    for label, cut in (("x", slice(0, None, 2)), ("y", slice(1, None, 2))):
        n, _, excess, variance = by_hand(arm[cut], pi[cut], user[cut])
        seen = groups[label].checks["sticky_users"]
        assert seen.n == n
        assert seen.statistic == pytest.approx(excess / np.sqrt(variance), rel=1e-9)
    numbers = json.loads(json.dumps(whole.to_dict(), allow_nan=False))
    assert numbers["checks"]["sticky_users"]["passed"] == (keep == 0.0)
    kinds = [found.kind for found in whole.findings]
    assert ("sticky_users" in kinds) == (keep > 0)


def test_without_the_option_nothing_is_tested_and_parts_must_agree():
    arm, pi, user, reward = log(7)
    plain = bf.History(arm, reward, selection_probability=pi)
    audit = bf.audit(plain, objective=False)
    assert audit.checks["sticky_users"].passed is None
    assert audit.summary.guards.users is None
    with pytest.raises(bf.OptionError) as error:
        bf.audit(history((arm, pi, user, reward)).before(300), objective=False).resume(
            plain.rounds(300, 600)
        )
    assert (error.value.kind, error.value.column) == ("not_the_same", "user")
    with pytest.raises(bf.DataError) as error:
        history((arm, pi, user[:5], reward))
    assert (error.value.kind, error.value.column) == ("length", "user")
    nothing = bf.audit(bf.History(arm, reward, user=user), objective=False).checks["sticky_users"]
    assert nothing.passed is None


def test_the_command_line_follows_users_into_the_next_log(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arm, pi, user, reward = log(9, keep=0.6)
    rows = [
        f"{a},{r},{','.join(map(str, x))},u{u}"
        for a, r, x, u in zip(arm, reward, pi.tolist(), user, strict=True)
    ]
    for name, part in (("all", rows), ("one", rows[:200]), ("two", rows[200:])):
        text = "\n".join(["arm,reward,p_0,p_1,p_2,who", *part])
        (tmp_path / f"{name}.csv").write_text(text + "\n")
    quick = ("--no-objective", "--json", "-")
    whole = run(capsys, "audit", "all.csv", "--user", "who", *quick)
    expected = json.loads(whole.out)["checks"]["sticky_users"]
    n, _, excess, variance = by_hand(arm, pi, user)
    assert expected["n"] == n
    assert expected["statistic"] == pytest.approx(excess / np.sqrt(variance), rel=1e-9)
    scanned = run(capsys, "audit", "all.csv", "--user", "who", "--scan", *quick)
    assert json.loads(scanned.out)["checks"]["sticky_users"] == expected
    first = run(capsys, "audit", "one.csv", "--user", "who", *quick, "--save", "one.nc")
    assert first.status == 0, first.err
    second = run(capsys, "audit", "two.csv", "--resume", "one.nc", *quick)
    seen = json.loads(second.out)["checks"]["sticky_users"]
    assert seen["statistic"] == pytest.approx(expected["statistic"], rel=1e-9)
    gate = run(capsys, "audit", "all.csv", "--user", "who", *quick, "--fail-on", "inconsistent")
    assert gate.status == 1 and "the log contradicts itself" in gate.err
    other = run(capsys, "audit", "two.csv", "--resume", "one.nc", "--user", "arm")
    assert (other.status, other.out) == (2, "") and "--user arm" in other.err
