"""What a caller hands to `History`: arms, priors, offers and round numbers, checked and resolved.

Nothing is guessed: what could be read in two ways, or would be cut off by a conversion, is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesfair.base.checks import as_sequence, counted, first_where, listed, shown
from bayesfair.base.label_encoder import LabelEncoder
from bayesfair.base.labels import by_label, labels_of, text_of
from bayesfair.base.notices import Notice
from bayesfair.errors import ArmError, DataError
from bayesfair.kernels.log.guards import text_prints
from bayesfair.typing import Column, Labels, Where

__all__ = [
    "GivenFields",
    "by_name",
    "check_whole",
    "column_labels",
    "fingerprints",
    "marks",
    "no_number",
    "prior_pairs",
    "resolve_arms",
]


class GivenFields(TypedDict, total=False):
    """What `History` takes besides arms and rewards, as a caller may hand it over."""

    selection_probability: ArrayLike | Column | None
    propensity: Column | None
    arms: Labels | None
    known_at: Column | None
    time: Column | None
    row: Column | None
    known_until: Column | None
    offered: ArrayLike | None
    prior_counts: Any
    source: str
    n_skipped: int
    probability_tolerance: float | None
    notices: Sequence[str]
    resolution: Any
    missing: str
    repairs: Any
    reward_column: str
    unused_columns: Sequence[str]
    unique: Column | None
    unique_column: str
    user: Column | None
    user_column: str
    context: Any
    keep_prob: Column | None
    covered: ArrayLike | None


def column_labels(values: Any) -> tuple[str, ...] | None:
    """Return the column names of a data frame, None for arrays and frames with numbered columns."""
    names = getattr(values, "column_names", None)  # Arrow, whose `columns` are the data
    names = getattr(values, "columns", None) if names is None else names
    if names is None or callable(names):
        return None
    names = list(names)
    return (
        None
        if names == list(range(len(names)))
        else labels_of(names, "arm", "the columns of a data frame")
    )


def fingerprints(name: str, values: Any, n_rounds: int) -> NDArray[np.uint64]:
    """Return a fingerprint of each value, by its text; 0 where it is missing.

    Raises
    ------
    DataError
        If there is not one value per round.
    """
    if not hasattr(values, "__len__") or isinstance(values, str) or len(values) != n_rounds:
        size = f"{len(values)} values" if hasattr(values, "__len__") else f"{values!r}"
        raise DataError(
            f"{name} has {size}, expected one for each of the {n_rounds} rounds of `arm`.",
            kind="length", column=name,
        )  # fmt: skip
    texts = [text_of(v) for v in values]
    gone = [text is None for text in texts]
    encoded = [b"" if text is None else text.encode() for text in texts]
    offsets = np.concatenate([[0], np.cumsum([len(part) for part in encoded])]).astype(np.int64)
    prints = text_prints(np.frombuffer(b"".join(encoded), np.uint8), offsets)
    prints[gone] = 0
    return prints


def by_name(
    what: str, matrix: NDArray[Any], names: tuple[str, ...], arms: tuple[str, ...]
) -> NDArray[Any]:
    """Return the columns of a frame in the order of the arms.

    Raises
    ------
    DataError
        If the columns are not called as the arms are.
    """
    if sorted(names) != sorted(arms):
        raise DataError(
            f"the columns of {what} are {listed(names)}, but the arms are {listed(arms)}. Call "
            "each column as its arm, or pass an array whose columns are in the order of `arms`."
        )
    return np.ascontiguousarray(matrix[:, [names.index(a) for a in arms]])


def check_whole(name: str, raw: NDArray[Any], where: Where) -> None:
    """Refuse what a conversion to whole numbers would cut off or wrap around.

    Raises
    ------
    DataError
        Naming the first such round and its value.
    """
    if raw.dtype.kind == "O":
        raw = raw.astype(np.float64)
    if raw.dtype.kind not in "fu" or not raw.size:
        return
    wrong = np.abs(raw) >= 2.0**62
    if raw.dtype.kind == "f":
        wrong |= ~np.isfinite(raw) | (raw != np.floor(raw))
    if first := first_where(wrong):
        raise DataError(
            f"{where(first.at)}: {name} is {raw[first.at]}; it must be a whole number in every "
            "round (rounds are counted from 0)."
        )


def no_number(
    name: str, values: Any, error: Exception, n_rounds: int, source: str, where: Where
) -> str:
    """Say which value of a column is no number."""
    text = getattr(getattr(values, "dtype", None), "kind", "O") in "OU"
    if isinstance(values, (list, tuple, np.ndarray)) and text and len(values) == n_rounds:
        for t, value in enumerate(values):
            try:
                float(value)
            except (TypeError, ValueError, OverflowError):
                if value is None and name == "reward":
                    continue
                place = f"position {t}" if name == "row" else where(t)
                return (
                    f"{name} of {place} is {shown(value)}, which is no number. Give numbers"
                    f"{' (NaN where none was observed)' if name == 'reward' else ''}; "
                    "bayesfair.read_history understands words such as 'True'."
                )
    return f"{name} of {source} is not numeric: {error}."


def marks(values: ArrayLike) -> NDArray[np.bool_]:
    """Return the arms on offer as a matrix of booleans.

    Raises
    ------
    DataError
        If it is no matrix, or holds anything but true and false (1 and 0).
    """
    try:
        found = np.asarray(values)
        if found.dtype.kind == "O":
            found = found.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        found = np.zeros(0, dtype=str)
    if found.ndim != 2 and found.size:
        raise DataError(
            f"offered must be (rounds, arms) of True and False, got shape {found.shape}."
        )
    if found.ndim != 2 or found.dtype.kind not in "biuf" or not np.isin(found, (0, 1)).all():
        raise DataError("offered must be (rounds, arms), each value True or False (1 or 0).")
    return found.astype(bool)


def prior_pairs(given: Any, arms: tuple[str, ...]) -> NDArray[np.float64] | None:
    """Return outcomes before the log: ``(k, 2)``, successes and failures.

    Raises
    ------
    ArmError
        If a mapping names an arm that is not there.
    DataError
        Naming the arm and its value, if that is no pair of counts.
    """
    if given is None:
        return None
    given = getattr(given, "state", given)  # an earlier audit, or the state it ended in
    if hasattr(given, "arms") and isinstance(getattr(given, "counts", None), np.ndarray):
        given = dict(zip(given.arms, given.counts, strict=True))
    if isinstance(given, Mapping):
        pairs_of = by_label(given, "arm", "prior")
        unknown = [a for a in pairs_of if a not in arms]
        if unknown:
            raise ArmError(
                f"prior names {listed(unknown)}, not among the arms {listed(arms)}.",
                kind="unknown_arm",
                column="prior",
                value=unknown[0],
            )
        given = [pairs_of.get(a, (0.0, 0.0)) for a in arms]
    wanted = (
        f"prior must give (successes, failures) for each of the arms {listed(arms)}, both numbers "
        "finite and >= 0"
    )
    try:
        pairs = list(given)
    except TypeError:
        raise DataError(f"{wanted}; got {given!r}.") from None
    if isinstance(given, (str, bytes)) or len(pairs) != len(arms):
        got = repr(given) if isinstance(given, (str, bytes)) else counted(len(pairs), "pair")
        raise DataError(f"{wanted}; got {got}.")
    counts = np.zeros((len(arms), 2))
    for i, (label, pair) in enumerate(zip(arms, pairs, strict=True)):
        try:
            if isinstance(pair, (str, bytes)):
                raise TypeError
            successes, failures = map(float, pair)
        except (TypeError, ValueError, OverflowError):
            successes = failures = np.nan
        if not (0 <= successes < np.inf and 0 <= failures < np.inf):
            raise DataError(f"{wanted}; arm {label!r} has {shown(pair)}.")
        counts[i] = successes, failures
    return counts


def _texts(values: Iterable[Any], where: Where) -> list[str | None]:
    """Return the text of each label, None where it is missing."""
    texts = []
    for t, value in enumerate(values):
        try:
            texts.append(text_of(value))
        except UnicodeDecodeError:
            raise ArmError(
                f"{where(t)}: the arm {value!r} is not UTF-8 text.", kind="not_text", column="arm"
            ) from None
    return texts


def _labels_or_numbers(arm: Any, where: Where) -> NDArray[Any]:
    """Return the chosen arms as integers or text; a missing arm is no label.

    NumPy would write None and NaN among text as the words "None" and "nan", and the numbers 1.0 and
    1 as two texts; `text_of` reads each value of such a list for itself.
    """
    try:
        kinds = set(map(type, arm)) if isinstance(arm, (list, tuple)) else set()
        mixed = len(kinds) > 1 and not kinds.isdisjoint({str, bytes})
        nested = any(hasattr(k, "__len__") and not issubclass(k, (str, bytes)) for k in kinds)
        if mixed and not nested:
            raw = np.fromiter(arm, dtype=object, count=len(arm))
        else:
            raw = np.asarray(arm)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(
            f"arm must be one label per round, got {type(arm).__name__}: {error}",
            kind="wrong_kind", column="arm",
        ) from None  # fmt: skip
    if raw.ndim != 1:
        raise DataError(f"arm must be one value per round, got shape {raw.shape}.")
    gone: list[int] = []
    if raw.dtype.kind == "f":
        gone = np.flatnonzero(np.isnan(raw)).tolist()
    elif raw.dtype.kind == "O" or (raw.dtype.kind == "U" and not isinstance(arm, np.ndarray)):
        values = arm.to_pylist() if hasattr(arm, "to_pylist") else arm
        gone = [t for t, text in enumerate(_texts(values, where)) if text is None]
    elif raw.dtype.kind == "S":
        for t, value in enumerate(raw.tolist()):
            try:
                value.decode("utf-8")
            except UnicodeDecodeError:
                raise ArmError(f"{where(t)}: the arm {value!r} is not UTF-8 text.") from None
        return np.char.decode(raw, "utf-8")
    if gone:
        raise _missing_arm(gone[0], len(gone), where)
    return raw


class Resolved(NamedTuple):
    """Arms of a history: the position of each round's arm, the labels, what was merged."""

    codes: NDArray[np.int32]
    arms: tuple[str, ...]
    notices: tuple[str, ...] = ()


