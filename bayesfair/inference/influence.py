"""Which comparisons or items the top of the table hangs on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.arguments import takes
from bayesfair.base.progress import steps, tells
from bayesfair.base.read_fits import reads_fits
from bayesfair.comparisons import Comparisons
from bayesfair.comparisons.fitted_data import fitted_data
from bayesfair.errors import OptionError
from bayesfair.inference.comparison_cells import cell_columns, used_cells
from bayesfair.inference.comparison_problem import problem_of, problem_options
from bayesfair.inference.laplace import find_mode
from bayesfair.inference.reweight import psis_weights
from bayesfair.ranking.draws import fitted
from bayesfair.typing import Floats, Progress

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["influence"]


_CHALLENGERS = 5
_AHEAD = 1e-9  # a lead that rounding cannot make


@takes()
@reads_fits
@tells
def influence(
    tree: xr.DataTree, comparisons: Comparisons, *, progress: Progress = None
) -> xr.Dataset:
    r"""Return which comparisons or items, if removed, change the top of the table.

    Parameters
    ----------
    tree : xarray.DataTree
        What `fit` returned for `comparisons`, with draws.
    comparisons : Comparisons
    progress : bool or callable, optional
        How many comparisons are done, as in `bayesfair.audit`.

    Returns
    -------
    xarray.Dataset
        The *leader* has the highest posterior mode, the runner-up the second highest.

        Dimension ``comparison``, one entry per unique comparison, the one the lead owes most to
        first; coordinate ``comparison`` is its text (``a > b``), ``row`` its first row in the
        source. ``count``; ``lead_change``: by how much the leader's lead over the runner-up grows
        if *one* such comparison is removed; ``p_rank1``: of the leader, then; ``top``: item with
        the highest mean log-worth, then; ``khat``: above 0.7 do not trust this line.
        ``flip_removed``: how many of them the set below removes.

        Dimension ``item``: ``top_without``: who leads if all comparisons of the item are removed
        (the mode fitted again), "" where that leaves nothing to compare the others by, as for the
        hub of a star; ``p_rank1_without`` of the leader by reweighting, with ``khat_without``; NaN
        for the leader itself and where nobody is named.

        Scalars: ``lead``; ``flip_n``: size of a small set of comparisons whose removal puts
        another item first, found greedily and confirmed by fitting the mode again with the fit's
        own model, prior and options: no more are needed, a smaller set may exist; ``flip_share`` of
        all comparisons; attributes ``leader``, ``runner_up``, ``flip_to``. NaN where nobody was put
        first that way.

    Raises
    ------
    OptionError
        As `loo_comparisons`.

    Notes
    -----
    Removal of one comparison reweights the draws by the inverse of its likelihood, Pareto-smoothed.

    Examples
    --------
    >>> from bayesfair.inference import fit
    >>> duels = Comparisons.from_counts(["a", "b", "a"], ["b", "c", "c"], [8, 9, 9], [6, 3, 4])
    >>> found = influence(fit(duels, seed=1), duels)
    >>> found.attrs["leader"], found.attrs["flip_to"], float(found["flip_n"])
    ('a', 'b', 2.0)
    """
    import xarray as xr

    comparisons = fitted_data(tree, comparisons)
    if "posterior" not in tree.children or "mode" not in tree.children:
        raise OptionError(
            "influence needs draws and a mode: fit a shipped model with a finite prior_sd.",
            kind="no_draws",
            column="tree",
        )
    fit = fitted(tree)
    cells = used_cells(tree, comparisons)
    assert fit.log_worth is not None
    at = [fit.items.index(item) for item in comparisons.items]
    log_worth, linked, compared = fit.log_worth[:, at], fit.linked[np.ix_(at, at)], fit.has_data[at]
    if compared.sum() < 2:
        raise OptionError(
            "no comparison entered this fit, so no item leads by any.", kind="no_comparisons"
        )
    refit = _Refit(tree, comparisons)
    mode = refit.checked(fit.mode["log_worth"].values[at])
    order = np.argsort(np.where(compared, -mode, np.inf), kind="stable")[: compared.sum()]
    leader, runner_up = int(order[0]), int(order[1])
    first = log_worth.argmax(axis=1) == leader
    mean = log_worth.mean(axis=0)
    k = comparisons.n_items
    after = np.empty((len(cells), k))
    p_first, khat = np.empty((2, len(cells)))
    item_ratio = np.zeros((k, len(log_worth)))
    power = float(tree.attrs.get("power", 1.0))
    told = steps("comparisons", len(cells))
    for c, whole in enumerate(cell_columns(tree, comparisons, cells)):
        told.add()
        column = power * whole  # what one comparison adds to the log-density of the draws
        weight, khat[c] = psis_weights(-column)
        after[c] = weight @ log_worth
        p_first[c] = weight @ first
        item_ratio[_members(comparisons, int(cells[c]))] -= comparisons.count[cells[c]] * column
    lead = mean[leader] - mean[runner_up]
    change = (after[:, leader] - after[:, runner_up]) - lead
    without = [psis_weights(ratio) for ratio in item_ratio]
    tops = [refit.leader(comparisons.set_aside(item)) for item in comparisons.items]
    p_without = np.array([float(weight @ first) for weight, _ in without])
    p_without[[not top for top in tops]] = np.nan  # nobody can be named
    p_without[leader] = np.nan
    challengers = [j for j in order[1:].tolist() if linked[leader, j]][:_CHALLENGERS]
    flip_n, flip_to, removed = _flip(
        refit, comparisons, cells, leader=leader, challengers=challengers, mean=mean, after=after
    )
    by = np.argsort(change, kind="stable")
    names = np.array(comparisons.items)
    return xr.Dataset(
        {
            "count": ("comparison", comparisons.count[cells][by]),
            "lead_change": ("comparison", change[by]),
            "p_rank1": ("comparison", p_first[by]),
            "top": ("comparison", names[after.argmax(axis=1)][by]),
            "khat": ("comparison", khat[by]),
            "flip_removed": ("comparison", removed[by]),
            "top_without": ("item", np.array(tops)),
            "p_rank1_without": ("item", p_without),
            "khat_without": ("item", np.array([value for _, value in without])),
            "lead": float(lead),
            "flip_n": flip_n,
            "flip_share": flip_n / comparisons.n_comparisons,
        },
        coords={
            "comparison": np.array([comparisons.text(int(u)) for u in cells[by]]),
            "row": ("comparison", comparisons.row[cells][by]),
            "item": names,
        },
        attrs={
            "leader": str(names[leader]),
            "runner_up": str(names[runner_up]),
            "flip_to": flip_to,
            "notice": fit.island_notice(),
        },
    )


def _members(comparisons: Comparisons, u: int) -> list[int]:
    if comparisons.kind == "duels":
        return [int(comparisons.left[u]), int(comparisons.right[u])]
    part = slice(comparisons.start[u], comparisons.start[u + 1])
    return [int(i) for i in comparisons.item[part]]


class _Refit:
    """The mode of the fit's own model, prior and options on changed comparisons."""

    def __init__(self, tree: xr.DataTree, comparisons: Comparisons) -> None:
        own = problem_options(tree)
        if own is None:
            raise OptionError(
                f"influence fits the mode again, which model {tree.attrs.get('model')!r} does not "
                "have: fit a shipped model with a finite prior_sd.",
                kind="wrong_model",
                column="tree",
            )
        self.comparisons, self.options = comparisons, own

    def log_worth(self, changed: Comparisons) -> Floats:
        """Return the mode of changed comparisons of the same items, sum zero."""
        problem = problem_of(changed, **self.options)
        theta = find_mode(problem.likelihood, problem.precision).theta
        found = problem.likelihood.layout.log_worth(theta)
        return np.asarray(found - found.mean())

    def checked(self, mode: Floats) -> Floats:
        """Return the fit's mode if the same data give it again, else refuse them."""
        if np.abs(self.log_worth(self.comparisons) - mode).max() > 1e-5 * (1 + np.ptp(mode)):
            raise OptionError(
                "these comparisons do not give the mode of this fit: other data, or a fit that "
                "another version saved. Fit them again.",
                kind="other_data",
                column="comparisons",
            )
        return mode

    def leader(self, changed: Comparisons) -> str:
        """Return who leads; "" if comparisons no longer link those that are still compared."""
        links = changed.connectivity()
        if len(links.weak_components) != 1:
            return ""
        log_worth = np.where(links.island >= 0, self.log_worth(changed), -np.inf)
        return changed.items[int(np.argmax(log_worth))]

    def overtaken(self, changed: Comparisons, leader: int) -> int:
        """Return the item that surely leads instead; `leader` if he does, or nobody can tell."""
        island = changed.connectivity().island
        if island[leader] < 0:
            return leader
        log_worth = np.where(island == island[leader], self.log_worth(changed), -np.inf)
        top = int(np.argmax(log_worth))
        return top if log_worth[top] > log_worth[leader] + _AHEAD else leader


