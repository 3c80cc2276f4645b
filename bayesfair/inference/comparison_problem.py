"""A model of comparisons as a numeric problem: likelihood, prior precision, treatment of ties."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.checks import check_choice, check_in_range
from bayesfair.comparisons import Comparisons
from bayesfair.errors import OptionError
from bayesfair.inference.comparison_likelihood import (
    ChainLikelihood,
    DuelLikelihood,
    Layout,
    Likelihood,
)

if TYPE_CHECKING:
    import xarray as xr

__all__ = [
    "COMPARISON_MODELS",
    "SCALES",
    "Problem",
    "choose_model",
    "describe_prior",
    "problem_of",
    "problem_options",
]

#: Shipped models of comparisons.
COMPARISON_MODELS = ("plackett_luce", "bradley_terry", "davidson", "thurstone")

#: Standard deviations of the priors of what is no worth, by default.
SCALES = {"order_sd": 1.0, "tie_sd": 1.5, "coefficient_sd": 1.0}


@dataclass(frozen=True)
class Problem:
    """A shipped model on given comparisons, ready for Newton.

    Attributes
    ----------
    model : str
    likelihood : Likelihood
    precision : (P,) array
        Prior precision of each parameter, 0 = flat.
    ties : str
        Treatment of ties: "none" (there are none), "model", "half", "drop" or "average".
    options : dict
        What the PyMC model of the same name is built with.
    power : float
        That the likelihood is raised to; other than 1 where it is none of the comparisons (see
        `bayesfair.inference.robust`).
    """

    model: str
    likelihood: Likelihood
    precision: NDArray[np.float64]
    ties: str
    options: dict[str, Any]
    power: float = 1.0


def choose_model(comparisons: Comparisons, model: Any = None, ties: str | None = None) -> str:
    """Return the name of the shipped model: the one asked for, else the one that suits the data."""
    if model is None:
        if comparisons.kind != "duels":
            return "plackett_luce"
        return "davidson" if comparisons.n_ties and ties is None else "bradley_terry"
    return check_choice(model, "model", COMPARISON_MODELS)


def _treatment(comparisons: Comparisons, model: str, ties: str | None) -> tuple[str, str]:
    """Return how ties are counted (as in `duel_counts`) and what the attributes call it."""
    if ties is not None:
        check_choice(ties, "ties", ("half", "drop"))
    if comparisons.kind != "duels":
        if ties is not None:
            raise OptionError(
                f"ties={ties!r} belongs to duels; shared places in rankings are averaged over "
                "their orders."
            )
        return "refuse", "average" if comparisons.n_ties else "none"
    if model == "davidson":
        if ties is not None:
            raise OptionError(
                f"ties={ties!r} and model='davidson' exclude each other: Davidson's model has a "
                "tie parameter. Leave ties out, or use model='bradley_terry'."
            )
        return "keep", "model"
    if not comparisons.n_ties:
        return "refuse", "none"
    return (ties, ties) if ties else ("refuse", "none")


def problem_of(
    comparisons: Comparisons,
    model: str,
    *,
    prior_sd: float,
    ties: str | None = None,
    order_effect: bool | None = None,
    power: float = 1.0,
    **scales: float,
) -> Problem:
    """Return the likelihood and prior of a shipped model; see `fit_comparisons`.

    Raises
    ------
    OptionError
        If the model does not suit the data, or an option the model.
    """
    unknown = [name for name in scales if name not in SCALES]
    if unknown:
        check_choice(unknown[0], "option", ("order_effect", "ties", *SCALES))
    if not isinstance(order_effect, (bool, int, np.bool_, np.integer, type(None))):
        raise OptionError(
            f"order_effect={order_effect!r:.60} must be True, False or None.",
            kind="wrong_kind",
            column="order_effect",
            value=str(order_effect)[:60],
        )
    counted, treatment = _treatment(comparisons, model, ties)
    if counted == "drop":
        comparisons = comparisons.without_ties()
    if power != 1.0:
        comparisons = comparisons.with_counts(power * comparisons.count)
    z = comparisons.standard_covariates()[0]
    options: dict[str, Any] = {"prior_sd": prior_sd}
    if model == "plackett_luce":
        if order_effect:
            raise OptionError(
                "order_effect=True: plackett_luce has no order effect; use bradley_terry or "
                "davidson.",
                kind="unused_option",
                column="order_effect",
            )
        likelihood: Likelihood = ChainLikelihood(comparisons.chains(ties=counted), Layout(z))
        used = {"coefficient_sd"}
    else:
        shown = bool(comparisons.first.any())
        if order_effect and not shown:
            raise OptionError(
                "order_effect=True, but the data do not say who was shown first. Give first= when "
                'making the comparisons (first="left" if the left one always was).'
            )
        ordered = shown if order_effect is None else bool(order_effect)
        likelihood = DuelLikelihood(comparisons, model, order_effect=ordered, ties=counted)
        options["order_effect"] = ordered
        used = {"coefficient_sd", "order_sd"} | ({"tie_sd"} if model == "davidson" else set())
    if model != "davidson":
        options["ties"] = counted
    for name in scales:
        if name not in used:
            raise OptionError(f"model {model!r} has no option {name!r}.")
    values = {
        name: check_in_range(scales.get(name, SCALES[name]), name, 0.0, np.inf, low_open=True)
        for name in SCALES
    }
    options |= {name: values[name] for name in sorted(used)}
    layout = likelihood.layout
    if np.isinf(prior_sd) and layout.n_coefficients:
        raise OptionError(
            "with item covariates, prior_sd=inf leaves coefficients and item deviations "
            "undetermined: they explain the same thing. Give a finite prior, such as prior_sd=1."
        )
    sd = [prior_sd] * layout.n_items + [values["coefficient_sd"]] * layout.n_coefficients
    sd += [values["order_sd"]] * layout.order + [values["tie_sd"]] * layout.tie
    flat = np.isinf(prior_sd)
    precision = np.zeros(layout.size) if flat else np.array(sd, dtype=np.float64) ** -2
    return Problem(model, likelihood, precision, treatment, options, power)


def problem_options(tree: xr.DataTree) -> dict[str, Any] | None:
    """Return the options of `problem_of` with which a fit was made, `model` included.

    Whoever finds the mode again on other counts of the same comparisons passes them on: prior,
    scales, order effect and treatment of ties are then those of the fit.

    Returns
    -------
    dict or None
        None for a model of one's own, which has no such problem.
    """
    attrs = tree.attrs
    if attrs.get("model") not in COMPARISON_MODELS or "prior_sd" not in attrs:
        return None
    options: dict[str, Any] = {"model": str(attrs["model"]), "prior_sd": float(attrs["prior_sd"])}
    if attrs.get("ties") in ("half", "drop"):
        options["ties"] = str(attrs["ties"])
    if options["model"] != "plackett_luce":
        options["order_effect"] = any("order_effect" in group for group in tree.children.values())
    return options | {name: float(attrs[name]) for name in ("power", *SCALES) if name in attrs}


def describe_prior(problem: Problem) -> str:
    """Return the prior in one line, without importing PyMC."""
    layout, options = problem.likelihood.layout, problem.options
    parts = [f"log_worth ~ Normal(0, {options['prior_sd']:g}) each, centred"]
    if layout.n_coefficients:
        sd = options["coefficient_sd"]
        parts.append(f"coefficient ~ Normal(0, {sd:g}) per standard deviation of the covariate")
    if layout.order:
        parts.append(f"order_effect ~ Normal(0, {options['order_sd']:g})")
    if layout.tie:
        parts.append(f"log_tie ~ Normal(0, {options['tie_sd']:g})")
    return "; ".join(parts)