def resolve_arms(
    arm: Any, given: Any, width: int | None, names: tuple[str, ...] | None, where: Where
) -> Resolved:
    """Return the position of each round's arm, and the labels.

    Labels are cleaned as those of files are: blanks at their ends and the encoding of their letters
    make no difference.

    Parameters
    ----------
    arm : (T,) array
        Labels or 0-based positions.
    given : sequence
        Labels; empty = those of the columns if all arms are among them, else those seen. Integers
        that count from 0 are then positions, and so are all with columns without names.
    width : int or None
        Columns of the probabilities or offers.
    names : tuple of str or None
        Their names.
    where : callable
        Names a round.

    Raises
    ------
    ArmError
        If an arm is missing, unknown, or may be meant in two ways.
    """
    raw = _labels_or_numbers(arm, where)
    decimals = raw.dtype.kind == "f"
    if decimals and raw.size and np.all(raw == np.floor(raw)):
        raw = raw.astype(np.int64)
    integer = raw.dtype.kind in "iu" or raw.size == 0
    arms: tuple[str, ...] | None = None
    notices: list[Notice] = []
    whole = given is None or isinstance(given, (str, bytes))
    given = None if whole else as_sequence(given, "arms")
    if given:
        positions = integer and all(isinstance(a, str) for a in given)
        arms = labels_of(given)
        if positions and raw.dtype != np.int32:  # what a History itself holds are positions
            _check_one_meaning(raw, arms, where)
    elif integer and names is None:
        lowest, highest = (int(raw.min()), int(raw.max()) + 1) if raw.size else (0, 0)
        # with nothing to count in, numbers are labels unless they count from 0 as positions do
        named = width is None and raw.dtype != np.int32 and lowest >= (0 if decimals else 1)
        positions = not named
        if positions:
            arms = tuple(str(i) for i in range(highest if width is None else width))
            notices = _never_chosen(raw, arms) if width is None else []
            _check_first(raw, width or 0, where)
    else:
        positions = False
    if positions and arms is not None:
        if outside := first_where((raw < 0) | (raw >= len(arms))):
            hint = (
                " If labels are meant, give them as text." if str(raw[outside.at]) in arms else ""
            )
            if raw.min() == 1 and raw.max() == len(arms):
                hint += " If they count from 1, take 1 away."
            raise ArmError(
                f"{where(outside.at)}: arm {raw[outside.at]} is not a position 0..{len(arms) - 1} "
                "in arms "
                f"{listed(arms)}.{hint}"
            )
        return Resolved(raw.astype(np.int32), arms, tuple(notices))
    encoder = LabelEncoder("arm", arms)
    codes = encoder.encode(raw, where)
    if empty := first_where(codes < 0):
        raise _missing_arm(*empty, where)
    if arms is None and names and set(encoder.labels) <= set(names):
        place = {name: i for i, name in enumerate(names)}
        codes = np.array([place[label] for label in encoder.labels], np.int32)[codes]
        return Resolved(codes, names, (*notices, *encoder.notices()))
    (codes,) = encoder.settled(codes)
    return Resolved(codes, encoder.labels, (*notices, *encoder.notices()))


