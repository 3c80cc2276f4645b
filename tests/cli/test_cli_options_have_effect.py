"""Every option of every command changes what comes out, or is refused by the name the shell knows.

The options are found in the declarations, so that a new one without a value to try fails here.
"""

import sys

import pytest
import typer

from bayesfair import cli

COMMANDS = typer.main.get_command(cli.app).commands
LOG = (
    "arm,reward,p_a,p_b,propensity,timestamp,site,until,q_a,q_b,arm2,reward2,could_a,could_b,late,back\n"
    + "".join(
        f"{arm},{reward},{p},{1 - p:.1f},{p if arm == 'a' else round(1 - p, 1)},{t},"
        f"{'xy'[t % 2]},{max(t - 3, 0)},0.4,0.6,{other},{1 - reward},1,1,{t + 2},{50 - t}\n"
        for t, (arm, reward, p, other) in enumerate(
            [("a", 1, 0.9, "b"), ("b", 0, 0.9, "a"), ("a", 0, 0.8, "b"), ("a", 1, 0.9, "a")] * 6
        )
    )
)  # fmt: skip
DUELS = "left,right,winner,o,who,t,f,p_a,p_b,p_c,propensity,q,r_a,r_b,r_c\n" + "".join(
    f"{left},{right},{won},{50 - t},{right},{t},{right},.6,.2,.2,"
    f"{'.6' if left == 'a' else '.2'},{'.5' if left == 'a' else '.25'},.5,.25,.25\n"
    for t, (left, right, won) in enumerate(
        [("a", "b", "left"), ("a", "c", "left"), ("b", "a", "right"), ("c", "b", "right"),
         ("a", "c", "right"), ("a", "b", "left"), ("c", "a", "left")] * 6
    )
)  # fmt: skip
BALLOTS = "p1,p2,p3,w\na,b,c,1\nc,a,b,2\nb,c,a,1\na,c,b,3\n"


def without(text, *columns):
    """Return a table without some of its columns."""
    rows = [line.split(",") for line in text.splitlines()]
    kept = [i for i, name in enumerate(rows[0]) if name not in columns]
    return "\n".join(",".join(row[i] for i in kept) for row in rows) + "\n"


#: command -> kind -> (file, options that are always given)
KINDS = {
    "audit": {
        "full": (without(LOG, "propensity"), []),
        "chosen": (without(LOG, "p_a", "p_b"), []),
        "none": (
            without(LOG, "p_a", "p_b", "propensity"),
            ["--probabilities", "", "--propensity", ""],  # the file has other such columns
        ),
        "grouped": (without(LOG, "propensity"), ["--by", "site"]),
        "resumed": (without(LOG, "propensity"), ["--resume", "EARLIER"]),
    },
    "fit": {
        "duels": (without(DUELS, "propensity"), []),
        "orderings": (BALLOTS, ["--orderings", "p1,p2,p3"]),
    },
    "audit-comparisons": {
        "law": (without(DUELS, "propensity"), []),
        "propensity": (without(DUELS, "p_a", "p_b", "p_c"), []),
        "windows": (without(DUELS, "p_a", "p_b", "p_c", "propensity"), ["--window", "14"]),
    },
    "simulate": {
        "arms": ("sd_ts", ["--arms", "a=.6,b=.5", "--rounds", "30"]),
        "worths": ("fair_sd_dts", ["--arms", "a=2,b=1,c=1", "--rounds", "200"]),
    },
}  # fmt: skip
#: option -> values on the command line, for all commands or by command.
TRY = {
    "example": ["nothing"], "format": ["json"], "delimiter": [";"], "decimal": [","],
    "scan": {"": ["--scan"]}, "arm": ["arm2"], "reward": ["reward2"],
    "propensity": {"audit": ["q_a"], "": ["q"]},
    "probabilities": {"audit": ["q_{arm}"], "": ["r_{item}"]},
    "order": {"audit": ["back"], "": ["o"]}, "by": ["site"],
    "arms": {"audit": ["b,a"], "": ["a=.9,b=.2"]},
    "offered": {"audit": ["could_{arm}"], "": ["p1"]}, "offered_delimiter": ["/"],
    "known_at": ["late"], "unique": ["site"], "known_until": ["until"], "rewards": ["1=0,0=1"],
    "missing": ["drop"], "probability_tolerance": ["0.4"],
    "left": ["f"], "right": ["who"], "winner": ["who"], "loser": ["f"], "wins": ["o,t"],
    "tied": ["t"], "outcomes": ["left=right,right=left"], "winner_is": ["side"],
    "unknown": ["skip"], "both_bad": ["drop"], "ranking": ["o"], "item": ["f"], "rank": ["o"],
    "orderings": ["p2,p1,p3"], "ranks": ["o,t"], "lowest_is_best": {"": ["--no-lowest-is-best"]},
    "tie_tolerance": ["1"], "unranked": ["0"], "last_tie": ["rest"], "chosen": ["f"],
    "separator": ["/"], "first": ["left"], "weight": ["o"],
    "items": {"fit": ["a,b,c,zed"], "": ["c,b,a"]},
    "partial": ["top"], "labels": ["ids"], "slot": ["mean"], "window": ["7"],
    "from_round": ["8"], "judge": ["subjective"],
    "eps1": ["0"], "eps2": ["0.7"], "delta": ["0.3"], "divergence": ["hellinger"],
    "reward_divergence": ["hellinger"], "family": ["finite"], "prior": ["5,5"],
    "support": ["0,1,2"], "model": {"audit": ["bernoulli_independent"], "fit": ["davidson"],
                                    "": ["davidson"]},
    "tolerance": ["0.5"], "objective": {"": ["--no-objective"]},
    "prior_sensitivity": {"": ["--prior-sensitivity"]}, "ties": ["half"],
    "order_effect": {"": ["--order-effect"]}, "method": ["conjugate"], "prior_sd": ["0.1"],
    "anchor": ["b"], "check": {"": ["--check"]}, "draws": ["500"], "seed": ["7"],
    "param": ["rounds=1"], "runs": ["2"], "batch": ["5"], "delay": ["5"], "rounds": {
        "audit": ["NEW.parquet"], "": ["250"]},
    "json_file": ["NEW.json"], "save": ["NEW.nc"], "resume": ["EARLIER"], "report": ["NEW.html"],
    "plot": ["NEW.svg"], "out": ["NEW.csv"], "fail_on": ["undetermined"],
    "max_regret_per_round": ["0"],
}  # fmt: skip
#: Options that find nothing to do in these data, or whose work cannot be seen; each is seen in the
#: tests of the readers (tests/readers/test_*_options_have_effect.py) or beside.
MAY_AGREE = {
    ("audit", "offered"): "all arms are on offer",
    ("audit", "missing"): "no reward is missing",
    ("audit", "probability_tolerance"): "all rows sum to 1",
    ("audit", "known_at"): "the next round",
    ("audit", "decimal"): "without probabilities no number has decimals",
    ("audit", "scan"): "how the file is read, not what is in it",
    ("audit", "by"): "the kind `grouped` has it already",
    ("audit", "resume"): "the kind `resumed` has it already",
    ("audit", "max_regret_per_round"): "without probabilities the lower bound is 0 here",
    ("fit", "missing"): "nothing is missing",
    ("fit", "both_bad"): "there is no such judgement",
    ("fit", "unknown"): "all words are known",
    ("fit", "winner_is"): "no item is called like a side",
    ("fit", "ties"): "there are no ties",
    ("fit", "partial"): "all ballots are whole",
    ("fit", "last_tie"): "no last place is shared",
    ("audit-comparisons", "missing"): "nothing is missing",
    ("audit-comparisons", "both_bad"): "there is no such judgement",
    ("audit-comparisons", "unknown"): "all words are known",
    ("audit-comparisons", "winner_is"): "no item is called like a side",
    ("audit-comparisons", "items"): "items are listed in the order of their worths",
}
#: What a refusal names where it is not the option itself.
NAMES = {
    "format": "JSON", "resume": "e.nc", "param": "parameter", "probabilities": "--window",
    "known_until": "known_until", "items": "--partial",
    "ranks": "--unranked",
}  # fmt: skip
CASES = [
    (command, kind, parameter.name)
    for command, kinds in KINDS.items()
    for kind in kinds
    for parameter in COMMANDS[command].params
    if parameter.opts[0].startswith("--")
]


