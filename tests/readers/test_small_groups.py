"""Groups by a measurement hold a handful of rounds each, which an audit of them says."""

import numpy as np
import pandas as pd
import pytest

import bayesfair as bf
from bayesfair.readers import read_history, scan_history


@pytest.mark.parametrize("read", [read_history, scan_history])
def test_most_groups_with_a_handful_of_rounds_get_a_notice(read):
    rng = np.random.default_rng(1)
    x = np.round(rng.normal(size=300), 2)
    frame = pd.DataFrame({"arm": rng.choice(["a", "b"], 300), "reward": 1, "x": x})
    sizes = frame.x.value_counts().to_numpy()
    (found,) = [
        n for n in bf.audit(read(frame, by="x"), objective=False).to_dict()["findings"]
        if n["kind"] == "small_groups"
    ]  # fmt: skip
    assert (
        found["n"] == np.sum(sizes < 30) == len(sizes) and f"{len(sizes)} groups" in found["text"]
    )
    few = bf.audit(read(frame.assign(x=np.digitize(x, [-1, 0, 1])), by="x"), objective=False)
    assert "small_groups" not in [n["kind"] for n in few.to_dict()["findings"]]
