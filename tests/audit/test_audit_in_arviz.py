"""`audit.tree` is a tree that ArviZ opens: summaries, plots, files."""

import numpy as np
import pytest

import bayesfair as bf
from bayesfair import examples

VARIABLES = ["regret_per_round", "best_arm_probability"]


@pytest.fixture(scope="module")
def audit():
    return bf.audit(bf.read_history(examples.path("ecmo")), eps1=1, eps2=0, seed=1)


# at eps1 = 0 nothing depends on the rewards: R-hat of a constant
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_summary_has_the_numbers_of_the_audit(audit):
    import arviz_stats as az

    table = az.summary(
        audit.tree, var_names=["smallest_eps2", *VARIABLES], ci_prob=0.95, ci_kind="eti",
        round_to="none",
    )  # fmt: skip
    numbers = audit.to_dict()
    needed = numbers["objective"]["smallest_eps2"]
    row = table.loc["smallest_eps2[1.0]"]
    assert [row["mean"], row["eti95_lb"], row["eti95_ub"]] == pytest.approx(
        [needed["mean"], needed["lower"], needed["upper"]], abs=1e-3
    )
    regret = numbers["calibration"]["objective"]["regret_per_round"]
    assert table.loc["regret_per_round", "mean"] == pytest.approx(regret, abs=1e-12)
    for arm in numbers["arms"]:
        mean = table.loc[f"best_arm_probability[{arm['arm']}]", "mean"]
        assert mean == pytest.approx(arm["p_best_objective"], abs=1e-12)
    # independent draws: nothing for the diagnostics to find
    varied = table.loc["regret_per_round"]
    assert varied["r_hat"] < 1.01
    assert varied["ess_bulk"] > 3000


@pytest.mark.parametrize("name", ["plot_dist", "plot_forest", "plot_trace", "plot_autocorr"])
def test_plots_draw(audit, name):
    import matplotlib as mpl

    mpl.use("Agg")
    import arviz_plots as azp
    from matplotlib import pyplot as plt

    getattr(azp, name)(audit.tree, var_names=VARIABLES, backend="matplotlib")
    assert plt.get_fignums()
    plt.close("all")


def test_draws_and_chains_are_numbered(audit, tmp_path):
    posterior = audit.tree["posterior"].to_dataset()
    np.testing.assert_array_equal(posterior["chain"], range(4))
    np.testing.assert_array_equal(posterior["draw"], range(1000))
    few = bf.audit(bf.read_history(examples.path("ecmo")), seed=1, draws=3).tree["posterior"]
    assert few.sizes["chain"] == 1
    assert few.sizes["draw"] == 3
    audit.save(tmp_path / "a.nc")
    loaded = bf.load_audit(tmp_path / "a.nc")
    assert loaded.tree["posterior"].to_dataset().identical(posterior)
    assert loaded.to_dict() == audit.to_dict()
