"""Read a logged decision history from a file or a data frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Unpack, overload

import numpy as np

from bayesfair.base.arguments import takes
from bayesfair.base.labels import in_order as in_label_order
from bayesfair.base.notices import Notice
from bayesfair.history import History
from bayesfair.history.context import ContextLabels
from bayesfair.history.logs import Logs
from bayesfair.readers.files.tables import no_rows
from bayesfair.readers.log.counts_of_missing import Tally, empty_columns, nothing_missing
from bayesfair.readers.log.options import KINDS, LogOptions, OneLogOptions, with_log_options
from bayesfair.readers.log.reading import Reading, group_priors, reading_of
from bayesfair.readers.log.roles import for_arms
from bayesfair.readers.log.rounds import Converter, Rounds, concatenated
from bayesfair.readers.log.rounds_to_history import grouped_by_arm, history_of, in_order
from bayesfair.readers.log.several import at_once
from bayesfair.readers.log.waiting import waits_for_nothing
from bayesfair.readers.values.stamps import Trend, check_trends
from bayesfair.typing import Source

__all__ = ["discovery_notice", "read_history"]


@overload
def read_history(
    source: Source, *, by: None = None, **options: Unpack[OneLogOptions]
) -> History: ...
@overload
def read_history(
    source: Source, *, by: str | Sequence[str], **options: Unpack[OneLogOptions]
) -> Mapping[str, History]: ...
@takes(**KINDS)
@with_log_options
def read_history(source: Source, **options: Unpack[LogOptions]) -> History | Mapping[str, History]:
    r"""Read which arm was chosen in each round, what it paid, and how it was drawn.

    One rule for columns: an option names a column that must exist; None stands for the default
    name, which is used if it is there (`propensity`, `p_{arm}`, `timestamp`, `known_at`); False or
    "" means not to use it. Where the probabilities of all arms are there, a `propensity` column
    found by itself is not used.

    Parameters
    ----------
    source : path, data frame or records
        Delimited text (delimiter detected or refused; gzip, bz2, xz, zstd, lz4), JSON lines or an
        array of objects, Vowpal Wabbit's dsjson or ``--cb`` text, Parquet, Arrow (Feather), ORC
        (one file, a folder, a glob), a table of a SQLite file, ``"-"``
        (standard input), an open file, a frame of pandas, Polars, Arrow or DuckDB, a list of dicts,
        a dict of lists, or the `bandit_feedback` dict of Open Bandit Pipeline.
    arm, reward : str
        Columns of the choice and its reward; in records, names such as ``action.id`` reach deeper.
        Labels are text: "001" stays what it is, the empty
        field is missing; blanks around them, the encoding of letters and the ".0" of a whole number
        do not make a difference. Words for missing ("NA", "None") and two spellings of one number
        ("1", "01") are refused unless `arms` or columns name them. Rewards are 0/1, true/false,
        yes/no or numbers.
    propensity : str, optional
        Column of :math:`\pi_t(a_t)`, in (0, 1].
    probabilities : str, optional
        Pattern of the columns of :math:`\pi_t(i)`, with ``{arm}`` in the place of the label; rows
        sum to 1, an empty field says that the arm was not on offer. Or the parts of one column of
        records, maps, or text of these (``probs.{arm}``), or its name alone, for lists too: in the
        order of the labels that another column (`offered`) lists in the same row, else of `arms`.
        Probabilities under other names are taken up with a notice where nothing else can be meant,
        else refused by name; False = not to be looked for.
    order : str, optional
        Column that orders the rounds: numbers, or times (all with a zone or all without; text in
        ISO 8601). Rounds are sorted stably, with a notice. Without it rows are in order as they
        stand; a log that some time-like column shows to run backwards is refused, unless False or
        "" says that this is right.
    by : str or sequence of str, optional
        Column that splits the log into histories of their own; of several, each combination that
        occurs is one, labelled such as ``phone, US`` (a label with a comma in quotes).
    arms : sequence or "by_group", optional
        Labels in the order to be used. None = those of the `probabilities` (or `offered`) columns,
        else those seen, sorted as text (by value if all are numbers), with a notice. With `by`,
        all histories share the arms, unless "by_group".
    offered : str, optional
        Arms on offer: a pattern with ``{arm}`` for columns of 0/1, or one column that lists labels
        in each row (an Arrow list, text of a list, or separated by `offered_delimiter`), or marks
        the arms by true and false or 1 and 0 in their order.
    offered_delimiter : str
        Separates the labels in such a list.
    known_at : str, optional
        Column with the first round that may use the reward (0-based, in the order of the rounds;
        with `by`, of the group), or, where `order` is a time, the time at which the reward became
        known: rounds at that time or later may use it. Default: the next round.
    known_until : str, optional
        Column with the number of rounds whose rewards are known in this round (batches).
    waiting : str or number, optional
        How long a reward may come late: a duration such as ``"7d"`` (s, min, h, d, w) where `order`
        is a time, else a number of its units. A reward that is missing is 0, known from then on,
        once so long has passed in the log (of the group), and not known at its end before.
    round, chosen : str, optional
        Of a log with one row per round *and arm on offer*: the column that numbers the rounds, and
        the one of 0/1 (missing = 0) that marks the row of the chosen arm (default: the row with a
        reward).
        `propensity` is then the probability of each row's arm, and together they are the whole
        rule. A log that looks like this is refused unless `round` is given; False: each row is a
        round.
    unique : str, optional
        Column that holds no value twice, such as the number of a request: an audit says where one
        comes back (within its group, with `by`). A scan keeps 24 bytes for each value.
    user : str, optional
        Column of whom each decision was for: an audit says whether users keep the arm once drawn,
        beyond what the probabilities say, however they interleave. A scan keeps 12 bytes for each.
    context : str or sequence of str, optional
        Columns of what the rule saw about each round before it chose: labels, or numbers taken as
        labels. ``audit(context_model=)`` holds each round against beliefs given it. A pattern such
        as ``"price_{arm}"`` names a column for each arm, and none may lack. Of dsjson paths:
        ``"c.user.age"`` is what is shared, ``"c._multi.2.price"`` of the second action,
        ``"c._multi.{arm}.price"`` of each.
    missing_context : str, optional
        Level that stands for a missing context; by default one is refused.
    keep_prob : str, optional
        Of a thinned log: column of the chance that the row was kept (default: 1 - pdrop of dsjson).
        `bayesfair.value.policy_value` reweights; an audit is refused, since what the rule had seen
        cannot be followed.
    constant_within : str or sequence of str, optional
        Where only the chosen arms' probabilities are there: columns within whose values (and within
        groups) the rule did not change, or a duration such as ``"1h"`` (s, min, h, d, w; windows of
        the clock, of `order`). The whole rule is assembled from them, with a notice; where several
        arms of a span were never chosen in it, the pairs of the others alone are audited (`covered`
        of `Audit.to_dict`). Refused where they differ within a span.
    prior : mapping or array, optional
        Label -> (successes, failures) before the log begins; with `by`, group -> such a mapping.
    missing : "error", "unobserved", "drop" or number
        What a missing reward means: refuse; the round counts but nothing is learned; leave the row
        out; this number. Counted by arm in a notice.
    rewards : mapping, optional
        Words (or numbers) -> rewards.
    format : str, optional
        What the file is: "text", "parquet", "json", "dsjson", "vw", "arrow", "orc", "sqlite";
        None = detected.
    table : str, optional
        Of a SQLite file, a table or view; None = the only one.
    delimiter : str, optional
        Of text files, one character or "tab"; None = detected.
    decimal : str
        Decimal sign of text, "." or ",".
    probability_tolerance : float, optional
        How far a row of probabilities may sum from 1; default what rounding can cause, k/2 units of
        the last decimal seen, and at least 1e-6.

    Returns
    -------
    History or mapping of str to History
        A mapping, in the order of the groups' labels (by value if all are numbers), if `by` is
        given; the rounds of all groups are validated, each history is made when it is asked for.

    Raises
    ------
    DataError, ProbabilityError, ArmError
        Naming row, column, value and remedy. Rows are counted from 1, the header of a text file
        being row 1; a record with line breaks inside quotes is one row, empty lines are none. Where
        the line of the file is another number, it is named as well.
    OptionError
        If an option has a value that is not allowed.

    See Also
    --------
    scan_history : the same in constant memory.

    Examples
    --------
    >>> from bayesfair import examples
    >>> history = read_history(examples.path("ecmo"))
    >>> history.arms, history.n_rounds, history.selection
    (('ECMO', 'conventional'), 12, 'full')
    >>> history.selection_probability[11].tolist()
    [0.9230769230769231, 0.07692307692307693]
    """
    reading = reading_of(read_history, source, options)
    with reading.source.locating():
        return _read(reading)


def _read(reading: Reading) -> History | Mapping[str, History]:
    """Read all rows."""
    layout, converter = reading.layout, Converter(reading, reading.arms)
    rounds = _everything(reading, converter)
    contexts = converter.context_labels
    if reading.arms is None:
        rounds = _sorted_labels(rounds, converter)
        reading, rounds, contexts = _given_arms(reading, rounds, contexts, converter.book.labels)
    notices = [*reading.source.notices, *reading.layout.notices]
    labels = converter.book.labels
    if reading.arms is None:
        notices.append(discovery_notice(len(labels)))
    notices += converter.notices()
    if layout.by is None:
        notices += waits_for_nothing(reading, lacks=rounds.lack)
        return _history(reading, rounds, labels, notices, contexts)
    converter.groups.check()
    names = converter.groups.labels
    assert rounds.group is not None
    priors = group_priors(reading, names)
    if rounds.pi is not None:
        notices += empty_columns(np.isnan(rounds.pi).all(axis=0), layout)
    notices += nothing_missing(reading.missing, lacks=rounds.lack)
    notices += waits_for_nothing(reading, lacks=rounds.lack)
    ordered = in_label_order(names)
    place = {name: g for g, name in enumerate(ordered)}
    group = np.array([place[name] for name in names])[rounds.group]
    index = np.argsort(group, kind="stable")
    bounds = np.append(0, np.bincount(group, minlength=len(names)).cumsum())

    def one(name: str) -> History:
        own, arms, seen = reading.of_group(name, priors), labels, contexts
        part = rounds.take(index[bounds[place[name]] : bounds[place[name] + 1]])
        if reading.by_group:
            own, part, arms = _own_arms(own, part, labels)
            own, part, seen = _given_arms(own, part, contexts, arms, strict=False)
        return _history(own, part, arms, notices, seen)

    plain = not (reading.by_group or priors or reading.waiting is not None)
    together = at_once(rounds, index, bounds, labels, reading) if plain else None
    if together is not None:
        return Logs(ordered, one, together, lambda name: reading.of_group(name, {}).name)
    return {name: one(name) for name in ordered}


def discovery_notice(n_arms: int) -> Notice:
    """Say that the set of arms was taken from the log itself."""
    arms = "the only arm is the one" if n_arms == 1 else f"the {n_arms} arms are those"
    return Notice(
        f"{arms} seen in the log, which looks ahead: an arm that first "
        "appears late, or never, is not known beforehand. Pass arms=... to fix them.",
        kind="arms_seen",
        column="arms",
        n=n_arms,
    )


def _everything(reading: Reading, converter: Converter) -> Rounds:
    opened, parts = reading.source, []
    row = opened.first_row
    for table in opened.tables(converter.layout.columns, converter.layout.labels):
        if table.num_rows:
            parts.append(converter.convert(table, row))
            row += table.num_rows
    if not parts:
        raise no_rows(opened)
    k = len(converter.book.labels)
    wide = [
        p
        if p.offered is None
        else replace(p, offered=np.pad(p.offered, ((0, 0), (0, k - p.offered.shape[1]))))
        for p in parts
    ]
    return concatenated(wide)


def _sorted_labels(rounds: Rounds, converter: Converter) -> Rounds:
    """Renumber discovered labels in their order."""
    new = converter.book.sort()
    offered = None
    if rounds.offered is not None:
        offered = np.ascontiguousarray(rounds.offered[:, np.argsort(new[:-1])])
    return replace(rounds, arm=new[rounds.arm], offered=offered)


def _given_arms(
    reading: Reading, rounds: Rounds, contexts: tuple[ContextLabels, ...], arms: Sequence[str],
    *, strict: bool = True,
) -> tuple[Reading, Rounds, tuple[ContextLabels, ...]]:  # fmt: skip
    """Keep the columns of the context that are of these arms, or of none."""
    layout, kept = for_arms(reading.layout, arms, reading.source.name, strict=strict)
    if rounds.context is None or len(kept) == len(contexts):
        return reading, rounds, contexts
    part = replace(rounds, context=np.ascontiguousarray(rounds.context[:, kept]))
    return replace(reading, layout=layout), part, tuple(contexts[i] for i in kept)


def _own_arms(
    reading: Reading, rounds: Rounds, labels: tuple[str, ...]
) -> tuple[Reading, Rounds, tuple[str, ...]]:
    """Keep the arms that a group chose or had on offer."""
    present = np.bincount(rounds.arm[rounds.arm >= 0], minlength=len(labels)) > 0
    if rounds.pi is not None:
        present |= ~np.isnan(rounds.pi).all(axis=0)
    if rounds.offered is not None:
        present |= rounds.offered.any(axis=0)
    new = np.append(np.cumsum(present) - 1, -1).astype(np.int32)
    kept = tuple(label for label, here in zip(labels, present, strict=True) if here)
    columns = reading.layout.probabilities
    own = {label: columns[label] for label in kept if label in columns}
    part = replace(
        rounds,
        arm=new[rounds.arm],
        **{
            name: np.ascontiguousarray(table[:, present])
            for name in ("pi", "offered", "covered")
            if (table := getattr(rounds, name)) is not None
        },
    )
    return replace(reading, layout=replace(reading.layout, probabilities=own)), part, kept


def _history(
    reading: Reading, rounds: Rounds, arms: tuple[str, ...], notices: Sequence[str],
    contexts: tuple[ContextLabels, ...],
) -> History:  # fmt: skip
    found = list(notices)
    if reading.layout.order is not None:
        rounds, notes = in_order(rounds, reading.layout.order)
        found += notes
    elif note := grouped_by_arm(rounds.arm):
        found.append(note)
    if rounds.watched is not None:
        trends = [Trend().after(values) for values in rounds.watched.T]
        found += check_trends(trends, reading.layout.watched, reading.name)
    tally = Tally(np.zeros(len(arms), dtype=np.int64))
    history = history_of(
        reading, rounds, arms, tally=tally, notices=found, contexts=contexts
    )  # fmt: skip
    late = tally.notices(reading.missing, arms, reading.layout)
    return history.with_notices(*late) if late else history
