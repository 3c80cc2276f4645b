"""Probabilities that are in a log under another name, or nested, where no option names them.

Read where nothing else can be meant, else refused by name: a log that holds them must never be
reported as one without. So most rows decide what a column is meant as, not all of them: a broken
row of what is read is then refused where it stands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.arrow_arrays import plain
from bayesfair.base.checks import listed
from bayesfair.base.label_encoder import LabelEncoder
from bayesfair.base.labels import in_order
from bayesfair.base.notices import Notice
from bayesfair.base.numerals import number
from bayesfair.errors import DataError
from bayesfair.readers.log.column_groups import (
    are_marks,
    inverse_averages,
    most,
    one_in_sum,
    parts_of,
    patterns_of,
)
from bayesfair.readers.log.nested import CHANCE_WORDS, SLACK, Entry, chances_in, entries, keys_of
from bayesfair.readers.log.offers import Offers
from bayesfair.readers.values.stamps import words_of

__all__ = [
    "FoundProbabilities",
    "find_probabilities",
    "find_share",
    "labels_beside",
    "nested_layout",
    "refuse_unread",
]

# Names of the chosen arm's probability; those of the second set may as well mean something else.
_CHOSEN = {
    "propensity", "propensities", "propensityscore", "propensityscores", "pscore", "pscores",
    "actionprob", "actionprobability", "selectionprob", "selectionprobability", "chosenprob",
    "chosenprobability", "loggedprob", "loggedprobability", "loggingprob", "loggingprobability",
    "behaviorprob", "behaviorprobability", "behaviourprob", "behaviourprobability",
    "assignmentprob", "assignmentprobability",
}  # fmt: skip
_MAYBE_CHOSEN = {"p", "pi", "prob", "probs", "proba", "probability", "policyprob"}
_LOGS = {"log", "ln", "logp", "logprob", "logprobs", "loglik"}
_PERCENT = {"pct", "percent", "percentage", "perc"}
_INVERSE = {"inverse", "inv", "ipw", "iptw", "ips", "iw", "importance"}


@dataclass(frozen=True)
class FoundProbabilities:
    """What was found.

    Attributes
    ----------
    probabilities : dict of str to str
        Label -> column (or part of `nested`), for all arms.
    pattern : str
        Of these columns.
    nested, labels : str or None
        The one column that holds them all, and the one that lists whose they are.
    propensity : str or None
        Column of the chosen arm's probability.
    notices : tuple of str
        What was taken up.
    """

    probabilities: dict[str, str]
    pattern: str = ""
    nested: str | None = None
    propensity: str | None = None
    notices: tuple[str, ...] = ()
    labels: str | None = None


def find_probabilities(
    source: str,
    columns: Mapping[str, Any],
    numbers: Mapping[str, NDArray[np.float64]],
    seen: Sequence[str],
    arms: Sequence[str] | None,
    *,
    known: bool = False,
) -> FoundProbabilities | None:
    """Return the probabilities that unused columns hold, None if none of them looks like it.

    Parameters
    ----------
    source : str
        What messages call the log.
    columns : mapping
        Unused columns, their first rows.
    numbers : mapping
        Those of them that are meant as numbers; all NaN = nothing is known of it.
    seen : sequence of str
        Labels of the arms in the first rows.
    arms : sequence of str or None
        Labels that the caller gave.
    known : bool
        The chosen arm's probability is: only those of all arms are looked for.

    Raises
    ------
    DataError
        If columns may be probabilities, and which of whom is not certain.
    """
    sure, maybe = _by_pattern(numbers, seen, known=known)
    if len(sure) == 1:
        pattern, found = next(iter(sure.items()))
        return FoundProbabilities(found, pattern, None, None, (_said(pattern, found.values()),))
    maybe += [_use("probabilities", pattern, found.values()) for pattern, found in sure.items()]
    if not sure:
        nested, unsure = _nested(columns, seen, arms)
        if nested is not None:
            return nested
        maybe += unsure
    if known and not maybe:
        return None
    chosen = [c for c in numbers if _plain(c) in _CHOSEN]
    if len(chosen) == 1 and not maybe and _are_chances(numbers[chosen[0]]):
        column = chosen[0]
        text = (
            f"column {column!r} was read as the probability of the chosen arm. Pass "
            "propensity=False if it is something else."
        )
        notice = Notice(text, kind="probabilities_found", column=column)
        return FoundProbabilities({}, propensity=column, notices=(notice,))
    maybe += [_use("propensity", c, [c]) for c in chosen]
    maybe += [
        _use("propensity", c, [c])
        for c, values in numbers.items()
        if _plain(c) in _MAYBE_CHOSEN and _may_be_chances(values)
    ]
    if not maybe:
        maybe = [f"{c!r}{how}" for c, values in numbers.items() if (how := _other_scale(c, values))]
    if seen and not maybe:
        maybe = [
            f"{listed(found, 4)}, which sum to {total} (if they are: name them after the arms, as "
            f"'p_{seen[0]}'{', divided by 100' * (total > 1)}; pass context= if the rule saw them)"
            for total in (1, 100) for found in parts_of(total, numbers, len(arms or seen))
        ]  # fmt: skip
    if maybe:
        raise _unread(source, maybe, known=known)
    k = len(arms or seen)
    alike = [c for c, values in numbers.items() if inverse_averages(k, values)]
    if not alike:
        return None
    text = (
        f"{listed(alike, 4)} may be the probability of the chosen arm: it lies in (0, 1], and 1 "
        f"over it is {k} on average, which is the number of arms. If it is, pass "
        f"propensity={alike[0]!r}."
    )
    notice = Notice(text, kind="may_be_propensity", column=alike[0], n=len(alike))
    return FoundProbabilities({}, notices=(notice,))


def _by_pattern(
    numbers: Mapping[str, NDArray[np.float64]], seen: Sequence[str], *, known: bool
) -> tuple[dict[str, dict[str, str]], list[str]]:
    """Return patterns of columns for all arms: those that are read, and what may be meant."""
    sure: dict[str, dict[str, str]] = {}
    maybe: list[str] = []
    for pattern, found in patterns_of(list(numbers), seen).items():
        named = bool(words_of(pattern.replace("{arm}", " ")) & CHANCE_WORDS)
        matrix = np.column_stack([numbers[c] for c in found.values()])
        if one_in_sum(matrix, named=named):
            if named:
                sure[pattern] = found
            elif not known:  # else of another rule, say
                maybe.append(_use("probabilities", pattern, found.values()))
        elif named and not known:
            how = _other_scale(pattern.replace("{arm}", " "), matrix)
            maybe.append(_use("probabilities", pattern, found.values()) + how)
    return sure, maybe


def find_share(
    source: str,
    columns: Mapping[str, Any],
    numbers: Mapping[str, NDArray[np.float64]],
    round_of: NDArray[np.int64],
) -> tuple[str, Notice] | None:
    """Return the column that sums to 1 over the rows of each round, of one row per round and arm.

    Parameters
    ----------
    source : str
        What messages call the log.
    columns : mapping
        Unused columns.
    numbers : mapping
        Those of them that are meant as numbers.
    round_of : (n,) array of int64
        Number of each row's round.

    Raises
    ------
    DataError
        If there are several, or one with such a name sums to something else.
    """
    found, named = [], []
    for name, values in numbers.items():
        inside = np.isnan(values) | ((values >= 0) & (values <= 1 + 1e-6))
        sums = np.bincount(round_of, np.nan_to_num(values))
        if most(inside) and most(np.abs(sums - 1) <= SLACK) and not are_marks(values):
            found.append(name)
        elif _plain(name) in _CHOSEN:
            named.append(name)
    named += [c for c in columns if _plain(c) in _CHOSEN and c not in numbers]
    if len(found) == 1 and not named:
        return found[0], Notice(
            f"column {found[0]!r} was read as the probability of each row's arm: it sums to 1 "
            "within rounds. Pass propensity=False if it is something else.",
            kind="probabilities_found",
            column=found[0],
        )
    if found or named:
        raise _unread(source, [_use("propensity", c, [c]) for c in (*found, *named)])
    return None


def refuse_unread(
    source: str, columns: Mapping[str, Any], numbers: Mapping[str, Any], seen: Sequence[str],
    *, item: str = "arm", known: bool = False,
) -> None:  # fmt: skip
    """Refuse columns that look like probabilities but are not read by themselves; see the above.

    Raises
    ------
    DataError
        Naming them: fields of records, or those of a duel, whose item the name does not say.
    """
    try:
        found = find_probabilities(source, columns, numbers, seen, None, known=known)
        if found is not None and (found.probabilities or found.propensity):
            option = "propensity" if found.propensity else "probabilities"
            named = found.propensity or found.nested
            pattern = named or found.pattern
            used = [named] if named else [*found.probabilities.values()]
            raise _unread(source, [_use(option, pattern, used)], known=known)
    except DataError as error:
        error.args = (str(error.args[0]).replace("{arm}", f"{{{item}}}"),)
        raise


def _unread(source: str, maybe: Sequence[str], *, known: bool = False) -> DataError:
    none, without = ("", "") if known else (" or 'propensity'", " and propensity=False")
    return DataError(
        f"{source} has no column 'p_{{arm}}'{none}, but columns that look like selection "
        f"probabilities: {'; '.join(maybe[:4])}. Pass the option that is right, or "
        f"probabilities=False{without} to audit without them.",
        kind="probabilities_unread",
        source=source,
    )


def _use(option: str, value: str, columns: Any) -> str:
    return f"{listed(columns, 4)} ({option}={value!r})"


def _other_scale(name: str, values: NDArray[np.float64]) -> str:
    """Return what makes probabilities of numbers that are something else of them, or ""."""
    words, known = words_of(name), values[~np.isnan(values)]
    if not known.size:
        return ""
    chance = bool(words & (CHANCE_WORDS - {"weight", "weights"}))
    logs = words & _LOGS and (chance or words & {"logp", "logprob", "logprobs"})
    if logs and most(known <= 0):
        return ": logarithms; a column of numpy.exp() of them is what is needed"
    if words & _PERCENT and chance and most((known >= 0) & (known <= 100)) and (known > 1).any():
        return ": percent; divide them by 100"
    weights = words & {"ipw", "iptw", "ips"} or words & {"weight", "weights"}
    if words & _INVERSE and (chance or weights) and most(known >= 1) and (known > 1).any():
        return ": inverse probabilities; a column of 1 / them is what is needed (propensity=)"
    return ""


def _said(pattern: str, columns: Any) -> Notice:
    return Notice(
        f"columns {listed(columns, 4)} were read as the probabilities of the arms "
        f"(probabilities={pattern!r}): they sum to 1 in the first rows. Pass probabilities=False "
        "if they are something else.",
        kind="probabilities_found",
        column=pattern,
    )


def _plain(name: str) -> str:
    """Return the letters of a name; of a field's path its own."""
    return "".join(c for c in name.rpartition(".")[2].casefold() if c.isalnum())


