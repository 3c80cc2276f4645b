"""Audits given the context: each context by itself, put together exactly."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from contextual_logs import history, in_leaves

import bayesfair as bf
from bayesfair import rewards
from bayesfair.audit.log.intervals import joint_share_distance
from bayesfair.audit.truth.by_context import objective_by_context

REFERENCE = json.loads((Path(__file__).parent.parent / "reference" / "contextual.json").read_text())
FAMILIES = ("bernoulli", "finite", "poisson", "normal")


def log_of(family="bernoulli", *, n=240, k=3, selection="full", seed=0, **more):
    """A log with three contexts of different lengths, late and missing rewards, and offers."""
    rng = np.random.default_rng(seed)
    x = rng.choice(3, n, p=[0.6, 0.3, 0.1])
    pi = rng.dirichlet(np.full(k, 4.0), n)
    if more.pop("offers", False):
        off = rng.random((n, k)) < 0.2
        off[np.arange(n), rng.integers(0, k, n)] = False
        pi = np.where(off, 0, pi)
        pi /= pi.sum(axis=1, keepdims=True)
        pi[off] = np.nan
    arm = (rng.random(n)[:, None] > np.nancumsum(pi, axis=1)).sum(axis=1).clip(0, k - 1)
    arm = np.where(np.isnan(pi[np.arange(n), arm]), np.nanargmax(pi, axis=1), arm)
    reward = {
        "bernoulli": lambda: rng.integers(0, 2, n),
        "finite": lambda: rng.integers(0, 4, n) / 2,
        "poisson": lambda: rng.poisson(2 + x),
        "normal": lambda: rng.normal(x + 0.3 * arm, 1.0),
    }[family]().astype(float)
    if more.pop("late", True):
        more["known_at"] = np.arange(n) + rng.integers(1, 30, n)
        reward[rng.random(n) < 0.1] = np.nan
    if selection == "full":
        more["selection_probability"] = pi
    elif selection == "chosen":
        more["propensity"] = pi[np.arange(n), arm]
    labels = np.array(["u", "v", "w"])[x]
    arms = tuple("abcdef"[:k])
    return bf.History(arm.astype(np.int32), reward, arms=arms, context=labels, **more)


def alone(log, label):
    """The rounds with one context as a log of their own, with `known_at` counted anew by a loop."""
    codes, names = log.context.cells
    rounds = np.flatnonzero(codes == names.index(label))
    known = None
    if log.known_at is not None:
        known = [sum(t < log.known_at[s] for t in rounds) for s in rounds]
        beyond = log.known_at[rounds] > log.n_rounds
        known = np.where(beyond, len(rounds) + log.known_at[rounds] - log.n_rounds, known)

    def part(values):
        return None if values is None else values[rounds]

    return bf.History(
        log.arm[rounds], log.reward[rounds], arms=log.arms, known_at=known,
        selection_probability=part(log.selection_probability), propensity=part(log.propensity),
    )  # fmt: skip


def test_every_round_of_a_log_with_two_contexts_is_that_of_enumeration():
    case = REFERENCE["C4_cells_log"]
    rounds = case["rounds"]

    def column(name):
        return np.array([one[name] for one in rounds])

    log = bf.History(
        column("arm"), column("reward"), selection_probability=column("pi"),
        arms=["a", "b", "c"], context=column("context"),
    )  # fmt: skip
    audit = bf.audit(log, eps1=case["eps1"], context_model="cells", seed=1)
    found = audit.rounds()
    assert np.allclose(found.best_arm_probability, column("p_best"), rtol=0, atol=1e-12)
    assert np.allclose(found.fairness_regret, column("regret"), rtol=0, atol=1e-12)
    assert np.allclose(found.smallest_eps2, column("smallest_eps2"), rtol=0, atol=1e-12)
    numbers = audit.to_dict()
    total = numbers["calibration"]["subjective"]["regret_total"]
    assert total == pytest.approx(case["regret_total"], abs=1e-12)
    assert audit.smallest_eps2 == pytest.approx(case["smallest_eps2"], abs=1e-12)
    for cell in numbers["cells"]:
        of = case["regret_by_context"][cell["context"]]
        assert cell["regret_total"] == pytest.approx(of, abs=1e-12)
    without = numbers["context"]["without"]
    per_round = case["regret_total_without_context"] / len(rounds)
    assert without["regret_per_round"] == pytest.approx(per_round, abs=1e-12)
    assert without["smallest_eps2"] == pytest.approx(case["smallest_eps2_without_context"])
    assert numbers["context"]["columns"] == ["context"] and numbers["context"]["n_cells"] == 2
    assert numbers["context"]["thin_share"] == 1  # five rounds each
    assert any(notice.kind == "thin_contexts" for notice in audit.findings)
    plain = bf.audit(log, eps1=case["eps1"], context_model="none", seed=1)
    assert plain.smallest_eps2 == without["smallest_eps2"]
    assert plain.regret.value == without["regret_per_round"]
    assert [n.kind for n in plain.findings if n.column == "context"] == ["context_unused"]
    chosen = bf.History(
        column("arm"), column("reward"), arms=["a", "b", "c"], context=column("context"),
        propensity=column("pi")[np.arange(len(rounds)), column("arm")],
    )  # fmt: skip
    terms = bf.audit(chosen, context_model="cells", objective=False).rounds().fairness_regret
    assert np.allclose(terms, column("chosen_term"), rtol=0, atol=1e-12)


@pytest.mark.parametrize("late", [False, True])
def test_a_log_longer_than_a_chunk_of_the_pass_is_that_of_plain_loops(late):
    rng = np.random.default_rng(11)
    n, k = 700, 3
    pi, arm, won = rng.dirichlet(np.ones(k), n), rng.integers(0, k, n), rng.integers(0, 2, n)
    x = rng.choice(list("uvw"), n)
    known_at = np.arange(n) + 1 + (rng.integers(0, 40, n) if late else 0)
    regret, needed = 0.0, 0.0
    for t in range(n):
        seen = (known_at <= t) & (np.arange(n) < t) & (x == x[t])
        plays = np.array([np.sum(seen & (arm == i)) for i in range(k)])
        wins = np.array([np.sum(won[seen & (arm == i)]) for i in range(k)])
        mean, best = (wins + 0.5) / (plays + 1), np.zeros(k)
        for outcome in itertools.product((0, 1), repeat=k):
            rewarded = np.array(outcome)
            highest = rewarded == max(outcome)
            best += np.where(rewarded, mean, 1 - mean).prod() * highest / highest.sum()
        regret += np.maximum(best - pi[t], 0).sum()
        apart = np.abs(pi[t][:, None] - pi[t]) - np.abs(mean[:, None] - mean)
        needed = max(needed, apart.max())
    log = bf.History(
        arm, won, selection_probability=pi, context=x, arms=list("abc"), known_at=known_at
    )
    audit = bf.audit(log, context_model="cells", eps1=1, objective=False)
    assert audit.to_dict()["calibration"]["subjective"]["regret_total"] == pytest.approx(
        regret, rel=1e-12
    )
    assert audit.smallest_eps2 == pytest.approx(needed, abs=1e-12)


@pytest.mark.parametrize("name", [n for n in REFERENCE if n.startswith(("C1_", "C2_"))])
def test_known_rewards_of_each_context_give_the_regret_and_eps2_of_enumeration(name):
    case = REFERENCE[name]
    n = np.array(case["weights"]) * 8
    context = np.repeat(["u", "v"], n.astype(int))
    pi = np.repeat(case["pi"], n.astype(int), axis=0)
    log = bf.History(
        pi.argmax(axis=1), np.zeros(len(pi)), selection_probability=pi, context=context,
        arms=list("abc")[: pi.shape[1]],
    )  # fmt: skip
    audit = bf.audit(log, eps1=1, context_model="cells", objective=False)
    truth = {
        label: rewards.Bernoulli(np.array([means]))
        for label, means in zip("uv", case["means"], strict=True)
    }
    rng = np.random.default_rng(0)
    found = objective_by_context(audit.summary, truth, audit.criterion, rng, exact=True)
    needed = found.smallest_eps2[0, audit.criterion.grid_index]
    assert found.regret[0] == pytest.approx(case["regret_contextual"], abs=1e-12)
    assert needed == pytest.approx(case["smallest_eps2_contextual_eps1_1"], abs=1e-12)
    marginal = rewards.Bernoulli(np.array(case["mean_reward_marginal"]))
    plain = bf.audit(log, eps1=1, context_model="none", truth=marginal)
    expected = case["smallest_eps2_without_context_logged_pi"]
    at = plain.criterion.grid_index
    assert plain.objective.smallest_eps2[0, at] == pytest.approx(expected, abs=1e-12)
    expected = case["regret_without_context_logged_pi"]
    assert plain.regret_objective.value == pytest.approx(expected, abs=1e-12)


def test_a_rule_that_is_fair_in_each_leaf_and_one_that_is_blind_to_them():
    """Each exact in the audit that asks its own question; the other's numbers are by hand."""

    def audited(log, **options):
        given = history(log, context=np.array(["US", "EU"])[log["leaf"]])
        audit = bf.audit(given, context_model="cells", objective=False, eps2=0.05, **options)
        # what learns within its leaves is chosen more where it pays more by no more than chance
        assert audit.checks["context"].passed
        return audit, audit.to_dict()["context"]["without"]

    audit, without = audited(in_leaves(7), eps1=2)
    assert audit.smallest_eps2 < 1e-12 and audit.regret.value < 5e-17
    assert without["smallest_eps2"] == pytest.approx(0.4436668594563331, abs=1e-12)
    assert without["regret_per_round"] == pytest.approx(0.18103612343310932, abs=1e-12)
    blind = bf.audit(history(in_leaves(7)), eps1=2, eps2=0.05, objective=False)
    assert blind.n_violating_rounds == 1973
    assert (audit.subjective_verdict, without["subjective_verdict"]) == ("fair", "unfair")
    audit, without = audited(in_leaves(2, n=3000, us=0.8, blind=True), eps1=1)
    cell = {one["context"]: one for one in audit.to_dict()["cells"]}["EU"]
    assert without["smallest_eps2"] < 1e-12 and without["regret_per_round"] < 1e-15
    assert audit.smallest_eps2 == pytest.approx(61 / 77, abs=1e-12) == cell["smallest_eps2"]
    assert cell["regret_per_round"] == pytest.approx(0.32506789216269727, abs=1e-12)
    assert cell["n_violating_rounds"] == 619 and cell["n_rounds"] == 620
    assert (audit.subjective_verdict, without["subjective_verdict"]) == ("unfair", "fair")


