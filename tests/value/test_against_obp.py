"""Open Bandit Pipeline as oracle: a log of its generator, its estimates on its own data.

`tests/reference/obp.json` was made with it, once, by `benchmarks/make_obp.py`.
"""

import json
from pathlib import Path

import numpy as np
import pytest

import bayesfair as bf
from bayesfair.value import policy_value

TESTS = Path(__file__).resolve().parents[1]
MADE = json.loads((TESTS / "reference" / "obp.json").read_text())
DATA = TESTS.parent / ".." / "shared" / "data"


def test_a_log_of_its_generator_is_read_as_it_was_made():
    feedback = MADE["feedback"]
    arrays = {name: np.array(v) if isinstance(v, list) else v for name, v in feedback.items()}
    for given in (feedback, arrays):
        read = bf.read_history(given)
        assert read.arm.tolist() == feedback["action"] and read.arms == ("0", "1", "2")
        assert read.reward.tolist() == feedback["reward"]
        np.testing.assert_array_equal(read.selection_probability, arrays["pi_b"][:, :, 0])
        chosen = read.selection_probability[np.arange(12), read.arm]
        assert chosen.tolist() == feedback["pscore"]


@pytest.mark.skipif(not DATA.exists(), reason="needs ../shared/data")
@pytest.mark.parametrize("name", MADE["estimates"])
def test_its_estimates_on_the_open_bandit_data(name):
    expected = MADE["estimates"][name]
    log = bf.read_history(
        DATA / f"{name}.csv", arm="item_id", reward="click", propensity="propensity_score",
        order="timestamp",
    )  # fmt: skip
    assert (log.n_rounds, log.n_arms) == (expected["n"], expected["k"])
    rising = np.array([float(item) + 1 for item in log.arms])
    found = policy_value(log, {"uniform": "uniform", "rising": rising / rising.sum()})
    for rule in ("uniform", "rising"):
        for estimate, value in expected[rule].items():
            assert getattr(found[rule], estimate).value == pytest.approx(value, rel=1e-12)
