"""Every round of an audit: recomputed from the log when asked for, part by part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.audit.log.rounds import iter_results
from bayesfair.base.writing import replacing
from bayesfair.errors import OptionError

if TYPE_CHECKING:
    import xarray as xr

    from bayesfair.audit.record import Record

__all__ = ["KeptRounds", "iter_rounds", "rounds_dataset", "write_rounds"]


@dataclass(frozen=True, eq=False)
class KeptRounds:
    """Every round of an audit, as `iter_rounds` yields them, where the log itself is gone."""

    columns: dict[str, NDArray[Any]]


def iter_rounds(audit: Record, *, want_chances: bool = False) -> Iterator[dict[str, NDArray[Any]]]:
    """Yield the rounds of each part of the log as arrays.

    Parameters
    ----------
    audit : Record
    want_chances : bool
        Also ``selection_probability``, (n, k) with NaN for arms that were not on offer, where the
        log is at hand and holds it.

    Yields
    ------
    dict
        ``round``, ``row`` (-1 = unknown), ``smallest_eps2`` (NaN = not auditable), ``worst_arm``,
        ``worst_arm_other`` (positions, -1 = no pair), ``fairness_regret`` (NaN = not logged; an
        unbiased term where only the chosen probability was logged), ``best_arm_probability``
        (n, k).
    """
    if audit.data is None:
        raise OptionError(
            "this audit does not hold its log any more (it was loaded or merged). Audit the log "
            "again to see its rounds, or save an audit with save(path, rounds=True) to keep them."
        )
    if isinstance(audit.data, KeptRounds):
        yield audit.data.columns
        return
    if audit.question.beliefs_model is not None:
        raise OptionError(
            "an audit with beliefs_model= does not keep its rounds, which would have to be fitted "
            "again: bayesfair.beliefs(history, model=...) has P* before each of them.",
            kind="no_rounds", column="beliefs_model",
        )  # fmt: skip
    start = audit.summary.start
    offset = start.n_rounds
    for part, found, _ in iter_results(audit.data, start, audit.criterion, want_rounds=True):
        n, result = part.n_rounds, found.rounds
        nothing = np.full(n, np.nan)
        if part.selection == "full":
            regret = result.regret
        elif part.propensity is not None:
            regret = np.maximum(1 - result.p_best_chosen / part.propensity, 0)
        else:
            regret = nothing
        pair = np.full((n, 2), -1) if result.pair is None else result.pair
        chances = part.selection_probability if want_chances else None
        yield ({} if chances is None else {"selection_probability": np.asarray(chances)}) | {
            "round": np.arange(offset, offset + n),
            "row": np.full(n, -1) if part.row is None else np.asarray(part.row),
            "smallest_eps2": nothing if result.smallest_eps2 is None else result.smallest_eps2,
            "worst_arm": pair[:, 0],
            "worst_arm_other": pair[:, 1],
            "fairness_regret": regret,
            "best_arm_probability": np.asarray(result.p_best),
        }
        offset += n


def _labels(arms: tuple[str, ...]) -> NDArray[Any]:
    """Return labels so that position -1 is the empty one."""
    return np.array([*arms, ""], dtype=object)


def rounds_dataset(audit: Record) -> xr.Dataset:
    """Return all rounds as a labelled dataset; see `Audit.rounds`."""
    import xarray as xr

    parts = list(iter_rounds(audit))
    arms = audit.summary.arms
    if not parts:
        raise OptionError("the log has no rounds.")
    whole = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    labels = _labels(arms)
    data: dict[str, Any] = {
        "row": ("round", whole["row"]),
        "smallest_eps2": ("round", whole["smallest_eps2"]),
        "worst_arm": ("round", labels[whole["worst_arm"]].astype(str)),
        "worst_arm_other": ("round", labels[whole["worst_arm_other"]].astype(str)),
        "fairness_regret": ("round", whole["fairness_regret"]),
        "best_arm_probability": (("round", "arm"), whole["best_arm_probability"]),
    }
    return xr.Dataset(data, coords={"round": whole["round"], "arm": list(arms)})


def write_rounds(audit: Record, path: Any) -> int:
    """Write all rounds to a Parquet file, part by part, and return their number.

    Columns: round, row, smallest_eps2, worst_arm, worst_arm_other, fairness_regret, and
    ``p_best_{arm}`` for every arm.
    """
    import pyarrow as pa

    labels = pa.array([*audit.summary.arms, None], pa.string())
    with replacing(path) as draft:
        return _write_parquet(audit, draft, labels)


def _write_parquet(audit: Record, path: Path, labels: Any) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    arms = audit.summary.arms
    writer, total = None, 0
    try:
        for part in iter_rounds(audit):
            n = len(part["round"])
            row = pa.array(part["row"], mask=part["row"] < 0)
            columns: dict[str, Any] = {"round": part["round"], "row": row}
            for name in ("smallest_eps2", "fairness_regret"):
                columns[name] = pa.array(part[name], from_pandas=True)
            for name in ("worst_arm", "worst_arm_other"):
                code = np.where(part[name] < 0, len(arms), part[name]).astype(np.int32)
                columns[name] = labels.take(pa.array(code))
            for i, arm in enumerate(arms):
                columns[f"p_best_{arm}"] = pa.array(
                    np.ascontiguousarray(part["best_arm_probability"][:, i]), from_pandas=True
                )
            block = pa.table(columns)
            if writer is None:
                writer = pq.ParquetWriter(path, block.schema)
            writer.write_table(block)
            total += n
    finally:
        if writer is not None:
            writer.close()
    return total
