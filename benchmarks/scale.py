"""Reading and auditing long logs: against a bare reader, against length, against workers.

    python benchmarks/scale.py [--rounds 100000,1000000] [--formats parquet,csv,jsonl,dsjson]
                               [--workers 1,2]
    python benchmarks/scale.py --memory 1 --rounds 20000000 --formats parquet,csv,jsonl,json

Every figure is of a process of its own on one core (10 arms, the whole rule logged):

* reading: `scan_history` alone over the bare reader (pyarrow; `json` for JSON lines);
* whole: scan and audit over the bare reader and the audit of the same log in memory;
* peak: the most memory that the process of the scan and audit held.

Seconds are those of the processor, of all threads: a busy machine tells the same (but --workers,
which needs an idle one). Medians of --repeats runs.

With --memory GB, each log is only scanned and audited, once: the script fails where the process
held more.

Every task is run before the clock starts, on a log of two parts or on the log itself, if that is
shorter: imports and compiled code are in no figure. With --workers, the Parquet log is cut into 8
files, which the workers of a local Dask cluster share.
"""

import argparse
import itertools
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

K = 10
PIECE = 250_000
SHORT = 300_000  # more than one part


def pieces(n):
    """Yield the rounds of a log, piece by piece: whoever asks gets the same."""
    import pyarrow as pa

    rng = np.random.default_rng(1)
    for start in range(0, n, PIECE):
        size = min(PIECE, n - start)
        pi = rng.dirichlet(np.ones(K), size).round(6)
        pi[:, -1] = 1 - pi[:, :-1].sum(axis=1).round(6)
        pi = np.abs(pi).round(6)
        arm = np.minimum((rng.random((size, 1)) > pi.cumsum(axis=1)).sum(axis=1), K - 1)
        reward = (rng.random(size) < 0.2 + 0.05 * arm).astype(np.int64)
        yield pa.table({
            "timestamp": np.arange(start, start + size),
            "arm": np.array([f"a{i}" for i in range(K)])[arm], "reward": reward,
            **{f"p_a{i}": pi[:, i] for i in range(K)},
        })  # fmt: skip


def write(kind, n, path):
    import pyarrow.csv as pc
    import pyarrow.parquet as pq

    tables = pieces(n)
    first = next(tables)
    tables = itertools.chain([first], tables)
    if kind in ("parquet", "csv"):
        writer = {"parquet": pq.ParquetWriter, "csv": pc.CSVWriter}[kind](path, first.schema)
        with writer:
            for table in tables:
                writer.write_table(table)
        return
    between, end = (",\n", "]\n") if kind == "json" else ("\n", "\n")
    with path.open("w") as file:
        file.write("[" if kind == "json" else "")
        for i, table in enumerate(tables):
            if kind == "dsjson":
                rows = [json.dumps(dsjson(row)) for row in table.to_pylist()]
            else:  # as json.dumps writes them, several times as fast
                text = table.to_pandas().to_json(orient="records", lines=True, double_precision=6)
                rows = text.splitlines()
            file.write((between if i else "") + between.join(rows))
        file.write(end)


def written(kind, n, folder):
    """Return a log, beside which a short one stands if it is long."""
    short = folder / f"short.{kind}"
    if n > SHORT and not short.exists():
        write(kind, SHORT, short)
    write(kind, n, folder / f"log.{kind}")
    return folder / f"log.{kind}"


def dsjson(row):
    chosen = int(row["arm"][1:])
    order = [chosen, *(i for i in range(K) if i != chosen)]
    return {
        "_label_cost": -row["reward"], "_label_probability": row[f"p_a{chosen}"],
        "_label_Action": chosen + 1, "_labelIndex": chosen, "Timestamp": row["timestamp"],
        "a": [i + 1 for i in order], "p": [row[f"p_a{i}"] for i in order],
    }  # fmt: skip


def bare(kind, path):
    import pyarrow.csv as pc
    import pyarrow.parquet as pq

    if kind == "parquet":
        with pq.ParquetFile(path, pre_buffer=False) as file:
            return sum(batch.num_rows for batch in file.iter_batches(batch_size=1 << 16))
    if kind == "csv":
        return sum(batch.num_rows for batch in pc.open_csv(path))
    with path.open() as file:
        return len(json.load(file)) if kind == "json" else sum(bool(json.loads(x)) for x in file)


def task(kind, what, path):
    """Return what is timed; what it needs besides is made here."""
    import bayesfair as bf

    if what == "bare":
        return lambda: bare(kind, path)
    if what == "scan":
        return lambda: sum(part.n_rounds for part in bf.scan_history(path).chunks())
    if what == "audit":
        return lambda: bf.audit(bf.scan_history(path), seed=1)
    log = bf.read_history(path)
    return lambda: bf.audit(log, seed=1)


