"""PyMC models of comparisons against the kernels and the compiled samplers."""

from __future__ import annotations

import importlib
from functools import partial

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode

from bayesfair import examples
from bayesfair.comparisons import Comparisons
from bayesfair.errors import OptionError
from bayesfair.inference import fit
from bayesfair.inference.comparison_problem import problem_of
from bayesfair.readers.duels.comparisons import read_comparisons

# nothing to compile
PLAIN = Mode(linker="py", optimizer=None)


def baseball():
    return read_comparisons(
        examples.path("baseball"), left="home", right="away", wins=("home_wins", "away_wins"),
        first="left",
    )  # fmt: skip


def tied_duels(*, shown=True, covariate=False):
    rng = np.random.default_rng(4)
    a = rng.integers(4, size=90)
    b = (a + rng.integers(1, 4, size=90)) % 4
    words = np.where(rng.random(90) < 0.25, "tie", np.where(rng.random(90) < 0.6, "left", "right"))
    made = Comparisons.from_duels(a, b, words, first="left" if shown else None)
    return made.with_covariates({"size": [0.1, 3, 4, 5]}) if covariate else made


def choices():
    sets = [list("abcd"), list("abc"), list("bcd"), list("ad"), list("bd")] * 3
    picks = list("abcdb") + list("dcbaa"[:0]) + list("cbdab") + list("abbdd")
    return Comparisons.from_choices(picks, sets)


def rankings(**options):
    rows = [list("abcd"), ["b", ["a", "c"], "d"], list("dca"), list("cb"), list("badc")]
    return Comparisons.from_rankings(rows, partial=options.pop("partial", "subset"), **options)


CASES = {
    "bradley_terry": (lambda: tied_duels(shown=False), "bradley_terry", {"ties": "drop"}),
    "bradley_terry, order": (baseball, "bradley_terry", {}),
    "bradley_terry, half wins": (tied_duels, "bradley_terry", {"ties": "half"}),
    "bradley_terry, covariate": (
        lambda: tied_duels(covariate=True), "bradley_terry", {"ties": "drop"},
    ),
    "davidson": (lambda: tied_duels(shown=False), "davidson", {}),
    "davidson, order, covariate": (lambda: tied_duels(covariate=True), "davidson", {}),
    "thurstone": (lambda: tied_duels(shown=False), "thurstone", {"ties": "half"}),
    "thurstone, order, covariate": (
        lambda: tied_duels(covariate=True), "thurstone", {"ties": "drop"},
    ),
    "plackett_luce, duels": (tied_duels, "plackett_luce", {"ties": "half"}),
    "plackett_luce, subset": (rankings, "plackett_luce", {}),
    "plackett_luce, top": (lambda: rankings(partial="top"), "plackett_luce", {}),
    "plackett_luce, choices": (choices, "plackett_luce", {}),
    "plackett_luce, covariate": (
        lambda: rankings().with_covariates({"x": [1, 2, 4, 3]}), "plackett_luce", {},
    ),
}  # fmt: skip


@pytest.fixture
def _no_compiler():
    """Let graphs within graphs be plain Python too: each of their steps would be compiled."""
    with pytensor.config.change_flags(cxx=""):
        yield


@pytest.mark.parametrize("case", CASES)
@pytest.mark.usefixtures("_no_compiler")
def test_model_density_is_the_kernels(case):
    """Log posterior densities differ by a constant: compared through their differences."""
    make, name, options = CASES[case]
    data = make()
    problem = problem_of(data, name, prior_sd=0.8, **options)
    layout = problem.likelihood.layout
    model = importlib.import_module(f"bayesfair.models.{name}").build(data, **problem.options)
    assert importlib.import_module(f"bayesfair.models.{name}").READS == ("log_worth",)
    density = model.compile_logp(jacobian=False, mode=PLAIN)
    rng = np.random.default_rng(0)
    scale = data.standard_covariates()[1]
    theirs, ours = [], []
    for _ in range(4):
        theta = rng.normal(size=layout.size)
        u = theta[: layout.n_items]
        u -= u.mean()  # the model samples the sum-to-zero part only
        ours.append(
            problem.likelihood.value_gradient(theta)[0] - 0.5 * float(problem.precision @ theta**2)
        )
        point = {}
        for variable in model.free_RVs:
            value = {
                "log_worth": u,
                "deviation": u,
                "coefficient": theta[layout.n_items : layout.order_at] / scale,
                "order_effect": theta[layout.order_at] if layout.order else None,
                "log_tie": theta[-1],
            }[variable.name]
            value_variable = model.rvs_to_values[variable]
            transform = model.rvs_to_transforms[variable]
            if transform is not None:
                value = transform.forward(pt.as_tensor_variable(np.asarray(value))).eval(mode=PLAIN)
            point[value_variable.name] = np.asarray(value)
        theirs.append(float(density(point)))
    # PyTensor's log Phi is good to about 1e-8
    rtol = 1e-7 if name == "thurstone" else 1e-9
    np.testing.assert_allclose(np.diff(theirs), np.diff(ours), rtol=rtol, atol=1e-9)


