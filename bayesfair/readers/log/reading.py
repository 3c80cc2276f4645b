"""How one log is read: every option, checked, and which column of the source plays which part."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

from bayesfair.base import numerals
from bayesfair.base.checks import check_choice, check_in_range
from bayesfair.base.labels import by_label, labels_of
from bayesfair.base.notices import Notice
from bayesfair.base.options import LOG_OPTIONS, given, refuse_without_effect
from bayesfair.errors import OptionError
from bayesfair.readers.files.joined import with_joined
from bayesfair.readers.files.tables import Source, open_source
from bayesfair.readers.log.columns import Layout, Roles, names_in
from bayesfair.readers.log.constant_rules import with_assembled_rule
from bayesfair.readers.log.first_rows import layout_of
from bayesfair.readers.log.long_form import one_row_per_round
from bayesfair.readers.log.options import DEFAULTS
from bayesfair.readers.log.roles import for_arms, refuse_two_roles
from bayesfair.readers.log.totals import refuse_totals
from bayesfair.readers.values.times import duration

__all__ = [
    "Reading",
    "bad_waiting",
    "group_priors",
    "guess_columns",
    "open_log",
    "parse_missing",
    "reading_of",
]


_WELL_KNOWN = {
    "arm": ("item_id", "action", "arm_id", "chosen_arm", "variant", "treatment"),
    "reward": ("click", "clicked", "outcome", "conversion", "converted"),
}
"""Names under which logs are published, where they leave no choice."""


@dataclass(frozen=True, eq=False)
class Reading:
    """How a log, or one group of it, is read.

    Attributes
    ----------
    source : Source
        The rows.
    layout : Layout
        Which column plays which part.
    name : str
        What messages and reports call the log.
    arms : tuple of str or None
        Labels that are known before a row is read.
    by_group : bool
        Each group has the arms that it chose or had on offer.
    missing : str or float
        What a missing reward means.
    tolerance : float or None
        Of the sums of probabilities.
    decimal : str
        Decimal sign of text.
    rewards : mapping or None
        Rewards by their word.
    offered_delimiter : str
        What separates the labels in a column that lists the arms on offer.
    prior : mapping, array or None
        Outcomes before the log.
    missing_context : str or None
        Level of a context that is missing; None = refused.
    waiting : str, float or None
        How long a reward may be missing until it is 0: a duration, or a number of `order`.
    group : str or None
        The only group to be read.
    """

    source: Source
    layout: Layout
    name: str
    arms: tuple[str, ...] | None
    by_group: bool
    missing: str | float
    tolerance: float | None
    decimal: str
    rewards: Mapping[Any, float] | None
    offered_delimiter: str
    prior: Any
    missing_context: str | None = None
    waiting: str | float | None = None
    group: str | None = None

    def of_group(self, group: str, priors: Mapping[str, Any]) -> Reading:
        """Return the same of one group."""
        name = f"{self.source.name}, {self.layout.by}={group}"
        return replace(self, name=name, prior=priors.get(group), group=group)


def reading_of(
    function: Callable[..., Any], source: Any, options: Mapping[str, Any], *, parts: bool = False
) -> Reading:
    """Return how a source is read; nothing but its header and first rows are looked at.

    Parameters
    ----------
    function : callable
        The reader, whose defaults tell what was given.
    source : object
        The log.
    options : mapping
        Those of `LogOptions` that were given.
    parts : bool
        Whether it is read in parts.

    Raises
    ------
    DataError, ArmError, OptionError
        As `read_history`.
    """
    asked = DEFAULTS | dict(options)
    if asked["decimal"] not in (".", ","):
        raise OptionError(f"decimal={asked['decimal']!r} is not known. Options: '.', ','.")
    tolerance, mark = asked["probability_tolerance"], asked["offered_delimiter"]
    if tolerance is not None:
        check_in_range(tolerance, "probability_tolerance", 0.0, 0.5)
    if not isinstance(mark, str) or not mark:
        raise OptionError(f"offered_delimiter={mark!r} must be text, such as '|'.")
    missing = parse_missing(asked["missing"])
    by_group = isinstance(asked["arms"], str)
    if by_group and (asked["arms"] != "by_group" or not asked["by"]):
        raise OptionError(
            f'arms={asked["arms"]!r} must be a list of labels, or "by_group" together with by=.'
        )
    labels = asked["arms"] = None if by_group else _known_arms(asked["arms"])
    if (
        asked["by"] is not None
        and asked["prior"] is not None
        and not isinstance(asked["prior"], Mapping)
    ):
        raise OptionError("prior together with by= must be a mapping of group to prior.")
    opened = open_log(source, asked)
    notices = guess_columns(opened, asked)
    refuse_two_roles(asked, opened.header)
    split = tuple(dict.fromkeys(names_in(asked["by"])))
    if len(split) > 1:
        opened, asked["by"] = with_joined(opened, split, "by")
    else:
        asked["by"] = split[0] if split else None
    long = asked["round"] if isinstance(asked["round"], str) and asked["round"] else None
    if long:
        with opened.locating():
            opened, changed = one_row_per_round(opened, asked, parts=parts)
        asked |= changed
    layout, played = layout_of(opened, asked), split if len(split) > 1 else ()
    refuse_totals(opened, layout, DEFAULTS | dict(options))
    if within := tuple(names_in(asked["constant_within"])):
        with opened.locating():
            opened, changed = with_assembled_rule(opened, asked, layout, by_group=by_group)
        asked |= changed
        origin = layout.propensity
        layout = replace(
            layout_of(opened, asked), assembled=origin, within=within,
            partly=isinstance(asked["propensity"], str),
        )  # fmt: skip
        played += (*within, str(origin))
    layout = replace(layout, notices=(*notices, *layout.notices))
    if played:
        rest, watched = (tuple(c for c in names if c not in played)
                         for names in (layout.unused, layout.watched))  # fmt: skip
        kept = {name: layout.watched[name] for name in watched}
        columns = split if len(split) > 1 else ()
        layout = replace(layout, by_parts=columns, unused=rest, watched=kept)
    _refuse_unused(function, DEFAULTS | dict(options), opened, layout, long=bool(long))
    arms = labels if labels is not None else layout.arms_from_columns
    if arms is not None:
        layout, _ = for_arms(layout, arms, opened.name)
    if asked["decimal"] == ".":
        words = {layout.reward} if asked["rewards"] else set()
        opened = opened.with_numbers([c for c in layout.numbers if c not in words])
    return Reading(
        opened, layout, opened.name, arms, by_group, missing, tolerance, asked["decimal"],
        asked["rewards"], mark, asked["prior"], asked["missing_context"] or None,
        _waiting(asked, missing),
    )  # fmt: skip


def open_log(source: Any, asked: Mapping[str, Any]) -> Source:
    """Open the source of a log; `asked` are all options of its reader."""
    several = ("context", "by", "constant_within")
    roles = [role for role in (*Roles._fields[:-1], "chosen", "round") if role not in several]
    named = [str(asked[role]) for role in roles if asked[role]]
    named += [name for role in several for name in names_in(asked[role])]
    fields = [name.removesuffix(".{arm}") for name in named]
    return open_source(
        source, delimiter=asked["delimiter"], wanted=[asked["arm"], asked["reward"]],
        fields=fields, format=asked["format"], table=asked["table"],
    )  # fmt: skip


def guess_columns(source: Source, asked: dict[str, Any]) -> list[Notice]:
    """Take up well-known names where the default one is not there, and say so."""
    found = []
    for role, names in _WELL_KNOWN.items():
        there = [name for name in names if name in source.header]
        if asked[role] != DEFAULTS[role] or role in source.header or len(there) != 1:
            continue
        asked[role] = there[0]
        found.append(Notice(
            f"column {there[0]!r} was read as the {role}. If it is another, name it with "
            f"{role}=...",
            kind="column_guessed", column=there[0], value=role,
        ))  # fmt: skip
    return found


def parse_missing(value: Any) -> str | float:
    """Return one of the words, or the number that stands for a missing reward.

    Examples
    --------
    >>> parse_missing("drop"), parse_missing("0"), parse_missing(0.5)
    ('drop', 0.0, 0.5)
    """
    if not isinstance(value, bool):
        try:
            number = numerals.number(value.strip()) if isinstance(value, str) else float(value)
        except (TypeError, ValueError, OverflowError):
            number = None
        if number is not None and math.isfinite(number):
            return number
    return check_choice(value, "missing", ("error", "unobserved", "drop", "a number"))


def _waiting(asked: Mapping[str, Any], missing: str | float) -> str | float | None:
    """Return the waiting time that was asked for: a duration as it was written, or a number.

    Raises
    ------
    OptionError
        If it is neither, or stands beside another meaning of missing rewards.
    """
    given = asked["waiting"]
    if given is None or given is False or given == "":
        return None
    text = str(given)
    span = numerals.number(text.strip()) if duration(text) is None else duration(text)
    if span is None or not math.isfinite(span) or span <= 0 or given is True:
        raise bad_waiting(
            given, "must be a duration such as '7d' (s, min, h, d, w), or a number above 0"
        )
    if missing not in ("error", "unobserved"):
        raise bad_waiting(
            given, f"says what a missing reward means, and so does missing={missing!r}"
        )
    if asked["known_until"]:
        raise bad_waiting(
            given, "needs the rounds that may use each reward (known_at=), no known_until="
        )
    return text.strip() if duration(text) is not None else span


def bad_waiting(given: Any, why: str) -> OptionError:
    """Return the error of a waiting time that cannot be used."""
    return OptionError(
        f"waiting={given!r} {why}.", kind="bad_option", column="waiting", value=given
    )


def _known_arms(arms: Sequence[Any] | None) -> tuple[str, ...] | None:
    """Return the labels that a caller gives, cleaned as those of the log are."""
    if arms is None:
        return None
    if isinstance(arms, (Set, bytes)) or not isinstance(arms, Iterable):
        raise OptionError(f"arms={arms!r} must be a list of labels, in the order to be used.")
    labels = labels_of(arms)
    if not labels:
        raise OptionError("arms is empty; leave it out to use the labels seen.")
    return labels


def group_priors(reading: Reading, groups: Iterable[str]) -> dict[str, Any]:
    """Return the prior of each group that has one.

    Raises
    ------
    OptionError
        If it names a group that is not there, or one twice.
    """
    priors = by_label(reading.prior or {}, "group", "prior")
    known = set(groups)
    unknown = [g for g in priors if g not in known]
    if unknown:
        raise OptionError(
            f"prior names group {unknown[0]!r}, which column {reading.layout.by!r} does not have."
        )
    return priors


def _refuse_unused(
    function: Callable[..., Any],
    values: Mapping[str, Any],
    opened: Source,
    layout: Layout,
    *,
    long: bool,
) -> None:
    """Refuse options of a reader of logs that have no effect on the log at hand."""
    kinds = {"full"} if layout.probabilities else set()
    if long:
        kinds |= {"long", "text"}
    if layout.context:
        kinds |= {"context"}
    listing = [] if layout.offered_list is None else [layout.offered_list]
    if opened.holds_text(listing):
        kinds |= {"offered_text"}
    numbers = [layout.reward, layout.propensity, layout.order, layout.known_at, layout.known_until,
               layout.keep_prob]  # fmt: skip
    named = [column for column in numbers if column is not None]
    if opened.holds_text([*named, *layout.probabilities.values()]):
        kinds |= {"text"}
    asked = given(function, values)
    for name in ("delimiter", "table"):
        asked.pop(name, None)  # asked about when the source was opened
    refuse_without_effect(asked, kinds, LOG_OPTIONS, opened.name)
