"""The file of a saved audit: opened by others, kept rounds, and all the ways to be broken."""

import functools
import json
import os
import tracemalloc
from typing import NamedTuple

import h5py
import numpy as np
import pytest
import xarray as xr

import bayesfair as bf
from bayesfair import examples
from bayesfair.audit.saved.file import FORMAT, sealed
from bayesfair.audit.saved.kinds import Plain, Record


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "ecmo.nc"
    audit = bf.audit(bf.read_history(examples.path("ecmo")), eps1=1, eps2=0, seed=1)
    audit.save(path, rounds=True)
    return audit, path


def test_others_open_the_file(saved):
    import arviz as az

    audit, path = saved
    with xr.open_datatree(path, engine="h5netcdf") as tree:
        assert {"posterior", "series", "arms", "state", "rounds"} <= set(tree.children)
        assert json.loads(tree.attrs["bayesfair_audit"]) == audit.to_dict()
        found = az.summary(tree, var_names=["regret_per_round"])
        mean = float(tree["posterior"]["regret_per_round"].mean())
    assert mean == pytest.approx(audit.regret_objective.value, rel=1e-12)
    assert float(found["mean"].iloc[0]) == pytest.approx(mean, rel=0.02)
    # plain numbers and text: nothing in it needs a class to be read, nothing is pickled
    with h5py.File(path) as file:
        kinds = set()
        file.visititems(lambda _, x: kinds.add(x.dtype.kind) if isinstance(x, h5py.Dataset) else 0)
    assert kinds <= set("fiuSO")  # O: h5py's strings of varying length, the labels


def test_rounds_that_were_kept_come_back(saved, tmp_path):
    audit, path = saved
    loaded = bf.load_audit(path)
    xr.testing.assert_identical(loaded.rounds(), audit.rounds())
    loaded.save(tmp_path / "again.nc", rounds=True)
    xr.testing.assert_identical(bf.load_audit(tmp_path / "again.nc").rounds(), audit.rounds())
    loaded.save(tmp_path / "without.nc")
    without = bf.load_audit(tmp_path / "without.nc")
    assert without.to_dict() == audit.to_dict()
    with pytest.raises(bf.OptionError, match=r"save\(path, rounds=True\)"):
        without.rounds()
    with pytest.raises(bf.OptionError, match="does not hold its log"):
        without.save(tmp_path / "never.nc", rounds=True)
    assert not (tmp_path / "never.nc").exists()


def test_a_place_that_cannot_be_written_is_named(saved, tmp_path):
    audit, _ = saved
    with pytest.raises(bf.OptionError, match="there is no folder"):
        audit.save(tmp_path / "absent" / "a.nc")
    with pytest.raises(bf.OptionError, match="must be the name of a file"):
        audit.save(tmp_path)


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def other(path):
    xr.Dataset({"x": ("y", [1.0])}).to_netcdf(path, engine="h5netcdf")


def edited(change):
    def edit(path):
        with h5py.File(path, "r+") as file:
            change(file)

    return edit


def newer(file):
    file.attrs["bayesfair_format"] = FORMAT + 1


def older(file):
    del file.attrs["bayesfair_format"]


def swapped_arms(file):
    for group in ("posterior", "series", "arms", "rounds"):
        file[group]["arm"][:] = file[group]["arm"][:][::-1]


def one_number(file):
    file["state"]["float64"][7] += 1


def one_draw(file):
    file["posterior"]["regret_per_round"][0, 0] = 0


def one_round(file):
    file["rounds"]["fairness_regret"][3] = 0


def one_word(file):
    file.attrs["bayesfair_audit"] = file.attrs["bayesfair_audit"].replace("unfair", "fair")


def one_arm(file):
    file["arms"]["reward_mean"][0] = 1


def one_version(file):
    file.attrs["bayesfair"] = "9.9"


def without(*names):
    def change(file):
        group = file
        for name in names[:-1]:
            group = group[name]
        del group[names[-1]]

    return change


def unsealed(path):
    path.write_bytes(path.read_bytes()[:-10])


