"""True rewards as simulations take them: of arms, or of arms in each context."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bayesfair.base.checks import check_choice, listed
from bayesfair.errors import OptionError
from bayesfair.families.featured import FAMILY_OF
from bayesfair.history.context import Context, context_of
from bayesfair.rewards import Bernoulli, Rewards
from bayesfair.rewards.bernoulli import as_rewards

__all__ = ["by_context", "seen_in", "truth_of"]


def seen_in(contexts: Any, model: str | None, rewards: Any, n_rounds: int) -> Context | None:
    """Return the context of each round, having refused what does not go with it."""
    if model is not None:
        check_choice(model, "context_model", ("cells", *FAMILY_OF, "none"))
        if contexts is None:
            raise OptionError(
                f"context_model={model!r} has no effect without contexts=.",
                kind="unused_option", column="context_model", value=model,
            )  # fmt: skip
    if contexts is not None:
        return context_of(contexts, n_rounds, lambda t: f"contexts: round {t}")
    if _is_by_context(rewards):
        raise OptionError(
            "rewards= holds arms for each of several contexts: say with contexts= which of them "
            "each round has.",
            kind="lacks", column="contexts",
        )  # fmt: skip
    return None


def _is_by_context(rewards: Any) -> bool:
    """Whether a truth is a mapping of contexts to arms, not one of arms to means."""
    arms = (Mapping, Sequence, np.ndarray, Rewards)
    return isinstance(rewards, Mapping) and any(isinstance(of, arms) for of in rewards.values())


def by_context(rewards: Any, context: Context) -> tuple[Any, list[Bernoulli]]:
    """Return the truth of each round, and of each context where it was given by them."""
    codes, names = context.cells
    if not _is_by_context(rewards):
        return rewards, []
    given = {str(name): as_rewards(of) for name, of in rewards.items()}
    if lacks := [name for name in names if name not in given]:
        raise OptionError(
            f"rewards= holds no arms for the context {lacks[0]!r}; it has {listed(given)}.",
            kind="unknown_label", column="rewards", value=lacks[0],
        )  # fmt: skip
    each: list[Bernoulli] = []
    for name in names:
        of = given[name]
        first = each[0] if each else of
        if not isinstance(of, Bernoulli) or of.batch_shape or of.arms != first.arms:
            raise OptionError(
                f"rewards of the context {name!r} must be one mean for each of the arms "
                f"{listed(first.arms)}, in this order. Other families: a batch of T sets of arms.",
                kind="wrong_shape", column="rewards", value=name,
            )  # fmt: skip
        each.append(of)
    if not each:  # no rounds
        return next(iter(given.values())), []
    return Bernoulli(np.array([of.mean for of in each])[codes], arms=each[0].arms), each


def truth_of(rewards: Any, context: Context | None) -> Rewards:
    """Return the true rewards as `simulate` takes them, of each round where contexts name them."""
    return as_rewards(rewards if context is None else by_context(rewards, context)[0])
