"""Which kinds of data an option has an effect on; one check for Python and the command line.

An option that was given and has no effect is refused: whoever gave it would read the result as if
it had. In Python an option that has its default value counts as not given; the command line knows
better, and says what was `written`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from bayesfair.base.notices import Notice
from bayesfair.errors import OptionError

__all__ = [
    "AUDIT_OPTIONS",
    "COMPARISON_OPTIONS",
    "KINDS",
    "LOG_OPTIONS",
    "Effect",
    "given",
    "no_effect",
    "refuse_beside",
    "refuse_without_effect",
    "written",
]

_WRITTEN: ContextVar[frozenset[str]] = ContextVar("options that were written", default=frozenset())


class Effect(NamedTuple):
    """Where an option has an effect: the kinds of data, one of which is needed, and the reason."""

    on: frozenset[str]
    needs: str


#: What data and questions are called in messages.
KINDS = {
    "duels": "duels with one row each (winner=)",
    "winner_loser": "duels given as winner and loser (winner=, loser=)",
    "counts": "duels given as counts (wins=)",
    "ranked_rows": "rankings with one row per item (ranking=, item=, rank=)",
    "orderings": "rankings with one column per place (orderings=)",
    "ranks": "rankings with one column per item (ranks=)",
    "choices": "choices (chosen=, offered=)",
    "preflib": "PrefLib ballots",
}

_DUELS = frozenset({"duels", "winner_loser"})
_PAIRS = _DUELS | {"counts"}
_RANKED = frozenset({"ranked_rows", "orderings", "ranks"})
_TABLES = _PAIRS | _RANKED | {"choices"}
_SCORED = frozenset({"ranked_rows", "ranks"})
_WORDS = frozenset({"duels"})

_OF_DUELS = "it is a column of duels"
_OF_WORDS = "it says what the words in winner= mean, a column of duels with one row each"
_OF_LONG = "it is a column of rankings with one row per item: ranking=, item=, rank="

#: Options of `read_comparisons`.
COMPARISON_OPTIONS: dict[str, Effect] = {
    "left": Effect(_PAIRS - {"winner_loser"}, _OF_DUELS),
    "right": Effect(_PAIRS - {"winner_loser"}, _OF_DUELS),
    "winner": Effect(_DUELS, "it holds the outcome of one duel per row"),
    "loser": Effect(
        frozenset({"winner_loser"}), "it stands beside winner=, without left= and right="
    ),
    "wins": Effect(frozenset({"counts"}), "it names counts of duels, beside left= and right="),
    "ranking": Effect(_DUELS | {"ranked_rows"}, _OF_LONG),
    "item": Effect(frozenset({"ranked_rows"}), _OF_LONG),
    "rank": Effect(frozenset({"ranked_rows"}), _OF_LONG),
    "orderings": Effect(frozenset({"orderings"}), "it names one column per place"),
    "ranks": Effect(frozenset({"ranks"}), "it names one column per item"),
    "chosen": Effect(frozenset({"choices"}), "it needs offered=, the items to choose from"),
    "offered": Effect(frozenset({"choices"}), "it needs chosen=, the item that was taken"),
    "separator": Effect(
        frozenset({"offered_text"}), "it separates items in offered=, a column of text"
    ),
    "first": Effect(_PAIRS, "it says which side of a duel was shown first"),
    "weight": Effect(_TABLES, "the file counts its ballots itself"),
    "items": Effect(_TABLES - {"ranks"}, "the data name all items themselves"),
    "partial": Effect(_RANKED | {"preflib"}, "it says what it means that a ranking lacks items"),
    "lowest_is_best": Effect(_SCORED, "it belongs to ranks that are numbers: rank= or ranks="),
    "tie_tolerance": Effect(_SCORED, "it belongs to ranks that are numbers: rank= or ranks="),
    "unranked": Effect(_SCORED, "it belongs to ranks that are numbers: rank= or ranks="),
    "last_tie": Effect(
        _SCORED | {"preflib"},
        "it says what sharing the last rank means, and columns of places hold one item each",
    ),
    "outcomes": Effect(_WORDS, _OF_WORDS),
    "winner_is": Effect(_WORDS, _OF_WORDS),
    "both_bad": Effect(_WORDS, _OF_WORDS),
    "unknown": Effect(_WORDS, _OF_WORDS),
    "missing": Effect(
        _PAIRS | {"ranked_rows", "choices", "weighted"},
        "an empty place says that an item was not ranked, and partial= says what that means",
    ),
    "labels": Effect(frozenset({"preflib"}), "it chooses what items of PrefLib files are called"),
    "delimiter": Effect(frozenset({"text"}), "it separates the columns of text files"),
}

#: Options of `read_history` and `scan_history`; what is not here has an effect on every log.
LOG_OPTIONS: dict[str, Effect] = {
    "delimiter": Effect(frozenset({"text"}), "it separates the columns of text files"),
    "table": Effect(frozenset({"sqlite"}), "it names a table of a SQLite file"),
    "decimal": Effect(frozenset({"text"}), "it is the decimal sign of numbers that are text"),
    "probability_tolerance": Effect(
        frozenset({"full"}), "it needs the probabilities of all arms (probabilities=)"
    ),
    "offered_delimiter": Effect(
        frozenset({"offered_text"}), "it separates labels in offered=, a column of text"
    ),
    "missing_context": Effect(
        frozenset({"context"}), "it names the level of a missing context (context=)"
    ),
    "chosen": Effect(frozenset({"long"}), "it marks one row of each round, which round= numbers"),
}

#: Options of `audit` and of resumed audits.
AUDIT_OPTIONS: dict[str, Effect] = {
    "tolerance": Effect(frozenset({"full"}), "it needs the probabilities of all arms in the log"),
    "model": Effect(frozenset({"objective"}), "it is a model of the true rewards"),
    "fit": Effect(frozenset({"objective"}), "it is the posterior of the true rewards"),
    "rule": Effect(frozenset({"none"}), "it estimates a rule of which nothing was logged"),
    "across": Effect(frozenset({"full"}), "it needs the probabilities of all arms in the log"),
    "propensity_draws": Effect(
        frozenset({"full", "chosen"}), "it is the error of logged probabilities, and there are none"
    ),
    "draws": Effect(frozenset({"drawn"}), "it counts draws of the true rewards"),
}


@contextmanager
def written(names: Collection[str]) -> Iterator[None]:
    """Let options with these names count as given, whatever their value.

    Examples
    --------
    >>> def read(source, sep="|"): ...
    >>> with written({"sep"}):
    ...     given(read, {"source": 1, "sep": "|"})
    {'sep': '|'}
    """
    token = _WRITTEN.set(frozenset(names))
    try:
        yield
    finally:
        _WRITTEN.reset(token)


@functools.cache
def _defaults(function: Callable[..., Any]) -> list[tuple[str, Any]]:
    """Return the options of a function with their defaults: to look them up takes long."""
    options = inspect.signature(function).parameters.values()
    return [(one.name, one.default) for one in options if one.default is not one.empty]


def given(function: Callable[..., Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that differ from the defaults of `function`, or were `written`.

    Examples
    --------
    >>> def read(source, sep="|", weight=None): ...
    >>> given(read, {"source": 1, "sep": "|", "weight": "w"})
    {'weight': 'w'}
    """
    found = {}
    for name, default in _defaults(function):
        if name not in values:
            continue
        value = values[name]
        plain = isinstance(value, (str, int, float, bool, type(None)))
        same = value is default or (plain and value == default)
        if not same or name in _WRITTEN.get():
            found[name] = value
    return found


