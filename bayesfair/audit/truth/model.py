"""The objective audit under the posterior of a model of the true rewards."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from bayesfair.audit.criterion import Criterion
from bayesfair.audit.log.summary import Summary, cells_of
from bayesfair.audit.log.violations import JudgedRounds
from bayesfair.audit.truth.objective import Part, parts_from_cells
from bayesfair.base.checks import check_choice, listed
from bayesfair.base.notices import Notice, notices_from_json
from bayesfair.base.read_fits import reads_fits
from bayesfair.errors import OptionError
from bayesfair.history import History
from bayesfair.history.cells import reward_cells
from bayesfair.inference import bin_starts, fit, rewards_from_posterior
from bayesfair.inference.contract import checked_options, closed_form, share_options
from bayesfair.inference.elpd import cells_of_fit
from bayesfair.inference.posterior import bins_of, dim_of
from bayesfair.inference.sampler import SAMPLER_OPTIONS, Sampler, sampler_mapping
from bayesfair.rewards import Rewards

__all__ = ["check_fit", "fitting_options", "model_options", "parts_of_tree", "parts_under_model"]

type Judged = list[tuple[JudgedRounds, Rewards]]
"""Rounds in order, with the draws of their true rewards."""


OF_FITS = ("method", "allow_unconverged", "cores", *SAMPLER_OPTIONS)
"""What ``sampler=`` may say of the fit of ``model=``."""

OF_BELIEFS = ("min_ess", "max_fits", "cores", *SAMPLER_OPTIONS)
"""What it may say of the fits of ``beliefs_model=``."""


def fitting_options(
    model_options: Any, sampler: Any, function: Callable[..., Any]
) -> dict[str, Any]:
    """Return the options of the models and of their fits together, each checked by its name.

    Raises
    ------
    OptionError
        If one of the two is no mapping, or holds what belongs to the other, or to nobody.
    """
    options = checked_options(model_options, function)
    how = sampler_mapping(sampler)
    known = tuple(dict.fromkeys((*OF_FITS, *OF_BELIEFS)))
    for name in how:
        check_choice(name, "sampler", known)
    Sampler.of({name: value for name, value in how.items() if name in SAMPLER_OPTIONS})
    for name in options:
        if name in known:
            raise OptionError(
                f"{name!r} says how a model is fitted: give it in sampler=, not in model_options=.",
                kind="option_value",
                column="model_options",
                value=name,
            )
    return options | dict(how)


def model_options(question: Any) -> dict[str, dict[str, Any]]:
    """Return the options of ``model`` and of ``beliefs_model``, support= and prior= among them.

    The latter belongs to the models of a conjugate family; others have priors of their own.

    Raises
    ------
    OptionError
        If no model takes an option.
    """
    shares = share_options(
        question.options,
        {
            "model": (question.model, OF_FITS),
            "beliefs_model": (question.beliefs_model, OF_BELIEFS),
        },
    )
    for role, model in (("model", question.model), ("beliefs_model", question.beliefs_model)):
        how = {name: shares[role].pop(name) for name in SAMPLER_OPTIONS if name in shares[role]}
        if how:
            shares[role]["sampler"] = how
        if model is not None and question.support is not None:
            shares[role]["support"] = question.support
        if closed_form(model) is not None and question.prior is not None:
            shares[role]["prior"] = question.prior
    return shares


def parts_under_model(
    data: Any, summary: Summary, question: Any
) -> tuple[tuple[list[Part], Judged], list[str], Any]:
    """Return the parts of the objective audit under the posterior of a model, notices, the tree.

    For the parts see `parts_of_tree`.

    Raises
    ------
    OptionError
        If the log was scanned: a model needs the whole of it.
    """
    if not isinstance(data, History):
        raise OptionError(
            "model= and fit= need the whole log for its posterior; read it whole (read_history), "
            "or use the conjugate posterior."
        )
    tree = question.fit
    if tree is None:
        tree = fit(
            data,
            model=question.model,
            seed=question.seed,
            draws=question.draws,
            **model_options(question)["model"],
        )
    notices: list[str] = [
        notice
        for notice in notices_from_json(tree.attrs.get("notices"))
        # what the beliefs rest on says that, with the rounds
        if notice.kind != "prior_learned" or not summary.end.prior_is_learned
    ]
    notices.append(Notice(
        f"The true rewards are drawn from the posterior of the model {tree.attrs['model']} "
        f"({tree.attrs['method']}; its prior: {tree.attrs['prior']}).",
        kind="posterior", column="model", value=str(tree.attrs["model"]),
    ))  # fmt: skip
    return parts_of_tree(tree, data, summary, question.criterion), notices, tree


@reads_fits
def check_fit(tree: Any, data: Any, beside: Mapping[str, Any]) -> tuple[str, int]:
    """Return the reward family and the number of draws of a fit that is to be audited with.

    Parameters
    ----------
    tree : DataTree
        What `bayesfair.fit` returned.
    data : History
        The log, which must be the one that was fitted.
    beside : mapping of str to value
        What else was asked for.

    Raises
    ------
    OptionError
        If it is no such fit, one of another log, or goes with something that says the same.
    """

    def refused(why: str, kind: str = "other_fit") -> OptionError:
        return OptionError(f"fit= {why}", kind=kind, column="fit")

    for name in ("model", "truth", "draws"):
        if name in beside:
            raise refused(
                f"has the posterior of the true rewards and its draws: leave {name}= out.",
                "excluded",
            )
    if not isinstance(data, History):
        raise refused(
            f"is the posterior of one log that was read whole, and this is {type(data).__name__}: "
            "give a History (read_history).",
            "wrong_kind",
        )
    attrs, groups = getattr(tree, "attrs", {}), getattr(tree, "children", {})
    if "family" not in attrs or "posterior" not in groups:
        raise refused(
            "must be what bayesfair.fit(history, ...) returned, got "
            f"{'a fit of comparisons' if 'reads' in attrs else type(tree).__name__}.",
            "wrong_kind",
        )
    posterior = tree["posterior"].to_dataset()
    arms, n_rounds = tuple(map(str, posterior["arm"].values)), int(attrs["n_rounds"])
    if arms != data.arms:
        raise refused(f"is of the arms {listed(arms)}, the log has {listed(data.arms)}.")
    if n_rounds != data.n_rounds:
        raise refused(f"saw {n_rounds} rounds, the log has {data.n_rounds}.")
    if "reward_cells" in groups:
        ours, theirs = reward_cells(data, bins_of(tree, data)), cells_of_fit(tree, None)
        if not all(np.array_equal(ours[name], theirs[name]) for name in theirs):
            raise refused("saw other rewards than those of this log: fit it again.")
    return str(attrs["family"]), posterior.sizes["chain"] * posterior.sizes["draw"]


def parts_of_tree(
    tree: Any, data: History, summary: Summary, criterion: Criterion
) -> tuple[list[Part], Judged]:
    """Return the parts of the objective audit under the draws of a fit to the whole log.

    Beside them its rounds in order, with the draws of their true rewards.

    Raises
    ------
    OptionError
        If the model has time bins and no probabilities were logged.
    """
    rewards: Rewards = rewards_from_posterior(tree)
    starts = bin_starts(tree)
    if summary.selection == "none":
        shares = summary.sums.plays / max(summary.sums.n_rounds, 1)
        if starts is not None or dim_of(tree) is not None:
            raise OptionError(
                "a model of rewards that change needs logged probabilities; without them only the "
                "shares of the whole log can be compared. Choose a model without bins or contexts."
            )
        if not summary.sums.n_rounds:
            return [Part(None, 0, rewards)], []
        return [Part(None, summary.sums.n_rounds, rewards, None, shares)], []
    if dim_of(tree) == "context":
        return _by_context(tree, data, rewards, criterion)
    if starts is None:
        judged = [] if summary.pairs.judged is None else [(summary.pairs.judged, rewards)]
        return parts_from_cells(summary.cells, rewards, data.n_arms), judged
    parts: list[Part] = []
    judged = []
    stops = np.append(starts[1:], data.n_rounds)
    for b, (begin, stop) in enumerate(zip(starts, stops, strict=True)):
        start = max(int(begin), criterion.from_round)
        if start >= stop:
            continue
        part = data.rounds(start, int(stop))
        parts += parts_from_cells(cells_of(part, criterion), rewards[:, b], data.n_arms)
        if part.selection_probability is not None:
            here = JudgedRounds.of(part.selection_probability, start, criterion)
            judged.append((here, rewards[:, b]))
    return parts or [Part(None, 0, rewards[:, 0])], judged


def _by_context(
    tree: Any, data: History, rewards: Rewards, criterion: Criterion
) -> tuple[list[Part], Judged]:
    """Return the parts of each context, and its rounds, with the draws of its true rewards."""
    codes = bins_of(tree, data)
    assert codes is not None and data.context is not None
    first = min(criterion.from_round, data.n_rounds)
    part, own_codes = data.rounds(first, data.n_rounds), codes[first:].astype(np.int32)
    parts: list[Part] = []
    for c, (rounds, own) in enumerate(part.cells(own_codes, len(data.context.cells[1]))):
        if len(rounds):
            parts += parts_from_cells(cells_of(own, criterion), rewards[:, c], data.n_arms)
    judged: Judged = []
    if part.selection_probability is not None:
        whole = JudgedRounds.of(part.selection_probability, first, criterion, context=own_codes)
        judged = [(whole.of_context(c), rewards[:, c]) for c in np.unique(own_codes).tolist()]
    return parts or [Part(None, 0, rewards[:, 0])], judged
