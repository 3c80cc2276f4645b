"""Real files in small, made in memory: what is mutated."""

from __future__ import annotations

import decimal
import io
import json
import math
import random
from typing import Any

import mutants
import pyarrow as pa
import pyarrow.parquet as pq
import strict_reading as strict

_RNG = random.Random(20170707)
RECORD_ARMS = ("x", "Caf\u00e9", "10")
_ARMS = ("north", "Caf\u00e9", "west, old")
_LAWS = ((0.5, 0.25, 0.25), (0.2, 0.3, 0.5), (0.125, 0.375, 0.5), (0.61, 0.13, 0.26))


def _field(text: str) -> str:
    return f'"{text}"' if "," in text else text


def _full() -> bytes:
    lines = ['arm,reward,p_north,p_Caf\u00e9,"p_west, old",note']
    for t in range(24):
        law = _LAWS[t % 4]
        arm = _RNG.choices(_ARMS, law)[0]
        cells = [_field(arm), str(_RNG.randrange(2)), *map(str, law), f"n{t}"]
        lines.append(",".join(cells))
    return ("\n".join(lines) + "\n").encode()


def _chosen() -> bytes:
    lines = ["day\tarm\treward\tpropensity"]
    for t in range(20):
        arm, p = _RNG.choice((("001", 0.1), ("2", 0.7), ("N/X", 0.2)))
        lines.append(f"{t}\t{arm}\t{_RNG.choice((3.5, 4, 1.25))}\t{p}")
    return "\n".join(lines).encode()


def _none() -> bytes:
    lines = ["reward;arm"]
    lines += [f"{_RNG.choice(('yes', 'no', 'True'))};{_RNG.choice('ab')}" for _ in range(16)]
    return ("\r\n".join(lines) + "\r\n").encode()


def _records() -> bytes:
    lines = ["arm\treward\tprobs"]
    for t in range(14):
        law = dict(zip(RECORD_ARMS, _LAWS[t % 4], strict=True))
        arm = _RNG.choices(RECORD_ARMS, _LAWS[t % 4])[0]
        values: Any = law if t % 3 else list(law.values())
        lines.append(f"{arm}\t{_RNG.randrange(2)}\t{json.dumps(values, ensure_ascii=False)}")
    return ("\n".join(lines) + "\n").encode()


def _ordered(places: list[str]) -> bytes:
    lines = ["t,reward,arm", *(f"{t},{_RNG.randrange(2)},{_RNG.choice('ab')}" for t in places)]
    return ("\n".join(lines) + "\n").encode()


def _duels() -> list[dict[str, Any]]:
    names = ("gpt-x", "claude y", "llama")
    words = ("model_a", "model_b", "tie", "tie (bothbad)")
    found = []
    for t in range(18):
        left, right = _RNG.sample(names, 2)
        found.append(
            {"model_a": left, "model_b": right, "winner": _RNG.choice(words), "votes": t % 4 + 1,
             "tstamp": 1_690_000_000.25 + t, "turns": [{"role": "user", "text": "h\u00e9\n"}]}
        )  # fmt: skip
    return found


def _table(rows: list[dict[str, Any]], names: tuple[str, ...]) -> bytes:
    lines = [",".join(names), *(",".join(str(row[n]) for n in names) for row in rows)]
    return ("\n".join(lines) + "\n").encode()


def _wins() -> bytes:
    lines = ["left,right,wins,losses"]
    lines += [
        f"t{i},t{j},{_RNG.randrange(9)},{_RNG.randrange(9)}" for i in range(4) for j in range(i)
    ]
    return ("\n".join(lines) + "\n").encode()


def _long() -> bytes:
    lines = ["ranking,item,rank"]
    for r in range(6):
        ranks = _RNG.sample((1, 2, 3, 4), 4)
        lines += [f"{r},{item},{rank}" for item, rank in zip("wxyz", ranks, strict=True)]
    return ("\n".join(lines) + "\n").encode()


FULL, CHOSEN, NONE = _full(), _chosen(), _none()
RECORDS = _records()
COUNTED = _ordered([str(t) for t in (3, 1, 2, 10, 9, 2.5, -1, 7, 7, 1e3, 4)])
TIMED = _ordered([f"2024-01-{d:02}T{h:02}:30:00" for d in (3, 1, 2) for h in (8, 6, 23, 0)])
ZONED = _ordered([f"2024-03-31 0{h}:30:00.25+0{z}:00" for h in (3, 1, 2) for z in (1, 2, 0)])
_BATTLES = _duels()
DUELS = _table(_BATTLES, ("model_a", "model_b", "winner", "votes"))
WINS, LONG = _wins(), _long()
JSONL = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in _BATTLES).encode()
JSON = json.dumps(_BATTLES, indent=1).encode()
COLUMNS = json.dumps(
    {name: {str(i): row[name] for i, row in enumerate(_BATTLES)} for name in _BATTLES[0]}
).encode()


