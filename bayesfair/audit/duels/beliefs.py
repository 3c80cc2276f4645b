"""What was believed of the worths before a round: the mode of the fit's own model then."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesfair.base.labels import label_order
from bayesfair.base.notices import Notice
from bayesfair.base.progress import steps
from bayesfair.comparisons import Comparisons, DuelLog
from bayesfair.errors import OptionError
from bayesfair.inference.comparison_problem import choose_model, problem_of, problem_options
from bayesfair.inference.laplace import find_mode
from bayesfair.typing import Floats, Ints

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Path", "beliefs_at", "checkpoints", "options_of", "path_of"]


_CHECKS = 50  # how often beliefs are refreshed at even distances
_GROWTH = 1.5  # and early, whenever the log has grown by this factor


@dataclass(frozen=True, eq=False)
class Path:
    """Beliefs along a log.

    Attributes
    ----------
    start : (G,) array of int
        Rounds before which beliefs are known, ascending.
    end : int
        The round after the last.
    log_worth : (G + 1, k) array
        Believed before each of `start`, and before `end`.
    """

    start: Ints
    end: int
    log_worth: Floats

    @property
    def stop(self) -> Ints:
        """The round after the last of each stretch."""
        return np.append(self.start[1:], self.end)

    def stretches(self) -> Iterator[tuple[int, int, Floats]]:
        """Yield first round, round after the last, and the beliefs at both ends, ``(2, k)``."""
        for g, (a, b) in enumerate(zip(self.start.tolist(), self.stop.tolist(), strict=True)):
            yield a, b, self.log_worth[g : g + 2]


def path_of(log: DuelLog, options: Mapping[str, Any], start: Ints) -> Path:
    """Return the beliefs along the rounds from the first of `start` on, refreshed at each."""
    ends = np.append(start, log.n_rounds)
    return Path(start, log.n_rounds, beliefs_at(log, ends, options))


def checkpoints(n_rounds: int, begin: int = 0) -> Ints:
    """Return the rounds before which beliefs are refreshed, from `begin` on and that included.

    50 at even distances; before that, where beliefs move most, whenever the log has grown by half.
    """
    even = np.linspace(0, n_rounds, min(_CHECKS, n_rounds) + 1).astype(np.int64)[:-1]
    first = int(even[1]) if len(even) > 1 else n_rounds
    early = [1]
    while early[-1] < 2 * first:
        early.append(max(early[-1] + 1, int(early[-1] * _GROWTH)))
    early = [t for t in early if t < min(2 * first, n_rounds)]
    found = np.concatenate([even, early, [begin]]).astype(np.int64)
    return np.unique(found[found >= begin])


def options_of(
    comparisons: Comparisons,
    *,
    tree: xr.DataTree | None,
    model: str | None = None,
    prior_sd: float = 1.0,
) -> tuple[dict[str, Any], list[Notice]]:
    """Return the options with which the mode is found again, and what has to be said of them.

    Parameters
    ----------
    comparisons : Comparisons
    tree : xarray.DataTree or None
        A fit: its own model, prior, scales, order effect and treatment of ties are taken.
    model, prior_sd
        Without a fit.

    Raises
    ------
    OptionError
        If the fit used covariates that the duels lack.
    """
    if tree is not None:
        _require_covariates(tree, comparisons)
        own = problem_options(tree)
        if own is not None:
            return own, []
    found = {"model": choose_model(comparisons, model), "prior_sd": prior_sd}
    if tree is None:
        return found, []
    text = (
        f"The fit that was given (model {tree.attrs.get('model')!r}) cannot be repeated on the "
        f"duels before a round: beliefs are modes of {found['model']} with a normal prior of "
        f"standard deviation {prior_sd:g} on each log-worth."
    )
    return found, [Notice(text, kind="beliefs_of_another_model", value=found["model"])]


def _require_covariates(tree: xr.DataTree, comparisons: Comparisons) -> None:
    used: tuple[str, ...] = ()
    for group in tree.children.values():
        if "covariate" in group.coords:
            used = tuple(map(str, group.to_dataset()["covariate"].values.tolist()))
    if used and used != comparisons.covariate_names:
        raise OptionError(
            f"fit= has item covariates {', '.join(map(repr, used))}, these duels have "
            f"{', '.join(map(repr, comparisons.covariate_names)) or 'none'}; beliefs before a "
            "round need the same: pass the comparisons that were fitted (with_covariates).",
            kind="covariates_missing",
            column="fit",
        )


def beliefs_at(log: DuelLog, ends: Ints, options: Mapping[str, Any]) -> Floats:
    """Return the log-worths believed before each of some rounds, ``(len(ends), k)``.

    They are the mode given the duels before the round, by the model with the given `options`;
    before the first duel that of the prior.
    """
    data, order = log.comparisons, label_order(log.items)
    result = np.zeros((len(ends), log.n_items))
    count, done = np.zeros(len(data.count)), 0
    told = steps("beliefs", len(ends))
    for row in np.argsort(ends, kind="stable").tolist():
        told.add()
        cells = log.cell[done : ends[row]]
        count = count + np.bincount(cells[cells >= 0], minlength=len(count))
        done = int(ends[row])
        if not count.any():
            continue
        known = replace(data, count=count, cell=None).in_label_order()
        problem = problem_of(known, **options)
        theta = find_mode(problem.likelihood, problem.precision).theta
        result[row, order] = problem.likelihood.layout.log_worth(theta)
    return result
