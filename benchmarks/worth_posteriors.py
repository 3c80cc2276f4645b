"""Posteriors of worths against references: bias, spread, interval ends and errors, by setting.

    python benchmarks/worth_posteriors.py --seeds 60 --out benchmarks/results/worth_posteriors.md

Each setting of tests/reference/worth_posteriors.json (2, 4 and 20 items, prior_sd 1 to 10,
separable and not; quadrature or long runs of the PyMC models) is fitted under many seeds with the
default method. Over all parameters the worst is shown of: bias in posterior standard deviations,
relative error of the standard deviation, errors of the 2.5 % and 97.5 % points relative to their
distance from the mean (all three of the average over seeds); the share of single fits within 0.05
sd; the share of |z| above 3, where z is an error of a mean in its own standard errors; and the
share of seeds that were refused.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

import bayesfair as bf
from bayesfair.kernels.orders.convergence import convergence

REFERENCE = Path(__file__).resolve().parents[1] / "tests" / "reference" / "worth_posteriors.json"


def comparisons_of(entry: dict[str, Any]) -> bf.Comparisons:
    data = entry["data"]
    if "rankings" in data:
        return bf.Comparisons.from_rankings([list(r) for r in data["rankings"]])
    return bf.Comparisons.from_counts(
        data["left"], data["right"], data["wins_left"], data["wins_right"],
        ties=data["ties"] if any(data["ties"]) else None, first=data["first"],
        items=entry["items"],
    )  # fmt: skip


def draws_of(tree: Any, entry: dict[str, Any]) -> np.ndarray:
    """Return draws ``(parameters, chains, n)`` in the order of the reference."""
    posterior = tree["posterior"]
    worth = posterior["log_worth"].sel(item=entry["items"]).transpose("item", "chain", "draw")
    names = [{"order": "order_effect"}.get(name, name) for name in entry["extra"]]
    return np.concatenate([worth.values, *[posterior[name].values[None] for name in names]])


def judge(entry: dict[str, Any], seeds: range, draws: int = 4000) -> dict[str, Any]:
    """Fit one setting under all seeds."""
    data = comparisons_of(entry)
    reference = {s: np.array(entry[s]) for s in ("mean", "sd", "lower", "upper")}
    found, z, methods, refused = [], [], set(), 0
    begin = time.process_time()
    for seed in seeds:
        try:
            tree = bf.fit(
                data, model=entry["model"], prior_sd=entry["prior_sd"], seed=seed, draws=draws
            )
        except bf.ConvergenceError:
            refused += 1
            continue
        methods.add(tree.attrs["method"])
        x = draws_of(tree, entry)
        flat = x.reshape(len(x), -1)
        ends = np.quantile(flat, (0.025, 0.975), axis=1)
        found.append([flat.mean(axis=1), flat.std(axis=1), *ends])
        ess = tree.attrs["ess"] if "ess" in tree.attrs else convergence(x)[1]
        error = np.hypot(found[-1][1] / np.sqrt(ess), entry["mean_error"])
        z.append((found[-1][0] - reference["mean"]) / error)
    all_fits = np.array(found)
    mean, sd, lower, upper = all_fits.mean(axis=0)
    ends = [
        np.abs(end - reference[side]) / np.abs(reference[side] - reference["mean"])
        for end, side in ((lower, "lower"), (upper, "upper"))
    ]
    single = np.abs(all_fits[:, 0] - reference["mean"]) / reference["sd"]
    return {
        "method": "/".join(sorted(methods)),
        "bias": float((np.abs(mean - reference["mean"]) / reference["sd"]).max()),
        "sd": float(np.abs(sd / reference["sd"] - 1).max()),
        "ends": float(np.max(ends)),
        "single within .05": float((single <= 0.05).mean()),
        "z above 3": float((np.abs(z) > 3).mean()),
        "refused": refused / len(seeds),
        "cpu s per fit": (time.process_time() - begin) / len(seeds),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=60)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = []
    for entry in json.loads(REFERENCE.read_text(encoding="utf-8")):
        row = judge(entry, range(options.seeds))
        rows.append((entry, row))
        print(entry["name"], entry["model"], f"{entry['prior_sd']:.3g}", row, flush=True)
    names = list(rows[0][1])
    lines = [
        "# Posteriors of worths against references",
        "",
        f"`python benchmarks/worth_posteriors.py --seeds {options.seeds}`; columns as in its "
        "docstring. Wanted: bias, sd, ends <= .05, z above 3 <= .01, refused <= .05.",
        "",
        "| setting | model | prior sd | " + " | ".join(names) + " |",
        "|---|---|---|" + "---|" * len(names),
    ]
    for entry, row in rows:
        cells = [v if isinstance(v, str) else f"{v:.3f}" for v in row.values()]
        lines.append(
            f"| {entry['name']} | {entry['model']} | {entry['prior_sd']:.3g} | "
            + " | ".join(cells) + " |"
        )  # fmt: skip
    z = sum(row["z above 3"] * len(entry["mean"]) for entry, row in rows)
    lines += [
        "",
        f"Over all settings {z / sum(len(e['mean']) for e, _ in rows):.4f} of |z| above 3.",
    ]
    if options.out:
        options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
