"""Fits changed in a file or by hand are refused, never a crash of the code that reads them."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import bayesfair as bf
from bayesfair import examples
from bayesfair.base.read_fits import fault_of
from bayesfair.errors import BayesfairError
from bayesfair.inference import rewards_from_posterior
from bayesfair.ranking import fit_summary

GAMES = bf.Comparisons.from_duels(
    ["a", "b", "c", "a", "c", "b"], ["b", "c", "a", "c", "b", "a"],
    ["left", "left", "left", "left", "right", "right"], first="left",
)  # fmt: skip
LOG = bf.read_history(examples.path("ecmo"))

OF_GAMES = {
    "rank_table": bf.rank_table,
    "win_probability": bf.win_probability,
    "rank_probability": bf.rank_probability,
    "quasi_standard_errors": bf.quasi_standard_errors,
    "fit_summary": lambda tree: fit_summary(tree, GAMES),
    "influence": lambda tree: bf.influence(tree, GAMES),
    "pl_consistency": lambda tree: bf.pl_consistency(tree, GAMES, seed=1, replicates=10),
    "predicted_wins": lambda tree: bf.predicted_wins(tree, GAMES, seed=1, replicates=10),
    "loo": lambda tree: bf.loo(tree, GAMES),
}
OF_LOGS = {
    "rewards": rewards_from_posterior,
    "prior": bf.prior_sensitivity,
    "loo": lambda tree: bf.loo(tree, LOG),
    "compare": lambda tree: bf.compare({"a": tree, "b": tree}),
    "rank_table": bf.rank_table,
}


def _changed(tree):
    """Yield every single change of an attribute, a group or a variable, with its name."""
    for name in tree.attrs:
        for what, value in (("gone", None), ("text", "x"), ("list", [1, 2])):
            new = tree.copy()
            new.attrs = {**tree.attrs, name: value}
            if what == "gone":
                del new.attrs[name]
            yield f"attribute {name} {what}", new
    groups = {f"/{name}": node.to_dataset() for name, node in tree.children.items()}
    for group, data in groups.items():
        others = {name: other for name, other in groups.items() if name != group}
        yield f"{group} gone", _made(tree, others)
        for name in data.data_vars:
            yield f"{group}/{name} gone", _made(tree, others | {group: data.drop_vars(name)})
            text = data.assign({name: data[name].astype(str)})
            yield f"{group}/{name} text", _made(tree, others | {group: text})


def _made(tree, groups):
    new = xr.DataTree.from_dict(groups)
    new.attrs = dict(tree.attrs)
    return new


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["posterior", "mode", "arms"])
def test_any_single_change_ends_in_our_own_error_or_a_result(kind):
    if kind == "arms":
        tree, functions = bf.fit(LOG, seed=1, draws=40), OF_LOGS
    else:
        asked = {"draws": 40} if kind == "posterior" else {"prior_sd": np.inf}
        tree, functions = bf.fit(GAMES, seed=1, **asked), OF_GAMES
    refused = 0
    for change, new in _changed(tree):
        for name, function in functions.items():
            try:
                function(new)
            except BayesfairError as error:
                refused += bool(str(error))
            except Exception as error:
                raise AssertionError(f"{name}, {change}: {error!r}") from error
    assert refused > 50


def test_what_was_changed_is_named():
    tree = bf.fit(GAMES, seed=1, draws=40)
    tree.attrs["n_comparisons"] = "many"
    with pytest.raises(BayesfairError, match=r"attribute 'n_comparisons' is 'many', no number"):
        fit_summary(tree, GAMES)
    del tree.attrs["n_comparisons"], tree.attrs["model"]
    with pytest.raises(BayesfairError, match=r"bayesfair\.fit"):
        fit_summary(tree, GAMES)


def test_errors_of_a_whole_fit_stay_what_they_are():
    assert fault_of(bf.fit(GAMES, seed=1, draws=40), TypeError("from elsewhere")) is None
