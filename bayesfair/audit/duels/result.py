"""The result of an audit of duels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bayesfair.audit.duels.law import Windows
from bayesfair.audit.duels.numbers import duel_numbers
from bayesfair.audit.duels.record import DuelRecord
from bayesfair.audit.duels.text import render
from bayesfair.base.arguments import constructed
from bayesfair.base.html import Shown

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["DuelAudit"]


@constructed
@dataclass(frozen=True, eq=False, repr=False)
class DuelAudit(Shown):
    """A finished audit of who gets compared.

    Attributes
    ----------
    record : DuelRecord
        What was asked and found.
    """

    record: DuelRecord

    @property
    def verdict(self) -> str:
        """``fair``, ``unfair`` or ``undetermined``: of the question that `judge` names.

        ``judge="both"``: the worse of subjective and objective; the objective one where the worths
        are known.
        """
        return self.record.verdict

    @property
    def windows(self) -> Windows | None:
        """Shares of the slot per window with their limits, where these stand for probabilities."""
        return None if self.record.law.logged else self.record.law.windows

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers, JSON-ready; keys as in `Audit.to_dict`, items in place of arms."""
        return duel_numbers(self.record)

    def to_dataframe(self) -> pd.DataFrame:
        """Return one row per item, as ``items`` in `to_dict`; index ``item``."""
        import pandas as pd

        return pd.DataFrame(self.to_dict()["items"]).set_index("item")

    def __str__(self) -> str:
        return render(self.to_dict())

    def __repr__(self) -> str:
        log = self.record.log
        return f"DuelAudit({log.source}: {log.n_rounds} duels, {self.verdict})"
