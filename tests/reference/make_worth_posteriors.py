"""Posteriors of worths that owe nothing to the package's samplers: worth_posteriors.json.

    python tests/reference/make_worth_posteriors.py

Two and four items: sums over a grid in the sum-to-zero space (the trapezoidal rule, which is exact
to rounding for such smooth densities), written out from the models' definitions. Their error is the
difference from a grid one third coarser. Twenty items: long NUTS runs of the PyMC models; errors
are Monte-Carlo standard errors. Every entry holds its own data.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.linalg import helmert
from scipy.optimize import brentq
from scipy.special import log_ndtr

TARGET = Path(__file__).with_name("worth_posteriors.json")
PROBS = (0.025, 0.975)


def duels(left, right, wins_left, wins_right, ties=None, first=None):
    n = len(left)
    return {
        "left": list(left), "right": list(right), "wins_left": list(wins_left),
        "wins_right": list(wins_right), "ties": list(ties or [0] * n), "first": first,
    }  # fmt: skip


def log_likelihood(entry, worth, order=0.0, log_tie=0.0):
    """Of log-worths (..., k); shapes of the other two broadcast."""
    data, model = entry["data"], entry["model"]
    value = 0.0
    if model == "plackett_luce":
        for ranking in data["rankings"]:
            places = [entry["items"].index(item) for item in ranking]
            for at in range(len(places) - 1):
                rest = worth[..., places[at:]]
                top = rest.max(axis=-1)
                total = np.log(np.exp(rest - top[..., None]).sum(axis=-1)) + top
                value = value + worth[..., places[at]] - total
        return value
    first = 1.0 if data["first"] == "left" else 0.0
    cells = zip(
        data["left"], data["right"], data["wins_left"], data["wins_right"], data["ties"],
        strict=True,
    )  # fmt: skip
    for a, b, won, lost, tied in cells:
        gap = worth[..., entry["items"].index(a)] - worth[..., entry["items"].index(b)]
        gap = gap + first * order
        if model == "bradley_terry":
            value = value - won * np.logaddexp(0, -gap) - lost * np.logaddexp(0, gap)
        elif model == "thurstone":
            value = value + won * log_ndtr(gap) + lost * log_ndtr(-gap)
        else:
            total = np.logaddexp(np.logaddexp(gap / 2, -gap / 2), log_tie)
            value = value + (won - lost) * gap / 2 + tied * log_tie - (won + lost + tied) * total
    return value


def towards(k, item):
    """Orthonormal rows that span the vectors that sum to zero; the first moves one item most."""
    rows = np.vstack([np.eye(k)[item] - 1 / k, helmert(k)])
    q, r = np.linalg.qr(rows.T)
    return (q * np.sign(np.diag(r)))[:, : k - 1].T


def on_grid(entry, axes, basis):
    """Posterior mass on the product of axes, as a cube."""
    d = len(basis)
    mesh = np.meshgrid(*axes, indexing="ij")
    x = np.stack([m.ravel() for m in mesh], axis=1)
    log_p = -0.5 * (x[:, :d] ** 2).sum(axis=1) / entry["prior_sd"] ** 2
    extra, at = {}, d
    for name, sd in (("order", 1.0), ("log_tie", 1.5)):
        if name in entry["extra"]:
            extra[name] = x[:, at]
            log_p = log_p - 0.5 * (x[:, at] / sd) ** 2
            at += 1
    log_p = log_p + log_likelihood(entry, x[:, :d] @ basis, **extra)
    mass = np.exp(log_p - log_p.max())
    return (mass / mass.sum()).reshape([len(axis) for axis in axes])


def margin(cube, at):
    return cube.sum(axis=tuple(n for n in range(cube.ndim) if n != at))


def summary(axis, mass):
    """Mean, sd and quantiles of a smooth density known at equal steps."""
    mean = mass @ axis
    sd = np.sqrt(mass @ (axis - mean) ** 2)
    below = CubicSpline(axis, mass / (axis[1] - axis[0])).antiderivative()
    ends = [brentq(lambda x, p=p: float(below(x)) - p, axis[0], axis[-1]) for p in PROBS]
    return [mean, sd, *ends]


def limits_of(entry, basis):
    d = len(basis) + len(entry["extra"])
    sds = [entry["prior_sd"]] * len(basis) + [1.5] * len(entry["extra"])
    limits = [(-9 * sd, 9 * sd) for sd in sds]
    for _ in range(4):  # close in on where the mass is
        axes = [np.linspace(*pair, 41 if d > 1 else 2001) for pair in limits]
        cube = on_grid(entry, axes, basis)
        limits = []
        for n, axis in enumerate(axes):
            on = np.flatnonzero(margin(cube, n) > 1e-10)
            step = axis[1] - axis[0]
            limits.append((axis[on[0]] - 2 * step, axis[on[-1]] + 2 * step))
    return limits


def quadrature(entry):
    k = len(entry["items"])
    found = []
    for size in (4000, 6001) if k == 2 and not entry["extra"] else (100, 151):
        rows = []
        for item in range(k):
            basis = towards(k, item)
            axes = [np.linspace(*pair, size) for pair in limits_of(entry, basis)]
            cube = on_grid(entry, axes, basis)
            # along the first axis the item's log-worth is basis[0, item] times the coordinate
            rows.append(summary(axes[0] * basis[0, item], margin(cube, 0)))
        rows += [summary(axes[n], margin(cube, n)) for n in range(k - 1, len(axes))]
        found.append(np.array(rows).T)
    return found[1], np.abs(found[1] - found[0])


def long_run(entry):
    import arviz_stats as az

    import bayesfair as bf
    from bayesfair.inference.nuts import CompiledModel
    from bayesfair.models import bradley_terry

    data = entry["data"]
    comparisons = bf.Comparisons.from_counts(
        data["left"], data["right"], data["wins_left"], data["wins_right"], items=entry["items"]
    )
    model = CompiledModel(bradley_terry.build(comparisons, prior_sd=entry["prior_sd"]))
    tree = model.sample(draws=10_000, tune=2000, target_accept=0.95, seed=20260101, cores=2)
    posterior = tree["posterior"].to_dataset()[["log_worth"]]
    assert float(az.rhat(posterior)["log_worth"].max()) < 1.005
    assert int(tree["sample_stats"]["diverging"].sum()) == 0
    x = posterior["log_worth"].stack(sample=("chain", "draw")).transpose("sample", "item").values
    value = np.array([x.mean(0), x.std(0), *np.quantile(x, PROBS, axis=0)])
    errors = [az.mcse(posterior, method="mean"), az.mcse(posterior, method="sd")]
    errors += [az.mcse(posterior, method="quantile", prob=p) for p in PROBS]
    return value, np.array([e["log_worth"].values for e in errors])


def entries():
    two, four = ["a", "b"], ["0", "1", "2", "3"]
    chain = duels("321", "210", [1] * 3, [0] * 3)
    robin = duels("000112", "123233", [3, 4, 2, 3, 4, 1], [1, 2, 2, 1, 1, 3])
    for won, lost, sd in ((5, 0, 1), (5, 0, 3), (20, 0, 5), (20, 1, 10)):
        yield f"{won}-{lost}", "bradley_terry", two, duels("a", "b", [won], [lost]), (sd,), ()
    sds = (1, 3, 10)
    yield "20-0", "bradley_terry", two, duels("a", "b", [20], [0]), sds, ()
    yield "7-3", "bradley_terry", two, duels("a", "b", [7], [3]), sds, ()
    yield "chain of four", "bradley_terry", four, chain, (8**0.5, *sds), ()
    yield "chain of four", "thurstone", four, chain, (8**0.5,), ()
    yield "round robin of four", "bradley_terry", four, robin, sds, ()
    yield (
        "three rankings",
        "plackett_luce",
        four,
        {"rankings": ["0123", "0132", "0123"]},
        (1, 10),
        (),
    )
    tied = duels("ab", "ba", [5, 1], [0, 4], [2, 1], first="left")
    yield "ties and order", "davidson", two, tied, (1, 10), ("order", "log_tie")
    rng = np.random.default_rng(2)
    names = [f"i{j:02d}" for j in range(20)]
    a = np.concatenate([np.arange(19), rng.integers(0, 10, 20)])
    b = np.concatenate([np.arange(1, 20), rng.integers(10, 20, 20)])
    sure = duels([names[i] for i in a], [names[i] for i in b], [1] * 39, [0] * 39)
    yield "twenty in order", "bradley_terry", names, sure, sds, ()
    worth = rng.normal(size=20)
    a = np.concatenate([np.arange(20), rng.integers(20, size=40)])
    b = np.concatenate([(np.arange(20) + 1) % 20, (a[20:] + rng.integers(1, 20, 40)) % 20])
    won = (rng.random((60, 3)) < 1 / (1 + np.exp(worth[b] - worth[a]))[:, None]).sum(axis=1)
    mixed = duels([names[i] for i in a], [names[i] for i in b], won.tolist(), (3 - won).tolist())
    yield "twenty mixed", "bradley_terry", names, mixed, sds, ()


def main() -> None:
    result = []
    # long runs are kept where their setting has not changed
    kept = json.loads(TARGET.read_text(encoding="utf-8")) if TARGET.exists() else []
    for name, model, items, data, sds, extra in entries():
        for sd in sds:
            entry = {
                "name": name, "model": model, "prior_sd": sd, "items": items, "data": data,
                "extra": list(extra),
            }  # fmt: skip
            known = [
                e for e in kept if len(items) > 4 and all(e[key] == entry[key] for key in entry)
            ]
            if known:
                result.append(known[0])
                continue
            value, error = long_run(entry) if len(items) > 4 else quadrature(entry)
            for row, statistic in enumerate(("mean", "sd", "lower", "upper")):
                entry[statistic] = value[row].tolist()
                entry[f"{statistic}_error"] = error[row].tolist()
            result.append(entry)
            print(name, model, sd, value[:, 0].round(4), error.max(axis=1), flush=True)
    TARGET.write_text(json.dumps(result, indent=None) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
