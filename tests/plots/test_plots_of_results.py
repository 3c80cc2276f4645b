"""Every public result has its plot: what is drawn is what was found; other kinds are refused."""

import numpy as np
import pytest
from matplotlib.figure import Figure

import bayesfair as bf
from bayesfair import examples
from bayesfair.errors import OptionError
from bayesfair.value import policy_value


def axes():
    return Figure().subplots()


@pytest.fixture(scope="module")
def ecmo():
    return bf.audit(bf.read_history(examples.path("ecmo")), eps1=1, eps2=0, seed=1)


@pytest.fixture(scope="module")
def games():
    return bf.Comparisons.from_counts(["a", "b", "a"], ["b", "c", "c"], [9, 6, 8], [3, 2, 1])


@pytest.fixture(scope="module")
def fit(games):
    return bf.fit(games, seed=1, draws=400)


def test_windows_hold_the_rounds_of_the_audit(ecmo):
    found, rounds = ecmo.over_time(), ecmo.rounds()
    np.testing.assert_allclose(found.regret, rounds.fairness_regret)  # twelve windows of one round
    assert float(found.violating_share.sum()) == ecmo.n_violating_rounds
    worst = rounds.smallest_eps2.values
    np.testing.assert_allclose(found.worst_eps2, np.sort(worst)[::-1][:10])
    assert int(found.pair_rounds.sum()) == ecmo.n_violating_rounds
    drawn = bf.plots.plot_violations(found, ax=axes()).patches[0].get_data()
    np.testing.assert_allclose(drawn.values, worst > 1e-9)
    assert bf.plots.plot_pairs(ecmo, ax=axes()).get_ylabel() == "favoured"


def test_windows_of_a_long_log_have_the_mean_of_all_rounds():
    log = bf.simulate("uniform", {"a": 0.7, "b": 0.4, "c": 0.5}, 1003, seed=2)
    audit = bf.audit(log, seed=1, from_round=3)
    found = audit.over_time()
    length = (found.stop - found.start).values
    assert (found.sizes["window"], length.sum(), int(found.start[0])) == (40, 1000, 3)
    mean = float((found.regret * length).sum()) / 1000
    assert mean == pytest.approx(audit.regret.value)
    # the regret under the true rewards of at most some rounds of each window, draws thinned
    inside = audit.regret_objective
    true = float((found.regret_objective * length).sum()) / 1000
    assert inside.lower < true < inside.upper
    # Jensen: means over bins of chances are never further apart than the chances
    assert 0 < found.attrs["reliability_gap"] <= audit.regret.value + 1e-12
    line = bf.plots.plot_reliability(found, ax=axes()).lines[1]
    np.testing.assert_allclose(line.get_xdata(), 1 / 3)
    np.testing.assert_allclose(line.get_ydata(), found.p_best)


def test_windows_under_known_rewards_are_exact():
    run = bf.simulate("uniform", {"a": 0.7, "b": 0.4}, 1000, seed=1)
    audit = bf.audit(run, truth=bf.rewards.Bernoulli([0.7, 0.4]), seed=1)
    found = audit.over_time()
    # P*(a) = .7 x .6 + half of the ties .7 x .4 + .3 x .6; the rule gives 1/2
    np.testing.assert_allclose(found.regret_objective, 0.42 + 0.23 - 0.5)
    legend = bf.plots.plot_regret(found, ax=axes()).get_legend()
    assert "under the true rewards, exact" in [text.get_text() for text in legend.get_texts()]


def test_reliability_is_that_of_a_loop_over_all_chances(ecmo):
    log, rounds = bf.read_history(examples.path("ecmo")), ecmo.rounds()
    pi, best = log.selection_probability.ravel(), rounds.best_arm_probability.values.ravel()
    found = ecmo.over_time()
    assert float(found.n_chances.sum()) == pi.size
    assert float((found.chance * found.n_chances).sum()) == pytest.approx(pi.sum())
    assert float((found.p_best * found.n_chances).sum()) == pytest.approx(best.sum())
    assert found.chance.values.tolist() == sorted(found.chance.values.tolist())


