"""Normal and Student-t rewards against reference values, closed forms and mpmath quadrature."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from bayesfair.errors import DataError
from bayesfair.kernels.laws.continuous_arms import (
    log_constant,
    panel_rule,
    quick_tail,
    student_tail,
    tail_reach,
)
from bayesfair.kernels.laws.divergences import DIVERGENCES
from bayesfair.rewards import Normal, StudentT

REFERENCE = Path(__file__).resolve().parents[1] / "reference"
KEYS = dict(zip(DIVERGENCES, ["tv", "kl", "hellinger", "chi2", "js", "w1"], strict=True))
LN2 = math.log(2)


def student(*laws):
    return StudentT(*np.array(laws, dtype=float).T)


# -- divergences -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DIVERGENCES)
def test_normal_divergences_equal_reference(name):
    cases = json.loads((REFERENCE / "divergences.json").read_text())["cases"]
    seen = 0
    for case in cases:
        if case["kind"] != "gaussian":
            continue
        mean = [float(Fraction(case[key])) for key in ("mu1", "mu2")]
        sd = [float(Fraction(case[key])) for key in ("sigma1", "sigma2")]
        value = Normal(mean, sd).divergence(name)
        expected = float(case["values"][KEYS[name]])
        assert value[0, 1] == pytest.approx(expected, rel=1e-12, abs=1e-15), case["id"]
        if name not in ("kl", "chi2"):
            assert value[1, 0] == value[0, 1]
        seen += 1
    assert seen == 6


MPMATH = json.loads((REFERENCE / "continuous_rewards.json").read_text())


@pytest.mark.parametrize("case", MPMATH["divergences"], ids=lambda c: str(c["laws"]))
def test_student_divergences_equal_mpmath(case):
    both = student(*case["laws"])
    for name in DIVERGENCES:
        expected = [float(v) for v in case[name]]
        value = both.divergence(name)
        assert [value[0, 1], value[1, 0]] == pytest.approx(expected, rel=1e-9), name


def test_chi2_with_a_slow_tail():
    # tail index 2*1.3 - 2.5 = .1, which truncation would never reach
    first, second = (1.3, 0.0, 1.0), (2.5, 0.0, 1.0)
    value = student(first, second).divergence("chi2")[0, 1]
    assert value == pytest.approx(MPMATH["slow_tail"], rel=1e-9)
    assert student(first, (2.6, 0.0, 1.0)).divergence("chi2")[0, 1] == np.inf


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((6e4, 0.0, 1.0), (0.2, 0.3, 1.0)),
        ((6e4, 0.0, 1.0), (0.2, 0.3, 0.01)),
        ((1e6, 2.0, 1.0), (0.05, -40.0, 1.3)),
        ((1e6, 0.0, 1.0), (3.0, 5.0, 0.02)),
        ((1e3, 0.0, 1.0), (0.1, 0.0, 50.0)),
    ],
)
def test_chi2_of_light_against_very_heavy_tails(first, second):
    # chi2 = int p^2/q - 1, and p^2/q is over within 15 standard deviations of the light law
    with mp.workdps(30):
        n1, c1, s1 = map(mp.mpf, first)
        n2, c2, s2 = map(mp.mpf, second)

        def log_density(x, n, c, s):
            front = mp.loggamma((n + 1) / 2) - mp.loggamma(n / 2) - mp.log(n * mp.pi) / 2
            return front - mp.log(s) - (n + 1) / 2 * mp.log1p(((x - c) / s) ** 2 / n)

        points = {c1 + z * s1 for z in (-15, -10, -7, -5, -3, -1, 0, 1, 3, 5, 7, 10, 15)}
        points |= {c2 + z * s2 for z in (-30, -5, -1, 0, 1, 5, 30)}
        inside = sorted(p for p in points if abs(p - c1) <= 15 * s1)
        exact = mp.quad(
            lambda x: mp.exp(2 * log_density(x, n1, c1, s1) - log_density(x, n2, c2, s2)), inside
        )
    # many rows: each took a second while the heavy tail was integrated panel by panel
    df, loc, scale = np.array([first, second]).T
    laws = StudentT(df, np.arange(200.0)[:, None] + loc, scale)
    value = laws.divergence("chi2")
    np.testing.assert_allclose(value[:, 0, 1], float(exact - 1), rtol=1e-9)
    assert np.all(value[:, 1, 0] == np.inf)


def test_infinite_cases_by_rule():
    cauchy = student((1, 0, 1), (1, 3, 1), (1, 0, 2), (5, 0, 1))
    distance = cauchy.divergence("wasserstein")
    assert distance[0, 1] == 3  # a shift is finite whatever the tails
    assert distance[0, 2] == distance[0, 3] == np.inf
    assert np.isfinite(cauchy.divergence("kl")).all()
    chi2 = cauchy.divergence("chi2")
    assert chi2[0, 3] == np.inf
    assert np.isfinite(chi2[3, 0])
    assert np.isnan(cauchy.mean[:3]).all()
    assert cauchy.mean[3] == 0
    wide = Normal([0, 0, 0], [1, math.sqrt(2), 1.42])
    assert np.isfinite(wide.divergence("chi2")[0]).all()
    assert wide.divergence("chi2")[2, 0] == np.inf


def test_wasserstein_of_a_shift_needs_no_first_moment():
    """int |F - G| of a shift is the shift: both tails cancel, whatever their weight."""
    for df in (0.1, 0.7, 1.0):
        both = StudentT([df, df], [0.0, 2.5], [1.3, 1.3]).divergence("wasserstein")
        assert both[0, 1] == both[1, 0] == 2.5
    with mp.workdps(20):  # the Cauchy law has an elementary distribution function
        gap = mp.quad(
            lambda x: (mp.atan(x / 1.3) - mp.atan((x - 2.5) / 1.3)) / mp.pi,
            [-mp.inf, -100, -10, 0, 1.25, 2.5, 10, 100, mp.inf],
        )
    assert float(gap) == pytest.approx(2.5, rel=1e-9)
    # another scale: |F - G| falls like x^-df, which has no integral for df <= 1
    assert StudentT([1, 1], [0, 2.5], [1, 1.01]).divergence("wasserstein")[0, 1] == np.inf


def test_cauchy_closed_forms():
    # kl = log((1 + s)^2 / 4 s), chi2 of a shift = d^2 / 2
    scale = 3.0
    two = student((1, 0, 1), (1, 0, scale))
    expected = math.log((1 + scale) ** 2 / (4 * scale))
    assert two.divergence("kl")[0, 1] == pytest.approx(expected, rel=1e-12)
    shift = student((1, 0, 1), (1, 0.7, 1))
    assert shift.divergence("chi2")[0, 1] == pytest.approx(0.7**2 / 2, rel=1e-11)
    tv = 2 / math.pi * math.atan(0.35)
    assert shift.divergence("total_variation")[0, 1] == pytest.approx(tv, rel=1e-12)


def test_large_df_is_normal():
    mean, sd = [0.3, -0.2, 1.0], [1.0, 1.2, 0.9]
    late, normal = StudentT(1e9, mean, sd), Normal(mean, sd)
    for name in DIVERGENCES:
        # chi2 of this pair is governed by the 7-sigma tail, where df = 1e9 still shows
        tolerance = 1e-5 if name == "chi2" else 1e-7
        np.testing.assert_allclose(late.divergence(name), normal.divergence(name), rtol=tolerance)
    np.testing.assert_allclose(
        late.best_arm_probability(), normal.best_arm_probability(), atol=1e-9
    )


laws = st.tuples(st.floats(0.3, 300), st.floats(-3, 3), st.floats(-3, 3).map(math.exp))


@given(laws, laws)
@example((3.0, 0.0, 1.0), (3.0, 7e-293, math.exp(2)))  # a turning point beyond double precision
@example((1.3, 1e-99, 0.4), (1.3, 0.0, 7.4))
@example((734.0, 1e-16, 1.4), (734.0, 0.0, 1e-3))
@settings(max_examples=60, deadline=None)
def test_inequalities_between_divergences(first, second):
    both = student(first, second)
    value = {name: both.divergence(name)[0, 1] for name in DIVERGENCES}
    tv, kl, h = value["total_variation"], value["kl"], value["hellinger"]
    slack = 1e-12
    assert 0 <= tv <= 1
    assert tv <= math.sqrt(kl / 2) + slack
    assert tv <= math.sqrt(-math.expm1(-kl)) + slack
    assert h * h - slack <= tv <= h * math.sqrt(2 - h * h) + slack
    assert value["jensen_shannon"] <= LN2 * tv + slack
    assert kl <= math.log1p(value["chi2"]) * (1 + 1e-10) + slack


def test_units_do_not_matter():
    rng = np.random.default_rng(11)
    df, loc, scale = rng.uniform(1.5, 20, 4), rng.normal(size=4), rng.uniform(0.5, 2, 4)
    one, other = StudentT(df, loc, scale), StudentT(df, 1e6 * loc + 3e6, 1e6 * scale)
    for name in DIVERGENCES:
        unit = 1e6 if name == "wasserstein" else 1
        np.testing.assert_allclose(other.divergence(name), unit * one.divergence(name), rtol=1e-8)
    np.testing.assert_allclose(other.best_arm_probability(), one.best_arm_probability(), atol=1e-12)


def test_a_narrow_law_far_away():
    # practically disjoint: the largest possible values, whichever law comes first
    for rewards in (
        Normal([0, 1e5], [1, 1e-5]),
        StudentT([30, 40], [0, 1e5], [1, 1e-5]),
        StudentT([40, 30], [1e5, 0], [1e-5, 1]),
    ):
        js = rewards.divergence("jensen_shannon")
        np.testing.assert_allclose(js[[0, 1], [1, 0]], LN2, rtol=1e-12)
        np.testing.assert_allclose(rewards.divergence("hellinger")[0, 1], 1, rtol=1e-12)
        np.testing.assert_allclose(rewards.divergence("wasserstein")[0, 1], 1e5, rtol=1e-9)


def test_rows_equal_to_the_row_before_are_copied_right():
    rng = np.random.default_rng(12)
    loc = np.repeat(rng.normal(size=(1, 4)), 20, axis=0)
    for t in range(1, 20):
        loc[t] = loc[t - 1]
        loc[t, rng.integers(4)] = rng.normal()
    rewards = StudentT(5.0, loc, 1.0)
    for name in DIVERGENCES:
        rows = np.stack([rewards[t].divergence(name) for t in range(20)])
        np.testing.assert_array_equal(rewards.divergence(name), rows)


# -- P* ----------------------------------------------------------------------------------------


def test_normal_case_74():
    best = Normal([1, 0], [1, 1]).best_arm_probability()
    assert best[0] == pytest.approx(0.7602499389065233, abs=1e-14)
    best = Normal([0.5, 0], [1, 2]).best_arm_probability()
    assert best[0] == pytest.approx(stats.norm.cdf(0.5 / math.sqrt(5)), abs=1e-14)
    assert best[0] == pytest.approx(0.5885, abs=5e-5)


def test_two_normal_arms_at_wildly_different_scales():
    rng = np.random.default_rng(13)
    mean = rng.normal(size=(400, 2)) * 10.0 ** rng.integers(-3, 4, size=(400, 1))
    sd = 10.0 ** rng.uniform(-8, 6, size=(400, 2))
    best = Normal(mean, sd).best_arm_probability()
    z = (mean[:, 0] - mean[:, 1]) / np.hypot(sd[:, 0], sd[:, 1])
    np.testing.assert_allclose(best[:, 0], stats.norm.cdf(z), atol=2e-13)
    np.testing.assert_allclose(best.sum(axis=1), 1, atol=1e-12)


def test_three_equal_normals_and_one_certain_winner():
    # three exchangeable arms among a hopeless and a needle far above: exact by symmetry
    best = Normal([0, 0, 0, -1e3], [1, 1, 1, 1e-3]).best_arm_probability()
    np.testing.assert_allclose(best, [1 / 3, 1 / 3, 1 / 3, 0], atol=1e-13)
    best = Normal([0, 0, 50], [1, 5, 1e-9]).best_arm_probability()
    np.testing.assert_allclose(best, [0, 0, 1], atol=1e-13)


def test_a_needle_among_broad_arms():
    # arm 0 is (nearly) the constant c: P*(0) = prod of the others' F(c)
    c = 0.3
    best = Normal([c, 0, 1], [1e-9, 1, 2]).best_arm_probability()
    expected = stats.norm.cdf(c) * stats.norm.cdf((c - 1) / 2)
    assert best[0] == pytest.approx(expected, abs=1e-9)
    heavy = StudentT([50, 0.7, 2], [c, 0, 1], [1e-9, 1, 2]).best_arm_probability()
    expected = stats.t.cdf(c, 0.7) * stats.t.cdf((c - 1) / 2, 2)
    assert heavy[0] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("case", MPMATH["best_arm"], ids=lambda c: str(c["laws"]))
def test_student_best_arm_equals_mpmath(case):
    best = student(*case["laws"]).best_arm_probability()
    np.testing.assert_allclose(best, case["best"], atol=1e-12)


def test_cauchy_pair_in_closed_form():
    # the difference of two Cauchy arms is Cauchy with the sum of the scales
    best = student((1, 2, 1), (1, 0, 3)).best_arm_probability()
    assert best[0] == pytest.approx(0.5 + math.atan(0.5) / math.pi, abs=1e-12)


@pytest.mark.parametrize("df", [0.05, 0.3, 2.0, 30.0, 1e6])
def test_equal_arms_share_evenly(df):
    for k in (2, 7, 50):
        best = StudentT(np.full(k, df), 0.0, 1.0).best_arm_probability()
        np.testing.assert_allclose(best, np.full(k, 1 / k), atol=1e-11)


def test_order_statistics_of_shifted_arms():
    # k - 1 equal arms: P* of the odd one by one-dimensional SciPy quadrature
    from scipy.integrate import quad

    k, shift = 30, 1.5
    best = Normal(np.r_[shift, np.zeros(k - 1)], 1.0).best_arm_probability()
    expected, _ = quad(
        lambda x: stats.norm.pdf(x - shift) * stats.norm.cdf(x) ** (k - 1), -8, 12, epsabs=1e-13
    )
    assert best[0] == pytest.approx(expected, abs=1e-11)


def test_offered_arms_only():
    rng = np.random.default_rng(14)
    df, loc, scale = rng.uniform(2, 9, (5, 4)), rng.normal(size=(5, 4)), rng.uniform(1, 2, (5, 4))
    mask = rng.random((5, 4)) < 0.6
    mask[:, 1] = True
    best = StudentT(df, loc, scale).best_arm_probability(offered=mask)
    for t in range(5):
        on = mask[t]
        alone = StudentT(df[t, on], loc[t, on], scale[t, on]).best_arm_probability()
        np.testing.assert_allclose(best[t, on], alone, atol=1e-15)
        assert np.isnan(best[t, ~on]).all()


def test_arms_of_whole_df_by_an_integral_of_scipy():
    df, loc, scale = [7.0, 200.0, 1500.0], [0.3, 0.0, 0.4], [1.0, 1.4, 0.2]
    laws = [stats.t(*one) for one in zip(df, loc, scale, strict=True)]
    for i, best in enumerate(StudentT(df, loc, scale).best_arm_probability()):
        others = [law for j, law in enumerate(laws) if j != i]

        def chosen(x, i=i, others=others):
            return laws[i].pdf(x) * others[0].cdf(x) * others[1].cdf(x)

        right = integrate.quad(chosen, -20, 20, points=[0.4], epsabs=1e-12, limit=200)[0]
        right += integrate.quad(chosen, 20, np.inf, epsabs=1e-14)[0]  # 1e-7 with 7 df
        assert best == pytest.approx(right, abs=1e-10)


def test_distribution_function_equals_scipy():
    nodes, weights, _ = panel_rule()
    rng = np.random.default_rng(15)
    z = np.concatenate([rng.normal(size=300) * 5, rng.standard_cauchy(300) * 50, [0.0]])
    room = np.empty((2, len(nodes)))
    for df in (0.05, 0.5, 1, 2.5, 4, 7, 16, 17, 40, 99.9, 100, 1000, 4095, 1e4, 1e8):
        log_c = log_constant(float(df))
        tail = [student_tail(abs(x), float(df), log_c, nodes, weights) for x in z]
        np.testing.assert_allclose(tail, stats.t.sf(abs(z), df), atol=5e-15)
        quick = [quick_tail(abs(x), float(df), log_c, nodes, weights, *room) for x in z]
        np.testing.assert_allclose(quick, stats.t.sf(abs(z), df), atol=1e-12)
        for p in (0.4, 1e-3, 1e-9):
            assert stats.t.sf(tail_reach(p, df), df) <= p * (1 + 1e-9)


# -- the rest ----------------------------------------------------------------------------------


def test_log_prob_equals_scipy():
    x = np.array([-1e3, -1.2, 0.0, 5.0])[:, None]
    df, loc, scale = np.array([0.5, 3, 1e9]), np.array([0, 1, 2.0]), np.array([1, 0.1, 3])
    np.testing.assert_allclose(
        StudentT(df, loc, scale).log_prob(x), stats.t.logpdf(x, df, loc, scale), rtol=1e-7
    )
    np.testing.assert_allclose(
        Normal(loc, scale).log_prob(x), stats.norm.logpdf(x, loc, scale), rtol=1e-13
    )
    assert np.isnan(Normal([0], [1]).log_prob(np.nan)).all()


@pytest.mark.statistical
def test_samples_have_the_law():
    # Kolmogorov-Smirnov at alpha = 1e-4 per arm, fixed seed
    for rewards, law in (
        (Normal([1, -2], [2, 0.5]), lambda i: stats.norm([1, -2][i], [2, 0.5][i]).cdf),
        (
            StudentT([2, 9], [1, -2], [2, 1]),
            lambda i: stats.t([2, 9][i], [1, -2][i], [2, 1][i]).cdf,
        ),
    ):
        draws = rewards.sample(5000, seed=16)
        assert draws.shape == (5000, 2)
        for i in range(2):
            assert stats.kstest(draws[:, i], law(i)).pvalue > 1e-4


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Normal([0, 1], [1, 0], arms=["a", "b"]), "sd of arm 'b' is 0; .*Finite"),
        (lambda: Normal([np.inf], [1]), "mean of arm '0'"),
        (lambda: StudentT([np.inf], [0], [1]), "Normal"),
        (lambda: StudentT([0.01], [0], [1]), "at least 0.05"),
        (lambda: StudentT([3], [0], [-1]), "scale of arm"),
        (lambda: Normal([0, 1, 2], [1, 1]), "do not broadcast"),
    ],
)
def test_bad_parameters_are_named(make, message):
    with pytest.raises(DataError, match=message):
        make()
