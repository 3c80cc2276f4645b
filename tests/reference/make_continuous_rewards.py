"""Write continuous_rewards.json: divergences and P* of Student-t laws by plain mpmath quadrature.

Run from the repository root, about ten minutes: python tests/reference/make_continuous_rewards.py
Nothing of bayesfair is used. Laws are (df, loc, scale); each divergence is given both ways.
"""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import mpmath as mp
import numpy as np

NAMES = ("total_variation", "kl", "hellinger", "chi2", "jensen_shannon", "wasserstein")


def density(df, loc, scale):
    df, loc, scale = mp.mpf(df), mp.mpf(loc), mp.mpf(scale)
    front = mp.gamma((df + 1) / 2) / (mp.sqrt(df * mp.pi) * mp.gamma(df / 2)) / scale
    return lambda x: front * (1 + ((x - loc) / scale) ** 2 / df) ** (-(df + 1) / 2)


def tails(df, loc, scale):
    """Return the functions P(r <= x) and P(r > x), each exact where it is small."""
    df, loc, scale = mp.mpf(df), mp.mpf(loc), mp.mpf(scale)

    def both(x):
        z = (x - loc) / scale
        tail = mp.betainc(df / 2, mp.mpf("0.5"), 0, df / (df + z * z), regularized=True) / 2
        return (1 - tail, tail) if z > 0 else (tail, 1 - tail)

    return (lambda x: both(x)[0]), (lambda x: both(x)[1])


def cdf(df, loc, scale):
    return tails(df, loc, scale)[0]


def cdf_difference(first, second):
    """Return F - G, from the upper tails where x is above both locations."""
    (low_f, high_f), (low_g, high_g) = tails(*first), tails(*second)
    top = max(first[1], second[1])
    return lambda x: high_g(x) - high_f(x) if x > top else low_f(x) - low_g(x)


def whole_line(h, laws):
    """Integrate over the line: pieces around the laws, then powers of e up to e^200."""
    points = sorted({mp.mpf(loc) + z * scale for _, loc, scale in laws for z in (-6, -2, 0, 2, 6)})
    edge = max(abs(points[0]), abs(points[-1]), 1) + 1
    total = mp.quad(h, [-edge, *points, edge])

    def both_tails(v):
        return (h(mp.e**v) + h(-(mp.e**v))) * mp.e**v

    start = mp.log(edge)
    return total + mp.quad(both_tails, [start + s for s in (0, 1, 3, 8, 20, 60, 200)])


def sign_changes(h, centre=0):
    grid = [centre + mp.sinh(mp.mpf(v)) for v in np.linspace(-22, 22, 1100)]
    values = [h(x) for x in grid]
    return [
        mp.findroot(h, (a, b), solver="anderson", tol=1e-32, verify=False)
        for a, b, p, q in zip(grid, grid[1:], values, values[1:], strict=False)
        if p * q < 0 and max(abs(p), abs(q)) > 1e-18
    ]


def oracle(name, first, second):
    with mp.workdps(25):
        f, g = density(*first), density(*second)
        if name in ("total_variation", "wasserstein"):
            gap = cdf_difference(first, second)
            if name == "total_variation":
                at = [0, *(gap(x) for x in sign_changes(lambda x: f(x) - g(x))), 0]
                return float(sum(abs(b - a) for a, b in pairwise(at)) / 2)
            roots = sign_changes(gap, mp.mpf("0.0123"))
            edges = [-mp.sinh(150), *roots, mp.sinh(150)]
            total = mp.mpf(0)
            for a, b in pairwise(edges):
                low, high = mp.asinh(a), mp.asinh(b)
                # fine where the laws are, coarse in the tails
                near = [v for v in np.arange(-8, 8.5, 0.5) if low < v < high]
                far = [v for v in (-100, -60, -35, -20, -12, 12, 20, 35, 60, 100) if low < v < high]
                pieces = [low, *sorted([*near, *far]), high]
                total += abs(mp.quad(lambda u: gap(mp.sinh(u)) * mp.cosh(u), pieces))
            return float(total)
        integrand = {
            "kl": lambda x: f(x) * mp.log(f(x) / g(x)) - f(x) + g(x),
            "hellinger": lambda x: (mp.sqrt(f(x)) - mp.sqrt(g(x))) ** 2 / 2,
            "chi2": lambda x: (f(x) - g(x)) ** 2 / g(x),
            "jensen_shannon": lambda x: (
                (f(x) * mp.log(2 * f(x) / (f(x) + g(x))) + g(x) * mp.log(2 * g(x) / (f(x) + g(x))))
                / 2
            ),
        }[name]
        total = whole_line(integrand, (first, second))
        return float(mp.sqrt(total) if name == "hellinger" else total)


