"""What is saved of the question of an audit, and the sorts of fields that records share."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from bayesfair.audit.criterion import Criterion
from bayesfair.audit.question import Question
from bayesfair.audit.saved.kinds import (
    NUMBER,
    TEXT,
    TRUTH,
    WHOLE,
    Many,
    Mapped,
    Maybe,
    Plain,
    Record,
)
from bayesfair.base.notices import Notice
from bayesfair.inference.contract import label_of
from bayesfair.rewards import Rewards

__all__ = ["CRITERION", "JSON", "LABELS", "NOTICES", "QUESTION", "by_label"]


def _name(value: Any) -> str:
    return type(value).__name__ if isinstance(value, Rewards) else label_of(value)


def _as_json(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as JSON, what is none of it as text."""
    found: dict[str, Any] = json.loads(
        json.dumps(dict(options), default=lambda x: x.tolist() if hasattr(x, "tolist") else str(x))
    )
    return found


# -- sorts of fields ------------------------------------------------------------------------------

LABELS = Many(TEXT, "arm")
JSON = Mapped(Plain(dict), dict, dict)
ANY = Mapped(JSON, lambda value: {"is": value}, lambda found: found["is"])
NAMED = Mapped(TEXT, _name, str)
"""What cannot be kept, by its name: a function that builds a model, known rewards."""
NOTICES = Many(Mapped(JSON, lambda found: Notice.of(found).to_dict(), Notice.of))


def by_label(kind: Record) -> Mapped:
    """Return the kind of a dictionary of records, each by its own label."""
    return Mapped(Many(kind), lambda found: tuple(found.values()),
                  lambda every: {one.label: one for one in every})  # fmt: skip


CRITERION = Record(Criterion, {
    "eps1": NUMBER,
    "eps2": NUMBER,
    "delta": NUMBER,
    "divergence": TEXT,
    "reward_divergence": TEXT,
    "tolerance": NUMBER,
    "tolerance_given": TRUTH,
    "eps2_arms": Maybe(WHOLE),
    "from_round": WHOLE,
    "judge": TEXT,
    "propensity_draws": Maybe(WHOLE),
})  # fmt: skip

QUESTION = Record(Question, {
    "criterion": CRITERION,
    "family": TEXT,
    "prior": Maybe(ANY),
    "support": Maybe(Many(NUMBER)),
    "earlier": None,
    "model": Maybe(NAMED),
    "fit": None,
    "beliefs_model": Maybe(NAMED),
    "context_model": Maybe(TEXT),
    "truth": Maybe(NAMED),
    "objective": TRUTH,
    "draws": WHOLE,
    "seed": Maybe(WHOLE),
    "options": Mapped(JSON, _as_json, dict),
    "arm_groups": Maybe(JSON),
})  # fmt: skip
