"""Keep a long audit on its way: every minute, and when it is interrupted."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from bayesfair.audit.conclusion import conclude
from bayesfair.audit.group import GroupRecord
from bayesfair.audit.log.summary import Summary
from bayesfair.audit.question import Question
from bayesfair.audit.record import Record
from bayesfair.audit.saved.file import Origin
from bayesfair.audit.saved.storage import save_audit
from bayesfair.audit.saved.unfinished import Followed, Unfinished
from bayesfair.base.notices import Notice
from bayesfair.base.writing import check_target
from bayesfair.errors import BayesfairWarning, DataError, OptionError

__all__ = ["Checkpoint", "as_begun", "begun", "check_logs", "checkpoint_for"]


class Checkpoint:
    """A file that holds what has been audited so far, as an audit that can be resumed.

    Parameters
    ----------
    path : str or Path
        The file.
    every : float
        Seconds between two writings; one more is made when the audit is interrupted.
    """

    def __init__(self, path: Any, every: float = 60.0) -> None:
        # they are needed at a moment that has no time for them
        import h5py  # noqa: F401
        import xarray as xr  # noqa: F401

        self.path = check_target(path, "partial")
        self.every = every
        self.written = False
        """Whether the file holds something of this audit."""
        self._several = False
        self._joined: Record | None = None
        self._whole: Question | None = None
        self._origin: Origin | None = None
        self._before: dict[str, Record] = {}
        self._parts: dict[str, tuple[Summary, Question, Unfinished]] = {}
        self._new = False
        self._told = False
        self._last = time.monotonic()
        self._lock = threading.RLock()

    def begin(self, earlier: Any, *, several: bool) -> None:
        """Say what the audit is: of one log or several, and whether it was begun before.

        What an earlier attempt had seen (a log read in parts that turned out to need reading whole)
        is forgotten.
        """
        with self._lock:
            self._parts.clear()
            self._new = self._told = False
        self._several = several
        if is_unfinished(earlier):
            self._origin = earlier.origin
            self._before = {"": earlier} if isinstance(earlier, Record) else dict(earlier.audits)

    def joining(self, earlier: Any, whole: Question) -> None:
        """Say that the audit will be joined with that of the logs before, and what is asked then.

        Raises
        ------
        OptionError
            If the file could not hold both.
        """
        if isinstance(earlier, GroupRecord) or earlier.arm_groups is not None:
            which = "several logs" if isinstance(earlier, GroupRecord) else "groups of arms"
            raise OptionError(
                f"partial= cannot keep what goes on from an audit of {which}; the file of that one "
                "stays as it is. Leave partial= out.",
                kind="unused_option",
                column="partial",
            )
        self._joined, self._whole = earlier, whole

    def seen(self, label: str, summary: Summary, question: Question, log: Followed) -> None:
        """Remember what has been seen of a log up to here; write it if the last time is long ago.

        Parameters
        ----------
        label : str
            The group's label; "" for one log.
        summary : Summary
            Of all rounds up to here.
        question : Question
            What is asked.
        log : Followed
            Where these rounds were read.
        """
        before, source = 0, summary.facts.last_source
        earlier = begun(question)
        if self._joined is not None and self._whole is not None:
            before = self._joined.summary.end.n_rounds
            summary, question = self._joined.summary.merged(summary), self._whole
        elif earlier is not None and earlier.unfinished is not None:
            before = earlier.unfinished.before
        unfinished = Unfinished(log.n_rounds, before, log.digest, source)
        with self._lock:
            self._parts[label] = (summary, question, unfinished)
            self._new = True
        if time.monotonic() - self._last >= self.every:
            try:
                self.keep()
            except OSError as error:
                self._last = time.monotonic()
                warnings.warn(
                    f"the audit so far could not be kept in {self.path}: {error.strerror or error}."
                    " It goes on; interrupted now, it would have to begin again.",
                    BayesfairWarning,
                    stacklevel=2,
                )

    def keep(self) -> None:
        """Write what has been seen up to here, if that is not in the file."""
        with self._lock:
            if not self._new:
                return
            audits = self._before | {
                label: self._unfinished(*part) for label, part in self._parts.items()
            }
            found: Any = GroupRecord(audits, self._origin) if self._several else audits[""]
            save_audit(found, self.path)
            self._new, self.written, self._last = False, True, time.monotonic()

    def _unfinished(self, summary: Summary, question: Question, state: Unfinished) -> Record:
        bare = replace(question, objective=False, model=None, truth=None)
        audit = conclude(summary, bare, [], None)
        n = summary.n_rounds
        note = Notice(
            f"Interrupted after {n} rounds: these are the numbers of the rounds seen, without the "
            "objective part. Audit.resume, or --resume on the command line, goes on with the log.",
            kind="unfinished",
            n=n,
        )
        rest = tuple(f for f in audit.findings if Notice.of(f).kind != "no_objective")
        return replace(
            audit,
            question=question.kept(),
            findings=(note, *rest),
            unfinished=state,
            origin=self._origin,
        )

    def last_words(self) -> str | None:
        """Keep what has been seen, and return where, in a sentence; None if there is nothing.

        It may be called from another thread while the audit is at work.
        """
        with self._lock:
            if not (self._parts or self._before):
                return None
            try:
                self.keep()
            except OSError as error:
                return f"what was done could not be kept in {self.path}: {error.strerror or error}."
            self._told = True
            place = self.path if self.written or self._origin is None else self._origin.path
            before = {label: audit.summary.n_rounds for label, audit in self._before.items()}
            n = before | {label: summary.n_rounds for label, (summary, _, _) in self._parts.items()}
            return (
                f"{sum(n.values())} rounds have been audited and are kept in {place}: "
                f"--resume {place} (Audit.resume) goes on with the same log."
            )

    @contextlib.contextmanager
    def kept_if_interrupted(self) -> Iterator[None]:
        """Within the block, Ctrl-C writes what has been seen before it ends the audit."""
        try:
            yield
        except KeyboardInterrupt as stop:
            said = self.last_words()
            if said is not None and said not in getattr(stop, "__notes__", ()):
                stop.add_note(said)
            raise

    def drop(self) -> None:
        """Remove the file: the audit is complete. One that an interruption told of stays."""
        with self._lock:
            if self._told:
                return
            self._parts.clear()
            self._before.clear()
            here = os.path.realpath(self.path)
            if self.written or (self._origin is not None and self._origin.path == here):
                Path(self.path).unlink(missing_ok=True)


def is_unfinished(earlier: Any) -> bool:
    """Whether this is an audit, of one log or several, that was interrupted."""
    return isinstance(earlier, (Record, GroupRecord)) and bool(earlier.unfinished)


def checkpoint_for(partial: Any, data: Any, question: Question) -> Checkpoint | None:
    """Return where to keep the audit on its way, if that is asked for.

    Raises
    ------
    OptionError
        If nothing could go on from there.
    """
    if partial is None:
        return None
    earlier = question.earlier is not None and not is_unfinished(question.earlier)
    if question.beliefs_model is not None:
        why = "beliefs_model= fits the whole log again and again, and leaves no state to go on from"
    elif earlier and isinstance(data, Mapping):
        why = "several logs that go on from an earlier audit would need that one too to go on from"
    else:
        return partial if isinstance(partial, Checkpoint) else Checkpoint(partial)
    raise OptionError(
        f"partial= cannot keep this audit: {why}. Leave partial= out.",
        kind="unused_option",
        column="partial",
    )


def begun(question: Question) -> Record | None:
    """Return the interrupted audit of this very log, if that is what to go on with."""
    earlier = question.earlier
    return earlier if isinstance(earlier, Record) and earlier.unfinished is not None else None


def check_logs(logs: Mapping[str, Any], earlier: Any) -> None:
    """Refuse to go on with an interrupted audit of several logs where one of them is missing."""
    if not isinstance(earlier, GroupRecord) or not earlier.unfinished:
        return
    for label, audit in earlier.audits.items():
        if label not in logs:
            raise DataError(
                f"the interrupted audit had begun the group {label!r} of "
                f"{audit.summary.facts.source!r}, which is not there. Give the same logs again.",
                kind="other_source",
                value=label,
            )


def as_begun(question: Question) -> Question:
    """Return the question with the start that an interrupted audit was asked for at first.

    Raises
    ------
    OptionError
        If it asks for another one.
    """
    earlier = question.earlier
    if not is_unfinished(earlier):
        return question
    audits = [earlier] if isinstance(earlier, Record) else list(earlier.audits.values())
    first = next(audit for audit in audits if audit.unfinished is not None)
    if question.family not in ("auto", first.family) or question.support is not None:
        raise OptionError(
            f"the audit was begun with family={first.family!r} and goes on with it: leave family= "
            "and support= out, or audit the log from its start.",
            kind="not_the_same",
            column="family",
            value=question.family,
        )
    begun_with = first.context_model or "none"
    if question.context_model not in (None, begun_with):
        raise OptionError(
            f"the audit was begun with context_model={begun_with!r} and goes on with it: "
            "leave context_model= out, or audit the log from its start.",
            kind="not_the_same",
            column="context_model",
            value=question.context_model,
        )
    return question.begun_as(first.question)
