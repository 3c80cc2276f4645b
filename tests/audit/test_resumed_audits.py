"""An audit that is saved, loaded and gone on with equals one audit of the whole log."""

import functools
import itertools
import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bayesfair as bf
from bayesfair.audit.log import cells
from bayesfair.audit.result import as_audit
from bayesfair.audit.saved.schema import IN_POSTERIOR, folded, packed, unpacked, with_draws

ARMS = ("a", "b", "c", "d")
LEVELS = np.array([1.0, 2.0, 4.0])


def rewards_of(family, arm, rng):
    centre = arm + 1.0
    if family == "bernoulli":
        return (rng.random(len(arm)) < centre / 6).astype(float)
    if family == "finite":
        return LEVELS[np.minimum(rng.poisson(centre / 2), 2)]
    if family == "poisson":
        return rng.poisson(centre).astype(float)
    return rng.normal(centre, 2.0)


def random_log(
    seed, n, k, *, family="bernoulli", selection="full", delays=False, holes=False, lost=False
):
    """A log whose rewards may come late (across any cut), be lost, and whose arms come and go."""
    rng = np.random.default_rng(seed)
    pi = rng.dirichlet(np.ones(k), n)
    arm = np.array([rng.choice(k, p=p) for p in pi], np.int32)
    if holes and k > 2:
        for t in np.flatnonzero(rng.random(n) < 0.4):
            pi[t, rng.choice([i for i in range(k) if i != arm[t]])] = np.nan
            pi[t] /= np.nansum(pi[t])
    reward = rewards_of(family, arm, rng)
    if family == "finite":
        reward[: min(3, n)] = LEVELS[: min(3, n)]  # a state knows the levels of its own part
    if lost:
        late = np.arange(n) >= 3
        reward[(rng.random(n) < 0.25) & late] = np.nan
    known_at = np.arange(n) + rng.integers(1, 8, n) if delays else None
    given = {
        "full": {"selection_probability": pi},
        "chosen": {"propensity": pi[np.arange(n), arm]},
        "none": {},
    }[selection]
    if holes and selection != "full":
        given["offered"] = ~np.isnan(pi)
    return bf.History(arm, reward, arms=ARMS[:k], known_at=known_at, **given)


def through_a_file(audit, folder):
    audit.save(folder / "audit.nc")
    return bf.load_audit(folder / "audit.nc")


def taken_apart(audit):
    """As through a file, without the file."""
    text, buffers = packed([audit], [None])
    draws = {} if audit.objective is None else {
        name: folded(getattr(audit.objective, field))[0]
        for field, (name, _) in IN_POSTERIOR.items()
        if getattr(audit.objective, field) is not None
    }  # fmt: skip
    (bare,) = unpacked(json.loads(json.dumps(text)), {n: v.copy() for n, v in buffers.items()})
    return as_audit(with_draws(bare, draws))


def assert_same(found, expected, at=""):
    """Compare two `to_dict` all the way down, numbers to 1e-12."""
    if isinstance(expected, dict):
        assert list(found) == list(expected), at
        for key, value in expected.items():
            assert_same(found[key], value, f"{at}.{key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), at
        for i, value in enumerate(expected):
            assert_same(found[i], value, f"{at}[{i}]")
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-12), at
    else:
        assert found == expected, at


def assert_same_audit(found, expected):
    ours, theirs = found.to_dict(), expected.to_dict()
    for key in ("notices", "findings"):  # they show rounded numbers, compared below
        ours.pop(key), theirs.pop(key)
    assert_same(ours, theirs)
    np.testing.assert_array_equal(found.series()["plays"], expected.series()["plays"])
    np.testing.assert_allclose(
        found.series()["regret"], expected.series()["regret"], rtol=1e-12, atol=1e-12
    )


LOG_OPTIONS = {
    "seed": st.integers(0, 10_000),
    "n": st.integers(8, 60),
    "k": st.integers(1, 4),
    "family": st.sampled_from(["bernoulli", "bernoulli", "finite", "poisson", "normal"]),
    "selection": st.sampled_from(["full", "full", "chosen", "none"]),
    "delays": st.booleans(),
    "holes": st.booleans(),
    "lost": st.booleans(),
}


