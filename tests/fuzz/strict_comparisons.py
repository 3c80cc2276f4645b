"""The same for duels, counts, rankings, JSON arenas and PrefLib ballots."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from typing import Any

from strict_reading import Refused, Row, Unheld, content, label, need, number, parsed_json, text_of

__all__ = ["arena", "ballots", "duels", "long_rankings", "wins"]


# -- comparisons -----------------------------------------------------------------------------------

_OUTCOMES = {
    "left": "left", "model_a": "left", "right": "right", "model_b": "right", "tie": "tie",
    "tie (bothbad)": "tie", "both_bad": "tie",
}  # fmt: skip


def duels(rows: list[Row], names: tuple[str, str, str], weight: str | None = None) -> Counter[Any]:
    """Return the weight of every (left, right, outcome); an item against itself says nothing."""
    found: Counter[Any] = Counter()
    for row in rows:
        left, right, word = (label(row.get(name)) for name in names)
        need(bool(left and right and word), "something is missing")
        need(word in _OUTCOMES, f"{word!r} is no outcome")
        count = 1.0 if weight is None else number(row.get(weight))
        need(math.isfinite(count) and count >= 0, "no weight")
        if left != right and count:
            found[left, right, _OUTCOMES[word]] += count
    need(sum(found.values()) <= 2.0**53, "more than can be counted")
    return found


def wins(rows: list[Row]) -> Counter[Any]:
    """Return the same of a table of wins and losses."""
    found: Counter[Any] = Counter()
    for row in rows:
        left, right = label(row["left"]), label(row["right"])
        need(bool(left and right), "something is missing")
        for column, outcome in (("wins", "left"), ("losses", "right")):
            count = number(row[column])
            need(math.isfinite(count) and count >= 0, "no count")
            if left != right and count:
                found[left, right, outcome] += count
    need(sum(found.values()) <= 2.0**53, "more than can be counted")
    return found


def long_rankings(rows: list[Row]) -> Counter[Any]:
    """Return the number of every ordering: places of tied items, best first."""
    ballots: dict[str, dict[str, float]] = {}
    for row in rows:
        who, item, rank = label(row["ranking"]), label(row["item"]), number(row["rank"])
        need(who != "" and item != "" and math.isfinite(rank), "something is missing")
        need(item not in ballots.setdefault(who, {}), "an item twice")
        ballots[who][item] = rank
    return Counter(_places(ranks) for ranks in ballots.values() if len(ranks) > 1)


def _places(ranks: dict[str, float]) -> tuple[frozenset[str], ...]:
    steps = sorted(set(ranks.values()))
    return tuple(frozenset(i for i, r in ranks.items() if r == step) for step in steps)


# -- JSON ------------------------------------------------------------------------------------------


def _scalar(value: Any) -> Any:
    """Return a value of JSON as text, as a table would hold it."""
    need(not isinstance(value, (dict, list, Unheld)), "no simple value")
    return value if value is None or isinstance(value, str) else json.dumps(value)


def arena(data: bytes, names: tuple[str, ...]) -> list[Row]:
    """Return the records of JSON lines, of an array of objects, or of columns of values by row."""
    text = text_of(content(data))
    lines = [line for line in text.split("\n") if line.strip(" \t\r")]
    need(lines != [], "empty")
    try:
        first = parsed_json(lines[0])
    except Refused:
        first = None
    records: Any
    if isinstance(first, dict) and not all(isinstance(v, dict) for v in first.values()):
        records = [parsed_json(line) for line in lines]
    else:
        records = parsed_json(text)
    if isinstance(records, dict):
        columns = list(records.values())
        if columns and not all(isinstance(c, dict) for c in columns):
            records = {name: {"0": value} for name, value in records.items()}
            columns = list(records.values())
        need(columns != [] and all(isinstance(c, dict) for c in columns), "no records")
        need(all(set(c) == set(columns[0]) for c in columns), "columns of other rows")
        records = [{name: c[row] for name, c in records.items()} for row in columns[0]]
    need(isinstance(records, list) and records != [], "no records")
    need(all(isinstance(record, dict) for record in records), "no objects")
    need(set(names) <= set(records[0]), "no such keys")
    return [{name: _scalar(record.get(name)) for name in names} for record in records]


# -- ballots ---------------------------------------------------------------------------------------


def ballots(data: bytes) -> Counter[Any]:
    """Return the weight of every ordering of a PrefLib file, alternatives by their ids."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    lines = [line.strip() for line in re.split("\r\n|\r|\n", text)]
    lines = [line for line in lines if line]
    need(lines != [], "empty")
    known: list[str] = []
    votes = []
    if lines[0].startswith("#") or re.match(r"[0-9.]+\s*:", lines[0]):
        for line in lines:
            if line.startswith("#"):
                named = re.match(r"#\s*ALTERNATIVE NAME\s+(\d+)\s*:", line, re.IGNORECASE)
                known += [named.group(1)] if named else []
                continue
            count, colon, order = line.partition(":")
            need(colon != "", "no colon")
            votes.append((count, order))
        ids = {i.strip() for _, order in votes for i in re.split("[,{}]", order)} - {""}
        need(not known or ids <= set(known), "an alternative without a name")
    else:
        need(re.fullmatch("[0-9]{1,15}", lines[0]) is not None, "no number of alternatives")
        k = int(lines[0])
        need(k >= 1 and len(lines) > k + 1, "truncated")
        need(all("," in line for line in lines[1 : k + 1]), "no name")
        known = [line.partition(",")[0].strip() for line in lines[1 : k + 1]]
        votes = [line.partition(",")[::2] for line in lines[k + 2 :]]
        ids = {i.strip() for _, order in votes for i in re.split("[,{}]", order)} - {""}
        need(ids <= set(known), "an alternative without a name")
    need(len(set(known)) == len(known), "a name twice")
    found: Counter[Any] = Counter()
    total = 0.0
    for written, order in votes:
        count = number(written.strip() or "x")
        need(math.isfinite(count) and count >= 0, "no count")
        total += count
        places = _order(order)
        if count and sum(map(len, places)) > 1:
            found[places] += count
    need(votes != [] and total <= 2.0**53, "no ballots, or more than can be counted")
    return found


def _order(text: str) -> tuple[frozenset[str], ...]:
    places: list[list[str]] = []
    depth, word = 0, ""
    group: list[str] = []
    closed = False  # a brace was closed: a comma must follow
    for c in text + ",":
        if c == "{":
            need(depth == 0 and not word.strip() and not closed, "braces")
            depth = 1
        elif c == "}":
            need(depth == 1, "braces")
            group.append(word.strip())
            word, depth, closed = "", 0, True
        elif c == ",":
            if closed:
                need(not word.strip(), "text behind a brace")
                places.append(group)
                group, closed = [], False
            elif depth:
                group.append(word.strip())
            else:
                places.append([word.strip()])
            word = ""
        else:
            word += c
    need(depth == 0, "braces")
    flat = [i for place in places for i in place]
    need(all(flat) and len(set(flat)) == len(flat), "an empty place, or an alternative twice")
    return tuple(map(frozenset, places))