def _are_chances(values: NDArray[np.float64]) -> bool:
    """Whether most of what is known of a column are probabilities that were drawn from."""
    known = values[~np.isnan(values)]
    return most((known > 0) & (known <= 1))


def _may_be_chances(values: NDArray[np.float64]) -> bool:
    """Whether all that is known of a column are probabilities, or most of it and not 1."""
    known = values[~np.isnan(values)]
    return bool(((known > 0) & (known <= 1)).all()) or most((known > 0) & (known < 1))


def _nested(
    columns: Mapping[str, Any], seen: Sequence[str], arms: Sequence[str] | None
) -> tuple[FoundProbabilities | None, list[str]]:
    """Return the one column that holds the probabilities of all arms, or those that may."""
    found: list[FoundProbabilities] = []
    unsure: list[str] = []
    for name, column in columns.items():
        rows = entries(column)
        named = bool(words_of(name) & CHANCE_WORDS)
        if rows is None and named and _look_like_chances(column):
            how = 'write it as JSON, such as {"a": 0.25, "b": 0.75}, if that does not read it'
            unsure.append(f"{_use('probabilities', name, [name])}; {how}")
        if rows is None or all(row is None for row in rows):
            continue
        keys = keys_of(rows)
        values = [list(r.values()) if isinstance(r, dict) else list(r or ()) for r in rows]
        width = max(map(len, values))
        filled = [[*map(_float, v), *[np.nan] * (width - len(v))] for v in values]
        fits = width > 1 and one_in_sum(np.array(filled), named=named)
        labels = keys if keys is not None else tuple(arms or ())
        beside = None
        if named and keys is None and fits:
            beside = labels_beside(columns, rows, seen)
        if fits and keys is not None and set(seen) <= set(keys):
            wanted = keys if arms is None else tuple(arms)
            found.append(nested_layout(name, wanted))
        elif beside is not None:
            found.append(nested_layout(name, arms or beside[0], beside[1]))
        elif fits and keys is None and len(labels) == width and named:
            found.append(nested_layout(name, labels))
        elif named and keys is None and fits:
            how = "" if arms else ", together with arms= in the order of the lists"
            unsure.append(f"{name!r}, lists of {width} (probabilities={name!r}{how})")
        elif named:
            unsure.append(_use("probabilities", name, [name]))
    if len(found) == 1 and not unsure:
        return found[0], []
    return None, unsure + [_use("probabilities", str(f.nested), [f.nested]) for f in found]