@pytest.mark.parametrize("selection", ["full", "chosen", "none"])
@pytest.mark.parametrize("family", FAMILIES)
def test_the_whole_is_the_largest_the_sum_and_the_product_of_its_contexts(family, selection):
    log = log_of(family, selection=selection)
    options = {"seed": 3, "draws": 200, "family": family, "eps2": 0.2}
    if family == "finite":
        options["support"] = [0, 0.5, 1, 1.5]
    whole = bf.audit(log, context_model="cells", **options)
    cells = {cell["context"]: cell for cell in whole.to_dict()["cells"]}
    parts = {label: bf.audit(alone(log, label), **options) for label in cells}
    n = {label: part.summary.sums.n_rounds for label, part in parts.items()}
    assert n == {label: cell["n_rounds"] for label, cell in cells.items()}
    if selection == "full":
        needs = {label: part.smallest_eps2 for label, part in parts.items()}
        assert needs == pytest.approx({c: cell["smallest_eps2"] for c, cell in cells.items()})
        assert whole.smallest_eps2 == pytest.approx(max(needs.values()))
        bad = sum(part.n_violating_rounds for part in parts.values())
        assert whole.n_violating_rounds == bad
        fair = [cell["probability_fair"] for cell in cells.values()]
        assert whole.probability_fair == pytest.approx(np.prod(fair))
    if selection != "none":
        regret = sum(part.regret.value * n[label] for label, part in parts.items())
        assert whole.regret.value * log.n_rounds == pytest.approx(regret, rel=1e-12)
        assert cells["w"]["regret_per_round"] == pytest.approx(parts["w"].regret.value)
    best = sum(part.summary.sums.p_best for part in parts.values())
    assert np.allclose(whole.summary.sums.p_best, best, rtol=1e-12)
    moved = sum(part.summary.sums.n_moved for part in parts.values())
    assert whole.summary.sums.n_moved == moved


