"""Every model of the arms fits hard logs at default settings: no divergences, converged."""

import numpy as np
import pytest
from sbc_tools import LONG

from bayesfair.history import History
from bayesfair.inference.contract import ARM_MODELS
from bayesfair.inference.nuts import refusal

pytestmark = pytest.mark.statistical

ARMS = ("conventional", "ecmo", "never tried")  # three, as elsewhere: one graph for all tests
RNG = np.random.default_rng(5)

LOGS = {
    # Bartlett et al. (1985): patient 2 conventional, died; the others ECMO, survived
    "ecmo": History([1, 0] + [1] * 10, [1, 0] + [1] * 10, arms=ARMS),
    "all_zero": History([0, 1] * 6, [0] * 12, arms=ARMS),
    "all_one": History([0, 1] * 6, [1] * 12, arms=ARMS),
    "one_arm": History([0] * 12, [1, 0, 0, 1, 0, 1, 1, 1, 0, 0, 1, 0], arms=("only",)),
    "one_arm_all_zero": History([0] * 12, [0] * 12, arms=("only",)),
    "nothing_observed": History([0, 1] * 6, [np.nan] * 12, arms=ARMS),
    "a_million_rounds": History(
        RNG.integers(0, 2, 1_000_000), RNG.random(1_000_000) < 0.01, arms=ARMS
    ),
}


# bins and levels as in the tests of calibration: their machine code serves here
SHAPE = {"bernoulli_drifting": {"n_bins": 4}, "finite_independent": {"support": (0, 1, 2)}}
# what a model shares over arms is all that one arm alone can make difficult
ALONE = [("bernoulli_hierarchical", log) for log in LOGS if log.startswith("one_arm")]

# a level in none of a million rounds: chains of a minute for a number that is nearly 0
UNSEEN = [("finite_independent", "a_million_rounds")]


@pytest.mark.parametrize(
    ("name", "log"),
    [
        pytest.param(name, log, marks=[pytest.mark.long] * (name in LONG))
        for name in ARM_MODELS
        for log in LOGS
        if not log.startswith("one_arm") and (name, log) not in UNSEEN
    ]
    + [pytest.param(*case, marks=pytest.mark.long) for case in ALONE],
)
def test_fits_at_default_settings(compiled, name, log):
    model, data = compiled(name, LOGS[log], **SHAPE.get(name, {}))
    _, found = model.fit(draws=4000, seed=1, cores=1, data=data)
    assert refusal(found) == ""
    assert found["divergences"] == 0
