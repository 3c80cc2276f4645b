"""``sampler=``: what is set of the chains is what they do, or is refused by name."""

import importlib

import numpy as np
import pytest
import xarray as xr

import bayesfair as bf
from bayesfair.inference.beliefs_by_fits import sequential_beliefs
from bayesfair.inference.nuts import CompiledModel
from bayesfair.inference.sampler import Sampler

DUELS = bf.Comparisons.from_counts(["a", "b", "c"], ["b", "c", "a"], [7, 2, 5], [3, 4, 6])
LOG = bf.History(["a", "b"] * 6, [1, 0] * 5 + [1, 1], selection_probability=[[0.5, 0.5]] * 12)


def nuts(**sampler):
    return bf.fit(DUELS, method="nuts", seed=1, draws=2000, sampler=sampler)


def test_chains_and_steps_are_those_that_were_set():
    plain, careful = nuts(), nuts(target_accept=0.99, chains=2)
    assert plain["posterior"].sizes["chain"] == 4 and "sampler" not in plain.attrs
    assert careful["posterior"].sizes["chain"] == 2
    assert careful["posterior"].sizes["draw"] == 1000
    assert careful.attrs["sampler"] == '{"target_accept": 0.99, "chains": 2}'
    # the higher the acceptance aimed at, the shorter the steps and the more of them
    steps = [tree["sample_stats"]["step_size"].mean() for tree in (plain, careful)]
    assert steps[1] < 0.7 * steps[0]
    number = [tree["sample_stats"]["n_steps"].mean() for tree in (plain, careful)]
    assert number[1] > number[0]


def test_another_warm_up_gives_other_draws_of_the_same_posterior():
    one, two = nuts()["posterior"]["log_worth"], nuts(tune=100)["posterior"]["log_worth"]
    assert not np.array_equal(one, two)
    # of 2000 draws with at least 400 effective: 5 standard errors
    error = 5 * one.std(("chain", "draw")) * np.sqrt(2 / 400)
    assert np.all(np.abs(one.mean(("chain", "draw")) - two.mean(("chain", "draw"))) < error)


def test_draws_are_a_multiple_of_the_chains():
    tree = bf.fit(DUELS, method="nuts", seed=1, draws=2000, sampler={"chains": 3})
    assert tree["posterior"].sizes["chain"] * tree["posterior"].sizes["draw"] == 2001
    assert tree.attrs["draws"] == 2001


class Recorded(CompiledModel):
    """What a PyMC model is sampled with, without compiling it."""

    def __init__(self, sampler):
        self.sampler, self.asked = sampler, []

    def sample(self, **settings):
        self.asked.append(settings)
        rng = np.random.default_rng(len(self.asked))
        shape = settings.get("chains", 4), settings["draws"]
        values = {"x": (("chain", "draw"), rng.normal(size=shape))}
        return xr.DataTree.from_dict({"/posterior": xr.Dataset(values)})


def test_models_in_pymc_are_sampled_as_told_in_every_attempt():
    told = Recorded(Sampler.of({"target_accept": 0.8, "tune": 300, "chains": 2}))
    told.fit(draws=400, seed=1)  # at least 1000 are judged
    first = told.asked[0]
    assert (first["target_accept"], first["tune"], first["chains"]) == (0.8, 300, 2)
    assert first["draws"] == 600
    assert {a["target_accept"] for a in told.asked} == {0.8}
    free = Recorded(Sampler())
    free.fit(draws=4000, seed=1)
    assert (free.asked[0]["target_accept"], free.asked[0]["tune"]) == (0.95, 1000)


@pytest.mark.parametrize(
    ("sampler", "column"),
    [
        ({"chain": 2}, None),
        ({"chains": 1}, "chains"),
        ({"tune": 0.5}, "tune"),
        ({"target_accept": 1}, None),
        ({"backend": "stan"}, None),
        (["chains"], "sampler"),
    ],
)
@pytest.mark.parametrize(
    "call",
    [
        lambda **how: bf.fit(DUELS, method="nuts", seed=1, **how),
        lambda **how: bf.audit(LOG, model="bernoulli_hierarchical", seed=1, **how),
        lambda **how: bf.beliefs(LOG, model="bernoulli_independent", seed=1, **how),
    ],
    ids=["fit", "audit", "beliefs"],
)
def test_what_is_no_setting_is_refused(call, sampler, column):
    with pytest.raises(bf.OptionError) as caught:
        call(sampler=sampler)
    if column is not None:
        assert caught.value.column == column


@pytest.mark.parametrize(
    "call",
    [
        lambda: bf.fit(LOG, seed=1, sampler={"chains": 2}),
        lambda: bf.fit(DUELS, method="laplace", seed=1, sampler={"tune": 100}),
        lambda: bf.fit(DUELS, prior_sd=np.inf, sampler={"tune": 100}),
        lambda: bf.fit(DUELS, method="nuts", seed=1, sampler={"backend": "pymc"}),
        lambda: bf.audit(LOG, seed=1, sampler={"chains": 2}),
        lambda: bf.audit(LOG, model="bernoulli_independent", seed=1, sampler={"chains": 2}),
        lambda: bf.beliefs(LOG, sampler={"chains": 2}),
    ],
)
def test_settings_of_chains_are_refused_where_there_are_none(call):
    with pytest.raises(bf.OptionError) as caught:
        call()
    assert caught.value.kind == "unused_option" and caught.value.column == "sampler"


def test_settings_that_a_certificate_makes_needless_are_noticed():
    many = bf.Comparisons.from_counts(["a", "b", "c"], ["b", "c", "a"], [70, 52, 55], [73, 54, 66])
    tree = bf.fit(many, seed=1, sampler={"target_accept": 0.99})
    assert tree.attrs["method"] == "laplace"
    assert '"option_without_effect"' in tree.attrs["notices"]


def test_the_settings_of_an_audit_reach_its_fits(monkeypatch):
    seen = {}

    class Stop(Exception):
        pass

    def fit(data, **options):
        seen.update(options)
        raise Stop

    for module in ("bayesfair.audit.truth.model", "bayesfair.audit.duels.truth"):
        monkeypatch.setattr(importlib.import_module(module), "fit", fit)
    asked = {"target_accept": 0.9, "chains": 3}
    with pytest.raises(Stop):
        bf.audit(LOG, model="bernoulli_hierarchical", seed=1, sampler=asked | {"cores": 1})
    assert seen["sampler"] == asked and seen["cores"] == 1
    seen.clear()
    log = bf.Comparisons.from_duels(["a", "b"], ["b", "a"], ["left"] * 2, keep_rows=True)
    with pytest.raises(Stop):
        bf.audit_comparisons(log, seed=1, sampler=asked)
    assert seen["sampler"] == asked
    for other in ({"worth": {"a": 1, "b": 2}}, {"fit": nuts()}):
        with pytest.raises(bf.OptionError) as caught:
            bf.audit_comparisons(log, seed=1, sampler=asked, **other)
        assert caught.value.kind == "unused_option"


def test_beliefs_of_fits_take_them(monkeypatch):
    made = []

    class Stop(Exception):
        pass

    def compiled(model, sampler=None):
        made.append(sampler)
        raise Stop

    monkeypatch.setattr("bayesfair.inference.refit.CompiledModel", compiled)
    with pytest.raises(Stop):
        sequential_beliefs(LOG, model="bernoulli_independent", seed=1, sampler={"chains": 2})
    assert made == [Sampler(chains=2)]
