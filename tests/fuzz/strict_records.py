"""The strict reading of logs that are records: JSON in its forms, dsjson, bandit feedback."""

from __future__ import annotations

import math
from typing import Any

from strict_reading import (
    Refused,
    Row,
    Unheld,
    content,
    history,
    label,
    need,
    number,
    parsed_json,
    text_of,
)

__all__ = ["costs", "decisions", "feedback", "nested", "rounds"]


def _records(data: bytes) -> list[Row]:
    """Return the records of JSON lines, an array of objects, or one object of columns."""
    found = _objects(data)
    if len(found) == 1 and all(isinstance(values, list) for values in found[0].values()):
        return _of_columns(found[0])
    return found


def _objects(data: bytes) -> list[Row]:
    """Return one object for each line, or what the whole text is: an array, or one object."""
    text = text_of(content(data))
    lines = [line for line in text.split("\n") if line.strip(" \t\r")]
    need(lines != [], "empty")
    try:
        first = parsed_json(lines[0])
    except Refused:
        first = None
    by_row = isinstance(first, dict) and all(isinstance(v, dict) for v in first.values())
    if isinstance(first, dict) and (len(lines) > 1 or not by_row):
        found: Any = [parsed_json(line) for line in lines]
    else:
        found = parsed_json(text)
    if isinstance(found, dict):
        columns = list(found.values())
        if columns and all(isinstance(c, dict) for c in columns):
            need(all(set(c) == set(columns[0]) for c in columns), "columns of other rows")
            return [{name: c[row] for name, c in found.items()} for row in columns[0]]
        need(columns != [], "no records")
        return [found]
    need(isinstance(found, list) and found != [], "no records")
    need(all(isinstance(record, dict) for record in found), "no objects")
    return list(found)


def _of_columns(columns: Row) -> list[Row]:
    need(len({len(values) for values in columns.values()}) == 1, "columns of other lengths")
    n = len(next(iter(columns.values())))
    return [{name: values[t] for name, values in columns.items()} for t in range(n)]


def _as_text(value: Any) -> str | None:
    """Return one value of JSON as a table of text would hold it."""
    need(not isinstance(value, (list, dict, Unheld)), "no label and no number")
    if isinstance(value, float):
        whole = value.is_integer() and abs(value) < 2**53
        return str(int(value)) if whole else repr(value)
    return None if value is None else str(value)


def rounds(data: bytes) -> list[tuple[str, float, Any]]:
    """Return the rounds of records with arm, reward and p_{arm}."""
    records = _records(data)
    names = list(dict.fromkeys(name for record in records for name in record))
    stripped = {name.strip(): name for name in names}
    need(len(stripped) == len(names), "a column twice")
    need({"arm", "reward"} <= set(stripped) and records != [], "columns or rows are missing")
    used = {s: n for s, n in stripped.items() if s in ("arm", "reward") or s.startswith("p_")}
    return history(
        [{s: _as_text(record.get(n)) for s, n in used.items()} for record in records], "full"
    )


def nested(data: bytes, arms: tuple[str, ...]) -> list[tuple[str, float, Any]]:
    """Return the same of records with action.id, out.reward and probs.{arm}."""
    filled = []
    for record in _records(data):
        law = record.get("probs")
        if isinstance(law, str):
            law = parsed_json(law, nan=True) if law.strip() else None
        if isinstance(law, list):
            need(len(law) == len(arms), "a list of another length")
            law = dict(zip(arms, law, strict=True))
        need(law is None or isinstance(law, dict), "no record")
        named = {label(a): p for a, p in (law or {}).items()}
        need(len(named) == len(law or {}), "an arm twice")
        need(all(a in arms for a, p in named.items() if p is not None), "other arms")
        need(not any(isinstance(p, bool) for p in named.values()), "no number")
        inside = [record.get(key) for key in ("action", "out")]
        arm, reward = (
            part.get(key) if isinstance(part, dict) else None
            for part, key in zip(inside, ("id", "reward"), strict=True)
        )
        row = {"arm": _as_text(arm), "reward": _as_text(reward)}
        need(label(row["arm"]) in arms, "another arm")
        filled.append({**row, **{f"p_{a}": _as_text(named.get(a)) for a in arms}})
    need(filled != [], "no rows")
    return history(filled, "full")


def _is_whole(value: Any, least: int) -> bool:
    return type(value) is int and value >= least


def _is_real(value: Any) -> bool:
    return type(value) in (int, float)


def decisions(data: bytes) -> list[tuple[str, float, Any]]:
    """Return the rounds of Vowpal Wabbit's dsjson, its actions counted from 1."""
    found = []
    for record in _objects(data):
        actions, law = record.get("a"), record.get("p")
        need("_outcomes" not in record, "of several slots")
        drop = record.get("pdrop")
        need(drop is None or (_is_real(drop) and 0 <= drop < 1), "no chance to be left out")
        need(isinstance(actions, list) and isinstance(law, list), "no rule")
        need(all(_is_whole(a, 1) for a in actions) and all(map(_is_real, law)), "no numbers")
        need(len(set(actions)) == len(actions) == len(law) > 0, "no pairs")
        pairs = dict(zip(actions, law, strict=True))
        index, action = record.get("_labelIndex"), record.get("_label_Action")
        need(index is None or _is_whole(index, 0), "no index")
        if action is None:
            action = actions[0] if index is None else index + 1
        need(_is_whole(action, 1) and action in pairs, "no action on offer")
        need(index is None or index + 1 == action, "two actions")
        chance = record.get("_label_probability")
        need(chance is None or _is_real(chance), "no probability")
        need(chance is None or abs(chance - pairs[action]) <= 1e-5, "two probabilities")
        cost = record.get("_label_cost")
        need(_is_real(cost), "no cost")
        law_by_name = {f"p_{a}": repr(float(p)) for a, p in pairs.items()}
        found.append({"arm": str(action), "reward": repr(-float(cost)), **law_by_name})
    need(found != [], "no rows")
    columns = sorted({name for row in found for name in row if name.startswith("p_")})
    return history(
        [{"arm": r["arm"], "reward": r["reward"], **{c: r.get(c, "") for c in columns}}
         for r in found],
        "full",
    )  # fmt: skip


