"""Public functions of theory refuse numbers outside of their range, by the argument's name."""

from __future__ import annotations

import inspect
import math

import numpy as np
import pytest

from bayesfair import theory
from bayesfair.errors import BayesfairError
from bayesfair.policies import Uniform

WORKS = {
    "asymptotic_constant": [[0.2, 0.5]], "bretagnolle_huber": [0.1], "pinsker": [0.1],
    "expected_fairness_loss": [[0.5, 0.5], [0.6, 0.4]], "exponential_race_tv": [2.0],
    "fair_sd_ts_regret_bounds": [[0.2, 0.5], 10, 100], "fairness_loss": [[0.5, 0.5], 0],
    "fairness_loss_excess": [[0.5, 0.5], [0.6, 0.4]], "paper_eps2": [3, 100],
    "forecast_regret_bound": [[1.0, 2.0], 100, 0.2],
    "paper_regret_order": [3, 100], "plackett_luce_eps1": [], "regret_from_excess": [0.1],
    "regret_lower_bound": [2, 100], "sd_ts_average_regret_bound": [3, 100],
    "sd_ts_regret_bound": [2, 100, [0.2, 0.5]], "smooth_fairness_bound": [0.1],
    "sqrt_C": [100, 3], "sum_of_tie_weights": [[0.2, 0.5]], "tie_weights": [[0.2, 0.5]],
    "top1_error_bound": [3, 0.1], "tv_bound_from_kl": [0.1], "unfair_rounds_bound": [3, 100, 0.1],
    "unfair_rounds_end": [3, 0.1, 0.1], "paper_C": [0.1, 0.1], "paper_duel_C": [0.1, 0.1],
    "paper_worst_case_C": [0.1, 0.1], "union_C": [0.1, 0.1], "union_with_prior_C": [0.1, 0.1],
    "guarantee": [Uniform()], "guarantee_note": ["total_variation"],
}  # fmt: skip
NAMED = {
    "paper_C": {"max_divergence": 1}, "paper_duel_C": {"n_arms": 3}, "union_C": {"n_arms": 3},
    "union_with_prior_C": {"n_arms": 3}, "regret_from_excess": {"n_arms": 3},
    "guarantee": {"n_arms": 3, "n_levels": 2},
}  # fmt: skip
NEVER = {
    "text": "x", "nan": math.nan, "negative": -1, "cube": np.full((2, 3, 4), -0.5),
    "ragged": [[1], [1, 2]], "object": object(), "huge": 10**400,
}  # fmt: skip


@pytest.mark.parametrize("name", [n for n in theory.__all__ if n != "Guarantee"])
def test_a_number_outside_of_its_range_is_refused_by_the_name_of_the_argument(name):
    function, given, named = getattr(theory, name), WORKS[name], NAMED.get(name, {})
    function(*given, **named)
    parameters = list(inspect.signature(function).parameters)
    for place, argument in enumerate(parameters[: len(given)]):
        if argument == "policy":
            continue
        for value in NEVER.values():
            with pytest.raises(BayesfairError, match=argument):
                function(*given[:place], value, *given[place + 1 :], **named)
        try:  # zero is a number: in range or refused
            function(*given[:place], 0, *given[place + 1 :], **named)
        except BayesfairError as error:
            assert argument in str(error)
    for argument in named:
        for value in (*NEVER.values(), *([0] if argument == "n_arms" else [])):
            with pytest.raises(BayesfairError, match=argument):
                function(*given, **named | {argument: value})


def test_what_does_not_fit_together_is_refused():
    for call, said in (
        (lambda: theory.asymptotic_constant([0.0, 1.0]), "inside"),
        (lambda: theory.sd_ts_regret_bound(3, 100, [0.2, 0.5]), "theta="),
        (lambda: theory.fairness_loss(0.5, 0), "best_arm of shape"),
        (lambda: theory.fairness_loss([0.5, 0.5], 2), "best_arm of shape"),
        (lambda: theory.fairness_loss_excess([0.5, 0.5], [0.2, 0.3, 0.5]), "p_best of shape"),
    ):
        with pytest.raises(BayesfairError, match=said):
            call()
