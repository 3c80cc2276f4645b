"""Every option of the command line, declared once: its name, its type, its help and its default.

Options stand in groups, one for each thing that is done with them; a command takes a group as one
argument, see `grouped`. Names are those of the Python functions wherever both have the option: a
group whole is what the function takes (``**vars(columns)``), and messages are put into the words of
the shell in one place (`bayesfair.cli.wording`). Which kinds of data an option belongs to stands in
`bayesfair.base.options`, for both languages.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, NamedTuple, get_type_hints

import typer

from bayesfair.base.options import written
from bayesfair.cli.tools import DEBUG, QUIET
from bayesfair.cli.values import (
    csv_labels,
    csv_numbers,
    labels_or_by_group,
    settings,
    word_meanings,
    word_values,
)

__all__ = [
    "AUDIT_OUTPUT",
    "AUDIT_QUESTION",
    "COLUMNS_OUTPUT",
    "COMPARISON_COLUMNS",
    "DUEL_COLUMNS",
    "DUEL_OUTPUT",
    "DUEL_QUESTION",
    "FIT_OUTPUT",
    "FIT_QUESTION",
    "GATE",
    "LOG_COLUMNS",
    "NOT_FOR_DUELS",
    "PRINTED",
    "SIMULATION_OPTIONS",
    "SIMULATION_OUTPUT",
    "SLOT_LAW",
    "Values",
    "grouped",
    "is_written",
]

Values = SimpleNamespace
"""The values of a group, as a command takes them: ``columns: Annotated[Values, LOG_COLUMNS]``."""

TEXT: Any = str | None
NUMBER: Any = float | None
COUNT: Any = int | None
FILE: Any = Path | None


class Option(NamedTuple):
    """The type of an option, how typer declares it, its default, what makes a value of its text.

    One that `is_list` holds several values with commas, and may be repeated.
    """

    kind: Any
    declared: Any
    default: Any
    convert: Callable[[str, str], Any] | None
    is_list: bool


def option(
    help: str | None = None,
    kind: Any = TEXT,
    default: Any = None,
    *,
    flag: str | None = None,
    convert: Callable[[str, str], Any] | None = None,
    is_list: bool = False,
) -> Option:
    """Return an option; one without help is hidden, one with a conversion is a list."""
    names = () if flag is None else (flag,)
    declared = typer.Option(*names, help=help, hidden=help is None)
    return Option(kind, declared, default, convert, is_list or convert is not None)


class Group:
    """Options that a command takes as one argument; `panel` is their title in the help."""

    def __init__(self, panel: str | None, /, **options: Option) -> None:
        self.panel, self.options = panel, options

    def extended(self, **more: Option) -> Group:
        """Return the group with more options behind its own."""
        return Group(self.panel, **self.options, **more)

    def parameters(self) -> Iterator[inspect.Parameter]:
        """Yield the options as typer reads them from a signature."""
        for name, (kind, declared, default, *_) in self.options.items():
            shown = copy(declared)
            shown.rich_help_panel = self.panel
            yield inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, annotation=Annotated[kind, shown],
                default=default,
            )  # fmt: skip

    def values(self, given: Mapping[str, Any]) -> Values:
        """Return the values of the options, made of their texts."""
        found = {name: given[name] for name in self.options}
        for name, own in self.options.items():
            if own.convert is not None and found[name] is not None:
                found[name] = own.convert(found[name], f"--{name.replace('_', '-')}")
        return Values(**found)


def is_written(shell: typer.Context, name: str) -> bool:
    """Whether an option was written on the command line, be it with its default value."""
    source = shell.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command for typer: each group in its signature stands there as its options.

    Every command has the options of `PRINTED` beside its own. While it runs it is known which of
    its own were `bayesfair.base.options.written`.
    """
    hints = get_type_hints(command, include_extras=True)
    signature = inspect.signature(command)
    groups = {
        name: hint.__metadata__[0]
        for name, hint in hints.items()
        if isinstance(getattr(hint, "__metadata__", (None,))[0], Group)
    }
    declared: list[inspect.Parameter] = []
    for name, parameter in signature.parameters.items():
        alone = parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY)
        declared += groups[name].parameters() if name in groups else [alone]
    if "shell" not in hints:
        kind = inspect.Parameter.KEYWORD_ONLY
        declared.append(inspect.Parameter("shell", kind, annotation=typer.Context))
    declared += PRINTED.parameters()

    @functools.wraps(command)
    def run(**given: Any) -> None:
        shell: typer.Context = given["shell"]
        for name, switch in (("quiet", QUIET), ("debug", DEBUG)):
            if given.pop(name):  # before the command or after it
                switch.set(True)
        own = set(shell.params) - set(PRINTED.options)
        with written({name for name in own if is_written(shell, name)}):
            taken = {n: groups[n].values(given) for n in groups}
            command(**{n: taken.get(n, given.get(n)) for n in signature.parameters})

    run.__signature__ = signature.replace(parameters=declared)  # type: ignore[attr-defined] # read by typer
    run.__annotations__ = {p.name: p.annotation for p in declared}
    run.lists = frozenset(  # type: ignore[attr-defined] # read by bayesfair.cli.repeated
        name for group in groups.values() for name, one in group.options.items() if one.is_list
    )
    return run


