"""fit() on histories: what it accepts, what it says, what it refuses; nothing here samples."""

import json
import subprocess
import sys

import numpy as np
import pytest
from scipy import stats

import bayesfair as bf
from bayesfair.errors import ArmError, DataError, OptionError
from bayesfair.families import FAMILIES
from bayesfair.families.logs import posterior_of
from bayesfair.families.priors import describe_prior, prior_table
from bayesfair.history import History
from bayesfair.inference import bin_starts, fit, rewards_from_posterior
from bayesfair.inference.contract import check_reads, contract_of

ECMO = History(["ecmo", "conventional"] + ["ecmo"] * 10, [1, 0] + [1] * 10, source="ecmo.csv")


def test_tree_is_labelled_and_says_what_it_is():
    tree = fit(ECMO, seed=1)
    theta = tree["posterior"]["theta"]
    assert theta.dims == ("chain", "draw", "arm")
    assert theta.shape == (4, 1000, 2)
    assert list(theta["arm"].values) == ["conventional", "ecmo"]
    attrs = tree.attrs
    assert (attrs["model"], attrs["method"], attrs["family"]) == (
        "bernoulli_independent",
        "conjugate",
        "bernoulli",
    )
    assert (attrs["reads"], attrs["seed"], attrs["draws"]) == ("theta", 1, 4000)
    assert attrs["prior"] == "theta ~ Beta(0.5, 0.5), every arm, independent"
    table = tree["constant_data"]["closed_form"]
    assert table.sel(arm="ecmo").values.tolist() == [11.5, 0.5]
    assert table.sel(arm="conventional").values.tolist() == [0.5, 1.5]


def test_arviz_opens_the_tree(tmp_path):
    import arviz_stats as az

    tree = fit(ECMO, seed=1, draws=2000)
    table = az.summary(tree, kind="all", ci_prob=0.95, ci_kind="eti", round_to="none")
    assert list(table.index) == ["theta[conventional]", "theta[ecmo]"]
    assert table["r_hat"].astype(float).max() < 1.01
    # Beta(11.5, 0.5)
    assert float(table["mean"].iloc[1]) == pytest.approx(11.5 / 12, abs=0.005)


def test_seeds():
    first, again = fit(ECMO, seed=3), fit(ECMO, seed=3)
    other, generator = fit(ECMO, seed=4), fit(ECMO, seed=np.random.default_rng(3))
    theta = first["posterior"]["theta"].values
    assert np.array_equal(theta, again["posterior"]["theta"].values)
    assert np.array_equal(theta, generator["posterior"]["theta"].values)
    assert generator.attrs["seed"] == "generator"
    assert not np.array_equal(theta, other["posterior"]["theta"].values)
    with pytest.raises(OptionError, match="seed= is required"):
        fit(ECMO)
    with pytest.raises(OptionError, match="seed= is required"):
        fit(ECMO, seed=None)


def test_published_integer_prior():
    # case 77: prior (100, 100), 111 of 11618 and 148 of 13382 -> means .017854 and .018259
    arm = np.repeat([0, 1], [11618, 13382])
    reward = np.concatenate([np.arange(11618) < 111, np.arange(13382) < 148])
    history = History(arm, reward, arms=("a", "b"))
    _, table, _ = posterior_of(history, FAMILIES["bernoulli"], prior=(100, 100))
    assert (table[:, 0] / table.sum(axis=1)).round(6).tolist() == [0.017854, 0.018259]
    drawn = fit(history, prior=(100, 100), seed=1)["posterior"]["theta"].mean(("chain", "draw"))
    error = np.sqrt(0.018 / 11800 / 4000)
    assert np.all(np.abs(drawn - [0.017854, 0.018259]) < 5 * error)