CHANGED = ["not as it was saved", "audit the log again"]
BROKEN = {
    "text": (lambda p: p.write_text("arm,reward\na,1\n"), ["not a NetCDF-4 file"]),
    "empty": (lambda p: p.write_bytes(b""), ["not a NetCDF-4 file"]),
    "cut": (cut, ["not a NetCDF-4 file", "only a part"]),
    "other": (other, ["holds no bayesfair audit", "Audit.save"]),
    "newer": (edited(newer), [f"format {FORMAT + 1}", f"newer than format {FORMAT}", "Upgrade"]),
    "older": (edited(older), ["format 1", "what this version goes on from", "Audit the log again"]),
    "no seal": (unsealed, CHANGED),
    "no state": (edited(without("state")), CHANGED),
    "no draws": (edited(without("posterior")), CHANGED),
    "swapped arms": (edited(swapped_arms), CHANGED),
    "one number": (edited(one_number), CHANGED),
    "one draw": (edited(one_draw), CHANGED),
    "one round": (edited(one_round), CHANGED),
    "one word": (edited(one_word), CHANGED),
    "one arm": (edited(one_arm), CHANGED),
    "one version": (edited(one_version), CHANGED),
}


@pytest.mark.parametrize("name", BROKEN)
def test_bad_files_are_refused_by_name(saved, tmp_path, name):
    breaking, said = BROKEN[name]
    path = tmp_path / "bad.nc"
    path.write_bytes(saved[1].read_bytes())
    breaking(path)
    with pytest.raises(bf.DataError) as caught:
        bf.load_audit(path)
    assert "bad.nc" in str(caught.value)
    for words in said:
        assert words in str(caught.value)


def test_no_file_and_a_folder(tmp_path):
    for path in (tmp_path / "absent.nc", tmp_path):
        with pytest.raises(bf.DataError, match="no file"):
            bf.load_audit(path)