@given(
    st.fixed_dictionaries(LOG_OPTIONS),
    st.lists(st.integers(4, 59), min_size=1, max_size=3, unique=True),
    st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_parts_taken_up_again_equal_the_whole(options, cuts, exact):
    log = random_log(**options)
    bounds = [0, *sorted(c for c in cuts if c < log.n_rounds), log.n_rounds]
    asked = {"eps1": 1, "eps2": 0.1, "seed": 3, "draws": 203, "family": options["family"]}
    with pytest.MonkeyPatch.context() as patched:
        # few rounds are kept as they are, many in bins; both have to survive
        patched.setattr(cells, "EXACT_ROUNDS", cells.EXACT_ROUNDS if exact else 6)
        whole = bf.audit(log, **asked)
        first = bf.audit(log.rounds(0, bounds[1]), **asked)
        merged, resumed = (taken_apart(first) for _ in range(2))
        before = merged
        for start, stop in itertools.pairwise(bounds[1:]):
            part = bf.audit(log.rounds(start, stop), **(asked | {"family": "auto"}), prior=before)
            before = taken_apart(part)
            merged = taken_apart(bf.merge(merged, before))
            resumed = taken_apart(resumed.resume(log.rounds(start, stop)))
        if exact or len(bounds) == 2 or options["selection"] == "none":
            assert_same_audit(merged, whole)
        assert_same_audit(resumed, merged)
        if exact:
            assert merged.findings == whole.findings
        assert merged.state.same_as(whole.state)


@given(
    st.integers(0, 10_000),
    st.sampled_from(["kl", "hellinger", "chi2", "jensen_shannon", "wasserstein"]),
    st.sampled_from([None, "total_variation", "hellinger"]),
    st.sampled_from(["bernoulli", "finite"]),
    st.booleans(),
)
@settings(max_examples=25, deadline=None)
def test_every_divergence_goes_on(seed, divergence, rewards, family, holes):
    log = random_log(seed, 24, 3, family=family, holes=holes, delays=True)
    asked = {"eps1": 0.5, "divergence": divergence, "reward_divergence": rewards, "seed": 1}
    asked |= {"family": family, "draws": 50}
    first = taken_apart(bf.audit(log.before(11), **asked))
    assert_same_audit(first.resume(log.rounds(11, 24)), bf.audit(log, **asked))


def test_loaded_audit_is_the_audit(tmp_path):
    """The same numbers bit by bit, text, tree, and state, for logs of every kind."""
    for selection, family in [
        ("full", "bernoulli"), ("full", "normal"), ("chosen", "finite"), ("none", "poisson")
    ]:  # fmt: skip
        log = random_log(5, 40, 3, family=family, selection=selection, delays=True, holes=True)
        audit = bf.audit(log, family=family, seed=1, draws=402)
        loaded = through_a_file(audit, tmp_path)
        assert type(loaded) is type(audit)
        assert loaded.to_dict() == audit.to_dict()
        assert str(loaded) == str(audit)
        assert repr(loaded) == repr(audit)
        assert loaded.tree.identical(audit.tree)
        assert loaded.verdict == audit.verdict
        assert loaded.question == audit.question
        for name in ("smallest_eps2", "regret", "p_best", "lower_bound"):
            np.testing.assert_array_equal(
                getattr(loaded.objective, name), getattr(audit.objective, name)
            )


def test_tolerance_and_arm_groups_and_earlier_outcomes_go_on(tmp_path):
    log = random_log(9, 50, 4, delays=True)
    groups = dict(zip(ARMS, ("x", "x", "y", "z"), strict=True))
    asked = {"eps1": 0.5, "eps2": 0.02, "seed": 1, "arm_groups": groups, "draws": 100}
    for more in ({}, {"tolerance": 0.05}, {"prior": {"a": (3, 1)}}):
        first = through_a_file(bf.audit(log.before(20), **asked, **more), tmp_path)
        whole = bf.audit(log, **asked, **more)
        assert first.arm_groups.member == ("x", "x", "y", "z")
        assert len(whole.to_dict()["arm_groups"]) == 6
        assert_same_audit(first.resume(log.rounds(20, 50)), whole)
    other = bf.audit(log.rounds(20, 50), eps1=0.5, eps2=0.02, seed=1, prior=first)
    with pytest.raises(bf.OptionError, match="arm_groups"):
        bf.merge(first, other)
    begun = random_log(9, 50, 4)
    object.__setattr__(begun, "prior_counts", np.array([[5.0, 2.0], [0, 0], [1, 0], [0, 3]]))
    first = through_a_file(bf.audit(begun.before(20), seed=1), tmp_path)
    assert_same_audit(first.resume(begun.rounds(20, 50)), bf.audit(begun, seed=1))
    read = bf.History([0, 1], [1, 0], arms=ARMS, prior_counts=first)
    np.testing.assert_array_equal(read.prior_counts, first.state.counts)


def test_a_scan_goes_on_from_a_file_and_a_file_from_a_scan(tmp_path):
    import pyarrow.parquet as pq

    log = random_log(7, 3000, 3)
    for name, part in (("one", log.before(1100)), ("two", log.rounds(1100, 3000))):
        columns = {"arm": [ARMS[i] for i in part.arm], "reward": part.reward}
        columns |= {f"p_{a}": part.selection_probability[:, i] for i, a in enumerate(part.arms)}
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
    scans = [bf.scan_history(tmp_path / f"{n}.parquet", chunk_rounds=400) for n in ("one", "two")]
    first = through_a_file(bf.audit(scans[0], eps1=1, seed=1), tmp_path)
    whole = bf.audit(log, eps1=1, seed=1)
    seen = first.resume(scans[1])
    ours, theirs = seen.to_dict(), whole.to_dict()
    assert ours["log"]["source"] == "one.parquet ... two.parquet"
    assert ours["subjective"]["worst"]["source"] in {"one.parquet", "two.parquet"}
    for key in ("objective", "calibration", "arms", "frontier"):
        assert_same(ours[key], theirs[key])
    assert ours["subjective"]["smallest_eps2"] == theirs["subjective"]["smallest_eps2"]
    worst = ours["subjective"]["worst"]
    assert worst["round"] == theirs["subjective"]["worst"]["round"]
    part_row = worst["round"] + 1 - (1100 if worst["source"] == "two.parquet" else 0)
    assert worst["row"] == part_row
    assert f"(row {part_row} of {worst['source']})" in str(seen)


def test_three_machines_share_a_log(tmp_path):
    """Each starts from the file of the one before; a shuffled order is refused, with the reason."""
    log = random_log(2, 90, 3, delays=True)
    shards = [log.before(30), log.rounds(30, 60), log.rounds(60, 90)]
    files, before = [], None
    for i, shard in enumerate(shards):
        bf.audit(shard, prior=before, eps1=1, seed=4).save(tmp_path / f"{i}.nc")
        files.append(tmp_path / f"{i}.nc")
        before = bf.load_audit(files[-1])
    a, b, c = (bf.load_audit(f) for f in files)
    whole = functools.reduce(bf.merge, (a, b, c))
    assert_same_audit(whole, bf.audit(log, eps1=1, seed=4))
    assert_same_audit(bf.merge(a, bf.merge(b, c)), whole)
    for (first, second), said in {
        (b, a): "other order, merge(second, first)",
        (a, c): "ended after 30 rounds, the second starts after 60 rounds: a part is missing",
        (a, a): "the second starts afresh from a prior",
        (c, b): "other order",
        (whole, b): "wrong order, or twice",
    }.items():
        with pytest.raises(bf.DataError) as caught:
            bf.merge(first, second)
        assert said in str(caught.value)
    other = bf.audit(random_log(3, 30, 3), eps1=1, seed=4)
    follows = bf.audit(shards[1], prior=other, eps1=1, seed=4)
    with pytest.raises(bf.DataError, match="follows another log"):
        bf.merge(a, follows)
    with pytest.raises(bf.DataError, match="different arms"):
        bf.merge(a, bf.audit(random_log(3, 30, 4), eps1=1, seed=4))
    with pytest.raises(bf.DataError, match=r"read it with arms=\['a', 'b', 'c'\]"):
        a.resume(random_log(3, 30, 4))


@given(st.fixed_dictionaries(LOG_OPTIONS), st.integers(3, 30), st.integers(4, 30))
@settings(max_examples=40, deadline=None)
def test_machines_work_at_the_same_time_from_states_passed_ahead(options, first_cut, step):
    log = random_log(**options)
    cuts = [0, *range(first_cut, log.n_rounds, step), log.n_rounds]
    if len(cuts) < 3 or cuts[1] >= log.n_rounds:
        return
    asked = {"eps1": 1, "seed": 3, "draws": 20, "family": options["family"]}
    shards = [log.rounds(a, b) for a, b in itertools.pairwise(cuts)]
    head = bf.audit(shards[0], **asked)
    states = list(itertools.accumulate(shards[1:-1], lambda s, d: s.after(d), initial=head.state))
    # in any order, each on its own
    rest = [bf.audit(d, prior=s, **asked) for s, d in zip(states, shards[1:], strict=True)]
    assert_same_audit(functools.reduce(bf.merge, [head, *rest]), bf.audit(log, **asked))


def test_groups_go_on_label_by_label(tmp_path):
    logs = {f"run {i}": random_log(i, 40, 3, delays=True) for i in range(3)}
    asked = {"eps1": 1, "seed": 1, "draws": 50}
    today = bf.audit({n: log.before(15) for n, log in logs.items()}, **asked)
    today.save(tmp_path / "today.nc")
    loaded = bf.load_audit(tmp_path / "today.nc")
    assert loaded.to_dict() == today.to_dict()
    assert str(loaded) == str(today)
    assert loaded.tree["group_1"].attrs["label"] == "run 1"
    rest = {n: log.rounds(15, 40) for n, log in logs.items()}
    assert_same(loaded.resume(rest).to_dict(), bf.audit(logs, **asked).to_dict())
    # one group stays away, one is new
    rest["run 9"] = random_log(9, 10, 3)
    del rest["run 0"]
    tomorrow = bf.audit(rest, prior=loaded, **asked)
    merged = bf.merge(loaded, tomorrow)
    assert list(merged.audits) == ["run 0", "run 1", "run 2", "run 9"]
    assert merged["run 0"].to_dict() == today["run 0"].to_dict()
    assert merged["run 2"].summary.sums.n_rounds == 40
    assert any("no such group" in n for n in merged["run 9"].findings)
    alone = bf.audit(rest["run 9"], **asked)
    assert merged["run 9"].regret == alone.regret
    with pytest.raises(bf.OptionError, match="both of several"):
        bf.merge(loaded, today["run 0"])
    with pytest.raises(bf.OptionError, match="prior=earlier"):
        bf.audit(rest["run 1"], prior=loaded, **asked)
    with pytest.raises(bf.OptionError, match="mapping of its labels"):
        loaded.resume(rest["run 1"])
    with pytest.raises(bf.DataError, match="group 'run 1': the second audit does not start"):
        bf.merge(loaded, bf.audit(rest, **asked))
    with pytest.raises(bf.DataError, match="no such group"):
        bf.merge(today.resume({"run 1": rest["run 1"]}), bf.audit(
            {"run 7": logs["run 0"].rounds(15, 40)}, **asked,
            prior=type(today)({"run 7": today["run 0"]}),
        ))  # fmt: skip


def test_new_group_starts_from_the_prior_that_all_groups_had(tmp_path):
    logs = {n: random_log(i, 20, 3) for i, n in enumerate("xy")}
    today = bf.audit(logs, prior=(2, 5), objective=False)
    today.save(tmp_path / "today.nc")
    new = random_log(8, 20, 3)
    found = bf.audit({"z": new}, prior=bf.load_audit(tmp_path / "today.nc"), objective=False)["z"]
    assert found.regret == bf.audit(new, prior=(2, 5), objective=False).regret


def test_what_cannot_go_on_says_why(tmp_path):
    log = random_log(1, 40, 3)
    rest = log.rounds(20, 40)
    truth = bf.rewards.Bernoulli([0.2, 0.4, 0.6])
    known = through_a_file(bf.audit(log.before(20), truth=truth), tmp_path)
    with pytest.raises(bf.OptionError, match="objective=False"):
        known.resume(rest)
    assert known.resume(rest, objective=False).objective is None
    with pytest.raises(bf.OptionError, match="known rewards, which are not kept"):
        bf.merge(known, bf.audit(rest, prior=known, truth=truth))
    plain = through_a_file(bf.audit(log.before(20), seed=1), tmp_path)
    for name in ("model", "beliefs_model"):
        with pytest.raises(bf.OptionError, match=f"^{name}= needs the whole log"):
            bf.audit(rest, prior=plain, seed=1, **{name: "bernoulli_independent"})
    with pytest.raises(bf.OptionError, match="family='poisson' cannot go on"):
        bf.audit(rest, prior=plain, family="poisson", seed=1)
    drawn = bf.audit(rest, prior=plain, seed=np.random.default_rng(0))
    with pytest.raises(bf.OptionError, match="Generator"):
        bf.merge(plain, drawn)
    assert bf.merge(plain, drawn, seed=1).objective is not None
    with pytest.raises(bf.OptionError, match="whole log"):
        plain.prior_sensitivity()


def with_counts(log, counts):
    found = log.rounds(0, log.n_rounds)
    object.__setattr__(found, "prior_counts", np.array(counts, dtype=float))
    return found


def test_outcomes_before_the_log_belong_to_its_first_part(tmp_path):
    log, counts = random_log(3, 30, 2), [[5, 2], [0, 3]]
    parts = [log.before(10), log.rounds(10, 20), log.rounds(20, 30)]
    plain = bf.audit(parts[0], seed=1)
    begun = through_a_file(bf.audit(with_counts(parts[0], counts), seed=1), tmp_path)
    for first, more in ((plain, counts), (begun, [[5, 2], [0, 4]])):
        with pytest.raises(bf.DataError, match=r"to its first part.* began with (0|10) of"):
            first.resume(with_counts(parts[1], more))
    both = begun.resume(with_counts(parts[1], counts))
    with pytest.raises(bf.DataError, match="belong to its first part"):
        both.resume(with_counts(parts[2], [[1, 0], [0, 0]]))
    whole = bf.audit(with_counts(log, counts), seed=1)
    assert_same_audit(both.resume(with_counts(parts[2], counts)), whole)
    # a part alone, or a state, does not know how its log began: it says what it does
    alone = bf.audit(parts[1], prior=begun, seed=1)
    for before in (alone, both.state):
        last = bf.audit(with_counts(parts[2], counts), prior=before, seed=1)
        assert any("not counted again" in n for n in last.findings)
        assert_same_audit(bf.merge(both, last), whole)
    wide = bf.audit(random_log(3, 9, 2, family="poisson"), family="poisson", seed=1)
    with pytest.raises(bf.OptionError, match="poisson family cannot use"):
        wide.resume(with_counts(random_log(4, 9, 2, family="poisson"), counts))


def test_a_new_group_begins_with_its_own_earlier_outcomes():
    log = with_counts(random_log(3, 20, 2), [[5, 2], [0, 3]])
    today = bf.audit({"x": random_log(1, 20, 2)}, seed=1)
    found = bf.audit({"y": log}, prior=today, seed=1)["y"]
    alone = bf.audit(log, seed=1)
    assert found.regret == alone.regret
    np.testing.assert_array_equal(found.state.posterior, alone.state.posterior)
    with pytest.raises(bf.DataError, match="belong to its first part"):
        today.resume({"x": log})


def test_the_same_log_again_is_asked_about(tmp_path):
    def again(audit):
        return any("the same log again?" in n for n in audit.findings)

    logs = {}
    for name in ("monday", "tuesday"):
        path = tmp_path / f"{name}.csv"
        path.write_text("arm,reward,p_a,p_b\n" + "a,1,0.5,0.5\nb,0,0.5,0.5\n" * 5)
        logs[name] = bf.read_history(path)
    monday = bf.audit(logs["monday"], seed=1)
    both = through_a_file(monday.resume(logs["tuesday"]), tmp_path)
    assert not again(both)
    assert again(monday.resume(logs["monday"]))
    assert again(both.resume(logs["tuesday"]))
    assert again(both.resume(bf.scan_history(tmp_path / "tuesday.csv", chunk_rounds=4)))
    assert again(bf.audit({"x": logs["monday"]}, seed=1).resume({"x": logs["monday"]})["x"])
    # slices of one file, and logs that never were a file
    assert not again(bf.audit(logs["monday"].before(4), seed=1).resume(logs["monday"].rounds(4, 9)))
    memory = bf.audit(random_log(1, 9, 2), seed=1)
    assert not again(memory.resume(random_log(1, 9, 2)))


def test_what_is_no_log_and_no_path_is_refused(tmp_path):
    audit = bf.audit(random_log(1, 9, 2), seed=1)
    for data, kind in ((None, "NoneType"), ({"x": random_log(1, 9, 2)}, "dict")):
        with pytest.raises(bf.DataError, match=f"cannot audit a {kind}: give a History"):
            audit.state.after(data)
    with pytest.raises(bf.DataError, match="cannot audit a NoneType"):
        bf.audit({"x": random_log(1, 9, 2)}, seed=1).resume({"y": None})
    for path in (3, None, b"audit.nc"):
        with pytest.raises(bf.OptionError, match="give the path of a file"):
            bf.load_audit(path)
    with pytest.raises(bf.OptionError, match=r"label 'x\\x00y' holds a zero byte"):
        bf.audit({"x\0y": random_log(1, 9, 2)}, seed=1).save(tmp_path / "audit.nc")
    assert not list(tmp_path.iterdir())


def test_rewards_outside_the_family_name_the_audit_that_goes_on():
    audit = bf.audit(random_log(1, 9, 2), seed=1)
    ratings = random_log(1, 9, 2, family="finite")
    for go_on in (audit.resume, audit.state.after):
        with pytest.raises(bf.DataError, match="audit that this log continues is of family 'bern"):
            go_on(ratings)
    with pytest.raises(bf.DataError, match="Ratings: family='finite'"):
        bf.audit(ratings, family="bernoulli", seed=1)
