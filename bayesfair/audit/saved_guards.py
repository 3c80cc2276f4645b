"""The sums for the checks of a log as plain arrays, and back; see `saved_state`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.audit.guards import Edge, Guards
from bayesfair.audit.repeats import Blocks, Keys, Tie, Ties
from bayesfair.kernels.guards import RewardMoments, RuleSums

__all__ = ["packed_guards", "unpacked_guards"]

_TIE: dict[str, Any] = {
    "time": np.int64, "n": np.int64, "print_": np.uint64, "alike": np.uint8,
    "first": np.float64, "chance": np.float64,
}  # fmt: skip
_LENGTH = {
    "moments": "arm", "n_zero": "arm", "first_pi": "first_pi", "first_best": "first_best",
    "last_pi": "last_pi", "last_best": "last_best", "open": "open_tie", "keys": "key",
    "blocks_head": "head", "blocks_tail": "tail", "blocks": "window",
}  # fmt: skip
"""Beginning of a variable's name -> its dimension, the longest that fits."""


def packed_guards(guards: Guards) -> dict[str, tuple[tuple[str, ...], NDArray[Any]]]:
    """Return every field as a variable: its dimensions, its values."""
    found: dict[str, Any] = {
        "lowest": guards.lowest, "best_moved": guards.best_moved, "n_zero": guards.n_zero
    }  # fmt: skip
    for name in ("moments", "rule", "first", "last"):
        found |= {f"{name}_{f}": v for f, v in getattr(guards, name)._asdict().items()}
    found |= {f"blocks_{f}": v for f, v in vars(guards.blocks).items()}
    found["blocks_limit"] = np.uint64(guards.blocks.limit)
    found |= {f"ties_{f}": v for f, v in vars(guards.ties).items() if f != "open"}
    for field, kind in _TIE.items():
        found[f"open_{field}"] = np.array(
            [getattr(tie, field) for tie in guards.ties.open], dtype=kind
        )
    if guards.keys is not None:
        found |= {f"keys_{f}": v for f, v in vars(guards.keys).items() if f != "column"}
    variables = {}
    for name, value in found.items():
        array = np.asarray(value)
        dims: tuple[str, ...] = ()
        if array.ndim:
            start = max((s for s in _LENGTH if name.startswith(s)), key=len)
            dims = (f"guard_{_LENGTH[start]}",)
        variables[name] = (dims, array)
    return variables


def unpacked_guards(group: Mapping[str, NDArray[Any]], column: str | None) -> Guards:
    """Return what `packed_guards` wrote.

    Parameters
    ----------
    group : mapping
        Variable -> values.
    column : str or None
        Column of the keys that were to be unique.
    """

    def fields(kind: Any, name: str) -> dict[str, Any]:
        found = {}
        for field in kind:
            value = group[f"{name}_{field}"]
            found[field] = value if value.ndim else value.item()
        return found

    ties = zip(*(group[f"open_{field}"].tolist() for field in _TIE), strict=True)
    keys = None
    if column is not None:
        names = [f for f in Keys.__dataclass_fields__ if f != "column"]
        keys = Keys(column=column, **fields(names, "keys"))
    counts = [f for f in Ties.__dataclass_fields__ if f != "open"]
    return Guards(
        moments=RewardMoments(**fields(RewardMoments._fields, "moments")),
        rule=RuleSums(**fields(RuleSums._fields, "rule")),
        lowest=group["lowest"].item(),
        best_moved=group["best_moved"].item(),
        n_zero=group["n_zero"],
        first=Edge(**fields(Edge._fields, "first")),
        last=Edge(**fields(Edge._fields, "last")),
        blocks=Blocks(**fields(Blocks.__dataclass_fields__, "blocks")),
        ties=Ties(
            open=tuple(Tie(t, n, p, bool(a), f, c) for t, n, p, a, f, c in ties),
            **fields(counts, "ties"),
        ),
        keys=keys,
    )