def test_dims_are_named():
    for name, data in (("davidson", tied_duels(covariate=True)), ("plackett_luce", rankings())):
        module = importlib.import_module(f"bayesfair.models.{name}")
        model = module.build(data)
        assert model.named_vars_to_dims["log_worth"] == ("item",)
        assert tuple(model.coords["item"]) == data.items
    model = importlib.import_module("bayesfair.models.bradley_terry").build(baseball())
    assert model.named_vars_to_dims["wins"] == ("cell",)
    assert "Baltimore | Boston" in model.coords["cell"]


def assert_close(ours, nuts, names, ess):
    """Means and interval ends within 5 Monte-Carlo standard errors of both."""
    import arviz_stats as az

    for name in names:
        one, two = ours["posterior"][name], nuts["posterior"][name]
        for q in (None, 0.025, 0.975):
            if q is None:
                a, b = one.mean(("chain", "draw")), two.mean(("chain", "draw"))
                error = az.mcse(nuts["posterior"].to_dataset()[[name]], method="mean")[name]
            else:
                a, b = (x.quantile(q, ("chain", "draw")) for x in (one, two))
                error = az.mcse(nuts["posterior"].to_dataset()[[name]], method="quantile", prob=q)[
                    name
                ]
            # the error of ours is that of `ess` independent draws
            own = one.std(("chain", "draw")) * (2.7 if q else 1.0) / np.sqrt(ess)
            gap = np.abs(a - b).values
            assert np.all(gap < 5 * np.sqrt(error.values**2 + own.values**2)), (name, q, gap)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("case", "names"),
    [
        ("bradley_terry, order", ["log_worth", "worth", "order_effect"]),
        ("davidson", ["log_worth", "worth", "log_tie", "tie"]),
        ("thurstone, order, covariate", ["log_worth", "worth", "order_effect", "coefficient"]),
        ("plackett_luce, subset", ["log_worth", "worth"]),
    ],
)
def test_compiled_samplers_agree(case, names):
    make, name, options = CASES[case]
    data = make()
    laplace = fit(data, model=name, method="laplace", draws=8000, seed=1, **options)
    assert laplace.attrs["certified"] == 1
    nuts = fit(data, model=name, method="nuts", draws=8000, seed=3, cores=1, **options)
    assert nuts.attrs["divergences"] == 0 and nuts.attrs["method"] == "nuts"
    assert laplace.attrs["prior"] == nuts.attrs["prior"]
    assert_close(laplace, nuts, names, laplace.attrs["ess"])


@pytest.mark.statistical
def test_a_shipped_model_is_sampled_by_pymc_like_one_of_the_user_s_own():
    """One of them: that the densities of all are the kernels' is tested above, exactly."""
    data = baseball()
    ours = fit(data, model="bradley_terry", method="laplace", draws=8000, seed=1)
    module = importlib.import_module("bayesfair.models.bradley_terry")
    built = problem_of(data, "bradley_terry", prior_sd=1.0).options | {"prior_sd": 1.0}
    pymc = fit(data, model=partial(module.build, **built), draws=4000, seed=2, cores=1)
    assert_close(ours, pymc, ["log_worth", "worth", "order_effect"], ours.attrs["ess"])


@pytest.mark.statistical
def test_auto_samples_what_laplace_cannot_certify():
    # one duel per item, all lost to one: skewed in every direction
    data = Comparisons.from_duels(["a"] * 12, [f"i{j:02d}" for j in range(12)])
    quick = fit(data, method="laplace", prior_sd=6.0, seed=0)
    assert quick.attrs["certified"] == 0 and "not certified" in quick.attrs["notices"]
    tree = fit(data, prior_sd=6.0, seed=0, cores=1)
    assert tree.attrs["method"] == "nuts" and tree.attrs["divergences"] == 0
    assert "sampled by NUTS" in tree.attrs["notices"]
    assert {"posterior", "mode", "constant_data", "sample_stats"} <= set(tree.children)
    np.testing.assert_allclose(tree["posterior"]["log_worth"].sum("item"), 0, atol=1e-8)


def test_own_model_needs_log_worth_over_the_items():
    import pymc as pm

    def build(comparisons):
        with pm.Model(coords={"team": comparisons.items}) as model:
            pm.Normal("log_worth", dims="team")
        return model

    with pytest.raises(OptionError, match=r"needs a variable 'log_worth' with dims \('item',\)"):
        fit(baseball(), model=build, seed=0)
    with pytest.raises(OptionError, match="is sampled"):
        fit(baseball(), model=build, method="laplace", seed=0)