def test_normal_inverse_gamma_by_hand():
    # two rewards 1 and 3: mean 2, squared deviations 2; prior mean 0, kappa 1, shape 1, scale 1
    history = History(["a", "a"], [1.0, 3.0])
    _, table, _ = posterior_of(history, FAMILIES["normal"], prior=(0, 1, 1, 1))
    # mean 4/3, kappa 3, shape 2, scale 1 + 1 + 1 * 2 * 2^2 / (2 * 3)
    assert table.tolist() == [[4 / 3, 3.0, 2.0, pytest.approx(1 + 1 + 8 / 6)]]
    # the same from the marginal likelihood of the second reward given the first, as Student t
    one, both = (
        posterior_of(History(["a"] * n, [1.0, 3.0][:n]), FAMILIES["normal"], prior=(0, 1, 1, 1))[1][
            0
        ]
        for n in (1, 2)
    )
    mean, kappa, shape, scale = one
    predictive = stats.t(2 * shape, mean, np.sqrt(scale * (kappa + 1) / (shape * kappa)))

    def log_evidence(row):
        from scipy.special import gammaln

        return -0.5 * np.log(row[1]) + gammaln(row[2]) - row[2] * np.log(row[3])

    step = log_evidence(both) - log_evidence(one) - 0.5 * np.log(2 * np.pi)
    assert step == pytest.approx(predictive.logpdf(3.0))


def test_families_are_chosen_and_said():
    stars = History(["a", "b", "a"], [5, 3, 4])
    tree = fit(stars, seed=1)
    assert tree.attrs["family"] == "finite"
    assert "3 distinct values" in json.loads(tree.attrs["notices"])[0]["text"]
    assert tree["posterior"]["level"].values.tolist() == [3.0, 4.0, 5.0]
    assert np.allclose(tree["posterior"]["probability"].sum("level"), 1)
    counts = History(["a"] * 30, np.arange(30))
    assert fit(counts, seed=1).attrs["family"] == "poisson"
    assert fit(History(["a"] * 30, np.arange(30) / 7), seed=1).attrs["family"] == "normal"
    assert fit(counts, family="normal", seed=1).attrs["reads"] == "mean,sd"
    assert json.loads(fit(ECMO, seed=1).attrs["notices"]) == []


def test_rewards_from_posterior_keep_draws_in_order():
    tree = fit(ECMO, seed=1, draws=400)
    rewards = rewards_from_posterior(tree)
    assert rewards.batch_shape == (400,)
    assert rewards.arms == ("conventional", "ecmo")
    flat = tree["posterior"]["theta"].values.reshape(400, 2)
    assert np.array_equal(rewards.mean, flat)
    stars = fit(History(["a", "b", "a"], [5, 3, 4]), seed=1, draws=400)
    finite = rewards_from_posterior(stars)
    probability = stars["posterior"]["probability"].values.reshape(400, 2, 3)
    assert np.allclose(finite.mean, probability @ [3, 4, 5])
    assert bin_starts(tree) is None
    poisson = rewards_from_posterior(fit(ECMO, family="poisson", seed=1, draws=400))
    assert type(poisson).__name__ == "Poisson"
    normal = rewards_from_posterior(fit(ECMO, family="normal", seed=1, draws=400))
    assert type(normal).__name__ == "Normal" and normal.sd.shape == (400, 2)


def test_joint_draws_stay_joint():
    # case 83: B ~ N(0, 1) and A = B + 0.1 in every draw: A is always better, although the
    # marginals overlap almost entirely (shuffled draws would give Phi(.1 / sqrt 2) = .5282)
    from bayesfair.inference.tree import make_tree, posterior_dataset

    b = np.random.default_rng(1).normal(size=(4, 250))
    mean = np.stack([b + 0.1, b], axis=-1)
    draws = {"mean": mean, "sd": np.full_like(mean, 1e-3)}
    group = posterior_dataset(draws, {"mean": ["arm"], "sd": ["arm"]}, {"arm": ["A", "B"]})
    tree = make_tree({"posterior": group}, {"reads": "mean,sd", "family": "normal"})
    best = rewards_from_posterior(tree).best_arm_probability().mean(axis=0)
    assert best == pytest.approx([1.0, 0.0], abs=1e-9)


@pytest.mark.parametrize("reward", [[np.nan] * 3, [1, np.nan, np.nan]])
def test_unobserved_rewards_are_left_out(reward):
    tree = fit(History(["a", "b", "a"], reward), seed=1)
    n = np.isfinite(reward).sum()
    assert tree["constant_data"]["closed_form"].values.sum() == 2 + n