PRINTED = Group(
    "What is printed",
    quiet=option("Errors alone: no report, notes or progress.", bool, False, flag="--quiet"),
    debug=option("Where in the program an error arose.", bool, False, flag="--debug"),
)

DELIMITER = option("Of text files; default detected.")
DRAWS = option("Posterior draws.", int, 4000)
SEED = option("Of everything that is drawn.", int, 0)
SAMPLER = option("Of NUTS: target_accept=.95,tune=1000,chains=4,backend=pymc.", convert=settings)
PRIOR_SD = option("Of each log-worth; inf = maximum likelihood.", float, 1.0)
JSON_FILE = option("Write JSON to a file, or - for standard output.", flag="--json")


REPORT = option("Write a report for readers to this HTML file.", FILE)
LOG_COLUMNS = Group(
    "Columns of the log",
    arm=option("Column of the chosen arm.", str, "arm"),
    reward=option("Column of its reward.", str, "reward"),
    propensity=option("Column of the chosen arm's probability; '' for none."),
    probabilities=option("Pattern of the columns of all arms, such as p_{arm}."),
    order=option("Column that orders the rounds; '' for file order."),
    by=option("Columns that split the log into several, comma-separated.", convert=csv_labels),
    arms=option("Labels, comma-separated; or by_group with --by.", convert=labels_or_by_group),
    offered=option("Columns or list of arms on offer."),
    offered_delimiter=option("Separates arms in such a list.", str, "|"),
    known_at=option("Column: first round or time that may use the reward."),
    known_until=option("Column: number of rounds whose rewards are known (batches)."),
    waiting=option(
        "A missing reward is 0 once so long has passed: 7d, 12h, 30min, or a number of --order."
    ),
    round=option(
        "Column that numbers the rounds, where each row is one arm of a round; '' where it is not."
    ),
    chosen=option("With --round: column of 0/1 that marks the chosen arm (default: rewarded)."),
    format=option(
        "Of the file: text, parquet, json, dsjson, vw, arrow, orc, sqlite; default detected."
    ),
    table=option("Table of a SQLite file; default the only one."),
    unique=option("Column that should hold no value twice, such as a request's id."),
    user=option("Column of whom each decision was for: do users keep their arm?"),
    context=option(
        "Columns of what the rule saw before it chose, comma-separated; see --context-model.",
        convert=csv_labels,
    ),
    missing_context=option("Level that stands for a missing context (default: refused)."),
    keep_prob=option("Column of the chance that the row was kept, of a thinned log; '' for none."),
    constant_within=option(
        "Columns, comma-separated, or a duration (1h) within which the rule did not change: it is "
        "assembled from the chosen arms' probabilities.",
        convert=csv_labels,
    ),
    rewards=option("Worth of words, as in won=1,lost=0.", convert=word_values),
    missing=option("Missing rewards: error, unobserved, drop, or a number.", str, "error"),
    delimiter=DELIMITER,
    decimal=option("Decimal sign of text files.", str, "."),
    probability_tolerance=option("How far a row of probabilities may sum from 1.", NUMBER),
)
"""Options of `read_history`."""

COLUMNS_OUTPUT = Group("Output", json_file=JSON_FILE)
"""What ``bayesfair columns`` writes."""

CRITERION = Group(
    "The question",
    eps1=option("Slope of smooth fairness.", float, 2.0),
    eps2=option("Allowance of smooth fairness; default min(.05, 1/(2k)), k on offer.", NUMBER),
    delta=option("Objective verdict: fair from 1 - delta on.", float, 0.05),
    from_round=option(
        "First round that is judged (from 0); earlier ones serve the beliefs.", int, 0
    ),
    judge=option(
        "Whose verdict counts: subjective (beliefs), objective (true rewards), both.", str, "both"
    ),
    draws=DRAWS,
    seed=SEED,
    sampler=SAMPLER,
)
"""What both audits are asked."""

