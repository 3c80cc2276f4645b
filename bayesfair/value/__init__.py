"""What other rules would have earned on a logged history, beside how fair they would have been."""

from __future__ import annotations

from bayesfair.value.api import policy_value, value_numbers
from bayesfair.value.estimates import Estimate
from bayesfair.value.result import PolicyValue, RuleValue

__all__ = ["Estimate", "PolicyValue", "RuleValue", "policy_value", "value_numbers"]
