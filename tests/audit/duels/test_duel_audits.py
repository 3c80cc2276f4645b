"""The audit of who is compared, against loops over rounds and draws, and as an instrument."""

import numpy as np
import pytest
from scipy import integrate

import bayesfair as bf
from bayesfair.audit.duels.law import windows_of
from bayesfair.comparisons import Comparisons, DuelLog
from bayesfair.errors import ArmError, DataError, OptionError, ProbabilityError
from bayesfair.kernels.laws.races import race_total_variation
from bayesfair.policies.duels import FairSDDTS
from bayesfair.simulation.duels import simulate_duels


def race_tv(a, b):
    """Total variation of exponential laws with rates a and b, by quadrature."""

    def density_gap(x):
        return abs(a * np.exp(-a * x) - b * np.exp(-b * x))

    cross = np.log(a / b) / (a - b) if a != b else 1.0
    parts = integrate.quad(density_gap, 0, cross)[0], integrate.quad(density_gap, cross, 60)[0]
    return sum(parts) / 2


@pytest.mark.parametrize("ratio", [1.0, 1.0001, 1.5, 2.0, 7.0, 300.0])
def test_race_divergence_is_that_of_exponentials(ratio):
    expected = race_tv(ratio, 1.0)
    assert float(race_total_variation(np.log(ratio))) == pytest.approx(expected, abs=1e-8)
    assert float(race_total_variation(-np.log(ratio))) == pytest.approx(expected, abs=1e-8)


def test_race_divergence_at_the_ends():
    assert race_total_variation(np.array([0.0, 1e-9, 800.0])) == pytest.approx(
        [0, 1e-9 / np.e, 1], rel=1e-6
    )


def tree_of(log_worth, items):
    import xarray as xr

    log_worth = np.asarray(log_worth, dtype=float)[None]
    group = xr.Dataset({"log_worth": (("chain", "draw", "item"), log_worth)}, {"item": items})
    tree = xr.DataTree.from_dict({"/posterior": group})
    tree.attrs.update(model="bradley_terry", prior="given", method="given")
    return tree


def random_log(rng, n, items, pairs, nu):
    """Duels drawn from pair probabilities (n, k, k); outcomes from worths."""
    k = len(items)
    drawn = np.array([rng.choice(k * k, p=np.nan_to_num(p).ravel()) for p in pairs])
    left, right = drawn // k, drawn % k
    won = rng.random(n) < nu[left] / (nu[left] + nu[right])
    names = np.array(items, dtype=object)
    return Comparisons.from_duels(
        names[left], names[right], np.where(won, "left", "right"), items=items, keep_rows=True
    )


@pytest.mark.parametrize("slot", ["first", "mean"])
def test_objective_part_against_loops(slot):
    rng = np.random.default_rng(5)
    items, n, k = ["a", "b", "c", "d"], 40, 4
    pairs = rng.gamma(1.0, size=(n, k, k)) * (1 - np.eye(k))
    pairs[10:30] = pairs[10]  # runs of equal rows
    pairs[20:, 3, :] = pairs[20:, :, 3] = np.nan  # d goes
    pairs /= np.nansum(pairs, axis=(1, 2), keepdims=True)
    log = random_log(rng, n, items, pairs, np.array([4.0, 2.0, 1.0, 1.0]))
    draws = rng.normal(size=(7, k))
    eps1 = 0.5
    audit = bf.audit_comparisons(
        log, slot=slot, pair_probability=pairs, fit=tree_of(draws, items), eps1=eps1, seed=1
    ).to_dict()
    needed, regret = [], []
    for worth in np.exp(draws):
        worst, total = 0.0, 0.0
        for p in pairs:
            on = [i for i in range(k) if not np.isnan(p[i]).all()]
            first = [np.nansum(p[i]) for i in range(k)]
            pi = first
            if slot == "mean":
                pi = [(first[i] + np.nansum(p[:, i])) / 2 for i in range(k)]
            for i in on:
                for j in on:
                    d = race_tv(worth[i], worth[j]) if i != j else 0.0
                    worst = max(worst, abs(pi[i] - pi[j]) - eps1 * d)
                total += max(worth[i] / worth[on].sum() - pi[i], 0)
        needed.append(worst)
        regret.append(total)
    objective, calibration = audit["objective"], audit["calibration"]["objective"]
    assert objective["smallest_eps2"]["mean"] == pytest.approx(np.mean(needed), abs=1e-7)
    assert objective["smallest_eps2"]["upper"] == pytest.approx(
        np.quantile(needed, 0.975), abs=1e-7
    )
    assert calibration["regret_total"] == pytest.approx(np.mean(regret), abs=1e-9)
    assert calibration["regret_per_round"] == pytest.approx(np.mean(regret) / n, abs=1e-9)
    at = [row for row in audit["frontier"] if row["eps1"] == eps1]
    assert at[0]["objective"]["mean"] == pytest.approx(np.mean(needed), abs=1e-7)
    chance = np.mean(np.array(needed) <= 0.05 + 1e-9)
    assert objective["probability_fair"] == chance
    for item in audit["items"]:
        i = items.index(item["item"])
        share = [
            np.nansum(p[i]) if slot == "first" else (np.nansum(p[i]) + np.nansum(p[:, i])) / 2
            for p in pairs
        ]
        assert item["selection_mean"] == pytest.approx(np.mean(share))


