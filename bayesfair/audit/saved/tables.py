"""An audit as tables for readers: `xarray` datasets by their place in a tree.

One log: ``posterior`` (objective draws), ``series``, ``arms``. Several logs as a tree in memory:
one such tree per log, ``group_0``, ``group_1``, ... Several logs in a file, where a thousand of
them must not be a thousand groups: ``posterior`` with a dimension ``group``, and ``arms`` with one
row per log and arm; logs with another number of draws, or without some of the quantities, stand in
``posterior_1``, ...
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesfair.audit.group import GroupRecord
from bayesfair.audit.numbers import arm_numbers, audit_numbers
from bayesfair.audit.record import Record
from bayesfair.audit.saved.file import FORMAT
from bayesfair.audit.saved.schema import IN_POSTERIOR, folded

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["file_tables", "shared_draws", "split_draws", "to_tree"]


def to_tree(audit: Record | GroupRecord) -> xr.DataTree:
    """Return the audit as a tree: objective draws in ``posterior``, and its tables."""
    import xarray as xr

    return xr.DataTree.from_dict(_tree_tables(audit, "/"))


def _tree_tables(audit: Record | GroupRecord, at: str) -> dict[str, Any]:
    """Return path -> dataset of the tables, one node per log."""
    import xarray as xr

    numbers = audit.to_dict() if isinstance(audit, GroupRecord) else audit_numbers(audit)
    if isinstance(audit, GroupRecord):
        found = {at: xr.Dataset(attrs=_attrs(numbers, "group") | {"n_groups": len(audit)})}
        for g, (label, one) in enumerate(audit.audits.items()):
            inner = _tree_tables(one, f"{at}group_{g}/")
            inner[f"{at}group_{g}/"].attrs["label"] = label
            found |= inner
        return found
    arms = list(audit.summary.arms)
    found = {at: xr.Dataset(attrs=_attrs(numbers, "audit"))}
    draws = _draws_of(audit)
    if draws is not None:
        dims = dict(IN_POSTERIOR.values())
        found[f"{at}posterior"] = xr.Dataset(
            {name: (("chain", "draw", *dims[name]), x) for name, x in draws.values.items()},
            coords=_numbered(draws) | {"arm": arms},
            attrs={"sample_dims": ["chain", "draw"]},
        )
    series = audit.series()
    found[f"{at}series"] = xr.Dataset(
        {"regret": ("round", series["regret"]), "plays": (("round", "arm"), series["plays"])},
        coords={"round": series["round"], "arm": arms},
    )
    columns = _arm_columns([numbers["arms"]])
    found[f"{at}arms"] = xr.Dataset(
        {name: ("arm", values) for name, values in columns.items()}, coords={"arm": arms}
    )
    return found


def file_tables(audit: Record | GroupRecord) -> dict[str, Any]:
    """Return path -> dataset of the tables in a file, few whatever the number of logs."""
    import xarray as xr

    if isinstance(audit, Record):
        return _tree_tables(audit, "/")
    numbers = audit.to_dict()
    labels = list(audit.audits)
    found = {"/": xr.Dataset(attrs=_attrs(numbers, "group") | {"n_groups": len(audit)})}
    for name, places in shared_draws(list(audit.audits.values())).items():
        found[f"/{name}"] = _together(audit, places)
    names = _arm_names(audit.audits.items())
    whole = numbers["groups"]  # of very many groups only short records
    tables = [whole[label].get("arms") or arm_numbers(one) for label, one in audit.audits.items()]
    found["/arms"] = xr.Dataset(
        {name: ("group_arm", values) for name, values in _arm_columns(tables).items()},
        coords=_group_arms(names),
    )
    found["/"].attrs["labels"] = json.dumps(labels)
    return found


class _Draws(NamedTuple):
    """Variables of ``posterior``, (chain, draw, ...) each, and the eps1 that they are for."""

    values: dict[str, NDArray[Any]]
    eps1: tuple[float, ...]

    @property
    def sort(self) -> tuple[Any, ...]:
        """What logs have to share to stand in one table."""
        return self.shape, tuple(self.values), self.eps1

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of chains and draws."""
        chain, draw = next(iter(self.values.values())).shape[:2]
        return chain, draw


