"""Every output of the package: how it is written, and how a whole one is told from a part."""

import json
from pathlib import Path

import numpy as np
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import xarray as xr

import bayesfair as bf
from bayesfair.audit.log.per_round import write_rounds
from bayesfair.base.writing import write_text, write_tree
from bayesfair.report.simulation import write_runs


def _log(n, seed):
    rng = np.random.default_rng(seed)
    return bf.History(
        rng.choice(["a", "b", "c"], n),
        rng.integers(0, 2, n),
        selection_probability=np.full((n, 3), 1 / 3),
        arms=["a", "b", "c"],
    )


AUDIT = bf.audit(_log(20_000, 1), draws=400, seed=1)
RUN = {"run": bf.simulate(bf.policies.SDTS(), bf.rewards.Bernoulli([0.6, 0.4]), 20_000, seed=1)}
FIT = bf.fit(bf.Comparisons.from_duels(["a", "b"] * 9, ["b", "a"] * 9, ["left"] * 18), seed=1)


def _plot(path):
    from matplotlib.figure import Figure

    from bayesfair.base.writing import replacing

    figure = Figure(figsize=(2, 2))
    figure.subplots().plot(np.arange(9))
    with replacing(path) as draft:
        figure.savefig(draft, format="png")


# name of the file -> (write it, read the whole of it)
OUTPUTS = {
    "audit.nc": (AUDIT.save, lambda path: bf.load_audit(path).verdict),
    "rounds.parquet": (
        lambda path: write_rounds(AUDIT, path),
        lambda path: pq.read_table(path).num_rows,
    ),
    "audit.html": (
        lambda path: bf.write_report(AUDIT, path),
        lambda path: Path(path).read_text("utf-8").rstrip().endswith("</html>"),
    ),
    "audit.json": (
        lambda path: write_text(path, json.dumps(AUDIT.to_dict(), indent=2)),
        lambda path: json.loads(Path(path).read_text("utf-8"))["verdict"],
    ),
    "fit.nc": (
        lambda path: write_tree(FIT, path),
        lambda path: xr.open_datatree(path, engine="h5netcdf").load().attrs["model"],
    ),
    "ranks.png": (_plot, lambda path: Path(path).read_bytes()[-8:].hex()),
    "run.csv": (
        lambda path: write_runs(RUN, path),
        lambda path: pa_csv.read_csv(path).num_rows,
    ),
    "run.parquet": (
        lambda path: write_runs(RUN, path),
        lambda path: pq.read_table(path).num_rows,
    ),
}
