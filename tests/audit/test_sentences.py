"""Sentences of reports and notices against the numbers that they stand for."""

import numpy as np
import pytest

import bayesfair as bf
from bayesfair.audit.log.verdict_words import question_words, regret_words
from bayesfair.comparisons import Comparisons
from bayesfair.ranking import fit_summary

HALF = [0.5, 0.5]


def log_of(kind, n=40, seed=0, rule=(0.5, 0.3, 0.2)):
    """A log of three arms with a constant rule, as much of it logged as ``kind`` says."""
    rng = np.random.default_rng(seed)
    arm = rng.choice(3, n, p=rule)
    p = np.asarray(rule)[arm] if kind == "chosen" else None
    pi = [rule] * n if kind == "full" else None
    return bf.History(
        [("a", "b", "c")[i] for i in arm], rng.integers(0, 2, n), arms=("a", "b", "c"),
        selection_probability=pi, propensity=p,
    )  # fmt: skip


def kinds(audit):
    return {found["kind"]: found["text"] for found in audit.to_dict()["findings"]}


def test_intervals_are_called_what_they_are():
    # full: draws of the true rewards alone; chosen: a mean +- 1.96 s.e.; none: Wilson's of shares
    said = str(bf.audit(log_of("full"), seed=1))
    assert "Intervals hold 95 %: equal-tailed over the draws of the true rewards.\n" in said
    said = str(bf.audit(log_of("chosen"), seed=1)).replace("\n", " ")
    assert "normal ones of a mean for the estimated regret" in said
    assert "Wilson's for shares" in str(bf.audit(log_of("none"), seed=1)).replace("\n", " ")
    exact = str(bf.audit(log_of("full"), truth=bf.rewards.Bernoulli([0.6, 0.5, 0.4])))
    assert (
        "Intervals" not in exact
        and "[" not in exact.split("Smooth fairness")[1].split("arm ", maxsplit=1)[0]
    )


def test_a_lower_limit_is_said_to_be_one_and_how_sure():
    audit = bf.audit(log_of("none", rule=(1.0, 0.0, 0.0), n=400), seed=1)
    lower = audit.to_dict()["calibration"]["subjective"]["lower"]
    assert lower > 0.05
    assert regret_words(audit.to_dict()) == f"fairness regret at least {lower:.4f} per round (95 %)"


def test_lower_limits_are_not_mixed_with_values_of_other_logs():
    group = bf.audit(
        {"x": log_of("full"), "y": log_of("none", rule=(1.0, 0.0, 0.0), n=400)}, seed=1
    ).to_dict()  # fmt: skip
    parts = [group["groups"][label]["calibration"]["subjective"] for label in "xy"]
    assert regret_words(group) == (
        f"fairness regret {parts[0]['regret_per_round']:.4f} per round; "
        f"at least {parts[1]['lower']:.4f} per round (95 %)"
    )


def test_weights_are_called_a_check_and_not_what_the_estimate_rests_on():
    audit = bf.audit(log_of("chosen"), seed=1)
    assert "check of the probabilities, weights P*_a/pi_a: effective sample size" in str(audit)
    group = bf.audit({"x": log_of("chosen"), "y": log_of("chosen", seed=2)}, seed=1)
    said = " ".join(str(group).split())
    assert "a check of the logged probabilities that the regret does not use" in said


def test_rounds_that_violate_are_never_said_to_be_fair_in_all_rounds():
    # an estimate from a share of the rounds may miss every violating one of them
    part = {
        "verdict": "unfair", "probability_fair": 0.0, "converged": True,
        "n_violating_rounds": {"mean": 1.0, "lower": 1.0, "upper": 1.0, "exact": False},
        "first_violating_round": None, "last_violating_round": None,
    }  # fmt: skip
    audit = {
        "objective": part,
        "log": {"n_rounds": 10**7, "n_judged": 10**7},
        "criterion": {"model": "conjugate", "from_round": 0},
    }
    assert question_words(audit, "objective") == (
        "unfair: probability fair 0.0000; 1 of 10000000 rounds violate (estimated)"
    )


def test_an_arm_seen_before_the_judged_rounds_does_not_rest_on_the_prior():
    log = bf.History(list("ababbb"), [1, 1, 0, 1, 1, 0], selection_probability=[HALF] * 6)
    later = kinds(bf.audit(log, from_round=3, seed=0))["no_reward"]
    assert later.startswith("In the rounds that are judged") and "prior" not in later
    never = bf.History(["b"] * 3, [1, 0, 1], arms=("a", "b"), selection_probability=[HALF] * 3)
    assert "P* rests on the prior" in kinds(bf.audit(never, seed=0))["no_reward"]


def test_the_prior_that_is_printed_is_named():
    assert "\nPrior: theta" in str(bf.audit(log_of("full"), seed=1))
    audit = bf.audit(log_of("full"), model="bernoulli_independent", seed=1)
    assert "\nPrior of the beliefs: theta" in str(audit)


@pytest.mark.parametrize(
    ("kind", "said"),
    [("full", "is exact"), ("chosen", "is estimated"), ("none", "a lower limit")],
)
def test_known_rewards_make_exact_what_the_log_lets_be_exact(kind, said):
    audit = bf.audit(log_of(kind), truth=bf.rewards.Bernoulli([0.6, 0.5, 0.4]))
    assert said in kinds(audit)["known_truth"]
    assert audit.to_dict()["calibration"]["objective"]["exact"] == (kind == "full")


