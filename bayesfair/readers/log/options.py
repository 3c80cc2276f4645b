"""The options of the readers of logs, each declared once: its name, kind and default."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict

from bayesfair.base.arguments import MAPPING, NAMES, PLAIN, TEXT, TEXT_OR_FALSE, each
from bayesfair.readers.log.columns import Option

__all__ = ["DEFAULTS", "KINDS", "LogOptions", "OneLogOptions", "with_log_options"]


class OneLogOptions(TypedDict, total=False):
    """Options of `read_history` and `scan_history`; `read_history` says what they mean."""

    arm: str
    reward: str
    propensity: Option
    probabilities: Option
    order: Option
    arms: Sequence[Any] | str | None
    offered: str | None
    offered_delimiter: str
    known_at: Option
    known_until: str | None
    waiting: str | float | None
    round: Option
    chosen: str | None
    unique: str | None
    user: str | None
    context: str | Sequence[str] | None
    missing_context: str | None
    keep_prob: Option
    constant_within: str | Sequence[str] | None
    prior: Any
    missing: str | float
    rewards: Mapping[Any, float] | None
    format: str | None
    table: str | None
    delimiter: str | None
    decimal: str
    probability_tolerance: float | None


class LogOptions(OneLogOptions, total=False):
    """With the option that makes several logs of one source."""

    by: str | Sequence[str] | None


DEFAULTS: dict[str, Any] = {
    **dict.fromkeys(LogOptions.__annotations__),
    "arm": "arm", "reward": "reward", "offered_delimiter": "|", "missing": "error", "decimal": ".",
}  # fmt: skip

KINDS = {
    **each(PLAIN, "arm", "reward", "propensity", "order", "known_at", "known_until", "waiting",
           "round", "unique", "user", "keep_prob", "decimal"),
    "probabilities": TEXT_OR_FALSE, "offered": TEXT, "chosen": TEXT, "format": TEXT,
    "table": TEXT, "context": NAMES, "by": NAMES, "constant_within": NAMES, "missing_context": TEXT,
    "rewards": MAPPING,
}  # fmt: skip


def with_log_options[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """Let a function that takes `LogOptions` show each of them, with its default."""
    own = inspect.signature(function)
    keyword = inspect.Parameter.KEYWORD_ONLY
    shared = [
        inspect.Parameter(name, keyword, default=DEFAULTS[name], annotation=kind)
        for name, kind in LogOptions.__annotations__.items()
    ]
    parameters = [p for p in own.parameters.values() if p.kind is not p.VAR_KEYWORD]
    signature = own.replace(parameters=[*parameters[:1], *shared, *parameters[1:]])
    function.__signature__ = signature  # type: ignore[attr-defined]  # read by inspect
    return function