@pytest.mark.parametrize("model", ["cells", "pooled"])
@pytest.mark.parametrize("selection", ["full", "chosen", "none"])
def test_parts_merged_resumed_scanned_and_saved_are_the_whole(selection, model, tmp_path):
    log = log_of(selection=selection, offers=True)
    options = {"context_model": model, "seed": 1, "draws": 100, "eps2": 0.1}
    whole = bf.audit(log, **options)
    first = bf.audit(log.before(70), **options)
    first.save(tmp_path / "first.nc")
    kept = bf.load_audit(tmp_path / "first.nc")
    second = bf.audit(log.rounds(70, 240), prior=first, seed=1, draws=100, eps2=0.1)
    cuts = [
        bf.merge(first, second),
        kept.resume(log.rounds(70, 240)),
        first.resume(log.rounds(70, 71)).resume(log.rounds(71, 240)),
    ]
    for found in cuts:
        assert found.state.same_as(whole.state)
        for name in ("u", "v", "w"):
            one, other = found.summary.contexts[name], whole.summary.contexts[name]
            assert one.needed == pytest.approx(other.needed, rel=1e-12)
            assert np.allclose(one.p_best, other.p_best, rtol=1e-12)
            assert one.plays.tolist() == other.plays.tolist() and one.plays.sum() == one.n_rounds
            assert one.n_violating.tolist() == other.n_violating.tolist()
            assert all(
                np.allclose(a, b, rtol=1e-11)
                for a, b in zip(one.moments, other.moments, strict=True)
            )
        assert found.verdict == whole.verdict
        assert found.probability_fair == whole.probability_fair
        assert found.violations == whole.violations
        if selection != "none":
            assert found.regret.value == pytest.approx(whole.regret.value, rel=1e-12)
            assert np.allclose(found.objective.regret, whole.objective.regret, rtol=1e-12)
        numbers, expected = found.to_dict(), whole.to_dict()
        assert numbers["context"]["without"]["smallest_eps2"] == pytest.approx(
            expected["context"]["without"]["smallest_eps2"]
        )
        if selection == "full":
            assert numbers["objective"] == expected["objective"]
    assert first.state.after(log.rounds(70, 240)).same_as(whole.state)
    whole.save(tmp_path / "whole.nc", rounds=True)
    assert bf.load_audit(tmp_path / "whole.nc").to_dict() == whole.to_dict()


