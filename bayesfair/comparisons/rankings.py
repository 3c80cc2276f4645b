"""Rankings and choices, checked and collapsed to unique orderings at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesfair.base.checks import (
    as_numbers,
    as_sequence,
    check_choice,
    check_in_range,
    counted,
    first_where,
    listed,
)
from bayesfair.base.label_encoder import LabelEncoder, encoded
from bayesfair.base.label_notices import look_alike
from bayesfair.base.labels import labels_of, text_of
from bayesfair.base.notices import Notice
from bayesfair.comparisons.missing_labels import gap_of, is_absent, is_group, without_gaps
from bayesfair.comparisons.places import RankRules, last_place_notices, ranks_as_places
from bayesfair.comparisons.sources import (
    Origin,
    absent_numbers,
    checked_weight,
    rows_with_missing,
    squares,
)
from bayesfair.errors import DataError, OptionError

__all__ = ["collapse_choices", "collapse_orderings", "collapse_ranked_rows", "collapse_ranks"]

_REST = np.int32(2**31 - 1)  # sorts behind every level; stored as -1


def _known_weights(
    weight: Any, n: int, missing: str, source: Origin
) -> tuple[Any, int, list[Notice]]:
    """Return weights with 0 where they are missing, how many are, and the notice.

    An empty place of a ranking is not missing: the item was not ranked.
    """
    if weight is None:
        return None, 0, []
    numbers, absent = absent_numbers(n, {"weight": weight}, source)
    gone, found = rows_with_missing(missing, absent, source)
    return numbers["weight"], int(gone.sum()), found


def _of_missing(*said: Notice) -> list[Notice]:
    """Return what two looks for missing values say together: one that found none says nothing."""
    return [note for note in said if note.kind != "option_without_effect"] or list(said[:1])


def collapse_orderings(
    orderings: Any,
    *,
    items: Sequence[object] | None,
    rules: RankRules,
    weight: Any,
    missing: str,
    source: Origin,
) -> dict[str, Any]:
    """Return the fields of `Comparisons` for orderings; see `Comparisons.from_rankings`."""
    labels: list[object] = []
    level: list[int] = []
    length: list[int] = []
    rows: list[list[Any]] = []
    for i, ordering in enumerate(as_sequence(orderings, "orderings")):
        if isinstance(ordering, str):
            raise DataError(
                f"{source.where(i)} is the text {ordering!r}; expected a sequence of labels, best "
                "first. Split it, or use read_comparisons."
            )
        rows.append(as_sequence(ordering, source.where(i)))
    gaps = {i: gap for i, row in enumerate(rows) if (gap := gap_of(row)) is not None}
    without, gap_notes = without_gaps(rows, gaps, missing, "orderings", source)
    if gaps:
        kept = ~without
        if weight is not None and len(as_sequence(weight, "weight")) == len(rows):
            weight = np.asarray(weight, dtype=object)[kept]
        rows = [row for row, here in zip(rows, kept, strict=True) if here]
        source = source.taken(kept)
    for row in rows:
        before = len(labels)
        for place, entry in enumerate(row):
            group = sorted(entry, key=str) if is_group(entry) else [entry]
            present = [label for label in group if not is_absent(label)]
            labels += present
            level += [place] * len(present)
        length.append(len(labels) - before)
    words = LabelEncoder("item", items)
    (codes,) = words.settled(words.encode(labels))
    ranking = np.repeat(np.arange(len(length)), length)
    weight, gone, found = _known_weights(weight, len(length), missing, source)
    return _collapse(
        ranking=ranking,
        item=codes,
        value=np.array(level, dtype=np.float64),
        n_rankings=len(length),
        items=words.labels,
        rules=rules,
        weight=weight,
        source=source,
        notices=[*_of_missing(*gap_notes, *found), *words.notices()],
    ) | {"n_skipped": gone + len(gaps)}


def collapse_ranks(
    ranks: ArrayLike,
    *,
    items: Sequence[object] | None,
    rules: RankRules,
    weight: Any,
    missing: str,
    source: Origin,
) -> dict[str, Any]:
    """Return the fields of `Comparisons` for a matrix of ranks or of any ordered quantity."""
    if items is None and hasattr(ranks, "columns"):
        items = list(ranks.columns)
    try:
        table = np.array(ranks, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"ranks of {source.name} are not numeric: {error}.") from None
    if table.ndim != 2:
        raise DataError(f"ranks must be (rankings, items), got shape {table.shape}.")
    if items is None:
        items = [str(i) for i in range(table.shape[1])]
    items = as_sequence(items, "items")
    if len(items) != table.shape[1]:
        raise DataError(f"ranks have {table.shape[1]} columns for {len(items)} items.")
    names = labels_of(items, "item")
    ranking, item = np.nonzero(~np.isnan(table))
    kept, value, notes = ranks_as_places(
        table[ranking, item],
        ranking,
        lambda i: f"{source.where(int(ranking[i]))}: rank of {names[item[i]]!r}",
        lambda i: source.line(int(ranking[i])),
        rules=rules,
        source=source,
    )
    ranking, item = ranking[kept], item[kept]
    weight, gone, found = _known_weights(weight, len(table), missing, source)
    return _collapse(
        ranking=ranking,
        item=item.astype(np.int32),
        value=value,
        n_rankings=len(table),
        items=names,
        rules=rules,
        weight=weight,
        source=source,
        notices=[*found, *look_alike(names, "item"), *notes],
    ) | {"n_skipped": gone}


def collapse_ranked_rows(
    ranking: Any,
    item: Any,
    rank: Any,
    *,
    items: Sequence[object] | None,
    rules: RankRules,
    weight: Any,
    missing: str,
    source: Origin,
) -> dict[str, Any]:
    """Return the fields of `Comparisons` for one row per (ranking, item), with its rank."""
    words = LabelEncoder("item", items)
    groups, codes = encoded(ranking, "ranking"), words.encode(item, source.where)
    value = np.atleast_1d(as_numbers(rank, "rank"))
    sizes = [len(groups.codes), len(codes), len(value)]
    if len(set(sizes)) > 1:
        raise DataError(
            "ranking, item and rank have {}, {} and {} rows; they must agree.".format(*sizes)
        )
    numbers, lacking = absent_numbers(len(value), {"weight": weight}, source)
    absent = {"ranking": groups.codes < 0, "item": codes < 0, "rank": np.isnan(value)}
    gone, found = rows_with_missing(missing, absent | lacking, source)
    if found:  # an item that was not ranked needs no row
        kept = ~gone
        value, weight = value[kept], numbers["weight"][kept] if "weight" in numbers else None
        codes, source = codes[kept], source.taken(kept)
        known = np.array([*groups.labels, None], dtype=object)
        groups = encoded(known[groups.codes[kept]], "ranking")
    (codes,) = words.settled(codes)
    kept, places, notes = ranks_as_places(
        value,
        groups.codes,
        lambda i: f"{source.where(i)}: rank of {words.labels[codes[i]]!r}",
        source.line,
        rules=rules,
        source=source,
    )
    given = checked_weight(weight, len(value), source)
    per_ranking = None
    first = np.full(len(groups.labels), len(value))
    np.minimum.at(first, groups.codes, np.arange(len(value)))
    if given is not None:
        per_ranking = given[first]
        if differs := first_where(given != per_ranking[groups.codes]):
            raise DataError(
                f"{source.where(differs.at)}: weight {given[differs.at]:g} differs within "
                f"ranking {groups.labels[groups.codes[differs.at]]!r}; a ranking has one weight."
            )
    lines = first if source.row is None else source.row[first]
    return _collapse(
        ranking=groups.codes[kept],
        item=codes[kept],
        value=places,
        n_rankings=len(groups.labels),
        items=words.labels,
        rules=rules,
        weight=per_ranking,
        source=source._replace(row=lines),
        notices=[*found, *words.notices(), *notes],
    ) | {"n_skipped": int(gone.sum())}


def collapse_choices(
    chosen: Any,
    offered: Sequence[Sequence[object]],
    *,
    items: Sequence[object] | None,
    weight: Any,
    missing: str,
    source: Origin,
) -> dict[str, Any]:
    """Return the fields of `Comparisons` for choices; see `Comparisons.from_choices`."""
    words = LabelEncoder("item", items)
    picked = words.encode(chosen, source.where)
    rows = [
        as_sequence(entry, source.where(i))
        for i, entry in enumerate(as_sequence(offered, "offered"))
    ]
    sets = [[label for label in row if not is_absent(label)] for row in rows]
    if len(sets) != len(picked):
        raise DataError(f"chosen has {len(picked)} rows, offered {len(sets)}; they must agree.")
    numbers, lacking = absent_numbers(len(sets), {"weight": weight}, source)
    empty = np.array([not entry for entry in sets], dtype=np.bool_)
    gaps = {i: gap for i, row in enumerate(rows) if (gap := gap_of(row, 2)) is not None and sets[i]}
    without, _ = without_gaps(rows, gaps, missing, "offered", source)
    absent = {"chosen": picked < 0, "offered": empty | without} | lacking
    gone, notices = rows_with_missing(missing, absent, source)
    weight = numbers.get("weight")
    if notices:
        kept = ~gone
        sets = [entry for entry, here in zip(sets, kept, strict=True) if here]
        picked = picked[kept]
        weight = None if weight is None else weight[kept]
        source = source.taken(kept)
    won, codes = words.settled(
        picked, words.encode([text_of(label) for entry in sets for label in entry])
    )
    ranking = np.repeat(np.arange(len(sets)), [len(entry) for entry in sets])
    is_chosen = codes == won[ranking]
    found = np.bincount(ranking[is_chosen], minlength=len(sets))
    if bad := first_where(found != 1):
        chosen_item = words.labels[won[bad.at]]
        how = "does not name it" if not found[bad.at] else f"names it {found[bad.at]} times"
        uncut = len(sets[bad.at]) == 1 and not found[bad.at] and chosen_item in str(sets[bad.at][0])
        hint = " The text was read as one item: say what separates the items, separator=."
        if uncut and str(sets[bad.at][0])[:1] in ("[", "("):
            hint = " The text is a list as programs write it: write the labels alone, as x|y."
        raise DataError(
            f"{source.where(bad.at)}, {source.called('offered')}: the chosen item is "
            f"{chosen_item!r}, "
            f"but the offered set, {listed(sets[bad.at])}, {how} ({counted(bad.n, 'such row')}). "
            "It "
            f"must be offered exactly once.{hint if uncut else ''}",
            kind="not_offered",
            row=None if source.row is None else int(source.row[bad.at]),
            column=source.columns.get("offered", "offered"),
            value=[str(label) for label in sets[bad.at]],
            source=source.name,
        )
    fields = _collapse(
        ranking=ranking,
        item=codes,
        value=np.where(is_chosen, 0.0, np.inf),
        n_rankings=len(sets),
        items=words.labels,
        rules=RankRules("subset"),
        weight=weight,
        source=source,
        notices=[*notices, *words.notices()],
    )
    return fields | {"kind": "choices", "partial": None, "n_skipped": int(gone.sum())}


def _collapse(
    *,
    ranking: NDArray[Any],
    item: NDArray[Any],
    value: NDArray[np.float64],
    n_rankings: int,
    items: tuple[str, ...],
    rules: RankRules,
    weight: Any,
    source: Origin,
    notices: list[str],
) -> dict[str, Any]:
    """Sort, level, complete and collapse rankings given as (ranking, item, value: low = best)."""
    partial, last_tie, tie_tolerance = rules.partial, rules.last_tie, rules.tie_tolerance
    check_in_range(tie_tolerance, "tie_tolerance", 0.0, np.inf, high_open=True)
    if last_tie is not None:
        check_choice(last_tie, "last_tie", ("tie", "rest"))
    weights = checked_weight(weight, n_rankings, source)
    k = len(items)
    pair = np.sort(ranking.astype(np.int64) * max(k, 1) + item)
    if twice := first_where(pair[1:] == pair[:-1]):
        i, j = divmod(int(pair[twice.at]), k)
        raise DataError(f"{source.where(i)}: {items[j]!r} is ranked twice. Keep one of its places.")
    order = np.lexsort((item, value, ranking))
    ranking, item, value = ranking[order], item[order], value[order]
    size = np.bincount(ranking, minlength=n_rankings)
    start = np.concatenate([[0], np.cumsum(size)])
    fresh = np.ones(len(item), bool)  # a new level begins here
    # inf - inf (two items of the unordered rest) is no step
    with np.errstate(invalid="ignore"):
        fresh[1:] = np.diff(value) > tie_tolerance
    some = size > 0
    begins = start[:-1][some]
    fresh[begins] = True
    step = np.cumsum(fresh)
    level = (step - np.repeat(step[begins], size[some])).astype(np.int32)
    level[np.isinf(value)] = _REST
    level, n_last = _last_places(level, ranking, size, start, last_tie)
    notices += last_place_notices(n_last, int(some.sum()), last_tie)
    # tied within a tolerance: their values differ, so they are put in item order only now
    order = np.lexsort((item, level, ranking))
    ranking, item, level = ranking[order], item[order], level[order]

    short = first_where(size != k)
    if partial is None and short:
        raise OptionError(
            f"{short.n} of {n_rankings} rankings name only some of the {k} items "
            f"(the first is {source.where(short.at)} with {size[short.at]}). Say "
            'partial="subset" if the others were never on offer, or partial="top" if they were on '
            "offer and rank below: the results can differ entirely."
        )
    if partial is not None:
        check_choice(partial, "partial", ("subset", "top"))
    if partial == "top" and short:
        present = np.zeros((n_rankings, k), bool)
        present[ranking, item] = True
        rest_ranking, rest_item = np.nonzero(~present)
        ranking = np.concatenate([ranking, rest_ranking])
        item = np.concatenate([item, rest_item.astype(item.dtype)])
        level = np.concatenate([level, np.full(len(rest_item), _REST, np.int32)])
        order = np.lexsort((item, level, ranking))
        ranking, item, level = ranking[order], item[order], level[order]
        size = np.bincount(ranking, minlength=n_rankings)
        start = np.concatenate([[0], np.cumsum(size)])
    level = np.where(level == _REST, np.int32(-1), level)

    # a ranking says something if it has two items, and one at least that is ranked
    single = (size < 2) | (np.bincount(ranking[level >= 0], minlength=n_rankings) == 0)
    if dropped := first_where(single):
        first, n = source.where(dropped.at), dropped.n
        notices.append(
            Notice(
                f"{counted(n, 'ranking')} of fewer than two items, or without a ranked one, "
                f"{'was' if n == 1 else 'were'} dropped, comparing nothing (the first is {first}).",
                kind="ranking_without_comparison",
                n=n,
            )
        )
    keep = ~single if weights is None else ~single & (weights > 0)
    flat = np.stack([item.astype(np.int32), level.astype(np.int32)])
    chosen, count = _unique_orderings(flat, start, keep, weights)
    second = squares(weights)
    square = None if second is None else _unique_orderings(flat, start, keep, second)[1]
    pieces = [np.arange(start[i], start[i + 1]) for i in chosen]
    index = np.concatenate(pieces) if pieces else np.zeros(0, np.int64)
    return {
        "items": items,
        "kind": "rankings",
        "start": np.concatenate([[0], np.cumsum(size[chosen])]).astype(np.int64),
        "item": flat[0][index],
        "level": flat[1][index],
        "count": count,
        "square": square,
        "row": chosen if source.row is None else source.row[chosen],
        "rows_are_lines": source.has_lines,
        # an unordered rest ranks below, whether or not the ranking names it
        "partial": partial if short else "top" if n_last[1] else None,
        "source": source.name,
        "notices": tuple(notices),
    }


def _last_places(
    level: NDArray[np.int32],
    ranking: NDArray[Any],
    size: NDArray[np.int64],
    start: NDArray[np.int64],
    last_tie: str | None,
) -> tuple[NDArray[np.int32], tuple[int, int]]:
    """Return levels with tied last places as the unordered rest if so told.

    Also in how many rankings items share the last place, and in how many it became the rest.
    """
    last = np.full(len(size), -1, np.int32)
    last[size > 0] = level[start[1:][size > 0] - 1]
    shares = (level == last[ranking]) & (level != _REST)
    tied = shares & (np.bincount(ranking[shares], minlength=len(size)) > 1)[ranking]
    n = len(np.unique(ranking[tied]))
    if last_tie != "rest":
        return level, (n, 0)
    return np.where(tied, _REST, level), (n, n)


def _unique_orderings(
    flat: NDArray[np.int32],
    start: NDArray[np.int64],
    keep: NDArray[np.bool_],
    weights: NDArray[np.float64] | None,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the first ranking of each distinct ordering and the orderings' total weights."""
    seen: dict[bytes, int] = {}
    count: list[float] = []
    first: list[int] = []
    for i in np.flatnonzero(keep).tolist():
        key = flat[:, start[i] : start[i + 1]].tobytes()
        cell = seen.setdefault(key, len(seen))
        if cell == len(count):
            count.append(0.0)
            first.append(i)
        count[cell] += 1.0 if weights is None else float(weights[i])
    return np.array(first, dtype=np.int64), np.array(count, dtype=np.float64)
