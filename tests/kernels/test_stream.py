"""The streaming audit against enumeration of outcomes, pairs and rounds, one by one."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayesfair.kernels.laws.best_arm import bernoulli_best_arm
from bayesfair.kernels.log import stream_blocks
from bayesfair.kernels.log.conjugate import start_table
from bayesfair.kernels.log.part_result import TOLERANCES
from bayesfair.kernels.log.stream import stream_bernoulli

REFERENCE = Path(__file__).resolve().parents[1] / "reference"
GRID = [0.0, 0.25, 0.5, 1.0, 1.5, 2.0]


def beta_start(alpha, beta):
    return start_table(np.stack([alpha, beta], axis=1))


def flat(result):
    """All numbers of a result by one name each."""
    sums = result.sums._asdict()
    names = {"p_best": "p_best_sum", "selection": "pi_sum", "selection_variance": "pi_var_sum",
             "all_zero": "all_zero_sum"}  # fmt: skip
    numbers = {names.get(name, name): value for name, value in sums.items()}
    return SimpleNamespace(
        end=result.end, **result.pairs._asdict(), **numbers, **result.rounds._asdict()
    )


def streamed(*args, **options):
    return flat(stream_bernoulli(*args, **options))


def enumerated_best(m: np.ndarray) -> np.ndarray:
    """P* by the sum over all 2^k outcomes."""
    k = m.size
    outcomes = (np.arange(2**k)[:, None] >> np.arange(k)) & 1
    chance = np.prod(np.where(outcomes == 1, m, 1 - m), axis=1)
    best = np.where(outcomes.any(axis=1, keepdims=True), outcomes, 1)
    return np.asarray((chance[:, None] * best / best.sum(axis=1, keepdims=True)).sum(axis=0))


def audited_by_hand(log, grid, asked, eps2, *, offered=None, known_at=None):
    """Every number of the audit by the definitions, with loops."""
    arm, reward, pi, alpha, beta = log
    n_rounds, k = len(arm), len(alpha)
    known_at = np.arange(1, n_rounds + 1) if known_at is None else known_at
    out = {
        "frontier": np.zeros(len(grid)), "regret": [], "p_best_chosen": [], "smallest_eps2": [],
        "p_best": np.full((n_rounds, k), np.nan), "excess": [], "n_still": 0, "n_moved": 0,
        "plays": np.zeros(k), "n_offered": np.zeros(k), "all_zero_sum": 0.0,
        "pair": [],
    }  # fmt: skip
    before = None
    for t in range(n_rounds):
        a, b = np.array(alpha, float), np.array(beta, float)
        for s in range(t):
            if known_at[s] <= t and not np.isnan(reward[s]):
                a[arm[s]] += reward[s]
                b[arm[s]] += 1 - reward[s]
        m = a / (a + b)
        on = np.ones(k, bool) if offered is None else offered[t].copy()
        if pi is not None:
            on &= ~np.isnan(pi[t])
        p_best = np.full(k, np.nan)
        p_best[on] = enumerated_best(m[on])
        out["p_best"][t] = p_best
        out["p_best_chosen"].append(p_best[arm[t]])
        out["plays"][arm[t]] += 1
        out["n_offered"] += on
        out["all_zero_sum"] += np.prod(1 - m[on])
        if pi is not None:
            row = np.where(on, pi[t], np.nan)
            out["regret"].append(np.maximum(p_best[on] - row[on], 0).sum())
            best, found = -np.inf, (-1, -1)
            for e, eps1 in enumerate(grid):
                for i in range(k):
                    for j in range(i + 1, k):
                        if on[i] and on[j]:
                            excess = abs(row[i] - row[j]) - eps1 * abs(m[i] - m[j])
                            out["frontier"][e] = max(out["frontier"][e], excess)
                            if e == asked and excess > best + 1e-12:
                                best, found = excess, (i, j) if row[i] >= row[j] else (j, i)
            out["excess"].append(best)
            out["pair"].append(found)
            out["smallest_eps2"].append(max(best, 0.0))
        if before is not None and np.array_equal(before[0], a) and np.array_equal(before[1], b):
            if pi is None:
                out["n_still"] += 1
            elif np.array_equal(np.isnan(before[2]), np.isnan(row)):
                out["n_still"] += 1
                out["n_moved"] += bool(np.nanmax(np.abs(before[2] - row)) > 1e-9)
        before = (a, b, row if pi is not None else None)
    out["p_best_sum"] = np.nansum(out["p_best"], axis=0)
    if pi is not None:
        rows = pi if offered is None else np.where(offered, pi, np.nan)
        out["pi_sum"], out["pi_var_sum"] = np.nansum(rows, axis=0), np.nansum(rows * (1 - rows), 0)
        excess = np.array(out["excess"])
        # rounding decides where an excess is exactly at its limit
        out["n_violating"] = [
            [(excess > eps2 + tol + side * 1e-12).sum() for tol in TOLERANCES] for side in (1, -1)
        ]
        out["worst_excess"] = excess.max()
        if excess.max() > -np.inf:
            out["worst_round"] = int(np.flatnonzero(excess >= excess.max() - 1e-12)[0])
            out["worst_pair"] = out["pair"][out["worst_round"]]
        else:
            out["worst_round"], out["worst_pair"] = -1, (-1, -1)
    return out


def assert_same(result, expected, names):
    for name in names:
        np.testing.assert_allclose(
            getattr(result, name), expected[name], rtol=1e-11, atol=1e-12, err_msg=name
        )


ALWAYS = ("p_best_chosen", "p_best_sum", "plays", "n_offered", "all_zero_sum", "n_still", "p_best")
WITH_PI = (
    "frontier", "worst_excess", "worst_round", "worst_pair", "regret", "pi_sum", "pi_var_sum",
    "n_moved", "smallest_eps2", "pair",
)  # fmt: skip


@st.composite
def logs(draw):
    """A log with everything that may occur: delays, unobserved rewards, arms that come and go."""
    k = draw(st.integers(1, 5))
    n_rounds = draw(st.integers(1, 24))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    pi = rng.dirichlet(np.full(k, draw(st.sampled_from([0.2, 1.0, 30.0]))), n_rounds)
    repeated = np.flatnonzero(rng.random(n_rounds) < 0.3)
    pi[repeated[repeated > 0]] = pi[repeated[repeated > 0] - 1]
    if draw(st.booleans()):
        pi = np.round(pi, 1)
    on = np.ones((n_rounds, k), bool)
    if draw(st.booleans()):
        on = rng.random((n_rounds, k)) < 0.7
        on[np.arange(n_rounds), rng.integers(k, size=n_rounds)] = True
        pi = np.where(on, pi, np.nan)
    arm = np.array([rng.choice(np.flatnonzero(row)) for row in on], dtype=np.int32)
    reward = rng.integers(0, 2, n_rounds).astype(float)
    if draw(st.booleans()):
        reward[rng.random(n_rounds) < 0.4] = np.nan
    known_at = None
    if draw(st.booleans()):
        known_at = np.arange(1, n_rounds + 1) + rng.geometric(0.4, n_rounds) - 1
    jeffreys = draw(st.booleans())
    alpha, beta = (np.full((2, k), 0.5)) if jeffreys else rng.gamma(1.0, 2.0, (2, k)) + 0.01
    return arm, reward, pi, on, known_at, alpha, beta, draw(st.sampled_from([0.0, 0.05, 0.3]))


@settings(max_examples=150, deadline=None)
@given(logs(), st.integers(0, len(GRID) - 1))
def test_every_number_is_that_of_the_definitions(log, asked):
    arm, reward, pi, _, known_at, alpha, beta, eps2 = log
    result = streamed(
        arm, reward, pi, state=beta_start(alpha, beta), eps1_grid=GRID, eps1_index=asked,
        eps2=eps2, known_at=known_at, want_rounds=True,
    )  # fmt: skip
    expected = audited_by_hand((arm, reward, pi, alpha, beta), GRID, asked, eps2, known_at=known_at)
    assert_same(result, expected, ALWAYS + WITH_PI)
    fewest, most = expected["n_violating"]
    assert np.all((fewest <= result.n_violating) & (result.n_violating <= most))


@settings(max_examples=40, deadline=None)
@given(logs())
def test_offered_without_a_whole_rule(log):
    arm, reward, _, on, known_at, alpha, beta, _ = log
    result = streamed(
        arm, reward, None, state=beta_start(alpha, beta), eps1_grid=GRID, eps1_index=0, eps2=0.0,
        offered=on, known_at=known_at, want_rounds=True,
    )  # fmt: skip
    expected = audited_by_hand(
        (arm, reward, None, alpha, beta), GRID, 0, 0.0, offered=on, known_at=known_at
    )
    assert_same(result, expected, ALWAYS)
    assert result.regret.size == 0
    assert result.worst_pair == (-1, -1)
    assert result.smallest_eps2 is None


@settings(max_examples=60, deadline=None)
@given(logs(), st.lists(st.integers(0, 24), max_size=4))
def test_parts_chain_to_the_whole(log, cuts):
    arm, reward, pi, _, known_at, alpha, beta, eps2 = log
    n_rounds = len(arm)
    options = {"eps1_grid": GRID, "eps1_index": 2, "eps2": eps2, "want_rounds": True}
    whole = streamed(
        arm,
        reward,
        pi,
        state=beta_start(alpha, beta),
        known_at=known_at,
        **options,
    )
    state, parts = beta_start(alpha, beta), []
    edges = [0, *sorted(min(c, n_rounds) for c in cuts), n_rounds]
    for start, stop in itertools.pairwise(edges):
        later = None if known_at is None else known_at[start:stop] - start
        part = streamed(
            arm[start:stop], reward[start:stop], pi[start:stop], state=state, known_at=later,
            **options,
        )  # fmt: skip
        parts.append(part)
        state = part.end
    for name in ("regret", "p_best_chosen", "smallest_eps2", "pair", "p_best"):
        joined = np.concatenate([getattr(part, name) for part in parts])
        np.testing.assert_allclose(joined, getattr(whole, name), atol=1e-13, err_msg=name)
    for name in ("p_best_sum", "pi_sum", "pi_var_sum", "plays", "n_offered", "all_zero_sum",
                 "n_still", "n_moved", "n_violating"):  # fmt: skip
        total = sum(np.asarray(getattr(part, name), float) for part in parts)
        np.testing.assert_allclose(total, getattr(whole, name), atol=1e-12, err_msg=name)
    np.testing.assert_allclose(
        np.max([part.frontier for part in parts], axis=0), whole.frontier, atol=1e-13
    )
    np.testing.assert_allclose(state.parameters, whole.end.parameters, rtol=1e-14)
    assert state.changed == whole.end.changed
    # rewards that become known together may be listed in any order
    for ours, theirs in zip(_waiting(state), _waiting(whole.end), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(state.last_pi, whole.end.last_pi)


def _waiting(state):
    order = np.lexsort((state.pending_reward, state.pending_arm, state.pending_at))
    return state.pending_at[order], state.pending_arm[order], state.pending_reward[order]


def random_log(k, n_rounds, seed, *, learns=True):
    """A log whose rule follows the observed means, as real ones do."""
    rng = np.random.default_rng(seed)
    theta = rng.uniform(0.05, 0.8, k)
    arm = np.empty(n_rounds, np.int32)
    won, seen = np.full(k, 0.5), np.ones(k)
    pi = np.empty((n_rounds, k))
    reward = np.empty(n_rounds)
    for t in range(n_rounds):
        weight = np.exp(3 * won / seen) if learns else rng.gamma(1.0, size=k)
        pi[t] = weight / weight.sum()
        arm[t] = min(np.searchsorted(np.cumsum(pi[t]), rng.random()), k - 1)
        reward[t] = rng.random() < theta[arm[t]]
        won[arm[t]] += reward[t]
        seen[arm[t]] += 1
    return arm, reward, pi


def equal_results(one, two):
    for name in vars(one):
        if name == "end":
            for a, b in zip(one.end, two.end, strict=True):
                np.testing.assert_array_equal(a, b)
        elif getattr(one, name) is not None:
            np.testing.assert_array_equal(getattr(one, name), getattr(two, name), err_msg=name)


@pytest.mark.parametrize("k", [1, 3, 11, 24])
@pytest.mark.parametrize("kind", ["plain", "delayed", "offered", "chosen"])
def test_threads_give_identical_numbers(k, kind, monkeypatch):
    monkeypatch.setattr(stream_blocks, "BLOCK", 64)
    n_rounds = 700
    arm, reward, pi = random_log(k, n_rounds, 3)
    rng = np.random.default_rng(1)
    known_at = np.arange(1, n_rounds + 1) + rng.integers(0, 90, n_rounds)
    if kind == "offered":
        hidden = rng.random(pi.shape) < 0.2
        hidden[np.arange(n_rounds), arm] = False
        pi = np.where(hidden, np.nan, pi)
    results = [
        streamed(
            arm, reward, None if kind == "chosen" else pi, threads=threads, want_rounds=True,
            state=start_table(np.tile([0.3, 0.7], (k, 1))), eps1_grid=GRID, eps1_index=3,
            eps2=0.01, known_at=known_at if kind == "delayed" else None,
        )
        for threads in (1, 2, 3)
    ]  # fmt: skip
    equal_results(results[0], results[1])
    equal_results(results[0], results[2])


@pytest.mark.parametrize("k", [1, 2, 3, 8, 12, 17, 40])
@pytest.mark.parametrize("learns", [True, False])
def test_blocks_and_memory_order_do_not_matter(k, learns, monkeypatch):
    arm, reward, pi = random_log(k, 900, 5, learns=learns)
    options = {"eps1_grid": GRID, "eps1_index": 5, "eps2": 0.02, "want_rounds": True}
    state = start_table(np.full((k, 2), 0.5))
    whole = streamed(arm, reward, pi, state=state, **options)
    columns = streamed(arm, reward, np.asfortranarray(pi), state=state, **options)
    equal_results(whole, columns)
    monkeypatch.setattr(stream_blocks, "BLOCK", 100)
    small = streamed(arm, reward, pi, state=state, **options)
    for name in list(vars(whole))[1:]:
        np.testing.assert_allclose(
            getattr(whole, name), getattr(small, name), rtol=1e-12, atol=1e-13, err_msg=name
        )


def fixture_cases():
    return json.loads((REFERENCE / "beta_bernoulli_histories.json").read_text())["cases"]


@pytest.mark.parametrize("case", fixture_cases(), ids=lambda case: case["id"])
@pytest.mark.parametrize("eps1", ["0.0", "0.5", "1.0", "2.0"])
def test_reference_histories(case, eps1):
    k, n_rounds = case["k"], case["T"]
    grid = [0.0, 0.5, 1.0, 2.0]
    rounds = case["rounds"]
    arm, reward = np.array(case["actions"], np.int32), np.array(case["rewards"], float)
    options = {
        "state": start_table(np.full((k, 2), 0.5)), "eps1_grid": grid,
        "eps1_index": grid.index(float(eps1)), "eps2": 0.0, "want_rounds": True,
    }  # fmt: skip
    logged = np.array([r["logged_pi"]["float"] for r in rounds[:n_rounds]]).reshape(n_rounds, k)
    own = np.array([r["sd_ts"]["float"] for r in rounds[:n_rounds]]).reshape(n_rounds, k)
    result = streamed(arm, reward, logged, **options)
    np.testing.assert_allclose(result.p_best, own, rtol=0, atol=1e-13)
    np.testing.assert_allclose(result.end.parameters[:, 0], rounds[-1]["S"]["float"], rtol=1e-15)
    np.testing.assert_allclose(result.end.parameters[:, 1], rounds[-1]["F"]["float"], rtol=1e-15)
    regret = [r["calibration_error"] for r in rounds[:n_rounds]]
    np.testing.assert_allclose(result.regret, regret, rtol=0, atol=1e-13)
    for name, audited in (
        ("logged", result),
        ("sd_ts", streamed(arm, reward, own, **options)),
    ):
        expected = [r[f"eps2_{name}"][eps1] for r in rounds[:n_rounds]]
        np.testing.assert_allclose(audited.smallest_eps2, expected, rtol=0, atol=1e-13)
        largest = max([0.0, *expected])
        assert audited.frontier[grid.index(float(eps1))] == pytest.approx(largest, abs=1e-13)
    if k > 1:
        first = [sorted(r["argmax_logged"][eps1])[0] for r in rounds[:n_rounds]]
        assert [sorted(pair) for pair in result.pair.tolist()] == first


def audited(arm, reward, pi, **options):
    k = pi.shape[1]
    options = {"eps1_grid": GRID, "eps1_index": 3, "eps2": 0.0, "want_rounds": True} | options
    state = options.pop("state", start_table(np.full((k, 2), 0.5)))
    return streamed(arm, reward, pi, state=state, **options)


@pytest.mark.parametrize("k", [2, 3, 7, 18, 19, 33])
def test_sd_ts_needs_nothing_at_eps1_one(k):
    """Its Bernoulli constant is 1: theory, for every log whatever its rule was."""
    arm, reward, pi = random_log(k, 1500, k)
    own = audited(arm, reward, pi).p_best
    result = audited(arm, reward, own)
    assert result.worst_excess < 1e-13
    assert result.frontier[GRID.index(1.0)] < 1e-13
    assert result.n_violating.sum() == 0
    assert result.regret.max() < 1e-13


@pytest.mark.parametrize("k", [4, 25])
def test_raising_eps_never_adds_a_violation(k):
    arm, reward, pi = random_log(k, 800, 9, learns=False)
    by_eps2 = [audited(arm, reward, pi, eps2=e).n_violating for e in (0.0, 0.02, 0.1, 0.3)]
    assert np.all(np.diff(by_eps2, axis=0) <= 0)
    assert np.all(np.diff(by_eps2, axis=1) <= 0)
    by_eps1 = [audited(arm, reward, pi, eps1_index=e).n_violating for e in range(len(GRID))]
    assert np.all(np.diff(by_eps1, axis=0) <= 0)


@pytest.mark.parametrize("k", [5, 22])
def test_later_rounds_never_change_earlier_ones(k):
    arm, reward, pi = random_log(k, 400, 2)
    whole, early = audited(arm, reward, pi), audited(arm[:150], reward[:150], pi[:150])
    for name in ("regret", "p_best_chosen", "smallest_eps2", "pair", "p_best"):
        np.testing.assert_array_equal(getattr(whole, name)[:150], getattr(early, name))


@pytest.mark.parametrize("k", [6, 21])
def test_order_of_arms_does_not_matter(k):
    arm, reward, pi = random_log(k, 500, 8)
    order = np.random.default_rng(0).permutation(k)
    place = np.argsort(order).astype(np.int32)
    one, other = audited(arm, reward, pi), audited(place[arm], reward, pi[:, order])
    for name in ("p_best", "p_best_sum", "pi_sum", "pi_var_sum", "plays", "n_offered"):
        np.testing.assert_allclose(
            getattr(one, name)[..., order], getattr(other, name), rtol=1e-12, atol=1e-14
        )
    for name in ("frontier", "regret", "smallest_eps2", "worst_excess", "n_violating"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=1e-13)


def test_many_arms_that_all_fail_once():
    """prod(1 - m) rises from 2^-1200, below the smallest float, to almost 1 within one block."""
    k = 1200
    arm, reward = np.arange(k, dtype=np.int32), np.zeros(k)
    state = start_table(np.full((k, 2), 0.001))
    result = streamed(
        arm, reward, None, state=state, eps1_grid=[1.0], eps1_index=0, eps2=0.0, want_rounds=True
    )
    for t in (0, 1, 600, 1150, k - 1):
        m = np.where(np.arange(k) < t, 0.001 / 1.002, 0.5)
        np.testing.assert_allclose(
            result.p_best[t], bernoulli_best_arm(m), rtol=1e-9, atol=1e-14, err_msg=str(t)
        )
    np.testing.assert_allclose(result.p_best.sum(axis=1), 1.0, atol=1e-9)
    left = state.parameters[0, 0] / 1.002
    assert result.all_zero_sum == pytest.approx(
        sum((1 - left) ** t * 0.5 ** (k - t) for t in range(k)), rel=1e-9
    )


def test_long_block_does_not_drift():
    k, n_rounds = 30, 8000
    rng = np.random.default_rng(6)
    arm = rng.integers(0, k, n_rounds).astype(np.int32)
    reward = (rng.random(n_rounds) < 0.3).astype(float)
    result = audited(arm, reward, np.full((n_rounds, k), 1 / k))
    pulls, won = np.zeros((n_rounds, k)), np.zeros((n_rounds, k))
    pulls[np.arange(1, n_rounds), arm[:-1]], won[np.arange(1, n_rounds), arm[:-1]] = 1, reward[:-1]
    m = (0.5 + np.cumsum(won, axis=0)) / (1 + np.cumsum(pulls, axis=0))
    np.testing.assert_allclose(result.p_best, bernoulli_best_arm(m), rtol=0, atol=2e-14)


def test_frozen_strided_and_empty_input():
    arm, reward, pi = random_log(4, 60, 1)
    expected = audited(arm, reward, pi)
    for array in (arm, reward, pi):
        array.flags.writeable = False
    equal_results(audited(arm, reward, pi), expected)
    equal_results(audited(arm.astype(np.int64), reward, np.repeat(pi, 2, axis=1)[:, ::2]), expected)
    nothing = audited(arm[:0], reward[:0], pi[:0], state=expected.end)
    assert nothing.end is expected.end
    assert (nothing.worst_round, nothing.frontier.tolist()) == (-1, [0.0] * len(GRID))


def test_wrong_input_is_refused():
    arm, reward, pi = random_log(3, 10, 1)
    with pytest.raises(ValueError, match="ascend"):
        audited(arm, reward, pi, eps1_grid=[1.0, 0.5])
    with pytest.raises(ValueError, match="later than its own round"):
        audited(arm, reward, pi, known_at=np.arange(10))
    with pytest.raises(ValueError, match="expected"):
        audited(arm, reward, pi[:5])
    with pytest.raises(ValueError, match="positive"):
        audited(arm, reward, pi, state=start_table([[0.5, 0.5], [0.0, 1.0], [1.0, 1.0]]))
