"""What is saved of an audit, field by field: names, types of number, dimensions.

A field that a class gains is one line here; until it is declared, importing fails. Raise
`saved_file.FORMAT` with every change of this file.

`packed` and `unpacked` are inverse to each other. Posterior draws stay outside: they are the
variables of ``posterior`` that others read (`IN_POSTERIOR`), but for the few that fill no chain.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.audit.log.accumulators import (
    ChosenChecks,
    Facts,
    Moments,
    Pairs,
    Sums,
    Terms,
    Worst,
)
from bayesfair.audit.log.cells import ChosenCell, FullCell
from bayesfair.audit.log.contexts import Seen, Without
from bayesfair.audit.log.group_pairs import GroupPairs
from bayesfair.audit.log.intervals import Estimate
from bayesfair.audit.log.series import Series
from bayesfair.audit.log.state import AuditState
from bayesfair.audit.log.summary import Summary
from bayesfair.audit.log.violations import JudgedRounds, Violations
from bayesfair.audit.record import Record as AuditRecord
from bayesfair.audit.saved.beliefs_schema import BELIEFS
from bayesfair.audit.saved.guards_schema import GUARDS, REWARD_MOMENTS
from bayesfair.audit.saved.kinds import (
    NUMBER,
    TEXT,
    TRUTH,
    WHOLE,
    Keyed,
    Malformed,
    Many,
    Mapped,
    Maybe,
    OneOf,
    Record,
    Sink,
    Store,
    f8,
    i4,
    i8,
)
from bayesfair.audit.saved.question_schema import (
    CRITERION,
    JSON,
    LABELS,
    NOTICES,
    QUESTION,
    by_label,
)
from bayesfair.audit.saved.unfinished import Unfinished
from bayesfair.audit.truth.objective import CellFound, Certificate, Objective
from bayesfair.history.probabilities import Repairs, Resolution
from bayesfair.kernels.log.propensities import Histogram

__all__ = ["IN_POSTERIOR", "N_CHAINS", "folded", "packed", "unpacked", "with_draws"]

N_CHAINS = 4
IN_POSTERIOR = {
    "smallest_eps2": ("smallest_eps2", ("eps1",)),
    "regret": ("regret_per_round", ()),
    "p_best": ("best_arm_probability", ("arm",)),
}  # fmt: skip
"""Field of `Objective` -> its variable in ``posterior``, and the dimensions beside the draws."""


# -- the record, from the leaves up ---------------------------------------------------------------

STATE = Record(AuditState, {
    "arms": LABELS,
    "family": TEXT,
    "prior": f8("arm", "parameter"),
    "n_rounds": WHOLE,
    "beliefs": BELIEFS,
    "eps2_arms": Maybe(WHOLE),
})  # fmt: skip

SUMS = Record(Sums, {
    "n_rounds": WHOLE,
    "plays": i8("arm"),
    "n_unobserved": i8("arm"),
    "reward_total": f8("arm"),
    "p_best": f8("arm"),
    "selection": f8("arm"),
    "selection_variance": f8("arm"),
    "n_offered": i8("arm"),
    "all_zero": NUMBER,
    "concentration": NUMBER,
    "n_still": WHOLE,
    "n_moved": WHOLE,
})  # fmt: skip

WORST = Record(Worst, {
    "excess": NUMBER,
    "round": WHOLE,
    "row": Maybe(WHOLE),
    "arm": WHOLE,
    "arm_other": WHOLE,
    "source": TEXT,
})  # fmt: skip

MOMENTS = Record(Moments, {
    "n": WHOLE,
    "total": NUMBER,
    "squares": NUMBER,
    "largest": NUMBER,
})  # fmt: skip

CHOSEN_CHECKS = Record(ChosenChecks, {
    "inverse": f8("arm"),
    "variance": f8("arm"),
    "lowest": f8("arm"),
    "highest": f8("arm"),
})  # fmt: skip

JUDGED = Record(JudgedRounds, {
    "base": WHOLE,
    "end": WHOLE,
    "round": i8("kept_round"),
    "rows": f8("kept_round", "arm"),
    "context": i4("context_round"),
})  # fmt: skip

SERIES = Record(Series, {
    "n_rounds": WHOLE,
    "stride": WHOLE,
    "regret": f8("mark"),
    "plays": i8("mark", "arm"),
    "last_regret": NUMBER,
    "last_plays": i8("arm"),
})  # fmt: skip

CELL = OneOf((
    Record(FullCell, {
        "n_rounds": WHOLE,
        "maxima": f8("arm", "arm"),
        "rows": Maybe(f8("row", "arm")),
        "histogram": Maybe(Record(Histogram, {
            "counts": f8("arm", "bin"),
            "total": f8("arm", "bin"),
        })),
    }),
    Record(ChosenCell, {
        "n_rounds": WHOLE,
        "n_arms": WHOLE,
        "arm": Maybe(i4("row")),
        "p": Maybe(f8("row")),
        "sums": Maybe(f8("power", "arm", "bin")),
    }),
))  # fmt: skip

PAIRS = Record(Pairs, {
    "frontier": f8("eps1"),
    "worst": Maybe(WORST),
    "violations": Record(Violations, dict.fromkeys(Violations._fields, i8("tolerance"))),
    "judged": Maybe(JUDGED),
})  # fmt: skip

TERMS = Record(Terms, {
    "regret": MOMENTS,
    "weights": MOMENTS,
    "chosen": Maybe(CHOSEN_CHECKS),
    "series": SERIES,
})  # fmt: skip

FACTS = Record(Facts, {
    "source": TEXT,
    "n_skipped": WHOLE,
    "missing": TEXT,
    "notices": NOTICES,
    "repairs": Record(Repairs, {
        "n_rescaled": WHOLE,
        "largest": NUMBER,
        "n_clipped": WHOLE,
    }),
    "resolution": Record(Resolution, {
        "decimals": WHOLE,
        "single": TRUTH,
        "values": Mapped(f8("value"), lambda s: np.array(sorted(s), dtype=np.float64),
                         lambda values: frozenset(values.tolist())),
    }),
    "unused_columns": Many(TEXT),
    "by_time": TRUTH,
})  # fmt: skip

SEEN = Record(Seen, {
    "label": TEXT,
    "n_rounds": WHOLE,
    "plays": i8("arm"),
    "p_best": f8("arm"),
    "needed": NUMBER,
    "n_violating": i8("tolerance"),
    "regret": MOMENTS,
    "moments": REWARD_MOMENTS,
    "cells": Keyed(CELL),
})  # fmt: skip

WITHOUT = Record(Without, {
    "needed": NUMBER,
    "regret": NUMBER,
})  # fmt: skip

SUMMARY = Record(Summary, {
    "criterion": CRITERION,
    "selection": TEXT,
    "start": STATE,
    "end": STATE,
    "sums": SUMS,
    "pairs": PAIRS,
    "terms": TERMS,
    "cells": Keyed(CELL),
    "guards": GUARDS,
    "facts": FACTS,
    "contexts": by_label(SEEN),
    "without": Maybe(WITHOUT),
})  # fmt: skip

ESTIMATE = Record(Estimate, {
    "value": NUMBER,
    "lower": NUMBER,
    "upper": NUMBER,
    "exact": TRUTH,
})  # fmt: skip

OBJECTIVE = Record(Objective, {
    "smallest_eps2": Maybe(f8("left_over", "eps1")),
    "regret": Maybe(f8("left_over")),
    "regret_sampling_sd": f8("truth"),
    "lower_bound": Maybe(f8("truth")),
    "p_best": Maybe(f8("left_over", "arm")),
    "error": NUMBER,
    "violations": Maybe(Record(Violations, {
        "n": f8("counted_truth"),
        "first": i8("counted_truth"),
        "last": i8("counted_truth"),
    })),
    "counted": TRUTH,
    "best_mean": Maybe(f8("arm")),
    "cells": by_label(Record(CellFound, {
        "label": TEXT,
        "probability_fair": Maybe(NUMBER),
        "regret": Maybe(ESTIMATE),
    })),
    "certificates": Many(Record(Certificate, {
        "n_rounds": WHOLE,
        "khat": f8("arm"),
        "ess": f8("arm"),
        "refitted": i8("arm"),
        "difference": NUMBER,
        "share": NUMBER,
    })),
})  # fmt: skip
"""The draws that fill chains stand in ``posterior``."""

AUDIT = Record(AuditRecord, {
    "question": QUESTION,
    "summary": SUMMARY,
    "objective": Maybe(OBJECTIVE),
    "regret_objective": Maybe(ESTIMATE),
    "findings": NOTICES,
    "prior": TEXT,
    "version": TEXT,
    "extra": JSON,
    "fitted": None,
    "arm_groups": Maybe(Record(GroupPairs, {
        "member": LABELS,
        "smallest_eps2": f8("pair"),
        "n_violating": i8("pair", "tolerance"),
    })),
    "data": Maybe(WHOLE),
    "origin": None,
    "unfinished": Maybe(Record(Unfinished, {
        "n_rounds": WHOLE,
        "before": WHOLE,
        "digest": TEXT,
        "source": TEXT,
    })),
})  # fmt: skip
"""``data``: how many rounds are kept in the table ``rounds``; None for none."""


def folded(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return independent draws folded into chains (chain, draw, ...), and the few left over."""
    chains = N_CHAINS if len(values) >= N_CHAINS else 1
    n = len(values) // chains * chains
    return values[:n].reshape(chains, n // chains, *values.shape[1:]), values[n:]


def packed(
    audits: Iterable[AuditRecord], n_rounds: Iterable[int | None]
) -> tuple[list[Any], dict[str, NDArray[Any]]]:
    """Return audits as JSON-ready texts, one each, and all their arrays by type of number.

    Parameters
    ----------
    audits : iterable of Record
        What is to be saved.
    n_rounds : iterable of int or None
        How many rounds of each are kept in a table of their own.
    """
    out = Sink()
    texts = [AUDIT.put(_bare(audit, n), out) for audit, n in zip(audits, n_rounds, strict=True)]
    return texts, out.buffers()


def unpacked(texts: Any, buffers: Mapping[str, NDArray[Any]]) -> list[AuditRecord]:
    """Return the audits that `packed` took apart; what it left out is still to be put in.

    Parameters
    ----------
    texts, buffers
        As returned by `packed`.

    Raises
    ------
    Malformed
        If something is missing, left over, or of another type or shape.
    """
    store = Store(buffers)
    if not isinstance(texts, list):
        raise Malformed("there is no list of audits")
    audits = [AUDIT.take(text, store, {}) for text in texts]
    store.check_end()
    return audits


def _bare(audit: AuditRecord, n_rounds: int | None) -> AuditRecord:
    """Return an audit without what stands elsewhere in the file, its cells sorted."""
    objective = audit.objective
    if objective is not None:
        left: dict[str, Any] = {
            field: folded(getattr(objective, field))[1]
            for field in IN_POSTERIOR
            if getattr(objective, field) is not None
        }
        objective = replace(objective, **left)
    # only the values of a cell matter, not their order: sorted ones compress well
    summary = audit.summary
    contexts = {
        label: seen._replace(cells=_in_order(seen.cells))
        for label, seen in summary.contexts.items()
    }
    summary = replace(summary, cells=_in_order(summary.cells), contexts=contexts)
    return replace(audit, summary=summary, objective=objective, data=n_rounds)


def _in_order(cells: Mapping[bytes, Any]) -> dict[bytes, Any]:
    return {key: cell.in_order() for key, cell in cells.items()}


def with_draws(audit: AuditRecord, draws: Mapping[str, NDArray[Any]]) -> AuditRecord:
    """Return an audit from `unpacked` with its draws, (chain, draw, ...) each.

    Raises
    ------
    Malformed
        If they are not those of its objective part.
    """
    objective = audit.objective
    if objective is None:
        return audit
    whole: dict[str, Any] = {}
    for field, (name, _) in IN_POSTERIOR.items():
        left = getattr(objective, field)
        if left is None:
            continue
        chains = draws.get(name)
        if chains is None or chains.ndim < 2 or chains.shape[2:] != left.shape[1:]:
            raise Malformed(f"the draws {name!r} are missing, or of another shape")
        found = np.concatenate([chains.reshape(-1, *chains.shape[2:]), left])
        whole[field] = np.ascontiguousarray(found)  # sums over it round as they did
    n = {len(values) for values in whole.values()} | {len(objective.regret_sampling_sd)}
    if len(n) != 1:
        raise Malformed(f"there are {sorted(n)} draws of one truth")
    return replace(audit, objective=replace(objective, **whole))
