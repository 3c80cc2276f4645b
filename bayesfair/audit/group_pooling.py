"""What the regrets of several logs have in common: partial pooling, no log dropped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bayesfair.base.estimates import Z95
from bayesfair.base.shown import number
from bayesfair.kernels.laws.pooled_normals import pooled

__all__ = ["pooled_line", "pooled_numbers"]

_SCALE = 0.25  # of the spread: a regret per round lies between 0 and 1
_QUESTIONS = {"subjective": "under the beliefs", "objective": "under the true rewards"}


def pooled_numbers(groups: Mapping[str, Any], *, each: bool) -> dict[str, Any]:
    """Return the regret per round over groups, and of `each` of them, for both questions.

    None where fewer than two groups have an estimate with an interval. The error of one is the
    length of its 95 % interval by 3.92; an exact one counts as known to a thousandth of the scale
    of the spread.
    """
    found: dict[str, Any] = {}
    for name in _QUESTIONS:
        parts = {label: audit["calibration"].get(name) or {} for label, audit in groups.items()}
        known = {
            label: [part[key] for key in ("regret_per_round", "lower", "upper")]
            for label, part in parts.items()
            if all(
                isinstance(part.get(key), float) for key in ("regret_per_round", "lower", "upper")
            )
        }
        found[name] = None
        if len(known) < 2:
            continue
        value, low, high = np.array(list(known.values())).T
        law = pooled(value, np.maximum(high - low, 0.0) / (2 * Z95), _SCALE, each=each)
        found[name] = {
            "n": len(known),
            "n_without": len(groups) - len(known),
            "prior": f"spread ~ half-normal({_SCALE:g}), mean flat",
            "mean": _limits(law.mean),
            "spread": _limits(law.spread),
            "groups": {
                label: _limits(row) for label, row in zip(known, law.groups, strict=True)
            } if each else None,
        }  # fmt: skip
    return found


def _limits(row: Any) -> dict[str, float]:
    """Return a mean with its limits; a regret lies above 0."""
    mean, lower, upper = (max(float(x), 0.0) for x in row)
    return {"mean": mean, "lower": lower, "upper": upper}


def pooled_line(pooled: Mapping[str, Any]) -> list[str]:
    """Return the line of the report: under the beliefs, else under the true rewards."""
    for name, words in _QUESTIONS.items():
        if (found := pooled[name]) is not None:
            mean, spread = (
                f"{number(x['mean'])} [{number(x['lower'])}, {number(x['upper'])}]"
                for x in (found["mean"], found["spread"])
            )
            without = f" ({found['n_without']} without)" if found["n_without"] else ""
            return [
                f"Regret per round {words}, {found['n']} logs partially pooled{without}: mean "
                f"{mean}, spread {spread}"
            ]
    return []
