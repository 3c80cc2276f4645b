"""Both questions of an audit of duels: violating duels, what is judged, eps2, opponents."""

import numpy as np
import pytest
from duel_logs import arena, log_of, names_of

import bayesfair as bf
from bayesfair.audit.duels.beliefs import checkpoints
from bayesfair.errors import BayesfairError, OptionError, ProbabilityError
from bayesfair.kernels.laws.races import race_total_variation


def tree_of(log_worth, items):
    import xarray as xr

    values = np.asarray(log_worth, dtype=float)[None]
    group = xr.Dataset({"log_worth": (("chain", "draw", "item"), values)}, {"item": list(items)})
    tree = xr.DataTree.from_dict({"/posterior": group})
    tree.attrs.update(model="bradley_terry", prior="given", method="given")
    return tree


def random_laws(rng, n, k):
    law = rng.dirichlet(np.full(k, 2.0), size=n)
    law[n // 4 : n // 2] = law[n // 4]  # a run of equal rows
    law[n // 2 :, -1] = np.nan  # the last item goes
    return law / np.nansum(law, axis=1, keepdims=True)


def drawn(rng, law, worth):
    k = law.shape[1]
    left = np.array([rng.choice(k, p=np.nan_to_num(p)) for p in law])
    on = ~np.isnan(law)
    right = np.array([rng.choice([j for j in np.flatnonzero(o) if j != i])
                      for i, o in zip(left, on, strict=True)])  # fmt: skip
    won = rng.random(len(law)) < worth[left] / (worth[left] + worth[right])
    return log_of(left, right, won, k)


@pytest.mark.parametrize("from_round", [0, 17])
def test_violating_duels_against_loops_over_duels_and_draws(from_round):
    rng = np.random.default_rng(3)
    n, k, eps1, eps2 = 60, 4, 0.6, 0.2
    law = random_laws(rng, n, k)
    log = drawn(rng, law, np.array([4.0, 2.0, 1.0, 1.0]))
    draws = rng.normal(size=(40, k))
    audit = bf.audit_comparisons(
        log, selection_probability=law, fit=tree_of(draws, log.items), eps1=eps1, eps2=eps2,
        from_round=from_round, seed=1,
    ).to_dict()  # fmt: skip
    counts, firsts, lasts, regrets = [], [], [], []
    for worth in draws:
        violating, regret = [], 0.0
        for t in range(from_round, n):
            on = np.flatnonzero(~np.isnan(law[t]))
            share = np.exp(worth[on]) / np.exp(worth[on]).sum()
            regret += np.maximum(share - law[t, on], 0).sum()
            if any(
                abs(law[t, i] - law[t, j]) - eps1 * race_total_variation(worth[i] - worth[j]) > eps2
                for i in on
                for j in on
                if i < j
            ):
                violating.append(t)
        counts.append(len(violating))
        regrets.append(regret)
        if violating:
            firsts.append(violating[0])
            lasts.append(violating[-1])
    found = audit["objective"]
    for key, values in (
        ("n_violating_rounds", counts),
        ("first_violating_round", firsts),
        ("last_violating_round", lasts),
    ):
        assert found[key]["mean"] == pytest.approx(np.mean(values))
        assert found[key]["lower"] == pytest.approx(np.quantile(values, 0.025))
        assert found[key]["upper"] == pytest.approx(np.quantile(values, 0.975))
    assert 0 < np.mean(counts) < n - from_round
    regret = audit["calibration"]["objective"]
    assert regret["regret_total"] == pytest.approx(np.mean(regrets), abs=1e-9)
    assert regret["regret_per_round"] == pytest.approx(np.mean(regrets) / (n - from_round))
    assert audit["log"]["n_judged"] == n - from_round


@pytest.mark.parametrize("from_round", [0, 25])
def test_violating_duels_under_the_beliefs_against_refits(from_round):
    rng = np.random.default_rng(4)
    n, k, eps1, eps2 = 50, 3, 1.0, 0.15
    law = rng.dirichlet(np.full(k, 4.0), size=n)
    log = drawn(rng, law, np.array([4.0, 2.0, 1.0]))
    left, right, outcome = (part[log.cell] for part in (log.left, log.right, log.outcome))
    assert checkpoints(n).tolist() == list(range(n))  # beliefs are refreshed before each duel
    violating, regret = [], 0.0
    for t in range(from_round, n):
        worth = np.zeros(k)
        if t:
            before = log_of(left[:t], right[:t], outcome[:t] == 0, k)
            worth = bf.fit(before, seed=1, draws=400, method="laplace")["mode"]["log_worth"].values
        gap = np.abs(law[t][:, None] - law[t]) - eps1 * race_total_variation(worth[:, None] - worth)
        if gap[~np.eye(k, dtype=bool)].max() > eps2:
            violating.append(t)
        regret += np.maximum(np.exp(worth) / np.exp(worth).sum() - law[t], 0).sum()
    audit = bf.audit_comparisons(
        log, selection_probability=law, eps1=eps1, eps2=eps2, from_round=from_round, seed=1
    ).to_dict()
    found = audit["subjective"]
    assert found["n_violating_rounds"] == len(violating) > 0
    assert found["first_violating_round"] == violating[0]
    assert found["last_violating_round"] == violating[-1]
    assert audit["calibration"]["subjective"]["regret_total"] == pytest.approx(regret, abs=1e-6)
    if from_round:
        (note,) = [f for f in audit["findings"] if f["kind"] == "from_round"]
        assert (note["value"], note["n"]) == (25, 25)


def test_from_round_keeps_the_estimate_of_single_probabilities_to_later_duels():
    rng = np.random.default_rng(6)
    worth, law = np.array([3.0, 2.0, 1.0]), np.array([0.2, 0.3, 0.5])
    log = arena(rng, 400, law, worth)
    left = log.left[log.cell]
    p = law[left]
    p[:100] = 1.0  # of the first hundred duels nothing is judged
    audit = bf.audit_comparisons(log, propensity=p, worth=worth, from_round=100, seed=1).to_dict()
    terms = np.maximum(1 - (worth / worth.sum())[left[100:]] / law[left[100:]], 0)
    found = audit["calibration"]["objective"]
    assert found["regret_per_round"] == pytest.approx(terms.mean(), abs=1e-12)
    assert found["regret_total"] == pytest.approx(terms.sum(), abs=1e-9)


def test_an_arena_paired_by_the_true_worths_is_accused_of_its_first_duels_only():
    worth = np.array([4.0, 3.0, 2.0, 1.0])
    law = worth / worth.sum()
    log = arena(np.random.default_rng(7), 2000, law, worth)
    audit = bf.audit_comparisons(log, selection_probability=law, seed=1)
    numbers = audit.to_dict()
    assert (numbers["subjective"]["verdict"], numbers["objective"]["verdict"]) == ("unfair", "fair")
    last = numbers["subjective"]["last_violating_round"]
    assert audit.verdict == "unfair" and last < 1000
    assert f"of the first {last + 1} duels, not once since" in str(audit)
    assert "under the true worths                fair" in str(audit)
    for options, verdict in (
        ({"judge": "objective"}, "fair"),
        ({"judge": "subjective"}, "unfair"),
        ({"worth": worth}, "fair"),  # what the rule may have known beside the log is no guess
        ({"worth": worth, "judge": "subjective"}, "unfair"),
        ({"from_round": last + 1}, "fair"),
    ):
        again = bf.audit_comparisons(log, selection_probability=law, seed=1, **options)
        assert again.verdict == verdict, options
    with pytest.raises(OptionError, match="judge"):
        bf.audit_comparisons(log, selection_probability=law, judge="me", seed=1)


def test_the_default_eps2_shrinks_with_the_items_on_offer():
    # twenty of fifty equal items share the slot, thirty never get it
    law = np.repeat([0.05, 0.0], [20, 30])
    rng = np.random.default_rng(8)
    left = rng.choice(50, 600, p=law)
    right = (left + rng.integers(1, 50, 600)) % 50
    log = log_of(left, right, rng.random(600) < 0.5, 50)
    given = {"selection_probability": law, "worth": np.ones(50), "seed": 1}
    audit = bf.audit_comparisons(log, **given)
    assert audit.to_dict()["criterion"]["eps2"] == 0.01
    assert "50 items on offer" in audit.to_dict()["criterion"]["eps2_reason"]
    assert "eps2 = 0.01 is the default min(0.05, 1/(2k)) for the 50 items" in str(audit)
    assert audit.verdict == "unfair"
    lax = bf.audit_comparisons(log, eps2=0.05, **given)
    (note,) = [f for f in lax.to_dict()["findings"] if f["kind"] == "cannot_fail"]
    assert note["value"] == pytest.approx(0.05)
    # the verdict never stands without the regret: thirty items lack 1/50 each
    assert lax.verdict == "fair"
    assert "Verdict: FAIR, fairness regret 0.6000 per round" in str(lax)
    few = bf.audit_comparisons(arena(rng, 300, np.full(4, 0.25), np.ones(4)), seed=1)
    assert few.to_dict()["criterion"]["eps2"] == 0.05
    offered = np.zeros((600, 50), bool)
    offered[:, :20] = True  # only twenty are ever on offer
    offered[np.arange(600), right] = True
    on_offer = bf.audit_comparisons(
        log_of(left, left ^ 1, rng.random(600) < 0.5, 50), offered=offered & (np.arange(50) < 20),
        worth=np.ones(50), seed=1,
    )  # fmt: skip
    assert on_offer.to_dict()["criterion"]["eps2"] == 0.025


def fixed_opponents(rng, n):
    """m0 and m1, m2 and m3 are nearly equal; each meets one opponent in 98 % of its duels."""
    worth = np.array([1.0, 0.98, 0.3, 0.28, -0.9, -1.0])
    partner = np.array([5, 2, 1, 4, 3, 0])
    left = rng.integers(0, 6, n)
    other = (left + rng.integers(1, 6, n)) % 6
    right = np.where(rng.random(n) < 0.98, partner[left], other)
    won = rng.random(n) < 1 / (1 + np.exp(worth[right] - worth[left]))
    return log_of(left, right, won, 6)


def opponents_of(log, i, j):
    """Shares of third opponents by counting rows."""
    left, right = (part[log.cell] for part in (log.left, log.right))
    met = np.concatenate([right[left == i], left[right == i]])
    met = met[met != j]
    return np.bincount(met, minlength=log.n_items) / len(met)


def test_fixed_opponents_of_equal_items_are_noticed_and_the_verdict_says_what_it_is_about():
    log = fixed_opponents(np.random.default_rng(9), 3000)
    audit = bf.audit_comparisons(log, selection_probability=np.full(6, 1 / 6), seed=1)
    assert audit.to_dict()["objective"]["verdict"] == "fair"
    assert "whom an item meets there is not judged" in str(audit)
    (note,) = [f for f in audit.to_dict()["findings"] if f["kind"] == "opponents"]
    pairs = [(i, j) for i in range(6) for j in range(i)]
    apart = {p: np.abs(opponents_of(log, *p) - opponents_of(log, *p[::-1])).sum() / 2
             for p in pairs}  # fmt: skip
    named = [p for p in pairs if all(repr(str(names_of(x))) in note["text"] for x in p)]
    assert any(note["value"] == pytest.approx(apart[p]) for p in named)
    assert note["value"] > 0.9


def test_opponents_of_logged_pairs_need_no_allowance_for_noise():
    rng = np.random.default_rng(10)
    even = (1 - np.eye(4)) / 12
    fixed = np.zeros((4, 4))
    fixed[0, 2] = fixed[2, 0] = fixed[1, 3] = fixed[3, 1] = 0.2
    fixed += 0.2 * even
    for law, told in ((even, False), (fixed, True)):
        drawn_pair = rng.choice(16, 40, p=law.ravel())
        log = log_of(drawn_pair // 4, drawn_pair % 4, rng.random(40) < 0.5, 4)
        for given in (law, np.broadcast_to(law, (40, 4, 4))):
            audit = bf.audit_comparisons(log, pair_probability=given, seed=1).to_dict()
            notes = [f for f in audit["findings"] if f["kind"] == "opponents"]
            assert bool(notes) == told
        if told:
            # m0 meets m2 with .2 + .2/12 and m3 with .2/12 of each side's probability, m1 reversed
            p = (0.2 + 0.2 / 12) / (0.2 + 0.4 / 12)
            assert notes[0]["value"] == pytest.approx(2 * p - 1)


@pytest.mark.statistical
def test_uniform_pairing_is_not_accused_of_its_opponents():
    accused = 0
    for run in range(12):
        rng = np.random.default_rng(run)
        k = (4, 6, 10)[run % 3]
        log = arena(rng, (300, 2000)[run % 2], np.full(k, 1 / k), np.ones(k))
        audit = bf.audit_comparisons(log, worth=np.ones(k), eps2=0.0, seed=1).to_dict()
        accused += any(f["kind"] == "opponents" for f in audit["findings"])
    assert accused <= 1  # of 12 at most 5 % by chance


def test_opponents_are_compared_while_both_items_are_on_offer():
    # m3 comes at half-time: from there on all meet evenly; before, m3 meets nobody
    rng = np.random.default_rng(11)
    early, late = (arena(rng, 1000, np.full(k, 1 / k), np.ones(k)) for k in (3, 4))
    left, right = (
        np.concatenate([getattr(log, side)[log.cell] for log in (early, late)])
        for side in ("left", "right")
    )
    log = log_of(left, right, rng.random(2000) < 0.5, 4)
    for options in ({}, {"offered": np.arange(2000)[:, None] >= np.array([0, 0, 0, 1000])}):
        audit = bf.audit_comparisons(log, worth=np.ones(4), eps2=0.0, seed=1, **options).to_dict()
        assert not [f for f in audit["findings"] if f["kind"] == "opponents"]


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"seed": None}, OptionError, "seed= is required"),
        ({"from_round": -1}, OptionError, "from_round"),
        ({"from_round": 60}, OptionError, "leaves no duel to judge: the log has 60"),
        ({"from_round": "x"}, OptionError, "from_round"),
        ({"prior_sd": np.inf}, OptionError, "prior_sd"),
        ({"prior_sd": "x"}, OptionError, "prior_sd"),
        ({"draws": "x"}, OptionError, "draws"),
        ({"window": "x"}, OptionError, "window"),
        ({"model": 3}, OptionError, "model"),
        ({"model": "thurstone", "worth": np.ones(3)}, OptionError, "Plackett-Luce worths"),
        ({"eps2": -1}, OptionError, "eps2"),
        ({"offered": [[1, "x"]]}, BayesfairError, "offered"),
        ({"propensity": np.full(60, 0.5), "from_round": np.nan}, OptionError, "from_round"),
        ({"pair_probability": np.array([[0, 0.7, 0], [0.5, 0, -0.2], [0, 0, 0]])},
         ProbabilityError, "round 0: .*'m1' on the left and 'm2' on the right is -0.2"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_by_name(options, kind, words):
    log = arena(np.random.default_rng(1), 60, np.full(3, 1 / 3), np.ones(3))
    with pytest.raises(kind, match=f"(?s){words}"):
        bf.audit_comparisons(log, **{"seed": 1, **options})


def test_a_generator_is_a_seed_for_every_kind_of_log():
    log = arena(np.random.default_rng(1), 200, np.full(3, 1 / 3), np.ones(3))
    for logged in ({}, {"propensity": np.full(200, 1 / 3)}, {"selection_probability": [1 / 3] * 3}):
        audit = bf.audit_comparisons(log, seed=np.random.default_rng(2), **logged)
        assert audit.to_dict()["criterion"]["seed"] is None
        again = bf.audit_comparisons(log, seed=np.int64(2), **logged)
        assert again.to_dict()["criterion"]["seed"] == 2


def test_a_log_that_contradicts_its_probabilities_says_so_in_a_key_of_its_own():
    rng = np.random.default_rng(12)
    log = arena(rng, 2000, np.array([0.5, 0.3, 0.2]), np.ones(3))
    left = log.left[log.cell]
    for law, consistent in (([0.5, 0.3, 0.2], True), ([0.4, 0.3, 0.3], False)):
        audit = bf.audit_comparisons(log, selection_probability=law, worth=np.ones(3), seed=1)
        numbers = audit.to_dict()
        check = numbers["checks"]["choices"]
        assert (numbers["consistent"], check["passed"]) == (consistent, consistent)
        taken = np.bincount(left, minlength=3)
        z = (taken - 2000 * np.array(law)) / np.sqrt(2000 * np.array(law) * (1 - np.array(law)))
        assert check["statistic"] == pytest.approx(z[np.argmax(np.abs(z))])
        assert check["item"] == f"m{np.argmax(np.abs(z))}"
        assert ("contradicts itself (choices)" in str(audit)) != consistent
    whole = bf.audit_comparisons(log, propensity=np.full(2000, 0.02), worth=np.ones(3), seed=1)
    assert whole.to_dict()["checks"]["propensities"]["passed"] is False
    assert not whole.to_dict()["consistent"]


def test_plots_of_duel_audits_and_what_is_none():
    import matplotlib as mpl

    mpl.use("agg")
    log = arena(np.random.default_rng(13), 200, np.full(3, 1 / 3), np.ones(3))
    tree = bf.fit(log, seed=1)
    for logged, label in (
        ({}, "share of the slot"),
        ({"selection_probability": [0.5, 0.3, 0.2]}, "mean selection probability"),
    ):
        audit = bf.audit_comparisons(log, fit=tree, seed=1, **logged)
        axes = bf.plots.plot_selection(audit)
        assert [t.get_text() for t in axes.get_yticklabels()] == list(log.items)
        marks = {line.get_label(): line.get_xdata() for line in axes.get_lines()}
        means = [item["selection_mean"] for item in audit.to_dict()["items"]]
        assert marks[label].tolist() == means
        bf.plots.plot_frontier(audit)
    for wrong in (
        lambda: bf.plots.plot_cumulative_regret(audit),
        lambda: bf.plots.plot_cumulative_regret(tree),
        lambda: bf.plots.plot_ranks(audit),
        lambda: bf.plots.plot_selection(tree),
        lambda: bf.plots.plot_frontier(tree),
        lambda: bf.plots.plot_frontier({}),
        lambda: bf.prior_sensitivity(tree, log),
        lambda: bf.prior_sensitivity(audit),
        lambda: bf.merge(audit, audit),
    ):
        with pytest.raises(OptionError):
            wrong()
    history = bf.History(["a", "b"] * 5, [1, 0] * 5, selection_probability=[[0.5, 0.5]] * 10)
    of_log = bf.audit(history, seed=1)
    assert bf.plots.plot_cumulative_regret(of_log).get_lines()[0].get_ydata()[-1] == pytest.approx(
        of_log.to_dict()["calibration"]["subjective"]["regret_total"]
    )
    with pytest.raises(OptionError, match="must be the History"):
        bf.prior_sensitivity(bf.fit(history, seed=1), log)
