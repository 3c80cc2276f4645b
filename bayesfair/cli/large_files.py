"""Large logs are read in parts unasked, wherever that gives the numbers of the whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bayesfair.cli.tools import note, reading
from bayesfair.errors import BayesfairError

__all__ = ["in_parts_if_large", "say_work", "why_whole"]

_TEXT_BYTES = 48_000_000
_PACKED_BYTES = 8_000_000  # text that is compressed
_PARQUET_VALUES = 12_000_000
"""Above these sizes the probabilities of a log take more than about .8 GB on the way in."""

_TEXT = (".csv", ".tsv", ".txt", ".tab", "")
_PARQUET = (".parquet", ".pq")


def why_whole(
    *,
    by: Sequence[str] | None,
    known_until: str | None,
    model: str | None,
    prior_sensitivity: bool,
    value: Sequence[str] | None,
    value_rule: Sequence[str] | None,
    across: object,
) -> str | None:
    """Return which option needs the whole log, None where parts will do."""
    needs = {
        "--by": by, "--known-until": known_until, "--model": model,
        "--prior-sensitivity": prior_sensitivity, "--value": value, "--value-rule": value_rule,
        "--across": across,
    }  # fmt: skip
    return next((option for option, given in needs.items() if given), None)


def in_parts_if_large[Result](
    source: Any,
    scan: bool | None,
    columns: dict[str, Any],
    run: Callable[[Any], Result],
    *,
    whole: str | None,
    by_values: bool,
) -> Result:
    """Read a log, whole or in parts, and return what ``run`` makes of it.

    Parameters
    ----------
    source : path
        The log.
    scan : bool or None
        What was asked; None = parts where the file is large.
    columns : dict
        Options of `read_history`.
    run : callable
        Takes a History or a HistoryScan.
    whole : str or None
        Option that needs the whole log.
    by_values : bool
        Whether family or levels follow from the values of all rewards.
    """
    from bayesfair.readers import read_history, scan_history

    def read(reader: Callable[..., Any]) -> Any:
        with reading(source):
            return reader(source, **columns)

    if scan:
        return run(read(scan_history))
    if scan is not None or not _is_large(source):
        return run(read(read_history))
    if whole is not None:
        note(f"{Path(source).name} is large, and read whole: {whole} needs all of it.")
        return run(read(read_history))
    try:
        data = read(scan_history)
        if not (by_values and _has_other_values(data)):
            return run(data)
        reason = "family and levels follow from all rewards (--family, --support)"
    except BayesfairError as error:
        if error.kind != "needs_whole" and not (by_values and error.kind == "not_in_family"):
            raise
        reason = str(error)
    note(f"{Path(source).name} is large, and read whole after all: {reason}")
    return run(read(read_history))


def say_work(data: Any, family: str, draws: int, *, model: bool, rounds: bool) -> None:
    """Say before the work how long it takes, where it is long, and when arms look like rows.

    ``model`` and ``rounds``: whether a model is fitted, and a file of every round written, neither
    of which is estimated.
    """
    from bayesfair.audit.log.limits import in_words, like_rows, work_of, work_of_many
    from bayesfair.history.logs import logs_in

    logs = logs_in(data)
    for log in logs:
        if doubt := like_rows(log):
            note(f"{log.source}: {doubt.strip().replace('arm=', '--arm')}")
    several = isinstance(data, Mapping)
    work = work_of_many(data, family, draws=draws) if several else (
        work_of(data, family, draws=draws)
    )  # fmt: skip
    if text := in_words(work):
        what = f"{len(data)} groups" if several else f"{data.n_arms} arms"
        more = [name for name, there in (("--model", model), ("--rounds", rounds)) if there]
        beside = f", and {' and '.join(more)} beside, not estimated" if more else ""
        note(f"{logs[0].source}: {text} ({what}){beside}. Ctrl-C ends it.")


def _has_other_values(data: Any) -> bool:
    """Whether the first part has rewards other than 0 and 1."""
    import numpy as np

    first = next(iter(data.chunks()))
    reward = first.reward
    return bool(((reward != 0) & (reward != 1) & ~np.isnan(reward)).any())


def _is_large(source: Any) -> bool:
    """Whether the files of a path, folder or glob hold together what takes long in one piece."""
    from bayesfair.readers.files.paths import files_of

    try:
        files, _ = files_of(str(source))
        return sum(map(_share, files)) > 1
    except (BayesfairError, OSError):
        return False  # the reader says what is wrong with it


def _share(path: Path) -> float:
    """Return how large a file is, in parts of what is still read whole."""
    suffix, size = path.suffix.lower(), path.stat().st_size
    if suffix in _PARQUET:
        import pyarrow.parquet as pq
        from pyarrow import ArrowException

        try:
            found = pq.read_metadata(path)
        except ArrowException:
            return 0.0
        return float(found.num_rows * found.num_columns / _PARQUET_VALUES)
    return size / (_TEXT_BYTES if suffix in _TEXT else _PACKED_BYTES)