def test_the_rounds_that_violate_under_the_true_rewards_are_counted_in_the_whole_log():
    log = log_of(late=False)
    audit = bf.audit(log, context_model="cells", eps1=1, eps2=0.2, seed=1, draws=30)
    codes, labels = log.context.cells
    rng = np.random.default_rng(1)
    gap = np.abs(log.selection_probability[:, :, None] - log.selection_probability[:, None])
    over = np.zeros((30, log.n_rounds), bool)
    for c, label in enumerate(labels):
        state = audit.state.by_context[label]
        a, b = state.posterior.T
        theta = rng.beta(a, b, (30, 3))
        allowed = np.abs(theta[:, :, None] - theta[:, None]) + 0.2
        mine = codes == c
        over[:, mine] = (gap[mine] > allowed[:, None] + 1e-9).any(axis=(2, 3))
    found = audit.objective.violations
    assert np.array_equal(found.n, over.sum(axis=1))
    assert np.array_equal(found.first, np.where(over.any(axis=1), over.argmax(axis=1), -1))
    needed = audit.objective.smallest_eps2[:, audit.criterion.grid_index] > 0.2 + 1e-9
    assert np.array_equal(needed, over.any(axis=1))


def test_without_probabilities_the_bound_and_its_noise_are_those_of_the_contexts():
    case = REFERENCE["C16_no_rule"]
    cells = [(np.array(case["mean_p_best"][x]), np.array(case["plays"][x])) for x in case["plays"]]
    distance, noise = joint_share_distance(cells)
    assert distance == pytest.approx(case["bound_by_cells"], abs=1e-12)
    assert noise == pytest.approx(case["noise_95"], abs=1e-12)
    log = log_of(selection="none")
    audit = bf.audit(log, context_model="cells", objective=False)
    codes, labels = log.context.cells
    best = audit.rounds().best_arm_probability.values
    cells = [
        (best[codes == c].mean(axis=0), np.bincount(log.arm[codes == c], minlength=3))
        for c in range(len(labels))
    ]
    distance, noise = joint_share_distance(cells)
    lower = audit.to_dict()["calibration"]["subjective"]["lower"]
    assert lower == pytest.approx(max(distance - noise, 0))


