"""The fields of what is believed after a part of a log; see `bayesfair.audit.saved.schema`."""

from __future__ import annotations

from bayesfair.audit.log.context_tables import ContextTables
from bayesfair.audit.saved.kinds import (
    NUMBER,
    TEXT,
    TRUTH,
    WHOLE,
    Many,
    Maybe,
    OneOf,
    Record,
    f8,
    i4,
    i8,
)
from bayesfair.families.featured import Featured
from bayesfair.history.design import Design
from bayesfair.inference.carried import Carried
from bayesfair.kernels.log.coefficients import Coefficients
from bayesfair.kernels.log.conjugate import BeliefTable
from bayesfair.kernels.log.pooled import Pooling

__all__ = ["BELIEFS"]

TABLE = Record(BeliefTable, {
        "parameters": f8("arm", "parameter"),
        "pending_at": i8("pending"),
        "pending_arm": i4("pending"),
        "pending_reward": f8("pending"),
        "support": f8("level"),
        "last_pi": f8("last_arm"),
        "changed": TRUTH,
        "from_data": TRUTH,
        "early_arm": i4("early"),
        "early_reward": f8("early"),
        "n_same": i8("arm"),
        "n_learning": WHOLE,
})  # fmt: skip

FEATURED = Record(Featured, {
    "model": TEXT,
    "design": Record(Design, {
        "columns": Many(TEXT),
        "location": f8("column"),
        "scale": f8("column"),
        "cuts": f8("cut"),
        "cut_of": i8("cut"),
        "levels": Many(TEXT),
        "level_of": i8("indicator"),
    }),
    "beliefs": Record(Coefficients, {
        "prior": f8("arm", "of_prior"),
        "mean": f8("arm", "feature"),
        "spread": f8("arm", "feature", "feature"),
        "precision": f8("arm", "inverse", "inverse"),
        "shape": f8("arm"),
        "scale": f8("arm"),
        "n_learned": i8("arm"),
        "from_data": TRUTH,
        "early_arm": i4("early"),
        "early_reward": f8("early"),
        "early_row": f8("early", "feature"),
        "open": TRUTH,
        "pending_at": i8("pending"),
        "pending_arm": i4("pending"),
        "pending_reward": f8("pending"),
        "pending_row": f8("pending", "feature"),
    }),
})  # fmt: skip

BELIEFS = OneOf((
    TABLE,
    Record(ContextTables, {
        "model": TEXT,
        "columns": Many(TEXT),
        "labels": Many(TEXT, "context"),
        "tables": Many(TABLE, "context"),
        "fresh": TABLE,
        "without": TABLE,
        "shared": Maybe(OneOf((
            Record(Pooling, {
                "mu": f8("arm", "centre"),
                "kappa": f8("likeness"),
                "mantissa": f8("arm", "centre", "likeness"),
                "scale": i4("arm", "centre", "likeness"),
            }),
            FEATURED,
            Record(Carried, {
                "featured": FEATURED,
                "mean": f8("arm", "coefficient"),
                "spread": f8("arm", "coefficient", "coefficient"),
                "told_arm": i8("told"),
                "told_reward": f8("told"),
                "told_row": f8("told", "coefficient"),
                "theta": f8("arm", "carried", "coefficient"),
                "log_ratio": f8("arm", "carried"),
                "enough": f8("arm"),
                "khat": NUMBER,
                "fewest": NUMBER,
                "error": NUMBER,
            }),
        ))),
    }),
))  # fmt: skip
"""None for beliefs under a model, of which no state is kept."""