def test_rewards_are_those_of_the_beta_posterior(ecmo):
    from scipy import stats

    table = ecmo.to_dataframe()
    law = stats.beta(0.5 + 11, 0.5)  # eleven of eleven survived
    assert table.reward_believed["ECMO"] == pytest.approx(law.mean(), abs=0.005)
    assert table.reward_lower["ECMO"] == pytest.approx(law.ppf(0.025), abs=0.02)
    drawn = bf.plots.plot_rewards(ecmo, ax=axes())
    assert [text.get_text() for text in drawn.get_yticklabels()] == ["ECMO", "conventional"]


def test_matrices_hold_the_tables(fit, games):
    wins = bf.win_probability(fit)
    drawn = bf.plots.plot_win_matrix(fit, ax=axes()).collections[0].get_array()
    assert drawn[0, 1] == pytest.approx(float(wins.p_beats.sel(item="a", item_other="b")))
    ranks = bf.plots.plot_rank_probability(fit, ax=axes()).collections[0].get_array()
    np.testing.assert_allclose(np.asarray(ranks), bf.rank_probability(fit).sel(item=list("abc")))
    gaps = bf.plots.plot_gaps(fit, ax=axes()).collections[0].get_array()
    worth = bf.rank_table(fit).log_worth.values
    assert gaps[0, 2] == pytest.approx(worth[0] - worth[2])
    found = bf.predicted_wins(fit, games, seed=1, replicates=50)
    line = bf.plots.plot_predicted_wins(found, ax=axes()).lines[1]
    assert sorted(line.get_ydata().tolist()) == [6, 8, 9]
    hangs = bf.influence(fit, games)
    shown = bf.plots.plot_influence(hangs, ax=axes())
    assert len(shown.get_yticks()) == hangs.sizes["comparison"]


def test_kinds_of_comparison_are_drawn_once_and_say_who_was_first():
    sides = (["a", "b", "a", "b"], ["b", "a", "b", "a"], ["left", "right", "right", "left"])
    for first, kinds in ((None, ["2 x a > b", "2 x b > a"]), (
        "left", ["1 x a > b (a first)", "1 x a > b (b first)", "1 x b > a (a first)",
                 "1 x b > a (b first)"],
    )):  # fmt: skip
        duels = bf.Comparisons.from_duels(*sides, first=first)
        hangs = bf.influence(bf.fit(duels, seed=1, draws=400), duels)
        drawn = bf.plots.plot_influence(hangs, ax=axes()).get_yticklabels()
        assert sorted(text.get_text() for text in drawn) == kinds


def test_a_part_of_a_table_of_ranks_keeps_its_scale(fit):
    last = bf.rank_table(fit).isel(item=[2])
    assert bf.plots.plot_ranks(last, ax=axes()).get_xlim() == (0.5, 3.5)


def test_groups_rules_and_their_price():
    truth = {"a": 0.7, "b": 0.4}
    audits = {
        rule: bf.audit(bf.simulate(rule, truth, 60, seed=1, n_runs=3), objective=False)
        for rule in ("sd_ts", "uniform")
    }
    lines = {x.get_label(): x for x in bf.plots.plot_rules(audits, ax=axes()).lines}
    totals = [one.to_dict()["calibration"]["subjective"]["regret_total"]
              for one in audits["uniform"].audits.values()]  # fmt: skip
    assert lines["uniform"].get_ydata()[-1] == pytest.approx(np.mean(totals))
    groups = bf.plots.plot_groups(audits["uniform"], ax=axes()).lines[0].get_xdata()
    np.testing.assert_allclose(groups, np.array(totals) / 60)
    table = audits["uniform"].to_dataframe()
    np.testing.assert_allclose(table.regret_per_round, np.array(totals) / 60)
    curve = bf.tradeoff([0.8, 0.4], weights=[0, 1])
    price = bf.plots.plot_tradeoff(curve, ax=axes()).lines[0]
    np.testing.assert_allclose(price.get_xdata(), [0.2, 0])