def test_terms_of_the_chosen_arm_average_to_the_regret_of_each_context():
    case = REFERENCE["C15_chosen_only"]
    pi, terms = np.array(case["pi"]), np.array(case["terms"])
    log = bf.History(
        [0, 0, 1], [1, 0, 1], propensity=[0.7, 0.2, 0.3], arms=list("abc"), context=["u", "v", "u"]
    )
    audit = bf.audit(log, context_model="cells", objective=False)
    truth = {
        label: rewards.Bernoulli(np.array([m]))
        for label, m in zip("uv", case["means"], strict=True)
    }
    found = objective_by_context(
        audit.summary, truth, audit.criterion, np.random.default_rng(0), exact=True
    )
    expected = (terms[0, 0] + terms[1, 0] + terms[0, 1]) / 3
    assert found.regret[0] == pytest.approx(expected, abs=1e-12)
    assert np.allclose((pi * terms).sum(axis=1), case["regret"], atol=1e-12)


def test_what_does_not_go_with_a_context_is_refused_by_name(tmp_path):
    log = log_of(late=False)
    plain = bf.audit(log, context_model="none", objective=False)
    given = bf.audit(log.before(100), context_model="cells", objective=False)
    bare = bf.History(log.arm, log.reward, selection_probability=log.selection_probability,
                      arms=log.arms)  # fmt: skip
    for make, kind, column in (
        (lambda: bf.audit(log, context_model="cell", seed=1), None, None),
        (lambda: bf.audit(bare, context_model="cells", seed=1), "unused_option", "context_model"),
        (lambda: bf.audit(log, context_model="cells", beliefs_model="bernoulli_independent",
                          seed=1), "excluded", "beliefs_model"),
        (lambda: bf.audit(log, context_model="cells", model="bernoulli_independent", seed=1),
         "excluded", "model"),
        (lambda: bf.audit(log, context_model="cells", seed=1, arm_groups={"a": "x", "b": "y",
                                                                          "c": "y"}),
         "excluded", "arm_groups"),
        (lambda: bf.audit(log, context_model="cells", prior=plain, objective=False),
         "unused_option", "context_model"),
        (lambda: bf.audit(log, context_model="cells", seed=1).prior_sensitivity(), "excluded",
         "context_model"),
        (lambda: bf.audit(bare, context_model="none", seed=1), "unused_option", "context_model"),
        (lambda: bf.audit(log, context_model="none", prior=given, objective=False),
         "not_the_same", "context_model"),
        (lambda: given.resume(bare), "other_context", "context"),
        (lambda: bf.merge(given, plain), None, None),
    ):  # fmt: skip
        with pytest.raises(bf.BayesfairError) as refused:
            make()
        assert kind is None or (refused.value.kind, refused.value.column) == (kind, column)


def test_a_column_of_measurements_is_no_context_of_cells():
    n = 10_002
    log = bf.History(
        np.zeros(n, np.int32), np.zeros(n), propensity=np.ones(n), arms=["a"],
        context=np.linspace(0, 1, n),
    )  # fmt: skip
    with pytest.raises(bf.DataError) as refused:
        bf.audit(log, context_model="cells", objective=False)
    assert refused.value.kind == "too_many_contexts"


def test_groups_have_their_own_contexts():
    log, other = log_of(late=False), log_of(late=False, seed=5)
    found = bf.audit({"x": log, "y": other}, context_model="cells", objective=False)
    for label, one in (("x", log), ("y", other)):
        alone_ = bf.audit(one, context_model="cells", objective=False)
        assert found[label].to_dict()["cells"] == alone_.to_dict()["cells"]


def test_the_report_shows_each_context_and_the_log_without_it(tmp_path):
    audit = bf.audit(log_of(late=False), context_model="cells", seed=1, draws=50)
    bf.write_report(audit, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Each context by itself" in page and "neither from above nor from below" in page
    assert "context_model=&#39;cells&#39;" in page
    text = str(audit)
    assert "Given the context 'context' (3 values" in text
    assert "neither from above nor from below" in text
