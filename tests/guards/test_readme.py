"""Every Python block of README runs, and so does every command of the shell in it."""

import json
import re
import shlex
from pathlib import Path

import command_line
import numpy as np
import pandas as pd
import pytest

from bayesfair import examples

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.S)
LINES = [
    line for block in re.findall(r"```text\n(.*?)```", README, flags=re.S)
    for line in block.splitlines() if line.startswith("bayesfair ")
]  # fmt: skip


def test_there_are_examples():
    assert BLOCKS and len(LINES) > 12


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return a folder with the files that README's commands name."""
    folder, rng = tmp_path_factory.mktemp("readme"), np.random.default_rng(1)
    n, models = 1000, np.array(["a", "b", "c", "d"])
    log = examples.path("ecmo").read_bytes()
    for name in ("log.csv", "monday.csv", "tuesday.csv"):
        (folder / name).write_bytes(log)
    pd.DataFrame(
        {"timestamp": np.arange(60), "item_id": rng.choice(models, 60), "p": 0.25,
         "click": rng.integers(0, 2, 60), "position": np.tile([1, 2], 30)}
    ).to_parquet(folder / "log.parquet")  # fmt: skip
    pairs = np.array([rng.choice(4, 2, replace=False) for _ in range(n)])
    battles = pd.DataFrame(
        {"model_a": models[pairs[:, 0]], "model_b": models[pairs[:, 1]], "tstamp": np.arange(n),
         "winner": rng.choice(["model_a", "model_b"], n)}
    )  # fmt: skip
    battles[["model_a", "model_b", "winner"]].to_csv(folder / "battles.csv", index=False)
    battles.to_json(folder / "battles.jsonl", orient="records", lines=True)
    pd.DataFrame(
        [(i, j, 3, 2, 1) for i in models for j in models if i < j],
        columns=["i", "j", "w_ij", "w_ji", "t_ij"],
    ).to_csv(folder / "counts.csv", index=False)
    head = ["NUMBER ALTERNATIVES: 3", "NUMBER VOTERS: 6", "NUMBER UNIQUE ORDERS: 3",
            *(f"ALTERNATIVE NAME {i}: {a}" for i, a in enumerate("abc", 1))]  # fmt: skip
    ballots = [f"# {line}" for line in head] + ["3: 1,2", "2: 2,3,1", "1: 3"]
    (folder / "ballots.soi").write_text("\n".join(ballots) + "\n")
    picks = rng.choice(models, 40)
    chosen = [(t, a, int(a == pick)) for t, pick in enumerate(picks) for a in models]
    pd.DataFrame(chosen, columns=["id", "alt", "chosen"]).to_csv(folder / "long.csv", index=False)
    return folder


@pytest.mark.filterwarnings("always::bayesfair.BayesfairWarning")
@pytest.mark.parametrize("line", LINES)
def test_commands_run_as_they_are_printed(capsys, monkeypatch, files, line):
    monkeypatch.chdir(files)
    words = shlex.split(line, comments=True)
    while words:
        end = words.index("&&") if "&&" in words else len(words)
        done = command_line.run(capsys, *words[1:end])
        # a gate may say no, which is status 1
        assert done.status in ((0, 1) if "--fail-on" in words else (0,)), done.err
        assert done.out
        words = words[end + 1 :]
    if "--json" in line:
        assert json.loads((files / line.split("--json ")[1].split()[0]).read_text())


@pytest.mark.parametrize("block", BLOCKS, ids=lambda b: b.strip().splitlines()[0][:40])
def test_python_block_runs(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "README.md", "exec"), {"__name__": "readme"})


def test_both_commands_are_those_of_ci():
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    commands = re.findall(r"```(?:sh|bash)\n(.*?)```", README, flags=re.S)[:2]
    assert len(commands) == 2
    for command in commands:
        assert command.strip() in ci
