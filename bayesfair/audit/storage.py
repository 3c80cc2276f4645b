"""Audits as an `xarray.DataTree`, and in a NetCDF file that gives them back whole.

The file is NetCDF-4 and opens with `xarray.open_datatree` and ArviZ. Groups of an audit:
``posterior`` (objective draws), ``series`` and ``arms`` (tables for readers), ``state`` (all that
merging and going on need, see `saved_state`), ``rounds`` (every round, on request). An audit of
several logs holds one such tree per log, ``group_0``, ``group_1``, ... The attribute
``bayesfair_audit`` has the numbers as JSON, ``bayesfair_format`` the version of this layout, and
``digest`` in ``state`` a checksum: numbers that were changed by hand are no audit any more.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.audit.group import AuditGroup
from bayesfair.audit.per_round import KeptRounds, iter_rounds
from bayesfair.audit.result import Audit
from bayesfair.audit.saved_state import IN_POSTERIOR, folded, packed, unpacked
from bayesfair.checks import listed
from bayesfair.errors import DataError, OptionError
from bayesfair.writing import check_target, write_tree

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["FORMAT", "load_audit", "save_audit", "to_tree"]

FORMAT = 4
"""Layout of the file; 1 held numbers only, 2 and 3 not all that checks and verdicts need."""

_COMPRESSED = 1024
"""Arrays from this length on are compressed."""


def to_tree(audit: Audit | AuditGroup) -> xr.DataTree:
    """Return the audit as a tree: objective draws in ``posterior``, and its tables."""
    import xarray as xr

    return xr.DataTree.from_dict(_datasets(audit, "/"))


def _datasets(audit: Audit | AuditGroup, at: str) -> dict[str, Any]:
    """Return path -> dataset of the groups that are meant for readers."""
    import xarray as xr

    numbers = audit.to_dict()
    attrs = {
        "bayesfair_audit": json.dumps(numbers),
        "bayesfair_format": FORMAT,
        "bayesfair": numbers["bayesfair"],
    }
    if isinstance(audit, AuditGroup):
        found = {at: xr.Dataset(attrs=attrs | {"kind": "group", "n_groups": len(audit)})}
        for g, (label, one) in enumerate(audit.audits.items()):
            inner = _datasets(one, f"{at}group_{g}/")
            inner[f"{at}group_{g}/"].attrs["label"] = label
            found |= inner
        return found
    arms = list(audit.summary.arms)
    found = {at: xr.Dataset(attrs=attrs | {"kind": "audit"})}
    if audit.objective is not None:
        draws: dict[str, Any] = {}
        for field, (name, dims) in IN_POSTERIOR.items():
            values = getattr(audit.objective, field)
            if values is not None:
                # independent draws, folded so that diagnostics have chains to compare
                draws[name] = (("chain", "draw", *dims), folded(np.asarray(values))[0])
        chain, draw = next(iter(draws.values()))[1].shape[:2]
        found[f"{at}posterior"] = xr.Dataset(
            draws,
            coords={
                "chain": np.arange(chain),
                "draw": np.arange(draw),  # ArviZ's trace plots need them
                "eps1": list(audit.criterion.grid),
                "arm": arms,
            },
            attrs={"sample_dims": ["chain", "draw"]},
        )
    series = audit.series()
    found[f"{at}series"] = xr.Dataset(
        {"regret": ("round", series["regret"]), "plays": (("round", "arm"), series["plays"])},
        coords={"round": series["round"], "arm": arms},
    )
    table = numbers["arms"]
    found[f"{at}arms"] = xr.Dataset(
        {
            name: ("arm", np.array([np.nan if a[name] is None else a[name] for a in table], float))
            for name in (table[0] if table else {})
            if name != "arm"
        },
        coords={"arm": arms},
    )
    return found


def save_audit(audit: Audit | AuditGroup, path: Any, *, rounds: bool = False) -> None:
    """Write an audit to a NetCDF file; see `Audit.save`.

    Raises
    ------
    OptionError
        If there is no such folder, a label holds a zero byte, or the rounds to keep are not at
        hand.
    """
    import xarray as xr

    path = check_target(path, "path")
    audits = audit.audits if isinstance(audit, AuditGroup) else {"": audit}
    for label in (*audits, *(arm for one in audits.values() for arm in one.summary.arms)):
        if "\0" in label:
            raise OptionError(
                f"cannot save the audit: the label {label!r} holds a zero byte, which NetCDF "
                "cannot keep. Give it another label."
            )
    found = _datasets(audit, "/")
    for g, one in enumerate(audits.values()):
        at = f"/group_{g}/" if isinstance(audit, AuditGroup) else "/"
        text, groups = packed(one)
        for name, variables in groups.items():
            found[f"{at}state/{name}"] = xr.Dataset(variables)
        if rounds:
            found[f"{at}rounds"] = _rounds(one)
        state = _arrays(found, f"{at}state/")
        written = json.dumps(text)
        found[f"{at}state"] = xr.Dataset(
            attrs={
                "audit": written,
                "digest": _digest(
                    written,
                    state | _arrays(found, f"{at}posterior") | _arrays(found, f"{at}rounds"),
                ),
            }
        )
    encoding = {
        at: {
            str(name): {"_FillValue": None}
            | ({"zlib": True, "complevel": 1} if values.size >= _COMPRESSED else {})
            for name, values in data.variables.items()
            if values.dtype.kind in "fiub"
        }
        for at, data in found.items()
    }
    write_tree(xr.DataTree.from_dict(found), path, {a: e for a, e in encoding.items() if e})


def _rounds(audit: Audit) -> xr.Dataset:
    """Return every round; worst arms by their position, -1 = no pair."""
    import xarray as xr

    parts = list(iter_rounds(audit))
    whole = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    best = whole.pop("best_arm_probability")
    places = whole.pop("round")
    data: dict[str, Any] = {name: ("round", values) for name, values in whole.items()}
    data["best_arm_probability"] = (("round", "arm"), best)
    return xr.Dataset(data, coords={"round": places, "arm": list(audit.summary.arms)})


def _arrays(found: Mapping[str, Any], at: str) -> dict[str, NDArray[Any]]:
    """Return path -> numbers of all variables in the groups from a path on."""
    return {
        f"{path.strip('/').split('/')[-1]}/{name}": np.asarray(values)
        for path, data in found.items()
        if path.startswith(at)
        for name, values in data.variables.items()
        if values.dtype.kind in "fiub"
    }


def _digest(text: str, arrays: Mapping[str, NDArray[Any]]) -> str:
    """Return a checksum of the text and of all arrays with their names, types and shapes."""
    found = hashlib.blake2b(text.encode(), digest_size=16)
    for name in sorted(arrays):
        values = arrays[name]
        kind = f"{values.dtype.kind}{values.dtype.itemsize}"
        found.update(f"\n{name} {kind} {values.shape}\n".encode())
        found.update(np.ascontiguousarray(values, values.dtype.newbyteorder("<")).tobytes())
    return found.hexdigest()


def load_audit(path: Any) -> Audit | AuditGroup:
    """Read an audit that `Audit.save` or `AuditGroup.save` wrote.

    What it gives prints, merges and goes on as the audit that was saved: ``prior=`` of tomorrow's
    audit, `merge`, `Audit.resume`. Its log is not in the file: `Audit.rounds` works if it was saved
    with ``rounds=True``, `Audit.prior_sensitivity` does not.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    Audit or AuditGroup

    Raises
    ------
    DataError
        If the file is missing, is no NetCDF file, holds no audit, comes from an older or newer
        layout, lacks a part, or was changed since it was saved.
    OptionError
        If `path` is no path.
    """
    import xarray as xr

    if not isinstance(path, (str, os.PathLike)):
        raise OptionError(f"cannot load an audit from {path!r}: give the path of a file.")
    path = Path(path)
    if not path.is_file():
        raise DataError(
            f"no file {str(path)!r}; write one with Audit.save or bayesfair audit --save."
        )
    try:
        with xr.open_datatree(path, engine="h5netcdf", decode_times=False) as opened:
            tree = opened.load()
    except (OSError, ValueError, KeyError, RuntimeError, AttributeError, TypeError) as error:
        raise DataError(
            f"{path.name} is not a NetCDF-4 file that can be read, or only a part of one: "
            f"{str(error).splitlines()[0] if str(error) else type(error).__name__}."
        ) from None
    _check_format(tree, path.name)
    if tree.attrs.get("kind") != "group":
        return _from_node(tree, path.name, "")
    audits = {}
    for g in range(int(tree.attrs.get("n_groups", 0))):
        if f"group_{g}" not in tree.children:
            raise _lacking(path.name, f"the group 'group_{g}'")
        node = tree.children[f"group_{g}"]
        audits[str(node.attrs.get("label", g))] = _from_node(node, path.name, f"group_{g}/")
    if not audits:
        raise _lacking(path.name, "the audits of its logs")
    return AuditGroup(audits)


def _lacking(name: str, what: str) -> DataError:
    return DataError(
        f"{name} lacks {what}: the file was cut or changed. Audit the log again and save it with "
        "Audit.save."
    )


def _check_format(tree: xr.DataTree, name: str) -> None:
    """Refuse other files, and audits in another layout."""
    attrs = tree.attrs
    if "bayesfair_audit" not in attrs:
        there = listed(list(tree.children)) if tree.children else "no groups"
        raise DataError(
            f"{name} is a NetCDF file but holds no bayesfair audit (it has {there}); Audit.save "
            "writes one."
        )
    layout, made = int(attrs.get("bayesfair_format", 1)), attrs.get("bayesfair", "?")
    if layout < FORMAT:
        raise DataError(
            f"{name} was written by bayesfair {made} in format {layout}, which lacks what this "
            f"version goes on from; it reads format {FORMAT}. Audit the log again and save it (the "
            "old numbers are JSON in the file's attribute bayesfair_audit).",
            kind="old_format",
            value=layout,
            source=name,
        )
    if layout > FORMAT:
        raise DataError(
            f"{name} was written by bayesfair {made} in format {layout}, newer than format "
            f"{FORMAT} that this version reads. Upgrade bayesfair.",
            kind="new_format",
            value=layout,
            source=name,
        )


def _from_node(tree: xr.DataTree, name: str, at: str) -> Audit:
    """Return the audit of one node, checked."""
    if "state" not in tree.children:
        raise _lacking(name, f"the group '{at}state'")
    state = tree["state"]
    for attribute in ("audit", "digest"):
        if attribute not in state.attrs:
            raise _lacking(name, f"the attribute {attribute!r} of the group '{at}state'")
    text = json.loads(state.attrs["audit"])
    for child in ("posterior", "series", "arms", "rounds"):
        if child in tree.children and "arm" in tree[child].coords:
            seen = tree[child].coords["arm"].values.tolist()
            if seen != text["arms"]:
                raise DataError(
                    f"{name} was changed: its group '{at}{child}' has arms {listed(seen)}, the "
                    f"audit is of {listed(text['arms'])}. Audit the log again with these labels."
                )
    groups = {child: _values(node) for child, node in state.children.items()}
    posterior = _values(tree["posterior"]) if "posterior" in tree.children else {}
    rounds = _values(tree["rounds"]) if "rounds" in tree.children else None
    try:
        audit = unpacked(text, groups, posterior)
    except KeyError as error:
        raise _lacking(name, f"the group or variable {error.args[0]!r} of an audit") from None
    except (IndexError, TypeError, ValueError) as error:
        raise _lacking(name, f"numbers of the right shape ({error})") from None
    seen = {p: node.to_dataset(inherit=False) for p, node in _nodes(tree)}
    if _digest(state.attrs["audit"], _arrays(seen, "")) != state.attrs["digest"]:
        raise DataError(
            f"{name}: the numbers in '{at}state', '{at}posterior' or '{at}rounds' are not those "
            "that were saved. An audit cannot go on from changed numbers; audit the log again."
        )
    if rounds is None:
        return audit
    order = ("round", "row", "smallest_eps2", "worst_arm", "worst_arm_other", "fairness_regret")
    columns = {key: rounds[key] for key in (*order, "best_arm_probability")}
    return replace(audit, data=KeptRounds(columns))


def _nodes(tree: xr.DataTree) -> list[tuple[str, Any]]:
    """Return path -> node of all groups under the digest."""
    found = [(f"state/{name}", node) for name, node in tree["state"].children.items()]
    return found + [(n, tree[n]) for n in ("posterior", "rounds") if n in tree.children]


def _values(node: Any) -> dict[str, NDArray[Any]]:
    return {str(name): np.asarray(v.values) for name, v in node.to_dataset().variables.items()}