def test_subjective_part_against_refits_before_each_round():
    rng = np.random.default_rng(6)
    items, n, k = ["a", "b", "c"], 30, 3
    pairs = rng.gamma(1.0, size=(n, k, k)) * (1 - np.eye(k))
    pairs /= pairs.sum(axis=(1, 2), keepdims=True)
    nu = np.array([5.0, 2.0, 1.0])
    log = random_log(rng, n, items, pairs, nu)
    audit = bf.audit_comparisons(log, pair_probability=pairs, eps1=1, seed=1).to_dict()
    left, right, outcome = (a[log.cell] for a in (log.left, log.right, log.outcome))
    excess, regret = np.zeros(n), np.zeros(n)
    for t in range(n):  # 30 rounds: beliefs are refreshed before each
        believed = np.zeros(k)
        if t:
            names = np.array(items, dtype=object)
            won = np.where(outcome[:t] == 0, "left", "right")
            before = Comparisons.from_duels(
                names[left[:t]], names[right[:t]], won, items=items, winner_is="side"
            )
            tree = bf.fit(before, seed=1, draws=400, method="laplace")
            believed = tree["mode"]["log_worth"].values
        pi, worth = pairs[t].sum(axis=1), np.exp(believed)
        gap = np.abs(pi[:, None] - pi) - race_total_variation(believed[:, None] - believed)
        np.fill_diagonal(gap, 0)
        excess[t] = max(gap.max(), 0)
        regret[t] = np.maximum(worth / worth.sum() - pi, 0).sum()
    found = audit["subjective"]
    assert found["smallest_eps2"] == pytest.approx(excess.max(), abs=1e-7)
    assert found["worst"]["round"] == int(excess.argmax())
    assert found["n_violating_rounds"] == int((excess > 0.05 + 1e-9).sum())
    assert audit["calibration"]["subjective"]["regret_total"] == pytest.approx(
        regret.sum(), abs=1e-6
    )


@pytest.mark.parametrize("exploitation", ["A", "B", "C"])
def test_simulated_rules_are_seen_as_they_were_logged(exploitation):
    worth = {"a": 3, "b": 2, "c": 1}
    log = simulate_duels(FairSDDTS(C=15, exploitation=exploitation), worth, 1500, seed=2)
    audit = bf.audit_comparisons(log, worth=worth, seed=1).to_dict()
    regret = audit["calibration"]["objective"]
    assert regret["regret_total"] == pytest.approx(log.fairness_regret(worth).sum())
    assert regret["exact"]
    assert regret["lower"] == regret["regret_per_round"] == regret["upper"]
    assert audit["log"]["selection"] == "full"
    assert audit["objective"]["verdict"] in ("fair", "unfair")
    assert not [text for text in audit["notices"] if "do not match" in text]


def test_top_two_pairs_leave_a_regret_that_no_learning_removes():
    # theory: with the true worths 3:2:1 the mean slot of the top-two rule is .075 short
    p = np.array([3.0, 2.0, 1.0]) / 6
    pairs = p[:, None] * p / (1 - p)[:, None] * (1 - np.eye(3))
    rng = np.random.default_rng(1)
    log = random_log(rng, 200, list("abc"), np.broadcast_to(pairs, (200, 3, 3)), 6 * p)
    worth = dict(zip("abc", p, strict=True))
    audit = bf.audit_comparisons(log, slot="mean", pair_probability=pairs, worth=worth, seed=1)
    regret = audit.to_dict()["calibration"]["objective"]["regret_per_round"]
    assert regret == pytest.approx(0.075, abs=5e-4)
    assert "no item can have more than 1/2" in str(audit)


def arena(rng, n, share, nu, outcome=True):
    """Duels of two different items, the first by `share`, the second among the others."""
    k = len(share)
    left = rng.choice(k, n, p=share)
    rest = np.array([rng.choice(k, p=np.where(np.arange(k) == i, 0, share) / (1 - share[i]))
                     for i in left])  # fmt: skip
    won = rng.random(n) < nu[left] / (nu[left] + nu[rest])
    names = np.array([chr(97 + i) for i in range(k)], dtype=object)
    return Comparisons.from_duels(
        names[left], names[rest], np.where(won, "left", "right"), items=names, keep_rows=True
    )


