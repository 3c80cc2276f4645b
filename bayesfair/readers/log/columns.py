"""Which column of a source plays which part; one rule for what is taken up by itself.

An option names a column that must exist. None stands for the default name, *used if it is there*
(`propensity`, `p_{arm}`, `timestamp`, `known_at`; nothing else has one). False or "" means: do not
use it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from bayesfair.base.checks import listed
from bayesfair.base.labels import clean_label, text_of
from bayesfair.base.notices import Notice
from bayesfair.errors import ArmError, DataError, OptionError
from bayesfair.readers.files.headers import missing_column
from bayesfair.readers.formats.dsjson import KEPT
from bayesfair.readers.values.stamps import Look

__all__ = [
    "Layout",
    "Option",
    "Roles",
    "names_in",
    "not_used",
    "resolve_layout",
    "rule_as_context",
]

PROBABILITIES, PROPENSITY, ORDER = "p_{arm}", "propensity", "timestamp"
KNOWN_AT = "known_at"
Option = str | bool | None


class Roles(NamedTuple):
    """What a caller says of the parts of columns, and the arms; see `read_history`."""

    arm: str
    reward: str
    propensity: Option = None
    probabilities: Option = None
    order: Option = None
    by: str | None = None
    offered: str | None = None
    known_at: Option = None
    known_until: str | None = None
    unique: str | None = None
    user: str | None = None
    context: str | Sequence[str] | None = None
    keep_prob: Option = None
    arms: Sequence[str] | None = None


@dataclass(frozen=True)
class Layout:
    """Columns by their part.

    Attributes
    ----------
    arm, reward : str
        The choice and what it paid.
    propensity, order, by, known_at, known_until, unique, user, keep_prob : str or None
        None = the source has none, or it is not to be used.
    probabilities, offered : dict of str to str
        Label -> column, for patterns such as `p_{arm}`; empty = none.
    offered_list : str or None
        A column that lists the arms on offer.
    pattern : str
        Pattern of the probability columns, for messages.
    spare : str or None
        A propensity column that is not used, only compared with the probabilities of all arms.
    notices : tuple of str
        What was taken up or left aside by itself.
    by_parts : tuple of str
        The columns that `by` joins, where it joins several.
    context : tuple of str
        Columns of what the rule saw.
    context_of_arms : dict of str to dict
        Patterns among them: label -> column.
    withheld : dict of str to str
        Label -> column of context that the pattern of probabilities names too.
    unused : tuple of str
        Columns of the source that play no part, as they stand in it.
    nested, nested_labels : str or None
        The one column whose records or lists hold what `probabilities` names, and the one that
        lists whose the numbers of its lists are.
    lists_in_order : bool
        Whether lists in it that nothing beside them labels are in the order of the arms: where the
        caller gave that.
    assembled, within : str or None, tuple of str
        The propensity that the rule was assembled from, and within what it was constant.
    partly : bool
        Whether it was assembled in part: `probabilities` holds those that are known.
    watched : dict of str to Look
        Unused columns that look like the order of the rounds, and what they look like.
    """

    arm: str
    reward: str
    propensity: str | None = None
    order: str | None = None
    by: str | None = None
    by_parts: tuple[str, ...] = ()
    known_at: str | None = None
    known_until: str | None = None
    unique: str | None = None
    user: str | None = None
    keep_prob: str | None = None
    probabilities: dict[str, str] = field(default_factory=dict)
    offered: dict[str, str] = field(default_factory=dict)
    offered_list: str | None = None
    pattern: str = PROBABILITIES
    spare: str | None = None
    notices: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    nested: str | None = None
    nested_labels: str | None = None
    lists_in_order: bool = False
    watched: dict[str, Look] = field(default_factory=dict)
    context: tuple[str, ...] = ()
    context_of_arms: dict[str, dict[str, str]] = field(default_factory=dict)
    withheld: dict[str, str] = field(default_factory=dict)
    assembled: str | None = None
    within: tuple[str, ...] = ()
    partly: bool = False

    @property
    def columns(self) -> list[str]:
        """Every column to be read, each once."""
        single = (
            self.arm, self.reward, self.propensity, self.order, self.by, self.known_at,
            self.known_until, self.unique, self.user, self.keep_prob, self.offered_list, self.spare,
            self.nested, self.nested_labels,
        )  # fmt: skip
        used = [c for c in single if c is not None]
        parts = () if self.nested else self.probabilities.values()
        several = (*parts, *self.offered.values(), *self.watched, *self.context)
        return list(dict.fromkeys([*used, *several]))

    @property
    def chances(self) -> bool:
        """Whether anything of the rule is there."""
        return bool(self.probabilities or self.propensity)

    @property
    def labels(self) -> list[str]:
        """Columns that hold labels: few different values in many rows."""
        return [c for c in (self.arm, self.by, *self.context) if c is not None]

    @property
    def numbers(self) -> tuple[str, ...]:
        """Columns that are read as numbers, and as nothing else."""
        chances = () if self.nested else self.probabilities.values()
        others = replace(self, reward=self.arm, propensity=None, probabilities={}).columns
        wanted = (self.reward, self.propensity, *chances)
        return tuple(c for c in dict.fromkeys(wanted) if c is not None and c not in others)

    @property
    def arms_from_columns(self) -> tuple[str, ...] | None:
        """Labels that the columns themselves name, without looking at any row."""
        return tuple(self.probabilities or self.offered) or None


def resolve_layout(header: Sequence[str], source: str, roles: Roles) -> Layout:
    """Match options against a header; see the module for the rule.

    Raises
    ------
    DataError
        If a column that was asked for is not there (naming the closest), or two are one arm.
    ArmError
        If one of `arms` has no column although the others have.
    """
    arm, reward, propensity, probabilities, order, by, offered, known_at, known_until, *_ = roles
    arms = roles.arms

    def find(column: str, option: str) -> str:
        name = (text_of(column) or "").strip()
        if option == "context" and name == own:
            raise rule_as_context(name)
        if name not in header:
            raise missing_column(name, option, source, header)
        return name

    def optional(value: Option, option: str, default: str | None = None) -> str | None:
        if value is None:
            return default if default in header else None
        if value is True:
            raise OptionError(f"{option}=True: name the column, or pass False to use none.")
        return find(value, option) if value else None

    def pattern_of(value: Option, option: str, default: str | None = None) -> dict[str, str]:
        pattern = default if value is None else value
        if not pattern:
            return {}
        if pattern is True or "{arm}" not in pattern:
            raise OptionError(f"{option}={value!r} must contain {{arm}}, for example 'p_{{arm}}'.")
        found = _matching(header, pattern, source)
        if not found and value is not None:
            raise DataError(
                f"{source} has no columns {pattern!r} (option {option}). Its columns are "
                f"{listed(header, 12)}. Write the pattern with {{arm}} in the place of the label."
            )
        return found

    notices = []
    chosen = find(arm, "arm")
    full = pattern_of(probabilities, "probabilities", PROBABILITIES)
    pattern = probabilities if isinstance(probabilities, str) and probabilities else PROBABILITIES
    own = pattern.strip() if full else ""  # of the rule
    each = {
        name: pattern_of(name, "context")
        for name in names_in(roles.context)
        if "{arm}" in name and name not in header and name.strip() != own
    }
    seen = [
        column
        for name in names_in(roles.context)
        for column in (each[name].values() if name in each else [find(name, "context")])
    ]
    named = (arm, reward, propensity, order, by, known_at, known_until, roles.keep_prob)
    taken = {(text_of(c) or "").strip() for c in named if c}.union(seen)
    withheld = {label: column for label, column in full.items() if column in seen}
    full = {label: column for label, column in full.items() if column not in taken}
    marks: dict[str, str] = {}
    listing = None
    if offered and "{arm}" in offered:
        marks = pattern_of(offered, "offered")
    elif offered:
        listing = find(offered, "offered")
    matched = {*full.values(), *marks.values()}  # a notice says which of them are left aside
    if arms is not None:
        full, note = _only(full, arms, "probability")
        notices += note
        marks, note = _only(marks, arms, "offer")
        notices += note
    elif full and marks and set(full) != set(marks):
        odd = sorted(set(full) ^ set(marks))
        raise ArmError(
            f"{source}: the probability columns and the offer columns name different arms "
            f"({listed(odd)} only in one of them). Give both for every arm."
        )
    chance = optional(propensity, "propensity", PROPENSITY)
    spare = None
    if full and chance and propensity is None:
        spare = chance
        notices.append(not_used(chance))
        chance = None
    if known_at and known_until:
        raise OptionError("give known_at or known_until, not both.")
    found = Layout(
        arm=chosen,
        reward=find(reward, "reward"),
        propensity=chance,
        order=optional(order, "order", ORDER),
        by=optional(by, "by"),
        known_at=optional(known_at, "known_at", None if known_until else KNOWN_AT),
        known_until=optional(known_until, "known_until"),
        unique=optional(roles.unique, "unique"),
        user=optional(roles.user, "user"),
        keep_prob=optional(roles.keep_prob, "keep_prob", KEPT),
        probabilities=full,
        offered=marks,
        offered_list=listing,
        pattern=pattern,
        spare=spare,
        notices=tuple(notices),
        context=tuple(dict.fromkeys(seen)),
        context_of_arms=each,
        withheld=withheld,
    )
    used = matched.union(found.columns)
    return replace(found, unused=tuple(column for column in header if column not in used))


def not_used(propensity: str) -> Notice:
    """Return the notice on a probability of the chosen arm beside those of all arms."""
    return Notice(
        f"column {propensity!r} was not used: the probabilities of all arms are there as well.",
        kind="propensity_unused", column=propensity,
    )  # fmt: skip


def rule_as_context(name: str) -> OptionError:
    """Return the error of a context that the rule's own probabilities are named as."""
    return OptionError(
        f"context={name!r} names the rule's own probabilities, which are no context: they follow "
        "from what the rule saw. Leave it out; if the columns hold something else, pass "
        "probabilities=False, or name those that are the rule's with probabilities=...",
        kind="two_roles", column="context", value=name,
    )  # fmt: skip


