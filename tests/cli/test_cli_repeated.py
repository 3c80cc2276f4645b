"""No value of an option is passed over: lists are joined, all else given twice is refused."""

import json

import pytest
import typer
from command_line import run

from bayesfair.cli import value
from bayesfair.cli.program import app

COMMANDS = typer.main.get_command(app).commands
EVERY = COMMANDS | {f"model {name}": c for name, c in COMMANDS["model"].commands.items()}
LISTS = {
    "audit": {"by", "arms", "context", "constant_within", "rewards", "sampler", "prior", "support",
              "value", "value_rule"},
    "columns": {"by", "arms", "context", "constant_within", "rewards"},
    "fit": {"outcomes", "items", "wins", "orderings", "ranks", "sampler"},
    "audit-comparisons": {"outcomes", "items", "sampler"},
    "simulate": {"param", "contexts"},
}  # fmt: skip
LOG = "arm,reward,p_a,p_b,dev,ctry\n" + "a,1,.5,.5,x,u\nb,0,.5,.5,y,u\n" * 3


@pytest.mark.parametrize("name", EVERY)
def test_every_option_given_twice_is_joined_or_refused_by_name(capsys, name):
    for parameter in EVERY[name].params:
        flag = parameter.opts[0]
        if not flag.startswith("-"):
            continue
        given = [flag, *(parameter.secondary_opts or [flag])] if parameter.is_flag else [
            flag, "1", f"{flag}=2",
        ]  # fmt: skip
        done = run(capsys, *name.split(), *given, *(["x=1", "y=2"] if name == "simulate" else []))
        twice = done.error is not None and done.error.kind == "given_twice"
        assert twice is (parameter.name not in LISTS.get(name, ())), (flag, done)
        if twice:
            assert (done.status, done.error.column, done.out) == (2, parameter.name, "")
            assert flag in done.err
            assert len(done.error.value) == 2


@pytest.mark.parametrize("flag", ["--by", "--context"])
def test_names_that_are_given_one_by_one_are_those_with_a_comma(capsys, tmp_path, flag):
    path = tmp_path / "log.csv"
    path.write_text(LOG)
    shared = ["columns", path]
    together = run(capsys, *shared, flag, "dev,ctry")
    assert together.status == 0
    assert run(capsys, *shared, flag, "dev", flag, "ctry").out == together.out


def test_what_stands_before_the_command_counts_too(capsys):
    done = run(capsys, "--quiet", "--quiet", "examples")
    assert (done.status, done.error.kind) == (2, "given_twice")
    done = run(capsys, "--quiet", "examples", "--quiet")  # once each
    assert (done.status, done.out) == (0, "")


def test_rules_to_value_are_joined_in_their_order(capsys, tmp_path, monkeypatch):
    told = []
    monkeypatch.setattr(value, "show_progress", lambda: lambda *done: told.append(done))
    path = tmp_path / "log.csv"
    path.write_text(LOG)
    done = run(capsys, "audit", path, "--no-objective", "--json", "-",
               "--value", "uniform", "--value", "greedy")  # fmt: skip
    rules = [one["rule"] for one in json.loads(done.out)["value"]["rules"]]
    assert told[-1] == (6, 6, "rounds")
    assert rules == ["logged", "uniform", "greedy"]
