"""Vowpal Wabbit's text of contextual bandits (``--cb`` and ``--cb_adf``).

One line is one decision, ``action:cost:probability | features``, actions counted from 1; other
actions on offer may stand beside it (``1 2:0.5:0.25 3 | ...``), also with a cost that was not paid
(``1:1 2:0.5:0.25``): the one with a probability was played. Or a decision has a line for each
action (ADF), the chosen one with its ``action:cost:probability``, after a line ``shared |`` or
not, and ends with an empty line: there actions are called by their place among the lines, counted
from 1 as in dsjson, and the number before the cost says nothing.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from bayesfair.base.checks import counted
from bayesfair.base.notices import Notice
from bayesfair.base.numerals import number
from bayesfair.errors import DataError
from bayesfair.readers.files.delimited import opened, unreadable
from bayesfair.readers.formats.json_records import table_of_columns

__all__ = ["costs", "looks_like_vw"]

_OTHER = re.compile(r"(?P<action>[0-9]{1,15})(?::(?P<cost>[^:|\s]+))?", re.ASCII)
_LABEL = re.compile(r"(?P<action>[0-9]{1,15}):(?P<cost>[^:|\s]+):(?P<chance>[^:|\s]+)", re.ASCII)
_NOT_ONE = re.compile(r"(?:ccb|slates) (?:shared|action|slot)\b|ca [^|\s]+:[^|\s]+:", re.ASCII)
_SHARED = re.compile(r"shared\s*\|")


def looks_like_vw(text: str) -> bool:
    """Whether the first decision of a text has an action, its cost and its probability."""
    lines = [line.strip("\r") for line in text.lstrip("\r\n").split("\n")[:10_000]]
    block = list(itertools.takewhile(lambda line: "|" in line, lines))
    if not block or _NOT_ONE.match(block[0]):
        return bool(block)
    words = _label_words(block[0].split("|", 1)[0])
    begins = _SHARED.match(block[0]) or block[0].startswith("|") or _labels(block[0]) or (
        words and all(":" in word and _other(word) for word in words)
    )  # fmt: skip
    return bool(begins) and any(_labels(line) for line in block)


def _labels(line: str) -> list[re.Match[str]]:
    """Return the actions with cost and probability that a line begins with."""
    before = line.split("|", 1)[0] if "|" in line else ""
    return [found for word in before.split() if (found := _LABEL.fullmatch(word))]


def costs(path: Path) -> tuple[Any, tuple[Notice, ...]]:
    """Return the decisions as a table: arm, reward, propensity, and what was on offer.

    Raises
    ------
    DataError
        Naming the first line that is no decision.
    """
    name = path.name
    rows: list[tuple[str, float, float, str]] = []
    adf, features = None, False
    for block in _blocks(path):
        features = features or any(text.partition("|")[2].strip() for _, text in block)
        if adf is None:
            if _NOT_ONE.match(block[0][1]):
                raise DataError(
                    f"{name} holds decisions of several slots (ccb, slates) or of a continuous "
                    "action (ca), which are not read. Write one row for each choice among arms.",
                    kind="several_slots", source=name,
                )  # fmt: skip
            adf = bool(_SHARED.match(block[0][1])) or any(text[0] == "|" for _, text in block)
        if adf:
            rows.append(_of_actions(block, name, len(rows) + 1))
            continue
        for line, text in block:
            rows.append(_of_line(line, text, name, len(rows) + 1))
    if not rows:
        raise DataError(f"{name} holds no decisions.", kind="empty", source=name)
    arm, reward, chance, offered = map(list, zip(*rows, strict=True))
    columns: dict[str, list[Any]] = {"arm": arm, "reward": reward, "propensity": chance}
    several = [o for o in offered if o]
    if several:
        if len(several) < len(offered):
            at = offered.index("") + 1
            raise _refused(name, at, None, "names no other actions on offer, as others do")
        columns["offered"] = offered
    called = "their place among the lines of a decision" if adf else "their number"
    beside = (
        " The actions on offer are in column 'offered': offered='offered' takes them into account."
        if several else ""
    )  # fmt: skip
    notice = Notice(
        f"Decisions of Vowpal Wabbit (text) were read: actions are called by "
        f"{called}, counted from 1, the reward is minus the cost, and only the probability of the "
        f"chosen action is there.{beside}",
        kind="cost_as_reward", column="reward", n=len(rows),
    )  # fmt: skip
    left = Notice(
        f"The features behind the | of {name} are not read, so no context= can name them: this "
        "audit does not know what the rule saw. Log in dsjson, where context= names each by its "
        "path.",
        kind="features_not_read", column="context",
    )  # fmt: skip
    return table_of_columns(columns, name), (notice, left) if features else (notice,)


def _blocks(path: Path) -> Iterator[list[tuple[int, str]]]:
    """Yield the lines between empty ones, with their numbers."""
    block: list[tuple[int, str]] = []
    for line, raw in enumerate(_lines(path), start=1):
        try:
            text = raw.removeprefix(b"\xef\xbb\xbf" if line == 1 else b"").decode("utf-8").strip()
        except UnicodeDecodeError:
            raise DataError(
                f"line {line} of {path.name} holds bytes that are not UTF-8; save it as UTF-8.",
                kind="not_utf8", source=path.name,
            ) from None  # fmt: skip
        if text:
            block.append((line, text))
        elif block:
            yield block
            block = []
    if block:
        yield block


def _lines(path: Path) -> Iterable[bytes]:
    try:
        with opened(path) as stream:
            rest = b""
            while data := bytes(stream.read(1 << 20)):
                *whole, rest = (rest + data).split(b"\n")
                yield from whole
            yield rest
    except unreadable() as error:
        raise DataError(
            f"{path.name} cannot be read ({' '.join(str(error).split())[:200]}); if it is "
            "compressed, it may be truncated: copy it again.",
            kind="unreadable", source=path.name,
        ) from error  # fmt: skip


def _refused(name: str, row: int, line: int | None, why: str, value: str = "") -> DataError:
    place = "" if line in (None, row) else f" [line {line}]"
    shown = f": {value[:60]!r}" if value else ""
    return DataError(
        f"row {row} of {name}{place} {why}{shown}. Expected action:cost:probability before the "
        "first |.", kind="bad_vw", row=row, value=value[:60] or None, source=name,
    )  # fmt: skip


def _label_words(before: str) -> list[str]:
    """Return the words before the | without the tag, which touches the |, or begins with '."""
    words = before.split()
    tagged = words and (words[-1].startswith("'") or not before[-1:].isspace())
    return words[:-1] if tagged else words


