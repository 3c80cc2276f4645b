"""The page says what the numbers say, for every kind of log, and says what is missing."""

import copy
import re

import numpy as np
import pytest
from page_tools import log, page_of

import bayesfair as bf
from bayesfair.report.words import unchecked


def test_the_verdict_comes_first_with_what_it_rests_on(ecmo, tmp_path):
    page = page_of(ecmo, tmp_path)
    start = page.text[:1500]
    assert "under the beliefs of each round UNFAIR in 8 of 12 rounds" in start
    assert (
        f"under the true rewards UNDETERMINED probability fair {ecmo.probability_fair:.4f}" in start
    )
    assert f"Fairness regret {ecmo.regret.value:.4f} per round." in start
    assert "UNFAIR The decisions did not keep to the criterion." in start
    # worked out by hand from the log: rounds whose excess at eps1 = 1 is above 0.05
    needed = ecmo.rounds()["smallest_eps2"].values
    assert f"{(needed > 0.05).sum()} of 12 rounds gave two arms" in start
    assert "The worst case is round 11 (row 13): ECMO was favoured over conventional ." in start
    assert f"with probability {ecmo.probability_fair:.4f}" in start


def test_every_number_of_the_tables_is_that_of_the_json(ecmo, tmp_path):
    page = page_of(ecmo, tmp_path)
    numbers = ecmo.to_dict()
    assert page.numbers == numbers
    believed = ecmo.to_dataframe()
    for row, arm in zip(page.table("arm", "n"), numbers["arms"], strict=True):
        mean, low, high = (
            f"{value:.3f}" if value >= 0.001 else f"{value:.2g}"
            for value in believed.loc[
                arm["arm"], ["reward_believed", "reward_lower", "reward_upper"]
            ]
        )
        assert row == [
            arm["arm"], str(arm["n"]), f"{arm['reward_mean']:.4f}", f"{mean} [{low}, {high}]", *(
                f"{arm[key]:.4f}" for key in
                ("p_best_subjective", "p_best_objective", "selection_mean")
            ),
        ]  # fmt: skip
    for row, point in zip(page.table("eps1", "beliefs"), numbers["frontier"], strict=True):
        o = point["objective"]
        assert float(row[0]) == point["eps1"]
        assert row[1:3] == [f"{point['subjective']:.4f}", f"{o['mean']:.4f}"]
        assert row[3] == f"[{o['lower']:.4f}, {o['upper']:.4f}]"
    beliefs, truth = page.table("judged", "per round")
    part = numbers["calibration"]["subjective"]
    assert beliefs[1] == f"{part['regret_per_round']:.4f}" == "0.0375"
    assert beliefs[2:] == ["none", f"{part['regret_total']:.4f}", "exact"]
    part = numbers["calibration"]["objective"]
    assert truth[2] == f"[{part['lower']:.4f}, {part['upper']:.4f}]"
    words = {row[0]: row[1] for row in page.table("Word", "Value")}
    assert words["eps1"] == "1"
    assert words["eps2"] == words["delta"] == "0.05"
    assert words["divergence"] == "total variation"
    assert words["prior"] == numbers["criterion"]["prior"]


