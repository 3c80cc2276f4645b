"""Contexts as features: linear, probit and logit beliefs, against posteriors made anew."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import integrate, special, stats

import bayesfair as bf
from bayesfair.audit.truth.exact_coefficients import exact_draws
from bayesfair.base.labels import label_order
from bayesfair.errors import DataError, OptionError
from bayesfair.history.design import Design
from bayesfair.kernels.laws.divergences_continuous import (
    NORMAL_OFF,
    student_variation_of_worst,
)
from bayesfair.kernels.log.coefficients import Coefficients, gaussian_update, run_coefficients
from bayesfair.kernels.log.needed import needed_by_draw

REFERENCE = json.loads((Path(__file__).parent.parent / "reference" / "contextual.json").read_text())
NOTHING = np.full(1, np.nan)


def log_of(model="probit", n=240, *, late=True, selection="full", seed=0):
    """A number and a label that comes late; rewards of both kinds, some late, some missing."""
    rng = np.random.default_rng(seed)
    x, site = rng.normal(50, 10, n), rng.choice(["u", "v"], n).astype("<U1")
    site[n // 2 :: 7] = "w"
    pi = rng.dirichlet(np.full(3, 4.0), n)
    arm = (rng.random(n)[:, None] > pi.cumsum(axis=1)).sum(axis=1).clip(0, 2)
    slope = (x - 50) / 10 * (arm - 1)
    reward = (
        rng.normal(300 + 4 * slope, 2) if model == "linear" else rng.random(n) < special.ndtr(slope)
    )
    reward, more = reward.astype(float), {}
    if late:
        more["known_at"] = np.arange(n) + rng.integers(1, 30, n)
        reward[rng.random(n) < 0.1] = np.nan
    if selection == "full":
        more["selection_probability"] = pi
    elif selection == "chosen":
        more["propensity"] = pi[np.arange(n), arm]
    return bf.History(arm, reward, arms=list("abc"), context={"x": x, "site": site}, **more)


def features(log, levels=("u", "v", "w")):
    """Made from the columns by themselves."""
    x = np.array([float(v) for v in log.context.labels[0]])[log.context.codes[:, 0]]
    site = np.array(log.context.labels[1])[log.context.codes[:, 1]]
    return np.column_stack(
        [np.ones(len(x)), (x - x[:100].mean()) / x[:100].std(), *(site == v for v in levels)]
    )


def learned(rewards):
    """Median and robust standard deviation of the first twenty."""
    centre = np.median(rewards[:20])
    return centre, 1.4826 * np.median(np.abs(rewards[:20] - centre))


def linear_law(z, rewards, at, centre, unit):
    """Student t at features, from all rewards of an arm at once by normal equations."""
    d = len(at)
    v = np.linalg.inv(np.eye(d) + z.T @ z)
    m0 = np.eye(d)[0] * centre
    m = v @ (m0 + z.T @ rewards)
    a = 1 + len(rewards) / 2
    b = unit**2 + ((rewards - z @ m) ** 2).sum() / 2 + ((m - m0) ** 2).sum() / 2
    return 2 * a, at @ m, np.sqrt(b / a * (1 + at @ v @ at))


def filtered(z, rewards, at, link):
    """P(reward) at features by moment matching, each step by adaptive quadrature along z."""
    d = len(at)
    m, v = np.zeros(d), np.eye(d) * (2.25 if link is special.expit else 1.0)

    def moments(z, power, y):
        c, s = z @ m, np.sqrt(z @ v @ z)
        return integrate.quad(
            lambda u: (c + s * u) ** power * link((2 * y - 1) * (c + s * u)) * stats.norm.pdf(u),
            -9, 9, epsabs=1e-12,
        )[0]  # fmt: skip

    for row, y in zip(z, rewards, strict=True):
        mass, first, second = (moments(row, power, y) for power in range(3))
        c, s2, mean = row @ m, row @ v @ row, first / mass
        along = v @ row
        m = m + along * (mean - c) / s2
        v = v + np.outer(along, along) * (second / mass - mean**2 - s2) / s2**2
    return moments(at, 0, 1)


def test_linear_beliefs_are_those_of_the_reference():
    case = REFERENCE["C6_nig_linear"]
    rows = np.array([x for xs in case["X"] for x in xs])
    arm = np.repeat(np.arange(3, dtype=np.int32), [len(y) for y in case["y"]])
    flat = Coefficients.start(np.tile([0.0, 1, 1, 1], (3, 1)), 2, linear=True)
    end = run_coefficients("linear", flat, rows, arm, np.concatenate(case["y"]), None)[1]
    for at in case["at"]:
        laws = run_coefficients("linear", end, np.array([at["x"]]), arm[:1], NOTHING, None)[0][0]
        assert np.allclose(laws, at["student_t_df_loc_scale"], rtol=0, atol=1e-13)
        found = bf.rewards.StudentT(*laws.T)
        assert np.allclose(found.best_arm_probability(), at["p_best"], rtol=0, atol=1e-9)
        apart = found.divergence("total_variation")[0, 1]
        assert apart == pytest.approx(at["tv_arm0_arm1"], abs=1e-9)


def test_filters_are_those_of_the_reference():
    case = REFERENCE["C7b_probit_adf_step"]
    mean, cov = np.array(case["mean"]), np.array(case["cov"])
    gaussian_update(np.array(case["x"]), 1.0, mean, cov, 1, NOTHING, NOTHING, np.empty(2))
    assert np.allclose(mean, case["mean_after"], rtol=0, atol=1e-8)
    assert np.allclose(cov, case["cov_after"], rtol=0, atol=1e-8)
    case = REFERENCE["C7_logistic"]
    flat = Coefficients.start(np.array([[0.0, 1 / 2.25, 1, 1]]), 2, linear=False)
    one = np.zeros(5, np.int32)
    end = run_coefficients("logit", flat, np.array(case["X"]), one, np.array(case["y"]), None)[1]
    at = np.array([[1.0, x] for x in case["x_second"]])
    found = run_coefficients("logit", end, at, one[:4], np.full(4, np.nan), None)[0].ravel()
    assert np.allclose(found, case["adf"], rtol=0, atol=2e-6)
    assert np.abs(found - case["predictive_exact"]).max() < 0.004


@pytest.mark.parametrize("model", ["linear", "probit", "logit"])
def test_every_round_is_that_of_the_posterior_made_anew(model):
    log = log_of(model)
    audit = bf.audit(log, eps1=1, context_model=model, objective=False)
    found, z = audit.rounds(), features(log)
    at = log.known_at
    order = np.argsort(at, kind="stable")
    order = order[~np.isnan(log.reward[order])]
    for t in (0, 5, 15, 40, 130, 239) if model == "linear" else (0, 5, 25):
        seen = order[at[order] <= t]
        if model == "linear":
            centre, unit = learned(log.reward[seen]) if len(seen) else (0.0, 1.0)
            laws = [linear_law(z[mine], log.reward[mine], z[t], centre, unit)
                    for mine in (seen[log.arm[seen] == i] for i in range(3))]  # fmt: skip
            rewards = bf.rewards.StudentT(*np.array(laws).T)
        else:
            link = special.ndtr if model == "probit" else special.expit
            rewards = bf.rewards.Bernoulli([
                filtered(z[mine], log.reward[mine], z[t], link)
                for mine in (seen[log.arm[seen] == i] for i in range(3))
            ])  # fmt: skip
        tolerance = 1e-4 if model == "logit" else 1e-8
        best, pi = rewards.best_arm_probability(), log.selection_probability[t]
        assert np.allclose(found.best_arm_probability[t], best, rtol=0, atol=tolerance)
        regret = np.maximum(best - pi, 0).sum()
        assert found.fairness_regret[t] == pytest.approx(regret, abs=tolerance)
        gap = np.abs(pi[:, None] - pi) - rewards.divergence("total_variation")
        assert found.smallest_eps2[t] == pytest.approx(max(gap.max(), 0), abs=tolerance)
    numbers = audit.to_dict()
    assert numbers["context"]["model"] == model and numbers["context"]["columns"] == ["x", "site"]
    below = [cell for cell in numbers["cells"] if cell["context"].startswith("x=below")]
    z1 = z[:, 1] < np.quantile(z[:100, 1], 0.25)
    assert sum(cell["n_rounds"] for cell in below) == z1.sum()
    assert max(c["smallest_eps2"] for c in numbers["cells"]) == audit.smallest_eps2
    total = sum(c["regret_total"] for c in numbers["cells"])
    assert total == pytest.approx(numbers["calibration"]["subjective"]["regret_total"])


@pytest.mark.parametrize("model", ["linear", "probit"])
def test_parts_saved_states_and_one_machine_agree(model, tmp_path):
    log = log_of(model)
    asked = {"context_model": model, "objective": False, "eps1": 1}
    whole = bf.audit(log, **asked)
    first = bf.audit(log.before(130), **asked)
    first.save(tmp_path / "a.nc")
    late = bf.audit(log.rounds(130, 240), prior=bf.load_audit(tmp_path / "a.nc"), objective=False,
                    eps1=1)  # fmt: skip
    parts = [first.resume(log.rounds(130, 240))]
    if model == "linear":
        parts.append(bf.merge(first, late))
    else:
        with pytest.raises(OptionError) as refused:
            bf.merge(first, late)
        assert (refused.value.kind, refused.value.column) == ("excluded", "context_model")
    assert late.state.same_as(first.state.after(log.rounds(130, 240)))
    for found in parts:
        assert found.regret.value == pytest.approx(whole.regret.value, abs=1e-9)
        assert found.smallest_eps2 == pytest.approx(whole.smallest_eps2, abs=1e-9)
        mine, other = found.state.beliefs.featured, whole.state.beliefs.featured
        assert mine.design.names == other.design.names
        assert np.allclose(mine.beliefs.mean, other.beliefs.mean, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("model", ["linear", "probit", "logit"])
def test_what_draws_need_is_that_of_every_round_and_pair(model):
    log = log_of(model, late=False)
    audit = bf.audit(log, context_model=model, seed=1, draws=40, eps1=1, eps2=0.3)
    of, rng, order = audit.state.beliefs.featured, np.random.default_rng(1), label_order("abc")
    theta, sd = of.draws(40, order, rng)
    if model != "linear":
        start = audit.summary.start.beliefs.featured
        theta = exact_draws(start, of, [log], 240, order, rng).resampled(40, order, rng)
    value, pi = np.einsum("ta,ska->stk", features(log), theta), log.selection_probability
    link = {"linear": lambda v: v, "probit": special.ndtr, "logit": special.expit}[model]
    gap = np.abs(pi[:, :, None] - pi[:, None, :])
    for s in (0, 17, 39):
        rewards = bf.rewards.Bernoulli(link(value[s])) if model != "linear" else (
            bf.rewards.Normal(value[s], np.tile(sd[s], (240, 1))))  # fmt: skip
        apart = rewards.divergence("total_variation")
        need = [(gap - e * apart).max() for e in audit.criterion.grid]
        assert np.allclose(audit.objective.smallest_eps2[s], need, rtol=0, atol=1e-12)
        over = np.flatnonzero((gap - apart).max(axis=(1, 2)) > 0.3 + 1e-9)
        assert audit.objective.violations.n[s] == len(over)
        assert audit.objective.violations.first[s] == (over[0] if len(over) else -1)
        lack = np.maximum(rewards.best_arm_probability() - pi, 0).sum(axis=1)
        assert audit.objective.regret[s] == pytest.approx(lack.mean(), abs=1e-9)
    need = audit.objective.smallest_eps2[:, audit.criterion.grid_index]
    assert audit.probability_fair == np.mean(need <= 0.3 + 1e-9)
    other = bf.audit(log, context_model=model, seed=1, draws=6, eps1=1, reward_divergence="kl")
    assert (other.objective.smallest_eps2[:, 0] == gap.max()).all()  # at eps1 = 0


def test_draws_have_the_moments_of_the_beliefs():
    log = log_of("linear", late=False)
    of = bf.audit(log, context_model="linear", objective=False).state.beliefs.featured
    theta, sd = of.draws(40_000, label_order("abc"), np.random.default_rng(1))
    end = of.beliefs
    variance = (end.scale / (end.shape - 1))[:, None] * np.array([np.diag(v) for v in end.spread])
    assert np.allclose(theta.mean(axis=0), end.mean, atol=0.02 * np.sqrt(variance).max())
    assert np.allclose(theta.var(axis=0) / variance, 1, atol=0.05)
    assert np.allclose((sd**2).mean(axis=0) / (end.scale / (end.shape - 1)), 1, atol=0.02)


@pytest.mark.parametrize("selection", ["chosen", "none"])
def test_logs_of_less_than_the_rule(selection):
    log, whole = log_of(selection=selection), log_of()
    audit = bf.audit(log, context_model="probit", seed=1, draws=30)
    best = (
        bf.audit(whole, context_model="probit", seed=1, draws=30)
        .rounds()
        .best_arm_probability.values
    )
    numbers = audit.to_dict()["calibration"]["subjective"]
    t = np.arange(240)
    if selection == "chosen":
        terms = np.maximum(1 - best[t, log.arm] / log.propensity, 0)
        assert numbers["regret_per_round"] == pytest.approx(terms.mean(), abs=1e-12)
        assert audit.regret_objective.lower < audit.regret_objective.value
        return
    site = log.context.codes[:, 1]
    z = features(log)[:, 1]
    cell = 4 * site + np.searchsorted(np.quantile(z[:100], (0.25, 0.5, 0.75)), z, side="right")
    far = 0.0
    for c in np.unique(cell):
        here = cell == c
        shares = np.bincount(log.arm[here], minlength=3) / here.sum()
        far += here.mean() * np.abs(best[here].mean(axis=0) - shares).sum() / 2
    assert audit.summary.share_distance()[0] == pytest.approx(far, abs=1e-12)
    assert audit.objective.lower_bound.min() > 0


def test_what_cannot_be_is_refused():
    log, plain = log_of(late=False), log_of("linear", late=False)
    for call, kind, column in (
        (lambda: bf.audit(log, context_model="linear", seed=1), "unused_option", "context_model"),
        (lambda: bf.audit(plain, context_model="probit", seed=1), "unused_option", "context_model"),
        (lambda: bf.audit(log, context_model="probit", prior=(1, 1), seed=1), "unused_option",
         "context_model"),
        (lambda: bf.audit(log, context_model="logit", beliefs_model="bernoulli_independent",
                          seed=1), "excluded", "beliefs_model"),
    ):  # fmt: skip
        with pytest.raises(OptionError) as refused:
            call()
        assert (refused.value.kind, refused.value.column) == (kind, column)
    audit = bf.audit(log, context_model="probit", seed=1, draws=20)
    other = bf.History([0], [1], arms=list("abc"), context={"x": ["old"], "site": ["u"]},
                       selection_probability=[[1, 0, 0]])  # fmt: skip
    with pytest.raises(DataError) as wrong:
        bf.audit(other, prior=audit, objective=False)
    assert (wrong.value.kind, wrong.value.column, wrong.value.value) == ("not_a_number", "x", "old")
    column = [*map(str, range(40)), "x_y"]
    broken = bf.History([0] * 41, [1] * 41, arms=list("abc"), context={"x": column})
    with pytest.raises(DataError) as wrong:
        bf.audit(broken, context_model="probit", objective=False)
    assert (wrong.value.kind, wrong.value.column, wrong.value.value) == ("not_a_number", "x", "x_y")
    more = audit.resume(log_of(late=False, seed=3))
    assert more.objective is None
    assert [n.kind for n in more.findings if n.column == "objective"] == ["objective_left_out"]


def test_equal_measurements_tell_no_scale_and_then_the_first_other_one():
    log = log_of("linear", late=False)
    reward = np.full(240, 5.0)
    reward[60] = 7.0
    same = bf.History(log.arm, reward, arms=log.arms, context=log.context,
                      selection_probability=log.selection_probability)  # fmt: skip
    best = bf.audit(same, context_model="linear", family="normal",
                    objective=False).rounds().best_arm_probability  # fmt: skip
    assert np.allclose(best[:61], 1 / 3, rtol=0, atol=1e-9)
    z, seen = features(same), np.arange(61)
    unit = 1.2533 * np.abs(np.r_[np.full(20, 5.0), 7.0] - 5).mean()
    laws = [linear_law(z[:61][log.arm[:61] == i], reward[:61][log.arm[seen] == i], z[61], 5.0, unit)
            for i in range(3)]  # fmt: skip
    right = bf.rewards.StudentT(*np.array(laws).T).best_arm_probability()
    assert np.allclose(best[61], right, rtol=0, atol=1e-9)


@pytest.mark.parametrize("link", ["linear", "probit"])
def test_rounds_with_the_same_features_need_what_each_of_them_needs(link):
    rng = np.random.default_rng(7)
    z = np.column_stack([np.ones(9), rng.normal(size=(9, 2))])[rng.integers(0, 9, 400)]
    pi, theta = rng.dirichlet(np.ones(3), 400), rng.normal(size=(6, 3, 3))
    pi[rng.random(400) < 0.3, 2] = np.nan
    sd, grid = rng.uniform(0.5, 2, (6, 3)), np.array([0.0, 1.0, 2.0])
    needed, n = np.zeros((6, 3)), np.zeros(4)
    first, last = np.full((2, 4), -1)
    needed_by_draw(link, z, pi, theta, sd, grid, (1, 0.2, 10), needed, (n, first, last))
    value = np.einsum("ta,ska->stk", z, theta)
    laws = bf.rewards.Normal(value, np.broadcast_to(sd[:, None], value.shape))
    if link == "probit":
        laws = bf.rewards.Bernoulli(special.ndtr(value))
    apart, gap = laws.divergence("total_variation"), np.abs(pi[:, :, None] - pi[:, None, :])
    for e, eps1 in enumerate(grid):
        worst = np.nanmax(gap - eps1 * apart, axis=(2, 3))
        assert np.allclose(needed[:, e], worst.max(axis=1).clip(0), rtol=0, atol=1e-9)
        if eps1 == 1:
            over = worst[:4] > 0.2
            assert n.tolist() == over.sum(axis=1).tolist()
            assert first.tolist() == [10 + np.flatnonzero(x)[0] for x in over]
            assert last.tolist() == [10 + np.flatnonzero(x)[-1] for x in over]


def test_worst_pairs_of_student_laws_are_found_among_those_that_are_looked_at():
    rng = np.random.default_rng(5)
    laws = bf.rewards.StudentT(rng.uniform(2, 60, (300, 5)), rng.normal(0, 0.6, (300, 5)),
                               rng.uniform(0.5, 2, (300, 5)))  # fmt: skip
    pi = rng.dirichlet(np.ones(5), 300)
    pi[:50, 2] = np.nan
    grid = np.array([0.0, 0.5, 1.0, 2.0])
    every = laws.divergence("total_variation")
    found = student_variation_of_worst(laws.df, laws.loc, laws.scale, pi, grid)
    known = ~np.isnan(found)
    assert np.allclose(found[known], every[known], rtol=0, atol=1e-12) and known.mean() < 0.7
    gap = np.abs(pi[:, :, None] - pi[:, None, :])
    for eps1 in grid:
        mine, right = (np.nanmax(gap - eps1 * x, axis=(1, 2)) for x in (found, every))
        assert np.allclose(mine, right, rtol=0, atol=1e-12)
    # the largest of all rounds, and at one eps1 of each round where it is above a floor
    floor = np.array([np.inf, 0.1, np.inf, np.inf])
    fewer = student_variation_of_worst(laws.df, laws.loc, laws.scale, pi, grid, floor)
    assert np.isnan(fewer).mean() > np.isnan(found).mean() + 0.1
    for eps1, least in zip(grid, floor, strict=True):
        mine, right = (
            np.fmax.reduce(gap - eps1 * x, axis=(1, 2), initial=-1) for x in (fewer, every)
        )
        assert mine.max() == pytest.approx(right.max(), abs=1e-12)
        assert np.allclose(mine[right > least], right[right > least], rtol=0, atol=1e-12)
    z = np.linspace(0, 12, 4001)
    for df in (0.5, 1, 2, 4, 8, 30, 1e3, 1e5):
        assert np.abs(stats.t.cdf(z, df) - stats.norm.cdf(z)).max() < NORMAL_OFF / df


@pytest.mark.parametrize("model", ["probit", "logit"])
def test_weighted_draws_have_the_mean_of_the_posterior_by_quadrature(model):
    rng = np.random.default_rng(1)
    x, link = rng.normal(size=30), special.ndtr if model == "probit" else special.expit
    log = bf.History([0] * 30, rng.random(30) < link(x), arms=["a", "b"], context={"x": x},
                     propensity=[0.5] * 30, known_at=[*range(1, 26), *[99] * 5])  # fmt: skip
    audit = bf.audit(log, context_model=model, seed=1, draws=50)
    of, start = audit.state.beliefs.featured, audit.summary.start.beliefs.featured
    exact = exact_draws(start, of, [log], 30, np.arange(2), np.random.default_rng(2))
    node, w = np.polynomial.hermite_e.hermegauss(120)
    sd = 1.0 if model == "probit" else 1.5
    beta = sd * np.stack(np.meshgrid(node, node, indexing="ij"), axis=-1).reshape(-1, 2)
    z = np.column_stack([np.ones(30), (x - x.mean()) / x.std()])
    weight = np.outer(w, w).ravel() * link((2 * log.reward - 1) * (beta @ z.T)).prod(axis=1)
    mean = weight @ beta / weight.sum()
    error = np.sqrt(np.diag(of.settled().spread[0]) / exact.ess[0])
    assert np.all(np.abs(exact.weight[:, 0] @ exact.theta[:, 0] - mean) < 5 * error)
    chance = weight @ link(beta @ z.T) / weight.sum()
    assert np.abs(exact.chances(of, z)[:, 0] - chance).max() < 0.02
    drawn = exact.resampled(4000, np.arange(2), np.random.default_rng(3))
    assert np.all(np.abs(drawn[:, 0].mean(axis=0) - mean) < 6 * error)
    assert exact.holds.all() and not exact.refitted.any()
    checks = audit.objective.certificates
    assert [check.n_rounds for check in checks] == [4, 8, 15, 30]
    assert max(check.difference for check in checks) < 0.03
    told = audit.to_dict()["context"]["certificates"]
    assert [one["khat"] for one in told] == [check.khat.max() for check in checks]
    # draws around a law far from the posterior fail: around its mode they are right again
    far = of.beliefs._replace(mean=of.beliefs.mean + 3, spread=of.beliefs.spread / 50)
    exact = exact_draws(start, of._replace(beliefs=far), [log], 30, np.arange(2), rng)
    assert exact.holds.all() and exact.refitted.tolist() == [1, 1]
    assert np.abs(exact.chances(of, z)[:, 0] - chance).max() < 0.02
    check = exact.certificate(of._replace(beliefs=far), z, 30)
    assert check.difference > 0.2 and check.share > 0.5


def test_bins_stand_in_the_order_of_their_numbers():
    x = {"age": np.r_[5, 20, 105, 1000] * 1.0, "site": list("baba")}
    design = Design.start(bf.History([0] * 4, [0] * 4, arms=["a", "b"], context=x).context)
    other = bf.History([0] * 4, [0] * 4, arms=["a", "b"], context={"age": x["age"]}).context
    spans = ["below 16.25", "16.25 to 62.5", "62.5 to 328.8", "328.8 or more"]
    mixed = [f"age={b}, site={s}" for b in spans for s in "ab"]
    assert design.in_order(sorted(mixed)) == mixed
    assert Design.start(other).in_order(sorted(spans)) == spans


def test_what_features_explain_is_no_unseen_context():
    """Within a bin a rule that follows the feature goes with rewards that follow it too."""
    rng = np.random.default_rng(6)
    n, x = 3000, rng.normal(size=3000)
    up = special.ndtr(x)
    pi = np.column_stack([up, 1 - up])
    arm = (rng.random(n) > up).astype(int)
    log = bf.History(arm, rng.random(n) < pi[np.arange(n), arm], selection_probability=pi,
                     context={"x": x})  # fmt: skip
    assert bf.audit(log, context_model="probit", objective=False).checks["context"].passed
    assert not bf.audit(log, context_model="none", objective=False).checks["context"].passed
