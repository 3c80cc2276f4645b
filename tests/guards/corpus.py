"""The numbers of about 240 audits, fits and audits of duels, to hold a rebuilt house against.

Before a change of the structure:  python tests/guards/corpus.py write before.json
After every step:                  python tests/guards/corpus.py compare before.json

Inputs are generated, seeds fixed. Numbers agree to 1e-12 relative (draws exactly), notices by kind.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import bayesfair as bf
from bayesfair.value import policy_value

Case = tuple[str, Callable[[], Any]]

REWARDS = {
    "bernoulli": lambda rng, arm: (rng.random(len(arm)) < 0.3 + 0.1 * arm).astype(float),
    "finite": lambda rng, arm: rng.integers(1, 5, len(arm)) + (arm % 2),
    "poisson": lambda rng, arm: rng.poisson(2.0 + arm),
    "normal": lambda rng, arm: rng.normal(10.0 + arm, 2.0),
}
DIVERGENCES = "total_variation", "kl", "hellinger", "chi2", "jensen_shannon", "wasserstein"


def log(
    seed: int,
    *,
    n: int = 80,
    k: int = 3,
    family: str = "bernoulli",
    logged: str = "full",
    offers: bool = False,
    delay: bool = False,
    missing: bool = False,
) -> bf.History:
    """Return a made-up log."""
    rng = np.random.default_rng(seed)
    pi = rng.dirichlet(np.full(k, 4.0), size=n)
    if offers:
        on = rng.random((n, k)) < 0.7
        on[np.arange(n), rng.integers(k, size=n)] = True
        pi = np.where(on, pi, 0.0)
        pi /= pi.sum(axis=1, keepdims=True)
    arm = (pi.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    reward = np.asarray(REWARDS[family](rng, arm), float)
    if missing:
        reward[rng.random(n) < 0.2] = np.nan
    fields: dict[str, Any] = {"arms": [f"arm {i}" for i in range(k)]}
    if logged == "full":
        fields["selection_probability"] = np.where(pi > 0, pi, np.nan) if offers else pi
    elif logged == "chosen":
        fields["propensity"] = pi[np.arange(n), arm]
    if delay:
        fields["known_at"] = np.arange(n) + rng.integers(1, 9, size=n)
    return bf.History(arm.astype(np.int32), reward, **fields)


def audits() -> Iterator[Case]:
    """Yield audits of all kinds of log, families, divergences and options."""
    for family in REWARDS:
        for logged in ("full", "chosen", "none"):
            for k in (2, 3, 12):
                for extra in ({}, {"missing": True}, {"delay": True}):
                    name = f"audit {family} {logged} k={k} {' '.join(extra)}"
                    yield (
                        name,
                        lambda f=family, lo=logged, k=k, e=extra: bf.audit(
                            log(k, family=f, logged=lo, k=k, **e), family=f, draws=200, seed=1
                        ),
                    )
        for divergence in DIVERGENCES:
            yield (
                f"audit {family} {divergence}",
                lambda f=family, d=divergence: bf.audit(
                    log(5, family=f), family=f, divergence=d, draws=200, seed=1
                ),
            )
    full = log(7, n=120, offers=True)
    options: dict[str, dict[str, Any]] = {
        "offers": {},
        "eps": {"eps1": 0.5, "eps2": 0.2, "delta": 0.2},
        "from_round": {"from_round": 40},
        "judge": {"judge": "subjective"},
        "prior": {"prior": (2.0, 3.0)},
        "tolerance": {"tolerance": 1e-3},
        "arm_groups": {"arm_groups": {"arm 0": "x", "arm 1": "x", "arm 2": "y"}},
        "truth": {"truth": bf.rewards.Bernoulli(np.array([0.3, 0.4, 0.5]))},
        "no_objective": {"objective": False},
    }  # fmt: skip
    for name, option in options.items():
        drawn = {} if {"truth", "objective"} & option.keys() else {"draws": 200, "seed": 1}
        yield f"audit option {name}", lambda o=option | drawn: bf.audit(full, **o)
    wide = log(9, n=60, k=40)
    yield "audit 40 arms", lambda: bf.audit(wide, draws=200, seed=1)
    yield "audit prior sensitivity", lambda: bf.audit(full, draws=400, seed=1).prior_sensitivity()


def parts() -> Iterator[Case]:
    """Yield groups, resumed, merged, saved and scanned audits."""
    for family in REWARDS:
        for logged in ("full", "chosen", "none"):
            whole = log(11, n=90, family=family, logged=logged, missing=True)

            def resumed(whole: bf.History = whole, family: str = family) -> Any:
                first = bf.audit(whole.before(40), family=family, draws=200, seed=1)
                with tempfile.TemporaryDirectory() as folder:
                    first.save(Path(folder, "a.nc"))
                    return bf.load_audit(Path(folder, "a.nc")).resume(whole.rounds(40, 90))

            def merged(whole: bf.History = whole, family: str = family) -> Any:
                first = bf.audit(whole.before(40), family=family, draws=200, seed=1)
                later = whole.rounds(40, 90)
                return bf.merge(
                    first, bf.audit(later, family=family, draws=200, seed=1, prior=first)
                )

            yield f"resumed {family} {logged}", resumed
            yield f"merged {family} {logged}", merged
    logs = {name: log(seed) for seed, name in enumerate("abc")}
    yield "groups", lambda: bf.audit(logs, draws=200, seed=1)

    def scanned() -> Any:
        history = log(13, n=200)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "x.csv")
            names = [f"p_{arm}" for arm in history.arms]
            with file.open("w") as out:
                out.write(",".join(["arm", "reward", *names]) + "\n")
                for t in range(history.n_rounds):
                    row = [history.arms[history.arm[t]], repr(float(history.reward[t]))]
                    row += [repr(float(p)) for p in history.selection_probability[t]]
                    out.write(",".join(row) + "\n")
            return bf.audit(bf.scan_history(file), draws=200, seed=1)

    yield "scanned", scanned


def duels(seed: int, n: int = 200, k: int = 5, ties: float = 0.0) -> bf.Comparisons:
    """Return made-up duels."""
    rng = np.random.default_rng(seed)
    names = np.array([f"item {i}" for i in range(k)])
    pairs = np.array([rng.permutation(k)[:2] for _ in range(n)])
    left, right = names[pairs].T
    winner = np.where(rng.random(n) < 1 / (1 + np.exp(pairs[:, 0] - pairs[:, 1])), left, right)
    winner = np.where(rng.random(n) < ties, "tie", winner)
    return bf.Comparisons.from_duels(left, right, winner, first="left")


def fits() -> Iterator[Case]:
    """Yield fits of comparisons and of histories, and what is computed from them."""
    for seed in range(4):
        for ties, options in (
            (0.0, {}), (0.2, {}), (0.2, {"model": "bradley_terry", "ties": "drop"}),
            (0.0, {"model": "thurstone"}), (0.0, {"prior_sd": np.inf}), (0.0, {"prior_sd": 5.0}),
        ):  # fmt: skip
            name = f"fit duels {seed} ties={ties} {options}"
            yield name, lambda s=seed, t=ties, o=options: bf.fit(duels(s, ties=t), seed=1, **o)
    rng = np.random.default_rng(3)
    orders = [[f"i{i}" for i in rng.permutation(6)] for _ in range(40)]
    yield "fit rankings", lambda: bf.fit(bf.Comparisons.from_rankings(orders), seed=1)
    top = [order[:3] for order in orders]
    for partial in ("top", "subset"):
        yield (
            f"fit rankings {partial}",
            lambda p=partial: bf.fit(bf.Comparisons.from_rankings(top, partial=p), seed=1),
        )
    for family in REWARDS:
        yield f"fit {family}", lambda f=family: bf.fit(log(2, family=f), family=f, seed=1)
    tree = bf.fit(duels(1), seed=1)
    yield "rank table", lambda: bf.rank_table(tree)
    yield "win probability", lambda: bf.win_probability(tree)
    yield "consistency", lambda: bf.pl_consistency(tree, duels(1), seed=1)


def duel_audits() -> Iterator[Case]:
    """Yield audits of who is compared with whom."""
    for seed in range(3):
        run = bf.simulate_duels(bf.policies.FairSDDTS(), [3.0, 2.0, 1.0], 150, seed=seed)
        for options in ({}, {"eps1": 0.5}, {"prior_sd": 2.0}, {"model": "davidson"}):
            name = f"audit duels {seed} {options}"
            yield name, lambda r=run, o=options: bf.audit_comparisons(r, seed=1, draws=400, **o)


def seen(seed: int, *, family: str = "bernoulli", numbers: bool = False, **more: Any) -> bf.History:
    """Return a made-up log with a context, of labels or of numbers."""
    plain, rng = log(seed, family=family, **more), np.random.default_rng(seed + 100)
    n = plain.n_rounds
    context = {"x": rng.normal(size=n)} if numbers else {"where": rng.choice(["a", "b", "c"], n)}
    fields = {name: getattr(plain, name) for name in ("selection_probability", "propensity")}
    return bf.History(plain.arm, plain.reward, arms=plain.arms, context=context, **fields)


def given_contexts() -> Iterator[Case]:
    """Yield audits given a context, of rules known in part or estimated, and of other rules."""
    asked: dict[str, Any] = {"draws": 200, "seed": 1}
    for logged in ("full", "chosen", "none"):
        for model, numbers_ in (
            ("cells", False), ("pooled", False), ("probit", True), ("logit", True),
            ("linear", True),
        ):  # fmt: skip
            family = "normal" if model == "linear" else "bernoulli"
            yield (
                f"context {model} {logged}",
                lambda m=model, lo=logged, f=family, x=numbers_: bf.audit(
                    seen(3, n=60, logged=lo, family=f, numbers=x), context_model=m, **asked
                ),
            )
    whole = seen(4)
    yield "across contexts", lambda: bf.audit(whole, across="contexts", objective=False)
    covered = whole.selection_probability.copy()
    covered[::2, 1:] = np.nan
    arm = np.where(np.arange(80) % 2, whole.arm, 0).astype(np.int32)
    p = np.nan_to_num(covered[np.arange(80), arm], nan=0.5)
    partly = bf.History(arm, whole.reward, propensity=p, covered=covered, arms=whole.arms)
    yield "covered", lambda: bf.audit(partly, **asked)
    bare = log(6, logged="none", n=300)
    yield "estimated rule", lambda: bf.audit(bare, rule="estimated", rule_window=60, **asked)
    yield (
        "value of rules",
        lambda: policy_value(whole, ("p_star", "uniform", "greedy")).to_dataframe().to_json(),
    )


def arenas() -> Iterator[Case]:
    """Yield audits of duels whose law was not logged: shares in windows, or propensities."""
    for seed, share in enumerate(([0.4, 0.3, 0.2, 0.1], [0.25] * 4)):
        rng, n = np.random.default_rng(seed), 900
        left = rng.choice(4, n, p=share)
        right = (left + rng.integers(1, 4, n)) % 4
        names = np.array(["m0", "m1", "m2", "m3"])
        won = np.where(rng.random(n) < 1 / (1 + np.exp(0.3 * (left - right))), "left", "right")
        log = bf.Comparisons.from_duels(names[left], names[right], won, keep_rows=True)
        for asked in (
            {}, {"window": 90}, {"slot": "mean"}, {"propensity": np.asarray(share)[left]},
        ):  # fmt: skip
            yield (
                f"arena {seed} {sorted(asked)}",
                lambda lo=log, a=asked: bf.audit_comparisons(lo, seed=1, draws=400, **a),
            )


def numbers(result: Any) -> Any:
    """Return a result as JSON has it: draws as sums that any change of one would move."""
    if hasattr(result, "to_dict") and hasattr(result, "verdict"):
        plain = result.to_dict()
        plain.pop("notices", None)
        plain["findings"] = sorted(note.get("kind", "") for note in plain.pop("findings", []))
        return plain
    if hasattr(result, "children"):
        groups = {name: numbers(node.to_dataset()) for name, node in result.children.items()}
        return {"groups": groups, "notices": len(json.loads(result.attrs.get("notices", "[]")))}
    if hasattr(result, "data_vars"):
        return {name: numbers(array) for name, array in result.data_vars.items()}
    if hasattr(result, "values") and hasattr(result, "dims"):
        values = np.asarray(result.values)
        if values.dtype.kind not in "fiub":
            return [str(value) for value in values.ravel()]
        flat = values.astype(float).ravel()
        if flat.size <= 50:
            return flat.tolist()
        weights = np.cos(np.arange(flat.size))
        good = np.isfinite(flat)
        return [flat.size, float(flat[good] @ weights[good]), float(np.abs(flat[good]).sum())]
    return str(result)


def corpus() -> dict[str, Any]:
    """Run every case; a refusal counts as its kind of error."""
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for source in (audits, parts, fits, duel_audits, given_contexts, arenas):
            for name, run in source():
                try:
                    found[name] = numbers(run())
                except bf.BayesfairError as error:
                    found[name] = f"{type(error).__name__}: {error}"
    return json.loads(json.dumps(found, default=str))


def differences(old: Any, new: Any, place: str = "") -> Iterator[str]:
    """Yield where two results differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            if key not in old or key not in new:
                yield f"{place}/{key}: {'lost' if key in old else 'new'}"
            else:
                yield from differences(old[key], new[key], f"{place}/{key}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for i, (a, b) in enumerate(zip(old, new, strict=True)):
            yield from differences(a, b, f"{place}[{i}]")
    elif isinstance(old, float | int) and isinstance(new, float | int):
        if not (old == new or math.isclose(old, new, rel_tol=1e-12, abs_tol=1e-12)):
            if not (math.isnan(old) and math.isnan(new)):
                yield f"{place}: {old!r} became {new!r}"
    elif old != new:
        yield f"{place}: {str(old)[:80]!r} became {str(new)[:80]!r}"


def main() -> int:
    """Write the corpus, or compare with one."""
    task, file = sys.argv[1:]
    now = corpus()
    if task == "write":
        Path(file).write_text(json.dumps(now, indent=1))
        print(f"{len(now)} cases written, {sum(isinstance(v, str) for v in now.values())} refused")
        return 0
    found = list(differences(json.loads(Path(file).read_text()), now))
    print(*found[:60], f"{len(found)} differences in {len(now)} cases", sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