AUDIT_QUESTION = CRITERION.extended(
    divergence=option("D between decisions, and rewards unless given.", str, "total_variation"),
    reward_divergence=option("D between rewards."),
    family=option("Rewards: auto, bernoulli, finite, poisson, normal.", str, "auto"),
    prior=option("Parameters of the prior for every arm, e.g. 0.5,0.5.", convert=csv_numbers),
    support=option(
        "All values that a reward can take (finite), e.g. 1,2,3,4,5.", convert=csv_numbers
    ),
    model=option(
        "PyMC model of the true rewards: bernoulli_hierarchical..., or FILE.py:build with "
        "--allow-code."
    ),
    context_model=option(
        "Beliefs given the context (--context): cells (each value and arm by itself; default up to "
        "5 values), pooled (an arm's values share what is learned; rewards 0 and 1), linear, "
        "probit, logit (numbers and indicators as features), none."
    ),
    rule=option(
        "Where no probabilities were logged: estimated, from the choices in windows (a model, "
        "beside the verdict)."
    ),
    rule_window=option("Least rounds of a window of --rule; default 100 for each arm.", COUNT),
    propensity_draws=option(
        "The logged probabilities are shares of so many Monte Carlo draws.", COUNT
    ),
    across=option("contexts: also pairs of rounds, given the context (a verdict of its own)."),
    rule_version=option(
        "With --across: the column of --context that tells the version of the rule; pairs are "
        "within one."
    ),
    tolerance=option("Excess that does not count as a violation.", NUMBER),
    objective=option("Also audit against the true rewards.", bool, True),
)
"""Options of `audit`."""

GATE = Group(
    "Output",
    json_file=JSON_FILE,
    fail_on=option(
        "Exit 1 on this or worse: unfair, inconsistent (the log contradicts itself), undetermined."
    ),
)
"""What is written, and how the command ends."""

AUDIT_OUTPUT = GATE.extended(
    prior_sensitivity=option(
        "Also: does the objective verdict hang on the prior?",
        bool,
        False,
        flag="--prior-sensitivity",
    ),
    value=option(
        "Also: what would these rules have earned? p_star, uniform, greedy, or names as in "
        "simulate; with commas.",
        convert=csv_labels,
    ),
    value_rule=option(
        "Also: what would your own rule have earned? Pattern of the columns with its "
        "probabilities, as in q_{arm}; several with commas.",
        convert=csv_labels,
    ),
    rounds=option("Write every round to this Parquet file.", FILE),
    save=option(
        "Write the audit to a NetCDF file. Every minute, and at Ctrl-C, FILE.partial gets what has "
        "been audited (a kill in the first minute leaves none): --resume FILE.partial.",
        FILE,
    ),
    resume=option(
        "Go on with the audit in this file (--save): LOG is what followed; of FILE.partial, the "
        "same LOG again.",
        FILE,
    ),
    report=REPORT,
    max_regret_per_round=option("Exit 1 if the lower bound of the regret exceeds this.", NUMBER),
    scan=option("Read in parts, in constant memory (default: for large files).", bool | None),
    scheduler=option(
        "Share the files of the log, or its groups, among the workers of a Dask cluster: "
        "tcp://HOST:PORT, or local (processes of this machine)."
    ),
)
"""What ``bayesfair audit`` writes besides, and goes on from."""

DUEL_COLUMNS = Group(
    "Columns of the comparisons",
    left=option("Column of the left item."),
    right=option("Column of the right item."),
    winner=option("Column of the outcome: a side, a tie, or the winner."),
    loser=option("Column of the losing item; needs --winner."),
    outcomes=option("What outcome words mean, e.g. 1=left,0=right,.5=tie.", convert=word_meanings),
    winner_is=option("What --winner holds where it could be both: side, item."),
    unknown=option("Unknown outcome words: error, skip.", str, "error"),
    both_bad=option("'Both bad' judgements: tie, separate, drop.", str, "tie"),
    first=option("Column of who was shown first (or at home); or left, right: always."),
    items=option("All items, comma-separated, also those without data.", convert=csv_labels),
    missing=option("Rows with missing values: error, drop.", str, "error"),
    delimiter=DELIMITER,
)
"""Options of `read_comparisons` for duels with one row each."""

