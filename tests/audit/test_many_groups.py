"""Hundreds of groups in one pass: each number and notice is that of the group audited alone."""

import json

import numpy as np
import pandas as pd
import pytest

import bayesfair as bf
from bayesfair.audit import group as group_module
from bayesfair.audit import together
from bayesfair.audit.group_text import render_group
from bayesfair.base.notices import Notice
from bayesfair.history.logs import Logs
from bayesfair.history.probabilities import resolution_of, units_of

ARMS = "abc"


def _rules(rng, n, kind):
    """Return (n, 3) probabilities: coarse, fine, constant, single precision, or skewed."""
    if kind == "constant":
        return np.tile([0.5, 0.3, 0.2], (n, 1))
    if kind == "designed":
        return np.array([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]])[rng.integers(2, size=n)]
    p = rng.dirichlet([0.4, 2, 2] if kind == "skewed" else [4, 4, 4], size=n)
    p = np.maximum(p, 1e-3)
    p /= p.sum(axis=1, keepdims=True)
    digits = {"coarse": 2, "fine": 6, "skewed": 5}.get(kind)
    if digits is not None:
        p = np.round(p, digits)
        p[:, 2] = np.round(1 - p[:, 0] - p[:, 1], digits)
    return p


def _table(seed, n_groups, *, sizes=(1, 40), misled=0.1, gone=0.0):
    """Return a log with a column of groups, some of which contradict themselves."""
    rng, parts = np.random.default_rng(seed), []
    kinds = ["constant", "designed", "coarse", "fine", "skewed", "raw"]
    for g in range(n_groups):
        n = int(rng.integers(*sizes))
        p = _rules(rng, n, kinds[rng.integers(len(kinds))])
        wrong = rng.random() < misled
        arm = [int(p[t].argmin()) if wrong else int(rng.choice(3, p=p[t] / p[t].sum()))
               for t in range(n)]  # fmt: skip
        reward = (rng.random(n) < [0.2, 0.5, 0.7][rng.integers(3)]).astype(float)
        reward[rng.random(n) < gone] = np.nan
        columns = {f"p_{a}": p[:, i] for i, a in enumerate(ARMS)}
        part = pd.DataFrame({"group": f"g{g:03}", "arm": [ARMS[i] for i in arm], "reward": reward})
        part = part.assign(**columns)
        if n > 20 and rng.random() < 0.3:  # an export that was added twice
            part = pd.concat([part, part])
        parts.append(part)
    whole = pd.concat(parts, ignore_index=True)
    return whole.sample(frac=1, random_state=seed).sort_values("group", kind="stable") if (
        misled == 0
    ) else whole  # fmt: skip


def _logged(table, selection):
    """Return the table with the whole rule, the chosen arms' probabilities, or none."""
    names = ["p_a", "p_b", "p_c"]
    found = table if selection == "full" else table.drop(columns=names)
    if selection == "chosen":
        at = table["arm"].map(ARMS.index).to_numpy()[:, None]
        found = found.assign(propensity=np.take_along_axis(table[names].to_numpy(), at, 1)[:, 0])
    return found


def _alone(table, label, **asked):
    """Return the audit of one group, read from a table that holds nothing else."""
    part = table[table["group"] == label].drop(columns="group")
    log = bf.read_history(part, arms=list(ARMS), missing=asked.pop("missing", "error"))
    return bf.audit(log, **asked)


CASES = [
    (1, {"seed": 3, "draws": 300}, {}),
    (2, {"objective": False}, {"sizes": (1, 6)}),
    (3, {"seed": 4, "draws": 50, "eps1": 0.0, "eps2": 0.2}, {"misled": 0.5}),
    (4, {"seed": 5, "draws": 50, "prior": (2.0, 0.7), "tolerance": 1e-3}, {"sizes": (30, 130)}),
    (5, {"seed": 6, "draws": 50, "eps1": 3.0, "judge": "subjective"}, {"misled": 0.0}),
    (21, {"seed": 1, "draws": 50, "missing": "unobserved"}, {"sizes": (1, 200), "gone": 0.1}),
    (22, {"seed": 1, "draws": 50, "missing": 0.0}, {"sizes": (1, 9), "gone": 0.1}),
]
KINDS = [(*case, 60, "full") for case in CASES] + [
    (*CASES[c], 52, selection) for c in (2, 5, 6) for selection in ("chosen", "none")
]