@pytest.mark.parametrize(("n", "drawn"), [(61, 61), (1001, 1000)])
def test_many_groups_stand_in_order_of_their_regret(n, drawn):
    regret = np.random.default_rng(1).permutation(n) / n
    groups = {
        f"g{i}": {
            "calibration": {"subjective": {"regret_per_round": x, "lower": x / 2, "upper": x + 0.1}}
        }
        for i, x in enumerate(regret)
    }
    shown = bf.plots.plot_groups({"groups": groups}, ax=axes())
    x = shown.lines[0].get_xdata()
    assert len(x) == drawn and (np.diff(x) > 0).all()
    assert (x[0], x[-1]) == (0, (n - 1) / n)  # the least and the worst are never left out
    spans = shown.collections[0].get_segments()
    np.testing.assert_allclose([s[:, 0] for s in spans], np.stack([x / 2, x + 0.1], axis=1))
    assert shown.get_ylabel() == "groups, in order of their regret"


def test_shares_of_a_duel_audit():
    log = bf.simulate_duels(bf.policies.FairSDDTS(), {"a": 3.0, "b": 1.0}, 80, seed=1)
    audit = bf.audit_comparisons(log, seed=1, draws=400)
    steps = bf.plots.plot_shares(audit, ax=axes()).patches
    total = sum(step.get_data().values for step in steps)
    np.testing.assert_allclose(total, 1)
    assert audit.to_dataframe().index.tolist() == ["a", "b"]


def test_sensitivity_shows_each_power(ecmo):
    found = ecmo.prior_sensitivity()
    line = bf.plots.plot_prior_sensitivity(found, ax=axes()).lines[0]
    np.testing.assert_allclose(line.get_ydata(), found.probability_fair)


@pytest.fixture(scope="module")
def results(ecmo, fit, games):
    """Of every kind of public result one, whose label would be a tag if it were not escaped."""
    odd = bf.History(["<b>", "b"] * 8, [1, 0] * 8, selection_probability=[[0.5, 0.5]] * 8 * 2,
                     arms=["<b>", "b"], context=["<i>", "y"] * 8)  # fmt: skip
    duels = bf.simulate_duels(bf.policies.FairSDDTS(), {"<b>": 3.0, "b": 1.0}, 60, seed=1)
    group = bf.audit({"<b>": odd, "b": odd}, objective=False, context_model="none")
    return {
        "audit": ecmo, "group": group, "duels": bf.audit_comparisons(duels, seed=1, draws=200),
        "fit": fit, "ranks": bf.rank_table(fit), "wins": bf.win_probability(fit),
        "order": bf.rank_probability(fit), "frame": ecmo.to_dataframe(),
        "predicted": bf.predicted_wins(fit, games, seed=1, replicates=20),
        "influence": bf.influence(fit, games), "windows": ecmo.over_time(),
        "sensitivity": ecmo.prior_sensitivity(), "value": policy_value(odd, {"<b>": "uniform"}),
        "curve": bf.tradeoff([0.8, 0.4], weights=[0, 1]), "rules": {"a rule": group},
        "log": odd, "duel log": duels, "comparisons": duels.comparisons,
        "beliefs": bf.beliefs(odd), "state": ecmo.state, "links": duels.comparisons.connectivity(),
        "utility": bf.utility(odd, {"<b>": 0.5, "b": 0.4}),
    }  # fmt: skip


