"""What other rules would have earned on a logged history, beside how fair they would have been."""

from __future__ import annotations

from bayesfair.value.api import policy_value, value_numbers
from bayesfair.value.estimates import Estimate
from bayesfair.value.result import PolicyValue, RuleValue
from bayesfair.value.text import MEANINGS, render_value, value_table

__all__ = [
    "MEANINGS", "Estimate", "PolicyValue", "RuleValue", "policy_value", "render_value",
    "value_numbers", "value_table",
]  # fmt: skip