def _never_chosen(raw: NDArray[Any], arms: tuple[str, ...]) -> list[Notice]:
    """Say which positions below the highest no round chose: they count among the arms."""
    missing = np.setdiff1d(np.arange(len(arms)), raw).tolist()
    if not missing:
        return []
    return [
        Notice(
            f"the arms are the positions 0..{len(arms) - 1}, of which no round chose "
            f"{listed(missing)}; {'it counts' if len(missing) == 1 else 'they count'} among the "
            f"{len(arms)} arms. If the numbers are labels, give them as text, or give arms=.",
            kind="arms_never_chosen",
            column="arm",
            n=len(missing),
        )
    ]


def _missing_arm(at: int, n: int, where: Where) -> ArmError:
    return ArmError(
        f"{where(at)}: the arm is missing ({counted(n, 'such round')}). "
        "Every round needs its arm: fill it in, or leave the round out.",
        kind="missing_label",
        column="arm",
    )


def _check_first(raw: NDArray[Any], width: int, where: Where) -> None:
    """Refuse whole numbers, none of them 0, for columns without names: they may count from 1."""
    if raw.dtype == np.int32 or not raw.size or raw.min() < 1 or raw.max() >= width:
        return
    t = int(raw.argmin())
    low = int(raw[t])
    raise ArmError(
        f"{where(t)}: arm {low} is in column {low + 1} of {width} if arms count from 0, in column "
        f"{low} if they count from 1, and no round chose 0. If they count from 0, say so with "
        f"integers of type numpy.int32, or arms=[str(i) for i in range({width})]; if from 1, take "
        "1 away.",
        kind="positions_from_one",
        column="arm",
        value=low,
    )


def _check_one_meaning(raw: NDArray[Any], arms: tuple[str, ...], where: Where) -> None:
    """Refuse integers that are positions and labels alike, unless both say the same."""
    seen = np.unique(raw).tolist()
    labels = {label: i for i, label in enumerate(arms)}
    if not all(0 <= i < len(arms) and str(i) in labels for i in seen):
        return
    differ = [i for i in seen if labels[str(i)] != i]
    if differ:
        t = int(np.flatnonzero(raw == differ[0])[0])
        raise ArmError(
            f"{where(t)}: arm {differ[0]} may be the label {str(differ[0])!r} or the position of "
            f"{arms[differ[0]]!r} in arms {listed(arms)}. Give the arms as text if they are "
            "labels; if they are positions, as an array of int32 or with arms that are no numbers."
        )
