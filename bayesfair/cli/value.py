"""``--value`` of ``bayesfair audit``: what other rules would have earned, beside the audit."""

from __future__ import annotations

from typing import Any

from bayesfair.cli.options import Values
from bayesfair.errors import BayesfairError, OptionError

__all__ = ["ValueAsked"]


class ValueAsked:
    """The value of rules, where it was asked for: found before the audit, shown behind it.

    Parameters
    ----------
    rules : list of str or None
        What was asked.
    question : Values
        Options of the audit; those of the beliefs are shared.
    resumed : bool
        Whether an earlier audit goes on, whose rounds are not at hand: refused.
    """

    def __init__(self, rules: list[str] | None, question: Values, *, resumed: bool) -> None:
        if rules is not None and resumed:
            raise OptionError(
                "--value needs the whole log, and with --resume only what followed is at hand. "
                "Leave one of them out.",
                kind="unused_option",
                column="value",
            )
        self._rules, self._question = rules, question
        self._found: dict[str, Any] | None = None

    def of(self, data: Any) -> None:
        """Find the values on a log, so that one that cannot tell them is refused at once."""
        if self._rules is None:
            return
        from bayesfair.value import PolicyValue, policy_value

        shared = ("family", "prior", "support", "from_round")
        options = {name: getattr(self._question, name) for name in shared}
        try:
            found = policy_value(data, self._rules, **options)
        except BayesfairError as error:
            raise error.with_message(f"--value: {error}") from None
        if isinstance(found, PolicyValue):
            self._found = found.to_dict()
        else:
            self._found = {"groups": {label: one.to_dict() for label, one in found.items()}}

    def beside(self, numbers: dict[str, Any], text: str) -> tuple[dict[str, Any], str]:
        """Return the numbers and the report of an audit with the values beside them."""
        if self._found is None:
            return numbers, text
        from bayesfair.value import render_value

        return {**numbers, "value": self._found}, f"{text}\n\n{render_value(self._found)}"
