"""Every public result has its plot: what is drawn is what was found; other kinds are refused."""

import numpy as np
import pytest
from matplotlib.figure import Figure

import bayesfair as bf
from bayesfair import examples
from bayesfair.errors import OptionError


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


def test_other_kinds_are_refused_by_name(ecmo, fit):
    wrong = {
        "plot_regret": fit, "plot_violations": fit, "plot_pairs": fit, "plot_reliability": fit,
        "plot_rewards": fit, "plot_groups": ecmo, "plot_prior_sensitivity": ecmo,
        "plot_shares": fit, "plot_rules": fit, "plot_tradeoff": ecmo, "plot_win_matrix": ecmo,
        "plot_rank_probability": ecmo, "plot_gaps": ecmo, "plot_predicted_wins": fit,
        "plot_influence": fit,
    }  # fmt: skip
    for name, value in wrong.items():
        with pytest.raises(OptionError) as refused:
            getattr(bf.plots, name)(value)
        assert refused.value.kind == "wrong_kind", name
        assert name in str(refused.value)


def test_notebooks_show_the_report_and_no_label_as_html(ecmo):
    odd = bf.audit(bf.History(["<b>", "b"] * 4, [1, 0] * 4), seed=1, draws=50)
    assert "&lt;b&gt;" in odd._repr_html_()
    assert "<b>Verdict" in ecmo._repr_html_()