@pytest.mark.statistical
def test_limits_of_windows_hold_together():
    rng = np.random.default_rng(9)
    share = np.array([0.4, 0.3, 0.2, 0.1])
    missed = 0
    for _ in range(200):
        log = arena(rng, 300, share, np.ones(4))
        windows = windows_of(DuelLog.from_comparisons(log), 60, 0.05)
        inside = (windows.lower <= share) & (share <= windows.upper)
        missed += not inside[~np.isnan(windows.share)].all()
    # at most 5 % of 200: P(Binomial(200, .05) > 19) < .003
    assert missed <= 19


@pytest.mark.statistical
def test_windows_accuse_no_even_arena_and_find_a_lopsided_one():
    rng = np.random.default_rng(10)
    accused = found = 0
    for run in range(5):
        even = arena(rng, 1200, np.full(4, 0.25), np.ones(4))
        audit = bf.audit_comparisons(even, worth=np.ones(4), seed=run)
        accused += audit.to_dict()["objective"]["verdict"] == "unfair"
        lopsided = arena(rng, 1200, np.array([0.55, 0.15, 0.15, 0.15]), np.ones(4))
        audit = bf.audit_comparisons(lopsided, worth=np.ones(4), seed=run)
        found += audit.to_dict()["objective"]["verdict"] == "unfair"
        lower = audit.to_dict()["calibration"]["objective"]["lower"]
        assert lower <= 0.3  # the true regret: .55 against .25
    assert accused <= 1  # simultaneous error 5 %: P(Binomial(5, .05) > 1) < .03
    assert found == 5


def test_items_that_came_and_went_are_held_to_their_time():
    rng = np.random.default_rng(11)
    early = arena(rng, 1000, np.full(3, 1 / 3), np.ones(3))
    late = arena(rng, 1000, np.full(4, 1 / 4), np.ones(4))
    names = np.array(list("abcd"), dtype=object)
    parts = [
        [names[getattr(log, side)[log.cell]] for side in ("left", "right")] for log in (early, late)
    ]
    left, right = (np.concatenate([part[s] for part in parts]) for s in (0, 1))
    log = Comparisons.from_duels(left, right, ["left", "right"] * 1000, items=names, keep_rows=True)
    audit = bf.audit_comparisons(log, worth=np.ones(4), seed=1)
    numbers = audit.to_dict()
    assert numbers["objective"]["verdict"] != "unfair"
    assert any("1 item came or went: 'd'" in text for text in numbers["notices"])
    d = numbers["items"][3]
    assert d["first_round"] >= 1000
    # taken as on offer throughout, its absence would look unfair
    everywhere = bf.audit_comparisons(
        log, worth=np.ones(4), offered=np.ones((2000, 4), bool), seed=1
    )
    assert everywhere.to_dict()["objective"]["verdict"] == "unfair"
    offered = np.ones((2000, 4), bool)
    offered[:1000, 3] = False
    told = bf.audit_comparisons(log, worth=np.ones(4), offered=offered, seed=1)
    assert told.to_dict()["objective"]["verdict"] != "unfair"
    assert 1000 in told.windows.start


def test_probabilities_that_contradict_the_duels_are_noticed():
    rng = np.random.default_rng(12)
    log = arena(rng, 400, np.full(3, 1 / 3), np.ones(3))
    even = (1 - np.eye(3)) / 6
    found = bf.audit_comparisons(log, pair_probability=even, seed=1).to_dict()["findings"]
    assert [f["kind"] for f in found] == ["cannot_fail"]
    skew = np.array([0.6, 0.2, 0.2])
    audit = bf.audit_comparisons(log, selection_probability=skew, seed=1)
    (text,) = [f["text"] for f in audit.to_dict()["findings"] if f["kind"] == "choices"]
    assert "do not match the duels: 'a'" in text
    z = (np.bincount(log.left[log.cell], minlength=3)[0] - 240) / np.sqrt(400 * 0.24)
    assert f"z = {z:.1f}" in text


def test_ties_and_skipped_rows():
    log = Comparisons.from_duels(
        list("abab"), list("bcca"), ["left", "tie", "?", "right"], unknown="skip", keep_rows=True
    )
    even = np.full((4, 3), 1 / 3)
    audit = bf.audit_comparisons(log, selection_probability=even, seed=1).to_dict()
    assert audit["log"]["n_rounds"] == 3
    assert audit["log"]["n_skipped"] == 1
    assert audit["criterion"]["model"] == "davidson"
    assert audit["objective"]["smallest_eps2"]["upper"] == pytest.approx(0, abs=1e-12)


