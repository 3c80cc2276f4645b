"""What `audit` returns: a record, and what can be done with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, overload

from bayesfair.audit.frames import arm_frame, group_frame
from bayesfair.audit.group import GroupRecord
from bayesfair.audit.group_text import render_group
from bayesfair.audit.log.over_time import over_time
from bayesfair.audit.log.per_round import rounds_dataset
from bayesfair.audit.log.verdict_words import regret_words
from bayesfair.audit.numbers import audit_numbers
from bayesfair.audit.parts import resume
from bayesfair.audit.record import Record
from bayesfair.audit.saved.storage import save_audit
from bayesfair.audit.saved.tables import to_tree
from bayesfair.audit.text import render
from bayesfair.audit.together import Audits
from bayesfair.audit.truth.sensitivity import PriorSensitivity, audit_prior_sensitivity
from bayesfair.base.arguments import constructed, takes
from bayesfair.base.html import Shown
from bayesfair.typing import FilePath, Model, Progress, Seed

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

__all__ = ["Audit", "AuditGroup", "as_audit"]


@constructed
@dataclass(frozen=True, eq=False, repr=False)
class Audit(Record, Shown):
    """A finished audit of one log.

    ``print`` it for a report; `to_dict` for the numbers; `rounds` for every round; `tree` for
    ArviZ; `save` to keep it. Its attributes are those of `bayesfair.audit.record.Record`.
    """

    def to_dict(self) -> dict[str, Any]:
        """Return the audit as JSON-ready values under fixed keys (see the README).

        A value that cannot be had is None, with its reason under ``notices``; infinite values
        are ``"inf"``.
        """
        return audit_numbers(self)

    def rounds(self) -> xr.Dataset:
        """Return every round: smallest eps2, worst pair, regret and P*, labelled.

        Returns
        -------
        xarray.Dataset
            Dims ``round`` and ``arm``.

        Raises
        ------
        OptionError
            If the log is no longer at hand (a merged audit, or a loaded one saved without rounds).
        """
        return rounds_dataset(self)

    def over_time(self) -> xr.Dataset:
        """Return what the rounds add up to: by windows of time, worst rounds, pairs, reliability.

        Returns
        -------
        xarray.Dataset
            Dim ``window``, up to 40 of like length: ``start``, ``stop`` (rounds from ``start`` to
            before ``stop``), ``regret`` per round with ``regret_lower``, ``regret_upper`` (95 %;
            the same where it is exact), ``smallest_eps2`` (the largest of its rounds),
            ``violating_share``, and ``regret_objective`` with its 95 % over the draws where P* of
            a draw is the same in all rounds (of at most some 200 rounds of each window, evenly
            spaced; exact where the true rewards are known).
            Dim ``worst``, up to 10 violating rounds: ``worst_round``, ``worst_row`` (-1 = not
            known), ``worst_eps2``, ``worst_arm``, ``worst_arm_other``.
            Dim ``pair``, up to 400 pairs that were the worst of violating rounds: ``pair_arm``
            (favoured), ``pair_arm_other``, ``pair_rounds``, ``pair_eps2`` (the largest).
            Dim ``bin``, up to 10 of like numbers of chances: ``n_chances``, the mean ``chance`` of
            being chosen and the mean ``p_best``; where the whole rule was logged. The attribute
            ``reliability_gap`` is a lower bound of the regret per round.

        Raises
        ------
        OptionError
            If the log is no longer at hand (as for `rounds`), or no round is judged.

        Examples
        --------
        >>> from bayesfair import History
        >>> from bayesfair.audit import audit
        >>> log = History(["a", "b"] * 4, [1, 0] * 4, selection_probability=[[0.5, 0.5]] * 8)
        >>> found = audit(log, seed=1, eps1=0.5, eps2=0).over_time()
        >>> found.sizes["window"], float(found.regret[0])
        (8, 0.0)
        """
        return over_time(self)

    def to_dataframe(self) -> pd.DataFrame:
        """Return one row per arm: what was logged, and what is believed after the last round.

        Returns
        -------
        pandas.DataFrame
            Index ``arm``; columns those of ``arms`` in `to_dict`, and ``reward_believed`` with
            ``reward_lower``, ``reward_upper``: mean and equal-tailed 95 % interval of the arm's
            mean reward under the beliefs (of 4,000 draws; NaN for beliefs given a context).
            Rounds are a data frame by ``rounds().to_dataframe()``.

        Examples
        --------
        >>> from bayesfair import History
        >>> from bayesfair.audit import audit
        >>> log = History(["a", "b"] * 4, [1, 0] * 4, selection_probability=[[0.5, 0.5]] * 8)
        >>> audit(log, seed=1).to_dataframe().n.to_dict()
        {'a': 4, 'b': 4}
        """
        return arm_frame(self)

    @property
    def tree(self) -> xr.DataTree:
        """The audit as an `xarray.DataTree` that ArviZ opens; built on access."""
        return to_tree(self)

    def prior_sensitivity(self, *, model: Model | None = None) -> PriorSensitivity:
        """Return whether the objective verdict hangs on the prior, by power scaling.

        Parameters
        ----------
        model : callable, optional
            Your own build function, if the audit used one.

        Returns
        -------
        PriorSensitivity
            ``print`` it; `to_dict` for the numbers.

        Raises
        ------
        OptionError
            If there is no posterior to scale: known truth, a scan, or a resumed audit.
        """
        return audit_prior_sensitivity(self, model=model)

    @takes()
    def resume(
        self,
        data: Any,
        *,
        objective: bool | None = None,
        draws: int | None = None,
        seed: Seed | None = None,
        progress: Progress = None,
        partial: FilePath | None = None,
    ) -> Audit:
        """Return the audit of this log together with its next part.

        Parameters
        ----------
        data : History or HistoryScan
            The rounds that follow, with the same arms. If this audit was interrupted: its own log
            again, from the start, read in the same way; the rest of it is audited.
        objective, draws, seed
            Of the objective part; default as in this audit.
        progress, partial : optional
            As in `bayesfair.audit`.

        Returns
        -------
        Audit
            The numbers of one audit of the whole log, to rounding.

        Raises
        ------
        DataError, OptionError
            As `bayesfair.audit` and `bayesfair.merge`.

        Examples
        --------
        >>> from bayesfair import History
        >>> from bayesfair.audit import audit
        >>> log = History(["a", "b"] * 4, [1, 0, 0, 1] * 2, selection_probability=[[0.5, 0.5]] * 8)
        >>> early = audit(log.before(5), seed=1)
        >>> early.resume(log.rounds(5, 8)).regret == audit(log, seed=1).regret
        True
        """
        found = resume(
            self, data, objective=objective, draws=draws, seed=seed, progress=progress,
            partial=partial,
        )  # fmt: skip
        return as_audit(found)

    @takes()
    def save(self, path: FilePath, *, rounds: bool = False) -> None:
        """Write the audit to a NetCDF file; `bayesfair.load_audit` reads it back whole.

        Parameters
        ----------
        path : str or Path
            The file; one that is there is replaced, unless this audit goes on from that very file
            and another process replaced it since it was read.
        rounds : bool
            Also keep every round (n_rounds x k numbers), so that `rounds` works once loaded.

        Raises
        ------
        OptionError
            If there is no such folder, a label cannot be kept, or the rounds are not at hand.
        DataError
            If another process replaced the file that this audit goes on from.
        """
        save_audit(self, path, rounds=rounds)

    def __str__(self) -> str:
        return render(self.to_dict())

    def __repr__(self) -> str:
        found = self.to_dict()
        return f"Audit({self.summary.facts.source}: {self.verdict}, {regret_words(found)}, " + (
            f"{self.summary.sums.n_rounds} rounds)"
        )


@constructed
@dataclass(frozen=True, eq=False, repr=False)
class AuditGroup(GroupRecord, Shown):
    """Audits of several logs (``by=``): one per group, and the share of runs that violate.

    Attributes
    ----------
    audits : mapping of str to Audit
        By the group's label. Of hundreds of logs each is made when it is asked for.
    """

    audits: Mapping[str, Audit]

    def __getitem__(self, label: str) -> Audit:
        return as_audit(super().__getitem__(label))

    @takes()
    def resume(
        self,
        data: Mapping[str, Any],
        *,
        objective: bool | None = None,
        draws: int | None = None,
        seed: Seed | None = None,
        progress: Progress = None,
        partial: FilePath | None = None,
    ) -> AuditGroup:
        """Return the audits of these logs together with their next parts; see `Audit.resume`.

        A label that has no next part stays as it is; a new one starts from the prior.
        """
        found = resume(
            self, data, objective=objective, draws=draws, seed=seed, progress=progress,
            partial=partial,
        )  # fmt: skip
        return as_audit(found)

    def to_dataframe(self) -> pd.DataFrame:
        """Return one row per group: its verdicts and main numbers, index ``group``."""
        return group_frame(self)

    @property
    def tree(self) -> xr.DataTree:
        """One node per group, as `Audit.tree`; the group's label is its attribute ``label``."""
        return to_tree(self.made())

    @takes()
    def save(self, path: FilePath, *, rounds: bool = False) -> None:
        """Write all audits to one NetCDF file; see `Audit.save`."""
        save_audit(self.made(), path, rounds=rounds)

    def __str__(self) -> str:
        return render_group(self.brief())

    def __repr__(self) -> str:
        return f"AuditGroup({len(self.audits)} logs: {self.verdict}, {regret_words(self.brief())})"


@overload
def as_audit(found: Record) -> Audit: ...
@overload
def as_audit(found: GroupRecord) -> AuditGroup: ...
def as_audit(found: Record | GroupRecord) -> Audit | AuditGroup:
    """Return a record with the verbs: an audit of one log, or of several."""
    if isinstance(found, (Audit, AuditGroup)):
        return found
    if isinstance(found, Record):
        return Audit(**{field.name: getattr(found, field.name) for field in fields(Record)})
    audits: Any = found.audits
    if isinstance(audits, Audits):
        audits = audits.shown_as(as_audit)
    else:
        audits = {label: as_audit(one) for label, one in audits.items()}
    return AuditGroup(audits, found.origin, found.together)