def one(kind, what, path):
    """Return seconds and peak memory of one task, in this process."""
    short = path.with_name(f"short{path.suffix}")
    task(kind, what, short if short.exists() else path)()  # imports, compiled code
    run = task(kind, what, path)
    begin = time.process_time()
    run()
    seconds = time.process_time() - begin
    return {"seconds": seconds, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6}


def measured(kind, what, path):
    """Return seconds and peak memory of a task in a process of its own, on one core."""
    core = {min(os.sched_getaffinity(0))}
    done = subprocess.run(
        [sys.executable, __file__, "--one", kind, what, str(path)],
        check=True, capture_output=True, text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, core),
    )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1])


def formats(kinds, lengths, repeats, folder):
    print(
        "format    rounds  bare s  scan s  reading  audit s  whole  share reading  rounds/s  "
        "peak GB"
    )
    for kind, n in itertools.product(kinds, lengths):
        path = written(kind, n, folder)
        whole = n <= 2_000_000  # what fits into memory
        tasks = ("bare", "scan", "audit", "memory") if whole else ("bare", "scan", "audit")
        # in turn: whatever slows the machine for a while, slows all of them
        runs = [{w: measured(kind, w, path) for w in tasks} for _ in range(repeats)]
        seconds = {w: statistics.median(run[w]["seconds"] for run in runs) for w in tasks}
        peak = max(run["audit"]["peak"] for run in runs)
        beside = seconds["bare"] + seconds.get("memory", float("nan"))
        print(
            f"{kind:8} {n:8} {seconds['bare']:7.2f} {seconds['scan']:7.2f} "
            f"{seconds['scan'] / seconds['bare']:8.2f} {seconds['audit']:8.2f} "
            f"{seconds['audit'] / beside:6.2f} "
            f"{seconds['scan'] / seconds['audit']:14.2f} {n / seconds['audit']:9.3g} "
            f"{peak:8.2f}",
            flush=True,
        )
        path.unlink()


def memory(kinds, lengths, most, folder):
    """Scan and audit each log once, and fail where that took more than `most` GB."""
    print("format    rounds  audit s  peak GB")
    over = []
    for kind, n in itertools.product(kinds, lengths):
        path = written(kind, n, folder)
        found = measured(kind, "audit", path)
        print(f"{kind:8} {n:8} {found['seconds']:8.2f} {found['peak']:8.2f}", flush=True)
        over += [f"{kind}, {n} rounds"] if found["peak"] > most else []
        path.unlink()
    if over:
        raise SystemExit(f"more than {most:g} GB: {'; '.join(over)}")


def workers(counts, n, folder):
    import pyarrow as pa
    import pyarrow.parquet as pq
    from distributed import Client, LocalCluster

    import bayesfair as bf

    logs = folder / "logs"
    logs.mkdir()
    whole = pa.concat_tables(pieces(n))
    for i, start in enumerate(range(0, n, -(-n // 8))):
        pq.write_table(whole.slice(start, -(-n // 8)), logs / f"part-{i}.parquet")
    scan = bf.scan_history(logs, order="timestamp")
    print(f"workers  seconds  rounds/s  ({n} rounds, 8 Parquet files)")
    for count in counts:
        with (
            LocalCluster(
                n_workers=count, threads_per_worker=1, dashboard_address="127.0.0.1:0"
            ) as cluster,
            Client(cluster) as client,
        ):
            client.run(bf.audit, scan, seed=1)  # every worker has loaded what it needs
            begin = time.perf_counter()
            bf.audit(scan, seed=1, client=client)
            seconds = time.perf_counter() - begin
        print(f"{count:7} {seconds:8.2f} {n / seconds:9.3g}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", default="100000,1000000")
    parser.add_argument("--formats", default="parquet,csv,jsonl,dsjson")
    parser.add_argument("--workers", default="")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--memory", type=float)
    parser.add_argument("--one", nargs=3)
    asked = parser.parse_args()
    if asked.one:
        kind, what, path = asked.one
        print(json.dumps(one(kind, what, Path(path))))
        raise SystemExit
    lengths = [int(float(x)) for x in asked.rounds.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        if asked.memory is not None:
            memory(asked.formats.split(","), lengths, asked.memory, Path(folder))
        elif asked.formats:
            formats(asked.formats.split(","), lengths, asked.repeats, Path(folder))
        if asked.workers:
            workers([int(x) for x in asked.workers.split(",")], lengths[-1], Path(folder))