def _decisions() -> list[dict[str, Any]]:
    """Return the rounds of FULL as records, with and without records within them."""
    rows = strict.table(FULL, ("arm", "reward"))
    return [
        {
            "arm": row["arm"], "reward": int(row["reward"]), "note": [{"t": t}],
            **{name: float(row[name]) for name in row if name.startswith("p_")},
        }
        for t, row in enumerate(rows)
    ]  # fmt: skip


def _dsjson() -> bytes:
    lines = []
    for t in range(16):
        law = _LAWS[t % 4]
        chosen = _RNG.choices(range(3), law)[0]
        order = [chosen, *(i for i in range(3) if i != chosen)]
        lines.append(json.dumps({
            "_label_cost": _RNG.choice((-1.0, 0.0, 0.25, -2)), "_label_probability": law[chosen],
            "_label_Action": chosen + 1, "_labelIndex": chosen, "Version": "1", "EventId": f"e{t}",
            "Timestamp": f"2026-01-0{t % 9 + 1}T00:00:00Z", "a": [i + 1 for i in order],
            "p": [law[i] for i in order], "c": {"user": {"f": 1.5}, "_multi": [{"i": 1}, {"i": 2}]},
        }))  # fmt: skip
    return ("\n".join(lines) + "\n").encode()


def _feedback() -> bytes:
    actions = [_RNG.choices(range(3), _LAWS[t % 4])[0] for t in range(8)]
    pi = [[[p, q] for p, q in zip(_LAWS[t % 4], _LAWS[(t + 1) % 4], strict=True)] for t in range(8)]
    slots = [0, 1, 0, 0, 1, 1, 0, 1]
    law = [[row[a][s] for a in range(3)] for row, s in zip(pi, slots, strict=True)]
    return json.dumps({
        "n_rounds": 8, "n_actions": 3, "context": [[t, 0.5] for t in range(8)],
        "action_context": None, "action": actions, "position": slots, "reward": [0, 1] * 4,
        "pscore": [row[a] for row, a in zip(law, actions, strict=True)], "pi_b": pi,
    }).encode()  # fmt: skip


DECISIONS = _decisions()
ROUNDS_JSONL = "".join(json.dumps(row) + "\n" for row in DECISIONS).encode()
ROUNDS_JSON = json.dumps(DECISIONS, indent=1, ensure_ascii=False).encode()
ROUNDS_COLUMNS = json.dumps(
    {name: [row[name] for row in DECISIONS] for name in DECISIONS[0]}
).encode()
ROUNDS_NESTED = "".join(
    json.dumps({
        "action": {"id": row["arm"]}, "out": {"reward": row["reward"]},
        "probs": {arm: row[f"p_{arm}"] for arm in _ARMS},
    }) + "\n" for row in DECISIONS
).encode()  # fmt: skip
DSJSON, FEEDBACK = _dsjson(), _feedback()
ARMS = _ARMS

_HEAD = """# FILE NAME: votes
# TITLE: Votes
# DATA TYPE: {}
# MODIFICATION TYPE: original
# NUMBER ALTERNATIVES: 4
# NUMBER VOTERS: {}
# NUMBER UNIQUE ORDERS: {}
# ALTERNATIVE NAME 1: Mean Girls
# ALTERNATIVE NAME 2: Caf\u00e9: the film
# ALTERNATIVE NAME 3: The Mummy, again
# ALTERNATIVE NAME 4: Mission
"""


def _preflib(kind: str, orders: list[tuple[int, str]]) -> bytes:
    head = _HEAD.format(kind, sum(n for n, _ in orders), len(orders))
    return (head + "".join(f"{n}: {order}\n" for n, order in orders)).encode()


