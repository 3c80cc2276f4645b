r"""What is known about the rules: guarantees and bounds as functions.

Every docstring says what is *proved*, what was *corrected* (the published statement or proof does
not hold as printed) and what is *only observed*. Unless another setting is named: k >= 2
independent Bernoulli arms with fixed means, Beta(1/2, 1/2) beliefs updated after every round, exact
selection probabilities from the rounds before. Nothing is shown for batches, delays, drift,
estimated propensities or other priors. TV is total variation, logarithms are natural.

Liu et al. (2017), Calibrated Fairness in Bandits, arXiv:1707.01875, is called the paper.
"""

from __future__ import annotations

from bayesfair.base.arguments import takes, within
from bayesfair.fairness import guarantee_note
from bayesfair.kernels.laws import tv_bounds
from bayesfair.policies.exploration import (
    paper_C,
    paper_duel_C,
    paper_worst_case_C,
    sqrt_C,
    union_C,
    union_with_prior_C,
)
from bayesfair.policies.guarantees import Guarantee, guarantee
from bayesfair.theory.fairness_bounds import (
    exponential_race_tv,
    plackett_luce_eps1,
    smooth_fairness_bound,
    top1_error_bound,
)
from bayesfair.theory.proper_scoring import (
    expected_fairness_loss,
    fairness_loss,
    fairness_loss_excess,
    regret_from_excess,
)
from bayesfair.theory.regret_bounds import (
    asymptotic_constant,
    fair_sd_ts_regret_bounds,
    forecast_regret_bound,
    paper_eps2,
    paper_regret_order,
    regret_lower_bound,
    sd_ts_average_regret_bound,
    sd_ts_regret_bound,
    sum_of_tie_weights,
    tie_weights,
    unfair_rounds_bound,
    unfair_rounds_end,
)

__all__ = [
    "Guarantee",
    "asymptotic_constant",
    "bretagnolle_huber",
    "expected_fairness_loss",
    "exponential_race_tv",
    "fair_sd_ts_regret_bounds",
    "fairness_loss",
    "fairness_loss_excess",
    "forecast_regret_bound",
    "guarantee",
    "guarantee_note",
    "paper_C",
    "paper_duel_C",
    "paper_eps2",
    "paper_regret_order",
    "paper_worst_case_C",
    "pinsker",
    "plackett_luce_eps1",
    "regret_from_excess",
    "regret_lower_bound",
    "sd_ts_average_regret_bound",
    "sd_ts_regret_bound",
    "smooth_fairness_bound",
    "sqrt_C",
    "sum_of_tie_weights",
    "tie_weights",
    "top1_error_bound",
    "tv_bound_from_kl",
    "unfair_rounds_bound",
    "unfair_rounds_end",
    "union_C",
    "union_with_prior_C",
]

_checked = takes(kl=within(0, array=True))
bretagnolle_huber = _checked(tv_bounds.bretagnolle_huber)
pinsker = _checked(tv_bounds.pinsker)
tv_bound_from_kl = _checked(tv_bounds.tv_bound_from_kl)