@pytest.mark.parametrize(("seed", "asked", "made", "n_groups", "selection"), KINDS)
def test_each_group_of_a_pass_is_what_it_is_alone(seed, asked, made, n_groups, selection):
    table = _logged(_table(seed, n_groups, **made), selection)
    if made.get("gone") and selection == "full":  # arms that come and go
        here = table["group"].str.endswith("3") & (table.index % 3 == 0)
        table.loc[here, ["arm", "p_a", "p_b", "p_c"]] = ["a", 0.5, 0.5, np.nan]
    missing = asked.get("missing", "error")
    group = bf.audit(
        bf.read_history(table, by="group", missing=missing),
        **{k: v for k, v in asked.items() if k != "missing"},
    )
    found, brief = group.together, group.brief()
    assert found is not None and not found.close.all()
    for g, label in enumerate(group.audits):
        alone = _alone(table, label, **({"eps2": 0.05} | asked))
        shown, whole = brief["groups"][label], alone.to_dict()
        same = ("n_rounds", "n_judged", "n_unobserved", "n_skipped", "selection", "order")
        for at in (("subjective", "verdict"), *(("log", key) for key in same)):
            assert shown[at[0]][at[1]] == whole[at[0]][at[1]]
        assert shown["criterion"] == {"tolerance": whole["criterion"]["tolerance"]}
        assert shown["verdict"] == whole["verdict"]
        assert shown["consistent"] == whole["consistent"]
        numbers = [(shown["subjective"], whole["subjective"], "smallest_eps2")]
        numbers += [
            (shown["calibration"]["subjective"], whole["calibration"]["subjective"], name)
            for name in ("regret_per_round", "lower", "upper", "exact")
        ]
        if selection == "chosen":
            numbers += [(shown["calibration"], whole["calibration"], "effective_sample_size")]
        for ours, theirs, name in numbers:
            assert ours[name] == pytest.approx(theirs[name], abs=1e-12), (label, name)
        if whole["objective"] is None:
            assert shown["objective"] is None
        else:  # the draws are the same
            assert shown["objective"]["verdict"] == whole["objective"]["verdict"]
            probability = shown["objective"]["probability_fair"]
            assert probability == whole["objective"]["probability_fair"]
        kinds = {kind for kind, where in found.kinds.items() if where[g]}
        # which arms there are is seen in the table as a whole here, and given there
        beside = {"arms_seen", "unused_columns", "option_without_effect", "never_on_offer"}
        known = {Notice.of(n).kind for n in alone.findings} - beside
        assert kinds - beside == known, label


def test_a_pass_over_rewards_not_observed_and_sorted_rounds_keeps_what_is_said_of_each():
    table = _table(7, 40, sizes=(5, 12), gone=0.05, misled=0.0)
    table["timestamp"] = np.random.default_rng(1).permutation(len(table))
    asked = {"objective": False, "eps2": 0.05}
    group = bf.audit(bf.read_history(table, by="group", missing="unobserved"), **asked)
    assert group.together is not None and group.together.close.all()
    for label in ("g003", "g017"):
        alone = _alone(table, label, missing="unobserved", **asked)
        assert group[label].regret == alone.regret
        # of a group by itself it is said where none of its rewards is missing
        known = [n for n in alone.findings if Notice.of(n).kind != "option_without_effect"]
        assert [str(n) for n in group[label].findings] == [str(n) for n in known]


def test_groups_of_a_mapping_and_groups_of_a_pass_are_audited_alike():
    logs = bf.read_history(_table(8, 60), by="group")
    assert isinstance(logs, Logs)
    passed = bf.audit(logs, seed=1, draws=100)
    one_by_one = bf.audit(dict(logs), seed=1, draws=100)
    assert passed.together is not None and one_by_one.together is None
    assert passed.to_dict() == one_by_one.to_dict()
    whole, brief = one_by_one.brief(), passed.brief()
    ours, theirs = (found.pop("pooled")["subjective"] for found in (dict(whole), dict(brief)))
    for name in ("mean", "spread"):
        assert ours[name] == pytest.approx(theirs[name], rel=1e-9)
    whole, brief = ({k: v for k, v in x.items() if k != "pooled"} for x in (whole, brief))
    assert {k: v for k, v in whole.items() if k not in ("groups", "notices_by_kind")} == {
        k: v for k, v in brief.items() if k not in ("groups", "notices_by_kind")
    }
    for kind, other in zip(whole["notices_by_kind"], brief["notices_by_kind"], strict=True):
        assert {k: kind[k] for k in ("kind", "n", "groups", "text")} == {
            k: other[k] for k in ("kind", "n", "groups", "text")
        }
    assert str(passed) == str(one_by_one)


def _values(found, at=""):
    """Return path -> value of nested dicts."""
    if not isinstance(found, dict):
        return {at: found}
    return {k: v for key, value in found.items() for k, v in _values(value, f"{at}/{key}").items()}


