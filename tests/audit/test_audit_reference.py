"""The audit against brute-force reference values and the published numbers of real logs."""

import json
from pathlib import Path

import numpy as np
import pytest

import bayesfair as bf
from bayesfair import examples

REFERENCE = Path(__file__).resolve().parents[1] / "reference"
SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
HISTORIES = [
    case
    for case in json.loads((REFERENCE / "beta_bernoulli_histories.json").read_text())["cases"]
    if case["T"]  # a log without rounds is refused
]


def history_of(case):
    pi = [r["logged_pi"]["float"] for r in case["rounds"][: case["T"]]]
    return bf.History(case["actions"], case["rewards"], selection_probability=pi)


def fair_and_logged(case):
    """The log, and the same choices with SD_TS's own exact probabilities."""
    logged = history_of(case)
    pi = [r["sd_ts"]["float"] for r in case["rounds"][: case["T"]]]
    return logged, bf.History(case["actions"], case["rewards"], selection_probability=pi)


@pytest.mark.parametrize("case", HISTORIES, ids=lambda c: c["id"])
@pytest.mark.parametrize("eps1", [0.0, 0.5, 1.0, 2.0])
def test_smallest_eps2_and_regret_of_every_reference_log(case, eps1):
    logged, own = fair_and_logged(case)
    rounds = case["rounds"][: case["T"]]
    result = bf.audit(logged, eps1=eps1, eps2=0, objective=False)
    needed = [r["eps2_logged"][str(eps1)] for r in rounds]
    assert result.smallest_eps2 == pytest.approx(max(needed), abs=1e-12)
    assert result.n_violating_rounds == sum(x > 1e-9 for x in needed)
    regret = [r["calibration_error"] for r in rounds]
    assert result.to_dict()["calibration"]["subjective"]["regret_total"] == pytest.approx(
        sum(regret), abs=1e-11
    )
    per_round = result.rounds()
    np.testing.assert_allclose(per_round["smallest_eps2"], needed, atol=1e-12)
    np.testing.assert_allclose(per_round["fairness_regret"], regret, atol=1e-12)
    np.testing.assert_allclose(
        per_round["best_arm_probability"], [r["sd_ts"]["float"] for r in rounds], atol=1e-12
    )
    needs = max(r["eps2_sd_ts"][str(eps1)] for r in rounds)
    assert bf.audit(own, eps1=eps1, eps2=0, objective=False).smallest_eps2 == pytest.approx(
        needs, abs=1e-12
    )


@pytest.mark.parametrize(
    ("eps1", "needed", "violating"),
    [(0, 0.8461538, 11), (0.5, 0.4938811, 11), (1, 0.1416084, 10), (2, 0.0, 0)],
)
def test_ecmo_log(eps1, needed, violating):
    history = bf.read_history(examples.path("ecmo"))
    result = bf.audit(history, eps1=eps1, eps2=0, objective=False)
    assert result.smallest_eps2 == pytest.approx(needed, abs=5e-8)
    assert result.n_violating_rounds == violating
    assert result.regret.value * 12 == pytest.approx(0.4498356, abs=5e-8)


obd = pytest.mark.skipif(not SHARED.exists(), reason="needs ../shared/data (Open Bandit sample)")


@obd
@pytest.mark.parametrize(
    ("file", "n", "regret", "error", "mean_weight"),
    [
        ("obd_bts_men.csv", 3339, 0.71902, 0.00612, 1.0092),
        ("obd_random_men.csv", 3284, 0.08058, 0.00167, 1.0016),
    ],
)
def test_open_bandit_position_1(file, n, regret, error, mean_weight):
    logs = bf.read_history(
        SHARED / file, arm="item_id", reward="click", propensity="propensity_score",
        order="timestamp", by="position",
    )  # fmt: skip
    result = bf.audit(logs["1"], objective=False)
    numbers = result.to_dict()
    part = numbers["calibration"]["subjective"]
    assert numbers["log"]["n_rounds"] == n
    assert part["regret_per_round"] == pytest.approx(regret, abs=5e-6)
    assert (part["upper"] - part["regret_per_round"]) / 1.96 == pytest.approx(error, abs=6e-6)
    assert numbers["calibration"]["mean_weight"] == pytest.approx(mean_weight, abs=5e-5)
    assert numbers["subjective"]["verdict"] == "not_auditable"
    ties = [n for n in numbers["notices"] if n.startswith("Most rounds are ties")]
    if file == "obd_bts_men.csv":
        assert numbers["calibration"]["effective_sample_size"] == pytest.approx(98.1, abs=0.05)
        assert numbers["calibration"]["max_weight"] == pytest.approx(259.1, abs=0.05)
        assert len(ties) == 1  # clicks below 1 %, and a rule that concentrates
    else:
        assert not ties  # as many ties, but a uniform rule has no large regret to explain


def test_objective_reference_draw_by_draw():
    """Smallest eps2 and regret under each given theta, against enumeration."""
    for case in json.loads((REFERENCE / "objective_audit.json").read_text())["cases"]:
        pi = np.array([p["float"] for p in case["pi"]])
        history = bf.History(pi.argmax(axis=1), np.zeros(len(pi)), selection_probability=pi)
        for theta, expected in zip(case["theta_draws"], case["per_draw"], strict=True):
            truth = bf.rewards.Bernoulli(theta["float"])
            for eps1, needed in expected["eps2"].items():
                result = bf.audit(history, eps1=float(eps1), truth=truth)
                spread = result.to_dict()["objective"]["smallest_eps2"]
                assert spread["mean"] == pytest.approx(needed, abs=1e-12)
                assert spread["lower"] == spread["upper"] == spread["mean"]
            exact = result.to_dict()["calibration"]["objective"]
            assert exact["exact"]
            assert exact["regret_total"] == pytest.approx(expected["regret"], abs=1e-11)
            np.testing.assert_allclose(
                result.objective.p_best[0], expected["best"]["float"], atol=1e-12
            )


def test_fairness_regret_reference_with_known_truth():
    for case in json.loads((REFERENCE / "fairness_regret.json").read_text())["cases"]:
        if "m" not in case:
            continue
        pi = np.array([p["float"] for p in case["pi"]])
        named = range(pi.shape[1])
        log = bf.History(pi.argmax(axis=1), np.zeros(len(pi)), arms=named, selection_probability=pi)
        result = bf.audit(log, truth=bf.rewards.Bernoulli(case["m"]["float"]))
        assert result.regret_objective.value * len(pi) == pytest.approx(
            case["total_float"], abs=1e-12
        )