def best_of_laws(laws):
    """P* of Student-t laws by quadrature of the definition."""
    with mp.workdps(20):
        f, big_f = [density(*law) for law in laws], [cdf(*law) for law in laws]
        return [
            float(
                whole_line(
                    lambda x, i=i: (
                        f[i](x) * mp.fprod(big_f[j](x) for j in range(len(laws)) if j != i)
                    ),
                    laws,
                )
            )
            for i in range(len(laws))
        ]


PAIRS = [
    ((4.54, 0.33, 1.88), (7.12, -1.3, 1.37)),
    ((1.74, -0.48, 1.03), (2.85, 0.6, 0.81)),
    ((25.24, -0.38, 1.57), (1.29, 2.04, 1.59)),
    ((30.0, 0.17, 0.42), (31.0, 0.11, 0.62)),
    ((0.5, -0.1, 1.03), (0.8, 0.1, 0.7)),
    ((3.0, 0.32, 1.34), (3.0, -0.82, 0.82)),
    ((3.0, 0.91, 1.0), (3.0, -0.02, 1.0)),
    ((2.0, 0.0, 1.0), (30.0, 0.0, 1.3)),  # four crossings, symmetric
    ((4.0, 0.0, 1.0), (300.0, 0.1, 1.1)),
    ((400.0, 1.0, 2.0), (3.0, 0.0, 0.05)),
]

BEST_ARM = [
    [(2, 0, 1), (2, 1, 1), (2, 0.5, 3)],
    [(0.4, 0, 1), (3, 2, 0.1), (60, -1, 4)],
    [(2, 0, 1), (500, 1, 0.02), (7.5, 0.9, 1), (1, -3, 2)],
]


def both_ways(name, first, second):
    if name == "wasserstein" and min(first[0], second[0]) <= 1:
        return ["inf", "inf"]
    if name != "chi2":
        one = oracle(name, first, second)
        return [one, oracle(name, second, first) if name == "kl" else one]
    return [
        "inf" if g[0] >= 2 * f[0] else oracle(name, f, g)
        for f, g in ((first, second), (second, first))
    ]


def slow_tail():
    """Chi2 of t(1.3) against t(2.5): the terms fall like x^-1.1, so that the end is a power."""
    with mp.workdps(25):
        f, g = density(1.3, 0, 1), density(2.5, 0, 1)

        def term(v):
            x = mp.e**v
            return 2 * (f(x) - g(x)) ** 2 / g(x) * x

        centre = mp.quad(lambda x: (f(x) - g(x)) ** 2 / g(x), [-1, 0, 1])
        body = mp.quad(term, [0, 1, 3, 8, 20, 60, 150, 300])
        return float(centre + body + term(mp.mpf(300)) / mp.mpf("0.1"))


def main():
    result = {
        "slow_tail": slow_tail(),
        "best_arm": [{"laws": laws, "best": best_of_laws(laws)} for laws in BEST_ARM],
        "divergences": [
            {"laws": pair, **{name: both_ways(name, *pair) for name in NAMES}} for pair in PAIRS
        ],
    }
    path = Path(__file__).with_name("continuous_rewards.json")
    path.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
