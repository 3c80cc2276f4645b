"""Every option of `read_comparisons` has an effect on the data at hand, or is refused by name.

The options are found in the signatures, so that a new one without a value to try fails here. What
is compared is everything that the data say.
"""

import inspect

import numpy as np
import pytest

from bayesfair.base.options import COMPARISON_OPTIONS
from bayesfair.errors import BayesfairError
from bayesfair.readers.duels.comparisons import read_comparisons

# small data of every kind, with spare columns for the options to work on
COMPARISONS = {
    "duels": (
        "d.csv",
        "left,right,winner,o,w,t,f,who\n"
        "a,b,left,2,1,1,a,a\nb,c,right,1,2,1,b,c\na,c,left,3,1,2,a,a\nc,a,left,4,1,1,,c\n"
        "b,a,left,6,1,1,b,b\nc,b,left,5,2,1,c,b\na,b,tie (bothbad),7,1,1,a,a\nd,a,left,8,1,1,a,a\n"
        "a,d,left,9,1,1,a,a\n",
        {},
    ),
    "winner_loser": (
        "wl.csv",
        "winner,loser,o,w,f,x\na,b,2,1,a,z\nb,c,1,2,b,y\nc,a,3,1,a,y\na,c,4,1,c,z\nb,a,5,1,b,z\n",
        {},
    ),
    "counts": (
        "c.csv",
        "left,right,wl,wr,t,w,f,o\na,b,7,3,1,1,a,1\nb,c,1,9,2,2,b,2\na,c,4,4,3,3,c,3\n",
        {"wins": ("wl", "wr")},
    ),
    "ranked_rows": (
        "r.csv",
        "ranking,item,rank,w,o,g,j,q\n"
        "1,a,1,1,1,1,b,2\n1,b,2,1,2,1,a,1\n1,c,3,1,3,1,c,3\n2,c,1,2,4,2,a,3\n2,a,2.5,2,5,2,b,1\n"
        "2,b,3,2,6,2,c,2\n3,b,1,1,7,3,c,1\n3,c,2,1,8,3,a,2\n3,a,3,1,9,3,b,3\n",
        {"ranking": "ranking", "item": "item", "rank": "rank"},
    ),
    "orderings": (
        "o.csv",
        "p1,p2,p3,w,o\na,b,c,1,1\nc,a,b,2,2\nb,c,a,1,3\n",
        {"orderings": ["p1", "p2", "p3"]},
    ),
    "ranks": (
        "m.csv",
        "a,b,c,w,o\n1,2,3,1,1\n3,1,2.5,2,2\n2,3,1,1,3\n",
        {"ranks": ["a", "b", "c"]},
    ),
    "choices": (
        "ch.csv",
        "pick,set,w,o,pick2,set2\na,a|b|c,1,1,b,a|b\nb,b|c,2,2,c,b|c\nc,a|c,1,3,a,a|c\nc,b|c,1,4,b,b|c\n",
        {"chosen": "pick", "offered": "set"},
    ),
    "preflib": (
        "p.soc",
        "# ALTERNATIVE NAME 1: a\n# ALTERNATIVE NAME 2: b\n# ALTERNATIVE NAME 3: c\n"
        "2: 1,2,3\n1: 3,1,2\n1: 2,3,1\n",
        {},
    ),
}

