"""Posteriors as labelled trees in ArviZ 1.x form, built with xarray alone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.notices import notices_to_json
from bayesfair.errors import OptionError

if TYPE_CHECKING:
    import xarray as xr

__all__ = [
    "N_CHAINS",
    "flat_reads",
    "in_order_of",
    "make_tree",
    "posterior_dataset",
    "seed_label",
    "storable_groups",
]

N_CHAINS = 4  # R-hat needs more than one; exact draws are folded into as many


def seed_label(seed: Any) -> int | str:
    """Return what is recorded of a seed."""
    return int(seed) if isinstance(seed, (int, np.integer)) else "generator"


def posterior_dataset(
    draws: Mapping[str, NDArray[np.float64]],
    dims: Mapping[str, Sequence[str]],
    coords: Mapping[str, Any],
) -> xr.Dataset:
    """Return draws ``(chain, draw, *dims)`` as a posterior group."""
    import xarray as xr

    first = next(iter(draws.values()))
    every = {"chain": np.arange(first.shape[0]), "draw": np.arange(first.shape[1]), **coords}
    variables = {name: (("chain", "draw", *dims[name]), value) for name, value in draws.items()}
    return xr.Dataset(variables, coords=every, attrs={"sample_dims": ["chain", "draw"]})


def storable_groups(tree: xr.DataTree) -> dict[str, xr.Dataset]:
    """Return the groups of a sampler's tree as files hold them: no objects, and labels as text."""
    groups = {}
    for name, child in tree.children.items():
        group = child.to_dataset()
        text = {c: group[c].values.astype(str) for c in group.coords if group[c].dtype.kind == "O"}
        plain = [v for v in group.data_vars if group[v].dtype.kind != "O"]
        groups[str(name)] = group.assign_coords(text)[plain]
    return groups


def make_tree(groups: Mapping[str, Any], attrs: Mapping[str, Any]) -> xr.DataTree:
    """Return a tree of the groups, with attributes that any storage format can hold."""
    import xarray as xr

    import bayesfair

    tree = xr.DataTree.from_dict({f"/{name}": group for name, group in groups.items()})
    tree.attrs.update({"bayesfair": vars(bayesfair)["__version__"]})
    for name, value in attrs.items():
        if name == "notices":
            tree.attrs[name] = notices_to_json(value)
            continue
        plain = isinstance(value, (str, int, float)) and not isinstance(value, bool)
        tree.attrs[name] = value if plain else json.dumps(value, default=_plain)
    return tree


def in_order_of(tree: xr.DataTree, labels: Sequence[str], *dims: str) -> xr.DataTree:
    """Return a tree with the labels of some dimensions in the order of `labels`."""
    import xarray as xr

    groups = {str(name): group.to_dataset() for name, group in tree.children.items()}
    for name, group in groups.items():
        at = {}
        for dim in set(dims) & set(group.dims):
            place = {label: i for i, label in enumerate(group[dim].values.tolist())}
            at[dim] = [place[label] for label in labels]
        groups[name] = group.isel(at)
    new = xr.DataTree.from_dict({f"/{name}": group for name, group in groups.items()})
    new.attrs.update(tree.attrs)
    return new


def _plain(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    return str(value)


def flat_reads(tree: xr.DataTree) -> dict[str, NDArray[np.float64]]:
    """Return the draws of the variables to read, chains joined: ``(draw, ..., arm[, level])``.

    Raises
    ------
    OptionError
        If the tree was not made by `fit` on a history.
    """
    attrs = tree.attrs
    if "reads" not in attrs or "posterior" not in tree.children:
        raise OptionError(
            "this tree has no posterior group with attribute 'reads'; use one that "
            "bayesfair.fit(history, ...) returned."
        )
    posterior = tree["posterior"].to_dataset()
    flat = {}
    for name in str(attrs["reads"]).split(","):
        value = posterior[name]
        rest = [dim for dim in value.dims if dim not in ("chain", "draw")]
        array = value.transpose("chain", "draw", *rest).values
        flat[name] = np.asarray(array.reshape(-1, *array.shape[2:]), dtype=np.float64)
    return flat
