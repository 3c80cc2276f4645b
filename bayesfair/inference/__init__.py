"""Posteriors: `fit` chooses the cheapest certified method; what did not converge is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike

from bayesfair.base.arguments import PLAIN, TEXT, takes
from bayesfair.base.checks import no_seed
from bayesfair.base.labels import by_label
from bayesfair.base.progress import steps, tells
from bayesfair.base.workers import check_workers, spread
from bayesfair.comparisons import Comparisons, DuelLog
from bayesfair.errors import BayesfairError, OptionError
from bayesfair.history import History
from bayesfair.history.thinned import refuse_thinned
from bayesfair.inference.arms import fit_history
from bayesfair.inference.comparisons import fit_comparisons
from bayesfair.inference.contract import checked_options
from bayesfair.inference.posterior import bin_starts, rewards_from_posterior
from bayesfair.inference.sampler import Sampler
from bayesfair.typing import Model, Progress, Seed

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["bin_starts", "fit", "rewards_from_posterior"]


class FitOptions(TypedDict, total=False):
    """Options of `fit`."""

    model: Model | None
    method: str
    family: str
    prior: Any
    support: ArrayLike | None
    prior_sd: float
    ties: str | None
    reference: str | None
    draws: int
    seed: Seed | None
    allow_unconverged: bool
    cores: int | None
    progress: Progress
    model_options: Mapping[str, Any] | None
    sampler: Mapping[str, Any] | None


@overload
def fit(
    data: History | Comparisons | DuelLog, *, client: None = None, **options: Unpack[FitOptions]
) -> xr.DataTree: ...
@overload
def fit(
    data: Mapping[str, Any], *, client: Any = None, **options: Unpack[FitOptions]
) -> dict[str, xr.DataTree]: ...
@takes(prior_sd=PLAIN, family=TEXT)
@tells
def fit(
    data: History | Comparisons | DuelLog | Mapping[str, Any],
    *,
    model: Model | None = None,
    method: str = "auto",
    family: str = "auto",
    prior: Any = None,
    support: ArrayLike | None = None,
    prior_sd: float = 1.0,
    ties: str | None = None,
    reference: str | None = None,
    draws: int = 4000,
    seed: Seed | None = None,
    allow_unconverged: bool = False,
    cores: int | None = None,
    progress: Progress = None,
    model_options: Mapping[str, Any] | None = None,
    sampler: Mapping[str, Any] | None = None,
    client: Any = None,
) -> xr.DataTree | dict[str, xr.DataTree]:
    r"""Return the posterior of a model given a decision history, or comparisons.

    Parameters
    ----------
    data : History, Comparisons, DuelLog, or mapping of label to them
        Histories give the arms' reward parameters, comparisons the items' worths. Those of a
        mapping, such as a category each, are fitted apart.
    model : str, module or callable, optional
        A shipped model's name, or your own ``build(history) -> pymc.Model`` that declares `READS`.
        Default: by reward family; ``plackett_luce`` for rankings, ``bradley_terry`` for duels.
    method : {"auto", "conjugate", "laplace", "nuts"}
        ``"auto"``: closed form if there is one; for comparisons weighted draws around the mode if
        they are certified, whatever the seed; otherwise NUTS.
    family : {"auto", "bernoulli", "finite", "poisson", "normal"}
        Reward family of a history; ``"auto"`` goes by the rewards and says so in the attributes.
    prior : sequence, array or mapping, optional
        Conjugate prior, for all arms, one row per arm, or by label (others keep the default):
        (alpha, beta) = (1/2, 1/2); concentration 1/2; (shape, rate) = (1/2, 1/2);
        (mean, kappa, shape, scale), by default (m, 1, 1, s^2) with location m and robust standard
        deviation s of the first 20 known rewards, see
        `bayesfair.families.learned.LearnedPrior` (in a mapping
        the arms left out have (0, 1, 1, 1), in reward units).
    support : (L,) array, optional
        All values that a reward of the family ``"finite"`` can take; default those seen.
    prior_sd : float
        Prior standard deviation of each log-worth; comparisons only.
    ties : {"half", "drop"}, optional
        For models without a tie parameter: half a win each, or leave out; comparisons only.
    reference : str, optional
        An item; the mode group then also has gaps to it and their standard errors; comparisons
        only.
    draws : int
        Posterior draws over all chains. Convergence is judged by at least 1000, so that few
        will do.
    seed : int or numpy Generator
        Required, but for maximum likelihood, which draws nothing. The same int gives the same
        draws, whatever `cores`.
    allow_unconverged : bool
        Return draws that would be refused.
    cores : int, optional
        Threads that sample; default all. No process is spawned, so scripts need no main guard.
    progress : bool or callable, optional
        How many draws of the chains are done, as in `bayesfair.audit`; other fits take seconds.
    model_options : mapping, optional
        Further options of the model's `build`, such as ``n_bins`` or ``order_effect``.
    sampler : mapping, optional
        Of NUTS: ``target_accept``, ``tune`` (both in every attempt), ``chains`` (default 4), and
        of models in PyMC ``backend`` (``"nutpie"``, ``"pymc"``) and ``max_divergent`` (share of
        draws, default and at most 0.001; 0 refuses any). Refused where nothing is sampled.
    client : distributed.Client, optional
        Of a Dask cluster whose workers share the fits of a mapping; the draws stay the same.

    Returns
    -------
    xarray.DataTree, or dict of str to xarray.DataTree
        ArviZ 1.x form, labelled. Root attributes: model, method, family, prior, reads, seed,
        draws, bayesfair (version), notices (JSON).

    Raises
    ------
    ConvergenceError
        R-hat above 1.01, bulk or tail effective sample size below 400, or divergences in more than
        0.1 % of the draws, after a second attempt with smaller steps; carries the tree. Fewer
        divergences are a notice that says where they are.
    OptionError, DataError
        Naming the option or the round, and the remedy.

    Notes
    -----
    Rewards that were not observed are left out. Outcomes from before the log (`prior_counts` of the
    history) count as data. Closed-form draws never import PyMC.

    Examples
    --------
    >>> history = History(["a", "b", "a"], [1, 0, 1], arms=["a", "b"])
    >>> posterior = fit(history, seed=1)
    >>> posterior["posterior"]["theta"].dims, posterior.attrs["prior"]
    (('chain', 'draw', 'arm'), 'theta ~ Beta(0.5, 0.5), every arm, independent')
    """
    if isinstance(data, Mapping):
        return _each(data, client, {
            "model": model, "method": method, "family": family, "prior": prior, "support": support,
            "prior_sd": prior_sd, "ties": ties, "reference": reference, "draws": draws,
            "seed": seed, "allow_unconverged": allow_unconverged, "cores": cores,
            "model_options": model_options, "sampler": sampler,
        })  # fmt: skip
    if client is not None:
        raise OptionError(
            "client= shares the fits of a mapping of label to data among workers, and this is one "
            "fit. Leave it out.",
            kind="unused_option", column="client",
        )  # fmt: skip
    options = checked_options(model_options, fit)
    drawn = not isinstance(data, (Comparisons, DuelLog)) or prior_sd != np.inf
    if seed is None and drawn:
        raise no_seed("a posterior is drawn")
    shared: dict[str, Any] = {
        "model": model, "method": method, "draws": draws, "seed": seed,
        "allow_unconverged": allow_unconverged, "cores": cores,
        "sampler": Sampler.of(sampler),
    }  # fmt: skip
    of_duels: dict[str, Any] = {"prior_sd": prior_sd, "ties": ties, "reference": reference}
    of_logs = {"prior": prior, "family": family, "support": support}
    if isinstance(data, History):
        refuse_thinned(data, "a fit")
        _refuse(of_duels, {"prior_sd": 1.0}, "comparisons; for a history give prior=.")
        if support is not None:
            options["support"] = support
        return fit_history(data, family=family, prior=prior, **shared, **options)
    if isinstance(data, DuelLog):
        data = data.comparisons
    if isinstance(data, Comparisons):
        _refuse(of_logs, {"family": "auto"}, "histories; for comparisons give prior_sd=.")
        tree: xr.DataTree = fit_comparisons(data, **of_duels, **shared, **options)
        return tree
    raise OptionError(
        f"fit needs a History or Comparisons, got {type(data).__name__}. Read a log with "
        "bayesfair.read_history, comparisons with bayesfair.read_comparisons."
    )


def _each(data: Mapping[str, Any], client: Any, options: dict[str, Any]) -> dict[str, xr.DataTree]:
    """Return the fit of each of several, here or by the workers of a cluster."""
    each = by_label(data, "group", "data")
    if isinstance(options["seed"], np.random.Generator):  # the same draws whatever the order
        options["seed"] = int(options["seed"].integers(1 << 63))
    if client is None:
        return {label: _one(label, own, options) for label, own in each.items()}
    check_workers(client)
    told = steps("fits", len(each))
    return spread(
        client, list(each), _one, lambda label: (each[label], options), at_once=1, seen=told.add
    )  # fmt: skip


def _one(label: str, data: Any, options: dict[str, Any]) -> xr.DataTree:
    try:
        found: xr.DataTree = fit(data, **options)
    except BayesfairError as error:
        raise error.with_message(f"group {label!r}: {error}") from None
    return found


def _refuse(options: Mapping[str, Any], defaults: Mapping[str, Any], whose: str) -> None:
    """Refuse options of the other kind of data, where they say something."""
    for name, value in options.items():
        if not (value is None or (name in defaults and np.array_equal(value, defaults[name]))):
            raise OptionError(
                f"{name}= belongs to {whose}", kind="wrong_kind", column=name, value=value
            )
