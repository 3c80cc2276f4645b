"""The pieces of the audit: cells, series, intervals, storage, groups, messages."""

import json
import sys

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import bayesfair as bf
from bayesfair import examples
from bayesfair.audit.log import intervals as calibration
from bayesfair.audit.log.cells import ChosenCell, FullCell
from bayesfair.audit.log.series import Series
from bayesfair.kernels.log import propensities
from bayesfair.kernels.log.row_terms import term_sums


def test_shortfall_from_values_and_from_bins_against_the_definition():
    rng = np.random.default_rng(0)
    pi, p = rng.dirichlet(np.ones(4), 3000), rng.dirichlet(np.ones(4), 50)
    direct = np.maximum(p[:, None, :] - pi[None], 0).sum(axis=(1, 2))
    exact = propensities.exact_shortfall(pi, p)
    np.testing.assert_allclose(exact, direct, rtol=1e-12)
    np.testing.assert_array_equal(propensities.exact_shortfall(pi, p, threads=2), exact)
    binned, bound = propensities.Histogram.of(pi).shortfall(p)
    assert np.max(np.abs(binned - direct)) <= bound + 1e-11
    assert bound < 0.003  # of 3000 rounds
    halves = propensities.Histogram.of(pi[:1000]).merged(propensities.Histogram.of(pi[1000:]))
    np.testing.assert_allclose(halves.shortfall(p)[0], binned, rtol=1e-12)


@pytest.mark.parametrize("k", [3, 10])
def test_binning_hides_less_than_a_tenth_of_the_monte_carlo_error(k, monkeypatch):
    theta = np.linspace(0.2, 0.6, k)
    log = bf.simulate(bf.policies.SDTS(), bf.rewards.Bernoulli(theta), 100_001, seed=k)
    binned = bf.audit(log, seed=1, draws=4000).to_dict()
    (bound,) = (one["value"] for one in binned["findings"] if one["kind"] == "binning")
    monkeypatch.setattr(sys.modules[FullCell.__module__], "EXACT_ROUNDS", log.n_rounds)
    exact = bf.audit(log, seed=1, draws=4000).to_dict()
    assert not [one for one in exact["findings"] if one["kind"] == "binning"]
    found, known = (one["calibration"]["objective"] for one in (binned, exact))
    error = (known["upper"] - known["lower"]) / (2 * 1.96) / np.sqrt(4000)
    assert bound < 0.1 * error
    for name in ("regret_per_round", "lower", "upper"):
        assert abs(found[name] - known[name]) <= bound


def test_pair_maxima_against_the_definition_with_absent_arms():
    rng = np.random.default_rng(0)
    pi = rng.dirichlet(np.ones(4), 1500)
    pi[rng.random(pi.shape) < 0.3] = np.nan
    pi[:, 3] = np.where(np.isnan(pi[:, 0]), pi[:, 3], np.nan)  # 0 and 3 never together
    expected = np.nanmax(
        np.where(np.isnan(pi[:, :, None] - pi[:, None, :]), -np.inf,
                 np.abs(pi[:, :, None] - pi[:, None, :])), axis=0,
    )  # fmt: skip
    np.fill_diagonal(expected, 0)
    found = propensities.pair_maxima(pi)
    np.testing.assert_array_equal(found, expected)
    assert found[0, 3] == -np.inf


def test_large_cells_are_binned_and_agree_with_small_ones(monkeypatch):
    rng = np.random.default_rng(0)
    pi, p = rng.dirichlet(np.ones(3), 50_000), rng.dirichlet(np.ones(3), 20)
    arm = rng.integers(0, 3, 50_000).astype(np.int32)
    small = FullCell.of(pi, "total_variation", 1), ChosenCell.of(arm, pi[:, 0], 3)
    monkeypatch.setattr(sys.modules[FullCell.__module__], "EXACT_ROUNDS", 1000)
    full = FullCell.of(pi[:2000], "total_variation", 1).merged(
        FullCell.of(pi[2000:], "total_variation", 1)
    )
    assert full.rows is None
    value, bound = full.shortfall(p)
    np.testing.assert_allclose(value, small[0].shortfall(p)[0], atol=bound)
    np.testing.assert_array_equal(full.maxima, small[0].maxima)
    chosen = ChosenCell.of(arm[:500], pi[:500, 0], 3).merged(
        ChosenCell.of(arm[500:], pi[500:, 0], 3)
    )
    assert chosen.arm is None
    first, second, bound = chosen.moments(p)
    exact = small[1].moments(p)
    direct = np.array([np.maximum(1 - q[arm] / pi[:, 0], 0).sum() for q in p])
    np.testing.assert_allclose(exact[0], direct, rtol=1e-10)
    np.testing.assert_allclose(first, direct, atol=bound)
    np.testing.assert_allclose(second, exact[1], atol=2 * bound)
    assert 0 < bound < 0.01 * 50_000


