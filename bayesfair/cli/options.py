"""Every option of the command line, declared once: its name, its type and its help.

A command takes ``name: Alias = default``. Names are those of the Python functions wherever both
have the option, so that messages can be put into the words of the shell in one place (`words`).
Which kinds of data an option belongs to stands in `bayesfair.base.options`, for both languages.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

# -- where the data are ----------------------------------------------------------------------------

Log = Annotated[str | None, typer.Argument(help="CSV or Parquet: a file, a folder or a glob.")]
File = Annotated[str | None, typer.Argument(help="CSV, Parquet, PrefLib or JSON lines.")]
DuelFile = Annotated[str, typer.Argument(help="CSV, Parquet or JSON lines, one row per duel.")]
ExampleLog = Annotated[str | None, typer.Option(help="Audit a bundled log instead: ecmo.")]
ExampleComparisons = Annotated[
    str | None, typer.Option(help="Fit bundled comparisons instead: baseball.")
]
Format = Annotated[str, typer.Option(help="auto (by suffix), table, preflib, json.")]
Delimiter = Annotated[str | None, typer.Option(help="Of text files; default detected.")]
Decimal = Annotated[str, typer.Option(help="Decimal sign of text files.")]
Scan = Annotated[
    bool | None, typer.Option(help="Read in parts, in constant memory (default: for large files).")
]

# -- columns of decision logs ----------------------------------------------------------------------

Arm = Annotated[str, typer.Option(help="Column of the chosen arm.")]
Reward = Annotated[str, typer.Option(help="Column of its reward.")]
Propensity = Annotated[
    str | None, typer.Option(help="Column of the chosen arm's probability; '' for none.")
]
Probabilities = Annotated[
    str | None, typer.Option(help="Pattern of the columns of all arms, such as p_{arm}.")
]
Order = Annotated[
    str | None, typer.Option(help="Column that orders the rounds; '' for file order.")
]
By = Annotated[str | None, typer.Option(help="Column that splits the log into several.")]
Arms = Annotated[str | None, typer.Option(help="Labels, comma-separated; or by_group with --by.")]
OfferedArms = Annotated[str | None, typer.Option(help="Columns or list of arms on offer.")]
OfferedDelimiter = Annotated[str, typer.Option(help="Separates arms in such a list.")]
KnownAt = Annotated[
    str | None, typer.Option(help="Column: first round or time that may use the reward.")
]
KnownUntil = Annotated[
    str | None, typer.Option(help="Column: number of rounds whose rewards are known (batches).")
]
Unique = Annotated[
    str | None, typer.Option(help="Column that should hold no value twice, such as a request's id.")
]
RewardWords = Annotated[str | None, typer.Option(help="Worth of words, as in won=1,lost=0.")]
MissingRewards = Annotated[
    str, typer.Option(help="Missing rewards: error, unobserved, drop, or a number.")
]
ProbabilityTolerance = Annotated[
    float | None, typer.Option(help="How far a row of probabilities may sum from 1.")
]

# -- columns of comparisons ------------------------------------------------------------------------

Left = Annotated[str | None, typer.Option(help="Column of the left item.")]
Right = Annotated[str | None, typer.Option(help="Column of the right item.")]
Winner = Annotated[
    str | None, typer.Option(help="Column of the outcome: a side, a tie, or the winner.")
]
Loser = Annotated[str | None, typer.Option(help="Column of the losing item; needs --winner.")]
Wins = Annotated[str | None, typer.Option(help="Columns of counts: wins of left, wins of right.")]
Tied = Annotated[str | None, typer.Option(help="Column of tie counts; needs --wins.")]
Outcomes = Annotated[
    str | None, typer.Option(help="What outcome words mean, e.g. 1=left,0=right,.5=tie.")
]
WinnerIs = Annotated[
    str | None, typer.Option(help="What --winner holds where it could be both: side, item.")
]
Unknown = Annotated[str, typer.Option(help="Unknown outcome words: error, skip.")]
BothBad = Annotated[str, typer.Option(help="'Both bad' judgements: tie, separate, drop.")]
Ranking = Annotated[str | None, typer.Option(help="Long form: column that tells rankings apart.")]
Item = Annotated[str | None, typer.Option(help="Long form: column of the item.")]
Rank = Annotated[str | None, typer.Option(help="Long form: column of the rank, 1 = best.")]
Orderings = Annotated[str | None, typer.Option(help="Wide form: columns of items, best first.")]
Ranks = Annotated[
    str | None, typer.Option(help="Wide form: columns named like items that hold ranks.")
]
LowestIsBest = Annotated[
    bool, typer.Option(help="Whether rank 1 is best, or of ranks more is better.")
]
TieTolerance = Annotated[
    float, typer.Option(help="Neighbouring ranks that differ by no more are tied.")
]
Chosen = Annotated[str | None, typer.Option(help="Choices: column of the chosen item.")]
OfferedItems = Annotated[
    str | None, typer.Option(help="Choices: column of the offered items, a|b|c.")
]
Separator = Annotated[str, typer.Option(help="Between offered items.")]
First = Annotated[
    str | None,
    typer.Option(help="Column of who was shown first (or at home); or left, right: always."),
]
Weight = Annotated[str | None, typer.Option(help="Column of frequency weights.")]
Items = Annotated[
    str | None, typer.Option(help="All items, comma-separated, also those without data.")
]
Unranked = Annotated[
    float | None, typer.Option(help="Rank that stands for 'not ranked', such as 0 or inf.")
]
LastTie = Annotated[
    str | None,
    typer.Option(
        help="What sharing the last place means: tie (equal) or rest (not ranked). Default: tie, "
        "or rest where a PrefLib file is marked imbued."
    ),
]
Partial = Annotated[
    str | None, typer.Option(help="Unranked items: subset (not on offer) or top (ranked below).")
]
MissingRows = Annotated[str, typer.Option(help="Rows with missing values: error, drop.")]
PreflibLabels = Annotated[str, typer.Option(help="Items of PrefLib files: names, ids.")]

# -- the rule that paired duels --------------------------------------------------------------------

DuelOrder = Annotated[
    str | None, typer.Option(help="Column to sort by (default: timestamp, tstamp); '' for none.")
]
DuelPropensity = Annotated[
    str | None, typer.Option(help="Column of the left item's probability; '' for none.")
]
DuelProbabilities = Annotated[
    str | None, typer.Option(help="Columns of the slot's law, p_{item}; '' for none.")
]
Slot = Annotated[
    str, typer.Option(help="first: the left item; mean: half the chance of taking part.")
]
NotForDuels = Annotated[str | None, typer.Option(hidden=True)]
"""An option of `fit` that the audit of who is compared refuses, naming what it has."""
Window = Annotated[int | None, typer.Option(help="Duels per window of shares.")]

# -- the question ----------------------------------------------------------------------------------

Eps1 = Annotated[float, typer.Option(help="Slope of smooth fairness.")]
Eps2 = Annotated[
    float | None,
    typer.Option(help="Allowance of smooth fairness; default min(.05, 1/(2k)), k on offer."),
]
Delta = Annotated[float, typer.Option(help="Objective verdict: fair from 1 - delta on.")]
Divergence = Annotated[str, typer.Option(help="D between decisions, and rewards unless given.")]
RewardDivergence = Annotated[str | None, typer.Option(help="D between rewards.")]
Family = Annotated[str, typer.Option(help="Rewards: auto, bernoulli, finite, poisson, normal.")]
Prior = Annotated[
    str | None, typer.Option(help="Parameters of the prior for every arm, e.g. 0.5,0.5.")
]
Support = Annotated[
    str | None, typer.Option(help="All values that a reward can take (finite), e.g. 1,2,3,4,5.")
]
RewardModel = Annotated[
    str | None, typer.Option(help="PyMC model of the true rewards, bernoulli_hierarchical...")
]
Tolerance = Annotated[float | None, typer.Option(help="Excess that does not count as a violation.")]
Objective = Annotated[bool, typer.Option(help="Also audit against the true rewards.")]
FromRound = Annotated[
    int, typer.Option(help="First round that is judged (from 0); earlier ones serve the beliefs.")
]
Judge = Annotated[
    str,
    typer.Option(
        help="Whose verdict counts: subjective (beliefs), objective (true rewards), both."
    ),
]
PriorSensitivity = Annotated[
    bool,
    typer.Option("--prior-sensitivity", help="Also: does the objective verdict hang on the prior?"),
]

# -- fits ------------------------------------------------------------------------------------------

WorthModel = Annotated[
    str | None, typer.Option(help="plackett_luce, bradley_terry, davidson (ties), thurstone.")
]
DuelModel = Annotated[
    str | None, typer.Option(help="Of the worths: bradley_terry, davidson (ties).")
]
Ties = Annotated[str | None, typer.Option(help="Without a tie model: half (a win each), drop.")]
OrderEffect = Annotated[
    bool | None, typer.Option(help="Effect of being first; default: if it is known who was.")
]
Method = Annotated[str, typer.Option(help="auto, laplace, nuts.")]
PriorSd = Annotated[float, typer.Option(help="Of each log-worth; inf = maximum likelihood.")]
Anchor = Annotated[str | None, typer.Option(help="Item shown at log-worth 0; gaps do not change.")]
Check = Annotated[
    bool, typer.Option(help="Also check the fit, and on what its top hangs; among the notices.")
]
Draws = Annotated[int, typer.Option(help="Posterior draws.")]
Seed = Annotated[int, typer.Option(help="Of everything that is drawn.")]

# -- simulations -----------------------------------------------------------------------------------

Policy = Annotated[
    str, typer.Argument(help="sd_ts, sd_ts_mixture, fair_sd_ts, thompson, uniform, ...")
]
TrueArms = Annotated[str, typer.Option("--arms", help="True mean rewards, such as a=.6,b=.5.")]
SimulatedRounds = Annotated[int, typer.Option("--rounds", help="Rounds per run.")]
Param = Annotated[
    list[str] | None, typer.Option(help="Parameter of the rule, eps2=.1; may be repeated.")
]
Runs = Annotated[int, typer.Option(help="Independent runs; column `run` in the log.")]
Batch = Annotated[int, typer.Option(help="Rounds between updates of the beliefs.")]
Delay = Annotated[int, typer.Option(help="Rounds by which every reward comes late.")]

# -- what is written, and how the program ends -----------------------------------------------------

JsonFile = Annotated[
    str | None, typer.Option("--json", help="Write JSON to a file, or - for standard output.")
]
RoundsFile = Annotated[
    Path | None, typer.Option("--rounds", help="Write every round to this Parquet file.")
]
SaveAudit = Annotated[
    Path | None,
    typer.Option(
        help="Write the audit to a NetCDF file. On its way, and after Ctrl-C, FILE.partial holds "
        "what has been audited: --resume FILE.partial."
    ),
]
SaveFit = Annotated[Path | None, typer.Option(help="Write the fit to a NetCDF file.")]
Resume = Annotated[
    Path | None,
    typer.Option(
        help="Go on with the audit in this file (--save): LOG is what followed; of FILE.partial, "
        "the same LOG again."
    ),
]
Report = Annotated[Path | None, typer.Option(help="Write a report for readers to this HTML file.")]
Plot = Annotated[Path | None, typer.Option(help="Draw rank intervals: FILE.png, .svg or .pdf.")]
LogOut = Annotated[Path | None, typer.Option(help="Write the log to this .parquet or .csv file.")]
FailOn = Annotated[
    str | None,
    typer.Option(
        help="Exit 1 on this or worse: unfair, inconsistent (the log contradicts itself), "
        "undetermined."
    ),
]
MaxRegretPerRound = Annotated[
    float | None, typer.Option(help="Exit 1 if the lower bound of the regret exceeds this.")
]
