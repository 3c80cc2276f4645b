"""The audit as an `xarray.DataTree`, and in a NetCDF file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesfair.errors import DataError

if TYPE_CHECKING:
    import xarray as xr

    from bayesfair.audit.result import Audit

__all__ = ["LoadedAudit", "load_audit", "save_audit", "to_tree"]

_CHAINS = 4


def to_tree(audit: Audit) -> xr.DataTree:
    """Return the audit as a tree: objective draws in ``posterior``, and its tables."""
    import xarray as xr

    numbers = audit.to_dict()
    arms = list(audit.summary.arms)
    groups: dict[str, Any] = {}
    if audit.objective is not None:
        draws: dict[str, Any] = {}
        objective = audit.objective
        for name, values, dims in (
            ("smallest_eps2", objective.smallest_eps2, ("eps1",)),
            ("regret_per_round", objective.regret, ()),
            ("best_arm_probability", objective.p_best, ("arm",)),
        ):
            if values is None:
                continue
            # independent draws, folded into chains so that diagnostics have something to compare
            n = len(values) // _CHAINS * _CHAINS if len(values) >= _CHAINS else len(values)
            chains = _CHAINS if len(values) >= _CHAINS else 1
            draws[name] = (
                ("chain", "draw", *dims),
                np.asarray(values)[:n].reshape(chains, n // chains, *values.shape[1:]),
            )
        groups["posterior"] = xr.Dataset(
            draws,
            coords={"eps1": list(audit.criterion.grid), "arm": arms},
            attrs={"sample_dims": ["chain", "draw"]},
        )
    series = audit.series()
    groups["series"] = xr.Dataset(
        {
            "regret": ("round", series["regret"]),
            "plays": (("round", "arm"), series["plays"]),
        },
        coords={"round": series["round"], "arm": arms},
    )
    table = numbers["arms"]
    groups["arms"] = xr.Dataset(
        {
            name: ("arm", np.array([np.nan if a[name] is None else a[name] for a in table], float))
            for name in table[0]
            if name != "arm"
        }
        if table
        else {},
        coords={"arm": arms},
    )
    tree = xr.DataTree.from_dict(groups)
    tree.attrs = {"bayesfair_audit": json.dumps(numbers), "bayesfair": numbers["bayesfair"]}
    return tree


def save_audit(audit: Audit, path: Any) -> None:
    """Write `to_tree` to a NetCDF file (h5netcdf)."""
    to_tree(audit).to_netcdf(Path(path), engine="h5netcdf")


class LoadedAudit:
    """An audit read back from a file: its numbers, text and tree.

    Attributes
    ----------
    tree : xarray.DataTree
        As saved.
    """

    def __init__(self, tree: xr.DataTree) -> None:
        self.tree = tree
        self._numbers: dict[str, Any] = json.loads(tree.attrs["bayesfair_audit"])

    @property
    def verdict(self) -> str:
        """The worst of both verdicts."""
        return str(self._numbers["verdict"])

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as they were saved."""
        return self._numbers

    def series(self) -> dict[str, Any]:
        """Return cumulative regret and plays, thinned for plotting; see `Audit.series`."""
        kept = self.tree["series"]
        return {name: np.asarray(kept[name].values) for name in ("round", "regret", "plays")}

    def __str__(self) -> str:
        from bayesfair.audit.text import render

        return render(self._numbers)

    def __repr__(self) -> str:
        return f"LoadedAudit({self._numbers['log']['source']}: {self.verdict})"


def load_audit(path: Any) -> LoadedAudit:
    """Read an audit that `Audit.save` wrote.

    Raises
    ------
    DataError
        If the file is missing or holds no audit.
    """
    import xarray as xr

    path = Path(path)
    if not path.exists():
        raise DataError(f"no file {str(path)!r}.")
    try:
        tree = xr.open_datatree(path, engine="h5netcdf").load()
    except (OSError, ValueError) as error:
        raise DataError(f"{path.name} is not a NetCDF file that can be read: {error}.") from None
    if "bayesfair_audit" not in tree.attrs:
        raise DataError(f"{path.name} holds no bayesfair audit; write one with Audit.save.")
    tree.close()
    return LoadedAudit(tree)