def test_edge_sizes():
    assert fit(History(["a"], [1]), seed=1)["posterior"].sizes["arm"] == 1
    empty = History([], [], arms=("a", "b"))
    assert fit(empty, seed=1)["constant_data"]["closed_form"].values.tolist() == [[0.5, 0.5]] * 2
    with pytest.raises(OptionError, match="no arms"):
        fit(History([], []), seed=1)
    only = fit(History(["a", "a"], [3, 3]), seed=1)  # one level: probability 1
    assert np.all(only["posterior"]["probability"] == 1)
    assert fit(ECMO, draws=401, seed=1).attrs["draws"] == 404


def test_earlier_outcomes_count():
    history = History(["a", "b"], [1, 0], prior_counts={"a": (2.5, 0)})
    assert posterior_of(history, FAMILIES["bernoulli"])[1].tolist() == [[4.0, 0.5], [0.5, 1.5]]
    with pytest.raises(OptionError, match="poisson"):
        fit(history, family="poisson", seed=1)


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"model": "bernouli_independent"}, OptionError, "Did you mean 'bernoulli_independent'"),
        ({"method": "laplace"}, OptionError, "method='laplace'"),
        ({"family": "gauss"}, OptionError, "family='gauss'"),
        ({"model": "poisson_independent", "family": "normal"}, OptionError, "'poisson'"),
        ({"method": "conjugate", "model": "bernoulli_hierarchical"}, OptionError, "closed form"),
        ({"prior": (1, 0)}, OptionError, "beta of arm 'conventional' is 0"),
        ({"prior": (1, 2, 3)}, OptionError, "(alpha, beta)"),
        ({"prior": {"ecmoo": (1, 1)}}, ArmError, "ecmoo"),
        ({"prior": [(1, 1)] * 3}, OptionError, "3 rows"),
        ({"prior": "flat"}, OptionError, "flat"),
        ({"model_options": {"n_bins": 3}}, OptionError, "n_bins"),
        ({"model_options": {"prior": (1, 1)}}, OptionError, "give prior= beside it"),
        ({"model_options": 3}, OptionError, "must be a mapping"),
        ({"n_bins": 3}, OptionError, "model_options={'n_bins': ...}"),
        ({"support": [0, 1]}, OptionError, "support"),
        ({"prior_sd": 2.0}, OptionError, "comparisons"),
        ({"draws": 2}, OptionError, "draws=2"),
        ({"draws": 1000.5}, OptionError, "whole number"),
        ({"family": "finite", "support": [0, 0, 1]}, OptionError, "distinct"),
    ],
)
def test_wrong_options(options, error, words):
    with pytest.raises(error) as raised:
        fit(ECMO, seed=1, **options)
    assert words in str(raised.value)


def test_rewards_that_do_not_fit_the_family_are_named():
    history = History(["a", "b"], [1, 0.5], row=[2, 3], source="log.csv")
    with pytest.raises(DataError, match=r"round 1 \(row 3 of log.csv, .*is 0.5.*bernoulli.*0 or 1"):
        fit(history, family="bernoulli", seed=1)
    with pytest.raises(DataError, match=r"0.5.*poisson.*whole numbers"):
        fit(history, family="poisson", seed=1)
    with pytest.raises(DataError, match=r"0.5.*one of the values '0', '1'"):
        fit(history, family="finite", support=[0, 1], seed=1)


def test_wrong_data():
    with pytest.raises(OptionError, match="History or Comparisons, got list"):
        fit([1, 2], seed=1)


# -- models of one's own ---------------------------------------------------------------------------


def named(**attributes):
    def build(history, *, strength=1.0):
        raise AssertionError("not to be built")

    for name, value in attributes.items():
        setattr(build, name, value)
    return build


