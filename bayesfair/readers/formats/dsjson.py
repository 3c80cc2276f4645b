"""Decisions as Vowpal Wabbit logs them (dsjson): one JSON object per decision, with its rule.

Actions are numbered from 1 in `a` and in `_label_Action`, from 0 in `_labelIndex`; `p` holds their
probabilities in the order of `a`. What is to be small there, the cost, is taken as reward = -cost.

What the rule saw stands in `c`: a path such as ``c.user.age`` names what is shared, and
``c._multi.2.topic.name`` what is said of the second action, ``c._multi.{arm}.topic.name`` of each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bayesfair.base.checks import listed
from bayesfair.base.notices import Notice
from bayesfair.errors import DataError
from bayesfair.readers.formats.json_records import plain_value, table_of_columns

__all__ = ["KEPT", "are_decisions", "check_paths", "decisions", "is_dsjson", "said_of"]

KEPT = "1 - pdrop"
"""Column of the chance that a line was kept, where some were left out."""


_MARKS = ("_skipLearn", "DeferredAction")
"""What a line may say of itself: columns that tell such lines from the others (by=...)."""

_DANGLING = (
    "an outcome without its decision (no 'a', no '_label_cost'). Join outcomes to their decisions, "
    "or leave the line out.", "dangling_outcome",
)  # fmt: skip


def is_dsjson(record: Mapping[str, Any]) -> bool:
    """Whether a record is one of Vowpal Wabbit's."""
    return "_label_cost" in record or {"a", "p", "c"} <= set(record) or "_outcomes" in record


def are_decisions(records: Sequence[Mapping[str, Any]]) -> bool:
    """Whether they are its lines: the first is one, but for outcomes that lost their decision."""
    first = (record for record in records if is_dsjson(record) or "EventId" not in record)
    return is_dsjson(next(first, {}))


def decisions(
    records: Sequence[Mapping[str, Any]], name: str, before: int = 0, fields: Sequence[str] = ()
) -> Any:
    """Return the decisions as a table: arm, reward, p_{action} of every action, and stamps.

    Parameters
    ----------
    records : sequence of mappings
        As `is_dsjson` knows them.
    name : str
        What messages call the source.
    before : int
        Rows that stand before these.
    fields : sequence of str
        Paths of what the rule saw, each a column.

    Raises
    ------
    DataError
        Naming the first row that is no single decision, or contradicts itself.
    """
    rows: list[dict[str, Any]] = []
    arms: set[int] = set()
    paths = [field for field in fields if field.startswith("c.")]
    seen: dict[str, list[Any]] = {}
    for at, raw in enumerate(records, start=before):
        record = plain_value(raw, name, "dsjson", at)

        def refuse(why: str, kind: str = "bad_dsjson", at: int = at) -> DataError:
            return DataError(f"row {at + 1} of {name}: {why}", kind=kind, row=at + 1, source=name)

        if _several_slots(record):
            raise refuse(
                "a decision of several slots. Each slot is a log of its own: write one row for "
                "each, and audit them apart (by=...).", "several_slots",
            )  # fmt: skip
        if "a" not in record and "_label_cost" not in record:
            outcome = {"p", "Version", "EventId"} & set(record)
            raise refuse(*(_DANGLING if outcome else (
                f"no decision of Vowpal Wabbit (dsjson): its keys are {listed(record, 6)}. One "
                "file holds one format.", "mixed_formats",
            )))  # fmt: skip
        drop = record.get("pdrop")
        if drop is not None and not (_is_real(drop) and 0 <= drop < 1):
            raise refuse(
                f"pdrop {drop!r} is no chance to be left out, from 0 on and below 1, of a line "
                "that is there."
            )
        rows.append(_decision(record, refuse))
        arms.update(rows[-1]["law"])
        for field, value in _seen(record.get("c"), paths):
            if isinstance(value, (dict, list)):
                raise refuse(
                    f"{field!r} holds {str(value)[:60]}: name what is in it.", "nested_context"
                )
            column = seen.setdefault(field, [])
            column += [None] * (at - before - len(column)) + [value]
    columns: dict[str, list[Any]] = {
        "arm": [str(row["arm"]) for row in rows],
        "reward": [row["reward"] for row in rows],
        **{f"p_{arm}": [row["law"].get(arm) for row in rows] for arm in sorted(arms)},
    }
    if not arms:
        columns["propensity"] = [row["chance"] for row in rows]
    columns |= _beside(records)
    for field, values in seen.items():
        if any(value is not None for value in values):
            columns[field] = values + [None] * (len(rows) - len(values))
    return table_of_columns(columns, name, before)