@pytest.fixture(scope="module")
def thousand():
    """Return 1010 groups and their audits."""
    table = _table(15, 1010, sizes=(2, 9), misled=0.02)
    return table, bf.audit(bf.read_history(table, by="group"), seed=2, draws=40)


def test_the_json_of_more_than_a_thousand_groups_holds_a_short_record_of_each(thousand):
    table, group = thousand
    numbers = json.loads(json.dumps(group.to_dict(), allow_nan=False))
    assert numbers == group.to_dict() and numbers["detail"] == "brief"
    assert list(numbers["groups"]) == sorted(set(table["group"])) and len(numbers["groups"]) == 1010
    assert numbers["criterion"]["eps2"] == 0.05 and numbers["criterion"]["draws"] == 40
    for label in ("g000", "g017", "g500", "g1009"):
        alone = _alone(table, label, eps2=0.05, seed=2, draws=40).to_dict()
        shown, whole = (_values(found) for found in (numbers["groups"][label], alone))
        assert {k: shown[k] for k in shown if k != "/log/source"} == {
            k: pytest.approx(whole[k], abs=1e-12) if isinstance(whole[k], float) else whole[k]
            for k in shown if k != "/log/source"
        }  # fmt: skip
        assert group[label].to_dict()["frontier"] == alone["frontier"]
    verdicts = [one["verdict"] for one in numbers["groups"].values()]
    assert numbers["runs"]["n_violating"] == verdicts.count("unfair")


def test_a_thousand_groups_are_whole(thousand):
    table, _ = thousand
    first = table[table["group"].isin(sorted(set(table["group"]))[:12])]
    group = bf.audit(bf.read_history(first, by="group"), seed=2, draws=40)
    numbers = group.to_dict()
    assert numbers["detail"] == "whole"
    assert all(numbers["groups"][label] == group[label].to_dict() for label in group.audits)


@pytest.mark.parametrize("selection", ["full", "chosen", "none"])
def test_short_records_of_groups_audited_log_by_log_are_theirs(monkeypatch, selection):
    monkeypatch.setattr(group_module, "_MOST_WHOLE", 59)
    table = _logged(_table(16, 60, sizes=(5, 9)), selection)
    logs = dict(bf.read_history(table, by="group"))
    group = bf.audit(logs, seed=1, draws=40, judge="objective")
    numbers = group.to_dict()
    assert numbers["detail"] == "brief" and group.together is None
    monkeypatch.undo()
    lead = [text.splitlines()[2] for text in (str(group), render_group(group.to_dict()))]
    assert lead[0] == lead[1] and lead[0].startswith("Verdict: ")
    for label, log in logs.items():
        shown, whole = _values(numbers["groups"][label]), _values(group[label].to_dict())
        assert {k: whole.get(k) for k in shown} == shown, log.source
        assert ("/calibration/effective_sample_size" in shown) == (selection == "chosen")
    assert json.dumps(numbers["groups"]).count("eps1") == 0


def test_files_of_groups_with_short_records_hold_the_table_of_all_arms(monkeypatch, tmp_path):
    import xarray as xr

    logs = bf.read_history(_table(17, 60, sizes=(5, 9)), by="group")
    group = bf.audit(logs, seed=1, draws=40)
    whole = group.to_dict()
    monkeypatch.setattr(group_module, "_MOST_WHOLE", 59)
    group.save(tmp_path / "audit.nc")
    loaded = bf.load_audit(tmp_path / "audit.nc")
    with xr.open_dataset(tmp_path / "audit.nc", group="arms") as arms:
        expected = [arm["n"] for one in whole["groups"].values() for arm in one["arms"]]
        assert arms["n"].values.tolist() == expected
    monkeypatch.undo()
    assert loaded.to_dict() == whole


def test_few_groups_of_a_pass_are_reported_whole():
    logs = bf.read_history(_table(14, 7), by="group")
    passed, one_by_one = bf.audit(logs, seed=1, draws=60), bf.audit(dict(logs), seed=1, draws=60)
    assert passed.together is not None
    assert str(passed) == str(one_by_one) and repr(passed) == repr(one_by_one)
    assert passed.brief() == one_by_one.to_dict()
    assert (passed.verdict, passed.consistent) == (one_by_one.verdict, one_by_one.consistent)


def test_the_order_in_which_groups_are_looked_at_changes_nothing():
    logs = bf.read_history(_table(9, 60), by="group")
    seed = np.random.default_rng
    first, second = (bf.audit(logs, seed=seed(5), draws=80) for _ in range(2))
    labels = list(first.audits)
    forwards = [first[label].regret_objective for label in labels]
    assert forwards == [second[label].regret_objective for label in labels[::-1]][::-1]