COMPARISON_COLUMNS = DUEL_COLUMNS.extended(
    format=option("auto (by suffix), table, preflib, json.", str, "auto"),
    wins=option("Columns of counts: wins of left, of right, and ties.", convert=csv_labels),
    ranking=option("Long form: column that tells rankings apart."),
    item=option("Long form: column of the item."),
    rank=option("Long form: column of the rank, 1 = best."),
    orderings=option("Wide form: columns of items, best first.", convert=csv_labels),
    ranks=option("Wide form: columns named like items that hold ranks.", convert=csv_labels),
    lowest_is_best=option("Whether rank 1 is best, or of ranks more is better.", bool, True),
    tie_tolerance=option("Neighbouring ranks that differ by no more are tied.", float, 0.0),
    unranked=option("Rank that stands for 'not ranked', such as 0 or inf.", NUMBER),
    last_tie=option(
        "What sharing the last place means: tie (equal) or rest (not ranked). Default: tie, or "
        "rest where a PrefLib file is marked imbued."
    ),
    chosen=option("Choices: column of the chosen item."),
    offered=option("Choices: column of the offered items, a|b|c."),
    separator=option("Between offered items.", str, "|"),
    weight=option("Column of frequency weights; '' for none."),
    partial=option("Unranked items: subset (not on offer) or top (ranked below)."),
    labels=option("Items of PrefLib files: names, ids.", str, "names"),
)
"""Options of `read_comparisons`."""

FIT_QUESTION = Group(
    "The fit",
    model=option("plackett_luce, bradley_terry, davidson (ties), thurstone."),
    ties=option("Without a tie model: half (a win each), drop."),
    order_effect=option("Effect of being first; default: if it is known who was.", bool | None),
    method=option("auto, laplace, nuts.", str, "auto"),
    prior_sd=PRIOR_SD,
    draws=DRAWS,
    seed=SEED,
    sampler=SAMPLER,
)
"""Options of `fit` for comparisons."""

FIT_OUTPUT = Group(
    "Output",
    anchor=option("Item shown at log-worth 0; gaps do not change."),
    tier_probability=option("Items are told apart from this probability on.", float, 0.95),
    check=option("Also check the fit, and on what its top hangs; among the notices.", bool, False),
    json_file=JSON_FILE,
    report=REPORT,
    plot=option("Draw rank intervals: FILE.png, .svg or .pdf.", FILE),
    save=option("Write the fit to a NetCDF file.", FILE),
)
"""What ``bayesfair fit`` shows and writes."""

DUEL_OUTPUT = GATE.extended(report=REPORT)
"""What ``bayesfair audit-comparisons`` writes."""

SLOT_LAW = Group(
    "The rule that paired them",
    order=option("Column to sort by (default: timestamp, tstamp); '' for none."),
    propensity=option("Column of the left item's probability; '' for none."),
    probabilities=option("Columns of the slot's law, p_{item}; '' for none."),
)
"""The rule that paired the duels, and the order in which it did."""

DUEL_QUESTION = CRITERION.extended(
    slot=option(
        "first: the left item; mean: half the chance of taking part. Default: first, but mean of "
        "winner and loser."
    ),
    window=option("Duels per window of shares.", COUNT),
    model=option("Of the worths: bradley_terry, davidson (ties)."),
    prior_sd=PRIOR_SD,
)
"""Options of `audit_comparisons`."""

NOT_FOR_DUELS = Group(
    None,
    wins=option(),
    weight=option(),
)
"""Options of ``bayesfair fit`` that the audit of who is compared refuses by name."""

SIMULATION_OPTIONS = Group(
    "The simulation",
    rounds=option("Rounds per run.", int, 10000),
    param=option("Parameter of the rule, eps2=.1; may be repeated.", list[str] | None),
    runs=option("Independent runs; column `run` in the log.", int, 1),
    batch=option("Rounds between updates of the beliefs.", int, 1),
    delay=option("Rounds by which every reward comes late.", int, 0),
    contexts=option(
        "What the rule sees before each round, drawn evenly (phone,desk) or so often: "
        "phone=.7,desk=.3; --arms has the means in each, in this order, separated by semicolons.",
        is_list=True,
    ),
    context_model=option(
        "How the rule learns given --contexts: cells (default), linear, probit, logit, or none: it "
        "does not look."
    ),
    seed=SEED,
)
"""Options of a simulation."""

SIMULATION_OUTPUT = Group(
    "Output",
    out=option("Write the log to this .parquet or .csv file.", FILE),
    json_file=JSON_FILE,
)
"""What ``bayesfair simulate`` writes."""
