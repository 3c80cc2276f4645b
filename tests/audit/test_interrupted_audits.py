"""An audit that is interrupted and resumed equals one that never was."""

import functools
import sys

import numpy as np
import pytest

import bayesfair as bf
from bayesfair.audit import run
from bayesfair.audit.log import limits
from bayesfair.audit.saved.checkpoint import Checkpoint
from bayesfair.readers.log import scan

N, PART = 1000, 150
ARMS = ("a", "b", "c")


def rewards_of(kind, arm, rng):
    if kind == "bernoulli":
        return rng.integers(0, 2, len(arm))
    return rng.poisson(arm + 1) if kind == "poisson" else rng.normal(arm, 2).round(6)


def write_log(path, *, kind="bernoulli", logged="full", seed=1, n=N, groups=1):
    """A log whose rewards become known late, across the borders of parts."""
    rng = np.random.default_rng(seed)
    pi = rng.dirichlet(np.ones(3), n)
    arm = np.array([rng.choice(3, p=p) for p in pi])
    reward = rewards_of(kind, arm, rng)
    lines = []
    for t in range(n):
        p = pi[t] if logged == "full" else pi[t, arm[t] : arm[t] + 1] if logged == "chosen" else ()
        late = min(t + 1 + int(rng.integers(0, 9)), n)
        cells = [ARMS[arm[t]], reward[t], late, f"g{t % groups}", *(repr(float(x)) for x in p)]
        lines.append(",".join(map(str, cells)))
    names = {"full": ",p_a,p_b,p_c", "chosen": ",propensity", "none": ""}[logged]
    path.write_text(f"arm,reward,late,city{names}\n" + "\n".join(lines) + "\n")
    return path


def scanned(path, **options):
    return bf.scan_history(path, **({"known_at": "late", "chunk_rounds": PART} | options))


def stop_after(parts):
    """A `progress=` that is interrupted after so many parts, as by Ctrl-C."""
    left = [parts]

    def advance(*_):
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt

    return advance


def interrupted(run, parts, path):
    with pytest.raises(KeyboardInterrupt) as stop:
        run(progress=stop_after(parts), partial=path)
    (note,) = stop.value.__notes__
    assert str(path) in note and "--resume" in note
    return bf.load_audit(path)


def through_a_file(audit, folder):
    audit.save(folder / "audit.nc")
    return bf.load_audit(folder / "audit.nc")


def assert_close(found, expected, at=""):
    """Compare two `to_dict` all the way down, numbers to 1e-12; the words show rounded ones."""
    if isinstance(expected, dict):
        assert list(found) == list(expected), at
        for key in expected.keys() - {"notices", "findings"}:
            assert_close(found[key], expected[key], f"{at}.{key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), at
        for i, value in enumerate(expected):
            assert_close(found[i], value, f"{at}[{i}]")
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-12), at
    else:
        assert found == expected, at


KINDS = {
    "full": ({}, {"eps1": 1, "seed": 3}),
    "from a round on": ({}, {"eps1": 1, "seed": 3, "from_round": 333, "judge": "objective"}),
    "default eps2, several draws": ({}, {"seed": 3, "draws": 203}),
    "chosen": ({"logged": "chosen", "kind": "normal"}, {"seed": 3, "family": "normal"}),
    "none": (
        {"logged": "none", "kind": "poisson"},
        {"seed": 3, "family": "poisson", "prior": (2, 3)},
    ),
    "without draws": ({}, {"objective": False, "divergence": "hellinger"}),
}