def test_series_is_thinned_and_keeps_the_totals():
    rng = np.random.default_rng(0)
    regret, arm = rng.random(10_000), rng.integers(0, 3, 10_000).astype(np.int32)

    def series(rounds):
        n = len(arm[rounds])
        stride = Series.stride_of(n, 3)
        sums, plays = term_sums(
            arm[rounds], regret[rounds], np.empty(0), np.empty(0), 3, stride, threads=2
        )
        return Series.of(n, stride, sums[:, 0], plays)

    whole = series(slice(None))
    parts = series(slice(0, 3200)).merged(series(slice(3200, 10_000)))
    assert whole.stride == parts.stride == 32
    assert len(whole.regret) <= 512
    np.testing.assert_allclose(parts.regret, whole.regret, rtol=1e-12)
    np.testing.assert_array_equal(parts.plays, whole.plays)
    np.testing.assert_array_equal(parts.last_plays, whole.last_plays)
    np.testing.assert_allclose(whole.regret, np.cumsum(regret)[31::32], rtol=1e-12)
    one_hot = np.eye(3, dtype=int)[arm].cumsum(axis=0)
    np.testing.assert_array_equal(whole.plays, one_hot[31::32])
    assert whole.last_regret == pytest.approx(regret.sum())


def test_beta_interval_against_scipy():
    from scipy import stats

    law = stats.beta(3.5, 17.5)
    assert calibration.beta_interval(3, 20) == pytest.approx(law.ppf([0.025, 0.975]))
    assert calibration.beta_interval(20, 20)[1] == 1.0


def test_interval_of_the_mean_covers():
    """95 % interval of mean regret from chosen probabilities only: frequency over 400 logs."""
    rng = np.random.default_rng(11)
    pi, best = np.array([0.7, 0.2, 0.1]), np.array([0.3, 0.3, 0.4])
    truth, hits = float(np.maximum(best - pi, 0).sum()), 0
    for _ in range(400):
        arm = rng.choice(3, 300, p=pi)
        terms = np.maximum(1 - best[arm] / pi[arm], 0)
        found = calibration.mean_interval(300, terms.sum(), (terms**2).sum())
        hits += found.lower <= truth <= found.upper
    # 400 runs at .95: standard error .011; five of them are .054
    assert abs(hits / 400 - 0.95) < 0.054


def test_audit_is_saved_and_loaded(tmp_path):
    result = bf.audit(bf.read_history(examples.path("ecmo")), seed=1)
    result.save(tmp_path / "audit.nc")
    loaded = bf.load_audit(tmp_path / "audit.nc")
    assert loaded.to_dict() == result.to_dict()
    assert str(loaded) == str(result)
    assert loaded.tree["posterior"]["smallest_eps2"].shape == (4, 1000, 9)
    with pytest.raises(bf.DataError, match="no file"):
        bf.load_audit(tmp_path / "absent.nc")
    (tmp_path / "text.nc").write_text("no netcdf")
    with pytest.raises(bf.DataError, match=r"text\.nc"):
        bf.load_audit(tmp_path / "text.nc")


def test_groups_report_the_share_of_violating_runs():
    fair = bf.History([0, 1] * 50, [1, 0] * 50, selection_probability=[[0.5, 0.5]] * 100)
    unfair = bf.History([0] * 100, [1, 0] * 50, selection_probability=[[1.0, 0.0]] * 100)
    group = bf.audit({"x": fair, 2: unfair}, eps1=0, seed=1)
    out = group.to_dict()
    assert out["verdict"] == "unfair"
    assert set(out["groups"]) == {"x", "2"}
    assert out["runs"]["n"] == 2
    assert out["runs"]["n_violating"] == 1
    assert out["runs"]["lower"] < 0.5 < out["runs"]["upper"]
    assert "1 of 2 logs that can be audited are unfair" in str(group)


