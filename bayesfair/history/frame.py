"""A log as a data frame, and what a notebook shows of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesfair.base.html import Shown, html_of
from bayesfair.base.shown import visible

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Tabled"]

_SHOWN = 5  # rounds in a notebook


class Tabled(Shown):
    """A log of rounds that can be laid out as a table."""

    def to_dataframe(self) -> pd.DataFrame:
        """Return one row per round, with the columns by which `read_history` reads it again.

        Returns
        -------
        pandas.DataFrame
            Index ``round``; columns ``arm`` (labels) and ``reward``; ``p_{arm}`` or ``propensity``;
            ``offered_{arm}``, ``known_at``, ``timestamp``, ``keep_prob`` and those of the context,
            where the log has them. Users and keys of rounds are kept as fingerprints and left out.

        Examples
        --------
        >>> from bayesfair import History
        >>> History(["a", "b"], [1, 0], propensity=[0.5, 0.25]).to_dataframe().propensity.tolist()
        [0.5, 0.25]
        """
        import pandas as pd

        log: Any = self
        found = {"arm": np.array(log.arms, dtype=object)[log.arm], "reward": log.reward}
        for name, table in (("p", log.selection_probability), ("offered", log.offered)):
            if table is not None:
                found |= {f"{name}_{arm}": table[:, i] for i, arm in enumerate(log.arms)}
        if log.selection == "chosen":
            found["propensity"] = log.propensity
        for name, column in (("known_at", log.known_at), ("timestamp", log.time),
                             ("keep_prob", log.keep_prob)):  # fmt: skip
            if column is not None:
                found[name] = column
        if log.context is not None:
            for i, name in enumerate(log.context.columns):
                labels = np.array(log.context.labels[i], dtype=object)[log.context.codes[:, i]]
                found[f"context_{name}" if name in found else name] = labels
        return pd.DataFrame(found).rename_axis("round")

    def _repr_html_(self) -> str:
        log: Any = self
        head = log.rounds(0, min(_SHOWN, log.n_rounds)).to_dataframe()
        head = head.rename(columns=visible).map(lambda v: visible(v) if isinstance(v, str) else v)
        shown: str = head.to_html(max_cols=12, border=0)
        return html_of(repr(self)) + shown
