"""Sentences of reports, held against the numbers they stand for."""

import numpy as np

import bayesfair as bf


def even_log(n=40):
    arms = ["ab"[i] for i in np.random.default_rng(3).integers(0, 2, n)]
    return bf.History(arms, [1, 0] * (n // 2), selection_probability=[[0.5, 0.5]] * n)


def test_the_regret_of_a_criterion_that_cannot_fail_is_named_as_that_under_the_beliefs():
    """With a known truth the verdict's line has another regret, that under the truth."""
    audit = bf.audit(even_log(), truth=bf.rewards.Bernoulli([0.9, 0.1], arms=("a", "b")))
    (said,) = [n for n in audit.findings if n.kind == "cannot_fail"]
    believed, true = (
        audit.regret.value,
        0.4,
    )  # P*(a) = .9 * .9 + (.9 * .1 + .1 * .9) / 2 = .9, chosen with .5
    assert abs(believed - true) > 0.01
    assert f"under the beliefs, {believed:.4f} per round" in said


def test_one_of_a_kind_is_said_in_the_singular():
    one = bf.audit(bf.History(["a", "b"] * 9, [1, 0] * 9), objective=False)
    assert "1 test, passed." in str(one)
    group = bf.audit({"x": even_log(), "y": even_log()}, objective=False)
    assert "2 logs: memory\n" in str(group)