def refuse_without_effect(
    options: Mapping[str, Any],
    kinds: Collection[str],
    effects: Mapping[str, Effect],
    what: str,
) -> None:
    """Refuse the first option that has no effect on data of these kinds.

    Parameters
    ----------
    options : mapping of str to value
        What was given, see `given`.
    kinds : collection of str
        What the data are; one of those that the option has an effect on must be among them.
    effects : mapping of str to Effect
        Options that are not named have an effect on everything.
    what : str
        What messages call the data.

    Raises
    ------
    OptionError
        Naming the option, its value and what it needs; `kind` is ``"unused_option"``.

    Examples
    --------
    >>> refuse_without_effect({"wins": "ij"}, {"counts"}, COMPARISON_OPTIONS, "counts")
    >>> refuse_without_effect({"wins": "ij"}, {"duels"}, COMPARISON_OPTIONS, KINDS["duels"])
    Traceback (most recent call last):
    bayesfair.errors.OptionError: wins='ij' has no effect on duels with one row each (winner=): it
    names counts of duels, beside left= and right=. Leave wins= out, or give what it needs.
    """
    for name, value in options.items():
        effect = effects.get(name)
        if effect is None or effect.on & set(kinds):
            continue
        raise OptionError(
            f"{_written(name, value)} has no effect on {what}: {effect.needs}. Leave {name}= out"
            ", or give what it needs.",
            kind="unused_option",
            column=name,
            value=value,
        )


def refuse_beside(
    name: str, value: Any, others: Mapping[str, Any], why: str | Mapping[str, str]
) -> None:
    """Refuse the first of other options that was given beside one that it does not go with.

    Parameters
    ----------
    name, value
        The option that was given.
    others : mapping of str to value
        Those that exclude it; None = not given.
    why : str or mapping of option to str
        The reason, for all of them or each.

    Examples
    --------
    >>> refuse_beside("rule", "estimated", {"client": None}, "it runs in one process")
    >>> refuse_beside("rule", "estimated", {"client": 1}, "it runs in one process")
    Traceback (most recent call last):
    bayesfair.errors.OptionError: rule='estimated' and client=1 exclude each other: it runs in one
    process.
    """
    for other, beside in others.items():
        if beside is not None:
            raise OptionError(
                f"{_written(name, value)} and {_written(other, beside)} exclude each other: "
                f"{why if isinstance(why, str) else why[other]}.",
                kind="excluded",
                column=other,
                value=beside,
            )


def no_effect(name: str, value: Any, why: str) -> Notice:
    """Return the notice that an option was asked for and found nothing to do in the data at hand.

    Examples
    --------
    >>> no_effect("missing", "drop", "nothing is missing")
    "No effect: missing='drop', nothing is missing."
    """
    return Notice(
        f"No effect: {_written(name, value)}, {why}.",
        kind="option_without_effect",
        column=name,
        value=value,
    )


def _written(name: str, value: Any) -> str:
    """Return an option as it is written; of an object, which has no such words, its name alone."""
    kinds = (str, bytes, int, float, list, tuple, Mapping, type(None))
    text = repr(value) if isinstance(value, kinds) else ""
    return f"{name}={text if len(text) <= 60 else f'{text[:57]}...'}"
