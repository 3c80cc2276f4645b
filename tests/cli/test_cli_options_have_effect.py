"""Every option of every command changes what comes out, or is refused by the name the shell knows.

The options are found in the declarations, so that a new one without a value to try fails here;
what is printed (``--quiet``, ``--debug``) is tested in ``test_cli_help.py``.
"""

import command_line
import pytest
import typer

from bayesfair.cli.options import PRINTED
from bayesfair.cli.program import app

COMMANDS = typer.main.get_command(app).commands
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
         ("a", "c", "right"), ("a", "b", "left"), ("c", "a", "left")] * 2
    )
)  # fmt: skip
BALLOTS = "p1,p2,p3,w\na,b,c,1\nc,a,b,2\nb,c,a,1\na,c,b,3\n"


def without(text, *columns):
    """Return a table without some of its columns."""
    rows = [line.split(",") for line in text.splitlines()]
    kept = [i for i, name in enumerate(rows[0]) if name not in columns]
    return "\n".join(",".join(row[i] for i in kept) for row in rows) + "\n"


FEW = ["--draws", "40"]
#: command -> kind -> (table, columns that it does not have, options that are always given)
KINDS = {
    "audit": {
        "full": (LOG, ["propensity"], FEW),
        "chosen": (LOG, ["p_a", "p_b"], FEW),
        "none": (
            LOG, ["p_a", "p_b", "propensity"],
            ["--probabilities", "", "--propensity", "", *FEW],  # the file has other such columns
        ),
        "grouped": (LOG, ["propensity"], ["--by", "site", *FEW]),
        "resumed": (LOG, ["propensity"], ["--resume", "EARLIER", *FEW]),
    },
    "fit": {
        "duels": (DUELS, ["propensity"], FEW),
        "mle": (DUELS, ["propensity"], ["--prior-sd", "inf"]),
        "orderings": (BALLOTS, [], ["--orderings", "p1,p2,p3", *FEW]),
    },
    "audit-comparisons": {
        "law": (DUELS, ["propensity"], FEW),
        "propensity": (DUELS, ["p_a", "p_b", "p_c"], FEW),
        "windows": (
            DUELS,
            ["p_a", "p_b", "p_c", "propensity", "r_a", "r_b", "r_c"],  # none is logged
            ["--window", "9", *FEW],
        ),
    },
    "simulate": {
        "arms": ("sd_ts", [], ["--arms", "a=.6,b=.5", "--rounds", "30"]),
        "worths": ("fair_sd_dts", [], ["--arms", "a=2,b=1,c=1", "--rounds", "200"]),
        "contexts": ("sd_ts", [], ["--arms", "a=.6,b=.5;a=.1,b=.9", "--rounds", "30",
                                   "--contexts", "u,v"]),
    },
}  # fmt: skip
#: option -> values on the command line, for all commands or by command.
TRY = {
    "example": ["nothing"], "format": ["json"], "table": ["rounds"],
    "delimiter": [";"], "decimal": [","],
    "scan": {"": ["--scan"]}, "arm": ["arm2"], "reward": ["reward2"],
    "propensity": {"audit": ["q_a"], "": ["q"]},
    "probabilities": {"audit": ["q_{arm}"], "": ["r_{item}"]},
    "order": {"audit": ["back"], "": ["o"]}, "by": ["arm2"],
    "arms": {"audit": ["a,b,zed"], "": ["a=.9,b=.2"]},
    "offered": {"audit": ["could_{arm}"], "": ["p1"]}, "offered_delimiter": ["/"],
    "known_at": ["late"], "unique": ["site"], "user": ["site"], "known_until": ["until"],
    "keep_prob": ["q_a"], "constant_within": ["p_a,site"], "waiting": ["5"],
    "rule": ["estimated"], "rule_window": ["8"], "propensity_draws": ["50"],
    "across": ["contexts"], "rule_version": ["site"],
    "rewards": ["1=0,0=1"],
    "missing": ["drop"], "probability_tolerance": ["0.4"],
    "left": ["f"], "right": ["who"], "winner": ["who"], "loser": ["f"], "wins": ["o,t"],
    "outcomes": ["left=right,right=left"], "winner_is": ["side"],
    "unknown": ["skip"], "both_bad": ["drop"], "ranking": ["o"], "item": ["f"], "rank": ["o"],
    "orderings": ["p2,p1,p3"], "ranks": ["o,t"], "lowest_is_best": {"": ["--no-lowest-is-best"]},
    "tie_tolerance": ["1"], "unranked": ["0"], "last_tie": ["rest"],
    "chosen": {"audit": ["late"], "": ["f"]},
    "separator": ["/"], "first": ["left"], "weight": ["o"],
    "items": ["a,b,c,zed"],
    "partial": ["top"], "labels": ["ids"], "slot": ["mean"], "window": ["7"],
    "from_round": ["8"], "judge": ["subjective"],
    "eps1": ["0"], "eps2": ["0.7"], "delta": ["0.3"], "divergence": ["hellinger"],
    "reward_divergence": ["hellinger"], "family": ["finite"], "prior": ["5,5"],
    "support": ["0,1,2"], "model": {"audit": ["bernoulli_independent"], "fit": ["davidson"],
                                    "": ["davidson"]},
    "tolerance": ["0.5"], "objective": {"": ["--no-objective"]},
    "prior_sensitivity": {"": ["--prior-sensitivity"]}, "ties": ["half"],
    "order_effect": {"": ["--order-effect"]}, "method": {"": ["nuts"]}, "prior_sd": ["0.1"],
    "anchor": ["b"], "check": {"": ["--check"]}, "draws": ["500"], "seed": ["7"],
    "param": ["rounds=1"], "runs": ["2"], "batch": ["5"], "delay": ["5"], "rounds": {
        "audit": ["NEW.parquet"], "": ["250"]},
    "json_file": ["NEW.json"], "save": ["NEW.nc"], "resume": ["OTHER"], "report": ["NEW.html"],
    "plot": ["NEW.svg"], "out": ["NEW.csv"], "fail_on": ["undetermined"],
    "max_regret_per_round": ["0"], "round": ["timestamp"], "tier_probability": ["0.6"],
    "value": ["uniform"], "value_rule": ["q_{arm}"], "scheduler": ["nowhere"],
    "sampler": ["chains=2"], "context": ["site"], "missing_context": ["unknown"],
    "context_model": {"simulate": ["none"], "": ["cells"]}, "contexts": ["u=.9,v=.1"],
    "allow_code": {"": ["--allow-code"]},
}  # fmt: skip
#: What the data need so that an option has something to do in them: texts of the table, old -> new.
NEEDS = {
    ("audit", "offered"): {  # one arm alone
        "b,0,0.9,0.1,0.1,1,y,0,0.4,0.6,a,1,1,1": "b,0,0.0,1.0,1.0,1,y,0,0.4,0.6,a,1,0,1",
    },
    ("audit", "missing"): {"\nb,0,": "\nb,,"},
    ("audit", "waiting"): {"\nb,0,": "\nb,,"},
    ("audit", "probability_tolerance"): {"a,1,0.9,0.1,": "a,1,0.9,0.05,"},
    ("audit", "decimal"): {"a,1,": "a,1.0,"},
}  # fmt: skip
for command in ("fit", "audit-comparisons"):
    NEEDS |= {
        (command, "missing"): {"b,a,right": "b,,right"},
        (command, "both_bad"): {"b,a,right": "b,a,tie (bothbad)"},
        (command, "unknown"): {"b,a,right": "b,a,odd"},
        (command, "winner_is"): {"a,b,left": "left,b,left"},
        (command, "ties"): {"b,a,right": "b,a,tie"},
        (command, "partial"): {"c,a,b,2": "c,a,,2"},
    }
