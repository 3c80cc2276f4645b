"""A log that workers share gives the numbers of one machine, whatever becomes of a worker."""

import os
import signal

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import bayesfair as bf
from bayesfair.errors import DataError, OptionError

distributed = pytest.importorskip("distributed", reason="Dask comes with the extra `distributed`")

N, K = 2400, 4


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=3, threads_per_worker=1, dashboard_address="127.0.0.1:0"
        ) as workers,
        distributed.Client(workers) as one,
    ):
        yield one


def kill_one(client):
    """Kill the process of a worker that still has one."""
    for worker in client.cluster.workers.values():
        if worker.pid is not None:
            try:
                os.kill(worker.pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
            return worker.pid
    raise AssertionError("no worker is left")


class OneWorker:
    """A client whose tasks all go to the same worker."""

    def __init__(self, client):
        self.gather, self.cancel, self._submit = client.gather, client.cancel, client.submit
        self._worker = list(client.scheduler_info()["workers"])[:1]
        self.n_tasks = 0

    def submit(self, *args, **options):
        self.n_tasks += 1
        return self._submit(*args, workers=self._worker, **options)


def table(family="bernoulli", *, late=True, seed=1):
    """Rewards known up to two partitions of six later."""
    rng = np.random.default_rng(seed)
    pi = rng.dirichlet(np.ones(K), N)
    arm = np.array([rng.choice(K, p=p) for p in pi])
    reward = rng.normal(arm, 2.0) if family == "normal" else rng.random(N) < 0.2 + 0.1 * arm
    known = np.arange(N) + rng.integers(1, N // 3 if late else 2, N)
    return pa.table({
        "t": np.arange(N), "arm": [f"a{i}" for i in arm], "reward": reward.astype(float),
        "known_at": known, **{f"p_a{i}": pi[:, i] for i in range(K)},
    })  # fmt: skip


def written(folder, rows, sizes, suffix="parquet"):
    start = 0
    for i, size in enumerate(sizes):
        path = folder / f"part-{i}.{suffix}"
        write = pq.write_table if suffix == "parquet" else pyarrow.csv.write_csv
        write(rows.slice(start, size), path)
        start += size
    assert start == len(rows)
    return folder


def same(one, other, path="", within=1e-12):
    assert type(one) is type(other), path
    if isinstance(one, dict):
        assert set(one) == set(other), path
        for key, value in one.items():
            same(value, other[key], f"{path}.{key}", within)
    elif isinstance(one, list):
        assert len(one) == len(other), path
        for i, pair in enumerate(zip(one, other, strict=True)):
            same(*pair, f"{path}[{i}]", within)
    elif isinstance(one, float):
        assert one == pytest.approx(other, rel=within, abs=within), path
    else:
        assert one == other, path


@pytest.mark.parametrize(("family", "suffix"), [("bernoulli", "csv"), ("normal", "parquet")])
def test_the_numbers_are_those_of_one_machine(client, tmp_path, family, suffix):
    log = written(tmp_path, table(family), [400, 400, 5, 795, 400, 400], suffix)
    scan = bf.scan_history(log, order="t", known_at="known_at")
    here = bf.audit(scan, seed=1, from_round=500)
    there = bf.audit(scan, seed=1, from_round=500, client=client)
    same(here.to_dict(), there.to_dict())
    assert there.state.same_as(here.state)


@pytest.mark.parametrize("model", ["cells", "pooled", "linear"])
def test_contexts_that_come_late_are_those_of_one_machine(client, tmp_path, model):
    linear = model == "linear"
    rows = table("normal" if linear else "bernoulli")
    site = np.where(np.arange(N) % 7 < 3, "x", np.where(np.arange(N) < 900, "y", "z"))
    rows = rows.append_column("site", [site.tolist()]).append_column("x", [np.arange(N) % 11 / 5])
    log = written(tmp_path, rows, [800, 5, 795, 800])
    scan = bf.scan_history(
        log, order="t", known_at="known_at", context=["site", "x"] if linear else "site"
    )
    asked = {"context_model": model, "from_round": 500}
    asked |= {"objective": False} if linear else {"seed": 1, "draws": 100}
    here, there = bf.audit(scan, **asked), bf.audit(scan, client=client, **asked)
    same(here.to_dict(), there.to_dict(), within=1e-9 if linear else 1e-12)
    if linear:  # V is computed anew after so many rewards of a part
        one, other = (audit.state.beliefs.featured.beliefs for audit in (here, there))
        assert np.allclose(one.mean, other.mean, rtol=1e-9, atol=1e-9)
        assert np.allclose(one.spread, other.spread, rtol=1e-9, atol=1e-9)
    else:
        assert there.state.same_as(here.state)


def test_delays_across_partitions_matter(tmp_path):
    """The rewards that travel change the beliefs: without them the numbers would be others."""
    log = written(tmp_path, table(), [400] * 6)
    late = bf.scan_history(log, order="t", known_at="known_at")
    at_once = bf.scan_history(log, order="t", known_at=False)
    found = [bf.audit(scan, objective=False).regret.value for scan in (late, at_once)]
    assert abs(found[0] - found[1]) > 1e-3
    assert np.max(pq.read_table(log / "part-0.parquet")["known_at"].to_numpy()) > 800


def test_a_prior_that_is_still_learned_goes_through_short_partitions(client, tmp_path):
    log = written(tmp_path, table("normal", late=False), [3, 7, 9, 2381])
    scan = bf.scan_history(log, order="t")
    here, there = bf.audit(scan, seed=1), bf.audit(scan, seed=1, client=client)
    same(here.to_dict(), there.to_dict())


def test_one_worker_gives_the_bits_of_two(client, tmp_path):
    """Fixed partitions: which worker does a task, and in which order, is nowhere in the numbers."""
    log = written(tmp_path, table(), [700, 300, 1000, 400])
    scan = bf.scan_history(log, order="t", known_at="known_at")
    two = bf.audit(scan, seed=1, client=client).to_dict()
    one = OneWorker(client)
    assert bf.audit(scan, seed=1, client=one).to_dict() == two
    assert one.n_tasks > 8


def test_row_groups_of_one_file_are_shared(client, tmp_path, monkeypatch):
    monkeypatch.setattr("bayesfair.readers.files.parquet._PARTITION", 500)
    path = tmp_path / "log.parquet"
    pq.write_table(table(), path, row_group_size=200)
    scan = bf.scan_history(path, order="t", known_at="known_at")
    assert [p.n_rounds for p in scan.partitions()] == [400] * 6
    same(bf.audit(scan, seed=1).to_dict(), bf.audit(scan, seed=1, client=client).to_dict())


def test_a_partition_that_cannot_be_read_is_named(client, tmp_path):
    log = written(tmp_path, table(), [800] * 3, "csv")
    path = log / "part-1.csv"
    path.write_text(path.read_text().replace("a2", "nobody", 1))
    scan = bf.scan_history(log, order="t", known_at=False)
    with pytest.raises(DataError, match=r"part-1\.csv"):
        bf.audit(scan, seed=1, client=client)


def test_a_thinned_log_is_refused_by_the_reason(client, tmp_path):
    kept = np.where(np.arange(N) < 2300, 1.0, 0.5)  # in the last partition alone
    log = written(tmp_path, table().append_column("kept", [kept]), [800] * 3)
    scan = bf.scan_history(log, order="t", known_at="known_at", keep_prob="kept")
    for options in ({}, {"client": client}):
        with pytest.raises(DataError) as error:
            bf.audit(scan, seed=1, **options)
        assert (error.value.kind, error.value.column) == ("thinned", "keep_prob")


def test_a_dask_frame_gives_the_numbers_of_its_rows(client, tmp_path):
    frames = pytest.importorskip("dask.dataframe")
    rows = table()
    frame = frames.from_pandas(rows.to_pandas(), npartitions=5)
    scan = bf.scan_history(frame, order="t", known_at="known_at")
    here = bf.audit(scan, seed=1).to_dict()
    same(bf.audit(scan, seed=1, client=client).to_dict(), here)
    pq.write_table(rows, tmp_path / "log.parquet")
    file = bf.audit(
        bf.scan_history(tmp_path / "log.parquet", order="t", known_at="known_at"), seed=1
    )
    for part in ("subjective", "objective", "calibration", "arms"):
        same(file.to_dict()[part], here[part])
    assert bf.read_history(frame, order="t", known_at="known_at").n_rounds == N
    by_time = frame.set_index("t", sorted=True)
    assert bf.scan_history(by_time, order="t", known_at=False).reading.layout.order == "t"
    with pytest.raises(OptionError, match="persist") as error:
        held = bf.scan_history(frame.persist(), order="t", known_at=False)
        bf.audit(held, seed=1, client=client)
    assert error.value.column == "client"
    broken = frame.map_partitions(lambda part: part.drop(columns="reward"), meta=frame._meta)
    with pytest.raises(DataError, match=r"partition \d of 5"):
        list(bf.scan_history(broken, order="t", known_at=False).chunks())


def test_probabilities_from_draws_are_those_of_one_machine(client, tmp_path):
    scan = bf.scan_history(written(tmp_path, table(), [800] * 3), order="t", known_at="known_at")
    asked = {"seed": 1, "draws": 100, "propensity_draws": 2000}
    here, there = bf.audit(scan, **asked), bf.audit(scan, client=client, **asked)
    same(here.to_dict(), there.to_dict())
    whole = bf.audit(bf.read_history(tmp_path, order="t", known_at="known_at"), **asked)
    same(whole.to_dict()["monte_carlo"], here.to_dict()["monte_carlo"])
    assert there.to_dict()["monte_carlo"]["draws"] == 2000
    assert here.verdict == whole.verdict


def test_files_in_no_order_are_refused(client, tmp_path):
    rows = table(late=False)
    for i, name in enumerate("ab"):
        pq.write_table(rows.slice(i * 1200, 1200), tmp_path / f"{name}.parquet")
    with pytest.raises(DataError) as error:
        bf.audit(bf.scan_history(tmp_path, order=False), seed=1, client=client)
    assert error.value.kind == "no_order"
    (tmp_path / "a.parquet").rename(tmp_path / "c.parquet")
    with pytest.raises(DataError) as error:
        bf.audit(bf.scan_history(tmp_path, order="t", known_at=False), seed=1, client=client)
    assert (error.value.kind, error.value.column) == ("needs_whole", "t")


def test_many_groups_are_spread(client, tmp_path):
    rows = table(late=False).append_column("g", pa.array(np.arange(N) % 40))
    path = tmp_path / "log.parquet"
    pq.write_table(rows, path)
    logs = bf.read_history(path, order="t", by="g", known_at=False)
    same(bf.audit(logs, seed=1).to_dict(), bf.audit(logs, seed=1, client=client).to_dict())


@pytest.mark.parametrize(
    ("given", "column"),
    [({"beliefs_model": "bernoulli_independent"}, "beliefs_model"), ({"partial": "x"}, "partial")],
)
def test_what_cannot_be_shared_is_refused(client, tmp_path, given, column):
    scan = bf.scan_history(written(tmp_path, table(), [N]), order="t", known_at=False)
    with pytest.raises(OptionError) as error:
        bf.audit(scan, seed=1, client=client, **given)
    assert (error.value.kind, error.value.column) == ("unused_option", column)
    with pytest.raises(OptionError) as error:
        bf.audit(bf.read_history(tmp_path, order="t", known_at=False), seed=1, client=client)
    assert error.value.column == "client"
    with pytest.raises(OptionError) as error:
        bf.audit(scan, seed=1, client="local")
    assert error.value.column == "client"


# the last two kill a worker each; whether, and when, Dask replaces one is up to it


def test_a_worker_that_is_killed_changes_no_bit(client, tmp_path):
    log = written(tmp_path, table(), [400] * 6)
    scan = bf.scan_history(log, order="t", known_at="known_at")
    whole = bf.audit(scan, seed=1, client=client).to_dict()
    killed = []

    def kill(*_):
        if not killed:
            killed.append(kill_one(client))

    assert bf.audit(scan, seed=1, client=client, progress=kill).to_dict() == whole
    assert killed


def test_many_fits_and_runs_are_those_of_one_machine(client):
    runs = bf.simulate("sd_ts", [0.6, 0.5], 60, seed=3, n_runs=5)
    there = bf.simulate("sd_ts", [0.6, 0.5], 60, seed=3, n_runs=5, client=client)
    assert list(runs) == list(there)
    for label, run in runs.items():
        np.testing.assert_array_equal(run.arm, there[label].arm)
        np.testing.assert_array_equal(run.reward, there[label].reward)
        np.testing.assert_array_equal(run.selection_probability, there[label].selection_probability)
    told, killed = [], []

    def kill(done, total, what):
        told.append((done, total, what))
        if not killed:
            killed.append(kill_one(client))

    fits = bf.fit(runs, seed=1, draws=50)
    shared = bf.fit(runs, seed=1, draws=50, client=client, progress=kill)
    assert told[-1] == (5, 5, "fits") and list(shared) == list(fits) == list(runs)
    for label, tree in fits.items():
        np.testing.assert_array_equal(
            tree["posterior"]["theta"].values, shared[label]["posterior"]["theta"].values
        )
        np.testing.assert_array_equal(
            tree["posterior"]["theta"].values,
            bf.fit(runs[label], seed=1, draws=50)["posterior"]["theta"].values,
        )
    wrong = {**runs, "bad": 7}
    for options in ({}, {"client": client}):
        with pytest.raises(OptionError, match="group 'bad'"):
            bf.fit(wrong, seed=1, draws=50, **options)
    with pytest.raises(OptionError) as error:
        bf.fit(runs["0"], seed=1, client=client)
    assert error.value.column == "client"
    with pytest.raises(OptionError) as error:
        bf.simulate("sd_ts", [0.6, 0.5], 60, seed=3, client=client)
    assert error.value.column == "client"