def test_reads_are_required():
    with pytest.raises(OptionError) as raised:
        fit(ECMO, model=named(), seed=1)
    message = str(raised.value)
    assert "declares no READS" in message and "ECMO" in message  # names found beside it
    assert 'READS = ("theta",)' in message
    with pytest.raises(OptionError, match="no reward parameters"):
        contract_of(named(READS=("alpha",)))
    with pytest.raises(OptionError, match="'sd'"):
        contract_of(named(READS=("mean",), FAMILY="normal"))
    with pytest.raises(OptionError, match="FAMILY"):
        contract_of(named(READS=("theta",), FAMILY="binary"))
    assert contract_of(named(READS=("sd", "mean"))).family == "normal"
    with pytest.raises(OptionError, match="strenth"):
        fit(ECMO, model=named(READS=("theta",)), model_options={"strenth": 2}, seed=1)
    with pytest.raises(OptionError, match="build"):
        fit(ECMO, model=3, seed=1)


def test_built_models_are_checked():
    import pymc as pm

    contract = contract_of(named(READS=("theta",)))

    def model(dims="arm", arms=("conventional", "ecmo"), name="theta"):
        with pm.Model(coords={"arm": arms, "group": [0, 1]}) as built:
            pm.Beta(name, 1, 1, dims=dims)
        return built

    check_reads(contract, model(), ECMO)
    with pytest.raises(OptionError, match=r"no variable 'theta'. Found: 'p'"):
        check_reads(contract, model(name="p"), ECMO)
    with pytest.raises(OptionError, match=r"dims \('group',\)"):
        check_reads(contract, model(dims="group"), ECMO)
    with pytest.raises(OptionError, match="in order"):
        check_reads(contract, model(arms=("ecmo", "conventional")), ECMO)
    with pytest.raises(OptionError, match="returned NoneType"):
        check_reads(contract, None, ECMO)
    with pytest.raises(OptionError, match="not the model itself"):
        contract_of(model())
    with pytest.raises(OptionError, match="not the model itself") as refused:
        contract_of(bf.fit(ECMO, seed=1))
    assert "\n" not in str(refused.value)  # named, not printed whole


# -- priors ----------------------------------------------------------------------------------------


def test_prior_tables():
    arms = ["a", "b"]
    assert prior_table(None, FAMILIES["normal"], arms).tolist() == [[0, 1, 1, 1]] * 2
    assert prior_table(2, FAMILIES["finite"], arms, 3).tolist() == [[2.0] * 3] * 2
    assert prior_table({"a": [1, 2, 3]}, FAMILIES["finite"], arms, 3).tolist() == [
        [1, 2, 3],
        [0.5] * 3,
    ]
    assert (
        prior_table((-7, 1, 1, 1), FAMILIES["normal"], arms)[0, 0] == -7
    )  # a mean may be negative
    with pytest.raises(OptionError, match="kappa"):
        prior_table((0, -1, 1, 1), FAMILIES["normal"], arms)
    with pytest.raises(OptionError, match="1 or 3 concentrations"):
        prior_table((1, 2), FAMILIES["finite"], arms, 3)
    table = prior_table({"b": (1, 9)}, FAMILIES["bernoulli"], arms)
    assert describe_prior(table, FAMILIES["bernoulli"], arms) == (
        "theta ~ Beta(...), per arm a: 0.5, 0.5; b: 1, 9"
    )


# -- imports ---------------------------------------------------------------------------------------


def test_closed_forms_need_no_pymc_and_no_arviz():
    code = (
        "import sys\n"
        "from bayesfair.audit import audit\n"
        "from bayesfair.history import History\n"
        "from bayesfair.inference import fit\n"
        "for family in ('bernoulli', 'finite', 'poisson', 'normal'):\n"
        "    fit(History(['a', 'b'], [1, 0]), family=family, seed=1)\n"
        "audit(History(['a', 'b'], [1, 0]), seed=1, draws=20)\n"
        "heavy = {'pymc', 'pytensor', 'arviz', 'arviz_stats', 'matplotlib'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_model_that_is_not_known_is_told_each_known_one_once():
    with pytest.raises(bf.OptionError) as error:
        bf.audit(bf.History(["a", "b"], [1, 0]), model="nosuch", seed=1)
    said = str(error.value)
    assert said.count("'bernoulli_independent'") == 1 and said.count("'normal_independent'") == 1