def _chosen(
    line: int, text: str, name: str, row: int
) -> tuple[re.Match[str], float, float, list[str]]:
    """Return the label of a line, its reward and probability, and the other actions named."""
    before, bar, _ = text.partition("|")
    if not bar:
        raise _refused(name, row, line, "has no |", text)
    words = _label_words(before)
    found = [m for word in words if (m := _LABEL.fullmatch(word))]
    others = [_other(word) for word in words if not _LABEL.fullmatch(word)]
    if len(found) != 1 or not all(others):
        what = "has no action with cost and probability" if not found else (
            "has more than one action with a probability, or other words before the |"
        )  # fmt: skip
        raise _refused(name, row, line, what, before)
    cost, chance = number(found[0]["cost"]), number(found[0]["chance"])
    if cost is None or not math.isfinite(cost):
        raise _refused(name, row, line, "has a cost that is no number", found[0]["cost"])
    if chance is None or not 0 < chance <= 1:
        raise _refused(name, row, line, "has no probability in (0, 1]", found[0]["chance"])
    return found[0], 0.0 - cost, chance, [other for other in others if other]


def _other(word: str) -> str | None:
    """Return the action of a word without a probability, None if it is none."""
    found = _OTHER.fullmatch(word)
    cost = number(found["cost"]) if found and found["cost"] else 0.0
    return found["action"] if found and cost is not None and math.isfinite(cost) else None


def _of_line(line: int, text: str, name: str, row: int) -> tuple[str, float, float, str]:
    """Return one decision of one line."""
    label, reward, chance, others = _chosen(line, text, name, row)
    offered = [int(word) for word in (label["action"], *others)]
    if min(offered) < 1 or len(set(offered)) < len(offered):
        raise _refused(name, row, line, "names actions that are not counted from 1, or twice", text)
    several = "|".join(map(str, sorted(offered))) if others else ""
    return str(offered[0]), reward, chance, several


def _of_actions(block: list[tuple[int, str]], name: str, row: int) -> tuple[str, float, float, str]:
    """Return one decision that has a line for each action."""
    actions = block[1:] if _SHARED.match(block[0][1]) else block
    marked = [i for i, (_, text) in enumerate(actions) if _labels(text)]
    if len(marked) != 1:
        raise _refused(
            name, row, block[0][0],
            f"has {len(marked)} actions with cost and probability among its "
            f"{counted(len(actions), 'line')}; exactly one is chosen, and an empty line ends the "
            "decision",
        )  # fmt: skip
    for i, (line, text) in enumerate(actions):
        if "|" not in text or _SHARED.match(text):
            raise _refused(name, row, line, "is no line of an action", text)
        words = _label_words(text.split("|", 1)[0])
        if i != marked[0] and (len(words) > 1 or not all(map(_other, words))):
            raise _refused(name, row, line, "has words before the | of an action not chosen", text)
    _, reward, chance, others = _chosen(*actions[marked[0]], name, row)
    if others:
        raise _refused(name, row, actions[marked[0]][0], "names several actions in one line")
    offered = "|".join(str(i + 1) for i in range(len(actions)))
    return str(marked[0] + 1), reward, chance, offered