@pytest.mark.parametrize("name", KINDS)
def test_interrupted_after_any_part_and_resumed_it_is_the_whole(tmp_path, name):
    written, asked = KINDS[name]
    log, path = write_log(tmp_path / "log.csv", **written), tmp_path / "a.nc.partial"
    whole = bf.audit(scanned(log), **asked)
    for parts in (1, 4, 7):
        half = interrupted(lambda **how: bf.audit(scanned(log), **asked, **how), parts, path)
        assert half.summary.n_rounds == half.unfinished.n_rounds == min(parts * PART, N)
        assert half.objective is None
        assert "Interrupted after" in str(half)
        found = half.resume(scanned(log), partial=path)
        assert not path.exists()
        assert found.unfinished is None
        assert found.to_dict() == whole.to_dict()
        assert found.criterion == whole.criterion
    assert found.rounds().identical(whole.rounds())


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_interrupted_while_the_prior_is_learned(tmp_path, parts):
    """The default prior of measurements rests on the first 20 known rewards: parts of 8 rounds."""
    log, path = write_log(tmp_path / "log.csv", kind="normal", n=100), tmp_path / "a.nc.partial"

    def run(**how):
        return bf.audit(scanned(log, chunk_rounds=8), seed=3, draws=50, family="normal", **how)

    half = interrupted(run, parts, path)
    assert half.summary.end.n_rounds == 8 * parts
    assert half.resume(scanned(log, chunk_rounds=8)).to_dict() == run().to_dict()


def test_interrupted_twice_and_in_the_objective_part(tmp_path, monkeypatch):
    log, path = write_log(tmp_path / "log.csv"), tmp_path / "a.nc.partial"
    asked = {"eps1": 1, "seed": 3, "arm_groups": {"a": "x", "b": "y", "c": "y"}}
    whole = bf.audit(scanned(log), **asked)
    half = interrupted(lambda **how: bf.audit(scanned(log), **asked, **how), 2, path)
    half = interrupted(lambda **how: half.resume(scanned(log), **how), 3, path)
    assert half.summary.n_rounds == 5 * PART
    with monkeypatch.context() as patched:

        def stop(*_):
            raise KeyboardInterrupt

        patched.setattr(run, "conclude", stop)
        with pytest.raises(KeyboardInterrupt):
            half.resume(scanned(log), partial=path)
    half = bf.load_audit(path)
    assert half.summary.n_rounds == N
    assert half.resume(scanned(log)).to_dict() == whole.to_dict()
    # an objective part that the file cannot hold is asked for again
    truth = bf.rewards.Bernoulli([0.2, 0.4, 0.6])
    half = interrupted(lambda **how: bf.audit(scanned(log), truth=truth, **how), 2, path)
    with pytest.raises(bf.OptionError, match=r"objective part with 'truth'.*prior=interrupted"):
        half.resume(scanned(log))
    found = bf.audit(scanned(log), prior=half, truth=truth)
    assert found.to_dict() == bf.audit(scanned(log), truth=truth).to_dict()


def test_the_next_days_log_interrupted_and_resumed_is_the_whole(tmp_path, monkeypatch):
    monday, path = write_log(tmp_path / "monday.csv"), tmp_path / "a.nc.partial"
    tuesday = write_log(tmp_path / "tuesday.csv", seed=2)
    for asked in ({"eps1": 1, "seed": 3, "draws": 77, "judge": "objective"}, {"objective": False}):
        bf.audit(scanned(monday), **asked).save(tmp_path / "a.nc")
        earlier = bf.load_audit(tmp_path / "a.nc")
        whole = earlier.resume(scanned(tuesday))
        for parts in (1, 7):
            half = interrupted(functools.partial(earlier.resume, scanned(tuesday)), parts, path)
            assert half.summary.n_rounds == N + min(parts * PART, N)
            assert (half.unfinished.before, half.unfinished.source) == (N, "tuesday.csv")
            if parts == 1:
                half = interrupted(functools.partial(half.resume, scanned(tuesday)), 2, path)
                assert half.summary.n_rounds == N + 3 * PART
                assert half.unfinished.before == N
            with pytest.raises(bf.DataError, match=r"'monday\.csv': its first"):
                half.resume(scanned(monday))
            found = half.resume(scanned(tuesday), partial=path)
            assert_close(found.to_dict(), whole.to_dict())
            assert not path.exists()
            with pytest.raises(bf.OptionError, match="does not hold its log"):
                found.rounds()
    with monkeypatch.context() as patched:

        def stop(*_, **__):
            raise KeyboardInterrupt

        patched.setattr(sys.modules["bayesfair.audit.parts"], "join", stop)
        with pytest.raises(KeyboardInterrupt):
            earlier.resume(scanned(tuesday), partial=path)
    assert_close(bf.load_audit(path).resume(scanned(tuesday)).to_dict(), whole.to_dict())