def test_json_keys_and_report():
    import json

    rng = np.random.default_rng(13)
    log = arena(rng, 300, np.full(3, 1 / 3), np.ones(3))
    for options in ({}, {"pair_probability": (1 - np.eye(3)) / 6}):
        audit = bf.audit_comparisons(log, seed=1, **options)
        numbers = json.loads(json.dumps(audit.to_dict(), allow_nan=False))
        assert list(numbers) == [
            "bayesfair", "verdict", "subjective", "objective", "consistent", "checks", "log",
            "criterion", "calibration", "items", "frontier", "notices", "findings",
        ]  # fmt: skip
        both = {
            "verdict", "smallest_eps2", "worst", "first_violating_round", "last_violating_round",
            "n_violating_rounds", "n_violating_windows", "n_duels_for_decision",
        }  # fmt: skip
        assert set(numbers["subjective"]) == both | {"smallest_eps2_upper"}
        assert set(numbers["objective"]) == both | {
            "probability_fair", "probability_fair_lower", "probability_fair_upper",
        }  # fmt: skip
        assert numbers["criterion"]["from_round"] == 0
        assert numbers["criterion"]["judge"] == "both"
        for part in numbers["calibration"].values():
            assert list(part) == ["regret_total", "regret_per_round", "lower", "upper", "exact"]
        assert [row["eps1"] for row in numbers["frontier"]] == [0.25 * i for i in range(9)]
        text = str(audit)
        assert f"Verdict: {audit.verdict.upper()}" in text
        assert "Smooth fairness" in text
        assert "Calibrated fairness" in text
        assert repr(audit) == f"DuelAudit(memory: 300 duels, {audit.verdict})"


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"slot": "left"}, OptionError, "slot='left'"),
        ({"window": 0}, OptionError, "window"),
        ({"worth": {"a": 1, "b": 2}}, ArmError, "'c'"),
        ({"worth": [1, 2, -1]}, DataError, "positive"),
        ({"worth": [1, 1, 1], "draws": 100}, OptionError, "excludes"),
        ({"model": "thurstone"}, OptionError, "Plackett-Luce worths"),
        ({"pair_probability": np.full((3, 3), 1 / 8)}, ProbabilityError, "round 0.*sum to 1.125"),
        ({"pair_probability": np.ones((2, 3, 3)) / 9}, DataError, "shape"),
        ({"selection_probability": np.ones((5, 3)) / 3}, DataError, "a row per duel"),
        ({"selection_probability": [1.2, -0.2, 0.0]}, ProbabilityError, "round 0.*'a'.*1.2"),
        ({"selection_probability": [0.5, 0.5, 0], "window": 5}, OptionError, "window="),
        (
            {"selection_probability": [0.5, 0.5, 0], "pair_probability": np.eye(3) / 3},
            OptionError,
            "not both",
        ),
        ({"eps1": -1}, OptionError, "eps1"),
        ({"selection_probability": ["x"] * 3}, DataError, "numbers only"),
        ({"pair_probability": "abc"}, DataError, "numbers only"),
        ({"propensity": ["a"] * 60}, DataError, "numbers only"),
        ({"worth": "abc"}, DataError, "numbers only"),
        ({"worth": {"a": "x", "b": 1, "c": 1}}, DataError, "numbers only"),
        ({"offered": "x"}, DataError, "numbers only"),
        ({"fit": 3}, OptionError, "that bayesfair.fit returned"),
        ({"worth": [1, 1, 1], "prior_sd": -3}, OptionError, "prior_sd"),
        ({"worth": [1, 1, 1], "draws": -1}, OptionError, "draws"),
        ({"worth": [1, 1, 1], "seed": None}, OptionError, "seed"),
    ],
)
def test_bad_input_is_named(options, kind, words):
    log = arena(np.random.default_rng(1), 60, np.full(3, 1 / 3), np.ones(3))
    with pytest.raises(kind, match=f"(?s){words}"):
        bf.audit_comparisons(log, **{"seed": 1, **options})


def test_what_is_no_log_of_duels():
    with pytest.raises(OptionError, match="keep_rows=True"):
        bf.audit_comparisons(Comparisons.from_counts(["a"], ["b"], [7], [3]), seed=1)
    with pytest.raises(OptionError, match="these are rankings"):
        bf.audit_comparisons(Comparisons.from_rankings([["a", "b"]]), seed=1)
    with pytest.raises(OptionError, match="needs a DuelLog or Comparisons, got History"):
        bf.audit_comparisons(bf.History(["a"], [1]), seed=1)