def test_posterior_draws_of_groups_follow_from_the_posterior_alone():
    """Four groups with the same rewards of the same arms, in another order, share their draws."""
    rows = [("a", 1), ("b", 0), ("a", 0)]
    parts = [
        pd.DataFrame({
            "group": f"g{g}", "arm": [a for a, _ in order], "reward": [r for _, r in order],
            "p_a": 0.5, "p_b": 0.5,
        })
        for g, order in enumerate([rows, rows[::-1], rows, rows[::-1]])
    ]  # fmt: skip
    group = bf.audit(bf.read_history(pd.concat(parts), by="group"), seed=2, draws=100)
    best = [group[f"g{g}"].objective.p_best for g in range(4)]
    assert all(np.array_equal(best[0], other) for other in best)


def test_resolutions_of_many_parts_are_those_of_each():
    rng = np.random.default_rng(3)
    kinds = ["constant", "designed", "coarse", "fine", "skewed", "raw"]
    parts = [_rules(rng, int(rng.integers(1, 60)), kinds[g % len(kinds)]) for g in range(120)]
    parts += [p.astype(np.float32).astype(float) for p in parts[:40]]
    parts += [_rules(rng, 3000, "fine"), np.array([[1e-9, 1 - 1e-9]] * 3 + [[0.5, 0.5]]).repeat(2)
              .reshape(-1, 2)[:, [0, 1]].repeat(2, axis=1)[:, :3]]  # fmt: skip
    bounds = np.append(0, np.cumsum([len(p) for p in parts]))
    units, n_values = units_of(np.concatenate(parts), bounds)
    assert units.tolist() == [resolution_of(p).unit for p in parts]
    assert n_values.tolist() == [len(np.unique(p)) for p in parts]


def test_most_groups_tiny_is_noticed_with_what_to_do():
    table = _table(10, 60, sizes=(2, 6))
    group = bf.audit(bf.read_history(table, by="group"), objective=False)
    (note,) = [n for n in group.brief()["findings"] if n["kind"] == "small_groups"]
    assert note["n"] == 60 and "60 of 60 groups hold fewer than 30 rounds" in note["text"]
    assert "rests on the prior" in note["text"] and "Put groups together" in note["text"]
    long = bf.audit(bf.read_history(_table(10, 5, sizes=(40, 50)), by="group"), objective=False)
    assert "small_groups" not in [n["kind"] for n in long.to_dict()["findings"]]
    assert "60 of 60 groups hold fewer than 30 rounds" in str(group).replace("\n   ", "")


def test_groups_are_made_when_they_are_asked_for(monkeypatch):
    asked: list[str] = []
    make = together.Audits.__getitem__
    monkeypatch.setattr(
        together.Audits, "__getitem__", lambda self, x: (asked.append(x), make(self, x))[1]
    )
    table = _table(11, 300, sizes=(4, 5), misled=0.0)
    group = bf.audit(bf.read_history(table, by="group"), seed=1)
    str(group)
    assert len(set(asked)) < 30
    assert group["g123"].summary.n_rounds == 4


def test_a_passed_group_is_saved_merged_and_goes_on_as_one_audited_log_by_log(tmp_path):
    table = _table(12, 70, sizes=(6, 9), misled=0.0)
    later = _table(13, 70, sizes=(6, 9), misled=0.0)
    logs, rest = (bf.read_history(t, by="group") for t in (table, later))
    passed = bf.audit(logs, seed=1, draws=60, eps2=0.05)
    assert passed.together is not None
    passed.save(tmp_path / "audit.nc")
    loaded = bf.load_audit(tmp_path / "audit.nc")
    assert loaded.to_dict() == passed.to_dict()
    one_by_one = bf.audit(dict(logs), seed=1, draws=60, eps2=0.05)
    whole = passed.resume(rest).to_dict()
    assert whole == loaded.resume(rest).to_dict() == one_by_one.resume(dict(rest)).to_dict()
    both = table.assign(part=0), later.assign(part=1)
    joined = pd.concat(both).sort_values(["group", "part"], kind="stable")
    for label in ("g000", "g042"):
        alone = _alone(joined.drop(columns="part"), label, seed=1, draws=60, eps2=0.05)
        regret = whole["groups"][label]["calibration"]["subjective"]["regret_per_round"]
        assert regret == pytest.approx(alone.regret.value, abs=1e-12)


def test_progress_of_one_pass_goes_up_in_steps_to_the_last_round():
    table = _table(2, 40, sizes=(1, 6))
    logs = bf.read_history(table, by="group", arms=list(ARMS))
    seen = []
    bf.audit(logs, seed=1, draws=50, progress=lambda n, *_: seen.append(n))
    assert seen == sorted(seen) and seen[-1] == len(table)
    assert len(set(seen)) > 10