def feedback(data: bytes) -> list[tuple[str, float, Any]]:
    """Return the rounds of Open Bandit Pipeline's dict: the rule of each round's slot."""
    records = _objects(data)
    need(len(records) == 1, "more than one dict")
    held = records[0]
    need(isinstance(held.get("action"), list) and isinstance(held.get("reward"), list), "no rounds")
    n = len(held["action"])
    need(n > 0 and held.get("n_rounds") in (None, n), "another number of rounds")
    for key in ("action", "reward", "pscore", "position"):
        values = held.get(key)
        if values is not None or key in ("action", "reward"):
            need(isinstance(values, list) and len(values) == n, "another length")
            need(all(_is_real(v) for v in values), "no numbers")
    need(all(float(a).is_integer() and 0 <= a < 2**53 for a in held["action"]), "no actions")
    pi = held.get("pi_b")
    need(isinstance(pi, list) and len(pi) == n, "no rule")
    rows = []
    for t, matrix in enumerate(pi):
        need(isinstance(matrix, list) and matrix != [], "no matrix")
        flat = not isinstance(matrix[0], list)
        wide = [[p] for p in matrix] if flat else matrix
        width = len(wide[0])
        need(flat == (not isinstance(pi[0][0], list)) and len(wide) == len(pi[0]), "other shapes")
        need(all(isinstance(r, list) and len(r) == width >= 1 for r in wide), "other shapes")
        need(flat or width == len(pi[0][0]), "other shapes")
        need(all(p is None or _is_real(p) for r in wide for p in r), "no numbers")
        slot = 0 if width == 1 else (held.get("position") or [math.nan] * n)[t]
        need(float(slot).is_integer() and 0 <= slot < width, "no slot")
        law = [r[int(slot)] for r in wide]
        action = int(held["action"][t])
        need(action < len(law), "another action")
        if held.get("pscore") is not None:
            need(abs((law[action] or 0) - held["pscore"][t]) <= 1e-6, "two probabilities")
        rows.append({
            "arm": str(action), "reward": repr(float(held["reward"][t])),
            **{f"p_{j}": "" if p is None else repr(float(p)) for j, p in enumerate(law)},
        })  # fmt: skip
    return history(rows, "full")


def costs(data: bytes) -> list[tuple[str, float, Any]]:
    """Return the rounds of Vowpal Wabbit's --cb text; of --cb_adf where the first round is so."""
    lines = [line.strip() for line in text_of(content(data)).split("\n")]
    blocks: list[list[str]] = [[]]
    for line in lines:
        if line:
            blocks[-1].append(line)
        elif blocks[-1]:
            blocks.append([])
    blocks = [block for block in blocks if block]
    need(blocks != [], "empty")
    by_action = any(_is_shared(line) or line.startswith("|") for line in blocks[0])
    rows = []
    for block in blocks:
        if not by_action:
            rows += [_decision(line) for line in block]
            continue
        actions = block[1:] if _is_shared(block[0]) else block
        need(all("|" in line and not _is_shared(line) for line in actions), "no line of an action")
        labels = [_label_words(line) for line in actions]
        chosen = [i for i, words in enumerate(labels) if any(w.count(":") > 1 for w in words)]
        need(len(chosen) == 1 and len(labels[chosen[0]]) == 1, "not one chosen action")
        others = [words for i, words in enumerate(labels) if i != chosen[0]]
        need(all(len(w) < 2 and all(map(_is_other, w)) for w in others), "words of an action")
        rows.append({**_decision(actions[chosen[0]], least=0), "arm": str(chosen[0] + 1)})
    return history(rows, "chosen")


def _is_shared(line: str) -> bool:
    return line.startswith("shared") and line[6:].lstrip().startswith("|")


def _label_words(line: str) -> list[str]:
    """Return the words of the label: what touches the | or begins with ' is a tag."""
    need("|" in line, "no |")
    before = line[: line.index("|")]
    words = before.split()
    tag = words and (words[-1].startswith("'") or not before[-1].isspace())
    return words[:-1] if tag else words


def _is_action(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) < 16


def _is_other(word: str) -> bool:
    """Whether a word is an action, with its cost or without."""
    action, colon, cost = word.partition(":")
    return _is_action(action) and (not colon or math.isfinite(number(cost)))


def _decision(line: str, least: int = 1) -> Row:
    words = [word.split(":") for word in _label_words(line)]
    need(all(len(w) == 3 or _is_other(":".join(w)) for w in words), "no label")
    need(all(_is_action(word[0]) for word in words), "no action")
    numbers = [int(word[0]) for word in words]
    need(len(set(numbers)) == len(numbers) and min(numbers, default=1) >= least, "no actions")
    chosen = [word for word in words if len(word) == 3]
    need(len(chosen) == 1, "not one chosen action")
    action, cost, chance = chosen[0]
    value = number(cost)
    need(math.isfinite(value), "no cost")
    return {"arm": str(int(action)), "reward": repr(-value), "propensity": chance}