def test_several_logs_go_on_where_they_stopped(tmp_path):
    log, path = write_log(tmp_path / "log.csv", groups=3), tmp_path / "a.nc.partial"
    read = {"by": "city", "known_at": False, "chunk_rounds": 300}
    asked = {"eps1": 1, "seed": 3, "prior": (2, 5), "draws": 50}
    whole = bf.audit(scanned(log, **read), **asked)
    for parts in (2, 6, 7):
        half = interrupted(
            lambda **how: bf.audit(scanned(log, **read), **asked, **how), parts, path
        )
        assert half.unfinished
        assert len(half) == 1 + (parts - 1) // 4
        # interrupted at once again, nothing of it is lost
        again = interrupted(functools.partial(half.resume, scanned(log, **read)), 1, path)
        assert again["g0"].summary.n_rounds >= half["g0"].summary.n_rounds
        found = again.resume(scanned(log, **read), partial=path)
        assert found.to_dict() == whole.to_dict()
        assert not path.exists()
    logs = scanned(log, **read)
    del logs["g0"]
    with pytest.raises(bf.DataError, match=r"had begun the group 'g0'.*Give the same logs again"):
        half.resume(logs)


@pytest.mark.parametrize("by", [None, "day"])
def test_beliefs_of_each_context_go_on_where_they_stopped(tmp_path, by):
    log, path = write_log(tmp_path / "log.csv", groups=3), tmp_path / "a.nc.partial"
    lines = log.read_text().splitlines()
    days = ["day", *(str(1 + t // (N // 2)) for t in range(N))]
    log.write_text("\n".join(f"{line},{day}" for line, day in zip(lines, days, strict=True)))
    read = {"context": "city", "by": by, "known_at": False, "chunk_rounds": 150}
    asked = {"eps1": 1, "seed": 3, "draws": 50, "context_model": "cells"}
    whole = bf.audit(scanned(log, **read), **asked)
    for parts in (2, 6):
        half = interrupted(
            lambda **how: bf.audit(scanned(log, **read), **asked, **how), parts, path
        )
        assert half.unfinished
        found = half.resume(scanned(log, **read), partial=path)
        assert found.to_dict() == whole.to_dict()
        assert not path.exists()


def test_every_so_often_it_is_written_whatever_ends_the_run(tmp_path):
    log, path = write_log(tmp_path / "log.csv"), tmp_path / "a.nc.partial"
    seen = []

    def die(done, *_):
        seen.append(bf.load_audit(path).summary.n_rounds)
        if done > 500:
            raise MemoryError

    with pytest.raises(MemoryError):
        bf.audit(scanned(log), seed=3, progress=die, partial=Checkpoint(path, every=0))
    assert seen == [150, 300, 450, 600]
    assert bf.load_audit(path).resume(scanned(log)).to_dict() == (
        bf.audit(scanned(log), seed=3).to_dict()
    )
    path.unlink()
    bf.audit(scanned(log), seed=3, partial=Checkpoint(path))  # a minute is longer than that
    assert not path.exists()


def test_another_attempt_forgets_what_the_one_before_had_seen(tmp_path):
    log, keeper = write_log(tmp_path / "log.csv"), Checkpoint(tmp_path / "a.partial")
    with pytest.raises(KeyboardInterrupt):
        bf.audit(scanned(log), seed=3, progress=stop_after(4), partial=keeper)
    with pytest.raises(KeyboardInterrupt):
        bf.audit(scanned(log), seed=3, progress=stop_after(1), partial=keeper)
    assert bf.load_audit(keeper.path).summary.n_rounds == PART
    keeper.drop()  # the work may have ended meanwhile: what was said to be kept is
    assert bf.load_audit(keeper.path).unfinished


def test_a_checkpoint_that_cannot_be_written_is_said_and_stops_nothing(tmp_path, monkeypatch):
    log = write_log(tmp_path / "log.csv")

    def full(*_):
        raise OSError(28, "No space left on device")

    keeper = Checkpoint(tmp_path / "a.partial", every=0)
    monkeypatch.setattr(sys.modules[Checkpoint.__module__], "save_audit", full)
    with pytest.warns(bf.errors.BayesfairWarning, match="No space left on device"):
        found = bf.audit(scanned(log), objective=False, partial=keeper)
    assert found.summary.n_rounds == N
    assert "could not be kept" in keeper.last_words()


def test_another_log_is_refused_by_name(tmp_path):
    log, path = write_log(tmp_path / "log.csv"), tmp_path / "a.nc.partial"
    half = interrupted(lambda **how: bf.audit(scanned(log), seed=3, **how), 3, path)
    text = log.read_text()
    lines = text.splitlines(keepends=True)
    other = write_log(tmp_path / "other.csv", seed=2)
    changed, short = tmp_path / "changed.csv", tmp_path / "short.csv"
    flipped = lines[100].replace(",1,", ",x,").replace(",0,", ",1,").replace(",x,", ",0,")
    changed.write_text("".join([*lines[:100], flipped, *lines[101:]]))
    short.write_text("".join(lines[:300]))
    for data, said in {
        scanned(other): r"450 rounds of 'log.csv'.*'other.csv': its first 450 rounds are others",
        scanned(changed): r"'changed.csv': its first 450 rounds are others",
        scanned(short): r"'short.csv'.* it has only 299 rounds",
        scanned(log, chunk_rounds=100): r"in parts of 100 rounds, none of which ends after 450",
        scanned(log, known_at=False): r"read with other options",
    }.items():
        with pytest.raises(bf.DataError, match=said) as caught:
            half.resume(data)
        assert caught.value.kind == "other_source"
        assert caught.value.source == data.source
    # what stands behind the rounds that were seen may have grown
    more = tmp_path / "more.csv"
    more.write_text(text + "".join(lines[1:200]))
    plain = interrupted(
        lambda **how: bf.audit(scanned(log, known_at=False), seed=3, **how), 3, path
    )
    assert plain.resume(scanned(more, known_at=False)).summary.n_rounds == N + 199


def test_what_cannot_be_kept_or_joined_says_so(tmp_path):
    log, path = write_log(tmp_path / "log.csv"), tmp_path / "a.nc.partial"
    done = bf.audit(scanned(log), objective=False)
    half = interrupted(lambda **how: bf.audit(scanned(log), objective=False, **how), 3, path)
    with pytest.raises(bf.OptionError, match=r"'log.csv' was interrupted and cannot be merged"):
        bf.merge(half, done)
    group = bf.audit({"x": scanned(log)}, objective=False)
    with pytest.raises(bf.OptionError, match=r"goes on from an audit of several logs"):
        group.resume({"x": scanned(log)}, partial=path)
    grouped = bf.audit(scanned(log), objective=False, arm_groups=dict.fromkeys(ARMS, "x"))
    with pytest.raises(bf.OptionError, match=r"goes on from an audit of groups of arms"):
        grouped.resume(scanned(log), partial=path)
    with pytest.raises(bf.OptionError, match=r"partial= cannot keep this audit: beliefs_model="):
        bf.audit(scanned(log), beliefs_model="bernoulli_independent", seed=1, partial=path)
    with pytest.raises(bf.OptionError, match=r"partial= cannot keep this audit: several logs"):
        bf.audit({"x": scanned(log)}, prior=bf.audit({"x": scanned(log)}, seed=1), seed=1,
                 partial=path)  # fmt: skip
    with pytest.raises(bf.OptionError, match="make both with the same criterion"):
        bf.audit(scanned(log), prior=half, objective=False, eps1=0.5)
    with pytest.raises(bf.OptionError, match=r"begun with family='bernoulli'"):
        bf.audit(scanned(log), prior=half, objective=False, family="poisson")
    with pytest.raises(bf.OptionError, match="partial"):
        bf.audit(scanned(log), objective=False, partial=tmp_path / "absent" / "x")


def test_of_two_who_go_on_from_one_checkpoint_the_second_is_refused(tmp_path):
    log, path = write_log(tmp_path / "log.csv"), tmp_path / "a.nc.partial"
    interrupted(lambda **how: bf.audit(scanned(log), seed=3, **how), 2, path)
    one, other = bf.load_audit(path), bf.load_audit(path)
    interrupted(lambda **how: one.resume(scanned(log), **how), 1, path)
    with pytest.raises(bf.DataError, match="was replaced since"):
        other.resume(scanned(log), partial=Checkpoint(path, every=0))


def test_parts_are_what_they_were_whatever_ends_the_run(tmp_path, monkeypatch):
    """The command reads large files in parts by default; the default size is the same each time."""
    log, path = write_log(tmp_path / "log.csv"), tmp_path / "a.nc.partial"
    monkeypatch.setattr(scan, "ROWS", 200)
    half = interrupted(
        lambda **how: bf.audit(bf.scan_history(log, known_at="late"), seed=3, **how), 2, path
    )
    whole = bf.audit(bf.scan_history(log, known_at="late"), seed=3)
    assert half.summary.n_rounds == 400
    assert half.resume(bf.scan_history(log, known_at="late")).to_dict() == whole.to_dict()


def test_a_log_in_memory_whose_audit_is_long_is_kept_in_parts_too(tmp_path, monkeypatch):
    """Interrupted and resumed it is bit for bit the audit that was not interrupted."""
    log, path = bf.read_history(write_log(tmp_path / "log.csv")), tmp_path / "a.nc.partial"
    monkeypatch.setattr(limits, "work_of", lambda *_, **__: limits.Work(7.0, 0.0, 7.0, 0.0, 0.0))
    whole = bf.audit(log, seed=3, eps1=1, progress=lambda *_: None)
    half = interrupted(lambda **how: bf.audit(log, seed=3, eps1=1, **how), 4, path)
    assert half.unfinished.n_rounds == 4 * (log.n_rounds // 7)
    assert half.resume(log, partial=path).to_dict() == whole.to_dict()


def test_the_question_comes_back_whole_from_the_file(tmp_path):
    log, path = write_log(tmp_path / "log.csv"), tmp_path / "a.nc.partial"
    asked = {"family": "finite", "support": (1, 0, 0.5), "judge": "objective", "draws": 60}
    asked |= {"seed": np.int64(3), "prior": {"c": (1, 2, 3), "a": (1, 1, 1), "b": (2, 2, 2)}}
    asked |= {"arm_groups": {"a": "x", "b": "y", "c": "y"}, "eps1": 1}
    whole = bf.audit(scanned(log), **asked)
    half = interrupted(lambda **how: bf.audit(scanned(log), **asked, **how), 2, path)
    assert half.question == whole.question
    assert half.to_dict()["criterion"]["judge"] == "objective"
    assert half.verdict == half.subjective_verdict  # there is no objective part yet
    again = interrupted(lambda **how: half.resume(scanned(log), **how), 2, path)
    assert again.question == whole.question
    found = again.resume(scanned(log))
    assert (found.question, found.to_dict()) == (whole.question, whole.to_dict())
    question = through_a_file(found, tmp_path).question
    assert question == whole.question
    assert question.prior == {"a": [1, 1, 1], "b": [2, 2, 2], "c": [1, 2, 3]}
    assert (question.support, question.seed, question.draws) == ((0.0, 0.5, 1.0), 3, 60)
    assert question.earlier is None


def test_what_no_file_can_hold_stands_by_its_name(tmp_path):
    log = bf.read_history(write_log(tmp_path / "log.csv"))
    known = bf.audit(log, truth=bf.rewards.Bernoulli([0.2, 0.4, 0.6]))
    loaded = through_a_file(known, tmp_path)
    assert (loaded.question.truth, loaded.model) == ("Bernoulli", "truth")
    assert loaded.verdict == loaded.objective_verdict == known.verdict
    # what goes on does not hold on to what came before
    later = bf.audit(log, prior=known, objective=False)
    assert later.question.earlier is None
