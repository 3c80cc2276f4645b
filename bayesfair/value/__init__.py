"""What other rules would have earned on a logged history, beside how fair they would have been."""

from __future__ import annotations

from bayesfair.value.api import PolicyValue, RuleValue, policy_value
from bayesfair.value.estimates import Estimate
from bayesfair.value.text import render_value

__all__ = ["Estimate", "PolicyValue", "RuleValue", "policy_value", "render_value"]
