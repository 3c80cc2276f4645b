"""``--value`` and ``--value-rule`` of ``bayesfair audit``: what other rules would have earned."""

from __future__ import annotations

from typing import Any

from bayesfair.cli.options import Values
from bayesfair.cli.tools import reading, show_progress
from bayesfair.errors import BayesfairError, DataError, OptionError

__all__ = ["ValueAsked"]

_NEED_AUDIT = ("save", "report", "rounds", "prior_sensitivity", "fail_on", "max_regret_per_round")
_OF_RULES = ("arm", "reward", "format", "table", "delimiter", "decimal")


class ValueAsked:
    """The value of rules, where it was asked for: found before the audit, shown behind it.

    Parameters
    ----------
    output : Values
        What was asked: `value` names rules, `value_rule` patterns of columns.
    question : Values
        Options of the audit; those of the beliefs are shared.
    columns : Values
        How the log is read; the probabilities of rules are read in the same way.
    source : path
        The log.
    resumed : bool
        Whether an earlier audit goes on, whose rounds are not at hand: refused.

    Attributes
    ----------
    found : PolicyValue, dict of label to PolicyValue, or None
    """

    def __init__(
        self, output: Values, question: Values, columns: Values, source: Any, *, resumed: bool
    ) -> None:
        self._output, self._question, self._columns = output, question, columns
        self._source = source
        self.found: Any = None
        self._flags = [flag for flag, given in (("--value", output.value),
                                                ("--value-rule", output.value_rule))
                       if given is not None]  # fmt: skip
        if self._flags and resumed:
            raise OptionError(
                f"{self._flags[0]} needs the whole log, and with --resume only what followed is "
                "at hand. Leave one of them out.",
                kind="unused_option",
                column=self._flags[0].strip("-").replace("-", "_"),
            )
        if output.value_rule is not None and columns.round:
            raise OptionError(
                "--value-rule needs a row for each round, and --round says that there is one for "
                "each arm. Leave one of them out.",
                kind="excluded", column="value_rule",
            )  # fmt: skip

    def of(self, data: Any) -> None:
        """Find the values on a log, so that one that cannot tell them is refused at once."""
        if not self._flags:
            return
        from bayesfair.readers import read_rule
        from bayesfair.value import policy_value
        from bayesfair.value.rules import rules_named

        shared = ("family", "prior", "support", "from_round")
        options = {name: getattr(self._question, name) for name in shared}
        reads = {name: getattr(self._columns, name) for name in _OF_RULES}
        flags = " and ".join(self._flags)
        try:
            rules = {} if self._output.value is None else rules_named(self._output.value)
            for pattern in self._output.value_rule or ():
                flags = f"--value-rule {pattern}"
                with reading(self._source):
                    rules[pattern] = read_rule(self._source, pattern, **reads)
            flags = " and ".join(self._flags)
            self.found = policy_value(data, rules, **options, progress=show_progress())
        except BayesfairError as error:
            told = str(error).replace(" (option probabilities)", "")
            raise error.with_message(f"{flags}: {told}") from None

    def alone(self, error: DataError) -> tuple[dict[str, Any], str]:
        """Return the values without an audit, of a thinned log; of others raise its error."""
        more = any(getattr(self._output, name) not in (None, False) for name in _NEED_AUDIT)
        if error.kind != "thinned" or self.found is None or more:
            raise error
        from bayesfair.base.shown import wrapped
        from bayesfair.base.value_text import render_value
        from bayesfair.value import value_numbers

        numbers = value_numbers(self.found)
        why = "\n".join(wrapped(f"No audit: {error}", "", 90))
        return {"value": numbers}, f"{render_value(numbers)}\n\n{why}"

    def kept_in(self, result: Any) -> Any:
        """Return an audit, or those of several logs, with the values in it, as it is saved."""
        if self.found is None:
            return result
        from bayesfair.audit.group import with_each
        from bayesfair.audit.record import with_extra

        return with_each(
            result, self.found, lambda one, value: with_extra(one, "value", value.to_dict())
        )

    def beside(self, numbers: dict[str, Any], text: str) -> tuple[dict[str, Any], str]:
        """Return the numbers and the report of an audit with the values beside them."""
        if self.found is None:
            return numbers, text
        from bayesfair.base.value_text import render_value
        from bayesfair.value import value_numbers

        found = value_numbers(self.found)
        return {**numbers, "value": found}, f"{text}\n\n{render_value(found)}"