def _look_like_chances(column: Any) -> bool:
    """Whether a column holds lists, records or numbers that sum to 1 which nobody can read.

    Single rows apart; what is wrong with them is said if they are read.
    """
    held = [v for v in plain(column).to_pylist() if v is not None and v != ""]
    texts = [v.strip() for v in held if isinstance(v, str)]
    return most(np.array([text[:1] in "{[(" for text in texts], np.bool_)) or most(
        np.array([chances_in(v) for v in held], np.bool_)
    )


def labels_beside(
    columns: Mapping[str, Any], rows: Sequence[Entry], seen: Sequence[str], delimiter: str = "|"
) -> tuple[tuple[str, ...], str] | None:
    """Return the labels in the one column that lists as many in each row as lists beside it do.

    Parameters
    ----------
    columns : mapping
        The columns that may.
    rows : sequence of lists or None
        The lists.
    seen : sequence of str
        Arms that must be among the labels.
    delimiter : str
        What separates labels in plain text.

    Returns
    -------
    (labels, column) or None
    """
    found = []
    for name, column in columns.items():
        listed = Offers(LabelEncoder("arm"), delimiter).lists(column)
        labels = {label for row in listed if row for label in row}
        fits = [
            own is not None and len(own) == len(row) == len(set(own))
            for own, row in zip(listed, rows, strict=True)
            if row is not None
        ]
        if most(np.array(fits, np.bool_)) and len(labels) > 1 and set(seen) <= labels:
            found.append((tuple(in_order(labels)), name))
    return found[0] if len(found) == 1 else None


def nested_layout(
    name: str, labels: Sequence[str], beside: str | None = None
) -> FoundProbabilities:
    """Return the probabilities of these arms as parts of one column.

    `beside`: the column that lists, row by row, whose they are.
    """
    of = f", in the order in which column {beside!r} lists them" if beside else ""
    parts = {label: f"{name}.{label}" for label in labels}
    notice = Notice(
        f"column {name!r} was read as the probabilities of the arms {listed(labels, 4)}{of}. Pass "
        "probabilities=False if it is something else.",
        kind="probabilities_found",
        column=name,
    )
    return FoundProbabilities(parts, f"{name}.{{arm}}", name, None, (notice,), beside)


def _float(value: Any) -> float:
    found = number(value) if isinstance(value, str) else value
    return float("nan") if found is None else float(found)