def _draws_of(audit: Record) -> _Draws | None:
    """Return the objective draws, folded so that diagnostics have chains to compare."""
    if audit.objective is None:
        return None
    found = {}
    for field, (name, _) in IN_POSTERIOR.items():
        values = getattr(audit.objective, field)
        if values is not None:
            found[name] = folded(np.asarray(values))[0]
    return _Draws(found, audit.criterion.grid)


def shared_draws(audits: Sequence[Record]) -> dict[str, list[int]]:
    """Return name of a table -> positions of the logs whose draws stand in it."""
    sorts: dict[Any, list[int]] = {}
    for g, audit in enumerate(audits):
        draws = _draws_of(audit)
        if draws is not None:
            sorts.setdefault(draws.sort, []).append(g)
    largest = sorted(sorts.values(), key=len, reverse=True)
    return {f"posterior_{i}" if i else "posterior": places for i, places in enumerate(largest)}


def split_draws(
    whole: Mapping[str, NDArray[Any]], audits: Sequence[Record]
) -> Iterator[dict[str, NDArray[Any]]]:
    """Yield the draws of each log, (chain, draw, ...), from the table that they share."""
    dims, done = dict(IN_POSTERIOR.values()), 0
    for g, audit in enumerate(audits):
        k = len(audit.summary.arms)
        yield {
            name: np.moveaxis(values[done : done + k], 0, -1)
            if dims[name] == ("arm",)
            else values[g]
            for name, values in whole.items()
        }
        done += k


def _arm_names(audits: Any) -> list[tuple[str, str]]:
    """Return (log, arm) of every arm of every log."""
    return [(label, arm) for label, audit in audits for arm in audit.summary.arms]


def _together(audit: GroupRecord, places: list[int]) -> Any:
    """Return the draws of several logs of one sort."""
    import xarray as xr

    every = list(audit.audits.items())
    chosen = [every[g] for g in places]
    draws = [d for d in (_draws_of(one) for _, one in chosen) if d is not None]
    variables: dict[str, Any] = {}
    for name, dims in IN_POSTERIOR.values():
        if name not in draws[0].values:
            continue
        parts = [d.values[name] for d in draws]
        if dims == ("arm",):
            columns = np.concatenate([np.moveaxis(p, -1, 0) for p in parts])
            variables[name] = (("group_arm", "chain", "draw"), columns)
        else:
            variables[name] = (("group", "chain", "draw", *dims), np.stack(parts))
    return xr.Dataset(
        variables,
        coords=_numbered(draws[0])
        # ArviZ's tables allow no coordinates beside those that index
        | {
            "group": [label for label, _ in chosen],
            "group_arm": _group_arms(_arm_names(chosen))["group_arm"],
        },
        attrs={"sample_dims": ["chain", "draw"]},
    )


def _group_arms(names: list[tuple[str, str]]) -> dict[str, Any]:
    return {
        "group_arm": [f"{label}: {arm}" for label, arm in names],
        "of_group": ("group_arm", [label for label, _ in names]),
        "arm": ("group_arm", [arm for _, arm in names]),
    }


def _numbered(draws: _Draws) -> dict[str, Any]:
    chain, draw = draws.shape  # ArviZ's trace plots need them numbered
    return {"chain": np.arange(chain), "draw": np.arange(draw), "eps1": list(draws.eps1)}


def _attrs(numbers: dict[str, Any], kind: str) -> dict[str, Any]:
    return {
        "bayesfair_audit": json.dumps(numbers),
        "bayesfair_format": FORMAT,
        "bayesfair": numbers["bayesfair"],
        "kind": kind,
    }


def _arm_columns(tables: list[list[dict[str, Any]]]) -> dict[str, NDArray[np.float64]]:
    """Return the numbers in the tables of arms, one below the other; NaN = none."""
    rows = [row for table in tables for row in table]
    names = dict.fromkeys(name for row in rows for name in row if name != "arm")
    return {
        name: np.array([np.nan if row.get(name) is None else row[name] for row in rows], float)
        for name in names
    }
