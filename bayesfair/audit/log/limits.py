"""What an audit will cost, said before the work: operations counted, not timed.

The counts are those of the kernels in use. The nanoseconds per operation were measured with one
thread on a machine of 2025 (``python benchmarks/audit_estimate.py`` holds both against each other:
.5 to 2.8 times what was measured there). Not estimated: files of every round, and fits of models.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bayesfair.audit.log.alike import MOST_APART
from bayesfair.audit.log.violations import MOST_COMPARISONS, exact_rounds
from bayesfair.base.checks import counted
from bayesfair.base.notices import Notice
from bayesfair.errors import DataError
from bayesfair.families import FAMILIES
from bayesfair.history import History
from bayesfair.history.logs import Logs
from bayesfair.history.probabilities import Repairs
from bayesfair.kernels.laws.tie_integral import TIE_NODES
from bayesfair.kernels.log.stream_narrow import MOST_ARMS

__all__ = [
    "LONGEST", "Work", "available_memory", "check_size", "in_parts", "in_words", "like_rows",
    "work_of", "work_of_many",
]  # fmt: skip

LONGEST = 24 * 3600.0
"""Work of more seconds than this is refused."""

_SAID = 10.0  # seconds from which on the estimate is said
_SHOWN = 5.0  # and progress shown
_MATTERS = 1e8  # bytes from which on it is asked how many there are
_LIKE_ROWS = 0.9  # labels per row of a column that tells rows apart
_MANY = 1000
_HOPELESS = 100_000  # labels of such a column from which on it is refused

# seconds of a log beside its rounds: by itself, its draws of the truth, and in one pass over many
_LOG, _DRAWN_LOG, _LOG_OF_MANY = 3e-3, 3e-3, 4e-5

# nanoseconds
_PAIR_OF_MANY = 1.0  # a pair under a draw in that pass
_ROUND = 120.0  # a round, whatever was logged of it
_ARM = 2500.0  # an arm, whatever becomes of it
_NODE = 0.25  # a factor of the tie integral in a stream
_RULE = 10.0  # one probability of the rule in a round
_PAIR_OF_ROUNDS = 0.03  # a pair in a round, for the largest differences
_DRAWN_ARM = 100.0  # the mean of an arm, drawn from its posterior
_DRAW = 1.2  # a factor of the tie integral for a draw of the truth
_SPREAD = 600.0  # a draw, for means and intervals of what is asked
_PAIR_OF_DRAWS = 14.0
_ROUND_OF_DRAWS, _LOOK = 2.0, 0.17  # a round, and a pair in it, under a draw: does it violate?


class Work(NamedTuple):
    """What an audit costs.

    Attributes
    ----------
    seconds : float
        Of one thread, within a factor of about two where they were measured.
    memory : float
        Bytes beside those of the log.
    beliefs, objective : float
        Seconds of P* and pairs in every round, and of the draws of the true rewards.
    objective_memory : float
        Bytes that the objective part takes of `memory`.
    """

    seconds: float
    memory: float
    beliefs: float
    objective: float
    objective_memory: float


def work_of(data: Any, family: str, *, draws: int, keep_rounds: bool = False) -> Work:
    """Return what the audit of a log costs, from its size alone.

    Parameters
    ----------
    data : History or HistoryScan
        The log.
    family : str
        Reward family; ``"auto"`` counts as Bernoulli.
    draws : int
        Draws of the true rewards; 0 without objective part.
    keep_rounds : bool
        Whether P* of every round is kept.

    Examples
    --------
    >>> few = work_of(History([0, 1, 0], [1, 0, 1]), "bernoulli", draws=0)
    >>> few.seconds < 1e-3 and few.memory < 1e6
    True
    """
    k = int(data.n_arms)
    n = int(data.n_rounds or 0)
    full = data.selection == "full"
    laws = _different_beliefs(data, family, k, n)
    pairs, drawn_arms = k * (k - 1) / 2, k
    of = FAMILIES.get(family, FAMILIES["bernoulli"])
    if not of.binary:
        per_round = laws * of.cost_of_law + full * (2 * laws) ** 2 * of.cost_of_pair
        per_draw = k * (of.cost_of_law + _DRAWN_ARM) + full * pairs * 12 * of.cost_of_pair
    else:
        per_round = laws * TIE_NODES * _NODE if k > MOST_ARMS else 5.0 * k
        drawn_arms = k if full else _drawn_arms(data, k)
        per_draw = drawn_arms * (_DRAWN_ARM + 2 * min(TIE_NODES, (k + 1) // 2) * _DRAW)
    per_round += _ROUND + full * (k * _RULE + pairs * _PAIR_OF_ROUNDS)
    looked = n * pairs * draws  # at a pair in a round under a draw
    seen = min(n, exact_rounds(k)) * min(1.0, MOST_COMPARISONS / looked) if looked else 0.0
    per_draw += full * (_SPREAD + pairs * _PAIR_OF_DRAWS + seen * (_ROUND_OF_DRAWS + pairs * _LOOK))
    seconds = 1e-9 * (n * per_round + k * _ARM), 1e-9 * draws * per_draw
    # a round's few numbers; sums, slots and plays over time of every arm; pairs of arms
    memory = 8.0 * (12 * min(n, 1 << 22) + k * 300 + (5 * k * k if full else 0))
    memory += 8.0 * n * k if keep_rounds else 0.0
    drawn = 8.0 * draws * drawn_arms * 4
    return Work(sum(seconds), memory + drawn, *seconds, drawn)


def work_of_many(logs: Mapping[str, Any], family: str, *, draws: int) -> Work:
    """Return what the audits of several logs cost together; parameters as those of `work_of`."""
    if not isinstance(logs, Logs):
        works = [work_of(log, family, draws=draws) for log in logs.values()]
        n = len(works)
        beliefs, drawn = sum(w.beliefs for w in works), sum(w.objective for w in works)
        beliefs, drawn = beliefs + n * _LOG, drawn + n * _DRAWN_LOG * (draws > 0)
        kept = sum(w.objective_memory for w in works)
        memory = max(w.memory - w.objective_memory for w in works) + kept
        return Work(beliefs + drawn, memory, beliefs, drawn, kept)
    whole, n = logs.together, len(logs)
    one = work_of(whole.rounds, family, draws=draws)
    if family not in ("auto", "bernoulli"):
        beliefs, drawn = one.beliefs + n * _LOG, n * (one.objective + _DRAWN_LOG * (draws > 0))
        return Work(beliefs + drawn, one.memory, beliefs, drawn, one.objective_memory)
    k, drawn_at_all = logs.n_arms, draws and whole.written is not None
    truths = len(whole.counts()[0]) if drawn_at_all else 0
    beliefs = one.beliefs + n * _LOG_OF_MANY
    drawn = 1e-9 * draws * k * (truths * _DRAWN_ARM + n * (k - 1) / 2 * _PAIR_OF_MANY)
    drawn *= drawn_at_all > 0
    return Work(beliefs + drawn, one.memory + 8.0 * n * 200, beliefs, drawn, 0.0)


def _drawn_arms(data: Any, k: int) -> int:
    """Return how many arms have draws of their own: those never chosen share theirs."""
    chosen = _chosen(data, k)
    return chosen if k - chosen > MOST_APART else k


def _chosen(data: Any, k: int) -> int:
    """Return how many arms were chosen; all, where the log would have to be read for it."""
    return len(np.unique(data.arm)) if isinstance(data, History) else k


def _different_beliefs(data: Any, family: str, k: int, n: int) -> int:
    """Return about how many arms differ in their beliefs at the same time."""
    if not isinstance(data, History) or k <= MOST_ARMS:  # few arms are never put together
        return min(k, n) + 1
    seen = ~np.isnan(data.reward)
    plays = np.bincount(data.arm[seen], minlength=k)
    if family in FAMILIES and not FAMILIES[family].binary:
        return int(np.count_nonzero(plays)) + 1
    total = np.bincount(data.arm[seen], weights=data.reward[seen], minlength=k)
    return len(np.unique(np.stack([plays, total], axis=1), axis=0))


def available_memory() -> float:
    """Return how many bytes this process may still use; infinite where nothing tells.

    The least of what the machine has free, of what its container may use, and of its own limit.
    """
    found = [np.inf]
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                found.append(1024.0 * int(line.split()[1]))
    except (OSError, ValueError):
        pass  # not on every system
    try:
        group = Path("/sys/fs/cgroup")
        most = (group / "memory.max").read_text(encoding="ascii").strip()
        if most != "max":
            used = int((group / "memory.current").read_text(encoding="ascii"))
            found.append(float(int(most) - used))
    except (OSError, ValueError):
        pass
    try:
        import resource

        most_here, _ = resource.getrlimit(resource.RLIMIT_AS)
        if most_here != resource.RLIM_INFINITY:
            pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[0]
            found.append(float(most_here - int(pages) * os.sysconf("SC_PAGE_SIZE")))
    except (ImportError, OSError, ValueError):
        pass
    return float(min(found))


def check_size(data: Any, family: str, *, draws: int) -> list[Notice]:
    """Refuse an audit that cannot end, before memory is asked for; return what is worth saying.

    Raises
    ------
    DataError
        Of kind ``"too_much_memory"`` or ``"too_long"``, with the number and what helps.
    """
    work = work_of(data, family, draws=draws)
    k, n = int(data.n_arms), data.n_rounds
    label = like_rows(data)
    free = available_memory() if work.memory > _MATTERS else np.inf
    size = f"{data.source} has {counted(k, 'arm')}" + (f" in {n} rounds" if n else "")
    if work.memory > 0.9 * free:
        raise DataError(
            f"{label}{size}: the audit would need about {_bytes(work.memory)} of memory beside the "
            f"log, {_bytes(free)} are free. {_remedy(work, 0.9 * free, 'memory')}",
            kind="too_much_memory", value=work.memory, source=data.source,
        )  # fmt: skip
    if label and k >= _HOPELESS:
        raise DataError(
            f"{label}{size}: nothing is learned of arms that are chosen once. "
            f"{_remedy(work, 0.0, 'seconds')}",
            kind="labels_like_rows", column="arm", value=k, source=data.source,
        )  # fmt: skip
    if work.seconds > LONGEST:
        raise DataError(
            f"{label}{size}: the audit would take about {_duration(work.seconds)}; more than "
            f"{_duration(LONGEST)} is refused. {_remedy(work, LONGEST, 'seconds')}",
            kind="too_long", value=work.seconds, source=data.source,
        )  # fmt: skip
    if label:
        return [Notice(f"{label}{size}.", kind="labels_like_rows", n=k)]
    return []


def like_rows(data: Any) -> str:
    """Say that a log's column of arms tells rows apart; nothing where it does not."""
    k, n = int(data.n_arms), data.n_rounds
    if not n or k < _MANY or (k := _chosen(data, k)) < max(_MANY, _LIKE_ROWS * n):
        return ""
    as_many = "as many labels as rows" if k >= n else "nearly as many labels as rows"
    return f"The column of the arms (arm=) has {as_many}: is it the number of a row or a user? "