def nulls(value, path=""):
    """Yield the dotted path of every null, list positions left out."""
    if value is None:
        yield path.lstrip(".")
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from nulls(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from nulls(inner, path)


def never_chosen():
    return bf.History(["a"] * 9, [1, 0, 1] * 3, arms=["a", "b"],
                      selection_probability=[[0.7, 0.3]] * 9)  # fmt: skip


@pytest.mark.parametrize(
    "audit",
    [
        pytest.param(lambda: bf.audit(log(3, 60), seed=1), id="full"),
        pytest.param(lambda: bf.audit(log(3, 60, "chosen"), seed=1), id="chosen"),
        pytest.param(lambda: bf.audit(log(3, 60, "none"), seed=1), id="none"),
        pytest.param(lambda: bf.audit(log(3, 60), objective=False), id="no objective"),
        pytest.param(lambda: bf.audit(log(3, 60, "none"), objective=False), id="bare"),
        pytest.param(lambda: bf.audit(log(3, 60, "chosen"), objective=False), id="chosen, bare"),
        pytest.param(lambda: bf.audit(log(1, 20), seed=1), id="one arm"),
        pytest.param(lambda: bf.audit(never_chosen(), seed=1), id="never chosen"),
        pytest.param(
            lambda: bf.audit(log(2, 60), seed=np.random.default_rng(1)), id="generator"
        ),
        pytest.param(
            lambda: bf.audit(log(2, 60), truth=bf.rewards.Bernoulli([0.5, 0.4])), id="truth"
        ),
        pytest.param(
            lambda: bf.audit(
                bf.History(["a", "b", "a"] * 5, [1, np.nan, 0] * 5, missing="unobserved"), seed=1
            ),
            id="unobserved",
        ),
    ],
)  # fmt: skip
def test_every_null_has_its_reason_on_the_page(audit, tmp_path):
    result = audit()
    numbers = result.to_dict()
    claimed = tuple(key for one in unchecked(numbers) for key in one.keys)
    nothing_drawn = numbers["criterion"]["model"] in {None, "truth"}
    for path in set(nulls(numbers)):
        if path == "criterion.seed" and nothing_drawn:
            continue
        if path in ("criterion.prior_learned", "criterion.propensity_draws"):
            continue  # nothing was to be learned; the probabilities are exact
        if path == "subjective.worst.row" and numbers["subjective"]["verdict"] == "fair":
            continue  # no round is named, so none is missing its row
        part, _, key = path.rpartition(".")
        if key in {"first_violating_round", "last_violating_round"}:
            n = numbers[part]["n_violating_rounds"]
            if n == 0 or (isinstance(n, dict) and n["upper"] == 0 == n["mean"]):
                continue  # none violates: there is no first one
        assert any(path == key or path.startswith(key + ".") for key in claimed), path
    page = page_of(result, tmp_path)
    for one in unchecked(numbers):
        assert one.why in page.text
    for notice in numbers["notices"]:
        assert " ".join(notice.split()) in page.text
    # nothing that Python or Jinja would print for a missing value
    assert not re.search(r"\b(None|nan|NaN|Undefined)\b", page.text)
    assert page.numbers == numbers


def test_lower_bound_and_estimate_are_named_as_such(tmp_path):
    page = page_of(bf.audit(log(3, 60, "none"), seed=1), tmp_path)
    assert "With 95 % confidence at least" in page.text
    assert page.table("judged")[0][-1] == "lower bound only"
    assert "NOT AUDITABLE" in page.text
    # P* against the shares of the choices, and what is believed of the rewards
    assert len(page.all("svg")) == 2
    result = bf.audit(log(3, 60, "chosen"), seed=1)
    page = page_of(result, tmp_path)
    assert page.table("judged")[0][-1] == "estimated"
    size = result.to_dict()["calibration"]["effective_sample_size"]
    assert f"effective sample size {size:.1f} of 60 rounds" in page.text
    plays = [arm["n"] for arm in result.to_dict()["arms"]]
    shares = {row[0]: row[-1] for row in page.table("arm", "n")}  # first who is furthest from P*
    assert [shares[arm] for arm in result.data.arms] == [f"{n / 60:.4f}" for n in plays]


def test_infinite_values_are_shown_and_not_drawn(tmp_path):
    history = bf.History(["a", "b"] * 9, [1, 0] * 9, selection_probability=[[1, 0], [0, 1]] * 9)
    result = bf.audit(history, divergence="kl", seed=1)
    page = page_of(result, tmp_path)
    assert {row[1] for row in page.table("eps1", "beliefs")} == {"inf"}
    assert [a["aria-labelledby"] for a in page.all("svg")] == [
        "violations-alt", "pairs-alt", "regret-alt", "windows-alt", "reliability-alt",
        "selection-alt", "rewards-alt",
    ]  # fmt: skip
    assert "Kullback-Leibler" in page.text


def test_known_truth_groups_of_arms_and_utility(tmp_path):
    truth = bf.rewards.Bernoulli([0.6, 0.5, 0.3])
    run = bf.simulate(bf.policies.FairSDTS(eps2=0.2, delta=0.1), truth, n_rounds=300, seed=1)
    groups = dict(zip(run.arms, ["low", "low", "high"], strict=True))
    result = bf.audit(run, truth=truth, arm_groups=groups)
    page = page_of(result, tmp_path)
    numbers = result.to_dict()
    assert [row[:2] for row in page.table("group", "and group")] == [
        [g["group"], g["group_other"]] for g in numbers["arm_groups"]
    ]
    assert f"standard regret {numbers['utility']['standard_regret']:.1f} in total" in page.text
    exact = next(table[0] for table in page.tables if table[0][0] == "eps1" and len(table) > 3)
    assert exact == ["eps1", "beliefs", "true rewards"]  # no interval
    assert "truth=..." in page.text


def test_sensitivity_to_the_prior_is_shown(ecmo, tmp_path):
    from bayesfair.audit.truth.sensitivity import with_prior_sensitivity

    result = with_prior_sensitivity(ecmo)
    page = page_of(result, tmp_path)
    found = result.to_dict()["prior_sensitivity"]
    assert [row[2] for row in page.table("power", "verdict")] == [
        f"{row['probability_fair']:.4f}" for row in found["powers"]
    ]
    assert [row[0] for row in page.table("quantity")] == [
        q["quantity"] for q in found["quantities"]
    ]


@pytest.mark.parametrize(
    ("missing", "meaning"),
    [
        ("unobserved", "beliefs do not learn from them"),
        ("drop", "Rounds without a reward are left out."),
        (0.0, "This number stands where no reward was logged."),
    ],
)
def test_what_was_missing_is_counted_and_explained(tmp_path, missing, meaning):
    rows = ["a,1,0.5,0.5", "b,,0.5,0.5", "a,0,0.5,0.5", "b,1,0.5,0.5", "a,,0.5,0.5"]
    (tmp_path / "log.csv").write_text("\n".join(["arm,reward,p_a,p_b", *rows]))
    result = bf.audit(bf.read_history(tmp_path / "log.csv", missing=missing), seed=1, draws=100)
    page = page_of(result, tmp_path)
    assert meaning in {row[0]: row[2] for row in page.table("Word")}["missing rewards"]
    counted = {"unobserved": (5, 2, 0), "drop": (3, 0, 2), 0.0: (5, 0, 0)}[missing]
    rounds, unobserved, left_out = counted
    assert f"Rounds {rounds} Arms 2" in page.text
    assert f"Rewards not observed {unobserved} Rows left out {left_out}" in page.text


class Stub:
    """An audit with other numbers."""

    def __init__(self, numbers):
        self.numbers = numbers

    def to_dict(self):
        return self.numbers


def test_the_file_of_the_worst_row_is_named_where_there_are_several(ecmo, tmp_path):
    numbers = copy.deepcopy(ecmo.to_dict())
    numbers["subjective"]["worst"]["source"] = "part-2.csv"
    page = page_of(Stub(numbers), tmp_path)
    assert "The worst case is round 11 (row 13 of part-2.csv )" in page.text
    assert [a["aria-labelledby"] for a in page.all("svg")] == ["frontier-alt", "selection-alt"]


def test_a_log_that_contradicts_itself_is_said_first_and_every_test_is_listed(tmp_path):
    odd = log(2, 400, seed=3)
    p = np.full((400, 2), 0.5)
    audit = bf.audit(
        bf.History(np.repeat([0, 1], [300, 100]).astype(np.int32), odd.reward,
                   selection_probability=p, arms=("a", "b")), seed=1)  # fmt: skip
    page = page_of(audit, tmp_path)
    assert "The log contradicts itself (choices, sticky)" in page.text[:600]
    rows = {row[0]: row[1:] for row in page.table("check", "outcome")}
    assert rows["arms chosen as often as logged"][0] == "FAILED"
    assert rows["no rows stand there twice"][0] == "passed"
    made = [c for c in audit.checks.values() if c.passed is not None]
    assert len(rows) == len(made)
    assert "whether a column of the log holds it or not" in page.text
