"""The file of a saved audit: opened by others, kept rounds, and all the ways to be broken."""

import json

import h5py
import numpy as np
import pytest
import xarray as xr

import bayesfair as bf
from bayesfair import examples


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
    file.attrs["bayesfair_format"] = 5


def older(file):
    del file.attrs["bayesfair_format"]


def swapped_arms(file):
    for group in ("posterior", "series", "arms", "rounds"):
        file[group]["arm"][:] = file[group]["arm"][:][::-1]


def renamed_arms(file):
    written = str(file["state"].attrs["audit"])
    file["state"].attrs["audit"] = written.replace("conventional", "control")
    for group in ("posterior", "series", "arms", "rounds"):
        file[group]["arm"][:] = ["ECMO", "control"]


def one_number(file):
    file["state"]["end"]["alpha"][0] += 1


def one_draw(file):
    file["posterior"]["regret_per_round"][0, 0] = 0


def one_round(file):
    file["rounds"]["fairness_regret"][3] = 0


def without(*names):
    def change(file):
        group = file
        for name in names[:-1]:
            group = group[name]
        del group[names[-1]]

    return change


BROKEN = {
    "text": (lambda p: p.write_text("arm,reward\na,1\n"), ["not a NetCDF-4 file"]),
    "empty": (lambda p: p.write_bytes(b""), ["not a NetCDF-4 file"]),
    "cut": (cut, ["not a NetCDF-4 file", "only a part"]),
    "other": (other, ["holds no bayesfair audit", "Audit.save"]),
    "newer": (edited(newer), ["format 5", "newer than format 4", "Upgrade"]),
    "older": (edited(older), ["format 1", "what this version goes on from", "Audit the log again"]),
    "no state": (edited(without("state")), ["lacks the group 'state'"]),
    "no sums": (edited(without("state", "sums")), ["lacks the group or variable 'sums'"]),
    "no guards": (edited(without("state", "guards")), ["lacks the group or variable 'guards'"]),
    "no cells": (edited(without("state", "cells")), ["lacks the group or variable 'cells'"]),
    "no plays": (edited(without("state", "sums", "plays")), ["lacks", "'plays'"]),
    "no draws": (edited(without("posterior")), ["lacks", "'smallest_eps2'"]),
    "swapped arms": (edited(swapped_arms), ["was changed", "'posterior'", "conventional"]),
    "renamed arms": (edited(renamed_arms), ["not those that were saved"]),
    "one number": (edited(one_number), ["not those that were saved", "'state'"]),
    "one draw": (edited(one_draw), ["not those that were saved", "'posterior'"]),
    "one round": (edited(one_round), ["not those that were saved", "'rounds'"]),
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


def test_a_group_file_that_lost_a_log(tmp_path):
    log = bf.History([0, 1], [1, 0], selection_probability=[[0.5, 0.5]] * 2)
    path = tmp_path / "two.nc"
    bf.audit({"north/west": log, "": log}, objective=False).save(path, rounds=True)
    loaded = bf.load_audit(path)
    assert list(loaded.audits) == ["north/west", ""]
    assert loaded["north/west"].rounds().sizes["round"] == 2
    with h5py.File(path, "r+") as file:
        del file["group_1"]
    with pytest.raises(bf.DataError, match="'group_1'"):
        bf.load_audit(path)


def test_labels_of_any_kind_and_a_log_without_pairs(tmp_path):
    labels = ["x", "Zoë / β", "001"]
    log = bf.History(np.array([0, 1, 2], np.int32), [1, 0, np.nan], arms=labels)
    audit = bf.audit(log, seed=1, draws=3)
    audit.save(tmp_path / "a.nc")
    assert bf.load_audit(tmp_path / "a.nc").to_dict() == audit.to_dict()
    one = bf.audit(bf.History([0], [1], selection_probability=[[1.0]]), seed=1, draws=5)
    one.save(tmp_path / "a.nc")
    assert bf.load_audit(tmp_path / "a.nc").to_dict() == one.to_dict()
