"""Sentences of the page against the numbers that they stand for."""

import numpy as np
import pytest
from page_tools import Page

import bayesfair as bf
from bayesfair.report import words


@pytest.fixture(scope="module")
def chosen():
    rng = np.random.default_rng(3)
    rule = np.array([0.9, 0.1])
    arm = rng.choice(2, 200, p=rule)
    return bf.History(arm, rng.integers(0, 2, 200), arms=(0, 1), propensity=rule[arm])


def test_the_estimate_is_not_said_to_rest_on_ratios_that_it_does_not_use(chosen, tmp_path):
    audit = bf.audit(chosen, seed=1)
    bf.write_report(audit, tmp_path / "a.html")
    page = Page.of(tmp_path / "a.html")
    text = " ".join(page.text.split())
    assert "few rounds carry most of the estimate" not in text
    assert "A small effective size says that their mean is a weak check" in text
    # what the page says of the estimate: terms 1 - P*/p, and 0 where that is negative
    best = bf.beliefs(chosen).best_arm_probability.values
    ratio = best[np.arange(200), chosen.arm] / np.where(chosen.arm == 0, 0.9, 0.1)
    assert audit.regret.value == pytest.approx(np.maximum(1 - ratio, 0).mean(), abs=1e-12)
    numbers = audit.to_dict()["calibration"]
    assert numbers["mean_weight"] == pytest.approx(ratio.mean(), abs=1e-12)
    assert f"their mean is {ratio.mean():.4f}" in text


def test_beliefs_of_a_sampled_model_are_not_called_exact():
    assert words.exactness({"beliefs_model": "conjugate"}) == "exact"
    assert "Monte-Carlo" in words.exactness({"beliefs_model": "bernoulli_hierarchical"})
    said = words.limits({"beliefs_model": "bernoulli_hierarchical"})
    assert not any("is exact for" in sentence for sentence in said)


def test_draws_that_did_not_converge_are_not_weighed_against_delta():
    log = bf.History(["a", "b"] * 9, [1, 0] * 9, selection_probability=[[0.5, 0.5]] * 18)
    numbers = bf.audit(log, seed=1).to_dict()
    numbers["objective"] |= {"verdict": "undetermined", "converged": False}
    numbers["objective"]["probability_fair"] = 0.99  # above 1 - delta
    said = " ".join(words.verdict_sentences(numbers))
    assert "did not converge, so this stays open" in said and "less than 0.95" not in said


def test_a_slope_of_0_does_not_ask_for_equal_chances_beyond_eps2():
    log = bf.History(["a", "b"] * 9, [1, 0] * 9, selection_probability=[[0.51, 0.49]] * 18)
    audit = bf.audit(log, eps1=0, eps2=0.03, seed=1)
    assert audit.subjective_verdict == "fair"  # .02 apart
    meaning = next(row[2] for row in words.criterion_rows(audit.to_dict()["criterion"]))
    assert "equal chances, up to eps2" in meaning
