"""An audit as plain arrays and JSON, and back: everything that its merging and going on need.

`packed` and `unpacked` are inverse to each other. Groups (names end in the file under ``state``):

* ``start``, ``end``: beliefs before the first and after the last round, with rewards not known yet.
* ``sums``, ``terms``, ``series``: sums over rounds, frontier and worst round, the thinned series.
* ``violations``, ``judged``: violating rounds under the beliefs, and the rounds among which those
  under the true rewards are counted.
* ``cells``: the logged probabilities by arms on offer. Only their values matter, not their order:
  each arm's are sorted, which compresses well.
* ``guards``: sums and fingerprints for the checks of the log itself.
* ``objective``: what the draws in ``posterior`` leave out, violating rounds per draw among it.
* ``arm_groups``: pairs between and within groups of arms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.audit.arm_groups import GroupPairs
from bayesfair.audit.calibration import Estimate
from bayesfair.audit.cells import ChosenCell, FullCell
from bayesfair.audit.criterion import Criterion
from bayesfair.audit.objective import Objective
from bayesfair.audit.result import Audit, Settings
from bayesfair.audit.saved_guards import packed_guards, unpacked_guards
from bayesfair.audit.series import Series
from bayesfair.audit.state import AuditState
from bayesfair.audit.summary import ChosenChecks, Moments, Summary, Sums, Worst
from bayesfair.audit.violations import JudgedRounds, Violations
from bayesfair.kernels.conjugate import BeliefTable
from bayesfair.kernels.propensities import Histogram
from bayesfair.kernels.stream import StreamState
from bayesfair.notices import Notice
from bayesfair.probabilities import Repairs, Resolution

__all__ = ["IN_POSTERIOR", "N_CHAINS", "Groups", "folded", "packed", "unpacked"]

Variables = dict[str, tuple[tuple[str, ...], NDArray[Any]]]
"""Name -> (dimensions, values)."""
Groups = dict[str, Variables]

N_CHAINS = 4
IN_POSTERIOR = {
    "smallest_eps2": ("smallest_eps2", ("eps1",)),
    "regret": ("regret_per_round", ()),
    "p_best": ("best_arm_probability", ("arm",)),
}  # fmt: skip
"""Field of `Objective` -> its variable in ``posterior``, and the dimensions beside the draws."""

_BELIEFS: dict[str, Any] = {"StreamState": StreamState, "BeliefTable": BeliefTable}
_DIMS = {
    "pending_at": ("pending",), "pending_arm": ("pending",), "pending_reward": ("pending",),
    "parameters": ("arm", "parameter"), "support": ("level",),
    "last_pi": ("last_arm",),
}  # fmt: skip


def folded(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return independent draws folded into chains (chain, draw, ...), and the few left over."""
    chains = N_CHAINS if len(values) >= N_CHAINS else 1
    n = len(values) // chains * chains
    return values[:n].reshape(chains, n // chains, *values.shape[1:]), values[n:]


def _fields(values: Any) -> Variables:
    """Return a named tuple of scalars and arrays, one variable per field."""
    found: Variables = {}
    for name, value in values._asdict().items():
        array = np.asarray(value)
        found[name] = (_DIMS.get(name, ("arm",) if array.ndim else ()), array)
    return found


def _from_fields(kind: Any, group: Mapping[str, NDArray[Any]]) -> Any:
    """Return the named tuple of a group; scalars become Python numbers."""
    return kind(*(a if a.ndim else a.item() for a in (group[name] for name in kind._fields)))


def packed(audit: Audit) -> tuple[dict[str, Any], Groups]:
    """Return an audit as JSON-ready text and groups of arrays, its posterior draws apart."""
    summary, objective = audit.summary, audit.objective
    text: dict[str, Any] = {
        "arms": list(summary.arms),
        "criterion": asdict(summary.criterion),
        "tolerance": audit.criterion.tolerance,
        "settings": asdict(audit.settings),
        "selection": summary.selection,
        "source": summary.source,
        "missing": summary.missing,
        "notices": [Notice.of(notice).to_dict() for notice in summary.notices],
        "unused_columns": list(summary.unused_columns),
        "unique": None if summary.guards.keys is None else summary.guards.keys.column,
        "findings": [Notice.of(notice).to_dict() for notice in audit.findings],
        "extra": audit.extra,
        "family": summary.start.family,
        "beliefs": type(summary.end.beliefs).__name__,
        "objective": objective is not None,
    }
    groups: Groups = {
        "start": _state(summary.start),
        "end": _state(summary.end),
        "sums": _fields(summary.sums),
        "violations": {
            name: (("tolerance",), values) for name, values in summary.violations._asdict().items()
        },
        "terms": _terms(summary),
        "series": _series(summary.series),
        "cells": _cells(summary),
        "guards": packed_guards(summary.guards),
    }
    if summary.judged is not None:
        groups["judged"] = _judged(summary.judged)
    if summary.worst is not None:
        text["worst"] = summary.worst._asdict()
        text["worst"]["excess"] = repr(summary.worst.excess)  # may be infinite
    if objective is not None:
        groups["objective"] = _objective(objective, audit.regret_objective)
    if audit.arm_groups is not None:
        text["arm_groups"] = list(audit.arm_groups.member)
        groups["arm_groups"] = {
            "smallest_eps2": (("pair",), audit.arm_groups.smallest_eps2),
            "n_violating": (("pair", "tolerance"), audit.arm_groups.n_violating),
        }
    return text, groups


def _state(state: AuditState) -> Variables:
    found: Variables = {
        "prior": (("arm", "prior_parameter"), state.prior),
        "n_rounds": ((), np.asarray(state.n_rounds)),
        "eps2_arms": ((), np.asarray(state.eps2_arms or 0)),
    }
    return found | (_fields(state.beliefs) if state.beliefs else {})


def _judged(judged: JudgedRounds) -> Variables:
    return {
        "base": ((), np.asarray(judged.base)),
        "end": ((), np.asarray(judged.end)),
        "round": (("kept_round",), judged.round),
        "rows": (("kept_round", "arm"), np.asarray(judged.rows)),
    }


def _terms(summary: Summary) -> Variables:
    resolution, repairs = summary.resolution, summary.repairs
    found: Variables = {
        "frontier": (("eps1",), summary.frontier),
        "resolution": ((), np.asarray(resolution.decimals)),
        "single_precision": ((), np.asarray(resolution.single)),
        "values": (("value",), np.array(sorted(resolution.values), dtype=np.float64)),
        "n_rescaled": ((), np.asarray(repairs.n_rescaled)),
        "largest_repair": ((), np.asarray(float(repairs.largest))),
        "n_clipped": ((), np.asarray(repairs.n_clipped)),
    }
    for name in ("regret", "weights"):
        found |= {f"{name}_{k}": v for k, v in _fields(getattr(summary, name)).items()}
    if summary.chosen is not None:
        found |= {f"chosen_{k}": v for k, v in _fields(summary.chosen).items()}
    return found


def _series(series: Series) -> Variables:
    return {
        "n_rounds": ((), np.asarray(series.n_rounds)),
        "stride": ((), np.asarray(series.stride)),
        "regret": (("mark",), series.regret),
        "plays": (("mark", "arm"), series.plays),
        "last_regret": ((), np.asarray(float(series.last_regret))),
        "last_plays": (("arm",), series.last_plays),
    }


def _cells(summary: Summary) -> Variables:
    k, cells = len(summary.arms), list(summary.cells.values())
    masks = [
        np.ones(k, bool) if key == b"" else np.frombuffer(key, bool, count=k)
        for key in summary.cells
    ]
    found: Variables = {
        "offered": (("cell", "arm"), np.array(masks, dtype=np.uint8).reshape(len(masks), k)),
        "n_rounds": (("cell",), np.array([c.n_rounds for c in cells], dtype=np.int64)),
    }
    full = [c for c in cells if isinstance(c, FullCell)]
    chosen = [c for c in cells if isinstance(c, ChosenCell)]
    if full:
        kept = [np.sort(c.rows, axis=0) for c in full if c.rows is not None]
        bins = [c.histogram for c in full if c.histogram is not None]
        found["is_kept"] = (("cell",), np.array([c.rows is not None for c in full], np.uint8))
        found["maxima"] = (("cell", "arm", "arm_other"), np.stack([c.maxima for c in full]))
        found["values"] = (("kept", "arm"), np.concatenate([np.empty((0, k)), *kept]))
        if bins:
            for name, arrays in (
                ("counts", [h.counts for h in bins]),
                ("total", [h.total for h in bins]),
            ):
                found[name] = (("binned_cell", "arm", "bin"), np.stack(arrays))
    if chosen:
        found["is_kept"] = (("cell",), np.array([c.arm is not None for c in chosen], np.uint8))
        arm, p = [np.empty(0, np.int32)], [np.empty(0)]
        for c in chosen:
            if c.arm is not None and c.p is not None:
                order = np.lexsort((c.p, c.arm))
                arm.append(c.arm[order])
                p.append(c.p[order])
        found["kept_arm"] = (("kept",), np.concatenate(arm))
        found["values"] = (("kept",), np.concatenate(p))
        sums = [c.sums for c in chosen if c.sums is not None]
        if sums:
            found["sums"] = (("binned_cell", "power", "arm", "bin"), np.stack(sums))
    return found


def _objective(objective: Objective, regret: Estimate | None) -> Variables:
    found: Variables = {
        "regret_sampling_sd": (("truth",), objective.regret_sampling_sd),
        "error": ((), np.asarray(float(objective.error))),
    }
    for field, (name, dims) in IN_POSTERIOR.items():
        values = getattr(objective, field)
        if values is not None:
            found[name] = (("left_over", *dims), folded(values)[1])
    if objective.lower_bound is not None:
        found["lower_bound"] = (("truth",), objective.lower_bound)
    if objective.violations is not None:
        for name, drawn in objective.violations._asdict().items():
            found[f"{name}_violating"] = (("counted_truth",), drawn)
        found["counted"] = ((), np.asarray(objective.counted))
    if regret is not None:
        found["regret"] = (("estimate",), np.array([float(v) for v in regret]))
    return found


def unpacked(
    text: Mapping[str, Any],
    groups: Mapping[str, Mapping[str, NDArray[Any]]],
    posterior: Mapping[str, NDArray[Any]],
) -> Audit:
    """Return the audit that `packed` took apart.

    Parameters
    ----------
    text : mapping
        As returned by `packed`.
    groups : mapping of mapping
        Group -> variable -> values.
    posterior : mapping
        Draws, (chain, draw, ...).

    Raises
    ------
    KeyError
        If a group or variable is missing.
    """
    arms, terms = tuple(text["arms"]), groups["terms"]
    criterion = Criterion(**text["criterion"])
    worst = None
    if "worst" in text:
        worst = Worst(**(text["worst"] | {"excess": float(text["worst"]["excess"])}))
    moments = {
        name: _from_fields(Moments, {f: terms[f"{name}_{f}"] for f in Moments._fields})
        for name in ("regret", "weights")
    }
    chosen = None
    if "chosen_inverse" in terms:
        chosen = _from_fields(ChosenChecks, {f: terms[f"chosen_{f}"] for f in ChosenChecks._fields})
    judged = None
    if "judged" in groups:
        rounds = groups["judged"]
        judged = JudgedRounds(
            int(rounds["base"]), int(rounds["end"]), rounds["round"], rounds["rows"]
        )
    series: dict[str, Any] = {n: a if a.ndim else a.item() for n, a in groups["series"].items()}
    summary = Summary(
        criterion=criterion,
        selection=text["selection"],
        source=text["source"],
        start=_to_state(text, arms, groups["start"]),
        end=_to_state(text, arms, groups["end"]),
        sums=_from_fields(Sums, groups["sums"]),
        frontier=terms["frontier"],
        worst=worst,
        violations=Violations(**groups["violations"]),
        judged=judged,
        chosen=chosen,
        resolution=Resolution(
            int(terms["resolution"]),
            bool(terms["single_precision"]),
            frozenset(terms["values"].tolist()),
        ),
        series=Series(**series),
        cells=_to_cells(text["selection"], groups["cells"], len(arms)),
        missing=text["missing"],
        notices=tuple(Notice.of(notice) for notice in text["notices"]),
        repairs=Repairs(
            int(terms["n_rescaled"]), float(terms["largest_repair"]), int(terms["n_clipped"])
        ),
        guards=unpacked_guards(groups["guards"], text["unique"]),
        unused_columns=tuple(text["unused_columns"]),
        **moments,
    )
    objective, regret = None, None
    if text["objective"]:
        objective, regret = _to_objective(groups["objective"], posterior)
    pairs = None
    if "arm_groups" in text:
        kept = groups["arm_groups"]
        pairs = GroupPairs(tuple(text["arm_groups"]), kept["smallest_eps2"], kept["n_violating"])
    return Audit(
        criterion=Criterion(**(text["criterion"] | {"tolerance": text["tolerance"]})),
        settings=Settings(**text["settings"]),
        summary=summary,
        objective=objective,
        regret_objective=regret,
        findings=tuple(Notice.of(notice) for notice in text["findings"]),
        extra=dict(text["extra"]),
        arm_groups=pairs,
    )


def _to_state(
    text: Mapping[str, Any], arms: tuple[str, ...], group: Mapping[str, NDArray[Any]]
) -> AuditState:
    kind = _BELIEFS.get(text["beliefs"])  # None: beliefs under a model, of which no state is kept
    beliefs = () if kind is None else _from_fields(kind, group)
    return AuditState(
        arms, text["family"], group["prior"], int(group["n_rounds"]), beliefs,
        int(group["eps2_arms"]) or None,
    )  # fmt: skip


def _to_cells(
    selection: str, group: Mapping[str, NDArray[Any]], k: int
) -> dict[bytes, FullCell | ChosenCell]:
    found: dict[bytes, FullCell | ChosenCell] = {}
    done = binned = 0
    for c, (mask, n) in enumerate(zip(group["offered"] != 0, group["n_rounds"], strict=True)):
        size = int(n)
        kept = bool(group["is_kept"][c])
        rounds = slice(done, done + size)
        if selection == "full":
            rows = group["values"][rounds] if kept else None
            histogram = None if kept else Histogram(group["counts"][binned], group["total"][binned])
            cell: Any = FullCell(size, group["maxima"][c], rows, histogram)
        elif kept:
            cell = ChosenCell(size, k, group["kept_arm"][rounds], group["values"][rounds], None)
        else:
            cell = ChosenCell(size, k, None, None, group["sums"][binned])
        done, binned = done + size * kept, binned + (not kept)
        found[b"" if mask.all() else mask.tobytes()] = cell
    return found


def _to_objective(
    group: Mapping[str, NDArray[Any]], posterior: Mapping[str, NDArray[Any]]
) -> tuple[Objective, Estimate | None]:
    draws: dict[str, NDArray[np.float64] | None] = {}
    for field, (name, _) in IN_POSTERIOR.items():
        draws[field] = None
        if name in group:
            chains, rest = posterior[name], group[name]
            draws[field] = np.concatenate([chains.reshape(-1, *chains.shape[2:]), rest])
    p_best = draws["p_best"]
    if p_best is None:
        raise KeyError("best_arm_probability")
    objective = Objective(
        smallest_eps2=draws["smallest_eps2"],
        regret=draws["regret"],
        regret_sampling_sd=group["regret_sampling_sd"],
        lower_bound=group.get("lower_bound"),
        p_best=p_best,
        error=float(group["error"]),
        violations=None
        if "n_violating" not in group
        else Violations(*(group[f"{name}_violating"] for name in Violations._fields)),
        counted=bool(group.get("counted", True)),
    )
    if "regret" not in group:
        return objective, None
    value, lower, upper, exact = group["regret"].tolist()
    return objective, Estimate(value, lower, upper, bool(exact))
