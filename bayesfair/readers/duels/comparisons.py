"""Read duels, counts, choices and rankings from files and data frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from bayesfair.base.arguments import NAMES, PLAIN, TEXT_OR_FALSE, each, takes
from bayesfair.base.checks import check_choice
from bayesfair.base.options import COMPARISON_OPTIONS, KINDS, given, refuse_without_effect
from bayesfair.comparisons import Comparisons, Origin
from bayesfair.readers.duels.arena import JsonLines
from bayesfair.readers.duels.comparison_rows import (
    HEAD,
    check_wins,
    checked_columns,
    choices,
    counts,
    duels,
    kind_of,
    load,
    named_columns,
    open_table,
    rankings,
    recognised,
    roles_of,
    suffixes_of,
)
from bayesfair.readers.duels.doubts import unread_counts, unused_columns
from bayesfair.readers.duels.preflib import SUFFIXES, read_preflib, refuse_other_data
from bayesfair.readers.files.paths import single_file
from bayesfair.typing import Source

__all__ = ["read_comparisons"]

_OF_TEXT = {"delimiter": COMPARISON_OPTIONS["delimiter"]}


@takes(
    **each(PLAIN, "left", "right", "winner", "loser", "ranking", "item", "rank", "chosen",
           "offered", "first"),
    **each(TEXT_OR_FALSE, "weight"),
    **each(NAMES, "wins", "orderings", "ranks"),
)  # fmt: skip
def read_comparisons(
    source: Source,
    *,
    format: str = "auto",
    left: str | None = None,
    right: str | None = None,
    winner: str | None = None,
    loser: str | None = None,
    wins: Sequence[str] | None = None,
    ranking: str | None = None,
    item: str | None = None,
    rank: str | None = None,
    orderings: Sequence[str] | None = None,
    ranks: Sequence[str] | None = None,
    chosen: str | None = None,
    offered: str | None = None,
    separator: str = "|",
    first: str | None = None,
    weight: str | bool | None = None,
    items: Sequence[object] | None = None,
    partial: str | None = None,
    lowest_is_best: bool = True,
    tie_tolerance: float = 0.0,
    unranked: float | None = None,
    last_tie: str | None = None,
    outcomes: Mapping[object, str] | None = None,
    winner_is: str | None = None,
    both_bad: str = "tie",
    unknown: str = "error",
    missing: str = "error",
    labels: str = "names",
    delimiter: str | None = None,
) -> Comparisons:
    """Read comparisons from CSV, Parquet, a data frame, PrefLib ballots or arena-style JSON.

    Their order is not kept: `read_duels` reads the log of a rule that chose whom to compare.

    Parameters
    ----------
    source : path or data frame
    format : {"auto", "table", "preflib", "json"}
        ``"auto"`` goes by the file's suffix.
    left, right, winner : str
        Columns of duels. Default: (left, right, winner), (model_a, model_b, winner), or
        (winner, loser). `winner` holds sides, tie words, or names of the winning item.
    loser : str
        With `winner`: columns of winning and losing items; no `left`, `right`.
    wins : two or three str
        Instead of `winner`: columns with the wins of left, those of right and, if any, the ties.
    ranking, item, rank : str
        Columns of rankings in long form: which ranking, which item, which rank (1 = best). With
        duels, `ranking` alone is the column that tells which ranking a pair was cut from (found by
        the names ranking, ranking_id, ballot, ballot_id): such pairs get a warning.
    orderings : sequence of str
        Columns of rankings in wide form, best first: each holds an item.
    ranks : sequence of str
        Columns named like items that hold ranks (empty = not ranked; see `unranked`).
    chosen, offered, separator : str
        Columns of choices: the chosen item, and the offered ones as a list or joined by
        `separator`.
    first : str, optional
        Column that says who was shown first (a side or an item); or ``"left"``, ``"right"`` where
        no column is called so: always that side. With `winner` and `loser` there are no sides.
    weight : str or False, optional
        Column of frequency weights. An unused column of whole numbers that is called like counts
        (``n``, ``count``, ``freq``, ...) is asked about; False: not used.
    items : sequence, optional
        All items, also those without data.
    partial : {"subset", "top"}
        Required where rankings lack items.
    lowest_is_best, tie_tolerance, unranked
        See `Comparisons.from_rankings`; also for `rank`.
    last_tie : {"tie", "rest"}, optional
        See `Comparisons.from_rankings`. A PrefLib file that is marked imbued, filled up in last
        place, is read as ``"rest"`` unless told otherwise.
    outcomes, winner_is, both_bad, unknown, missing
        See `Comparisons.from_duels`.
    labels : {"names", "ids"}
        Items of PrefLib files.
    delimiter : str, optional
        Of text files; default: detected.

    Raises
    ------
    DataError, ArmError
        Naming row, column, value and remedy.
    OptionError
        Where columns cannot be found or options contradict each other.

    Examples
    --------
    >>> import pyarrow as pa
    >>> battles = pa.table({"model_a": ["x", "y"], "model_b": ["y", "x"],
    ...                     "winner": ["model_a", "tie"]})
    >>> read_comparisons(battles)
    Comparisons(data frame: 2 duels of 2 items 'x', 'y', 1 ties, 2 unique)
    """
    wins, orderings, ranks = map(_plain_list, (wins, orderings, ranks))
    if wins is not None:
        check_wins(wins)
    asked = given(read_comparisons, locals())
    check_choice(format, "format", ("auto", "table", "preflib", "json"))
    check_choice(missing, "missing", ("error", "drop"))
    check_choice(labels, "labels", ("names", "ids"))
    refuse_other_data(source, format)
    if format == "preflib" or (format == "auto" and set(suffixes_of(source)[-1:]) & set(SUFFIXES)):
        refuse_without_effect(asked, {"preflib"}, COMPARISON_OPTIONS, KINDS["preflib"])
        refuse_other_data(source)
        path = single_file(source, "PrefLib")
        return read_preflib(path, partial=partial, labels=labels, last_tie=last_tie)
    named = named_columns(
        {"left": left, "right": right, "winner": winner, "loser": loser,
         "ranking": ranking, "item": item, "rank": rank, "chosen": chosen, "offered": offered,
         "weight": weight if isinstance(weight, str) else None},
        {"wins": wins, "orderings": orderings, "ranks": ranks},
    )  # fmt: skip
    opened_source = open_table(source, format, delimiter, tuple(named.values()))
    if isinstance(opened_source, JsonLines):
        refuse_without_effect(asked, {kind_of(named)}, _OF_TEXT, "JSON")
    used = recognised(opened_source.name, opened_source.header, named)
    kind = kind_of(used)
    kinds = {kind, "text"} | ({"weighted"} if weight else set())
    kinds |= {"offered_text"} if kind == "choices" else set()  # looked at once it is read
    refuse_without_effect(asked, kinds, COMPARISON_OPTIONS, KINDS[kind])
    used, side = checked_columns(opened_source, used, first)
    noted = unread_counts(opened_source, used, weight, head=HEAD)
    noted += unused_columns(opened_source.header, used.values())
    rows = load(opened_source, used)
    shared = {
        "items": items,
        "source": Origin(rows.source, rows.lines, roles_of(used)),
        "weight": rows.number(used.get("weight")),
        "missing": missing,
    }
    rank_options: dict[str, Any] = {"partial": partial, "last_tie": last_tie}
    if kind in ("ranks", "ranked_rows"):
        rank_options |= {
            "lowest_is_best": lowest_is_best,
            "tie_tolerance": tie_tolerance,
            "unranked": unranked,
        }
    if kind in ("orderings", "ranks", "ranked_rows"):
        made = rankings(rows, used, orderings, ranks, **shared, **rank_options)
    elif kind == "choices":
        made = choices(rows, used, separator, **shared)
    elif kind == "counts":
        assert wins is not None
        made = counts(rows, used, side, wins=wins, **shared)
    else:
        words = {"outcomes": outcomes, "winner_is": winner_is, "both_bad": both_bad,
                 "unknown": unknown} if kind == "duels" else {}  # fmt: skip
        made = duels(rows, used, side, keep_rows=False, **words, **shared)
    notices = (*opened_source.notices, *made.notices, *noted)
    return replace(made, notices=tuple(dict.fromkeys(notices)))


def _plain_list(names: Any) -> Any:
    """Return names as a list where they came as an array or a series."""
    return list(names) if hasattr(names, "__array__") else names
