"""Audits in a NetCDF-4 file that gives them back whole.

The file opens with `xarray.open_datatree` and ArviZ. Its groups: the tables of `saved_tables`
(``posterior``, ``arms``, of one log also ``series``), ``rounds`` (every round, on request) and
``state`` (all that merging and going on need, see `saved_schema`): ``text`` is JSON as UTF-8, with
the shapes of the arrays in ``float64``, ``int64``, ..., one after the other. The attribute
``bayesfair_audit`` of the file has the numbers as JSON, ``bayesfair_format`` the layout. The file
is sealed (`saved_file`): changed by hand it is no audit any more.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.audit.group import GroupRecord
from bayesfair.audit.log.per_round import KeptRounds, iter_rounds
from bayesfair.audit.record import Record
from bayesfair.audit.saved.file import Opened, Origin, lacking, opened, sealed
from bayesfair.audit.saved.kinds import BUFFERS, Malformed
from bayesfair.audit.saved.schema import IN_POSTERIOR, packed, unpacked, with_draws
from bayesfair.audit.saved.tables import file_tables, shared_draws, split_draws
from bayesfair.base.writing import check_target, held, replacing, tree_bytes
from bayesfair.errors import BayesfairError, OptionError

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["read_audit", "save_audit"]

_COMPRESSED = 1024
"""Arrays from this length on are compressed."""

_FAST = 1 << 21
"""Larger arrays are written as they are: draws of many groups shrink little, in thrice the time."""

_CHUNK = 1 << 17
"""Numbers that are compressed together."""

_COLUMNS = (
    "round", "row", "smallest_eps2", "worst_arm", "worst_arm_other", "fairness_regret",
)  # fmt: skip


def save_audit(audit: Record | GroupRecord, path: Any, *, rounds: bool = False) -> None:
    """Write an audit to a NetCDF file; see `Audit.save`.

    Raises
    ------
    OptionError
        If there is no such folder, a label cannot be kept, or the rounds to keep are not at hand.
    DataError
        If the audit goes on from this very file, and that was replaced since it was read.
    """
    import xarray as xr

    path = check_target(path, "path")
    several = isinstance(audit, GroupRecord)
    audits = audit.audits if isinstance(audit, GroupRecord) else {"": audit}
    _check_labels(audits)
    every = list(audits.values())
    kept = [_rounds(one) for one in every] if rounds else []
    tables = file_tables(audit)
    if kept:
        tables["/rounds"] = _rounds_table(list(audits.items()), kept, several=several)
    texts, buffers = packed(every, [len(k["round"]) for k in kept] or [None] * len(every))
    tables_of = {g: name for name, places in shared_draws(every).items() for g in places}
    text = json.dumps(
        {
            "labels": list(audits) if several else None,
            "posterior": [tables_of.get(g) for g in range(len(every))],
            "audits": texts,
        }
    )
    buffers["text"] = np.frombuffer(text.encode(), np.uint8)
    tables["/state"] = xr.Dataset({name: (f"n_{name}", values) for name, values in buffers.items()})
    encoding = {
        at: {
            str(name): {"_FillValue": None}
            | (_compressed(values.shape) if _COMPRESSED <= values.size <= _FAST else {})
            for name, values in data.variables.items()
            if values.dtype.kind in "fiub"
        }
        for at, data in tables.items()
    }
    content = tree_bytes(xr.DataTree.from_dict(tables), {a: e for a, e in encoding.items() if e})
    seal = sealed(content)
    with held(path):
        if audit.origin is not None:
            audit.origin.check(path)
        with replacing(path) as draft, draft.open("wb") as out:
            out.write(content)
            out.write(seal)
        if audit.origin is not None:
            audit.origin.replaced(path, seal)


def _compressed(shape: tuple[int, ...]) -> dict[str, Any]:
    """Return how a large array is compressed: in chunks of 1 MB, last dimensions whole."""
    chunk, left = list(shape), _CHUNK
    for i in reversed(range(len(shape))):
        chunk[i] = min(shape[i], max(left, 1))
        left //= shape[i]
    return {"zlib": True, "complevel": 1, "chunksizes": tuple(chunk)}


def _check_labels(audits: Mapping[str, Record]) -> None:
    """Refuse labels that NetCDF cannot keep."""
    for label in (*audits, *(arm for one in audits.values() for arm in one.summary.arms)):
        if "\0" in label:
            raise OptionError(
                f"cannot save the audit: the label {label!r} holds a zero byte, which NetCDF "
                "cannot keep. Give it another label.",
                kind="label",
                value=label,
            )
        try:
            label.encode()
        except UnicodeEncodeError:
            raise OptionError(
                f"cannot save the audit: the label {label!r} is no text that UTF-8 can keep. Give "
                "it another label.",
                kind="label",
                value=label,
            ) from None


def _rounds(audit: Record) -> dict[str, NDArray[Any]]:
    """Return every round; worst arms by their position, -1 = no pair."""
    parts = list(iter_rounds(audit))
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _rounds_table(
    audits: Sequence[tuple[str, Record]], kept: Sequence[dict[str, NDArray[Any]]], *, several: bool
) -> xr.Dataset:
    """Return the rounds of one log; of several below each other, P* of all arms in one row each."""
    import xarray as xr

    if not several:
        whole = dict(kept[0])
        best, places = whole.pop("best_arm_probability"), whole.pop("round")
        data: dict[str, Any] = {name: ("round", values) for name, values in whole.items()}
        data["best_arm_probability"] = (("round", "arm"), best)
        return xr.Dataset(data, coords={"round": places, "arm": list(audits[0][1].summary.arms)})
    lengths = [len(columns["round"]) for columns in kept]
    data = {name: ("row_of_group", np.concatenate([c[name] for c in kept])) for name in _COLUMNS}
    data["group"] = ("row_of_group", np.repeat(np.arange(len(kept)), lengths))
    flat = [columns["best_arm_probability"].ravel() for columns in kept]
    data["best_arm_probability"] = ("row_of_group_arm", np.concatenate(flat))
    return xr.Dataset(data)


def read_audit(path: Any) -> Record | GroupRecord:
    """Return what `save_audit` wrote; see `bayesfair.load_audit`."""
    with opened(path) as found:
        try:
            return _audits_in(found, Path(path))
        except BayesfairError:
            raise
        except Exception as error:
            said = (str(error).splitlines() or [type(error).__name__])[0]
            raise lacking(found.name, f"what an audit has ({said[:200]})") from None


def _audits_in(found: Opened, path: Path) -> Record | GroupRecord:
    there = [name for name in (*BUFFERS, "text") if name in found.file["state"]]
    buffers = {name: found.array("state", name) for name in there}
    text = json.loads(buffers.pop("text").tobytes())
    audits = unpacked(text["audits"], buffers)
    labels, origin = text["labels"], Origin.of(path, found.seal)
    for name in dict.fromkeys(n for n in text["posterior"] if n is not None):
        places = [g for g, n in enumerate(text["posterior"]) if n == name]
        some = [audits[g] for g in places]
        whole = {v: found.array(name, v) for v, _ in IN_POSTERIOR.values() if v in found.file[name]}
        each = [whole] if labels is None else split_draws(whole, some)
        for g, audit, draws in zip(places, some, each, strict=True):
            audits[g] = with_draws(audit, draws)
    if any(audit.data is not None for audit in audits):
        audits = _with_rounds(found, audits)
    if labels is None:
        (audit,) = audits
        return replace(audit, origin=origin)
    if len(set(labels)) != len(audits):
        raise Malformed(f"{len(audits)} audits have {len(set(labels))} labels")
    return GroupRecord(dict(zip(labels, audits, strict=True)), origin)


def _with_rounds(found: Opened, audits: list[Record]) -> list[Record]:
    """Return the audits with the rounds that were kept of them."""
    columns = {name: found.array("rounds", name) for name in _COLUMNS}
    best = found.array("rounds", "best_arm_probability").ravel()
    done = done_best = 0
    whole = []
    for audit in audits:
        n, k = audit.data, len(audit.summary.arms)
        here = {name: values[done : done + n] for name, values in columns.items()}
        here["best_arm_probability"] = best[done_best : done_best + n * k].reshape(n, k)
        if any(len(values) != n for values in here.values()):
            raise Malformed(f"there are less than {n} rounds")
        whole.append(replace(audit, data=KeptRounds(here)))
        done, done_best = done + n, done_best + n * k
    return whole