@pytest.mark.parametrize("sealed_again", [False, True], ids=["changed", "sealed again"])
def test_whatever_is_changed_is_refused_by_name(saved, tmp_path, sealed_again):
    """Every attribute and every variable: another value, another type, gone; and bits of the file.

    Whoever seals the file again after the change may be believed, but nothing else is raised.
    """
    whole, path = saved[1].read_bytes(), tmp_path / "bad.nc"
    changes = list(every_change(saved[1]))
    assert len(changes) > 150
    for change in changes[::3] if sealed_again else changes:  # opening what is sealed takes longer
        path.write_bytes(whole)
        with h5py.File(path, "r+") as file:
            change(file)
        if sealed_again:
            seal_again(path)
            try:
                bf.load_audit(path)
            except bf.BayesfairError as error:
                assert "bad.nc" in str(error)
        else:
            with pytest.raises(bf.DataError, match=r"bad\.nc"):
                bf.load_audit(path)
    for at in () if sealed_again else range(0, len(whole), len(whole) // 100):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        with pytest.raises(bf.DataError, match=r"bad\.nc"):
            bf.load_audit(path)


def every_change(path):
    """Yield functions that change one attribute or one variable of an open file."""
    places = ["/"]
    with h5py.File(path) as file:
        file.visit(places.append)
        for place in places:
            for name in file[place].attrs:
                for value in ("two", [2, 2], None):
                    yield functools.partial(set_attribute, place, name, value)
            if isinstance(file[place], h5py.Dataset):
                for change in ("other", "retyped", "gone"):
                    yield functools.partial(change_variable, place, change)


def set_attribute(place, name, value, file):
    attrs = file[place].attrs
    del attrs[name]
    if value is not None:
        attrs[name] = value


def change_variable(place, change, file):
    values = file[place][()]
    if change == "other" and values.dtype.kind in "fiu" and values.size:
        file[place][(0,) * values.ndim] = values.flat[0] + np.ones((), values.dtype)
        return
    del file[place]
    if change == "retyped":
        file[place] = np.zeros(values.shape, "S3" if values.dtype.kind in "fiu" else "i8")


def seal_again(path):
    content = path.read_bytes()
    end = content.rfind(b"\nbayesfair-audit")
    content = content if end < 0 else content[:end]
    path.write_bytes(content + sealed(content))


def declared_without_data(file):
    del file["state"]["float64"]
    file["state"].create_dataset("float64", (3_000_000_000,), "f8", chunks=(1 << 20,))


def other_files_bytes(file):
    del file["state"]["text"]
    file["state"].create_dataset("text", (4,), "u1", external=[(str(file.filename), 0, 4)])


def soft_link(file):
    file["state"].move("float64", "there")
    file["state"]["float64"] = h5py.SoftLink("/state/there")


def other_file(file):
    del file["state"]
    file["state"] = h5py.ExternalLink(file.filename, "/posterior")


def with_text(text):
    def change(file):
        del file["state"]["text"]
        file["state"]["text"] = np.frombuffer(text, np.uint8)

    return change


HOSTILE = {
    "24 GB that are not there": declared_without_data,
    "bytes of another file": other_files_bytes,
    "a link": soft_link,
    "a link to another file": other_file,
    "no UTF-8": with_text(b"\xff\xfe"),
    "no JSON": with_text(b"{"),
    "nested": with_text(b"[" * 100_000),
    "null": with_text(b"null"),
    "nothing": with_text(b"{}"),
    "no audits": with_text(b'{"audits": [], "labels": [], "posterior": []}'),
    "huge shape": with_text(b'{"audits": [{}], "labels": null, "posterior": [null]}'),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_asks_for_nothing(saved, tmp_path, name):
    path = tmp_path / "bad.nc"
    path.write_bytes(saved[1].read_bytes())
    with h5py.File(path, "r+") as file:
        HOSTILE[name](file)
    seal_again(path)
    tracemalloc.start()
    try:
        with pytest.raises(bf.DataError, match=r"bad\.nc"):
            bf.load_audit(path)
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


def test_a_field_that_is_not_declared_is_no_field_forgotten():
    class Point(NamedTuple):
        x: float
        y: float

    with pytest.raises(TypeError, match=r"declared field by field.*'x', 'y'"):
        Record(Point, {"x": Plain(float)})


def test_logs_together_come_back_and_are_few_objects(tmp_path):
    """1000 logs are as many objects in the file as 3; other arms, draws and rules among them."""
    half = [[0.5, 0.5]] * 2
    logs = {
        "north/west": bf.History([0, 1], [1, 0], selection_probability=half),
        "x and y": bf.History(["x", "y"], [0, 1], selection_probability=half),
        "chosen": bf.History([0, 1, 2], [1, 0, 1], propensity=[0.5, 0.2, 0.1]),
    }
    three = bf.audit(logs, seed=1, draws=9)
    more = {
        "few": bf.audit(logs["x and y"], seed=1, draws=3),
        "not drawn": bf.audit(logs["x and y"], objective=False),
    }
    objects = {}
    for n in (3, 100, 1000):
        many = {
            f"{label} {i}": one for i in range(-(-n // 3)) for label, one in three.audits.items()
        }
        many = type(three)(dict(list(many.items())[:n]) | more)
        many.save(tmp_path / "many.nc", rounds=n == 100)
        loaded = bf.load_audit(tmp_path / "many.nc")
        assert list(loaded.audits) == list(many.audits)
        for label in [*list(many.audits)[:4], *more]:
            assert loaded[label].to_dict() == many[label].to_dict()
            assert (n == 100) == (loaded[label].data is not None)
        if n == 100:
            xr.testing.assert_identical(loaded["chosen 5"].rounds(), three["chosen"].rounds())
            xr.testing.assert_identical(loaded["few"].rounds(), more["few"].rounds())
        found = []
        with h5py.File(tmp_path / "many.nc") as file:
            file.visit(found.append)
        objects[n] = len([name for name in found if "rounds" not in name])
    assert objects[3] == objects[100] == objects[1000] < 100


def test_others_open_a_file_of_several_logs(tmp_path):
    import arviz as az

    logs = {
        "north": bf.History(["a", "b"] * 5, [1, 0] * 5, selection_probability=[[0.5, 0.5]] * 10),
        "south": bf.History(["c", "b"] * 5, [1, 1] * 5, selection_probability=[[0.7, 0.3]] * 10),
    }
    audit = bf.audit(logs, seed=1, draws=400)
    audit.save(tmp_path / "two.nc")
    with xr.open_datatree(tmp_path / "two.nc", engine="h5netcdf") as tree:
        assert json.loads(tree.attrs["bayesfair_audit"]) == audit.to_dict()
        table = az.summary(
            tree, var_names=["regret_per_round", "best_arm_probability"], round_to="none"
        )
        arms = tree["arms"].to_dataset().to_dataframe()
    for label, one in audit.audits.items():
        mean = table.loc[f"regret_per_round[{label}]", "mean"]
        assert mean == pytest.approx(one.regret_objective.value, rel=1e-12)
        for row in one.to_dict()["arms"]:
            name = f"{label}: {row['arm']}"
            seen = table.loc[f"best_arm_probability[{name}]", "mean"]
            assert seen == pytest.approx(row["p_best_objective"], abs=1e-12)
            assert arms.loc[name, "n"] == row["n"]
            assert (arms.loc[name, "of_group"], arms.loc[name, "arm"]) == (label, row["arm"])


def days(folder):
    log = bf.History(["a", "b"] * 9, [1, 0, 1] * 6, selection_probability=[[0.5, 0.5]] * 18)
    bf.audit(log.before(6), objective=False).save(folder / "a.nc")
    return log


def test_of_two_who_go_on_from_one_file_the_second_is_refused(tmp_path):
    log = days(tmp_path)
    path = tmp_path / "a.nc"
    one, other = bf.load_audit(path), bf.load_audit(path)
    one = one.resume(log.rounds(6, 12))
    one.save(path)
    held = path.read_bytes()
    late = other.resume(log.rounds(6, 12))
    with pytest.raises(bf.DataError, match=r"a\.nc' was replaced since") as caught:
        late.save(path)
    assert caught.value.kind == "replaced"
    assert path.read_bytes() == held
    late.save(tmp_path / "b.nc")  # another name is free
    # who wrote the file last may write it again, and what goes on from there too
    one.save(path)
    one.resume(log.rounds(12, 18)).save(path)
    assert bf.load_audit(path).summary.n_rounds == 18
    (tmp_path / "link.nc").symlink_to(path)
    with pytest.raises(bf.DataError, match="was replaced"):
        bf.merge(other, bf.audit(log.rounds(6, 12), prior=other, objective=False)).save(
            tmp_path / "link.nc"
        )
    path.unlink()
    late.save(path)  # nothing to lose any more
    # a group as one log
    group = bf.audit({"x": log.before(6)}, objective=False)
    group.save(path)
    first, second = (bf.load_audit(path).resume({"x": log.rounds(6, 12)}) for _ in range(2))
    first.save(path)
    with pytest.raises(bf.DataError, match="was replaced"):
        second.save(path)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_of_several_processes_at_the_same_time_one_replaces_the_file(tmp_path):
    log = days(tmp_path)
    path = tmp_path / "a.nc"
    for _ in range(3):
        days(tmp_path)
        loaded = bf.load_audit(path)
        after = loaded.resume(log.rounds(6, 12))
        children = []
        for _ in range(4):
            child = os.fork()
            if child == 0:
                try:
                    after.save(path)
                    os._exit(0)
                except bf.DataError:
                    os._exit(3)
                finally:
                    os._exit(4)
            children.append(child)
        ended = sorted(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children)
        assert ended == [0, 3, 3, 3]
        assert bf.load_audit(path).summary.n_rounds == 12


def test_labels_of_any_kind_and_a_log_without_pairs(tmp_path):
    labels = ["x", "Zoë / β", "001"]
    log = bf.History(np.array([0, 1, 2], np.int32), [1, 0, np.nan], arms=labels)
    audit = bf.audit(log, seed=1, draws=3)
    audit.save(tmp_path / "a.nc")
    assert bf.load_audit(tmp_path / "a.nc").to_dict() == audit.to_dict()
    one = bf.audit(bf.History([0], [1], selection_probability=[[1.0]]), seed=1, draws=5)
    one.save(tmp_path / "a.nc")
    assert bf.load_audit(tmp_path / "a.nc").to_dict() == one.to_dict()
