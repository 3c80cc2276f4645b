"""What audits given a context cost, in processor time on one core.

    python benchmarks/contexts.py [--rounds 1000000] [--only linear probit]

``context_model="cells"`` against audits of the same log without a context, in turns, k = 3 and 10,
4 and 50 contexts. Then rounds per second with 10 arms: the whole audit (beliefs, P*, pairs; and the
same without the context), beliefs and predictives alone, and a script of NumPy, vectorised over
arms, nodes and pairs, which finds the same regret and eps2 on the first rounds. 32 contexts, or
four numbers and the intercept. Then the certificate of the filters, which is apart: it belongs to
the objective part. Last that part, of a log with 2000 different contexts.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import special, stats
from subjective_audit import make_log
from timing import in_turns, median, on_cores, ratio

import bayesfair as bf
from bayesfair.audit.truth.exact_coefficients import exact_draws
from bayesfair.kernels.log.coefficients import Coefficients, run_coefficients

K, D, CONTEXTS = 10, 5, 32
MODELS = ("cells", "pooled", "probit", "logit", "linear")
NODES, WEIGHTS = np.polynomial.legendre.leggauss(K // 2)
UP, SHARE = (NODES + 1) / 2, WEIGHTS / 2  # on [0, 1]: exact for the products of K - 1 arms
HERMITE = np.polynomial.hermite_e.hermegauss(40)
STEPS = np.linspace(-8.0, 8.0, 1601)
GRID, WIDTH = np.sinh(STEPS), np.cosh(STEPS) * (STEPS[1] - STEPS[0])


def compare(k: int, n_contexts: int, n_rounds: int, turns: int) -> None:
    log = make_log(k, n_rounds, "noisy", seed=k)
    context = np.random.default_rng(k).integers(0, n_contexts, n_rounds).astype(str)
    given = bf.History(
        log.arm, log.reward, selection_probability=log.selection_probability, context=context
    )
    works = {
        "without": lambda: bf.audit(log, objective=False),
        "cells": lambda: bf.audit(given, objective=False, context_model="cells"),
    }
    with on_cores(1):
        assert works["cells"]().to_dict()["context"]["n_cells"] == n_contexts
        works["without"]()
        times = in_turns(works, turns=turns)
    without, cells = (median(times[name], "processor") / n_rounds * 1e9 for name in works)
    print(
        f"{k:>3} {n_contexts:>9} {n_rounds:>9} {without:>9.1f} {cells:>7.1f} "
        f"{ratio(times['cells'], times['without'], 'processor'):>7.2f} x",
        flush=True,
    )


class Laws(NamedTuple):
    """What is believed of all arms: P*, and the distances of pairs."""

    best: np.ndarray
    apart: np.ndarray


def of_means(m: np.ndarray) -> Laws:
    factor = 1 - UP[:, None] * m
    best = m * ((SHARE * factor.prod(axis=1)) @ (1 / factor)) + (1 - m).prod() / K
    return Laws(best, np.abs(m[:, None] - m))


def of_student(df: np.ndarray, loc: np.ndarray, scale: np.ndarray) -> Laws:
    density = stats.t.pdf(GRID[:, None], df, loc, scale)
    below = stats.t.cdf(GRID[:, None], df, loc, scale)
    best = WIDTH @ (density / below * below.prod(axis=1, keepdims=True))
    between = np.abs(density[:, :, None] - density[:, None, :])
    return Laws(best, np.einsum("g,gij->ij", WIDTH, between) / 2)


def by_script(
    model: str, x: np.ndarray, arm: np.ndarray, y: np.ndarray, pi: np.ndarray
) -> tuple[float, float]:
    """Audit a log round by round: fairness regret per round, and the eps2 that eps1 = 1 needs."""
    won, seen = np.zeros((2, CONTEXTS, K))
    mu = (1 - np.cos((2 * np.arange(40) + 1) * np.pi / 80)) / 2  # Gauss nodes of Beta(1/2, 1/2)
    kappa = np.tile(np.geomspace(0.5, 200, 20), 40)
    a = (mu[:, None] * kappa[:20]).ravel()
    weight = np.full((K, 800), 1 / 800)
    mean, spread = (
        np.zeros((K, D)),
        np.tile(np.eye(D) * (2.25 if model == "logit" else 1), (K, 1, 1)),
    )
    shape, scale = np.ones((2, K))
    regret, needed = 0.0, 0.0
    for z, i, r, rule in zip(x, arm.tolist(), y.tolist(), pi, strict=True):
        if model == "cells":
            laws = of_means((won[z] + 0.5) / (seen[z] + 1))
        elif model == "pooled":
            means = (won[z][:, None] + a) / (seen[z][:, None] + kappa)
            laws = of_means((weight * means).sum(axis=1))
        else:
            along = spread @ z
            centre, v = mean @ z, along @ z
            if model == "probit":
                laws = of_means(special.ndtr(centre / np.sqrt(1 + v)))
            elif model == "logit":
                value = special.expit(centre[:, None] + np.sqrt(v)[:, None] * HERMITE[0])
                laws = of_means(value @ HERMITE[1] / HERMITE[1].sum())
            else:
                laws = of_student(2 * shape, centre, np.sqrt(scale / shape * (1 + v)))
        regret += np.maximum(laws.best - rule, 0).sum()
        needed = max(needed, (np.abs(rule[:, None] - rule) - laws.apart).max())
        if model in ("cells", "pooled"):
            if model == "pooled":
                weight[i] *= means[i] if r else 1 - means[i]
                weight[i] /= weight[i].sum()
            won[z, i] += r
            seen[z, i] += 1
            continue
        u, off = along[i], r - centre[i]
        if model == "linear":
            gain, shrink = off / (1 + v[i]), 1 / (1 + v[i])
            shape[i] += 0.5
            scale[i] += 0.5 * off * gain
        elif model == "probit":
            sign, s = 2 * r - 1, np.sqrt(1 + v[i])
            t = sign * centre[i] / s
            hazard = np.exp(-t * t / 2 - special.log_ndtr(t)) / np.sqrt(2 * np.pi)
            gain, shrink = sign * hazard / s, hazard * (t + hazard) / (1 + v[i])
        else:
            p = value[i] if r else 1 - value[i]
            one, two, three = (HERMITE[1] @ q for q in (p, p * (1 - p), p * (1 - p) * (1 - 2 * p)))
            gain, shrink = two / one * (2 * r - 1), (two / one) ** 2 - three / one
        mean[i] += u * gain
        spread[i] -= np.outer(u, u) * shrink
    return regret / len(arm), needed


def log_of(model: str, n: int) -> tuple[bf.History, np.ndarray]:
    """Return a log of 10 arms, and what stands in each round."""
    rng = np.random.default_rng(0)
    pi = rng.dirichlet(np.full(K, 4.0), n)
    arm = (rng.random(n)[:, None] > pi.cumsum(axis=1)).sum(axis=1).clip(0, K - 1).astype(np.int32)
    if model in ("cells", "pooled"):
        x = rng.integers(0, CONTEXTS, n)
        chance = 0.1 + 0.8 * rng.random((CONTEXTS, K))[x, arm]
        context, rows = x.astype(str), x
    else:
        context = rng.normal(size=(n, D - 1))
        first = context[:100]
        rows = np.column_stack([np.ones(n), (context - first.mean(axis=0)) / first.std(axis=0)])
        chance = special.ndtr(rng.normal(size=K)[arm] + context[:, 0])
    reward = rng.normal(chance) if model == "linear" else (rng.random(n) < chance).astype(float)
    arms = list("abcdefghij")
    return bf.History(arm, reward, arms=arms, selection_probability=pi, context=context), rows


def alone(model: str, log: bf.History, rows: np.ndarray) -> Callable[[], object]:
    start = Coefficients.start(np.tile([0.0, 1, 1, 1], (K, 1)), D, linear=model == "linear")
    return lambda: run_coefficients(model, start, rows, log.arm, log.reward, None)


def speed(model: str, n: int) -> None:
    """Print rounds per second of processor time."""
    log, rows = log_of(model, n)
    few = max(n // {"cells": 25, "linear": 250}.get(model, 50), 32)
    asked = {"objective": False, "eps1": 1.0, "eps2": 0.05}
    asked |= {"prior": (0, 1, 1, 1)} if model == "linear" else {}
    some = rows[:few], log.arm[:few], log.reward[:few], log.selection_probability[:few]
    works: dict[str, Callable[[], object]] = {
        "whole audit": lambda: bf.audit(log, context_model=model, **asked),
        "NumPy": lambda: by_script(model, *some),
    }
    if model not in ("linear",):
        works["without the context"] = lambda: bf.audit(log, context_model="none", **asked)
    if model not in ("cells", "pooled"):
        works["beliefs alone"] = alone(model, log, rows)
    head = bf.audit(log.before(few), context_model=model, **asked)
    regret, needed = by_script(model, *some)
    close = 1e-3 if model == "linear" else 1e-8
    assert abs(head.regret.value - regret) < close and abs(head.smallest_eps2 - needed) < close
    with on_cores(1):
        for work in works.values():
            work()
        took = in_turns(works, turns=3)
    for name, times in took.items():
        rounds = few if name == "NumPy" else n
        rate = rounds / median(times, "processor")
        print(f"{model:8} {name:22} {rate:12,.0f} rounds/s", flush=True)


def certificate(model: str, n: int) -> None:
    """Print what weighing draws against all rewards of a log costs."""
    log, _ = log_of(model, n)
    found = bf.audit(log, context_model=model, objective=False)
    ends = [state.beliefs.featured for state in (found.summary.start, found.state)]
    order, rng = np.arange(K), np.random.default_rng(0)
    with on_cores(1):
        took = in_turns({"it": lambda: exact_draws(*ends, [log], n, order, rng)}, turns=3)
    each = median(took["it"], "processor") / n * 1e6
    draws = len(exact_draws(*ends, [log], n, order, rng).theta)
    print(f"{model:8} certificate at the end: {each:.1f} us a reward, {draws} draws of each arm; "
          f"with those after 1/8, 1/4, 1/2 of the log {1.875 * each:.1f} us")  # fmt: skip


def objective(model: str, n: int, *, k: int = 3, unique: int = 2000, draws: int = 1000) -> None:
    """Print what the objective part adds for a log of so many different contexts."""
    rng = np.random.default_rng(1)
    place, pi = rng.integers(0, unique, n), rng.dirichlet(np.full(k, 4.0), n)
    arm = (rng.random(n)[:, None] > pi.cumsum(axis=1)).sum(axis=1).clip(0, k - 1).astype(np.int32)
    x = rng.normal(size=(unique, D - 1))
    reward = (rng.random(n) < special.ndtr(x[place, 0] * (arm - 1))).astype(float)
    context = place.astype(str) if model in ("cells", "pooled") else x[place]
    log = bf.History(arm, reward, selection_probability=pi, context=context)
    asked = {"context_model": model, "eps1": 1.0}
    drawn = asked | {"seed": 1, "draws": draws}
    bf.audit(log.before(5000), **drawn)
    with on_cores(1):
        took = in_turns({
            "all": lambda: bf.audit(log, **drawn),
            "beliefs": lambda: bf.audit(log, objective=False, **asked),
        }, turns=1)  # fmt: skip
    every, beliefs = (median(took[name], "processor") for name in ("all", "beliefs"))
    print(f"{model:8} objective, {k} arms, {unique} contexts, {n} rounds, {draws} draws: "
          f"{every - beliefs:.1f} s; all of the audit {every:.1f} s", flush=True)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=1_000_000)
    parser.add_argument("--turns", type=int, default=8)
    parser.add_argument("--only", nargs="+", choices=MODELS, help="rounds per second of these")
    options = parser.parse_args()
    if not options.only:
        print(
            "  k  contexts    rounds   without   cells     ratio   (ns of processor time per round)"
        )
        for k in (3, 10):
            for n_contexts in (4, 50):
                compare(k, n_contexts, options.rounds, options.turns)
    for model in options.only or MODELS:
        speed(model, options.rounds // (50 if model == "linear" else 5))
    for model in ("probit", "logit"):
        if not options.only or model in options.only:
            certificate(model, options.rounds // 50)
    for model in ("cells", "pooled", "probit"):
        if not options.only or model in options.only:
            objective(model, options.rounds)


if __name__ == "__main__":
    main()
