"""How far an interrupted audit came, and how to find that place in its log again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesfair.audit.log.state import parts_of
from bayesfair.errors import DataError
from bayesfair.history import History

__all__ = ["Followed", "Unfinished"]


@dataclass(frozen=True)
class Unfinished:
    """What an interrupted audit had seen of its log, and what was still to be done.

    Attributes
    ----------
    n_rounds : int
        Rounds seen, from the start of the log.
    before : int
        Rounds of earlier logs, with whose audit this one was to be joined.
    digest : str
        Of these rounds as they were read.
    source : str
        What the log is called.
    """

    n_rounds: int
    before: int
    digest: str
    source: str


class Followed:
    """A log whose parts are read on from where an interrupted audit stopped, and remembered.

    The log is read from its start: what was seen is compared with what is there now.

    Parameters
    ----------
    data : History or HistoryScan
        The log.
    begun : Unfinished or None
        What was seen of it.
    """

    def __init__(self, data: Any, begun: Unfinished | None) -> None:
        self.data = data
        self.begun = begun
        self.n_rounds = 0
        """Rounds read so far."""
        self._columns: dict[str, Any] = {}

    @property
    def digest(self) -> str:
        """Of the rounds read so far, however they were divided into parts."""
        whole = hashlib.blake2b(digest_size=16)
        for name in sorted(self._columns):
            whole.update(f"{name} {self._columns[name].hexdigest()}\n".encode())
        return whole.hexdigest()

    def chunks(self) -> Iterator[History]:
        """Yield the parts that were not seen yet.

        Raises
        ------
        DataError
            If the log does not begin with what was seen.
        """
        seen = 0 if self.begun is None else self.begun.n_rounds
        for part in parts_of(self.data):
            before = self.n_rounds
            self._add(part)
            if self.begun is not None and before < seen:
                if self.n_rounds > seen:
                    raise self._refused(
                        f"it is read in parts of {part.n_rounds} rounds, none of which ends after "
                        f"{seen}. Read it as when it began (chunk_rounds=, a scan)"
                    )
                if self.n_rounds == seen and self.digest != self.begun.digest:
                    raise self._refused(
                        f"its first {seen} rounds are others, or are read with other options. Give "
                        "that log, and the options that it was read with"
                    )
                continue
            yield part
        if self.n_rounds < seen:
            raise self._refused(f"it has only {self.n_rounds} rounds. Give the whole log again")

    def _refused(self, why: str) -> DataError:
        begun = self.begun
        assert begun is not None
        name = str(getattr(self.data, "source", "this log"))
        return DataError(
            f"the interrupted audit had seen {begun.n_rounds} rounds of {begun.source!r}, and "
            f"cannot go on with {name!r}: {why}, or audit it from its start.",
            kind="other_source",
            source=name,
            value=begun.n_rounds,
        )

    def _add(self, part: History) -> None:
        """Take the digest of a part further, column by column."""
        if not self._columns:
            self._column("arms").update("\n".join(part.arms).encode("utf-8", "surrogatepass"))
        known = part.known_at
        columns = {
            "arm": part.arm,
            "reward": part.reward,
            "pi": part.selection_probability,
            "propensity": part.propensity,
            "offered": part.offered,
            "known_at": None if known is None else np.asarray(known) + self.n_rounds,
            "unique": part.unique,
            "user": part.user,
            "row": part.row,
        }
        for name, values in columns.items():
            if values is not None:
                self._column(name).update(np.ascontiguousarray(values).data.cast("B"))
        self.n_rounds += part.n_rounds

    def _column(self, name: str) -> Any:
        return self._columns.setdefault(name, hashlib.blake2b(digest_size=16))
