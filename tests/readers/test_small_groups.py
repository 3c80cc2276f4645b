"""Groups by a measurement hold a handful of rounds each, which is said."""

import numpy as np
import pandas as pd
import pytest

from bayesfair.readers import read_history, scan_history


@pytest.mark.parametrize("read", [read_history, scan_history])
def test_most_groups_with_a_handful_of_rounds_get_a_notice(read):
    rng = np.random.default_rng(1)
    x = np.round(rng.normal(size=2000), 3)
    frame = pd.DataFrame({"arm": rng.choice(["a", "b"], 2000), "reward": 1, "x": x})
    sizes = frame.x.value_counts().to_numpy()
    groups = read(frame, by="x")
    for log in list(groups.values())[:3]:
        (found,) = [n for n in log.notices if n.kind == "small_groups"]
        assert found.column == "x" and found.n == np.sum(sizes < 10) and str(len(sizes)) in found
    assert all(
        n.kind != "small_groups"
        for log in read(frame.assign(x=np.digitize(x, [-1, 0, 1])), by="x").values()
        for n in log.notices
    )