TAKEN = {
    "plot_cumulative_regret": {"audit"}, "plot_frontier": {"audit", "duels"},
    "plot_selection": {"audit", "duels"}, "plot_regret": {"audit", "windows"},
    "plot_violations": {"audit", "windows"}, "plot_pairs": {"audit", "windows"},
    "plot_reliability": {"audit", "windows"}, "plot_rewards": {"audit", "frame"},
    "plot_groups": {"group"}, "plot_rules": {"rules"}, "plot_tradeoff": {"curve"},
    "plot_value": {"value"}, "plot_prior_sensitivity": {"sensitivity"}, "plot_shares": {"duels"},
    "plot_ranks": {"fit", "ranks"}, "plot_rank_probability": {"fit", "order"},
    "plot_win_matrix": {"fit", "wins"}, "plot_gaps": {"fit", "ranks"},
    "plot_predicted_wins": {"predicted"}, "plot_influence": {"influence"},
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(TAKEN))
def test_a_plot_draws_its_results_and_refuses_all_others_by_name(name, results):
    assert set(TAKEN) == {n for n in bf.plots.__all__ if n.startswith("plot_")}
    plot = getattr(bf.plots, name)
    for kind, result in results.items():
        if kind in TAKEN[name]:
            on = axes()
            assert plot(result, ax=on) is on
            assert (
                on.has_data()
                and on.get_xlabel() + on.get_ylabel() + on.figure.axes[-1].get_ylabel()
            )
            continue
        with pytest.raises(OptionError) as refused:
            plot(result)
        assert refused.value.kind == "wrong_kind", kind
        assert name in str(refused.value)
        assert type(result).__name__ in str(refused.value)


def test_notebooks_show_every_result_and_no_label_as_html(results):
    for kind, result in results.items():
        if kind == "rules":
            continue  # a dict
        shown = result._repr_html_()
        assert "<b>" not in shown.replace("<b>Verdict", "").replace("<b>UN", ""), kind
        assert "<i>" not in shown, kind
    for kind in ("group", "log", "value", "comparisons", "duels"):
        assert "&lt;b&gt;" in results[kind]._repr_html_(), kind
    assert "<b>Verdict" in results["audit"]._repr_html_()
    assert "&lt;i&gt;" in results["log"]._repr_html_()


def test_tables_hold_what_the_results_do(results):
    value, odd = results["value"], results["log"]
    table = value.to_dataframe()
    assert table.index.tolist() == ["logged", "<b>"]
    assert table.self_normalised_upper["logged"] == value["logged"].self_normalised.upper
    assert table.fairness_regret["<b>"] == value["<b>"].fairness_regret
    powers = results["sensitivity"].to_dataframe()
    np.testing.assert_allclose(powers.probability_fair, results["sensitivity"].probability_fair)
    again = bf.read_history(odd.to_dataframe(), context="context")
    assert (again.arms, again.context.labels) == (odd.arms, odd.context.labels)
    np.testing.assert_array_equal(again.arm, odd.arm)
    np.testing.assert_array_equal(again.selection_probability, odd.selection_probability)
    log = results["duel log"]
    rows = log.to_dataframe()
    won = rows.apply(lambda r: {"left": r.left, "right": r.right}.get(r.winner), axis=1)
    names = [None if w < 0 else log.items[w] for w in log.winner]
    assert won.astype(object).where(won.notna(), None).tolist() == names
    np.testing.assert_allclose(rows[["p_<b>", "p_b"]].sum(axis=1), 1)
    counts = results["comparisons"].to_dataframe()
    assert counts["count"].sum() == results["comparisons"].n_comparisons


def test_values_of_rules_are_drawn_with_their_ends(results):
    found = results["value"]
    drawn = bf.plots.plot_value(found, ax=axes())
    x = {line.get_label(): line.get_xdata() for line in drawn.lines}
    assert x["ips"].tolist() == [rule.ips.value for rule in found.rules]
    low = drawn.collections[1].get_segments()[1][0][0]
    assert low == found["<b>"].self_normalised.lower