#: (command, kind, option): there the option has nothing to do, and rightly is not refused.
MAY_AGREE = {
    **{("audit", kind, "scan"): "how the file is read, never what is in it"
       for kind in KINDS["audit"]},
    ("audit", "none", "max_regret_per_round"): "the lower limit of so short a log is 0",
    ("audit", "grouped", "user"): "a table of groups names tests that fail; the JSON has all",
}  # fmt: skip
#: With these nothing is drawn, and --draws would be refused.
NOT_DRAWN = {"objective", "prior_sd"}
#: What a refusal names where it is not the option itself: what would follow from it.
NAMES = {
    "format": ["JSON"], "resume": ["other.nc"], "param": ["parameter"],
    "probabilities": ["--window"], "known_until": ["known_until"],
    "keep_prob": ["(keep_prob)"],
    "items": ["--partial", "zed"], "winner_is": ["'left'", "p_left"], "ranks": ["--unranked"],
    "model": ["tie parameter"], "round": ["of the rounds of data.csv"],
}  # fmt: skip
CASES = [
    (command, kind, parameter.name)
    for command, kinds in KINDS.items()
    for kind in kinds
    for parameter in COMMANDS[command].params
    if parameter.opts[0].startswith("--") and parameter.name not in PRINTED.options
]


def run(capsys, folder, command, source, argv):
    """Return exit status, both outputs without the folder's name, and the files written."""
    for old in folder.glob("NEW*"):
        old.unlink()
    argv = [a.replace("NEW", str(folder / "NEW")).replace("EARLIER", str(folder / "e.nc"))
            .replace("OTHER", str(folder / "other.nc")) for a in argv]  # fmt: skip
    return *command_line.run(capsys, command, source, *argv), sorted(
        p.name for p in folder.glob("NEW*")
    )