BALLOTS = (
    ("soc", "soc", _preflib("soc", [(40, "1,2,3,4"), (17, "4,3,2,1"), (3, "2,1,4,3")])),
    ("soi", "soi", _preflib("soi", [(12, "1,2"), (9, "3,1,4"), (5, "2,4,1,3"), (1, "4")])),
    ("toc", "toc", _preflib("toc", [(8, "1,{2,3},4"), (6, "{4,1},{2,3}"), (2, "3,4,2,1")])),
    ("toi", "toi", _preflib("toi", [(7, "{1,2},3"), (4, "4,{1,3}"), (2, "{2,3,4}")])),
    ("old", "soc", b"3\n1,\"x\"\n2,y, z\n3,w\n21,21,3\n12,1,2,3\n6,3,2,1\n3,2,1,3\n"),
)  # fmt: skip


# -- Parquet ---------------------------------------------------------------------------------------


def _rows_of_full() -> dict[str, list[Any]]:
    rows = strict.table(FULL, ("arm", "reward"))
    found: dict[str, list[Any]] = {name: [row[name] for row in rows] for name in rows[0]}
    return {
        name: [float(v) for v in values] if name.startswith(("p_", "reward")) else values
        for name, values in found.items()
    }


def _written(columns: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(columns if isinstance(columns, pa.Table) else pa.table(columns), sink)
    return sink.getvalue()


_COLUMNS = _rows_of_full()
PARQUET = _written(_COLUMNS)

_ODD: tuple[Any, ...] = (
    None, 0.0, 1.0, -1.0, 0.5, float("nan"), float("inf"), 1e308, 5e-324, 1 + 1e-9, 1.0000001,
)  # fmt: skip
_TEXT = (
    "",
    " ",
    "north",
    "Cafe\u0301",
    "1",
    "1.0",
    "x",
    "nan",
    "1_0",
    "\u0663",
    "true",
    None,
    "1e400",
)
_KINDS = (
    pa.float32(), pa.float16(), pa.int64(), pa.int8(), pa.uint64(), pa.bool_(), pa.string(),
    pa.large_string(), pa.string_view(), pa.binary(), pa.dictionary(pa.int8(), pa.string()),
    pa.decimal128(12, 6), pa.null(), pa.date32(), pa.timestamp("us"), pa.list_(pa.float64()),
    pa.float64(),
)  # fmt: skip


def mutated_parquet(rng: random.Random, data: bytes, kind: str) -> bytes:
    """Return a mutant: its bytes, or the values and types of its columns, written anew."""
    if rng.random() < 0.4:
        return mutants.mutated(rng, data, kind)
    columns: dict[str, Any] = {name: list(values) for name, values in _COLUMNS.items()}
    for _ in range(rng.choice((1, 1, 2))):
        name = rng.choice(list(columns))
        if isinstance(columns[name], list):
            values = columns[name]
            odd = rng.choice(_TEXT if isinstance(values[0], str) else _ODD)
            values[rng.randrange(len(values))] = odd
        what = rng.randrange(5)
        if what == 0:
            del columns[name]
            if not columns:
                return _written({"x": [1]})
        elif what == 1 and isinstance(columns[name], list):
            columns[name] = [None if v is None else str(v) for v in columns[name]]
        elif what == 2 and isinstance(columns[name], list):
            try:
                columns[name] = pa.array(columns[name]).cast(rng.choice(_KINDS), safe=False)
            except (pa.ArrowException, OverflowError):
                pass
    try:
        return _written(columns)
    except (pa.ArrowException, OverflowError):
        return _written(_COLUMNS)


def parquet_rows(data: bytes, needed: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return the rows of a Parquet file as text, as a table would hold them."""
    try:
        with pq.ParquetFile(pa.BufferReader(data)) as file:
            raw = file.schema_arrow.names
            names = [name.strip() for name in raw]
            used = [n for n in names if n in needed or n.startswith("p_")]
            # damage in a column that is not read is none of its business
            read = file.read(columns=[r for r, n in zip(raw, names, strict=True) if n in used])
            columns = [c.to_pylist() for c in read.columns]
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise strict.Refused(f"damaged: {error}") from None
    if len(set(names)) < len(names) or not set(needed) <= set(names) or not read.num_rows:
        raise strict.Refused("columns or rows are missing")
    held = dict(zip([n.strip() for n in read.column_names], columns, strict=True))
    return [{n: _as_text(held[n][i]) for n in used} for i in range(read.num_rows)]


def _as_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return strict.text_of(value)
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    if isinstance(value, float):
        whole = value.is_integer() and abs(value) < 2**53
        return None if math.isnan(value) else str(int(value)) if whole else repr(value)
    if isinstance(value, int):
        return str(value)
    raise strict.Refused(f"{type(value).__name__} is neither label nor number")