def run(monkeypatch, capsys, folder, command, source, argv):
    """Return exit status, both outputs without the folder's name, and the files written."""
    for old in folder.glob("NEW*"):
        old.unlink()
    argv = [a.replace("NEW", str(folder / "NEW")).replace("EARLIER", str(folder / "e.nc"))
            for a in argv]  # fmt: skip
    monkeypatch.setattr(sys, "argv", ["bayesfair", command, source, *argv])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    found = capsys.readouterr()
    return stop.value.code or 0, found.out, found.err, sorted(p.name for p in folder.glob("NEW*"))


@pytest.fixture(scope="module")
def before():
    """What each kind of data gives without the option, computed once."""
    return {}


@pytest.mark.parametrize(("command", "kind", "option"), CASES)
def test_an_option_changes_what_comes_out_or_is_refused(
    command, kind, option, before, tmp_path_factory, monkeypatch, capsys
):
    assert option in TRY, f"{option}: give TRY a value, and bayesfair.options where it acts"
    text, base = KINDS[command][kind]
    folder = tmp_path_factory.getbasetemp() / f"{command}-{kind}"
    source = text
    if command != "simulate":
        source = str(folder / "data.csv")
    if (command, kind) not in before:
        folder.mkdir(exist_ok=True)
        if command != "simulate":
            (folder / "data.csv").write_text(text)
        if kind == "resumed":
            half = "\n".join(text.splitlines()[:9]) + "\n"
            (folder / "half.csv").write_text(half)
            run(monkeypatch, capsys, folder, command, str(folder / "half.csv"),
                ["--save", str(folder / "e.nc")])  # fmt: skip
        before[command, kind] = run(monkeypatch, capsys, folder, command, source, base)
        assert before[command, kind][0] == 0, before[command, kind]
    flag = next(p.opts[0] for p in COMMANDS[command].params if p.name == option)
    values = TRY[option]
    values = values.get(command, values.get("")) if isinstance(values, dict) else values
    given = values if values[0].startswith("--") else [flag, *values]
    kept = base if flag not in base else base[: base.index(flag)] + base[base.index(flag) + 2 :]
    if option == "param":
        kept = base
    status, out, err, files = run(monkeypatch, capsys, folder, command, source, [*kept, *given])
    if status == 2:
        assert flag in err or given[0] in err or NAMES.get(option, flag) in err, err
    elif (command, option) not in MAY_AGREE:
        assert (status, out, err, files) != before[command, kind], f"{given} changed nothing"
