"""Every option of the readers of logs has an effect on the log at hand, or is refused by name.

The options are found in the signatures, so that a new one without a value to try fails here.
"""

import inspect
import warnings
from collections.abc import Mapping

import numpy as np
import pytest

from bayesfair.errors import BayesfairError, BayesfairWarning
from bayesfair.readers import read_history, scan_history

LOG = (
    "arm,reward,p_a,p_b,propensity,timestamp,site,until,q_a,q_b,arm2,reward2,could_a,could_b,late\n"
    "a,1,0.5,0.5,0.5,2,x,0,0.4,0.6,b,0,1,0,2\nb,0,0.5,0.5,0.5,1,x,0,0.4,0.6,a,1,1,1,3\n"
    "a,1,0.6,0.4,0.6,3,y,2,0.5,0.5,b,1,1,1,4\nb,1,0.5,0.5,0.5,4,y,2,0.4,0.6,b,0,1,1,9\n"
)
HEADER = LOG.partition("\n")[0].split(",")
#: What the logs of each kind leave out of the whole one.
KINDS = {
    "full": {"propensity"},
    "both": set(),
    "chosen": {"p_a", "p_b"},
    "none": {"p_a", "p_b", "propensity"},
}
#: A value of each option to try, with options that it needs beside it, and changes of the log.
TRY = {
    "arm": ({"arm": "arm2"}, {}),
    "reward": ({"reward": "reward2"}, {}),
    "propensity": ({"propensity": "q_a"}, {}),
    "probabilities": ({"probabilities": "q_{arm}"}, {}),
    "order": ({"order": "timestamp"}, {}),
    "by": ({"by": "site"}, {}),
    "arms": ({"arms": ["b", "a"]}, {}),
    "offered": ({"offered": "could_{arm}"}, {}),
    "offered_delimiter": ({"offered_delimiter": "/"}, {}),
    "known_at": ({"known_at": "late"}, {}),
    "known_until": ({"known_until": "until"}, {}),
    "waiting": ({"waiting": 1}, {"\na,1,0.6": "\na,,0.6", "\na,1,,": "\na,,,"}),
    "round": ({"round": "timestamp"}, {}),
    "chosen": ({"chosen": "could_a"}, {}),
    "format": ({"format": "json"}, {}),
    "table": ({"table": "rounds"}, {}),
    "unique": ({"unique": "site"}, {}),
    "user": ({"user": "site"}, {}),
    "context": ({"context": "site"}, {}),
    "missing_context": ({"context": "site", "missing_context": "?"}, {",2,x,": ",2,,"}),
    "keep_prob": ({"keep_prob": "q_a"}, {}),
    "constant_within": ({"constant_within": "site"}, {}),
    "prior": ({"prior": {"a": (1, 2)}}, {}),
    "missing": ({"missing": "drop"}, {"\na,1,0.6": "\na,,0.6", "\na,1,,": "\na,,,"}),
    "rewards": ({"rewards": {"1": 0.0}}, {}),
    "delimiter": ({"delimiter": ";"}, {}),
    "decimal": ({"decimal": ","}, {",": ";", ".": ",", "\na;1": "\na;0,5"}),
    "probability_tolerance": ({"probability_tolerance": 0.4}, {"\na,1,0.6": "\na,1,0.8"}),
    "chunk_rounds": ({"chunk_rounds": 1}, {}),
}  # fmt: skip


def options_of(function):
    parameters = inspect.signature(function).parameters.values()
    return [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]


def log_of(kind, folder, changes):
    text = LOG
    for old, new in changes.items():
        text = text.replace(old, new)
    mark = ";" if ";" in text else ","
    rows = [line.split(mark) for line in text.splitlines()]
    kept = [i for i, name in enumerate(HEADER) if name not in KINDS[kind]]
    path = folder / "log.csv"
    path.write_text("\n".join(mark.join(row[i] for i in kept) for row in rows) + "\n")
    return path


def seen(data):
    """Everything that one log, several or a scan say."""
    if isinstance(data, Mapping):
        return {label: seen(log) for label, log in data.items()}
    parts = list(data.chunks()) if hasattr(data, "chunks") else [data]
    return repr(
        [
            [v.tolist() if isinstance(v, np.ndarray) else v for v in vars(part).values()]
            for part in parts
        ]
    )


def outcome(call):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BayesfairWarning)
            return "result", call()
    except BayesfairError as error:
        return "error", str(error)


def assert_effect(option, before, after):
    """Fail if an option was given, nothing changed and nobody said so."""
    if after[0] == "result":
        assert after != before, f"{option}= changed nothing"
    elif before[0] == "result":
        assert option in after[1] or (option == "offered" and "on offer" in after[1]), after[1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("reader", "option"), [
    (reader, option) for reader in (read_history, scan_history) for option in options_of(reader)
])  # fmt: skip
def test_an_option_of_the_readers_of_logs_has_an_effect_or_is_refused(
    reader, option, kind, tmp_path
):
    assert option in TRY, f"{option}: give TRY a value, and bayesfair.base.options where it acts"
    given, changes = TRY[option]
    path = log_of(kind, tmp_path, changes)
    before = outcome(lambda: seen(reader(path, order=False)))
    after = outcome(lambda: seen(reader(path, **{"order": False} | given)))
    assert_effect(option, before, after)
