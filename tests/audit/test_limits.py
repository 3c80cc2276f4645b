"""What an audit costs is said before the work, and what cannot end is refused with the remedy."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import bayesfair as bf
from bayesfair.audit.log import limits
from bayesfair.errors import DataError
from bayesfair.families import FAMILIES


def log_of(k, n_rounds, *, played=None, full=False, skipped=0):
    rng = np.random.default_rng(0)
    arm = rng.integers(0, played or k, n_rounds)
    reward = rng.integers(0, 2, n_rounds).astype(float)
    pi = rng.dirichlet(np.ones(k), size=n_rounds) if full else None
    return bf.History(
        arm, reward, selection_probability=pi, arms=[f"a{i}" for i in range(k)], n_skipped=skipped
    )


def test_memory_beyond_what_is_free_is_refused_before_it_is_asked_for(monkeypatch):
    """The draws of the true rewards alone are draws x arms numbers of 8 bytes."""
    k, draws = 3000, 20_000
    arm = np.arange(2 * k, dtype=np.int32) % k  # each is chosen: those never chosen share theirs
    log = bf.History(arm, np.ones(2 * k), arms=[f"a{i}" for i in range(k)])
    monkeypatch.setattr(limits, "available_memory", lambda: 0.9 * 8 * k * draws)
    with pytest.raises(DataError, match=r"3000 arms.*objective=False") as refused:
        bf.audit(log, seed=1, draws=draws)
    assert refused.value.kind == "too_much_memory"
    assert refused.value.value > 8 * k * draws
    assert bf.audit(log, objective=False).summary.n_rounds == 2 * k
    assert bf.audit(log.rounds(0, 9), seed=1, draws=draws).summary.n_rounds == 9


def test_work_beyond_a_day_is_refused_with_its_length(monkeypatch):
    assert limits.LONGEST == 24 * 3600
    log = log_of(50, 200)
    monkeypatch.setattr(limits, "LONGEST", 1e-6)
    with pytest.raises(DataError, match=r"would take about .* is refused.*arms=") as refused:
        bf.audit(log, seed=1)
    assert refused.value.kind == "too_long" and refused.value.value > 1e-6


def test_a_column_that_tells_rows_apart_is_no_column_of_arms():
    n = 1200
    ids = bf.History([f"row{i}" for i in range(n)], np.zeros(n))
    found = bf.audit(ids, objective=False).findings
    assert [f.n for f in found if getattr(f, "kind", None) == "labels_like_rows"] == [n]
    assert any("has as many labels as rows" in f for f in found)
    arms = bf.audit(log_of(1200, 3000), objective=False).findings
    assert not any(getattr(f, "kind", None) == "labels_like_rows" for f in arms)


def test_arms_that_were_never_chosen_are_no_labels_of_rows():
    log = log_of(100_000, 100_000, played=200)
    assert not any(f.kind == "labels_like_rows" for f in bf.audit(log, objective=False).findings)


@pytest.mark.parametrize("objective", [False, True])
def test_a_hundred_thousand_labels_one_a_row_are_refused_with_the_remedy(objective):
    n = 100_000
    ids = bf.History(np.arange(n, dtype=np.int32), np.zeros(n), arms=[f"row{i}" for i in range(n)])
    with pytest.raises(DataError, match=r"as many labels as rows.*Name the arms") as refused:
        bf.audit(ids, objective=objective, **({"seed": 1, "draws": 10} if objective else {}))
    assert refused.value.kind == "labels_like_rows"


def test_arms_never_played_cost_next_to_nothing():
    """A hundred thousand arms of which a thousand were played are estimated as a thousand."""
    few = limits.work_of(log_of(1000, 30_000), "bernoulli", draws=0)
    many = limits.work_of(log_of(100_000, 30_000, played=1000), "bernoulli", draws=0)
    of_labels = 1e5 * 1e-9 * limits._ARM
    assert many.seconds == pytest.approx(few.seconds + of_labels, rel=0.01)
    all_alike = limits.work_of(log_of(20_000, 60_000), "bernoulli", draws=0)
    assert all_alike.seconds < few.seconds + of_labels / 5


def test_free_memory_is_what_the_system_says():
    found = limits.available_memory()
    assert 1e6 < found < 1e14


@pytest.mark.parametrize("family", ["bernoulli", "finite"])
def test_a_long_log_in_parts_for_progress_has_the_numbers_of_the_whole(monkeypatch, family):
    log = log_of(6, 90, full=True, skipped=3)
    options = {"family": family, "objective": False, "eps1": 0.5, "eps2": 0.01}
    whole = bf.audit(log, **options).to_dict()
    monkeypatch.setattr(limits, "_SHOWN", 0.0)
    monkeypatch.setattr(type(FAMILIES["finite"]), "cost_of_law", 1e9)
    monkeypatch.setattr(limits, "_RULE", 1e9)
    done = []
    parts = bf.audit(log, **options, progress=lambda n, *_: done.append(n)).to_dict()
    assert len(done) > 20 and done[-1] == 90
    assert parts["log"] == whole["log"]
    assert parts["notices"] == whole["notices"]
    for part in ("subjective", "calibration"):
        for name, value in whole[part].items():
            here = parts[part][name]
            if isinstance(value, float):
                assert here == pytest.approx(value, rel=1e-12)
            elif not isinstance(value, dict):
                assert here == value
    for one, other in zip(parts["arms"], whole["arms"], strict=True):
        assert one["p_best_subjective"] == pytest.approx(other["p_best_subjective"], rel=1e-12)


def test_the_cost_of_many_groups_is_that_of_a_pass_and_of_their_different_posteriors():
    """Of groups of one round and two arms there are four posteriors, however many groups."""
    n = 3000
    rng = np.random.default_rng(1)
    table = pd.DataFrame({
        "group": np.arange(n), "arm": rng.choice(["a", "b"], n), "reward": rng.integers(0, 2, n),
        "p_a": 0.5, "p_b": 0.5,
    })  # fmt: skip
    logs = bf.read_history(table, by="group")
    assert len(logs.together.counts()[0]) == 4
    once = limits.work_of_many(logs, "auto", draws=4000)
    one_by_one = limits.work_of_many(dict(logs), "auto", draws=4000)
    assert once.seconds < 0.1 * one_by_one.seconds
    assert once.objective_memory < one_by_one.objective_memory