@pytest.fixture(scope="module")
def before():
    """What each kind of data gives without the option, computed once."""
    return {}


def prepared(capsys, folder, command, kind, option):
    """Write the data of a kind as an option needs them, and return what to read."""
    table, gone, _ = KINDS[command][kind]
    if command == "simulate":
        return table
    for old, new in NEEDS.get((command, option), {}).items():
        table = table.replace(old, new, 1)
    text = without(table, *gone)
    (folder / "data.csv").write_text(text)
    if kind == "resumed" and not (folder / "e.nc").exists():
        for name, n in (("e.nc", 9), ("other.nc", 5)):
            rows = without(KINDS[command][kind][0], *gone).splitlines()[:n]
            (folder / "part.csv").write_text("\n".join(rows) + "\n")
            run(capsys, folder, command, str(folder / "part.csv"),
                [*FEW, "--save", str(folder / name)])  # fmt: skip
    return str(folder / "data.csv")


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(("command", "kind", "option"), CASES)
def test_an_option_changes_what_comes_out_or_is_refused(
    command, kind, option, before, tmp_path_factory, capsys
):
    assert option in TRY, f"{option}: give TRY a value, and bayesfair.base.options where it acts"
    base = KINDS[command][kind][2]
    folder = tmp_path_factory.getbasetemp() / f"{command}-{kind}"
    folder.mkdir(exist_ok=True)
    if option == "resume" and kind != "resumed":
        pytest.skip("the kind `resumed` has it")
    source = prepared(capsys, folder, command, kind, option)
    data = (command, kind, option if (command, option) in NEEDS else None)
    if data not in before:
        before[data] = run(capsys, folder, command, source, base)
        assert before[data][0] == 0 or data[2], before[data]
    parameter = next(p for p in COMMANDS[command].params if p.name == option)
    flag = parameter.opts[0]
    values = TRY[option]
    values = values.get(command, values.get("")) if isinstance(values, dict) else values
    given = values if values[0].startswith("--") else [flag, *values]
    for old in [flag, *(["--draws"] if option in NOT_DRAWN else [])]:
        if old in base:
            base = base[: base.index(old)] + base[base.index(old) + 2 :]
    found = run(capsys, folder, command, source, [*base, *given])
    if found[0] == 2:
        err = found[2]
        assert any(name in err for name in (flag, given[0], *NAMES.get(option, ()))), err
        if "has no effect on" in err and parameter.default is not None and not parameter.is_flag:
            default = [flag, str(parameter.default)]
            written = run(capsys, folder, command, source, [*base, *default])
            assert written[0] == 2 and flag in written[2], f"{default} was written and ignored"
    elif (command, kind, option) not in MAY_AGREE:
        assert found != before[data], f"{given} changed nothing"