def _flip(
    refit: _Refit,
    comparisons: Comparisons,
    cells: NDArray[np.int64],
    *,
    leader: int,
    challengers: list[int],
    mean: Floats,
    after: Floats,
) -> tuple[float, str, Floats]:
    """Return the size of a set whose removal changes the leader, the new leader, and the set."""
    best, to, best_removed = np.nan, "", np.zeros(len(cells))
    count = comparisons.count[cells]
    for challenger in challengers:
        # what one comparison adds to the lead over this challenger
        adds = (mean[leader] - mean[challenger]) - (after[:, leader] - after[:, challenger])
        ranked = np.argsort(-adds, kind="stable")
        ranked = ranked[adds[ranked] > 0]
        total = np.cumsum(count[ranked])
        if not len(ranked):
            continue

        def removed(n: float, ranked: Any = ranked, total: Any = total) -> Floats:
            take = np.zeros(len(cells))
            take[ranked] = np.clip(n - (total - count[ranked]), 0.0, count[ranked])
            return take

        def new_top(n: float, removed: Any = removed) -> int:
            changed = comparisons.count.copy()
            changed[cells] -= removed(n)
            return refit.overtaken(comparisons.with_counts(changed), leader)

        gain = np.cumsum(count[ranked] * adds[ranked])
        step = int(np.searchsorted(gain, mean[leader] - mean[challenger]))
        most = float(total[-1]) if np.isnan(best) else min(float(total[-1]), best - 1)
        guess = max(1.0, float(total[min(step, len(total) - 1)]))
        low, high = 0.0, min(guess, most)
        if high <= low:
            continue
        while new_top(high) == leader and high < most:
            low, high = high, min(1.5 * high + 1, most)
        if new_top(high) == leader:
            continue
        high = float(np.ceil(high)) if high < most else high
        while high - low > 1:
            middle = float(np.floor((low + high) / 2))
            if new_top(middle) == leader:
                low = middle
            else:
                high = middle
        # the search supposes that more removed comparisons never help the leader; this does not
        top = new_top(high)
        if top != leader and (np.isnan(best) or high < best):
            best, best_removed, to = high, removed(high), comparisons.items[top]
    return best, to, best_removed
