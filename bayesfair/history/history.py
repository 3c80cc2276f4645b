"""A logged decision history: the arm chosen in each round, what it paid, and how it was drawn.

`History` is frozen and validated once, here; everything downstream may rely on it.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator
from dataclasses import InitVar, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesfair.base.arguments import COUNT, TEXT, constructed, takes
from bayesfair.base.checks import check_choice, check_in_range, first_where, listed
from bayesfair.base.labels import label_order
from bayesfair.base.notices import unique
from bayesfair.errors import DataError
from bayesfair.history.context import Context, context_of, known_in_cell
from bayesfair.history.frame import Tabled
from bayesfair.history.given import (
    GivenFields,
    by_name,
    check_whole,
    column_labels,
    fingerprints,
    marks,
    no_number,
    prior_pairs,
    resolve_arms,
)
from bayesfair.history.probabilities import (
    Repairs,
    Resolution,
    checked_rows,
    clipped_propensity,
    resolution_of,
    rows_and_resolution,
)
from bayesfair.history.tables import covered_chances, matrix_of, own
from bayesfair.history.thinned import kept_chances
from bayesfair.kernels.log.rows import by_code, fixed
from bayesfair.typing import Column, Ints

__all__ = ["History"]

_LARGEST = 1e150
_OF_ROUNDS = (
    "arm", "reward", "selection_probability", "propensity", "time", "row", "offered",
    "known_at", "unique", "user", "keep_prob", "context", "covered",
)  # fmt: skip
_STAMPS = ("time", "row", "unique", "user", "context")


@constructed
@dataclass(frozen=True, eq=False, repr=False)
class History(Tabled):
    r"""A validated history of rounds: chosen arm, observed reward, selection probabilities.

    Parameters
    ----------
    arm : (T,) array of str or int
        Chosen arm of each round: labels, or 0-based positions in `arms`. Integers that could be
        either are refused, unless they are int32, as `History.arm` itself: those are positions.
    reward : (T,) array
        Observed reward of the chosen arm, in the reward's own units; NaN = not observed.
    selection_probability : (T, k) array, optional
        The whole decision rule, :math:`\pi_t(i)`. Rows sum to 1; NaN = arm not on offer that round.
        The columns of a data frame are matched to the arms by their names.
    propensity : (T,) array, optional
        Only the chosen arm's probability, :math:`\pi_t(a_t)`, in (0, 1].
    arms : sequence of str, optional
        Labels. Given: nothing is inferred. Otherwise the column names of a
        data frame of probabilities, else the sorted labels seen, or "0".."k-1" for integers
        that begin at 0 (other numbers are labels unless int32, or there are columns to count in).
    known_at : (T,) array of int, optional
        First round (0-based) whose decision may use this reward; default the next one.
    time : (T,) array, optional
        Time stamps, carried for reports.
    row : (T,) array of int, optional
        1-based row of the source (the header is row 1, empty lines are none), for errors.
    known_until : (T,) array of int, optional
        Shorthand for batches: rewards of rounds before it are known. Excludes `known_at`.
    offered : (T, k) array of bool, optional
        Arms on offer, for logs without a whole decision rule.
    prior_counts : (k, 2) array or mapping of label to (successes, failures), optional
        Outcomes before the log begins (it starts mid-run); or an earlier audit, for its outcomes.
    source : str
        What errors and reports call the data.
    n_skipped : int
        Rows left out on request while reading; carried into every report.
    probability_tolerance : float, optional
        How far a row may sum from 1; default what rounding can cause, k/2 units of the last decimal
        seen, and at least 1e-6.
    notices : tuple of str
        What the reader of a report has to know about the data.
    resolution : Resolution
        How finely the source wrote its probabilities, where that is known.
    missing : str
        How missing rewards were treated while reading; carried into every report.
    reward_column, unique_column, user_column : str
        Columns of the source that held these, so that errors can name them.
    repairs : Repairs
        What was put right within the tolerance; counted here.
    unique : (T,) array, optional
        What identifies a round (a request's number): an audit says where a value comes twice.
    user : (T,) array, optional
        Who each decision was for: an audit says whether users keep the arm once drawn.
    keep_prob : (T,) array, optional
        Of a thinned log, which cannot be audited: the chance in (0, 1] that the round was kept.
    unused_columns : tuple of str
        Columns that nothing was read from: the rule may have seen them, the audit does not.
    context : (T,) array, (T, d) array, mapping of name to column, or data frame, optional
        What the rule saw before it chose: labels, or numbers taken as such; none missing.
    covered : (T, k) array, optional
        Beside `propensity`, :math:`\pi_t(i)` of the arms of which more is known than that; NaN: of
        its own nothing is, and the arms of a round without one share what the others leave of 1.

    Raises
    ------
    DataError, ProbabilityError, ArmError
        Naming round, row, value and remedy.

    Notes
    -----
    After construction `arm` holds 0-based positions (int32), `arms` the labels; `unique` and
    `user` hold fingerprints (0 = missing, which is no key and nobody). Rounds are 0-based.

    Examples
    --------
    >>> history = History(["north", "south", "north"], [1, 0, 1], propensity=[0.5, 0.5, 0.75])
    >>> history.arms, history.n_rounds, history.selection
    (('north', 'south'), 3, 'chosen')
    >>> history.before(2).counts()
    (array([1, 1]), array([1., 0.]))
    """

    arm: NDArray[np.int32]
    reward: NDArray[np.float64]
    selection_probability: NDArray[np.float64] | None = None
    propensity: NDArray[np.float64] | None = None
    arms: tuple[str, ...] = ()
    known_at: NDArray[np.int64] | None = None
    time: NDArray[Any] | None = None
    row: NDArray[np.int64] | None = None
    known_until: InitVar[ArrayLike | None] = None
    offered: NDArray[np.bool_] | None = None
    prior_counts: NDArray[np.float64] | None = None
    source: str = "memory"
    n_skipped: int = 0
    probability_tolerance: float | None = None
    notices: tuple[str, ...] = ()
    resolution: Resolution = field(default=Resolution())
    missing: str = "error"
    repairs: Repairs = field(default=Repairs())
    reward_column: str = "reward"
    unused_columns: tuple[str, ...] = ()
    unique: NDArray[Any] | None = None
    unique_column: str = "unique"
    user: NDArray[Any] | None = None
    user_column: str = "user"
    context: Context | None = None
    keep_prob: NDArray[np.float64] | None = None
    covered: NDArray[np.float64] | None = None

    if TYPE_CHECKING:

        def __init__(self, arm: Column, reward: Column, **more: Unpack[GivenFields]) -> None: ...

    def __post_init__(self, known_until: ArrayLike | None) -> None:
        """Validate once; see the class for what may be raised."""
        put = object.__setattr__
        check_in_range(self.probability_tolerance or 0, "probability_tolerance", 0, 1)
        pi, offered = self._put_arms()
        codes, arms, n_rounds = self.arm, self.arms, self.n_rounds
        reward = self._column("reward", self.reward, np.float64)
        if reward is None:
            raise DataError(
                "reward is missing: give one number per round, NaN where none was observed.",
                kind="missing_argument", column="reward",
            )  # fmt: skip
        if wrong := first_where(np.abs(reward) > _LARGEST):
            t = wrong.at
            raise DataError(
                f"{self.where_reward(t)} is {reward[t]:g}; it must be finite, at most {_LARGEST:g} "
                "in size (beyond, squares cannot be held), or NaN if it was not observed.",
                kind="bad_reward", column=self.reward_column,
                row=None if self.row is None else int(self.row[t]), value=float(reward[t]),
            )  # fmt: skip
        put(self, "reward", fixed(reward))
        if pi is not None:
            if pi.shape != (n_rounds, len(arms)):
                raise DataError(
                    f"selection_probability has shape {pi.shape}, expected (rounds, arms) = "
                    f"{(n_rounds, len(arms))}."
                )
            if offered is not None:
                pi = np.where(offered, pi, np.nan)
            logged = np.asarray(self.selection_probability)
            error, own = rows_and_resolution(pi, codes, logged)
            resolution = self.resolution.merged(own)
            put(self, "resolution", resolution)
            offered = None
            # One compiled pass finds most long logs clean; checks say what is wrong with the rest.
            if error > 1e-12:
                pi, repairs = checked_rows(
                    pi, codes, arms, self.where,
                    tolerance=self.probability_tolerance, resolution=resolution,
                )  # fmt: skip
                put(self, "repairs", self.repairs.merged(repairs))
                missing = np.isnan(pi)
                offered = ~missing if missing.any() else None
        elif offered is not None:
            if hidden := first_where(~offered[np.arange(n_rounds), codes]):
                on = [label for label, there in zip(arms, offered[hidden.at], strict=True) if there]
                raise DataError(
                    f"{self.where(hidden.at)}: the chosen arm {arms[codes[hidden.at]]!r} is not "
                    "on offer, but "
                    f"{listed(on)}; correct the offers (offered) or the arm. If one of them is "
                    "several labels, name what separates them with offered_delimiter=';'.",
                    kind="not_on_offer", value=arms[codes[hidden.at]],
                )  # fmt: skip
            offered = None if offered.all() else offered
        put(self, "selection_probability", fixed(pi))
        put(self, "offered", fixed(offered))
        propensity = self._column("propensity", self.propensity, np.float64)
        if propensity is not None:
            put(self, "resolution", self.resolution.merged(resolution_of(propensity)))
            propensity, repairs = clipped_propensity(propensity, self.where)
            put(self, "repairs", self.repairs.merged(repairs))
        put(self, "propensity", fixed(propensity))
        covered = matrix_of("covered", self.covered, self.source)
        covered = covered_chances(covered, propensity, codes, arms, self.offered, self.where)
        put(self, "covered", fixed(covered))
        kept = self._column("keep_prob", self.keep_prob, np.float64)
        put(self, "keep_prob", fixed(kept_chances(kept, self.where)))
        for name in ("unique", "user"):
            if (values := getattr(self, name)) is not None:
                put(self, name, fixed(fingerprints(name, values, n_rounds)))
        if self.context is not None:
            put(self, "context", context_of(self.context, n_rounds, self.where))
        put(self, "known_at", fixed(self._resolve_known_at(known_until)))
        put(self, "prior_counts", fixed(prior_pairs(self.prior_counts, arms)))
        put(self, "notices", unique((*self.notices, *self.repairs.sentences())))

    # -- what it holds -------------------------------------------------------------------------

    @property
    def n_rounds(self) -> int:
        """Number of rounds, T."""
        return len(self.arm)

    @property
    def n_arms(self) -> int:
        """Number of arms, k."""
        return len(self.arms)

    @property
    def selection(self) -> str:
        """What was logged of the rule: ``"full"``, ``"chosen"`` or ``"none"``."""
        if self.selection_probability is not None:
            return "full"
        return "none" if self.propensity is None else "chosen"

    @property
    def n_unobserved(self) -> int:
        """Rounds whose reward was not observed."""
        return int(np.isnan(self.reward).sum())

    def counts(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return observed pulls and summed rewards per arm, ``(k,)`` each, prior counts apart."""
        seen = ~np.isnan(self.reward)
        pulls = np.bincount(self.arm[seen], minlength=self.n_arms)
        total = np.bincount(self.arm[seen], weights=self.reward[seen], minlength=self.n_arms)
        return pulls, total

    @takes(t=COUNT)
    def before(self, t: int) -> History:
        """Return the rounds 0..t-1, that is :math:`h^t` without round t itself."""
        return self.rounds(0, t)

    @takes(start=COUNT, stop=COUNT)
    def rounds(self, start: int, stop: int) -> History:
        """Return the rounds start..stop-1 as a history of their own (beliefs start afresh)."""
        new = self._taken(operator.itemgetter(slice(int(start), int(stop))))
        if start and new.known_at is not None:
            object.__setattr__(new, "known_at", fixed(new.known_at - start))
        return new

    @takes(n_cells=COUNT)
    def cells(self, codes: NDArray[np.int32], n_cells: int) -> Iterator[tuple[Ints, History]]:
        """Yield for each code its rounds, and these as a history for beliefs, bare of stamps."""
        ends = np.cumsum(np.bincount(codes, minlength=n_cells))
        whole = self._taken(lambda values: by_code(values, codes, ends), bare=True)
        order = by_code(np.arange(self.n_rounds), codes, ends)
        for a, b in itertools.pairwise([0, *ends.tolist()]):
            new = whole._taken(operator.itemgetter(slice(a, b)))
            known = known_in_cell(new.known_at, order[a:b], self.n_rounds)
            object.__setattr__(new, "known_at", fixed(known))
            yield order[a:b], new

    def _taken(self, take: Callable[[Any], Any], *, bare: bool = False) -> History:
        new = object.__new__(History)  # `known_at` still counts the rounds of the whole
        for name in (f.name for f in fields(self)):
            value = None if bare and name in _STAMPS else getattr(self, name)
            value = take(value) if name in _OF_ROUNDS and value is not None else value
            object.__setattr__(new, name, value)
        return new

    def in_label_order(self) -> History:
        """Return the same log with its arms in the order of their labels."""
        order = label_order(self.arms)
        if np.array_equal(order, np.arange(self.n_arms)):
            return self
        new, put = self.rounds(0, self.n_rounds), object.__setattr__
        put(new, "arms", tuple(self.arms[i] for i in order))
        put(new, "arm", fixed(np.argsort(order).astype(np.int32)[self.arm]))
        for name in ("selection_probability", "offered", "covered"):
            if (table := getattr(self, name)) is not None:
                put(new, name, fixed(np.ascontiguousarray(table[:, order])))
        if self.prior_counts is not None:
            put(new, "prior_counts", fixed(self.prior_counts[order]))
        return new

    def with_notices(self, *notices: str) -> History:
        """Return a copy with further notices."""
        new = self.rounds(0, self.n_rounds)
        object.__setattr__(new, "notices", unique((*self.notices, *notices)))
        return new

    @takes(column=TEXT)
    def with_prints(self, name: str, prints: NDArray[np.uint64], column: str) -> History:
        """Return a copy with the fingerprints of a column: ``unique`` or ``user``."""
        check_choice(name, "name", ("unique", "user"))
        kind = (getattr(prints, "shape", None), str(getattr(prints, "dtype", None)))
        if kind != ((self.n_rounds,), "uint64"):
            raise DataError(f"prints must be {self.n_rounds} whole numbers of 64 bits (uint64).")
        new, put = self.rounds(0, self.n_rounds), object.__setattr__
        put(new, name, fixed(prints))
        put(new, f"{name}_column", column)
        return new

    @takes(t=COUNT)
    def where(self, t: int) -> str:
        """Name a round for a message: ``round 17 (row 19 of log.csv)``."""
        if self.row is None:
            return f"round {t} of {self.source}"
        return f"round {t} (row {int(self.row[t])} of {self.source})"

    @takes(t=COUNT)
    def where_reward(self, t: int) -> str:
        """Name the reward of a round, with its column where the source has one."""
        place = self.where(t)
        if self.row is None:
            return f"reward of {place}"
        return f"reward of {place[:-1]}, column {self.reward_column!r})"

    def __repr__(self) -> str:
        return (
            f"History({self.source}: {self.n_rounds} rounds, {self.n_arms} arms "
            f"{listed(self.arms, 5)}, selection={self.selection!r}, "
            f"{self.n_unobserved} rewards not observed)"
        )

    def _put_arms(self) -> tuple[NDArray[np.float64] | None, NDArray[np.bool_] | None]:
        """Settle rows, times and arms; return probabilities and offers with columns in their order.

        What was merged among the labels becomes a notice.
        """
        put = object.__setattr__
        if not hasattr(self.arm, "__len__"):
            raise DataError(f"arm must be one value per round, got {self.arm!r}.")
        n_rounds = len(self.arm)
        put(self, "row", fixed(self._column("row", self.row, np.int64)))
        put(self, "time", None if self.time is None else np.asarray(self.time))
        pi = matrix_of("selection_probability", self.selection_probability, self.source)
        offered = None if self.offered is None else marks(self.offered)
        width = pi.shape[1] if pi is not None else offered.shape[1] if offered is not None else None
        tables = (self.selection_probability, self.offered)
        named = [column_labels(x) for x in tables if x is not None]
        names = named[0] if named else None
        codes, arms, merged = resolve_arms(self.arm, self.arms, width, names, self.where)
        put(self, "notices", (*self.notices, *merged))
        if pi is not None and names:
            pi = by_name("selection_probability", pi, names, arms)
        if offered is not None and (names := named[-1]):
            offered = by_name("offered", offered, names, arms)
        put(self, "arm", fixed(codes))
        put(self, "arms", arms)
        if offered is not None and offered.shape != (n_rounds, len(arms)):
            raise DataError(f"offered has shape {offered.shape}, expected {(n_rounds, len(arms))}.")
        return pi, offered

    def _column(self, name: str, values: ArrayLike | None, dtype: type) -> NDArray[Any] | None:
        if values is None:
            return None
        try:
            # dates would become counts of some unit, complex numbers their real part
            raw = np.asarray(values) if dtype is np.int64 or hasattr(values, "dtype") else None
            if raw is not None and raw.dtype.kind in "mMc":
                raise TypeError(f"it holds {raw.dtype}")
            if dtype is np.int64 and raw is not None and raw.ndim == 1:
                check_whole(name, raw, self.where if name != "row" else "position {}".format)
            column = own(values, dtype)
        except (TypeError, ValueError, OverflowError) as error:
            if isinstance(error, DataError):
                raise
            said = no_number(name, values, error, len(self.arm), self.source, self.where)
            raise DataError(said) from None
        if column.shape != (len(self.arm),):
            raise DataError(
                f"{name} has shape {column.shape}, expected one value for each of the "
                f"{len(self.arm)} rounds of `arm`."
            )
        return column

    def _resolve_known_at(self, known_until: ArrayLike | None) -> NDArray[np.int64] | None:
        if known_until is not None:
            if self.known_at is not None:
                raise DataError("give known_at or known_until, not both.")
            until = self._column("known_until", known_until, np.int64)
            assert until is not None
            rounds = np.arange(self.n_rounds)
            wrong = (until > rounds) | (until < 0)
            wrong[1:] |= until[1:] < until[:-1]
            if first := first_where(wrong):
                raise DataError(
                    f"{self.where(first.at)}: known_until is {until[first.at]}. It must not be "
                    "below 0, decrease, nor exceed its own round (counted from 0): in round t the "
                    "rewards of rounds before known_until[t] are known."
                )
            return np.searchsorted(until, rounds, side="right").astype(np.int64)
        known_at = self._column("known_at", self.known_at, np.int64)
        if known_at is None:
            return None
        if early := first_where(known_at <= np.arange(self.n_rounds)):
            raise DataError(
                f"{self.where(early.at)}: known_at is {known_at[early.at]}, but a reward can be "
                f"known at the earliest in the next round, {early.at + 1} (rounds are 0-based)."
            )
        return None if np.array_equal(known_at, np.arange(1, self.n_rounds + 1)) else known_at
