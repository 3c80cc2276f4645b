"""Real files in small, made in memory: what is mutated."""

from __future__ import annotations

import json
import random
from typing import Any

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


def _by_arm() -> bytes:
    """Return rounds with one row for each arm on offer."""
    lines = ["round,arm,reward,chosen,propensity"]
    for t in range(12):
        law = dict(zip(_ARMS, _LAWS[t % 4], strict=True))
        drawn = _RNG.choices(_ARMS, list(law.values()))[0]
        for arm in _RNG.sample(_ARMS, 3):
            paid = _RNG.randrange(2) if arm == drawn else ""
            lines.append(f"{t},{_field(arm)},{paid},{int(arm == drawn)},{law[arm]}")
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


def _costs() -> bytes:
    """Return decisions as Vowpal Wabbit's --cb writes them, a line each."""
    lines = []
    for t in range(16):
        law = _LAWS[t % 4]
        chosen = _RNG.choices(range(3), law)[0]
        cost = _RNG.choice(("-1", "0", "0.25", "-2.5e-1"))
        words = [str(i + 1) for i in range(3)]
        words[chosen] += f":{cost}:{law[chosen]}"
        tag = ("", "'e7", "'e8")[t % 3]
        lines.append(f"{' '.join(words)} {tag}| price:{t}.5 user=h\u00e9")
    return ("\n".join(lines) + "\n").encode()


def _costs_by_action() -> bytes:
    """Return decisions as --cb_adf writes them, a line for each action."""
    blocks = []
    for t in range(8):
        law = _LAWS[t % 4]
        chosen = _RNG.choices(range(3), law)[0]
        label = f"0:{_RNG.choice((-1, 0, 0.5))}:{law[chosen]} "
        lines = [f"{label if i == chosen else ''}|a item={i}" for i in range(3 - t % 2)]
        lines = lines if chosen < len(lines) else [f"0:-1:{law[0]} |a item=0", *lines[1:]]
        blocks.append("\n".join([f"shared |u user={t}", *lines]))
    return ("\n\n".join(blocks) + "\n\n").encode()


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
COSTS, COSTS_BY_ACTION = _costs(), _costs_by_action()
NOTED = b"sep=;\r\n" + NONE
BY_ARM = _by_arm()  # behind the others, which stay what they are
WIDE, WIDE_JSONL = (data.decode().encode("utf-16") for data in (FULL, ROUNDS_JSONL))
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
