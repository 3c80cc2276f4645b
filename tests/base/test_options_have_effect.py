"""Every option of the public functions changes what comes out, or is refused by its name.

The options are found in the signatures, so that a new one without a value to try fails here. The
readers have tables of their own (tests/readers/test_*_options_have_effect.py).
"""

import inspect
import warnings

import numpy as np
import pytest
import xarray as xr

import bayesfair as bf
from bayesfair import ranking
from bayesfair.inference.comparisons import fit_comparisons

RNG = np.random.default_rng(5)
RULE = np.array([[0.9, 0.1], [0.7, 0.3]] * 12)
ARM = (RNG.random(24) > RULE[:, 0]).astype(int)
REWARD = RNG.integers(0, 2, 24)


def log(reward=REWARD, **rule):
    return bf.History(["ab"[i] for i in ARM], reward, arms=("a", "b"), **rule)


PAIRS = [tuple("abc"[i] for i in RNG.permutation(3)[:2]) for _ in range(24)]
LEFT, RIGHT = zip(*PAIRS, strict=True)
WON = RNG.choice(["left", "right"], 24)
DUELS = bf.Comparisons.from_duels(LEFT, RIGHT, WON, keep_rows=True)
TIED = bf.Comparisons.from_duels(LEFT, RIGHT, ["tie", *WON[1:]], first="left", keep_rows=True)
BALLOTS = bf.Comparisons.from_rankings([["a", "b", "c"], ["c", "a", "b"], ["b", "c", "a"]])
LAW = np.array([0.5, 0.3, 0.2])
EVEN = (1 - np.eye(3)) / 6
UNEVEN = EVEN * [[1.5], [0.75], [0.75]]
POSTERIOR = bf.fit(TIED, seed=1, draws=40)
FITTED = bf.fit(log(), seed=9, draws=40)
#: function -> kind of data -> arguments, and options that are always given
KINDS = {
    "audit": {
        "full": ([log(selection_probability=RULE)], {"seed": 1, "draws": 40}),
        "chosen": ([log(propensity=RULE[np.arange(24), ARM])], {"seed": 1, "draws": 40}),
        "none": ([log()], {"seed": 1, "draws": 40}),
        "ratings": ([log(REWARD + 3, selection_probability=RULE)], {"seed": 1, "draws": 40}),
    },
    "fit": {
        "rewards": ([log()], {"seed": 1, "draws": 40}),
        "duels": ([DUELS], {"seed": 1, "draws": 40}),
        "ties": ([TIED], {"seed": 1, "draws": 40}),
        "ballots": ([BALLOTS], {"seed": 1, "draws": 40}),
        "mle": ([DUELS], {"seed": 1, "prior_sd": np.inf}),
    },
    "audit_comparisons": {
        "law": ([DUELS], {"seed": 1, "draws": 40, "selection_probability": LAW}),
        "pairs": ([DUELS], {"seed": 1, "draws": 40, "pair_probability": EVEN}),
        "windows": ([DUELS], {"seed": 1, "draws": 40}),
    },
    "rank_table": {"fit": ([POSTERIOR], {})},
    "win_probability": {"fit": ([POSTERIOR], {})},
    "fit_summary": {"fit": ([POSTERIOR, TIED], {})},
    "pl_consistency": {"fit": ([POSTERIOR, TIED], {"seed": 1, "replicates": 20})},
    "predicted_wins": {"fit": ([POSTERIOR, TIED], {"seed": 1, "replicates": 20})},
}
TRY = {
    "eps1": 0.0, "eps2": 0.7, "delta": 0.3, "divergence": "hellinger",
    "reward_divergence": "hellinger", "family": "poisson", "prior": {"a": (5, 5)},
    "support": [0, 1, 2, 3, 4, 5], "truth": bf.rewards.Bernoulli([0.6, 0.5], arms=("a", "b")),
    "objective": False, "tolerance": 0.5, "draws": 60, "seed": 7, "from_round": 8,
    "judge": "subjective", "arm_groups": {"a": "x", "b": "y"},
    "model": {"audit": "bernoulli_independent", "ratings": "finite_independent",
              "fit": "thurstone", "": "davidson"},
    # arms are sampled in tests/inference/test_nuts_ways.py, where the graph is compiled anyway
    "method": {"rewards": "laplace", "": "nuts"},
    "prior_sd": 0.1, "order_effect": False, "order_sd": 0.1, "tie_sd": 0.1,
    "coefficient_sd": 0.1, "ties": "half", "reference": "a", "slot": "mean",
    "pair_probability": UNEVEN, "selection_probability": LAW[[2, 0, 1]],
    "propensity": np.full(24, 0.4), "offered": np.ones((24, 3), bool), "window": 7,
    "worth": {"a": 3, "b": 2, "c": 1}, "fit": {"audit": FITTED, "": POSTERIOR}, "anchor": "b",
    "tier_probability": 0.51,
    "first": "item", "replicates": 30, "model_options": {"n_bins": 2}, "sampler": {"chains": 2},
    "context_model": "cells", "client": "tcp://nowhere", "rule": "estimated", "rule_window": 6,
    "propensity_draws": 50, "across": "contexts",
}  # fmt: skip
#: (function, option) or with the kind: it works on how, not on what, or there is nothing to do.
MAY_AGREE = {
    **{(name, "progress"): "tried in tests/base/test_progress.py" for name in KINDS},
    ("audit", "beliefs_model"): "it samples; tried in tests/audit/test_audit_models.py",
    ("audit", "partial"): "where unfinished work is kept; tried in tests of interrupted audits",
    ("fit", "ties", "duels"): "there are no ties",
    ("fit", "ties", "mle"): "there are no ties",
    ("fit", "cores"): "threads: the draws do not depend on it",
    ("fit", "allow_unconverged"): "a permission, and these draws converge",
    ("audit_comparisons", "offered", "law"): "all items are on offer",
    ("audit_comparisons", "offered", "pairs"): "all items are on offer",
    ("audit_comparisons", "offered", "windows"): "all items are on offer",
    ("fit", "order_effect", "duels"): "nobody knows who was first",
    ("fit", "order_effect", "ballots"): "rankings have no order effect",
    ("fit", "order_effect", "mle"): "nobody knows who was first",
}


