"""The worths that an audit of duels takes for true: known ones, or draws of a posterior."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.audit.duels.beliefs import options_of
from bayesfair.base.arguments import FIT
from bayesfair.base.checks import check_choice, check_count, check_in_range
from bayesfair.base.notices import Notice, few_draws, notices_from_json
from bayesfair.comparisons import DuelLog, known_worths
from bayesfair.errors import ArmError, OptionError
from bayesfair.inference import fit

__all__ = ["KNOWN", "Truth", "truth_of"]


KNOWN = "truth"
"""What reports call the model where the worths are known."""


@dataclass(frozen=True, eq=False)
class Truth:
    """The worths that the objective half supposes, and the model that beliefs are modes of.

    Attributes
    ----------
    log_worth : (n, k) array
        Draws; one row = known worths.
    model, prior, method : str
        Where they come from, in words.
    seed : int or Generator
    beliefs : dict
        Options of the model of beliefs, see `beliefs.beliefs_at`.
    notices : tuple of Notice
    """

    log_worth: NDArray[np.float64]
    model: str
    prior: str
    method: str
    seed: Any
    beliefs: dict[str, Any]
    notices: tuple[Notice, ...] = ()

    @property
    def known(self) -> bool:
        """Whether the worths are known, not drawn."""
        return self.model == KNOWN


def truth_of(
    log: DuelLog,
    *,
    worth: Any,
    tree: Any,
    model: str | None,
    prior_sd: float | None,
    draws: int | None,
    seed: Any,
    sampler: Mapping[str, Any] | None = None,
) -> Truth:
    """Return the worths of the objective half and the model of the beliefs.

    Raises
    ------
    OptionError, ArmError, DataError
        Naming the option.
    """
    _check_options(
        worth=worth, tree=tree, model=model, prior_sd=prior_sd, draws=draws, sampler=sampler
    )
    own: dict[str, Any] = {"model": model, "prior_sd": 1.0 if prior_sd is None else prior_sd}
    if tree is not None:
        return _truth_of_fit(log, tree, seed)
    _check_ties(log, model)
    if worth is not None:
        beliefs = options_of(log.comparisons, tree=None, **own)[0]
        return Truth(
            np.log(known_worths(worth, log.items))[None], KNOWN, "none", "known", seed, beliefs
        )
    n_draws = 4000 if draws is None else draws
    made = fit(log.comparisons, **own, draws=n_draws, seed=seed, sampler=sampler)
    truth = _truth_of_fit(log, made, seed)
    idle = [
        notice
        for notice in notices_from_json(made.attrs.get("notices"))
        if (notice.kind, notice.column) == ("option_without_effect", "sampler")
    ]
    return replace(truth, notices=(*truth.notices, *idle))


def _check_options(
    *, worth: Any, tree: Any, model: Any, prior_sd: Any, draws: Any, sampler: Any
) -> None:
    """Refuse values that cannot be, and options that would have no effect beside others."""
    if prior_sd is not None:
        check_in_range(prior_sd, "prior_sd", 0, np.inf, low_open=True, high_open=True)
    if draws is not None:
        check_count(draws, "draws", 1)
    if model is not None and not isinstance(model, str):
        raise OptionError(
            "model= names a shipped model of the worths: bradley_terry, davidson, plackett_luce. "
            "A model of your own is fitted first: pass fit=bayesfair.fit(duels, model=...).",
            kind="wrong_model",
            column="model",
        )
    if model is not None and model != "thurstone":
        check_choice(model, "model", ("bradley_terry", "davidson", "plackett_luce"))
    _check_model(model)
    if worth is not None and any(given is not None for given in (tree, draws, sampler)):
        raise OptionError(
            "worth= is the known truth; it excludes fit=, draws= and sampler=.",
            kind="unused_option",
            column="worth",
        )
    if tree is None:
        return
    own = {"model": model, "prior_sd": prior_sd, "draws": draws, "sampler": sampler}
    for name, value in own.items():
        if value is not None:
            raise OptionError(
                f"{name}={value!r} belongs to a fit that is made here; fit= has its own.",
                kind="unused_option",
                column=name,
                value=value,
            )


def _truth_of_fit(log: DuelLog, tree: Any, seed: Any) -> Truth:
    """Return the draws of a fit, and its own model for the beliefs."""
    if not FIT.holds(tree):
        raise OptionError(
            f"fit={tree!r:.60} must be a tree that bayesfair.fit returned.",
            kind="wrong_kind",
            column="fit",
        )
    _check_model(tree.attrs.get("model"))
    if "posterior" not in tree.children:
        raise OptionError(
            "fit= has no draws; give the fit a finite prior_sd.", kind="no_draws", column="fit"
        )
    if "log_worth" not in tree["posterior"]:
        raise OptionError(
            "fit= holds no log_worth; it must be a fit of comparisons.",
            kind="wrong_kind",
            column="fit",
        )
    found = tree["posterior"].to_dataset()["log_worth"]
    known = [str(item) for item in found["item"].values]
    lacking = [item for item in log.items if item not in known]
    if lacking:
        raise ArmError(
            f"fit= has no item {lacking[0]!r}. Fit the duels that are audited.",
            kind="unknown_item",
            column="fit",
            value=lacking[0],
        )
    values = found.transpose("chain", "draw", "item").values.reshape(-1, len(known))
    at = [known.index(item) for item in log.items]
    beliefs, notices = options_of(log.comparisons, tree=tree)
    model, prior, method = (
        str(tree.attrs.get(name, "not said")) for name in ("model", "prior", "method")
    )
    return Truth(
        values[:, at], model, prior, method, seed, beliefs, (*notices, *few_draws(len(values)))
    )


def _check_model(model: Any) -> None:
    """Refuse models without Plackett-Luce worths and, by name, what is no shipped model."""
    if model == "thurstone":
        raise OptionError(
            "the audit needs Plackett-Luce worths; thurstone has normal performances. Use "
            "model='bradley_terry' or 'davidson'.",
            kind="wrong_model",
            column="model",
            value=model,
        )


def _check_ties(log: DuelLog, model: str | None) -> None:
    n = log.comparisons.n_ties
    if n and model in ("bradley_terry", "plackett_luce"):
        raise OptionError(
            f"{n:.12g} of {log.comparisons.n_comparisons:.12g} duels are ties, for which model="
            f"{model!r} has no term: leave model= out or take 'davidson'. In Python, "
            "fit=bayesfair.fit(duels, ties='drop') leaves ties out of the worths.",
            kind="ties",
            column="model",
            value=model,
        )
