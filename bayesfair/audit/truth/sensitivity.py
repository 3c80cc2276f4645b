"""Whether the objective verdict hangs on the prior: powers of it near 1, nothing fitted again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesfair.audit.criterion import finite_or_text
from bayesfair.audit.group import GroupRecord, with_each
from bayesfair.audit.record import Record, with_extra
from bayesfair.audit.text import sensitivity_lines
from bayesfair.audit.truth.model import parts_of_tree
from bayesfair.audit.truth.objective import evaluate
from bayesfair.base.arguments import constructed
from bayesfair.base.html import Shown
from bayesfair.errors import OptionError
from bayesfair.history import History
from bayesfair.inference import fit
from bayesfair.inference.prior_power import prior_power_weights, prior_sensitivity

if TYPE_CHECKING:
    import pandas as pd


__all__ = ["POWERS", "PriorSensitivity", "audit_prior_sensitivity", "with_prior_sensitivity"]

POWERS = (0.5, 0.8, 1.0, 1.25, 2.0)
"""0.8 and 1.25 are those of the method's authors; half and twice show what a bolder change does."""

_NEEDS_WHOLE_LOG = (
    "prior_sensitivity needs the whole log: audit a History (read_history), not a scan, a merged "
    "or a loaded audit."
)
_TRUSTED = 0.7
_THRESHOLD = 0.05  # the authors' suggestion


@constructed
@dataclass(frozen=True, eq=False)
class PriorSensitivity(Shown):
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

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers, JSON-ready; k-hat is None where nothing was reweighted."""
        fair = self.probability_fair or (None,) * len(self.powers)
        regret = self.regret_per_round or (None,) * len(self.powers)
        rows = zip(self.powers, self.verdicts, fair, regret, self.khat, strict=True)
        return {
            "hangs_on_prior": self.hangs_on_prior,
            "powers": [
                {
                    "power": power,
                    "verdict": verdict,
                    "probability_fair": finite_or_text(p),
                    "regret_per_round": finite_or_text(r),
                    "khat": None if khat == -np.inf else finite_or_text(khat),
                    "trusted": bool(khat <= _TRUSTED),
                }
                for power, verdict, p, r, khat in rows
            ],
            "quantities": [
                {
                    "quantity": str(name),
                    "prior": finite_or_text(row["prior"]),
                    "likelihood": finite_or_text(row["likelihood"]),
                    "diagnosis": str(row["diagnosis"]),
                }
                for name, row in self.table.iterrows()
            ],
        }

    def to_dataframe(self) -> pd.DataFrame:
        """Return one row per power of the prior; the sensitivities are `table`."""
        import pandas as pd

        return pd.DataFrame(self.to_dict()["powers"]).set_index("power")

    def __str__(self) -> str:
        return "\n".join(sensitivity_lines(self.to_dict()))


def with_prior_sensitivity(result: Record | GroupRecord) -> Record | GroupRecord:
    """Return the audit, or each of several, with ``prior_sensitivity`` in numbers and report."""

    def one(audit: Record, _: Any) -> Record:
        return with_extra(audit, "prior_sensitivity", audit_prior_sensitivity(audit).to_dict())

    return with_each(result, None, one)


def audit_prior_sensitivity(audit: Record, *, model: Any = None) -> PriorSensitivity:
    """Return `PriorSensitivity` of an audit; see `Audit.prior_sensitivity`."""
    question, start = audit.question, audit.summary.start
    if not isinstance(audit.data, History):
        raise OptionError(_NEEDS_WHOLE_LOG)
    if audit.objective is None or audit.model == "truth":
        raise OptionError("there is no posterior whose prior could matter: the truth was known or "
                          "the objective part left out.")  # fmt: skip
    if audit.criterion.propensity_draws is not None:
        raise OptionError(
            "prior_sensitivity does not allow for Monte Carlo error of the probabilities yet: "
            "leave propensity_draws out.",
            kind="excluded", column="propensity_draws", value=audit.criterion.propensity_draws,
        )  # fmt: skip
    if start.given_context:
        raise OptionError(
            "prior_sensitivity is not made of an audit given the context yet: audit with "
            "context_model='none'.",
            kind="excluded",
            column="context_model",
            value=audit.context_model,
        )
    if start.n_rounds:
        raise OptionError("a resumed audit has no prior of its own; audit the whole log instead.")
    if question.seed is None:
        raise OptionError("audit with an int seed, so that the draws can be repeated.")
    if audit.fitted is not None:  # its draws are at hand: nothing is sampled again
        tree = audit.fitted
        if model is None and not isinstance(question.model, str):  # the tree knows shipped ones
            model = question.model
    else:  # exact draws of the conjugate posterior, made anew at once
        tree = fit(
            audit.data, family=start.family, seed=question.seed, draws=question.draws,
            prior=None if start.prior_is_learned else start.prior,
        )  # fmt: skip
    criterion = audit.criterion
    parts, _ = parts_of_tree(tree, audit.data, audit.summary, criterion)
    found = evaluate(parts, criterion)
    weights, khat = prior_power_weights(tree, POWERS, audit.data, model=model)
    fair = regret = None
    quantities: dict[str, Any] = {}
    verdicts = ("not_auditable",) * len(POWERS)
    if found.smallest_eps2 is not None:
        needed = found.smallest_eps2[:, criterion.grid_index]
        ok = criterion.fair_draws(found.smallest_eps2)
        # the weights sum to 1 but for rounding, which must not turn a sure verdict
        within, beyond = weights @ ok, weights @ ~ok
        fair = tuple((within / (within + beyond)).tolist())
        verdicts = tuple(criterion.verdict_of(p) for p in fair)
        if np.ptp(needed) > 0:
            quantities["smallest_eps2"] = needed
    if found.regret is not None:
        regret = tuple(float(r) for r in weights @ found.regret)
        quantities["fairness_regret"] = found.regret
    sensitivities = prior_sensitivity(
        tree, audit.data, model=model, quantities=quantities, threshold=_THRESHOLD
    )
    return PriorSensitivity(POWERS, fair, regret, verdicts, tuple(khat.tolist()), sensitivities)