def names_in(context: str | Sequence[str] | None) -> list[str]:
    """Return the names of the columns of the context, as one or several were given."""
    if context is None or isinstance(context, str):
        return [context] if context else []
    return list(context)


def _matching(header: Sequence[str], pattern: str, source: str) -> dict[str, str]:
    before, after = pattern.strip().split("{arm}", 1)
    regex = re.compile(f"{re.escape(before)}(.+){re.escape(after)}", re.DOTALL)
    found: dict[str, str] = {}
    for column in header:
        match = regex.fullmatch(column)
        label = clean_label(match.group(1)) if match else ""
        if not label:
            continue
        if label in found:
            raise DataError(
                f"{source}: columns {found[label]!a} and {column!a} are both arm "
                f"{label!r} (blanks and the encoding of letters apart). Rename or remove one."
            )
        found[label] = column
    return found


def _only(
    found: dict[str, str], arms: Sequence[str], kind: str
) -> tuple[dict[str, str], list[str]]:
    """Keep the columns of the given arms, in their order; say what is left aside."""
    if not found:
        return found, []
    lost = [a for a in arms if a not in found]
    if lost:
        raise ArmError(
            f"arms= names {listed(lost)}, which have no {kind} column among "
            f"{listed(found.values())}. Add the columns or remove the arms."
        )
    wanted = set(arms)
    spare = [column for label, column in found.items() if label not in wanted]
    note = Notice(
        f"{kind} columns of arms that are not in `arms` were not used: {listed(spare)}.",
        kind="arms_left_out",
        column="arms",
        n=len(spare),
    )
    return {a: found[a] for a in arms}, [note] if spare else []
