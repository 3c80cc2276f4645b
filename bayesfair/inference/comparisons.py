"""Posterior of worths from duels, choices and rankings: certified Laplace, NUTS, or the MLE."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesfair.base.checks import as_generator, check_choice, check_in_range, check_known
from bayesfair.base.labels import one_label
from bayesfair.base.notices import Notice, few_draws
from bayesfair.base.options import Effect, given, no_effect, refuse_without_effect
from bayesfair.comparisons import Comparisons
from bayesfair.errors import ConvergenceError, DataError, OptionError
from bayesfair.inference.arms import total_draws
from bayesfair.inference.certified import Certificate, Proposal, certify, weighted_draws
from bayesfair.inference.comparison_problem import (
    SCALES,
    Problem,
    choose_model,
    describe_prior,
    problem_of,
)
from bayesfair.inference.comparison_trees import (
    add_worth,
    data_group,
    draws_group,
    fitted_in_label_order,
    mode_group,
    nuts_groups,
    worth_nuts_groups,
)
from bayesfair.inference.existence import require_maximum
from bayesfair.inference.laplace import Mode, find_mode
from bayesfair.inference.nuts import unconverged
from bayesfair.inference.robust import Robust, robust_of
from bayesfair.inference.sampler import Sampler
from bayesfair.inference.tree import N_CHAINS, make_tree, seed_label

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["fit_comparisons"]

_OF_POSTERIORS = {
    "draws": Effect(frozenset(), "there is no posterior to draw from"),
    "method": Effect(frozenset(), "there is no posterior to sample"),
}


@fitted_in_label_order
def fit_comparisons(
    comparisons: Comparisons,
    *,
    model: Any = None,
    method: str = "auto",
    prior_sd: float = 1.0,
    seed: Any,
    draws: int = 4000,
    ties: str | None = None,
    reference: str | None = None,
    allow_unconverged: bool = False,
    cores: int | None = None,
    sampler: Sampler | None = None,
    **options: Any,
) -> xr.DataTree:
    r"""Return the posterior of the items' log-worths.

    Parameters
    ----------
    comparisons : Comparisons
    model : {"plackett_luce", "bradley_terry", "davidson", "thurstone"} or callable, optional
        Default: plackett_luce for rankings and choices; for duels bradley_terry, or davidson if
        there are ties. Or your own ``build(comparisons) -> pymc.Model`` with a variable
        ``log_worth``, dims ``("item",)``, summing to zero; it is sampled by NUTS.
    method : {"auto", "laplace", "nuts"}
        ``"auto"``: weighted draws around the mode if a certificate vouches for them, else NUTS;
        data and prior decide, not the seed. ``"laplace"`` returns the former in any case, marked
        in the attributes.
    prior_sd : float
        Standard deviation of the independent normal prior on each item's log-worth before
        centring. ``numpy.inf``: maximum likelihood, only the mode is returned.
    seed : int or numpy Generator
        Maximum likelihood draws nothing and needs none.
    draws : int
    ties : {"half", "drop"}, optional
        For models without a tie parameter: half a win each, or leave out.
    reference : str, optional
        An item; the mode group then also has gaps to it and their standard errors.
    allow_unconverged : bool
        Return draws of NUTS that would be refused.
    cores
        Threads of NUTS; the draws do not depend on it.
    sampler : Sampler
    **options
        ``order_effect`` (None: if the data say who was shown first), ``order_sd``, ``tie_sd``,
        ``coefficient_sd``.

    Returns
    -------
    xarray.DataTree
        Groups ``posterior`` (log_worth, worth, and where the model has them coefficient,
        order_effect, log_tie, tie), ``mode`` (log_worth, standard_error, covariance,
        log_likelihood, ...), ``constant_data`` (n, island per item). Attributes: model, method,
        prior, prior_sd, and where the model has them order_sd, tie_sd and coefficient_sd; ties,
        certified, n_comparisons, notices; for draws around the mode khat and efficiency of the
        certificate and ess of these draws; for NUTS rhat_max, ess_min, divergences, of at least
        four chains of 1000 draws, of which `draws` are kept.

    Raises
    ------
    DataError
        If there are fewer than two items; for ``prior_sd=inf`` if no finite estimate exists, naming
        the items that prevent it.
    ConvergenceError
        NUTS did not converge; carries the tree.

    Notes
    -----
    Log-worths sum to zero in every draw, over all items, those without data included.
    Log-likelihoods have no binomial coefficients: they are those of the single comparisons.

    Half ties, ties averaged over orders and weights that are no whole numbers make no likelihood.
    Maximum likelihood then has robust standard errors (attribute ``standard_errors``), a posterior
    is tempered (attribute ``power``) or refused: see `bayesfair.inference.robust`.

    The certificate (`bayesfair.inference.certified`) takes a fixed stream of draws from the
    proposal and looks at every reported direction four standard deviations off the mode: k-hat
    <= 0.5, at least 60 % of the draws effective, no tail far above the normal one. Of up to twelve
    parameters, a proposal that is refused is fitted to the posterior first and judged again. NUTS
    (`bayesfair.inference.worth_nuts`) is exact whatever the shape; it is refused unless every
    parameter has R-hat <= 1.01 and bulk and tail effective sample sizes >= 400.

    Examples
    --------
    >>> duels = Comparisons.from_counts(["a"], ["b"], [7], [3])
    >>> tree = fit_comparisons(duels, seed=1, prior_sd=np.inf, reference="b")
    >>> [round(float(tree["mode"][name].sel(item="a")), 4)
    ...  for name in ("log_worth_relative", "standard_error_relative")]
    [0.8473, 0.6901]
    """
    check_choice(method, "method", ("auto", "laplace", "nuts"))
    how = sampler or Sampler()
    n_draws, n_sampled = total_draws(draws), total_draws(draws, how.chains)
    prior_sd = check_in_range(prior_sd, "prior_sd", 0.0, np.inf, low_open=True)
    flat = np.isinf(prior_sd)
    rng = as_generator(0 if flat and seed is None else seed)
    if comparisons.n_items < 2:
        raise DataError(
            f"{comparisons.source} has {comparisons.n_items} items; worths are relative, so at "
            "least two are needed."
        )
    if reference is not None:
        reference = one_label(reference, "item", "reference")
        check_known(reference, comparisons.items, "item")
    shared: dict[str, Any] = {
        "seed": "none" if seed is None else seed_label(seed),
        "draws": n_draws,
        "kind": comparisons.kind,
        "partial": comparisons.partial or "",
        "source": comparisons.source,
        "reads": "log_worth",
    }
    build = getattr(model, "build", model)
    if callable(build):
        if method == "laplace" or flat:
            raise OptionError("a model of your own is sampled: use method='nuts'.")
        _refuse_of_shipped(ties=ties, reference=reference)
        groups, attrs = nuts_groups(
            comparisons, build, options, rng=rng, draws=n_sampled, cores=cores,
            sampler=how,
        )  # fmt: skip
        attrs |= _of_chains(how, n_sampled)
        used = replace(comparisons, notices=(*comparisons.notices, *attrs.pop("notices")))
        return _accepted(groups, {**shared, **attrs}, used, allow_unconverged)

    _check_sampler(how, method, flat)
    name = choose_model(comparisons, model, ties)
    make = partial(problem_of, comparisons, name, prior_sd=prior_sd, ties=ties, **options)
    problem = make()
    # what is said of the data is said of those that enter the likelihood
    used = comparisons.without_ties() if problem.ties == "drop" else comparisons
    n_left_out = comparisons.n_comparisons - used.n_comparisons
    if flat:
        asked = given(fit_comparisons, {"draws": draws, "method": method})
        refuse_without_effect(asked, (), _OF_POSTERIORS, "maximum likelihood (prior_sd=inf)")
        require_maximum(used, problem.likelihood, ties_left_out=n_left_out)
    problem, mode, robust = _settled(make, problem, used)
    used = replace(
        used, notices=(*used.notices, *_unused(comparisons, ties, seed if flat else None))
    )
    groups = {"mode": mode_group(comparisons, problem, mode, reference, robust if flat else None)}
    attrs = {"model": name, "ties": problem.ties, "prior_sd": prior_sd, "method": "mle"}
    attrs |= {"n_ties_left_out": n_left_out}
    if robust is not None:
        used = replace(used, notices=(*used.notices, robust.notice(posterior=not flat)))
        sandwich = flat and robust.outer is not None
        attrs |= {"standard_errors": "robust"} if sandwich else {"power": robust.power}
    # with these `problem_of` makes the same likelihood and prior again: see `problem_options`
    attrs |= {o: v for o, v in problem.options.items() if o in SCALES}
    attrs["prior"] = "none (maximum likelihood)" if flat else describe_prior(problem)
    certificate = None
    if not flat and method != "nuts":
        around = Proposal(problem.likelihood, mode, problem.precision)
        proposal, certificate = certify(around, problem.likelihood.layout)
        if certificate.holds or method == "laplace":
            found = weighted_draws(proposal, n_draws, rng)
            chains = found.theta.reshape(N_CHAINS, -1, found.theta.shape[1])
            groups["posterior"] = draws_group(comparisons, problem, chains)
            if how.given():
                why = "draws around the mode were certified, nothing was sampled (method='nuts' is)"
                used = replace(
                    used, notices=(*used.notices, no_effect("sampler", how.given(), why))
                )
            attrs |= {"method": "laplace", "ess": found.ess, "certified": int(certificate.holds)}
            attrs |= {"khat": certificate.khat, "efficiency": certificate.efficiency}
    if not flat and "posterior" not in groups:
        sampled, extra = worth_nuts_groups(
            comparisons, problem, mode, rng=rng, draws=n_sampled, cores=cores, sampler=how
        )
        groups |= sampled
        attrs |= extra | _of_chains(how, n_sampled)
    return _accepted(groups, {**shared, **attrs}, used, allow_unconverged, certificate)


def _refuse_of_shipped(**options: Any) -> None:
    """Refuse options of the shipped models."""
    for option, value in options.items():
        if value is not None:
            raise OptionError(
                f"{option}={value!r} belongs to the shipped models; a model of your own decides "
                "itself. Leave it out.",
                kind="unused_option",
                column=option,
                value=value,
            )


def _check_sampler(how: Sampler, method: str, flat: bool) -> None:
    """Refuse settings of chains where a shipped model is not sampled, or not by PyMC."""
    if flat:
        how.refuse_without_chains("maximum likelihood (prior_sd=inf) draws nothing.")
    if method == "laplace":
        how.refuse_without_chains("method='laplace' draws around the mode, without chains.")
    of_own = replace(Sampler(), backend=how.backend, max_divergent=how.max_divergent)
    of_own.refuse_without_chains(
        "the shipped models of comparisons have a sampler of their own, and no draw of theirs may "
        "end in a divergence; backend= and max_divergent= are for your own build(comparisons)."
    )


def _of_chains(how: Sampler, draws: int) -> dict[str, Any]:
    """Return the attributes that say how chains were run."""
    return {"draws": draws} | ({"sampler": how.given()} if how.given() else {})


def _unused(comparisons: Comparisons, ties: str | None, seed: Any) -> list[Notice]:
    """Return notices of what was given and finds nothing to do; `seed` only if nothing is drawn."""
    found = []
    if ties is not None and not comparisons.n_ties:
        found.append(no_effect("ties", ties, "there are no ties"))
    if seed is not None:
        found.append(no_effect("seed", seed_label(seed), "maximum likelihood draws nothing"))
    return found


def _settled(
    make: Callable[..., Problem], problem: Problem, used: Comparisons
) -> tuple[Problem, Mode, Robust | None]:
    """Return the problem, with a prior tempered if need be, its mode, and why."""
    mode = find_mode(problem.likelihood, problem.precision)
    robust = robust_of(used, problem, mode.theta)
    if robust is None or not problem.precision.any():
        return problem, mode, robust
    problem = make(power=robust.power)
    return problem, find_mode(problem.likelihood, problem.precision), robust


def _accepted(
    groups: dict[str, Any],
    attrs: dict[str, Any],
    comparisons: Comparisons,
    allow: bool,
    certificate: Certificate | None = None,
) -> xr.DataTree:
    """Assemble the tree, with its notices; refuse draws that did not converge."""
    notices = list(comparisons.notices)
    links = comparisons.connectivity()
    groups["constant_data"] = data_group(comparisons, links)
    if len(links.weak_components) > 1 or links.no_data or links.tie_links:
        notices += links.sentences()
    notices += few_draws(attrs["draws"]) if "posterior" in groups else ()
    if certificate is not None and not certificate.holds:
        if attrs["method"] == "laplace":
            text = f"these draws are not certified: {certificate}. Use method='auto'."
            notices.append(Notice(text, kind="not_certified", value=certificate.khat))
        else:
            text = (
                f"sampled by NUTS, since draws around the mode were not certified: {certificate}."
            )
            notices.append(Notice(text, kind="sampled_by_nuts", value=certificate.khat))
    reason = str(attrs.pop("refusal", ""))
    if reason:
        notices.append(unconverged(reason))
    attrs["n_comparisons"] = comparisons.n_comparisons
    if attrs["method"] == "nuts":
        attrs["certified"] = int(not reason)
    tree = make_tree(groups, {**attrs, "notices": notices})
    if "posterior" in groups:
        add_worth(tree)
    if reason and not allow:
        raise ConvergenceError(f"{attrs['model']}: {reason}", tree, kind="unconverged")
    return tree