def _remedy(work: Work, most: float, what: str) -> str:
    """Say what makes the work smaller."""
    drawn = work.objective_memory if what == "memory" else work.objective
    rest = (work.memory if what == "memory" else work.seconds) - drawn
    found = "Name the arms that matter (arms=), or put arms together into groups (another arm=)"
    if drawn and rest < most:
        return f"Leave the objective part out (objective=False), or take fewer draws=. {found}."
    return f"{found}."


def _bytes(n: float) -> str:
    return f"{n / 1e9:.3g} GB" if n >= 1e9 else f"{n / 1e6:.3g} MB"


def _duration(seconds: float) -> str:
    for unit, size in (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2 * size or (unit == "hours" and seconds >= size):
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.2g} s"


def in_words(work: Work) -> str | None:
    """Return how long the work takes, where it is long."""
    return f"about {_duration(work.seconds)} of work" if work.seconds > _SAID else None


@dataclass(frozen=True)
class _InParts:
    """A log in memory that is audited part by part, so that progress can be shown."""

    log: History
    size: int

    def __getattr__(self, name: str) -> Any:
        return getattr(self.log, name)

    def chunks(self) -> Iterator[History]:
        """Yield the parts; what was said and counted in reading belongs to the first."""
        for start in range(0, self.log.n_rounds, self.size):
            part = self.log.rounds(start, min(start + self.size, self.log.n_rounds))
            if start:
                for name, nothing in (("notices", ()), ("n_skipped", 0), ("repairs", Repairs())):
                    object.__setattr__(part, name, nothing)
            yield part


def in_parts(log: History, family: str) -> Any:
    """Return a log as it is, or in as many parts as its audit takes seconds, where it is long."""
    seconds = work_of(log, family, draws=0).beliefs if log.n_rounds else 0.0
    if seconds < _SHOWN:
        return log
    return _InParts(log, max(log.n_rounds // min(int(seconds), 100), 1))
