"""One label in all its forms (1, 1.0, "1", NumPy's scalars) is one arm, in every entry."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import bayesfair as bf
from bayesfair.base import labels
from bayesfair.errors import ArmError
from bayesfair.families import FAMILIES
from bayesfair.families.priors import prior_table
from bayesfair.inference.arms import fit_history
from bayesfair.policies import SDTS
from bayesfair.rewards import Bernoulli

FORMS = [
    1, 1.0, "1", " 1\u00a0", np.int8(1), np.uint64(1), np.float32(1), np.float64(1), np.str_("1"),
    np.array(1.0), Decimal("1.00"), b"1", xr.DataArray(1.0),
]  # fmt: skip
MISSING = [
    None, float("nan"), np.float32("nan"), np.nan, pd.NA, pd.NaT, np.datetime64("NaT", "s"),
    Decimal("NaN"), "", " \t",
]  # fmt: skip
EVEN = [[0.5, 0.5]] * 4


def log(arms=("1", "2")):
    return bf.History(
        ["1", "2", "1", "2"], [1, 0, 1, 1], selection_probability=EVEN, arms=list(arms)
    )


@pytest.mark.parametrize("form", FORMS, ids=repr)
def test_every_form_is_one_label(form):
    assert labels.one_label(form) == "1"


def test_text_stays_as_it_is_written():
    assert [labels.one_label(t) for t in ("01", "1.0", "1.50", "None", "NA", "<NA>")] == [
        "01", "1", "1.50", "None", "NA", "<NA>",
    ]  # fmt: skip


@pytest.mark.parametrize("nothing", MISSING, ids=repr)
def test_a_missing_label_is_refused_with_its_option(nothing):
    with pytest.raises(ArmError, match="a missing label") as caught:
        labels.one_label(nothing, "group", "arm_groups")
    assert (caught.value.kind, caught.value.column) == ("missing_label", "arm_groups")
    assert caught.value.value == repr(nothing)


def entries(form):
    """Everything that takes labels, by name: a call that returns what the label 1 got."""
    other = "2"
    duels = bf.Comparisons.from_counts(["1"], ["2"], [7], [3])
    pairs = bf.Comparisons.from_duels(["1", "2"] * 4, ["2", "1"] * 4, ["left"] * 8, keep_rows=True)
    uniform = np.array([[0, 0.5], [0.5, 0]])
    yield "History arms", lambda: bf.History(["1"], [1], arms=[form, other]).arms[0]
    yield "History prior", lambda: bf.History(
        ["1"], [1], arms=["1", "2"], prior_counts={form: (3, 4)}
    ).prior_counts[0]  # fmt: skip
    yield "prior of the beliefs", lambda: prior_table(
        {form: (3, 4)}, FAMILIES["bernoulli"], ["1", "2"]
    )[0]  # fmt: skip
    yield "prior of an audit", lambda: bf.audit(
        log(), prior={form: (3, 4)}, seed=1, draws=10
    ).state.prior[0]  # fmt: skip
    yield "prior of a fit", lambda: fit_history(
        log(), prior={form: (3, 4)}, seed=1, draws=8
    )["constant_data"]["prior"].sel(arm="1").values  # fmt: skip
    yield "rewards", lambda: Bernoulli([0.7, 0.4], arms=[form, other]).arms[0]
    yield "truth", lambda: bf.audit(
        log(), truth=Bernoulli([0.4, 0.7], arms=[other, form])
    ).to_dict()["objective"]["smallest_eps2"]["mean"]  # fmt: skip
    yield "groups", lambda: next(iter(bf.audit({form: log()}, objective=False).audits))
    yield "group looked up", lambda: bf.audit({"1": log()}, objective=False)[form].verdict
    yield "arm_groups", lambda: bf.audit(
        log(), objective=False, arm_groups={form: "x", other: "y"}
    ).arm_groups.member[0]  # fmt: skip
    yield "groups of arm_groups", lambda: bf.audit(
        log(), objective=False, arm_groups={"1": form, "2": form}
    ).arm_groups.member[1]  # fmt: skip
    yield "rule", lambda: SDTS().start([form, other], prior={"1": (3, 4)}).prior[0]
    yield "simulate", lambda: bf.simulate("uniform", {form: 0.7, other: 0.4}, 3, seed=1).arms[0]
    yield "on offer", lambda: bf.simulate(
        "uniform", {"1": 0.7, "2": 0.4}, 3, seed=1, offered={form: (0, 2)}
    ).offered[:, 0]  # fmt: skip
    yield "utility", lambda: bf.utility(log(), {other: 0.4, form: 0.7}).reward_per_round
    yield "simulated duels", lambda: bf.simulate_duels(
        bf.policies.FairSDDTS(C=2), {form: 3, other: 2}, 20, seed=1
    ).items[0]  # fmt: skip
    yield "worths of duels", lambda: bf.audit_comparisons(
        pairs, pair_probability=uniform, worth={other: 1.0, form: 3.0}, seed=1
    ).to_dict()["items"][0]["p_best_objective"]  # fmt: skip
    yield "items", lambda: bf.Comparisons.from_duels(
        ["1"], ["2"], ["left"], items=[form, other]
    ).items[0]  # fmt: skip
    yield "win matrix", lambda: bf.Comparisons.from_win_matrix(
        [[0, 3], [1, 0]], [form, other]
    ).items[0]  # fmt: skip
    yield "ranks", lambda: bf.Comparisons.from_rankings(
        ranks=[[1, 2]], items=[form, other]
    ).items[0]  # fmt: skip
    yield "choice", lambda: bf.Comparisons.from_choices(
        ["1"], [[form, other]]
    ).orderings()[0][0]  # fmt: skip
    yield "ordering", lambda: bf.Comparisons.from_rankings([[form, other]]).orderings()[0][0]
    yield "covariates", lambda: duels.with_covariates(
        {"size": {form: 1.5, other: 2}}
    ).covariates[0, 0]  # fmt: skip
    yield "without", lambda: duels.without(form).items
    yield "reference", lambda: bf.fit(
        duels, prior_sd=np.inf, seed=1, reference=form
    )["mode"].attrs["reference"]  # fmt: skip
    yield (
        "anchor",
        lambda: float(
            bf.rank_table(bf.fit(duels, seed=1, draws=40), anchor=form)["log_worth"].sel(item="1")
        ),
    )
    yield "outcomes", lambda: bf.Comparisons.from_duels(
        ["a"], ["b"], [1], outcomes={form: "right"}
    ).win_matrix()[1, 0]  # fmt: skip
    yield (
        "labelled probabilities",
        lambda: float(
            bf.smallest_eps2(
                xr.DataArray(
                    [0.9, 0.1], dims="arm", coords={"arm": np.array([2, form], dtype=object)}
                ),
                Bernoulli([0.7, 0.7], arms=["1", "2"]),
            )["excess"]
        ),
    )
    yield "columns", lambda: bf.History(
        ["1"], [1], selection_probability=pd.DataFrame({form: [0.25], other: [0.75]})
    ).selection_probability[0]  # fmt: skip


EXPECTED = {
    "History arms": "1", "History prior": [3, 4], "prior of the beliefs": [3, 4],
    "prior of an audit": [3, 4], "prior of a fit": [3, 4], "rewards": "1",
    "truth": 0.0,  # both arms are chosen alike
    "groups": "1", "group looked up": "fair", "arm_groups": "x", "groups of arm_groups": "1",
    "rule": [3, 4], "simulate": "1", "on offer": [True, True, False],
    "utility": 0.55, "simulated duels": "1", "worths of duels": 0.75, "items": "1",
    "win matrix": "1", "ranks": "1", "choice": ("1",), "ordering": ("1",), "covariates": 1.5,
    "without": ("2",), "reference": "1", "anchor": 0.0, "outcomes": 1.0,
    "labelled probabilities": 0.8, "columns": [0.25, 0.75],
}  # fmt: skip


@pytest.mark.parametrize("form", [1, 1.0, np.float32(1), "1 "], ids=repr)
def test_every_entry_takes_a_label_in_any_form(form):
    for name, call in entries(form):
        found = call()
        if isinstance(found, np.ndarray):
            found = found.tolist()
        if isinstance(found, float):
            found = round(found, 12)
        assert found == EXPECTED[name], name


@pytest.mark.parametrize("nothing", [None, float("nan"), pd.NA, pd.NaT], ids=repr)
@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_no_entry_takes_a_missing_label_for_a_word(name, nothing):
    """Neither 'nan' nor 'None', '<NA>' or 'NaT' is ever a label."""
    if name == "ordering":
        pytest.skip("an empty place of an ordering is an item that was not ranked")
    if name in ("reference", "anchor") and nothing is None:
        pytest.skip("None is no item: the option is not given")
    call = dict(entries(nothing))[name]
    with pytest.raises(bf.BayesfairError) as caught:
        call()
    assert caught.value.kind or "label" in str(caught.value)
    assert not any(f"'{word}'" in str(caught.value) for word in ("nan", "None", "<NA>", "NaT"))


@pytest.mark.parametrize(
    ("option", "call"),
    [
        ("prior", lambda m: bf.audit(log(), prior={k: (1, 1) for k in m}, seed=1)),
        ("arm_groups", lambda m: bf.audit(log(), objective=False, arm_groups=m)),
        ("data", lambda m: bf.audit(dict.fromkeys(m, log()), objective=False)),
        ("rewards", lambda m: bf.simulate("uniform", dict.fromkeys(m, 0.5), 3, seed=1)),
        ("worth", lambda m: bf.simulate_duels(bf.policies.FairSDDTS(C=2), dict.fromkeys(m, 1.0), 3,
                                              seed=1)),
        ("covariate 'x'", lambda m: bf.Comparisons.from_counts(["1"], ["2"], [7], [3])
            .with_covariates({"x": dict.fromkeys(m, 1.0)})),
        ("outcomes", lambda m: bf.Comparisons.from_duels(
            ["a"], ["b"], ["1"], outcomes=dict.fromkeys(m, "left"))),
    ],
)  # fmt: skip
def test_two_keys_that_are_one_label_are_refused_by_name(option, call):
    with pytest.raises(ArmError, match="as 1 and as '1', which are one label") as caught:
        call({1: "x", "1": "y", "2": "x"})
    assert (caught.value.kind, caught.value.column, caught.value.value) == (
        "label_twice", option, "1",
    )  # fmt: skip


def test_a_truth_is_matched_by_label_whole_and_scanned(tmp_path):
    """|pi_a - pi_b| = .4 exceeds the truth's .3: exactly by hand, whatever the order."""
    path = tmp_path / "log.csv"
    path.write_text("arm,reward,p_a,p_b\n" + "a,1,.7,.3\n" * 3)
    for order in (["a", "b"], ["b", "a"]):
        mean = [{"a": 0.8, "b": 0.5}[arm] for arm in order]
        truth = Bernoulli(mean, arms=order)
        whole = bf.audit(bf.read_history(path), truth=truth, eps1=1, eps2=0)
        scanned = bf.audit(bf.scan_history(path, arms=["a", "b"]), truth=truth, eps1=1, eps2=0)
        for found in (whole, scanned):
            numbers = found.to_dict()
            assert numbers["objective"]["smallest_eps2"]["mean"] == pytest.approx(0.1)
            best = {arm["arm"]: arm["p_best_objective"] for arm in numbers["arms"]}
            # P*(a) = .8 (1 - .5) + (.8 .5 + .2 .5) / 2
            assert best["a"] == pytest.approx(0.65, abs=1e-12)
    with pytest.raises(ArmError, match="on one side only"):
        bf.audit(bf.read_history(path), truth=Bernoulli([0.5, 0.5], arms=["a", "c"]))


def test_a_round_or_group_without_label_carries_the_kind(tmp_path):
    with pytest.raises(ArmError) as caught:
        bf.History(["a", None], [1, 0])
    assert (caught.value.kind, caught.value.column) == ("missing_label", "arm")
    for text, by in (("arm,reward,g\na,1,x\n,0,x\n", None), ("arm,reward,g\na,1,x\na,0,\n", "g")):
        path = tmp_path / "log.csv"
        path.write_text(text)
        with pytest.raises(bf.BayesfairError, match=r"row 3.*empty") as caught:
            bf.read_history(path, by=by)
        assert (caught.value.kind, caught.value.column) == ("missing_label", by or "arm")
        assert by or caught.value.row == 3
