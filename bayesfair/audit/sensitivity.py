"""Whether the objective verdict hangs on the prior: powers of it near 1, nothing fitted again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesfair.audit.general import parts_of_tree
from bayesfair.audit.objective import evaluate
from bayesfair.errors import OptionError
from bayesfair.history import History

if TYPE_CHECKING:
    import pandas as pd

    from bayesfair.audit.result import Audit

__all__ = ["POWERS", "PriorSensitivity", "audit_prior_sensitivity"]

POWERS = (0.5, 0.8, 1.0, 1.25, 2.0)
"""0.8 and 1.25 are those of the method's authors; half and twice show what a bolder change does."""

_TRUSTED = 0.7


@dataclass(frozen=True, eq=False)
class PriorSensitivity:
    """How an audit reacts to its prior.

    Attributes
    ----------
    powers : tuple of float
        Powers of the prior; 1 is the prior itself.
    probability_fair : tuple of float or None
        Under each power; None where smooth fairness cannot be audited.
    regret_per_round : tuple of float or None
        Posterior mean under each power.
    verdicts : tuple of str
        Objective verdict under each power.
    khat : tuple of float
        Pareto k-hat of the weights; above 0.7 a value is not to be trusted.
    table : pandas.DataFrame
        Sensitivities of parameters and audited quantities (`bayesfair.prior_sensitivity`).
    """

    powers: tuple[float, ...]
    probability_fair: tuple[float, ...] | None
    regret_per_round: tuple[float, ...] | None
    verdicts: tuple[str, ...]
    khat: tuple[float, ...]
    table: pd.DataFrame

    @property
    def hangs_on_prior(self) -> bool | None:
        """Whether a trusted power changes the verdict; None if there is no verdict to change."""
        if self.probability_fair is None:
            return None
        trusted = {v for v, k in zip(self.verdicts, self.khat, strict=True) if k <= _TRUSTED}
        return len(trusted) > 1

    def __str__(self) -> str:
        lines = []
        if self.probability_fair is not None:
            for power, p, verdict, khat in zip(
                self.powers, self.probability_fair, self.verdicts, self.khat, strict=True
            ):
                doubt = "" if khat <= _TRUSTED else f"  (not to be trusted: k-hat {khat:.2f})"
                lines.append(f"prior to the power {power:g}: {verdict}, p(fair) {p:.4f}{doubt}")
            hangs = "hangs" if self.hangs_on_prior else "does not hang"
            lines.append(f"The objective verdict {hangs} on the prior within these powers.")
        return "\n".join([*lines, str(self.table)])


def audit_prior_sensitivity(audit: Audit, *, model: Any = None) -> PriorSensitivity:
    """Return `PriorSensitivity` of an audit; see `Audit.prior_sensitivity`."""
    from bayesfair.inference import fit
    from bayesfair.inference.criticism import prior_power_weights, prior_sensitivity

    settings, start = audit.settings, audit.summary.start
    if not isinstance(audit.data, History):
        raise OptionError(
            "prior_sensitivity needs the whole log: audit a History, not a scan, a merged or a "
            "loaded audit."
        )
    if audit.objective is None or settings.model == "truth":
        raise OptionError("there is no posterior whose prior could matter: the truth was known or "
                          "the objective part left out.")  # fmt: skip
    if start.n_rounds:
        raise OptionError("a resumed audit has no prior of its own; audit the whole log instead.")
    if settings.seed is None:
        raise OptionError("audit with an int seed, so that the draws can be repeated.")
    chosen = model if model is not None else settings.model
    options = {"prior": start.prior} if chosen == "conjugate" else audit.model_options
    tree = fit(
        audit.data,
        model=None if chosen == "conjugate" else chosen,
        family=start.family,
        seed=settings.seed,
        draws=settings.draws,
        **options,
    )
    criterion = audit.criterion
    found = evaluate(parts_of_tree(tree, audit.data, audit.summary, criterion), criterion)
    weights, khat = prior_power_weights(tree, POWERS, audit.data, model=model)
    fair = regret = None
    quantities: dict[str, Any] = {}
    verdicts = ("not_auditable",) * len(POWERS)
    if found.smallest_eps2 is not None:
        needed = found.smallest_eps2[:, criterion.grid_index]
        fair = tuple(float(p) for p in weights @ (needed <= criterion.eps2 + criterion.tolerance))
        verdicts = tuple(criterion.verdict_of(p) for p in fair)
        if np.ptp(needed) > 0:
            quantities["smallest_eps2"] = needed
    if found.regret is not None:
        regret = tuple(float(r) for r in weights @ found.regret)
        quantities["fairness_regret"] = found.regret
    table = prior_sensitivity(tree, audit.data, model=model, quantities=quantities)
    return PriorSensitivity(POWERS, fair, regret, verdicts, tuple(khat.tolist()), table)