def test_probabilities_left_aside_on_request_are_not_said_to_be_missing(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("arm,reward,p_a,p_b\n" + "a,1,.5,.5\nb,0,.5,.5\n" * 5)
    audit = bf.audit(bf.read_history(path, probabilities=False, propensity=False), seed=1)
    assert "or none were read" in kinds(audit)["no_probabilities"]


def test_choices_dealt_out_in_turn_make_intervals_too_wide():
    # balanced blocks: shares vary less than those of separate draws, which the intervals are for
    n = 400
    log = bf.History([0, 1] * (n // 2), [0, 1, 1, 0] * (n // 4), selection_probability=[HALF] * n)
    assert "too wide" in kinds(bf.audit(log, seed=1))["sticky"]
    log = bf.History([0] * 20 + [1] * 20 + [0] * 20 + [1] * 20, [0, 1] * 40,
                     selection_probability=[HALF] * 80)  # fmt: skip
    assert "too narrow" in kinds(bf.audit(log, seed=1))["sticky"]


def test_a_divergence_that_is_no_difference_is_named_where_the_criterion_cannot_fail():
    found = kinds(bf.audit(log_of("full"), divergence="hellinger", eps2=0.9, seed=1))["cannot_fail"]
    # Hellinger distance of Bernoulli(.5) and Bernoulli(.2)
    gap = np.sqrt(1 - np.sqrt(0.5 * 0.2) - np.sqrt(0.5 * 0.8))
    assert f"by more than {gap:.4g} (hellinger)" in found


def test_every_notice_of_an_audit_has_a_kind_of_its_own():
    rare = bf.History(["a"] * 4, [1, 0, 1, 1], arms=("a",), selection_probability=[[1.0]] * 4)
    for log in (log_of("full"), log_of("chosen"), log_of("none"), rare):
        for options in ({"objective": False}, {"divergence": "kl"}, {}):
            assert "note" not in kinds(bf.audit(log, seed=1, **options))


def test_an_item_is_favoured_only_beyond_the_tolerance():
    # even pairs: the law of the slot is 1/3 each up to rounding, the worths are equal
    law = np.array([1 / 3, 1 / 3 + 1e-16, 1 / 3])
    duels = Comparisons.from_duels(list("abcabc"), list("bcacab"), ["left"] * 6, keep_rows=True)
    audit = bf.audit_comparisons(
        duels, selection_probability=law, worth={"a": 1, "b": 1, "c": 1}, seed=1, eps1=0
    )
    assert audit.to_dict()["subjective"]["worst"] is None and "favoured" not in str(audit)


def test_islands_are_not_said_to_be_linked_one_way():
    both = [("a", "b"), ("b", "a"), ("c", "d"), ("d", "c")]
    links = Comparisons.from_duels(*zip(*both, strict=True), ["left"] * 4).connectivity()
    assert not any("one way" in text for text in links.sentences())
    # d never lost: {c} and {d} on the second island, {a, b} on the first
    links = Comparisons.from_duels(*zip(*both[:2], ("d", "c"), strict=True),
                                   ["left"] * 3).connectivity()  # fmt: skip
    assert any("link 2 groups of items within islands one way only" in t for t in links.sentences())


def test_ties_link_the_groups_that_they_link_and_no_other_island():
    duels = [("a", "b", "left"), ("b", "a", "left"), ("c", "d", "tie")]
    links = Comparisons.from_duels(*zip(*duels, strict=True)).connectivity()
    assert links.tie_links == (("c",), ("d",))
    assert any("only link between 2 groups: 'c'; 'd'." in text for text in links.sentences())


def test_large_counts_are_printed_whole():
    duels = Comparisons.from_counts(["a"], ["b"], [1_234_567], [1_000_000])
    assert "2234567 duels" in repr(duels)


@pytest.mark.filterwarnings("ignore::bayesfair.errors.BayesfairWarning")
def test_every_notice_of_what_was_read_has_a_kind_of_its_own(tmp_path):
    log = tmp_path / "log.csv"
    log.write_text(
        "timestamp,arm,reward,p_a,p_b,p_A,propensity\n2,a,1,.5,.5,,.5\n1,a ,,.5,.5,,.5\n"
        "2,b,1,.5,.4999,,.5\n3,b,0,.5,.5,,.2\n"
    )
    read = bf.read_history(log, missing="unobserved")
    found = {notice.kind for notice in read.notices}
    assert {"sorted", "tied_order", "rescaled", "missing_rewards", "merged_spellings", "look_alike",
            "never_on_offer", "propensity_unused"} <= found  # fmt: skip
    duels = tmp_path / "duels.csv"
    duels.write_text("left,right,winner\na,b,left\na,a,left\nc,d,tie (bothbad)\nb,a,left\nc,d,x\n")
    games = bf.read_comparisons(duels, unknown="skip")
    assert {notice.kind for notice in games.notices} == {
        "both_bad", "self_comparisons", "unknown_outcomes"
    }  # fmt: skip
    summary = fit_summary(bf.fit(games, seed=1), games, anchor="a")
    assert {"islands", "tie_links", "anchor"} <= {one["kind"] for one in summary["findings"]}
    everything = [*read.notices, *games.notices, *summary["findings"]]
    kinds = [one["kind"] if isinstance(one, dict) else one.kind for one in everything]
    assert "note" not in kinds
