"""Files of every format that are mutated, with what reads them and the strict reading."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import mutants
import numpy as np
import originals
import strict_comparisons as comparing
import strict_reading as strict
import strict_records as recording
import tables

import bayesfair as bf
from bayesfair import examples
from bayesfair.audit.saved.file import sealed
from bayesfair.readers import scan_history

__all__ = ["CASES", "Case", "Unjudged", "saved_case"]


class Unjudged(Exception):
    """What a mutant says cannot be read in another way."""


@dataclass(frozen=True)
class Case:
    """A file that is mutated, and its two readings."""

    name: str
    kind: str  # of mutations
    file: str
    original: bytes
    read: Callable[[Path], Any]
    strictly: Callable[[bytes], Any]
    scan: Callable[[Path], Any] | None = None
    use: Callable[[Path], Any] | None = None
    mutate: Callable[[random.Random, bytes, str], bytes] = mutants.mutated


# -- what the package read, in the terms of the strict reading -------------------------------------


def _rounds(logs: list[bf.History]) -> list[tuple[str, float, Any]]:
    found = []
    for log in logs:
        for t in range(log.n_rounds):
            known: Any = None
            if log.selection_probability is not None:
                law = log.selection_probability[t]
                known = {a: float(p) for a, p in zip(log.arms, law, strict=True) if not np.isnan(p)}
            elif log.propensity is not None:
                known = float(log.propensity[t])
            found.append((log.arms[log.arm[t]], float(log.reward[t]), known))
    return found


def _duels(data: bf.Comparisons) -> Counter[Any]:
    found: Counter[Any] = Counter()
    words = ("left", "right", "tie", "both_bad")
    for i, j, outcome, n in zip(data.left, data.right, data.outcome, data.count, strict=True):
        found[data.items[i], data.items[j], words[outcome]] += float(n)
    return found


def _orderings(data: bf.Comparisons) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for r, n in enumerate(data.count):
        part = slice(data.start[r], data.start[r + 1])
        level, item = data.level[part], data.item[part]
        places = tuple(
            frozenset(data.items[i] for i in item[level == one]) for one in sorted(set(level))
        )
        found[places] += float(n)
    return found


# -- cases -----------------------------------------------------------------------------------------

_RULE = {
    "full": {"probabilities": "p_{arm}", "propensity": False},
    "chosen": {"probabilities": False, "propensity": "propensity"},
    "none": {"probabilities": False, "propensity": False},
}
_NEEDED = {"full": (), "chosen": ("propensity",), "none": ()}


def _log(name: str, rule: str, file: str, original: bytes, delimiter: str | None = None) -> Case:
    options: dict[str, Any] = {**_RULE[rule], "order": False, "known_at": False}
    options |= {"delimiter": delimiter} if delimiter else {}
    needed = ("arm", "reward", *_NEEDED[rule])
    table = file.rpartition(".")[2] in tables.TABLES
    write, reader = tables.TABLES[name] if table else (None, None)

    def strictly(data: bytes) -> Any:
        rows = tables.rows_of(reader, data, needed) if table else (
            strict.table(data, needed, delimiter)
        )  # fmt: skip
        return strict.history(rows, rule)

    mutate = tables.mutated_table(write) if table else mutants.mutated
    return replace(
        _scanned(name, "binary" if table else "table", file, original, strictly, options),
        mutate=mutate,
    )


def _scanned(
    name: str, kind: str, file: str, original: bytes, strictly: Callable[[bytes], Any],
    options: dict[str, Any],
) -> Case:  # fmt: skip
    """Return the case of a log that is read at once and in chunks, and audited."""
    return Case(
        name,
        kind,
        file,
        original,
        lambda path: _rounds([bf.read_history(path, **options)]),
        strictly,
        lambda path: _rounds(list(scan_history(path, chunk_rounds=7, **options).chunks())),
        lambda path: bf.audit(bf.read_history(path, **options), draws=100, seed=1),
    )


def _text_log(
    name: str, file: str, original: bytes, strictly: Callable[[list[Any]], Any], **options: Any
) -> Case:
    """Return the case of a log of text that needs other columns than the usual ones."""
    needed = ("arm", "reward", "probs" if "probabilities" in options else "t")
    if "round" in options:
        needed = ("round", "arm", "reward", "chosen", "propensity")
    options = {"propensity": False, "known_at": False, "probabilities": False, **options}
    return Case(
        name,
        "table",
        file,
        original,
        lambda path: _rounds([bf.read_history(path, **options)]),
        lambda data: strictly(strict.table(data, needed)),
        use=lambda path: bf.audit(bf.read_history(path, **options), draws=100, seed=1),
    )


def _record_log(
    name: str, file: str, original: bytes, strictly: Callable[[bytes], Any], **options: Any
) -> Case:
    """Return the case of a log of records, with the rule of every arm."""
    options = {
        "probabilities": "p_{arm}", "propensity": False, "order": False, "known_at": False,
        "format": "json", **options,
    }  # fmt: skip
    return _scanned(name, "json", file, original, strictly, options)


def _in_blocks(case: Case) -> Case:
    """Return the case with the file read in blocks of a few bytes, as long ones are."""

    def small(call: Callable[[Path], Any]) -> Callable[[Path], Any]:
        def run(path: Path) -> Any:
            with (
                patch("bayesfair.readers.formats.registry._LONG", 0),
                patch("bayesfair.readers.duels.arena._BLOCK", 64),
            ):
                return call(path)

        return run

    assert case.scan is not None
    return replace(case, read=small(case.read), scan=small(case.scan))


def _comparisons(
    name: str,
    kind: str,
    file: str,
    original: bytes,
    strictly: Callable[[bytes], Any],
    **options: Any,
) -> Case:
    seen = _orderings if "last_tie" in options else _duels
    return Case(
        name,
        kind,
        file,
        original,
        lambda path: seen(bf.read_comparisons(path, **options)),
        strictly,
        use=lambda path: bf.fit(
            bf.read_comparisons(path, **options), method="laplace", draws=100, seed=1
        ),
    )


_SIDES = ("model_a", "model_b", "winner")
_ARENA: dict[str, Any] = {
    "left": "model_a", "right": "model_b", "winner": "winner", "winner_is": "side",
}  # fmt: skip
_BALLOTS: dict[str, Any] = {"partial": "subset", "last_tie": "tie", "labels": "ids"}


def _arena(data: bytes, weight: str | None = None) -> Any:
    names = _SIDES if weight is None else (*_SIDES, weight)
    return comparing.duels(comparing.arena(data, names), _SIDES, weight)


CASES = (
    _log("full", "full", "log.csv", originals.FULL),
    _log("full_told", "full", "log.csv", originals.FULL, ","),
    _log("chosen", "chosen", "log.tsv", originals.CHOSEN),
    _log("none", "none", "log.csv", originals.NONE),
    _log("noted", "none", "log.csv", originals.NOTED),
    replace(_log("wide", "full", "log.csv", originals.WIDE), mutate=mutants.mutated_wide),
    *(_log(name, "full", f"log.{name}", data) for name, data in tables.ORIGINALS.items()),
    replace(
        _text_log(
            "records", "log.tsv", originals.RECORDS,
            lambda rows: strict.records(rows, originals.RECORD_ARMS),
            probabilities="probs.{arm}", arms=originals.RECORD_ARMS, order=False,
        ),
        mutate=mutants.mutated_records,
    ),
    _text_log(
        "by_arm", "log.csv", originals.BY_ARM, strict.by_arm, round="round", chosen="chosen",
        propensity="propensity", order=False,
    ),
    _text_log("counted", "log.csv", originals.COUNTED, strict.ordered, order="t"),
    _text_log("timed", "log.csv", originals.TIMED, strict.ordered, order="t"),
    _text_log("zoned", "log.csv", originals.ZONED, strict.ordered, order="t"),
    _record_log("rounds_jsonl", "log.jsonl", originals.ROUNDS_JSONL, recording.rounds),
    _record_log("rounds_json", "log.json", originals.ROUNDS_JSON, recording.rounds),
    _in_blocks(_record_log("rounds_blocks", "log.json", originals.ROUNDS_JSON, recording.rounds)),
    _record_log("rounds_columns", "log.json", originals.ROUNDS_COLUMNS, recording.rounds),
    _record_log(
        "rounds_nested", "log.jsonl", originals.ROUNDS_NESTED,
        lambda data: recording.nested(data, originals.ARMS),
        arm="action.id", reward="out.reward", probabilities="probs.{arm}", arms=originals.ARMS,
    ),
    _record_log(
        "dsjson", "log.dsjson", originals.DSJSON, recording.decisions, format="dsjson"
    ),
    _record_log("feedback", "feedback.json", originals.FEEDBACK, recording.feedback),
    replace(
        _record_log("rounds_wide", "log.jsonl", originals.WIDE_JSONL, recording.rounds),
        mutate=mutants.mutated_wide,
    ),
    *(
        replace(
            _record_log(
                name, f"{name}.vw", data, recording.costs, format="vw",
                probabilities=False, propensity="propensity",
            ),
            kind="vw",
        )
        for name, data in (("cb", originals.COSTS), ("cb_adf", originals.COSTS_BY_ACTION))
    ),
    _comparisons(
        "duels", "table", "duels.csv", originals.DUELS,
        lambda data: comparing.duels(strict.table(data, _SIDES), _SIDES), **_ARENA,
    ),
    _comparisons(
        "wins", "table", "wins.csv", originals.WINS,
        lambda data: comparing.wins(strict.table(data, ("left", "right", "wins", "losses"))),
        left="left", right="right", wins=("wins", "losses"),
    ),
    _comparisons(
        "long", "table", "long.csv", originals.LONG,
        lambda data: comparing.long_rankings(strict.table(data, ("ranking", "item", "rank"))),
        ranking="ranking", item="item", rank="rank", partial="subset", last_tie="tie",
    ),
    _comparisons("jsonl", "json", "arena.jsonl", originals.JSONL, _arena, **_ARENA),
    _comparisons(
        "votes", "json", "arena.jsonl", originals.JSONL, lambda data: _arena(data, "votes"),
        weight="votes", **_ARENA,
    ),
    _comparisons("json", "json", "arena.json", originals.JSON, _arena, **_ARENA),
    _comparisons("columns", "json", "arena.json", originals.COLUMNS, _arena, **_ARENA),
    *(
        _comparisons(name, "ballots", f"votes.{suffix}", data, comparing.ballots, **_BALLOTS)
        for name, suffix, data in originals.BALLOTS
    ),
)  # fmt: skip


@cache
def saved_case() -> Case:
    """Return the case of a saved audit: its bytes are changed, with or without a new seal.

    Without one nothing but the file as it was saved may be read. With one, a forger may have
    changed the numbers: they are not judged, but nothing may crash or hang.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "audit.nc"
        log = bf.read_history(examples.path("ecmo"))
        bf.audit(log, draws=100, seed=1).save(path)
        whole = path.read_bytes()
        numbers = bf.load_audit(path).to_dict()
    body = whole[: whole.rindex(b"\nbayesfair-audit format=")]
    assert body + sealed(body) == whole

    def mutate(rng: random.Random, data: bytes, kind: str) -> bytes:
        if rng.random() < 0.4:
            return mutants.mutated(rng, data, kind)
        inside = mutants.mutated(rng, body, kind)
        return inside + sealed(inside)

    def strictly(data: bytes) -> Any:
        if data == whole:
            return numbers
        inside = data[: max(data.rfind(b"\nbayesfair-audit format="), 0)]
        if inside and data == inside + sealed(inside):
            raise Unjudged
        raise strict.Refused("not as it was saved")

    return Case(
        "saved",
        "binary",
        "audit.nc",
        whole,
        lambda path: bf.load_audit(path).to_dict(),
        strictly,
        mutate=mutate,
    )