def _beside(records: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return the columns of what lines say beside their decision, where one of them does."""
    found: dict[str, list[Any]] = {}
    if any(record.get("pdrop") is not None for record in records):
        found[KEPT] = [1 - float(record.get("pdrop") or 0) for record in records]
    for key in ("Timestamp", "EventId"):
        if any(key in record for record in records):
            found[key.lower()] = [record.get(key) for record in records]
    for key in _MARKS:
        if any(record.get(key) not in (None, False) for record in records):
            found[key] = [str(record.get(key, False)) for record in records]
    return found


def _seen(shown: Any, paths: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Yield what paths name in what was shown to the rule: of every action where they ask so."""
    for path in paths:
        keys = path.split(".")[1:]
        if "{arm}" not in keys:
            yield path, _at(shown, keys)
            continue
        place = keys.index("{arm}")
        actions = _at(shown, keys[:place])
        for i, action in enumerate(actions if isinstance(actions, list) else (), start=1):
            yield path.replace("{arm}", str(i)), _at(action, keys[place + 1 :])


def _at(value: Any, keys: Sequence[str]) -> Any:
    """Return what lies at a path; actions are counted from 1. None where nothing does."""
    for i, key in enumerate(keys):
        if isinstance(value, list):
            at = int(key) - 1 if key.isascii() and key.isdigit() else -1
            value = value[at] if 0 <= at < len(value) else None
        elif not isinstance(value, dict):
            return None
        elif key not in value and (whole := ".".join(keys[i:])) in value:
            return value[whole]  # a name with a dot in it
        else:
            value = value.get(key)
    return value


def _several_slots(record: Mapping[str, Any]) -> bool:
    law = record.get("p")
    several = isinstance(law, list) and not {list, dict}.isdisjoint(map(type, law))
    return "_outcomes" in record or several


def _shown(value: Any, path: str = "c") -> list[str]:
    """Return the paths of what was shown to the rule in a decision."""
    if isinstance(value, list):
        return _shown(value[0], f"{path}.{{arm}}") if value and path == "c._multi" else []
    if not isinstance(value, dict):
        return [path]
    return [one for key, inside in value.items() for one in _shown(inside, f"{path}.{key}")]


def check_paths(fields: Sequence[str], columns: Sequence[str], first: Any, name: str) -> None:
    """Raise where a path names nothing in any decision.

    Raises
    ------
    DataError
        Naming what the first decision shows.
    """
    for path in fields:
        start = path.split("{arm}")[0]
        if path.startswith("c.") and not any(column.startswith(start) for column in columns):
            there = listed(_shown(first.get("c", {})), 12)
            raise DataError(
                f"no decision of {name} has {path!r}. The first one shows: {there or 'nothing'}.",
                kind="missing_column", column=path, source=name,
            )  # fmt: skip


def said_of(n: int, first: Any = None) -> Notice:
    """Say how `n` decisions were read, and what the `first` of them showed to the rule."""
    there = _shown(first.get("c", {})) if isinstance(first, Mapping) else []
    saw = f" What the rule saw can be its context=: {listed(there, 6)}." if there else ""
    return Notice(
        "Decisions of Vowpal Wabbit (dsjson) were read: actions are called by their number, "
        f"counted from 1, and the reward is minus the cost.{saw}",
        kind="cost_as_reward", column="_label_cost", n=n,
    )  # fmt: skip


def _decision(record: Mapping[str, Any], refuse: Any) -> dict[str, Any]:
    """Return arm, reward, chance and law of one decision."""
    action: Any = record.get("_label_Action")
    index = record.get("_labelIndex")
    order, law = record.get("a"), record.get("p")
    if not all(part is None or isinstance(part, list) for part in (order, law)):
        raise refuse("'a' and 'p' are lists, of actions and of their probabilities.")
    for place in [] if index is None else [index]:
        if not _is_whole(place, 0):
            raise refuse(f"_labelIndex {place!r} is no number from 0 on.")
        action = place + 1 if action is None else action
    if action is None and order:
        action = order[0]
    if not _is_whole(action, 1):
        raise refuse(f"the action {action!r} is no number from 1 on.")
    if index is not None and index + 1 != action:
        raise refuse(
            f"_labelIndex {index} (counted from 0) and _label_Action {action} (from 1) are two "
            "actions."
        )
    found: dict[int, float] = {}
    if order is not None and law is not None:
        whole = (
            {int}.issuperset(map(type, order)) and all(0 < a < 2**53 for a in order)
            and ({float}.issuperset(map(type, law)) or all(map(_is_real, law)))
        )  # fmt: skip
        if not whole or len(order) != len(law) or len(set(order)) < len(order):
            raise refuse(f"'a' {order} and 'p' {law} do not pair actions, from 1 on, with chances.")
        found = dict(zip(order, law, strict=True))
        if action not in found:
            raise refuse(f"the action {action} is not among those on offer, 'a' {order}.")
    chance = record.get("_label_probability", found.get(action))
    if chance is not None and not _is_real(chance):
        raise refuse(f"_label_probability {chance!r} is no number.")
    if found and chance is not None and abs(found[action] - chance) > 1e-5:
        raise refuse(
            f"_label_probability is {chance}, but 'p' gives the action {action} {found[action]}."
        )
    cost = record.get("_label_cost")
    if cost is not None and not _is_real(cost):
        raise refuse(f"_label_cost {cost!r} is no number.")
    reward = None if cost is None else 0.0 - cost
    return {"arm": action, "reward": reward, "chance": chance, "law": found}


def _is_whole(value: Any, least: int) -> bool:
    return type(value) is int and least <= value < 2**53


def _is_real(value: Any) -> bool:
    return type(value) is float or (type(value) is int and abs(value) < 2**53)