OF_MODELS = ("order_effect", "order_sd", "tie_sd")


def function_of(name):
    return getattr(bf if name in bf.__all__ else ranking, name)


def options_of(name):
    parameters = dict(inspect.signature(function_of(name)).parameters)
    if name == "fit":
        parameters |= inspect.signature(fit_comparisons).parameters
        parameters |= dict.fromkeys(OF_MODELS, parameters["seed"])
        del parameters["model_options"]  # through which those go
    return [n for n, p in parameters.items() if p.kind is p.KEYWORD_ONLY]


CASES = [
    (name, kind, option) for name, kinds in KINDS.items() for kind in kinds
    for option in options_of(name) if (name, option) not in MAY_AGREE
]  # fmt: skip


def seen(result):
    """Everything that a result says, as text."""
    if hasattr(result, "to_dict") and not isinstance(result, (xr.Dataset, xr.DataTree)):
        return repr(result.to_dict())
    if isinstance(result, xr.DataTree):
        found = {path: node.to_dataset().to_dict() for path, node in result.subtree_with_keys}
        return repr((result.attrs, found))
    return repr(result.to_dict() if isinstance(result, xr.Dataset) else result)


def outcome(name, given, options):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return "result", seen(function_of(name)(*given, **options))
    except bf.BayesfairError as error:
        return "refused", str(error)


@pytest.fixture(scope="module")
def before():
    """What each kind of data gives without the option, computed once."""
    return {}


@pytest.mark.parametrize(("name", "kind", "option"), CASES)
def test_an_option_changes_what_comes_out_or_is_refused(name, kind, option, before):
    assert option in TRY, f"{option}: give TRY a value, and bayesfair.base.options where it acts"
    given, base = KINDS[name][kind]
    if (name, kind) not in before:
        before[name, kind] = outcome(name, given, base)
        assert before[name, kind][0] == "result", before[name, kind]
    value = TRY[option]
    if option in ("model", "fit", "method"):
        value = value.get(kind, value.get(name, value.get("")))
    if option == "truth":  # known rewards are not drawn
        base = {n: v for n, v in base.items() if n not in ("draws", "seed")}
    if (name, option) == ("audit", "fit"):  # it has its own draws
        base = {n: v for n, v in base.items() if n != "draws"}
    more = {"model_options": {option: value}} if option in OF_MODELS else {option: value}
    found = outcome(name, given, base | more)
    if found[0] == "refused":
        assert option in found[1] or repr(value) in found[1], found
    elif (name, option, kind) not in MAY_AGREE:
        assert found != before[name, kind], f"{option}={value!r} changed nothing"