def test_one_arm_has_nothing_to_compare():
    log = bf.History([0, 0], [1, 0], selection_probability=[[1.0], [1.0]])
    result = bf.audit(log, eps1=0, eps2=0, seed=1)
    assert result.verdict == "fair"
    assert result.to_dict()["calibration"]["subjective"]["regret_total"] == 0
    assert result.to_dict()["subjective"]["worst"] is None


def test_json_keys_are_fixed_and_plain():
    out = bf.audit(bf.read_history(examples.path("ecmo")), seed=1).to_dict()
    assert list(out) == [
        "bayesfair", "verdict", "subjective", "objective", "consistent", "checks", "log",
        "criterion", "calibration", "arms", "frontier", "notices", "findings",
    ]  # fmt: skip
    assert list(out["log"]) == [
        "source", "n_rounds", "n_judged", "n_arms", "arms", "selection", "order", "n_skipped",
        "n_unobserved", "unused_columns",
    ]  # fmt: skip
    assert list(out["criterion"]) == [
        "eps1", "eps2", "eps2_reason", "delta", "divergence", "reward_divergence", "family",
        "model", "prior", "prior_learned", "beliefs_model", "missing", "seed", "draws", "tolerance",
        "from_round", "judge", "propensity_draws",
    ]  # fmt: skip
    ends = ["n_violating_rounds", "first_violating_round", "last_violating_round", "smallest_eps2"]
    assert list(out["subjective"]) == ["verdict", "question", *ends, "worst"]
    assert list(out["objective"]) == ["verdict", "question", "probability_fair", "converged", *ends]
    assert list(out["calibration"]) == [
        "subjective", "objective", "effective_sample_size", "max_weight", "mean_weight",
    ]  # fmt: skip
    assert list(out["arms"][0]) == [
        "arm", "n", "n_unobserved", "reward_mean", "p_best_subjective", "p_best_objective",
        "selection_mean",
    ]  # fmt: skip
    assert json.loads(json.dumps(out)) == out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"eps1": -1}, "eps1=-1"),
        ({"delta": 0.5}, "delta"),
        ({"divergence": "total"}, "total_variation"),
        ({"family": "gaussian"}, "normal"),
        ({"prior": (0, 1)}, "above 0"),
        ({"seed": None}, "seed="),
        ({"seed": "x"}, "seed='x'"),
        (
            {"model": "bernoulli_hierarchical", "truth": bf.rewards.Bernoulli([0.5, 0.5])},
            "not both",
        ),
        ({"truth": bf.rewards.Bernoulli([0.5] * 3)}, "3 arms"),
    ],
)
def test_wrong_options_say_what_is_allowed(options, said):
    log = bf.History([0, 1], [1, 0], selection_probability=[[0.5, 0.5]] * 2)
    with pytest.raises(bf.BayesfairError, match=said):
        bf.audit(log, **({"seed": 1} | options))


def test_without_learning_and_with_context_are_told_apart():
    constant = bf.History([0, 1] * 20, [1, 0] * 20, selection_probability=[[0.5, 0.5]] * 40)
    assert any("does not learn" in n for n in bf.audit(constant, seed=1).to_dict()["notices"])
    rng = np.random.default_rng(0)
    pi = rng.dirichlet(np.ones(2), 40)
    reward = np.full(40, np.nan)
    context = bf.History(np.arange(40) % 2, reward, selection_probability=pi)
    assert any(
        "without new information the selection probabilities changed" in n
        for n in bf.audit(context, seed=1).to_dict()["notices"]
    )


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_the_next_rows_of_a_log_of_chosen_probabilities_are_not_the_same_log_again(tmp_path, kind):
    table = pa.table({"arm": ["a", "b"] * 4, "reward": [1, 0] * 4, "propensity": [0.5] * 8})
    path = tmp_path / f"log.{kind}"
    (csv.write_csv if kind == "csv" else parquet.write_table)(table, path)
    log = bf.read_history(path)
    first = bf.audit(log.rounds(0, 4), objective=False)
    for again, expected in ((log.rounds(4, 8), 0), (log, 1)):
        found = first.resume(again, objective=False)
        assert [n.kind for n in found.findings].count("same_log_again") == expected