#: A value of each option to try: for every kind, or by kind. Kinds are those of `COMPARISONS`.
TRY = {
    "format": "json",
    "left": {"": "f", "duels": "right", "counts": "f"},
    "right": {"": "f", "counts": "f", "duels": "f"},
    "winner": {"": "f", "duels": "who", "winner_loser": "x"},
    "loser": {"": "f", "winner_loser": "x"},
    "wins": {"": ("w", "o"), "counts": ("wr", "wl")},
    "ranking": {"": "w", "ranked_rows": "o", "duels": "w", "winner_loser": "w"},
    "item": {"": "f", "ranked_rows": "j"},
    "rank": {"": "o", "ranked_rows": "q"},
    "orderings": {"": ["f"], "orderings": ["p2", "p1", "p3"]},
    "ranks": {"": ["o"], "ranks": ["a", "b"]},
    "chosen": {"": "f", "choices": "pick2"},
    "offered": {"": "f", "choices": "set2"},
    "separator": ",",
    "first": "left",
    "weight": "w",
    "items": ["a", "b", "c", "d", "z"],
    "partial": "top",
    "lowest_is_best": False,
    "tie_tolerance": 1.0,
    "unranked": {"": 3.0},
    "last_tie": "rest",
    "outcomes": {"left": "right"},
    "winner_is": "item",
    "both_bad": "drop",
    "unknown": "skip",
    "missing": "drop",
    "labels": "ids",
    "delimiter": ";",
}
#: Data on which an option would have nothing to do are changed so that it has: (old, new) texts.
CHANGED = {
    ("partial", "ranked_rows"): ("3,a,3,1,9,3,b,3\n", ""),
    ("partial", "orderings"): ("b,c,a,1,3", "b,,,1,3"),
    ("partial", "ranks"): ("2,3,1,1,3", "2,,1,1,3"),
    ("partial", "preflib"): ("1: 2,3,1", "1: 2,3"),
    ("unranked", "ranked_rows"): (
        "3,a,3,1,9,3,b,3\n", "3,a,3,1,9,3,b,3\n4,a,1,1,1,4,b,1\n4,b,2,1,1,4,b,1\n"
    ),
    ("last_tie", "ranked_rows"): ("2,b,3,2,6", "2,b,2.5,2,6"),
    ("last_tie", "ranks"): ("3,1,2.5,2,2", "3,1,3,2,2"),
    ("last_tie", "preflib"): ("1: 3,1,2", "1: 3,{1,2}"),
    ("unknown", "duels"): ("a,c,left", "a,c,lft"),
    ("missing", "duels"): ("b,c,right", "b,,right"),
    ("missing", "winner_loser"): ("b,c,1,2", "b,,1,2"),
    ("missing", "counts"): ("b,c,1,9", "b,c,1,"),
    ("missing", "ranked_rows"): ("2,b,3,2", "2,,3,2"),
    ("missing", "choices"): ("b,b|c", "b,"),
    ("ranking", "winner_loser"): None,  # seen below: its notice needs rows that share an item
}  # fmt: skip
#: Options that say what kind the data are: they make another kind of them.
TELLING = {"left", "right", "winner", "loser", "wins", "ranking", "item", "rank", "orderings",
           "ranks", "chosen", "offered"}  # fmt: skip
#: Options whose effect hangs on more than the kind.
DEPENDS = {"missing", "separator", "delimiter"}


def value_of(option, kind):
    value = TRY[option]
    if isinstance(value, dict) and "" in value:
        return value.get(kind, value[""])
    return value


def written(folder, kind, option):
    """Write the data of a kind as the option needs them; None where it can have nothing to do."""
    name, text, _ = COMPARISONS[kind]
    change = CHANGED.get((option, kind), ("", ""))
    if change is None:
        return None
    old, new = change
    assert old in text
    path = folder / name
    path.write_text(text.replace(old, new, 1) if old else text)
    return path


def outcome(call):
    """Return what a call gives, as text, or the error that it ends with."""
    try:
        return "result", call()
    except BayesfairError as error:
        return "error", error


def seen(data):
    """Everything that data say: what is in them, and how they are described."""
    cells = [getattr(data, name) for name in ("left", "right", "outcome", "first", "start", "item",
             "level", "count", "cell", "covariates")]  # fmt: skip
    return repr((data.items, data.kind, data.partial, data.notices, data.n_skipped,
                 [None if c is None else np.asarray(c).tolist() for c in cells]))  # fmt: skip


READ = [name for name, p in inspect.signature(read_comparisons).parameters.items()
        if p.kind is p.KEYWORD_ONLY]  # fmt: skip


@pytest.mark.parametrize("kind", COMPARISONS)
@pytest.mark.parametrize("option", READ)
@pytest.mark.filterwarnings("ignore::bayesfair.errors.BayesfairWarning")
def test_an_option_of_read_comparisons_has_an_effect_or_is_refused(option, kind, tmp_path):
    assert option in TRY, f"{option}: give TRY a value, and bayesfair.base.options its kinds"
    path = written(tmp_path, kind, option)
    if path is None:
        return
    base = COMPARISONS[kind][2]
    before = outcome(lambda: seen(read_comparisons(path, **base)))
    after = outcome(lambda: seen(read_comparisons(path, **base | {option: value_of(option, kind)})))
    assert_effect(option, before, after, f"{option}=")
    effect = COMPARISON_OPTIONS.get(option)
    if effect is not None and option not in TELLING | DEPENDS:
        refused = after[0] == "error" and after[1].kind == "unused_option"
        assert refused == (kind not in effect.on), after


def assert_effect(option, before, after, name):
    """Fail if an option was given, nothing changed and nobody said so."""
    if after[0] == "result":
        assert after != before, f"{name} changed nothing"
    else:
        message = str(after[1])
        tried = before[0] == "error" or name in message or repr(option) in message
        tried = tried or f"option {option}" in message or after[1].kind != "unused_option"
        assert tried, message
