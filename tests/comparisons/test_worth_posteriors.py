"""Posteriors of worths under wide and narrow priors against quadrature and long PyMC runs.

A reduced run of benchmarks/worth_posteriors.py; references: tests/reference/worth_posteriors.json.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from bayesfair.comparisons import Comparisons

ROOT = Path(__file__).resolve().parents[2]
ENTRIES = json.loads((ROOT / "tests/reference/worth_posteriors.json").read_text(encoding="utf-8"))

sys.path.insert(0, str(ROOT / "benchmarks"))
from worth_posteriors import judge  # noqa: E402


def name(entry):
    return f"{entry['name']}, {entry['model']}, sd {entry['prior_sd']:.3g}"


def test_references_are_the_published_values():
    """20 wins, 0 losses at prior_sd 5; a chain of four at prior variance 8 (choix's EP case)."""
    found = {name(entry): entry for entry in ENTRIES}
    pair = found["20-0, bradley_terry, sd 5"]
    assert 2 * pair["mean"][0] == pytest.approx(7.908, abs=5e-4)
    assert 2 * pair["sd"][0] == pytest.approx(3.807, abs=5e-4)
    assert 2 * pair["upper"][0] == pytest.approx(17.11, abs=5e-3)
    for model, mean, sd in (("bradley_terry", -2.250, 1.771), ("thurstone", -2.645, 1.557)):
        chain = found[f"chain of four, {model}, sd 2.83"]
        assert chain["mean"][0] == pytest.approx(mean, abs=5e-3)
        assert chain["sd"][0] == pytest.approx(sd, abs=2e-3)


@pytest.mark.statistical
@pytest.mark.parametrize("entry", ENTRIES, ids=name)
def test_draws_are_the_posterior(entry):
    # interval ends of twenty items at once: the worst of forty needs more draws
    many = len(entry["items"]) > 4
    found = judge(entry, range(4), draws=8000 if many else 4000)
    assert found["refused"] == 0
    assert found["bias"] <= 0.05 and found["sd"] <= 0.05 and found["ends"] <= 0.05
    # the benchmark counts over sixty seeds; of so few, one may be
    n = 4 * len(entry["mean"])
    assert found["z above 3"] * n <= 1


def test_each_entry_is_what_it_says():
    for entry in ENTRIES:
        if "chain" in entry["name"] or "20-0" in entry["name"]:
            data = entry["data"]
            made = Comparisons.from_counts(
                data["left"], data["right"], data["wins_left"], data["wins_right"]
            )
            assert not made.connectivity().mle_exists
        # means are those of log-worths that sum to zero
        k = len(entry["items"])
        assert abs(np.sum(entry["mean"][:k])) < 1e-6
