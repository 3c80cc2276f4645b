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


def _text(result, path, **options):
    bf.write_report(result, path, **options)
    return " ".join(Page.of(path).text.split())


def test_a_page_of_shares_of_draws_counts_what_its_verdict_counts(tmp_path):
    rng = np.random.default_rng(1)
    share = np.round(rng.binomial(1000, 0.56, 40) / 1000, 3)
    log = bf.History(
        rng.integers(0, 2, 40), [1, 0] * 20, arms=(0, 1),
        selection_probability=np.stack([share, 1 - share], axis=1),
    )  # fmt: skip
    audit = bf.audit(log, propensity_draws=1000, eps1=0, seed=1, draws=100)
    # by hand: Hoeffding leaves differences of two shares of 1000 open by about .22
    assert (np.abs(2 * share - 1) > 0.05).any() and np.abs(2 * share - 1).max() < 0.05 + 0.22
    assert audit.to_dict()["subjective"]["n_violating_rounds"] == 0
    assert len(audit.over_time().worst_round) == 0 and not audit.over_time().violating_share.any()
    text = _text(audit, tmp_path / "a.html")
    assert "by more than Monte Carlo error explains, and whether others were" in text
    low, high = audit.to_dict()["monte_carlo"]["probability_fair"]
    assert (low, high) == (0, 1)  # at eps1 = 0 nothing hangs on the rewards
    assert f"leaves {low:.4f} to {high:.4f}, which is neither" in text
    assert "Every violating round" not in text and "more than 0.05 and less" not in text
    assert "Estimated from the chosen" not in text and "propensity_draws=1000" in text


def test_where_nothing_is_drawn_no_generator_is_named(tmp_path):
    log = bf.History(["a", "b"], [1, 0], selection_probability=[[0.5, 0.5]] * 2)
    for options in (
        {"objective": False},
        {"truth": bf.rewards.Bernoulli([0.6, 0.5], arms=("a", "b"))},
    ):
        text = _text(bf.audit(log, **options), tmp_path / "a.html")
        assert "Nothing was drawn" in text and "a generator that" not in text


def test_missing_rewards_of_a_log_in_memory_are_not_said_to_be_refused(tmp_path):
    log = bf.History(["a", "b"], [1, np.nan], selection_probability=[[0.5, 0.5]] * 2)
    text = _text(bf.audit(log, objective=False), tmp_path / "a.html")
    assert "A file that lacks a reward is refused" not in text
    assert "Rounds without a reward count in every fairness number" in text


def test_a_page_of_a_fit_counts_the_comparisons_that_were_used_and_repeats_its_options(tmp_path):
    games = bf.Comparisons.from_duels(
        list("abcabcab"), list("bcacabba"), ["left"] * 4 + ["right", "left", "tie", "tie"]
    )
    tree = bf.fit(games, ties="drop", prior_sd=0.5, draws=400, seed=3)
    text = _text(tree, tmp_path / "a.html", comparisons=games)
    assert "6 of 8 comparisons of 3 items, ties left out" in text
    assert "model='bradley_terry', ties='drop', prior_sd=0.5, draws=400, seed=3)" in text


def test_the_page_tells_of_a_rule_that_was_estimated(tmp_path):
    log = bf.History(["a", "b"] * 10, [1, 0] * 10)
    audit = bf.audit(log, rule="estimated", rule_window=10, seed=1, draws=50)
    text = _text(audit, tmp_path / "a.html")
    regret = audit.to_dict()["modelled"]["regret_per_round"]["mean"]
    assert "2 windows of 10 rounds" in text and f"regret {regret:.4f} [" in text
    assert "rule='estimated', rule_window=10" in text
